//! Where does a transaction's randomness come from? A counter-based stream of its own.
//!
//! A stream is a key and a counter: the number at a position is a hash of the two, so a stream is eight bytes of state
//! and is found without the streams before it. A transaction's numbers depend on the seed, on which transaction it is,
//! and on how many it has drawn: neither on what others do, nor on the order of events, nor on threads.

/// Odd, and the fractional part of the golden ratio in 64 bits: Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014, section 3.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Odd and otherwise arbitrary: leads from one index to the next.
const STRIDE: u64 = 0xd134_2543_de82_ef95;

/// What a stream is for. Streams of different purposes share nothing.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Transaction = 0,
    Arrivals = 1,
    Service = 2,
}

/// A stream of random numbers: SplitMix64 from a hashed starting point.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream(pub(super) u64);

impl Stream {
    /// The stream `index` of a purpose in a run under `seed`.
    #[inline]
    pub(super) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        // Seed and index go in differently, so that they are not interchangeable, and each through a round of its own,
        // so that neighbours begin far apart.
        let run = mix(seed.wrapping_add(STEP.wrapping_mul(1 + purpose as u64)));
        Self(mix(run.wrapping_add(index.wrapping_mul(STRIDE))))
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform in (0, 1], in steps of 2^-53.
    #[inline(always)]
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as i64 as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n. The bias is n / 2^64.
    #[inline(always)]
    pub(super) fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u32
    }
}

/// A bijection whose output bits each depend on all input bits: variant 13 of Stafford's finalizers, as in SplitMix64.
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::normal;

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let mut firsts = std::collections::HashSet::new();
        for seed in 0..20 {
            for purpose in [Purpose::Transaction, Purpose::Arrivals, Purpose::Service] {
                for index in 0..500 {
                    firsts.insert(Stream::new(seed, purpose, index).next());
                }
            }
        }
        assert_eq!(firsts.len(), 20 * 3 * 500);
    }

    #[test]
    fn neighbouring_streams_are_independent_and_normal() {
        let n = 200_000;
        let z: Vec<f64> =
            (0..n).map(|i| normal::quantile(Stream::new(9, Purpose::Transaction, i).unit() - 1e-17)).collect();
        let mean = z.iter().sum::<f64>() / n as f64;
        let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n as f64;
        let lag = z.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.013 && lag.abs() < 0.01, "{mean} {variance} {lag}");
    }

    #[test]
    fn one_stream_is_uniform() {
        let mut stream = Stream::new(1, Purpose::Service, 0);
        let mut cells = [0u32; 64];
        (0..640_000).for_each(|_| cells[(stream.unit() * 64.0).ceil() as usize - 1] += 1);
        // Chi-square with 63 degrees of freedom: 99.99 % below 112.
        let chi2: f64 = cells.iter().map(|n| (f64::from(*n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 112.0, "{chi2}");
    }
}
