//! What a cell with several writers comes to: goodput, lost attempts and failed operations, latency, fairness, waste.
//!
//! Every figure is of the operations that ended in the measured time, with all of their attempts and requests, however
//! long before they began. Operations and attempts are layers of their own: a study's *failure rate* may be that of
//! either, and Little's law tells which (`docs/CONCURRENCY.md`).

pub mod across;
pub mod compare;
mod prices;

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::record::{Attempt, Operation, OperationKind, Outcome, Request, Window};
use crate::run::{RunError, RunFolder};
use crate::summary::{Attempts, Operations};

pub use prices::Prices;

/// A distribution of latencies, from a histogram of three significant digits.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Distribution {
    /// Size of the sample.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Largest value.
    pub max_ms: f64,
}

/// Latencies, added one at a time.
#[derive(Debug, Default)]
struct Latencies {
    histogram: Option<Histogram<u64>>,
    total_us: u64,
}

impl Latencies {
    fn add(&mut self, latency_us: u64) {
        // Three digits are an allowed precision, so that there is a histogram, and it grows with its values.
        let histogram = match &mut self.histogram {
            Some(histogram) => histogram,
            None => match Histogram::new(3) {
                Ok(new) => self.histogram.insert(new),
                Err(_) => return,
            },
        };
        if histogram.record(latency_us).is_ok() {
            self.total_us += latency_us;
        }
    }

    fn distribution(&self) -> Option<Distribution> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at_ms = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Some(Distribution {
            count: histogram.len(),
            mean_ms: self.total_us as f64 / 1e3 / histogram.len() as f64,
            p50_ms: at_ms(0.5),
            p90_ms: at_ms(0.9),
            p99_ms: at_ms(0.99),
            p999_ms: at_ms(0.999),
            max_ms: histogram.max() as f64 / 1e3,
        })
    }
}

/// What was used up: by everything, or by what led to nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Spent {
    /// Requests on the wire.
    pub requests: u64,
    /// Bytes received.
    pub read_bytes: u64,
    /// Bytes sent.
    pub written_bytes: u64,
    /// Price of the requests and bytes by the provider's list, in US dollars; 0 where there is no list.
    pub usd: f64,
}

impl Spent {
    fn add(&mut self, request: &Request, prices: Option<&Prices>) {
        self.requests += 1;
        self.read_bytes += request.read_bytes;
        self.written_bytes += request.written_bytes;
        self.usd += prices.map_or(0.0, |prices| prices.of(request));
    }
}

/// How evenly the writers got on.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Fairness {
    /// Fewest commits of a writer.
    pub commits_min: u64,
    /// Most commits of a writer.
    pub commits_max: u64,
    /// Writers without any.
    pub writers_without_commit: u32,
    /// Longest time within the measured time that a writer went without a commit.
    pub starvation_s_max: f64,
}

/// What a cell with several writers comes to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Concurrency {
    /// The measured time.
    pub window: Window,
    /// Operations that succeeded: commits.
    pub commits: Operations,
    /// Operations that returned an error after their library (or the common policy) gave up.
    pub failed: Operations,
    /// Failed operations by class.
    pub failed_by_class: BTreeMap<Outcome, Operations>,
    /// Commits by kind of operation.
    pub commits_by_kind: BTreeMap<OperationKind, Operations>,
    /// Commits a second: the goodput.
    pub commits_per_s: Option<f64>,
    /// Failed operations as a share of all, 0 to 1.
    pub failed_operation_rate: Option<f64>,
    /// Attempts by how they ended.
    pub attempts: BTreeMap<Outcome, Attempts>,
    /// Attempts that did not succeed as a share of all, 0 to 1.
    pub failed_attempt_rate: Option<f64>,
    /// Attempts of all operations, by the commits.
    pub attempts_per_commit: Option<f64>,
    /// Latency of the commits; where arrivals follow a schedule, from the moment that they were due.
    pub commit_latency: Option<Distribution>,
    /// Latency of the operations that failed, in the same way.
    pub failed_latency: Option<Distribution>,
    /// Latency of single attempts, from their sending to their answer.
    pub attempt_latency: Option<Distribution>,
    /// Commits of other writers between the start of an operation and the end of an attempt of it: the mean over the
    /// attempts.
    pub behind_mean: Option<f64>,
    /// The largest of them.
    pub behind_max: u64,
    /// How evenly the writers got on.
    pub fairness: Fairness,
    /// What all operations used.
    pub spent: Spent,
    /// Of it, what attempts that failed used, and everything of operations that failed.
    pub wasted: Spent,
}

