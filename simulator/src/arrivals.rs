//! When do transactions begin? Open arrival processes, and clients in closed loop.

use serde::{Deserialize, Serialize};

use crate::error::CellError;
use crate::law::Law;

/// What starts transactions. One stream for the whole catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Log-normal gaps, at least 1 ms: what endive-2026 runs. Its configuration calls this exponential, and its
    /// `scale` the mean, but the code draws a log-normal whose median it is.
    LogNormal {
        /// Median gap in milliseconds. The mean gap is `exp(sigma² / 2)` times that.
        scale_ms: f64,
        /// Standard deviation of the gap's natural logarithm; 0.5 in the study.
        #[serde(default = "study_sigma")]
        sigma: f64,
    },
    /// Exponential gaps: a Poisson process.
    Exponential {
        /// Mean gap in milliseconds.
        mean_ms: f64,
    },
    /// A Poisson process that is on and off by turns, each for an exponential time.
    OnOff {
        /// Mean gap while on, in milliseconds.
        mean_ms: f64,
        /// Mean length of a burst, in milliseconds.
        on_ms: f64,
        /// Mean length of a pause, in milliseconds.
        off_ms: f64,
    },
    /// A Poisson process whose rate follows a trace, over and over. See [`rates_from_csv`].
    Trace {
        /// Length of one step, in milliseconds.
        step_ms: f64,
        /// Arrivals a second, step by step.
        rates_per_s: Vec<f64>,
    },
    /// A [`Arrivals::Trace`] whose rates are in a file, as [`rates_from_csv`] reads it.
    TraceFile {
        /// Length of one step, in milliseconds.
        step_ms: f64,
        /// The file.
        path: String,
    },
    /// A fixed number of clients, each of which starts its next transaction when the last has ended.
    ClosedLoop {
        /// Number of clients.
        clients: u32,
        /// Time between the end of one transaction and the start of the next.
        think: Law,
        /// Client `i` writes table `i` modulo the number of tables, instead of drawing one.
        #[serde(default)]
        pinned: bool,
    },
}

fn study_sigma() -> f64 {
    0.5
}

impl Arrivals {
    /// The process with what its file holds; itself where there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`rates_from_csv`].
    pub fn resolved(&self) -> Result<Self, CellError> {
        let Self::TraceFile { step_ms, path } = self else { return Ok(self.clone()) };
        let read = |source| CellError::Read { field: "arrivals.path".to_owned(), path: path.clone(), source };
        let text = std::fs::read_to_string(path).map_err(read)?;
        Ok(Self::Trace { step_ms: *step_ms, rates_per_s: rates_from_csv(&text, path)? })
    }

    /// Mean arrivals a second of an open process. None for a closed loop, whose rate is a result, and for a file that
    /// cannot be read.
    pub fn offered_per_s(&self) -> Option<f64> {
        Some(match self {
            Self::TraceFile { .. } => return self.resolved().ok()?.offered_per_s(),
            Self::LogNormal { scale_ms, sigma } => 1000.0 / (scale_ms * (sigma * sigma / 2.0).exp()).max(1.0),
            Self::Exponential { mean_ms } => 1000.0 / mean_ms,
            Self::OnOff { mean_ms, on_ms, off_ms } => 1000.0 / mean_ms * on_ms / (on_ms + off_ms),
            Self::Trace { rates_per_s, .. } => rates_per_s.iter().sum::<f64>() / rates_per_s.len().max(1) as f64,
            Self::ClosedLoop { .. } => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), CellError> {
        let at_least = |name: &str, value: f64, min: f64| match value.is_finite() && value >= min {
            true => Ok(()),
            false => Err(CellError::field(format!("arrivals.{name}"), value, format!("{min} ms or more"))),
        };
        match self {
            Self::TraceFile { .. } => self.resolved()?.check(),
            Self::LogNormal { scale_ms, sigma } => {
                at_least("scale_ms", *scale_ms, 0.001)?;
                match (0.0..=5.0).contains(sigma) {
                    true => Ok(()),
                    false => Err(CellError::field("arrivals.sigma", sigma, "0 to 5")),
                }
            }
            Self::Exponential { mean_ms } => at_least("mean_ms", *mean_ms, 0.001),
            Self::OnOff { mean_ms, on_ms, off_ms } => {
                at_least("mean_ms", *mean_ms, 0.001)?;
                at_least("on_ms", *on_ms, 1.0)?;
                at_least("off_ms", *off_ms, 0.0)
            }
            Self::Trace { step_ms, rates_per_s } => {
                at_least("step_ms", *step_ms, 1.0)?;
                let usable = rates_per_s.iter().all(|rate| (0.0..=1e6).contains(rate));
                match usable && rates_per_s.iter().any(|rate| *rate > 0.0) {
                    true => Ok(()),
                    false => Err(CellError::field(
                        "arrivals.rates_per_s",
                        format!("{rates_per_s:?}"),
                        "rates from 0 to 1,000,000 a second, at least one above 0",
                    )),
                }
            }
            Self::ClosedLoop { clients, think, .. } => {
                if !(1..=10_000_000).contains(clients) {
                    return Err(CellError::field("arrivals.clients", clients, "1 to 10,000,000"));
                }
                think.check("arrivals.think")
            }
        }
    }
}

/// Reads the rates of an [`Arrivals::Trace`] from text: one rate a second on each line, empty lines and lines that
/// begin with `#` left out. `origin` names the text in errors.
///
/// # Errors
/// When a line is not a number, or no line is left.
pub fn rates_from_csv(text: &str, origin: &str) -> Result<Vec<f64>, CellError> {
    let mut rates = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refuse = || CellError::Parse {
            origin: origin.to_owned(),
            line: index + 1,
            message: format!("{line:?} is no rate; allowed: one number of arrivals a second on each line"),
        };
        rates.push(line.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0).ok_or_else(refuse)?);
    }
    match rates.is_empty() {
        true => {
            Err(CellError::Parse { origin: origin.to_owned(), line: 1, message: "no rate in the trace".to_owned() })
        }
        false => Ok(rates),
    }
}
