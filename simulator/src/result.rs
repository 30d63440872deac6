//! What did a run yield? Counts, and the metrics by their definitions.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What one cell yields under one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The seed.
    pub seed: u64,
    /// What happened during the whole run.
    pub counts: Counts,
    /// The study's metric of its tables and latency-throughput plots: transactions submitted in the middle of the run,
    /// warm-up and cool-down of five median runtimes left out, at least 5 and at most 15 minutes each. Throughput is
    /// over the span of their submissions.
    pub table: PerType<Summary>,
    /// The study's metric of its heatmaps: success over the whole run; latency over commits that were submitted after
    /// the first and were done before the last tenth of the time between the first submission and the last commit, both
    /// of the transactions' type. Throughput counts those commits over the *whole* run, so it is at most 80 % of the
    /// truth; the study prints it an hour.
    pub heatmap: PerType<Summary>,
    /// The study's metric of its knees: the heatmap's window over transactions of all types, for success too, which
    /// keeps the last tenth's aborts and drops its commits. Throughput is over 80 % of the run.
    pub knee: PerType<Summary>,
    /// Our own metric; none unless the cell's `drain` is set. Every transaction that was submitted after the warm-up
    /// is followed to its end, so that nothing is censored. Throughput counts the commits that are done
    /// between warm-up and the end of arrivals, whenever they were submitted.
    pub drain: Option<PerType<Summary>>,
    /// Time from the start of the commit until it is given up.
    pub failure: PerType<Latency>,
    /// Latencies behind `drain`, or behind `heatmap` where there is no drain, to be merged over seeds.
    pub histograms: PerType<Histogram>,
}

/// One value for all transactions and one for each type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerType<T> {
    /// Both types.
    pub all: T,
    /// FastAppends.
    pub fast_append: T,
    /// ValidatedOverwrites.
    pub validated_overwrite: T,
}

/// Metrics of some transactions by one definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Transactions that the definition's success rate counts.
    pub transactions: u64,
    /// Those of them that committed.
    pub committed: u64,
    /// `committed / transactions`, from 0 to 1; none of nothing.
    pub success_rate: Option<f64>,
    /// Commits a second; none where the definition's span is empty.
    pub throughput_per_s: Option<f64>,
    /// Latency of the commits that the definition's window holds, from the end of the runtime to the answer.
    pub latency: Latency,
    /// Attempts less one of the same commits, in the mean.
    pub mean_retries: Option<f64>,
}

/// A latency's summary, in milliseconds. All none of nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Durations summarized.
    pub count: u64,
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
}

/// What happened during a whole run. Every transaction that arrived has committed, was given up, or was in flight when
/// the run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Transactions submitted.
    pub arrivals: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Given up after the last attempt that the policy allows.
    pub aborted_attempts: u64,
    /// Given up because the policy's budget was spent.
    pub aborted_budget: u64,
    /// Given up because of a real conflict.
    pub aborted_conflict: u64,
    /// Neither committed nor given up when the run ended; 0 with `drain`.
    pub in_flight: u64,
    /// Attempts that reached the publish primitive before the run's end, those of unfinished transactions included.
    pub attempts: u64,
    /// Of those, won. All others are in one of the three classes below.
    pub published: u64,
    /// Of those, lost although nobody else had committed to the own table.
    pub failed_catalog_conflict: u64,
    /// Of those, lost to a commit to the own table.
    pub failed_table_conflict: u64,
    /// Of those, refused for the rate of writes.
    pub failed_throttled: u64,
    /// Attempts that were given up by the client's own comparison, before the publish. Not among `attempts`.
    pub given_up_early: u64,
    /// Requests to store and catalog.
    pub requests: u64,
    /// Of those, requests of attempts that did not commit.
    pub requests_wasted: u64,
    /// Bytes sent and received.
    pub bytes: u64,
    /// Of those, in attempts that did not commit.
    pub bytes_wasted: u64,
    /// Commits of each batch in the mean, where a service batches them.
    pub mean_batch: Option<f64>,
    /// Events that the simulator processed.
    pub events: u64,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ended {
    /// When it was submitted, in nanoseconds from the run's start.
    pub submit_ns: u64,
    /// When its commit began, after its runtime.
    pub commit_ns: u64,
    /// When it had its answer, or was given up.
    pub end_ns: u64,
    /// Its table, from 0.
    pub table: u32,
    /// Whether it is a ValidatedOverwrite, and not a FastAppend.
    pub is_validated_overwrite: bool,
    /// Attempts that did not commit.
    pub failed_attempts: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It committed.
    Committed,
    /// It was given up after the last attempt that its policy allows.
    AttemptsSpent,
    /// It was given up because its policy's budget was spent.
    BudgetSpent,
    /// It was given up because of a real conflict.
    RealConflict,
}

impl Counts {
    /// Transactions given up, whatever for.
    pub fn aborted(&self) -> u64 {
        self.aborted_attempts + self.aborted_budget + self.aborted_conflict
    }

    /// Attempts that did not commit, of all that were answered.
    pub fn failed_attempts(&self) -> u64 {
        self.failed_catalog_conflict + self.failed_table_conflict + self.failed_throttled
    }

    /// Share of attempts at the publish primitive that failed, from 0 to 1; none of nothing.
    pub fn failed_attempt_rate(&self) -> Option<f64> {
        (self.attempts > 0).then(|| self.failed_attempts() as f64 / self.attempts as f64)
    }

    /// Share of finished transactions that were given up, from 0 to 1; none of nothing.
    pub fn failed_operation_rate(&self) -> Option<f64> {
        let finished = self.committed + self.aborted();
        (finished > 0).then(|| self.aborted() as f64 / finished as f64)
    }
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let percentiles = histogram.percentiles_ms([50.0, 95.0, 99.0]);
        Self {
            count: histogram.count(),
            mean_ms: histogram.mean_ms(),
            p50_ms: percentiles.map(|p| p[0]),
            p95_ms: percentiles.map(|p| p[1]),
            p99_ms: percentiles.map(|p| p[2]),
        }
    }
}
