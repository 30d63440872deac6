//! What is the sum of many draws like? The first four moments of one, and the distribution of a sum from them.

use super::Shape;

/// Points of the integration over probability, each tail apart.
const STEPS: u32 = 8_000;

/// Mean, standard deviation, skewness and excess kurtosis of one draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::model) struct Moments {
    pub(super) mean_ns: f64,
    pub(super) sd_ns: f64,
    pub(super) skewness: f64,
    pub(super) kurtosis: f64,
    min_ns: f64,
}

impl Moments {
    /// Integrates powers of the quantile function over the probability `p = 1 / (1 + e^-t)`, which takes steps that
    /// grow finer towards both tails.
    pub(super) fn of(shape: &Shape) -> Self {
        const REACH: f64 = 36.0;
        let width = 2.0 * REACH / f64::from(STEPS);
        let points: Vec<(f64, f64)> = (0..STEPS)
            .map(|step| {
                let t = -REACH + (f64::from(step) + 0.5) * width;
                let (p, rest) = (1.0 / (1.0 + (-t).exp()), 1.0 / (1.0 + t.exp()));
                (p * rest * width, shape.quantile(p))
            })
            .collect();
        let total: f64 = points.iter().map(|point| point.0).sum();
        let central = |k: i32, mean: f64| points.iter().map(|(w, x)| w * (x - mean).powi(k)).sum::<f64>() / total;
        let mean_ns = central(1, 0.0);
        let variance = central(2, mean_ns);
        let varies = variance > 0.0;
        Self {
            mean_ns,
            sd_ns: variance.sqrt(),
            skewness: if varies { central(3, mean_ns) / variance.powf(1.5) } else { 0.0 },
            kurtosis: if varies { central(4, mean_ns) / (variance * variance) - 3.0 } else { 0.0 },
            min_ns: points.first().map_or(0.0, |point| point.1),
        }
    }

    /// A draw of the sum of `n`, from a standard normal `z`: the Cornish-Fisher expansion to the fourth moment, whose
    /// error falls as n^-3/2. Cornish and Fisher, "Moments and cumulants in the specification of distributions",
    /// Revue de l'Institut International de Statistique 5 (1938).
    #[inline]
    pub(super) fn sum(&self, n: f64, z: f64) -> f64 {
        let root = n.sqrt();
        let (skewness, kurtosis) = (self.skewness / root, self.kurtosis / n);
        let (z2, z3) = (z * z, z * z * z);
        let w = z + skewness * (z2 - 1.0) / 6.0 + kurtosis * (z3 - 3.0 * z) / 24.0
            - skewness * skewness * (2.0 * z3 - 5.0 * z) / 36.0;
        (self.mean_ns * n + self.sd_ns * root * w).max(self.min_ns * n)
    }
}
