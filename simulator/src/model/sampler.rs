//! How is a duration drawn, and a sum of many? Laws made ready for the inner loop, in nanoseconds.

use rand_distr::{Distribution, StandardNormal};

use super::streams::Stream;
use crate::law::Law;
use crate::provider::{MIB_BYTES, OperationLaw};
use crate::rules::Transfer;

const NS_PER_MS: f64 = 1e6;

/// A law made ready: `max(floor, shape draw + add)`.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    shape: Shape,
    /// The first four moments of one draw, for sums.
    moments: Moments,
}

#[derive(Clone, Debug)]
enum Shape {
    Constant {
        ns: f64,
    },
    LogNormal {
        ln_ns: f64,
        sigma: f64,
        add_ns: f64,
        floor_ns: f64,
    },
    Exponential {
        mean_ns: f64,
        add_ns: f64,
    },
    Quantiles {
        points: Box<[(f64, f64)]>,
        add_ns: f64,
    },
    /// The larger of two independent draws.
    Max {
        both: Box<(Sampler, Sampler)>,
    },
}

/// Mean, standard deviation, skewness and excess kurtosis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) mean_ns: f64,
    pub(super) sd_ns: f64,
    pub(super) skewness: f64,
    pub(super) kurtosis: f64,
    min_ns: f64,
}

impl Sampler {
    pub(super) fn constant(ns: f64) -> Self {
        Self::of(Shape::Constant { ns })
    }

    /// A law without anything moved.
    pub(super) fn law(law: &Law) -> Self {
        Self::shifted(law, 0.0)
    }

    /// One request of an operation that moves `bytes` and lists `keys`.
    pub(super) fn operation(operation: &OperationLaw, write: bool, bytes: f64, keys: f64, transfer: Transfer) -> Self {
        let moved_ms = operation.per_mib_ms * bytes / MIB_BYTES;
        let listed_ms = operation.per_1000_keys_ms * keys / 1_000.0;
        match (transfer, &operation.law) {
            (Transfer::Study, Law::LogNormal { median_ms, sigma, floor_ms }) => {
                let median_ms = median_ms + if write { moved_ms } else { 0.0 };
                Self::shifted(&Law::log_normal(median_ms, *sigma, *floor_ms), listed_ms)
            }
            (Transfer::Study, law) => Self::shifted(law, listed_ms + if write { moved_ms } else { 0.0 }),
            (Transfer::Profile, law) => Self::shifted(law, moved_ms + listed_ms),
        }
    }

    /// The larger of a draw of each.
    pub(super) fn larger(a: Self, b: Self) -> Self {
        Self::of(Shape::Max { both: Box::new((a, b)) })
    }

    fn shifted(law: &Law, add_ms: f64) -> Self {
        let add_ns = add_ms * NS_PER_MS;
        Self::of(match law {
            Law::Constant { ms } => Shape::Constant { ns: ms * NS_PER_MS + add_ns },
            Law::LogNormal { median_ms, sigma, floor_ms } if *sigma == 0.0 || *median_ms == 0.0 => {
                Shape::Constant { ns: (median_ms * NS_PER_MS + add_ns).max(floor_ms * NS_PER_MS) }
            }
            Law::LogNormal { median_ms, sigma, floor_ms } => Shape::LogNormal {
                ln_ns: (median_ms * NS_PER_MS).ln(),
                sigma: *sigma,
                add_ns,
                floor_ns: floor_ms * NS_PER_MS,
            },
            Law::Exponential { mean_ms } => Shape::Exponential { mean_ns: mean_ms * NS_PER_MS, add_ns },
            Law::Quantiles { points } => {
                Shape::Quantiles { points: points.iter().map(|(p, ms)| (*p, ms * NS_PER_MS)).collect(), add_ns }
            }
        })
    }

    fn of(shape: Shape) -> Self {
        let moments = Moments::of(&shape);
        Self { shape, moments }
    }

