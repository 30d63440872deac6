//! What a cell's records come to: commits, attempts, latency and where it went, requests, bytes, metadata.
//!
//! Only appends count in the figures of commits. A request or an attempt of any other operation (creating the table, a
//! cold open, the audit) is left out, so that every such figure is of the same operations; so is an append outside the
//! measured time, where there is one (such cells have more figures in [`crate::concurrency`]). Loads are summed up apart.

use std::collections::{BTreeMap, HashSet};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::loads::{Collector, LoadSummary};
use crate::record::{Attempt, MetadataSample, Method, Operation, OperationKind, Outcome, Request};
use crate::run::{RunError, RunFolder, Stream};
use crate::statistics::{LatencySummary, mean, ms};

/// Number of operations: what a caller asked for.
///
/// Operations and attempts are counted at different layers and cannot be added:
///
/// ```compile_fail
/// use lakemark_results::summary::{Attempts, Operations};
/// let _ = Operations(1) + Attempts(1);
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Operations(pub u64);

/// Number of attempts: tries at the publish primitive, below the libraries' retries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Attempts(pub u64);

macro_rules! count {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                counts.fold(Self(0), Add::add)
            }
        }

        impl $name {
            /// This count as a share of a whole, 0 to 1; none of nothing.
            pub fn share_of(self, whole: Self) -> Option<f64> {
                (whole.0 > 0).then(|| self.0 as f64 / whole.0 as f64)
            }
        }
    };
}
count!(Operations);
count!(Attempts);

/// Where the time of a commit went, in means. The parts may overlap (CPU used while a request waits), and CPU is real
/// time whatever the clock, so they need not add up to the latency.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct LatencySplit {
    /// With at least one request at the store: emulated wait, on an emulated store.
    pub wait_ms: f64,
    /// Waiting for the catalog.
    pub catalog_ms: f64,
    /// CPU of the process, the harness' own excluded.
    pub cpu_ms: f64,
}

impl LatencySplit {
    fn of(commits: &[Commit]) -> Option<Self> {
        let part = |pick: fn(&Commit) -> u64| mean(&commits.iter().map(|c| ms(pick(c))).collect::<Vec<_>>());
        Some(Self { wait_ms: part(|c| c.wait_us)?, catalog_ms: part(|c| c.catalog_us)?, cpu_ms: part(|c| c.cpu_us)? })
    }
}

/// Requests of one method on one kind of object, for each commit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RequestMean {
    /// Verb.
    pub method: Method,
    /// Kind of object.
    pub class: String,
    /// Requests for each commit.
    pub requests_per_commit: f64,
    /// Bytes of bodies received for each commit.
    pub read_bytes_per_commit: f64,
    /// Bytes of bodies sent for each commit.
    pub written_bytes_per_commit: f64,
    /// Mean latency of one such request.
    pub latency_mean_ms: f64,
}

/// What a cell's records come to.
///
/// Figures *per commit* divide what all appends used, failed ones included, by the commits that succeeded: the price
/// of a commit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CellSummary {
    /// Appends that succeeded.
    pub appends_ok: Operations,
    /// Appends that returned an error after their library gave up.
    pub appends_failed: Operations,
    /// Failed appends as a share of all, 0 to 1.
    pub failed_operation_rate: Option<f64>,
    /// Attempts by how they ended.
    pub attempts: BTreeMap<Outcome, Attempts>,
    /// Attempts that did not succeed as a share of all, 0 to 1.
    pub failed_attempt_rate: Option<f64>,
    /// Latency of the appends that succeeded, in the order in which they ended.
    pub latency: Option<LatencySummary>,
    /// The same of latency and CPU time of each append together: what a commit takes, computing at this machine's
    /// speed, where process time stood still while it computed (`cpu` is `free`). Under any other mode the latency
    /// holds the computing already. CPU time of threads that ran beside a wait counts twice, as wait and as CPU; so
    /// does that used within the wait for a catalog outside the process.
    pub latency_with_cpu: Option<LatencySummary>,
    /// Where the time of these went.
    pub split: Option<LatencySplit>,
    /// The same of the last 100.
    pub last100_split: Option<LatencySplit>,
    /// Requests, by method and kind of object.
    pub requests: Vec<RequestMean>,
    /// Bytes received from the store for each commit.
    pub read_bytes_per_commit: Option<f64>,
    /// Bytes sent to the store for each commit.
    pub written_bytes_per_commit: Option<f64>,
    /// Size of the metadata over the versions.
    pub metadata: Vec<MetadataSample>,
    /// Loads, by kind and version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadSummary>,
    /// Files whose last line a crash tore apart. That line is in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<String>,
}

