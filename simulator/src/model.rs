//! How is a cell run? A cell made ready, and its runs.

use crate::arrivals::Arrivals;
use crate::cell::{Cell, TableSelection};
use crate::error::CellError;
use crate::law::Law;
use crate::protocol::{Protocol, Publish, Scope};
use crate::provider::StoreLaws;
use crate::result::{CellResult, Ended};
use crate::retry::{Backoff, RetryPolicy};
use crate::rules::{History, Instant, RuntimeScale};

mod arrivals;
mod engine;
mod normal;
mod plan;
mod queue;
mod recorder;
mod sampler;
mod state;
mod streams;
mod transaction;
mod windows;

use plan::{Plan, Planner};
use sampler::Sampler;

/// A validated cell, made ready to run under any seed, on any thread.
#[derive(Clone, Debug)]
pub struct Model {
    cell: Cell,
    end_ns: u64,
    scope: Scope,
    /// Most requests of a batch, and half the round trip to the service; none without a service.
    batch: Option<(usize, f64)>,
    retry: RetryPolicy,
    /// Both conflicts are followed by the same wait, so that it needs no knowledge of which it was.
    same_backoff: bool,
    /// No failure is followed by a wait, and no budget ends a transaction.
    at_once: bool,
    /// Share of a round trip after which the shared state is touched.
    instant: f64,
    runtime: Sampler,
    /// Think time of the clients of a closed loop.
    think: Option<Sampler>,
    /// Cumulative shares of the tables; empty where all are alike.
    table_shares: Vec<f64>,
    /// Read of the catalog at submission; none where the first attempt refreshes.
    submission: Option<Sampler>,
    refresh_first: bool,
    refresh: Sampler,
    publish: Sampler,
    publish_ns_per_version: f64,
    publish_bytes: u64,
    /// Answer to a lost publish, if it has a law of its own.
    failed_publish: Option<Sampler>,
    /// A ValidatedOverwrite and a FastAppend need to know how many commits a refresh finds.
    counts_versions: [bool; 2],
    winners: Plan,
    winners_skip: u32,
    before_refresh: Plan,
    after_failed_refresh: Plan,
    /// Before and after the early check, if there is one: of the first attempt, after a catalog and after a table
    /// conflict.
    attempts: [(Plan, Plan); 3],
    early_check: bool,
    after_success: Plan,
    after_failure: Plan,
}

impl Model {
    /// Makes a cell ready.
    ///
    /// # Errors
    /// As [`Cell::validate`].
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        cell.validate()?;
        // What is in files is read once, here.
        let cell = &Cell { arrivals: cell.arrivals.resolved()?, ..cell.clone() };
        let protocol = cell.resolved_protocol()?;
        let retry = cell.resolved_retry()?;
        let planner = Planner::new(cell, StoreLaws::new(&cell.resolved_profile()?, &cell.laws));
        let rules = &cell.rules;
        let refresh_first = protocol.refresh_first_attempt || rules.refresh_before_first_attempt;
        let (publish, publish_ns_per_version, publish_bytes) = match &protocol.publish {
            Publish::CatalogSwap { bytes } | Publish::Batch { bytes, .. } => (planner.swap(*bytes), 0.0, *bytes),
            Publish::PutIfAbsent { bytes, bytes_per_version } => {
                let per_byte = planner.ns_per_byte(crate::protocol::Operation::PutIfAbsent);
                (planner.put_if_absent(*bytes), per_byte * bytes_per_version, *bytes)
            }
        };
        let batch = match &protocol.publish {
            Publish::Batch { batch_max, round_trip_ms, .. } => Some((*batch_max as usize, round_trip_ms * 5e5)),
            _ => None,
        };
        let transfer = rules.transfer;
        let failed_publish = planner
            .laws
            .failed_publish
            .as_ref()
            .map(|law| Sampler::operation(law, true, publish_bytes as f64, 0.0, transfer));
        let winners = protocol.winners.as_ref();
        let skip = winners.map_or(0, |winners| winners.skip);
        Ok(Self {
            end_ns: (cell.duration_ms * 1e6) as u64,
            scope: protocol.scope,
            batch,
            same_backoff: retry.after_catalog_conflict == retry.after_table_conflict,
            at_once: retry.budget_ms.is_none()
                && [&retry.after_catalog_conflict, &retry.after_table_conflict]
                    .iter()
                    .all(|wait| **wait == Backoff::Immediate),
            retry,
            instant: if rules.instant == Instant::Middle { 0.5 } else { 1.0 },
            runtime: runtime(cell),
            think: match &cell.arrivals {
                Arrivals::ClosedLoop { think, .. } => Some(Sampler::law(think)),
                _ => None,
            },
            table_shares: table_shares(cell),
            submission: (!protocol.refresh_first_attempt).then(|| planner.request(protocol.refresh, 0, 0.0)),
            refresh_first,
            refresh: planner.request(protocol.refresh, 0, 0.0),
            publish,
            publish_ns_per_version,
            publish_bytes,
            failed_publish,
            counts_versions: counts_versions(cell, &protocol),
            winners: planner.plan(winners.map_or(&[], |winners| &winners.steps)),
            winners_skip: if rules.history == History::SincePreviousAttemptAll { 0 } else { skip },
            before_refresh: planner.plan(&protocol.before_refresh),
            after_failed_refresh: match rules.extra_table_metadata_read {
                true => planner.plan(&protocol.after_failed_refresh),
                false => Plan::nothing(),
            },
            attempts: [&protocol.first, &protocol.after_catalog_conflict, &protocol.after_table_conflict].map(
                |steps| {
                    let check =
                        protocol.early_check_after.map_or(steps.len(), |after| (after as usize).min(steps.len()));
                    (planner.plan(&steps[..check]), planner.plan(&steps[check..]))
                },
            ),
            early_check: protocol.early_check_after.is_some(),
            after_success: planner.plan(&protocol.after_success),
            after_failure: planner.plan(&protocol.after_failure),
            cell: cell.clone(),
        })
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Runs the cell under a seed.
    pub fn run(&self, seed: u64) -> CellResult {
        self.run_with_margin(seed).0
    }

