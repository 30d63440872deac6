//! Random numbers of a scenario: one stream for each writer and purpose.
//!
//! A writer that makes one choice more moves no number of another writer, nor of its own other choices.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What a stream is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// When operations are due.
    Arrivals = 1,
    /// What an operation does, and to which table.
    Mix = 2,
    /// How long a writer waits before it tries again.
    Backoff = 3,
}

/// The random numbers of a writer for a purpose, under the seed of the cell: the same on every platform.
pub(crate) fn stream(seed: u64, writer: u32, purpose: Purpose) -> ChaCha8Rng {
    // ChaCha mixes its key: neighbouring keys give unrelated streams.
    let mut key = *b"lakemark scenario.--------....p.";
    key[18..26].copy_from_slice(&seed.to_le_bytes());
    key[26..30].copy_from_slice(&writer.to_le_bytes());
    key[30] = purpose as u8;
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn each_part_of_the_key_gives_its_own_stream() {
        let first = |seed, writer, purpose| stream(seed, writer, purpose).next_u64();
        let all = [
            first(1, 2, Purpose::Mix),
            first(2, 2, Purpose::Mix),
            first(1, 3, Purpose::Mix),
            first(1, 2, Purpose::Backoff),
        ];
        assert_eq!(all[0], first(1, 2, Purpose::Mix));
        assert!((1..4).all(|other| all[other] != all[0]), "{all:?}");
    }
}
