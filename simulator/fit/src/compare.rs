//! The model beside what a cell measured.

use std::collections::BTreeMap;

use lakemark_results::concurrency::Concurrency;
use lakemark_results::manifest::CellPlan;
use lakemark_simulator::{Arrivals, Catalog, Cell, Law, Model, Protocol, ProtocolChoice, RetryChoice, Rules};

use crate::FitError;
use crate::retry;

/// Throughput and failures, of a cell or of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Commits a second.
    pub commits_per_s: f64,
    /// Attempts that lost, of all, 0 to 1.
    pub failed_attempt_rate: f64,
    /// Operations that were given up, of all, 0 to 1.
    pub failed_operation_rate: f64,
}

/// What the model is told of a cell beside the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// Time of a call of the catalog, in milliseconds.
    pub catalog_ms: f64,
    /// Reads of winners that run at a time.
    pub winners_parallelism: u32,
    /// Simulated time that is counted, in milliseconds, after a minute of warm-up.
    pub duration_ms: f64,
    /// Runs, whose means are taken.
    pub seeds: u32,
}

/// A cell of the concurrent-writers scenario and the model of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Writers.
    pub writers: u32,
    /// What the real library did.
    pub measured: Figures,
    /// What the model does, in the mean over its seeds.
    pub modelled: Figures,
}

/// The model's warm-up. Lance gives up after 30 s: by then what begins together no longer does.
const WARM_UP_MS: f64 = 60_000.0;

impl Comparison {
    /// Runs the model of a cell.
    ///
    /// # Errors
    /// If the cell measured nothing, or the model refuses it.
    pub fn new(
        plan: &CellPlan,
        settings: &BTreeMap<String, String>,
        measured: &Concurrency,
        protocol: &Protocol,
        model: &ModelSettings,
    ) -> Result<Self, FitError> {
        let writers = measured.window.writers;
        let Some(of_measured) = figures(measured) else {
            let reason = "no operation ended in its measured time".to_owned();
            return Err(FitError::Cell { cell: plan.id.clone(), reason });
        };
        let cell = Cell {
            duration_ms: WARM_UP_MS + model.duration_ms,
            warm_up_ms: WARM_UP_MS,
            drain: true,
            arrivals: Arrivals::ClosedLoop { clients: writers, think: Law::constant(0.0), pinned: false },
            runtime: Law::constant(0.0),
            provider: plan.store.clone(),
            catalog: Catalog::Service { latency_ms: model.catalog_ms },
            protocol: ProtocolChoice::Full(Box::new(protocol.clone())),
            retry: RetryChoice::Full(retry::policy(plan, settings)),
            rules: Rules { history_parallelism: model.winners_parallelism, ..Rules::profile() },
            ..Cell::default()
        };
        let prepared = Model::new(&cell)?;
        let mut sum = Figures::default();
        for seed in 1..=model.seeds {
            let result = prepared.run(u64::from(seed));
            let counts = &result.counts;
            // A real library's own comparison is counted as an attempt that lost.
            let lost = counts.failed_attempts() + counts.given_up_early;
            let tried = counts.attempts + counts.given_up_early;
            sum.commits_per_s += result.drain.as_ref().and_then(|drain| drain.all.throughput_per_s).unwrap_or(0.0);
            sum.failed_attempt_rate += lost as f64 / tried.max(1) as f64;
            sum.failed_operation_rate += counts.failed_operation_rate().unwrap_or(0.0);
        }
        let mean = |sum: f64| sum / f64::from(model.seeds.max(1));
        Ok(Self {
            writers,
            measured: of_measured,
            modelled: Figures {
                commits_per_s: mean(sum.commits_per_s),
                failed_attempt_rate: mean(sum.failed_attempt_rate),
                failed_operation_rate: mean(sum.failed_operation_rate),
            },
        })
    }
}

fn figures(measured: &Concurrency) -> Option<Figures> {
    Some(Figures {
        commits_per_s: measured.commits_per_s?,
        failed_attempt_rate: measured.failed_attempt_rate?,
        failed_operation_rate: measured.failed_operation_rate?,
    })
}