impl Concurrency {
    /// Attempts, by whatever end.
    pub fn tried(&self) -> Attempts {
        self.attempts.values().copied().sum()
    }

    /// Writers by goodput: in a closed loop the mean time of a writer per commit, failed operations included (Little's
    /// law), in seconds.
    pub fn time_per_commit_s(&self) -> Option<f64> {
        self.commits_per_s.filter(|goodput| *goodput > 0.0).map(|goodput| f64::from(self.window.writers) / goodput)
    }

    /// The same per attempt: writers × success ratio / goodput, in seconds.
    pub fn time_per_attempt_s(&self) -> Option<f64> {
        Some(self.time_per_commit_s()? * (1.0 - self.failed_attempt_rate?))
    }

    /// Wasted cost as a share of all, 0 to 1; none without prices.
    pub fn wasted_cost_share(&self) -> Option<f64> {
        (self.spent.usd > 0.0).then(|| self.wasted.usd / self.spent.usd)
    }

    /// Wasted requests as a share of all, 0 to 1.
    pub fn wasted_request_share(&self) -> Option<f64> {
        (self.spent.requests > 0).then(|| self.wasted.requests as f64 / self.spent.requests as f64)
    }

    /// Reads a cell's records; none if it has no measured time.
    pub fn read(folder: &RunFolder, cell: &str) -> Result<Option<Self>, RunError> {
        let Some(window) = folder.status(cell)?.and_then(|status| status.window) else { return Ok(None) };
        let prices = folder.manifest().cell(cell).and_then(|plan| Prices::read(folder.path(), &plan.store));
        let operations = folder.read_operations(cell)?;
        let attempts = folder.read_attempts(cell)?;
        let requests = folder.read_requests(cell)?;
        Self::from_records(window, prices.as_ref(), operations, attempts, requests).map(Some)
    }

    /// Summarizes records, stopping at the first that cannot be had. Held in memory are the operations of the measured
    /// time with the sizes of their attempts, never the requests.
    pub fn from_records<E>(
        window: Window,
        prices: Option<&Prices>,
        operations: impl IntoIterator<Item = Result<Operation, E>>,
        attempts: impl IntoIterator<Item = Result<Attempt, E>>,
        requests: impl IntoIterator<Item = Result<Request, E>>,
    ) -> Result<Self, E> {
        let mut cell = Self { window, ..Self::default() };
        let mut running = Running::default();
        for operation in operations {
            cell.take_operation(&operation?, &mut running);
        }
        for attempt in attempts {
            cell.take_attempt(&attempt?, &mut running);
        }
        for request in requests {
            cell.take_request(&request?, prices, &mut running);
        }
        cell.finish(&running);
        Ok(cell)
    }

    fn take_operation(&mut self, operation: &Operation, running: &mut Running) {
        use OperationKind::{Append, Compact, Delete, Overwrite};
        if operation.excluded || !matches!(operation.kind, Append | Overwrite | Delete | Compact) {
            return;
        }
        let is_ok = operation.outcome == Outcome::Ok;
        running
            .operations
            .insert((operation.writer, operation.operation), RunningOperation { is_ok, ..RunningOperation::default() });
        let end_us = operation.start_us + operation.latency_us;
        let latency_us = end_us.saturating_sub(operation.intended_us.unwrap_or(operation.start_us));
        if is_ok {
            self.commits += Operations(1);
            *self.commits_by_kind.entry(operation.kind).or_default() += Operations(1);
            running.commit_latency.add(latency_us);
            running.commit_ends_us.entry(operation.writer).or_default().push(end_us);
        } else {
            self.failed += Operations(1);
            *self.failed_by_class.entry(operation.outcome).or_default() += Operations(1);
            running.failed_latency.add(latency_us);
        }
    }