    /// The duration, if it never varies.
    pub(super) fn fixed_ns(&self) -> Option<f64> {
        match self.shape {
            Shape::Constant { ns } => Some(ns),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn moments(&self) -> Moments {
        self.moments
    }

    /// One draw, in nanoseconds.
    #[inline(always)]
    pub(super) fn draw(&self, stream: &mut Stream) -> f64 {
        match &self.shape {
            Shape::LogNormal { ln_ns, sigma, add_ns, floor_ns } => {
                let z: f64 = StandardNormal.sample(stream);
                (exp(ln_ns + sigma * z) + add_ns).max(*floor_ns)
            }
            Shape::Constant { ns } => *ns,
            other => other.rare(stream),
        }
    }

    /// The sum of `n` independent draws, in nanoseconds. From `exact_below` on it is one draw from an approximation.
    #[inline]
    pub(super) fn sum(&self, n: u32, exact_below: u32, stream: &mut Stream) -> f64 {
        if n < exact_below || matches!(self.shape, Shape::Max { .. }) {
            return (0..n).map(|_| self.draw(stream)).sum();
        }
        self.moments.sum(f64::from(n), StandardNormal.sample(stream))
    }
}

impl Shape {
    #[cold]
    fn rare(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Exponential { mean_ns, add_ns } => add_ns - mean_ns * stream.unit().ln(),
            Self::Quantiles { points, add_ns } => {
                let p = stream.unit();
                let above = points.partition_point(|point| point.0 < p).clamp(1, points.len() - 1);
                let (low, high) = (points[above - 1], points[above]);
                add_ns + low.1 + (high.1 - low.1) * (p - low.0) / (high.0 - low.0)
            }
            Self::Max { both } => both.0.draw(stream).max(both.1.draw(stream)),
            Self::Constant { ns } => *ns,
            Self::LogNormal { .. } => 0.0,
        }
    }

    /// The duration at a probability; none for a shape without one.
    fn quantile(&self, p: f64, z: f64) -> Option<f64> {
        Some(match self {
            Self::Constant { ns } => *ns,
            Self::LogNormal { ln_ns, sigma, add_ns, floor_ns } => ((ln_ns + sigma * z).exp() + add_ns).max(*floor_ns),
            Self::Exponential { mean_ns, add_ns } => add_ns - mean_ns * (1.0 - p).max(1e-300).ln(),
            Self::Quantiles { points, add_ns } => {
                let above = points.partition_point(|point| point.0 < p).clamp(1, points.len() - 1);
                let (low, high) = (points[above - 1], points[above]);
                add_ns + low.1 + (high.1 - low.1) * (p - low.0) / (high.0 - low.0)
            }
            Self::Max { .. } => return None,
        })
    }
}

impl Moments {
    /// By integrating powers of the quantile function over the standard normal, which is exact enough for any law that
    /// has one. Laws without one are drawn, never summed by moments: their `sd_ns` stays 0 and is not used.
    fn of(shape: &Shape) -> Self {
        const STEPS: i32 = 12_000;
        const REACH: f64 = 9.0;
        let width = 2.0 * REACH / f64::from(STEPS);
        let mut p = 0.0;
        let mut points = Vec::with_capacity(STEPS as usize);
        for step in 0..STEPS {
            let z = -REACH + (f64::from(step) + 0.5) * width;
            let weight = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * width;
            let Some(ns) = shape.quantile(p + weight / 2.0, z) else { return Self::default() };
            points.push((weight, ns));
            p += weight;
        }
        let central = |k: i32, mean: f64| points.iter().map(|(w, x)| w * (x - mean).powi(k)).sum::<f64>() / p;
        let mean_ns = central(1, 0.0);
        let variance = central(2, mean_ns);
        // A law that does not vary.
        if variance <= (mean_ns * 1e-9).powi(2) {
            return Self { mean_ns, min_ns: mean_ns, ..Self::default() };
        }
        Self {
            mean_ns,
            sd_ns: variance.sqrt(),
            skewness: central(3, mean_ns) / variance.powf(1.5),
            kurtosis: central(4, mean_ns) / (variance * variance) - 3.0,
            min_ns: points.first().map_or(0.0, |point| point.1),
        }
    }

    /// A draw of the sum of `n` from a standard normal `z`: the Cornish-Fisher expansion to the fourth moment, whose
    /// error falls as n^-3/2. Cornish and Fisher, "Moments and cumulants in the specification of distributions",
    /// Revue de l'Institut International de Statistique 5 (1938).
    #[inline]
    fn sum(&self, n: f64, z: f64) -> f64 {
        let root = n.sqrt();
        let (skewness, kurtosis) = (self.skewness / root, self.kurtosis / n);
        let (z2, z3) = (z * z, z * z * z);
        let w = z + skewness * (z2 - 1.0) / 6.0 + kurtosis * (z3 - 3.0 * z) / 24.0
            - skewness * skewness * (2.0 * z3 - 5.0 * z) / 36.0;
        (self.mean_ns * n + self.sd_ns * root * w).max(self.min_ns * n)
    }
}

/// `e^x` for |x| < 700 with a relative error below 1e-8, from additions and multiplications only, so that it is the same on
/// every platform: `2^k × 2^f`, with f in [-1/2, 1/2] and 2^f by its Taylor polynomial.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Adding and taking away 1.5 × 2^52 rounds to the nearest integer, which is then in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let y = x * std::f64::consts::LOG2_E;
    let shifted = y + ROUND;
    let f = (y - (shifted - ROUND)) * std::f64::consts::LN_2;
    let k = (shifted.to_bits() as i64) << 52;
    let low = 1.0 + f * (1.0 + f * (0.5 + f * (1.0 / 6.0)));
    let high = 1.0 / 24.0 + f * (1.0 / 120.0 + f * (1.0 / 720.0 + f * (1.0 / 5_040.0)));
    let f2 = f * f;
    let power = low + f2 * f2 * high;
    f64::from_bits((power.to_bits() as i64).wrapping_add(k) as u64)
}

#[cfg(test)]
mod tests;
