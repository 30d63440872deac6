//! Where does a request's randomness come from? One stream of random numbers for each request.
//!
//! A single generator for a whole run would let one request more, in one writer, move every number after it. Here a
//! request's numbers depend on the seed, its writer, its method and its count among that writer's requests of that
//! method, and on nothing else: a writer that takes another path keeps the numbers of its other methods, and leaves
//! those of the other writers alone.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The random numbers of one request: of `writer`, the `nth` of this `method`, in a run under `seed`.
///
/// The same on every platform. ChaCha8 and not `SmallRng`, whose algorithm may change between versions and word sizes.
pub(crate) fn stream(seed: u64, writer: u32, method: u8, nth: u64) -> ChaCha8Rng {
    let mut request = [0; 13];
    request[..4].copy_from_slice(&writer.to_le_bytes());
    request[4] = method;
    request[5..].copy_from_slice(&nth.to_le_bytes());
    ChaCha8Rng::seed_from_u64(xxh3_64_with_seed(&request, seed))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    #[test]
    fn same_request_same_numbers() {
        assert_eq!(stream(1, 2, 3, 4), stream(1, 2, 3, 4));
    }

    /// A recorded run can be repeated only while this holds: a new value breaks every recorded seed.
    #[test]
    fn numbers_are_pinned() {
        assert_eq!(stream(0, 0, 0, 0).next_u64(), 14_678_487_587_314_389_895);
        assert_eq!(stream(42, 199, 5, 10_000).next_u64(), 7_333_142_505_331_294_609);
    }

    #[test]
    fn each_part_of_the_key_gives_its_own_stream() {
        let mut firsts = HashSet::new();
        for seed in 0..4 {
            for writer in 0..16 {
                for method in 0..8 {
                    for nth in 0..64 {
                        firsts.insert(stream(seed, writer, method, nth).next_u64());
                    }
                }
            }
        }
        assert_eq!(firsts.len(), 4 * 16 * 8 * 64);
    }

    /// Neighbouring requests must be as good as independent: the first deviates of consecutive streams are normal
    /// and uncorrelated.
    #[test]
    fn consecutive_streams_are_independent() {
        let n = 50_000;
        let z: Vec<f64> = (0..n).map(|nth| StandardNormal.sample(&mut stream(9, 1, 0, nth))).collect();
        let mean = z.iter().sum::<f64>() / n as f64;
        let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n as f64;
        let lag = z.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03 && lag.abs() < 0.02, "{mean} {variance} {lag}");
    }
}