    fn take_attempt(&mut self, attempt: &Attempt, running: &mut Running) {
        let Some(operation) = running.operations.get_mut(&(attempt.writer, attempt.operation)) else { return };
        *self.attempts.entry(attempt.outcome).or_default() += Attempts(1);
        running.attempt_latency.add(attempt.latency_us);
        running.behind += attempt.behind;
        self.behind_max = self.behind_max.max(attempt.behind);
        operation.parts.push((attempt.requests, attempt.outcome == Outcome::Ok));
    }

    fn take_request(&mut self, request: &Request, prices: Option<&Prices>, running: &mut Running) {
        let Some(operation) = running.operations.get_mut(&(request.writer, request.operation)) else { return };
        self.spent.add(request, prices);
        // Requests stand in the order of their ends, in which the attempts counted them.
        let is_of_failed_attempt = operation.next_request_is_of_failed_attempt();
        if !operation.is_ok || is_of_failed_attempt {
            self.wasted.add(request, prices);
        }
    }

    fn finish(&mut self, running: &Running) {
        let seconds = self.window.seconds();
        self.commits_per_s = (seconds > 0.0).then(|| self.commits.0 as f64 / seconds);
        self.failed_operation_rate = self.failed.share_of(self.commits + self.failed);
        let tried = self.tried();
        let lost: Attempts = self.attempts.iter().filter(|(o, _)| **o != Outcome::Ok).map(|(_, count)| *count).sum();
        self.failed_attempt_rate = lost.share_of(tried);
        self.attempts_per_commit = (self.commits.0 > 0).then(|| tried.0 as f64 / self.commits.0 as f64);
        self.behind_mean = (tried.0 > 0).then(|| running.behind as f64 / tried.0 as f64);
        self.commit_latency = running.commit_latency.distribution();
        self.failed_latency = running.failed_latency.distribution();
        self.attempt_latency = running.attempt_latency.distribution();
        self.fairness = fairness(&self.window, &running.commit_ends_us);
    }
}

/// What is kept while records are read.
#[derive(Default)]
struct Running {
    operations: HashMap<(u32, u64), RunningOperation>,
    commit_ends_us: BTreeMap<u32, Vec<u64>>,
    commit_latency: Latencies,
    failed_latency: Latencies,
    attempt_latency: Latencies,
    behind: u64,
}

/// One operation while records are read.
#[derive(Default)]
struct RunningOperation {
    is_ok: bool,
    /// Requests of each attempt, and whether it succeeded.
    parts: Vec<(u32, bool)>,
    /// The attempt that the next request belongs to, and requests of it so far.
    part: usize,
    seen: u32,
}

impl RunningOperation {
    fn next_request_is_of_failed_attempt(&mut self) -> bool {
        while let Some((requests, is_ok)) = self.parts.get(self.part) {
            if self.seen < *requests {
                self.seen += 1;
                return !is_ok;
            }
            self.part += 1;
            self.seen = 0;
        }
        // What follows the last attempt is work after the commit.
        false
    }
}

fn fairness(window: &Window, commit_ends_us: &BTreeMap<u32, Vec<u64>>) -> Fairness {
    let mut fairness = Fairness::default();
    let (mut fewest, mut longest_us) = (u64::MAX, 0);
    for writer in 0..window.writers {
        // A writer's operations stand in the order of their ends.
        let ends_us = commit_ends_us.get(&writer).map(Vec::as_slice).unwrap_or_default();
        fewest = fewest.min(ends_us.len() as u64);
        fairness.commits_max = fairness.commits_max.max(ends_us.len() as u64);
        fairness.writers_without_commit += u32::from(ends_us.is_empty());
        let mut last_us = window.start_us;
        for end_us in ends_us.iter().chain([&window.end_us]) {
            longest_us = longest_us.max(end_us.saturating_sub(last_us));
            last_us = *end_us;
        }
    }
    fairness.commits_min = if window.writers == 0 { 0 } else { fewest };
    fairness.starvation_s_max = longest_us as f64 / 1e6;
    fairness
}

#[cfg(test)]
mod tests;
