//! How long does one request take? The latency law of an emulated provider.

use std::time::Duration;

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

const MIB_BYTES: f64 = 1_048_576.0;

/// A log-normal latency with terms for what the request moves.
///
/// With `z` from a standard normal distribution, a request that moves `bytes` and lists `keys` takes
///
/// ```text
/// max(floor_ms, median_ms × exp(sigma × z) + per_mib_ms × bytes / 2^20 + per_1000_keys_ms × keys / 1000)
/// ```
///
/// Only the first term is random: a large transfer takes longer, and the spread that it adds is not modelled. The
/// floor clamps the sum. It is not added to it, so it moves the median only where the median lies below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Median of the random term, in milliseconds.
    pub median_ms: f64,
    /// Standard deviation of the random term's natural logarithm; 0 makes the law exact. From two published
    /// percentiles it is `ln(p99 / p50) / 2.326`.
    pub sigma: f64,
    /// Milliseconds for each MiB of body, sent or received.
    #[serde(default)]
    pub per_mib_ms: f64,
    /// Milliseconds for each 1,000 keys of a listing's page.
    #[serde(default)]
    pub per_1000_keys_ms: f64,
    /// No request takes less, in milliseconds.
    #[serde(default)]
    pub floor_ms: f64,
}

/// One number of a [`Law`], by name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// [`Law::median_ms`].
    MedianMs,
    /// [`Law::sigma`].
    Sigma,
    /// [`Law::per_mib_ms`].
    PerMibMs,
    /// [`Law::per_1000_keys_ms`].
    #[serde(rename = "per_1000_keys_ms")]
    Per1000KeysMs,
    /// [`Law::floor_ms`].
    FloorMs,
}

impl Law {
    /// Draws the latency of one request. Takes one normal deviate from `rng` whatever the law, so that a changed
    /// profile leaves every later draw of the same stream in place.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R, bytes: u64, keys: u64) -> Duration {
        let z: f64 = StandardNormal.sample(rng);
        self.at(self.median_ms * (self.sigma * z).exp(), bytes, keys)
    }

    /// The median latency of a request.
    pub fn median(&self, bytes: u64, keys: u64) -> Duration {
        self.at(self.median_ms, bytes, keys)
    }

    /// Mean latency in milliseconds of a request that moves nothing: `median_ms × exp(sigma² / 2)`, at least the
    /// floor. What the clamp adds to the mean is left out: some 2 % at most in the built-in laws.
    pub fn mean_ms(&self) -> f64 {
        let mean_ms = self.median_ms * (self.sigma * self.sigma / 2.0).exp();
        mean_ms.max(self.floor_ms)
    }

    /// The law's numbers by name, in the order of the definition.
    pub fn terms(&self) -> [(&'static str, f64); 5] {
        [
            ("median_ms", self.median_ms),
            ("sigma", self.sigma),
            ("per_mib_ms", self.per_mib_ms),
            ("per_1000_keys_ms", self.per_1000_keys_ms),
            ("floor_ms", self.floor_ms),
        ]
    }

    fn at(&self, random_ms: f64, bytes: u64, keys: u64) -> Duration {
        let moved_ms = self.per_mib_ms * bytes as f64 / MIB_BYTES;
        let listed_ms = self.per_1000_keys_ms * keys as f64 / 1000.0;
        let total_ms = (random_ms + moved_ms + listed_ms).max(self.floor_ms);
        // Whole nanoseconds: `exp` may differ in its last bit from one platform's libm to another's, and rounding
        // hides that. The cast saturates.
        Duration::from_nanos((total_ms * 1e6).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const DRAWS: usize = 100_000;
    const S3_GET: Law = Law { median_ms: 27.0, sigma: 0.62, per_mib_ms: 13.7, per_1000_keys_ms: 0.0, floor_ms: 10.0 };

    fn sorted_ms(law: &Law) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| law.sample(&mut rng, 0, 0).as_secs_f64() * 1e3).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    fn close(got: f64, expected: f64, tolerance: f64) {
        let error = (got / expected - 1.0).abs();
        assert!(error <= tolerance, "got {got}, expected {expected} within {tolerance}");
    }

    #[test]
    fn median_and_p99_follow_the_law() {
        let draws = sorted_ms(&S3_GET);
        close(draws[DRAWS / 2], 27.0, 0.01);
        close(draws[DRAWS * 99 / 100], 27.0 * (0.62f64 * 2.326).exp(), 0.03);
    }

    #[test]
    fn mean_follows_the_law() {
        for law in [S3_GET, Law { floor_ms: 0.0, ..S3_GET }] {
            let draws = sorted_ms(&law);
            close(draws.iter().sum::<f64>() / DRAWS as f64, law.mean_ms(), 0.01);
        }
    }

    #[test]
    fn floor_clamps_and_nothing_is_below_it() {
        let draws = sorted_ms(&S3_GET);
        assert_eq!(draws[0], 10.0);
        // P(z < ln(10 / 27) / 0.62) = 5.5 %.
        let clamped = draws.iter().filter(|&&ms| ms == 10.0).count();
        close(clamped as f64 / DRAWS as f64, 0.0546, 0.05);
    }

    #[test]
    fn sigma_zero_is_exact_and_terms_add() {
        let law = Law { median_ms: 2.5, sigma: 0.0, per_mib_ms: 10.0, per_1000_keys_ms: 27.5, floor_ms: 1.0 };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(law.sample(&mut rng, 0, 0), Duration::from_micros(2_500));
        assert_eq!(law.sample(&mut rng, 3 << 20, 0), Duration::from_micros(32_500));
        assert_eq!(law.sample(&mut rng, 0, 1_000), Duration::from_micros(30_000));
    }

    #[test]
    fn zero_law_takes_no_time() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(Law::default().sample(&mut rng, u64::MAX, u64::MAX), Duration::ZERO);
        assert_eq!(Law::default().mean_ms(), 0.0);
    }

    #[test]
    fn every_law_takes_the_same_draws() {
        let mut after_exact = ChaCha8Rng::seed_from_u64(3);
        let mut after_random = ChaCha8Rng::seed_from_u64(3);
        Law::default().sample(&mut after_exact, 0, 0);
        S3_GET.sample(&mut after_random, 0, 0);
        assert_eq!(after_exact, after_random);
    }
}
