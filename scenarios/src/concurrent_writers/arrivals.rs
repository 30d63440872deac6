//! When are operations due? At once, one after another, or by a schedule.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::parameters;
use crate::random::{self, Purpose};

const NS_PER_S: f64 = 1e9;

/// How operations arrive, at all tables together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// Each writer starts the next when the last has ended.
    Closed,
    /// Independently of each other.
    Poisson {
        /// Operations a second, of all writers.
        per_s: f64,
    },
    /// Evenly spaced.
    Constant {
        /// Operations a second, of all writers.
        per_s: f64,
    },
    /// Several at one moment, then none.
    Bursts {
        /// Operations a second, of all writers, in the mean.
        per_s: f64,
        /// Operations of a burst.
        size: u64,
    },
}

impl Arrivals {
    pub(super) fn new(parameters: &BTreeMap<String, Value>) -> Self {
        let per_s = parameters::number(parameters, "rate-per-s") * parameters::count(parameters, "tables") as f64;
        match parameters::word(parameters, "arrivals") {
            "poisson" => Self::Poisson { per_s },
            "constant" => Self::Constant { per_s },
            "bursts" => Self::Bursts { per_s, size: parameters::count(parameters, "burst-size") },
            _ => Self::Closed,
        }
    }

    pub(super) fn is_closed(self) -> bool {
        self == Self::Closed
    }

    /// The arrivals of one of some writers. All writers' schedules together are the arrivals.
    pub(super) fn of_writer(self, writer: u32, writers: u32, seed: u64) -> Schedule {
        let random = random::stream(seed, writer, Purpose::Arrivals);
        Schedule { arrivals: self, writers: writers.into(), next: writer.into(), at_s: 0.0, random }
    }
}

/// The moments at which a writer's operations are due, in nanoseconds from the start. Empty in a closed loop.
#[derive(Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    writers: u64,
    /// Number of the next arrival among those of all writers, who take turns.
    next: u64,
    at_s: f64,
    random: ChaCha8Rng,
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let number = self.next;
        self.next += self.writers;
        let at_s = match self.arrivals {
            Arrivals::Closed => return None,
            // Independent streams add up to one of their rates' sum.
            Arrivals::Poisson { per_s } => {
                let share: f64 = self.random.random();
                self.at_s -= (1.0 - share).ln() * self.writers as f64 / per_s;
                self.at_s
            }
            Arrivals::Constant { per_s } => number as f64 / per_s,
            Arrivals::Bursts { per_s, size } => (number / size * size) as f64 / per_s,
        };
        Some((at_s * NS_PER_S) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Arrivals of all writers within some seconds, in order.
    fn all(arrivals: Arrivals, writers: u32, seconds: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..writers)
            .flat_map(|writer| arrivals.of_writer(writer, writers, 5).take_while(move |at| *at < seconds * S))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn writers_together_keep_the_rate() {
        let constant = all(Arrivals::Constant { per_s: 4.0 }, 3, 10);
        assert_eq!(constant, (0..40).map(|i| i * S / 4).collect::<Vec<_>>());
        let bursts = all(Arrivals::Bursts { per_s: 4.0, size: 8 }, 3, 10);
        assert_eq!(bursts.len(), 40);
        assert!(bursts.chunks(8).zip(0..).all(|(burst, i)| burst.iter().all(|at| *at == i * 2 * S)), "{bursts:?}");
        assert!(all(Arrivals::Closed, 3, 10).is_empty());
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread() {
        let arrivals = all(Arrivals::Poisson { per_s: 50.0 }, 7, 200);
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / S as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential law's deviation is its mean.
        assert!((mean * 50.0 - 1.0).abs() < 0.03 && (variance.sqrt() / mean - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