/// What the summary keeps of an append that succeeded.
struct Commit {
    latency_us: u64,
    wait_us: u64,
    catalog_us: u64,
    cpu_us: u64,
}

#[derive(Default)]
struct RequestTotal {
    requests: u64,
    read_bytes: u64,
    written_bytes: u64,
    latency_us: u64,
}

impl CellSummary {
    /// Summarizes a cell from its folder.
    pub fn read(folder: &RunFolder, cell: &str) -> Result<Self, RunError> {
        let mut operations = folder.read_operations(cell)?;
        let mut requests = folder.read_requests(cell)?;
        let mut attempts = folder.read_attempts(cell)?;
        let mut metadata = folder.read_metadata(cell)?;
        let mut summary = Self::from_records(&mut operations, &mut requests, &mut attempts, &mut metadata)?;
        let torn = [operations.torn(), requests.torn(), attempts.torn(), metadata.torn()];
        let files = Stream::ALL.into_iter().zip(torn).filter(|(_, torn)| torn.is_some());
        summary.torn = files.map(|(stream, _)| stream.file_name().to_owned()).collect();
        Ok(summary)
    }

    /// Summarizes records, stopping at the first that cannot be had.
    pub fn from_records<E>(
        operations: impl IntoIterator<Item = Result<Operation, E>>,
        requests: impl IntoIterator<Item = Result<Request, E>>,
        attempts: impl IntoIterator<Item = Result<Attempt, E>>,
        metadata: impl IntoIterator<Item = Result<MetadataSample, E>>,
    ) -> Result<Self, E> {
        let mut appends = HashSet::new();
        let mut commits = Vec::new();
        let mut failed = Operations(0);
        let mut loads = Collector::default();
        let (mut read_bytes, mut written_bytes) = (0, 0);
        for operation in operations {
            let operation = operation?;
            loads.operation(&operation);
            if operation.kind != OperationKind::Append || operation.excluded {
                continue;
            }
            appends.insert((operation.writer, operation.operation));
            read_bytes += operation.read_bytes;
            written_bytes += operation.written_bytes;
            if operation.outcome == Outcome::Ok {
                let Operation { latency_us, wait_us, catalog_us, cpu_us, .. } = operation;
                commits.push(Commit { latency_us, wait_us, catalog_us, cpu_us });
            } else {
                failed += Operations(1);
            }
        }

        let mut by_outcome = BTreeMap::<Outcome, Attempts>::new();
        for attempt in attempts {
            let attempt = attempt?;
            if appends.contains(&(attempt.writer, attempt.operation)) {
                *by_outcome.entry(attempt.outcome).or_default() += Attempts(1);
            }
        }
        let tried: Attempts = by_outcome.values().copied().sum();
        let lost: Attempts = by_outcome.iter().filter(|(o, _)| **o != Outcome::Ok).map(|(_, count)| *count).sum();

        let ok = Operations(commits.len() as u64);
        let per_commit = |total: u64| (ok.0 > 0).then(|| total as f64 / ok.0 as f64);
        let requests = requests.into_iter().inspect(|request| {
            if let Ok(request) = request {
                loads.request(request);
            }
        });
        let requests = request_means(requests, &appends, ok)?;
        let last100 = commits.len().checked_sub(100).map(|start| &commits[start..]);
        Ok(Self {
            appends_ok: ok,
            appends_failed: failed,
            failed_operation_rate: failed.share_of(ok + failed),
            attempts: by_outcome,
            failed_attempt_rate: lost.share_of(tried),
            latency: latency(&commits, |commit| commit.latency_us),
            latency_with_cpu: latency(&commits, |commit| commit.latency_us + commit.cpu_us),
            split: LatencySplit::of(&commits),
            last100_split: last100.and_then(LatencySplit::of),
            requests,
            read_bytes_per_commit: per_commit(read_bytes),
            written_bytes_per_commit: per_commit(written_bytes),
            metadata: metadata.into_iter().collect::<Result<_, E>>()?,
            loads: loads.finish(),
            torn: Vec::new(),
        })
    }
}

