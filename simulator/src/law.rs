//! How long does something take? A distribution of durations, as data.

use serde::{Deserialize, Serialize};

use crate::error::CellError;

/// A distribution of durations, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Constant {
        /// Duration in milliseconds.
        ms: f64,
    },
    /// `max(floor_ms, median_ms × exp(sigma × z))` with `z` standard normal.
    LogNormal {
        /// Median before the floor, in milliseconds.
        median_ms: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// No duration is shorter, in milliseconds.
        #[serde(default)]
        floor_ms: f64,
    },
    /// Exponential with this mean.
    Exponential {
        /// Mean in milliseconds.
        mean_ms: f64,
    },
    /// Measured quantiles, interpolated linearly. The tail beyond the last point is not invented: no draw exceeds it.
    Quantiles {
        /// Pairs of a probability and a duration in milliseconds, both ascending, from probability 0 to 1.
        points: Vec<(f64, f64)>,
    },
}

impl Law {
    /// A duration that never varies.
    pub fn constant(ms: f64) -> Self {
        Self::Constant { ms }
    }

    /// A log-normal duration.
    pub fn log_normal(median_ms: f64, sigma: f64, floor_ms: f64) -> Self {
        Self::LogNormal { median_ms, sigma, floor_ms }
    }

    /// Refuses numbers that are no durations; `field` names the law in the message.
    pub(crate) fn check(&self, field: &str) -> Result<(), CellError> {
        let duration = |name: &str, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => {
                Err(CellError::field(format!("{field}.{name}"), value, "a finite number of milliseconds, 0 or more"))
            }
        };
        match self {
            Self::Constant { ms } => duration("ms", *ms),
            Self::Exponential { mean_ms } => duration("mean_ms", *mean_ms),
            Self::LogNormal { median_ms, sigma, floor_ms } => {
                duration("median_ms", *median_ms)?;
                duration("floor_ms", *floor_ms)?;
                match (0.0..=5.0).contains(sigma) {
                    true => Ok(()),
                    false => Err(CellError::field(format!("{field}.sigma"), sigma, "0 to 5")),
                }
            }
            Self::Quantiles { points } => {
                let allowed = "pairs [probability, ms], both ascending, from probability 0 to probability 1";
                let refuse = || Err(CellError::field(format!("{field}.points"), format!("{points:?}"), allowed));
                let ends = points.first().map(|p| p.0) == Some(0.0) && points.last().map(|p| p.0) == Some(1.0);
                let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
                match ends && ascending && points.iter().all(|p| p.1.is_finite() && p.1 >= 0.0) {
                    true => Ok(()),
                    false => refuse(),
                }
            }
        }
    }
}
