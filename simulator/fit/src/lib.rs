//! What does a real library do for a commit, as a protocol of the contention simulator? Protocols read off the recorded
//! requests of a cell, and the model beside what the cell measured.
//!
//! [`Trace`] is a cell's commits with their requests. [`fit`] finds what its attempts have in common and yields a
//! [`Protocol`](lakemark_simulator::Protocol). [`Comparison`] runs that protocol, or any other, on the cell's profile
//! with as many clients. `docs/SIMULATOR.md` says what a fit sees and what it does not.

mod attempt;
mod compare;
mod line;
mod retry;
mod shape;
mod trace;

pub use compare::{Comparison, Figures, ModelSettings};
pub use trace::Trace;

use lakemark_results::run::RunError;
use lakemark_simulator::{CellError, Operation, Protocol, Publish, Scope, Step, Winners};

use attempt::{Phase, attempts};
use line::Line;

/// Why a cell cannot be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// Its records cannot be read.
    #[error(transparent)]
    Records(#[from] RunError),
    /// It has no commits to learn from.
    #[error("cell {cell}: {reason}")]
    Cell {
        /// The cell.
        cell: String,
        /// What is missing, or what the model has no words for.
        reason: String,
    },
    /// The model refuses the cell.
    #[error(transparent)]
    Model(#[from] CellError),
}

/// A protocol read off a cell's records.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The protocol.
    pub protocol: Protocol,
    /// Time of one call of the catalog, in milliseconds; none where the store decides.
    pub catalog_ms: Option<f64>,
    /// Reads of winners that run at a time, in the mean.
    pub winners_parallelism: f64,
    /// How well each phase is described.
    pub phases: Vec<PhaseFit>,
}

/// How well the steps of a phase describe what was recorded of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFit {
    /// Field of the protocol that it became.
    pub phase: &'static str,
    /// How often it was recorded.
    pub recorded: usize,
    /// Share of those that are exactly its steps, 0 to 1. The others are left out: checkpoints, retries of the client.
    pub alike: f64,
}

/// Reads a protocol off a trace. `name` and `about` become the protocol's.
///
/// # Errors
/// If the trace has no commit.
pub fn fit(trace: &Trace, name: &str, about: &str) -> Result<Fit, FitError> {
    let attempts = attempts(trace);
    let first: Vec<&Phase> = attempts.iter().filter(|phase| phase.is_first).collect();
    let retries: Vec<&Phase> = attempts.iter().filter(|phase| !phase.is_first).collect();
    if !attempts.iter().any(|phase| phase.is_won) {
        return Err(FitError::Cell { cell: trace.cell.clone(), reason: "it has no commit to learn from".to_owned() });
    }
    let refresh = if trace.is_catalog { Operation::CatalogRead } else { Operation::List };
    let mut phases = Vec::new();
    let mut note = |phase, shape: &shape::Shape| {
        if shape.recorded > 0 {
            phases.push(PhaseFit { phase, recorded: shape.recorded, alike: shape.alike });
        }
    };

    let winners = shape::winners(&retries);
    let body = |phases: &[&Phase]| {
        // An attempt that its client gave up early has a part of the steps only.
        let whole = phases.iter().filter(|phase| phase.is_won || !trace.is_catalog);
        shape::common(whole.map(|phase| (phase.version, winners.without(phase))))
    };
    let (first_body, again_body) = (body(&first), body(&retries));
    note("first", &first_body);
    note("after_table_conflict", &again_body);
    // Where all first attempts lost, or none did, the others stand in.
    let (mut first_steps, after_conflict) = match (first_body.recorded, again_body.recorded) {
        (0, _) => (again_body.steps.clone(), again_body.steps),
        (_, 0) => (first_body.steps.clone(), first_body.steps),
        _ => (first_body.steps, again_body.steps),
    };
    let lead = |phases: &[&Phase]| shape::common(phases.iter().map(|phase| (phase.version, phase.before.clone())));
    let (lead_first, lead_again) = (lead(&first), lead(&retries));
    let after_success = shape::common(trace.after_success().map(|(version, requests)| (version, requests.to_vec())));
    note("after_success", &after_success);

    // What precedes every snapshot belongs to the refresh; what precedes that of a retry only is the price of losing.
    let same_lead = !lead_first.steps.is_empty() && lead_first.objects() == lead_again.objects();
    let (before_refresh, after_failure) = match same_lead || retries.is_empty() {
        true => (lead_first.steps.clone(), Vec::new()),
        false => {
            first_steps.splice(0..0, lead_first.steps.clone());
            (Vec::new(), lead_again.steps.clone())
        }
    };
    let publish = match trace.is_catalog {
        true => Publish::CatalogSwap { bytes: 0 },
        false => {
            let bodies: Vec<(f64, f64)> = attempts
                .iter()
                .filter_map(|phase| Some((phase.version, phase.publish.as_ref()?.bytes as f64)))
                .collect();
            let line = Line::through(&bodies);
            Publish::PutIfAbsent { bytes: line.at_zero.round() as u64, bytes_per_version: line.slope }
        }
    };
    let refresh_first_attempt = trace.is_catalog || shape::share(&first, |phase| phase.snapshot_us.is_some()) > 0.5;
    Ok(Fit {
        protocol: Protocol {
            name: name.to_owned(),
            about: about.to_owned(),
            scope: Scope::Table,
            publish,
            refresh,
            refresh_first_attempt,
            before_refresh,
            after_failed_refresh: Vec::new(),
            winners: (!winners.steps.is_empty()).then(|| Winners {
                steps: winners.steps.clone(),
                skip: winners.skip,
                fast_append: true,
            }),
            early_check_after: early_check(&attempts, after_conflict.len()),
            first: first_steps,
            after_catalog_conflict: Vec::new(),
            after_table_conflict: after_conflict,
            after_success: after_success.steps,
            after_failure,
        },
        catalog_ms: trace.catalog_call_ms(),
        winners_parallelism: winners.parallelism,
        phases,
    })
}

/// Steps after which most lost attempts end, where they end before all are done.
fn early_check(attempts: &[Phase], steps: usize) -> Option<u32> {
    let lost: Vec<usize> = attempts
        .iter()
        .filter(|phase| !phase.is_won && phase.publish.is_none())
        .map(|phase| phase.after.len())
        .collect();
    let early: Vec<usize> = lost.iter().copied().filter(|count| *count < steps).collect();
    // One in ten: fewer are requests that failed.
    if early.is_empty() || early.len() * 10 < lost.len() {
        return None;
    }
    let most = (0..steps).max_by_key(|length| early.iter().filter(|count| *count == length).count())?;
    u32::try_from(most).ok()
}

/// A step of a protocol, with what it moves as a line over the table's version.
fn step(operation: Operation, object: &str, times: u32, bytes: Line, keys: Line) -> Step {
    Step {
        operation,
        object: object.to_owned(),
        times,
        bytes: bytes.at_zero.max(0.0).round() as u64,
        bytes_per_version: bytes.slope,
        keys_per_version: keys.slope,
        work_ms: 0.0,
    }
}

#[cfg(test)]
mod tests;
