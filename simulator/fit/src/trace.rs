//! The commits of one cell, with their attempts and requests.

use std::collections::HashMap;
use std::sync::Arc;

use lakemark_results::record::{Attempt, Layer, Method, Operation, OperationKind, Outcome, Request};
use lakemark_results::run::RunFolder;

use crate::FitError;

/// One request, without its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) start_us: u64,
    pub(crate) end_us: u64,
    pub(crate) method: Method,
    /// Kind of object.
    pub(crate) class: Arc<str>,
    /// Of the body, whichever way it went.
    pub(crate) bytes: u64,
    /// Keys of a listing.
    pub(crate) keys: Option<u32>,
}

/// One try to publish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Try {
    pub(crate) start_us: u64,
    pub(crate) end_us: u64,
    pub(crate) is_won: bool,
}

/// One commit, with everything that it sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Commit {
    pub(crate) start_us: u64,
    pub(crate) is_measured: bool,
    pub(crate) catalog_us: u64,
    /// In the order of their starts.
    pub(crate) tries: Vec<Try>,
    /// In the order of their starts.
    pub(crate) requests: Vec<Sent>,
}

/// The commits of one cell: appends to one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub(crate) cell: String,
    /// A catalog decides which attempt wins, and not a conditional put.
    pub(crate) is_catalog: bool,
    pub(crate) commits: Vec<Commit>,
    /// When each version was published, in order.
    pub(crate) published_us: Vec<u64>,
}

impl Trace {
    /// Reads the commits of a cell.
    ///
    /// # Errors
    /// If its records cannot be read, or hold something else than appends to one table.
    pub fn read(folder: &RunFolder, cell: &str) -> Result<Self, FitError> {
        Self::from_records(
            cell,
            folder.read_operations(cell)?,
            folder.read_attempts(cell)?,
            folder.read_requests(cell)?,
        )
    }

    /// The same from records, in the order in which they were written.
    ///
    /// # Errors
    /// As [`Trace::read`], or with the first record that cannot be had.
    pub fn from_records<E: Into<FitError>>(
        cell: &str,
        operations: impl IntoIterator<Item = Result<Operation, E>>,
        attempts: impl IntoIterator<Item = Result<Attempt, E>>,
        requests: impl IntoIterator<Item = Result<Request, E>>,
    ) -> Result<Self, FitError> {
        let fail = |reason: String| FitError::Cell { cell: cell.to_owned(), reason };
        let mut trace = Self { cell: cell.to_owned(), ..Self::default() };
        let mut places: HashMap<(u32, u64), usize> = HashMap::new();
        for operation in operations {
            let operation = operation.map_err(Into::into)?;
            match operation.kind {
                OperationKind::Append if operation.table == 0 => {}
                OperationKind::Append => return Err(fail("it has several tables, and a fit is of one".to_owned())),
                OperationKind::Overwrite | OperationKind::Delete | OperationKind::Compact => {
                    return Err(fail("it mixes operations, and a fit is of appends".to_owned()));
                }
                _ => continue,
            }
            places.insert((operation.writer, operation.operation), trace.commits.len());
            trace.commits.push(Commit {
                start_us: operation.start_us,
                is_measured: !operation.excluded,
                catalog_us: operation.catalog_us,
                ..Commit::default()
            });
        }
        for attempt in attempts {
            let attempt = attempt.map_err(Into::into)?;
            let Some(&place) = places.get(&(attempt.writer, attempt.operation)) else { continue };
            trace.is_catalog = attempt.layer == Layer::Catalog;
            trace.commits[place].tries.push(Try {
                start_us: attempt.start_us,
                end_us: attempt.start_us + attempt.latency_us,
                is_won: attempt.outcome == Outcome::Ok,
            });
        }
        let mut classes: HashMap<String, Arc<str>> = HashMap::new();
        for request in requests {
            let request = request.map_err(Into::into)?;
            let Some(&place) = places.get(&(request.writer, request.operation)) else { continue };
            let class = classes.entry(request.class).or_insert_with_key(|class| class.as_str().into()).clone();
            trace.commits[place].requests.push(Sent {
                start_us: request.start_us,
                end_us: request.start_us + request.latency_us,
                method: request.method,
                class,
                bytes: request.read_bytes + request.written_bytes,
                keys: request.keys,
            });
        }
        for commit in &mut trace.commits {
            commit.tries.sort_by_key(|attempt| attempt.start_us);
            commit.requests.sort_by_key(|request| request.start_us);
        }
        trace.published_us = trace.publications();
        Ok(trace)
    }

    /// When versions were published: a conditional put has its effect in the middle of its round trip, a catalog's swap is
    /// the last thing in its call.
    fn publications(&self) -> Vec<u64> {
        let won = self.commits.iter().flat_map(|commit| &commit.tries).filter(|attempt| attempt.is_won);
        let mut published_us: Vec<u64> =
            won.map(|won| if self.is_catalog { won.end_us } else { won.start_us.midpoint(won.end_us) }).collect();
        published_us.sort_unstable();
        published_us
    }

    /// Versions that there were at a time.
    pub(crate) fn version_at(&self, us: u64) -> usize {
        self.published_us.partition_point(|published_us| *published_us <= us)
    }

    /// What each measured commit sent after it was published, with the version then.
    pub(crate) fn after_success(&self) -> impl Iterator<Item = (f64, &[Sent])> {
        self.commits.iter().filter(|commit| commit.is_measured).filter_map(|commit| {
            let end_us = commit.tries.last().filter(|last| last.is_won)?.end_us;
            let after = commit.requests.partition_point(|request| request.start_us < end_us);
            Some((self.version_at(end_us) as f64, &commit.requests[after..]))
        })
    }

    /// Mean time of a call of the catalog: an attempt reads it and swaps it.
    pub(crate) fn catalog_call_ms(&self) -> Option<f64> {
        let measured = || self.commits.iter().filter(|commit| commit.is_measured && self.is_catalog);
        let calls: usize = measured().map(|commit| 2 * commit.tries.len()).sum();
        let us: u64 = measured().map(|commit| commit.catalog_us).sum();
        (calls > 0).then(|| us as f64 / 1e3 / calls as f64)
    }
}