fn latency(commits: &[Commit], pick_us: fn(&Commit) -> u64) -> Option<LatencySummary> {
    LatencySummary::of(&commits.iter().map(pick_us).collect::<Vec<_>>())
}

/// Empty if no append succeeded: there is no commit to divide by.
fn request_means<E>(
    requests: impl IntoIterator<Item = Result<Request, E>>,
    appends: &HashSet<(u32, u64)>,
    commits: Operations,
) -> Result<Vec<RequestMean>, E> {
    let mut totals = BTreeMap::<(Method, String), RequestTotal>::new();
    for request in requests {
        let request = request?;
        if appends.contains(&(request.writer, request.operation)) {
            let total = totals.entry((request.method, request.class)).or_default();
            total.requests += 1;
            total.read_bytes += request.read_bytes;
            total.written_bytes += request.written_bytes;
            total.latency_us += request.latency_us;
        }
    }
    if commits.0 == 0 {
        return Ok(Vec::new());
    }
    let per_commit = |total: u64| total as f64 / commits.0 as f64;
    let means = totals.into_iter().map(|((method, class), total)| RequestMean {
        method,
        class,
        requests_per_commit: per_commit(total.requests),
        read_bytes_per_commit: per_commit(total.read_bytes),
        written_bytes_per_commit: per_commit(total.written_bytes),
        latency_mean_ms: ms(total.latency_us) / total.requests as f64,
    });
    Ok(means.collect())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::record::Layer;

    fn operation(number: u64, kind: OperationKind, outcome: Outcome) -> Result<Operation, Infallible> {
        let mut operation: Operation = serde_json::from_str(crate::run::tests::OPERATION).unwrap();
        (operation.operation, operation.kind, operation.outcome) = (number, kind, outcome);
        Ok(operation)
    }

    fn attempt(operation: u64, outcome: Outcome) -> Result<Attempt, Infallible> {
        let layer = Layer::Store;
        Ok(Attempt {
            writer: 0,
            operation,
            attempt: 0,
            layer,
            start_us: 0,
            latency_us: 1_000,
            outcome,
            behind: 0,
            requests: 1,
            read_bytes: 0,
            written_bytes: 0,
        })
    }

    fn request(operation: u64, method: Method, class: &str) -> Result<Request, Infallible> {
        Ok(Request {
            writer: 0,
            operation,
            request: 0,
            method,
            key: "k".into(),
            class: class.into(),
            start_us: 0,
            latency_us: 2_000,
            read_bytes: 5,
            written_bytes: 7,
            keys: None,
            status: 200,
            outcome: Outcome::Ok,
        })
    }

    fn sample() -> CellSummary {
        use OperationKind::{Append, Create};
        use Outcome::{Conflict, Ok, Throttled, Unknown};
        let operations = [
            operation(0, Create, Ok),
            operation(1, Append, Ok),
            operation(2, Append, Ok),
            operation(3, Append, Ok),
            operation(4, Append, Conflict),
        ];
        let attempts = [
            attempt(0, Ok),
            attempt(1, Ok),
            attempt(2, Conflict),
            attempt(2, Throttled),
            attempt(2, Ok),
            attempt(3, Unknown),
            attempt(3, Ok),
            attempt(4, Conflict),
        ];
        let requests = [
            request(0, Method::Put, "manifest"),
            request(1, Method::Put, "manifest"),
            request(2, Method::Put, "manifest"),
            request(4, Method::Put, "manifest"),
            request(2, Method::List, "log"),
        ];
        let Result::Ok(summary) = CellSummary::from_records(operations, requests, attempts, []);
        summary
    }

    #[test]
    fn rates_keep_the_layers_apart_and_leave_out_other_operations() {
        let summary = sample();
        assert_eq!((summary.appends_ok, summary.appends_failed), (Operations(3), Operations(1)));
        assert_eq!(summary.failed_operation_rate, Some(0.25));
        assert_eq!(summary.attempts[&Outcome::Ok], Attempts(3));
        assert_eq!(summary.attempts[&Outcome::Conflict], Attempts(2));
        assert_eq!(summary.attempts.values().copied().sum::<Attempts>(), Attempts(7));
        assert_eq!(summary.failed_attempt_rate, Some(4.0 / 7.0));
    }

    #[test]
    fn requests_and_bytes_are_the_price_of_a_commit() {
        let summary = sample();
        let rows: Vec<_> =
            summary.requests.iter().map(|row| (row.method, row.class.as_str(), row.requests_per_commit)).collect();
        assert_eq!(rows, [(Method::Put, "manifest", 1.0), (Method::List, "log", 1.0 / 3.0)]);
        assert_eq!(summary.requests[0].latency_mean_ms, 2.0);
        assert_eq!(summary.requests[0].written_bytes_per_commit, 7.0);
        assert_eq!(summary.read_bytes_per_commit, Some(40.0 / 3.0));
        let split = summary.split.unwrap();
        assert_eq!((split.wait_ms, split.catalog_ms, split.cpu_ms), (139.0, 0.0, 0.9));
        assert_eq!(summary.last100_split, None);
    }

    #[test]
    fn cpu_time_is_added_commit_by_commit() {
        // Latency and CPU time rise and fall against each other: the sum has no spread, though each part has.
        let appends = (0..200).map(|number| {
            let Ok(mut append) = operation(number, OperationKind::Append, Outcome::Ok);
            (append.latency_us, append.cpu_us) = if number % 3 == 0 { (40_000, 2_000) } else { (37_000, 5_000) };
            Ok::<_, Infallible>(append)
        });
        let Ok(summary) = CellSummary::from_records(appends, [], [], []);
        let (alone, sum) = (summary.latency.unwrap(), summary.latency_with_cpu.unwrap());
        assert_eq!((sum.count, sum.mean_ms, sum.last100_mean_ms), (200, 42.0, Some(42.0)));
        assert_eq!((sum.mean_half_width_ms, sum.last100_half_width_ms), (Some(0.0), Some(0.0)));
        assert!(alone.mean_ms < 39.0 && alone.mean_half_width_ms > Some(0.0));
    }

    #[test]
    fn a_cell_without_a_commit_has_no_figures() {
        let operations = [operation(1, OperationKind::Append, Outcome::Error)];
        let Ok(summary) = CellSummary::from_records(operations, [request(1, Method::Put, "log")], [], []);
        assert_eq!(summary.failed_operation_rate, Some(1.0));
        assert_eq!((summary.failed_attempt_rate, summary.latency, summary.split), (None, None, None));
        assert_eq!(summary.latency_with_cpu, None);
        assert_eq!((summary.read_bytes_per_commit, summary.requests), (None, vec![]));
    }

    #[test]
    fn json_round_trip() {
        let summary = sample();
        let text = serde_json::to_string(&summary).unwrap();
        assert!(text.contains(r#""attempts":{"ok":3,"conflict":2,"throttled":1,"unknown":1}"#), "{text}");
        assert_eq!(serde_json::from_str::<CellSummary>(&text).unwrap(), summary);
    }
}