    /// Runs the cell under a seed, and tells of every transaction that the result counts, in the order in which they
    /// end. It takes twice the time of [`Model::run`].
    pub fn run_told(&self, seed: u64, told: &mut dyn FnMut(&Ended)) -> CellResult {
        // The first run finds the margin with which the second, which is the same, passes.
        let (result, margin) = self.run_with_margin(seed);
        engine::run(self, seed, margin, Some(told)).unwrap_or(result)
    }

    fn run_with_margin(&self, seed: u64) -> (CellResult, f64) {
        // The windows of two metrics depend on when the last commit was. Rows near a window's possible ends are kept
        // until that is known; where the guess of how near was too narrow, the run is repeated with a wider one.
        let mut margin = windows::first_margin(&self.cell);
        loop {
            match engine::run(self, seed, margin, None) {
                Some(result) => return (result, margin),
                None => margin *= 10.0,
            }
        }
    }
}

/// Runs a cell under a seed.
///
/// # Errors
/// As [`Cell::validate`].
pub fn simulate(cell: &Cell, seed: u64) -> Result<CellResult, CellError> {
    Ok(Model::new(cell)?.run(seed))
}

fn runtime(cell: &Cell) -> Sampler {
    match (&cell.runtime, cell.rules.runtime_scale) {
        (Law::LogNormal { median_ms, sigma, floor_ms }, RuntimeScale::Mean) => {
            // The mean of a log-normal is exp(sigma² / 2) medians.
            Sampler::law(&Law::log_normal(median_ms / (sigma * sigma / 2.0).exp(), *sigma, *floor_ms))
        }
        (law, _) => Sampler::law(law),
    }
}

/// Which of FastAppend and ValidatedOverwrite need the number of commits that a refresh finds.
fn counts_versions(cell: &Cell, protocol: &Protocol) -> [bool; 2] {
    let winners = protocol.winners.as_ref().filter(|winners| !winners.steps.is_empty());
    [winners.is_some_and(|winners| winners.fast_append), winners.is_some() || cell.real_conflict_probability > 0.0]
}

fn table_shares(cell: &Cell) -> Vec<f64> {
    let weights: Vec<f64> = match &cell.table_selection {
        TableSelection::Uniform => return Vec::new(),
        TableSelection::Zipf { exponent } => (1..=cell.tables).map(|rank| f64::from(rank).powf(-exponent)).collect(),
        TableSelection::Weights { weights } => weights.clone(),
    };
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut shares = weights.iter().map(|weight| {
        sum += weight;
        sum / total
    });
    shares.by_ref().collect()
}
