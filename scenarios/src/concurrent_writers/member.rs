//! One writer of many: what it does until time is up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use lakemark_core::clock;
use lakemark_core::table::{OperationError, OperationResult, Table};
use lakemark_core::writer::Writer;
use lakemark_results::record::Outcome;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::Shared;
use super::arrivals::Schedule;
use super::work::{Chooser, Work};
use crate::ScenarioError;
use crate::operation::{Measured, Planned, measure_planned};
use crate::random::{self, Purpose};

/// Operations of a writer that fail one after another for a reason that is not contention, before the cell is given up.
const FAILURES_IN_A_ROW_MAX: u32 = 10;

/// Operations of a writer that take no process time, one after another, before the cell is given up: on a store without
/// latency and with free computing, time would never be up.
const TIMELESS_IN_A_ROW_MAX: u32 = 100_000;

/// When the measured time begins and ends.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) start_ns: u64,
    end_ns: AtomicU64,
    /// Commits that end it; 0 for none.
    commits_max: u64,
    commits: AtomicU64,
    cpu_at_start_ns: OnceLock<u64>,
    cpu_at_end_ns: OnceLock<u64>,
}

impl Goal {
    pub(super) fn new(start_ns: u64, duration_ns: u64, commits_max: u64) -> Self {
        Self {
            start_ns,
            end_ns: AtomicU64::new(start_ns.saturating_add(duration_ns)),
            commits_max,
            commits: AtomicU64::new(0),
            cpu_at_start_ns: OnceLock::new(),
            cpu_at_end_ns: OnceLock::new(),
        }
    }

    pub(super) fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    pub(super) fn started(&self) {
        self.cpu_at_start_ns.get_or_init(clock::library_cpu_ns);
    }

    pub(super) fn ended(&self) {
        self.cpu_at_end_ns.get_or_init(clock::library_cpu_ns);
    }

    pub(super) fn library_cpu_ns(&self) -> u64 {
        let start_ns = self.cpu_at_start_ns.get().copied();
        self.cpu_at_end_ns.get().zip(start_ns).map_or(0, |(end_ns, start_ns)| end_ns.saturating_sub(start_ns))
    }

    /// Takes an operation that ended. Says whether it ended in the measured time; the commit that reaches the goal ends
    /// that time.
    fn take(&self, end_ns: u64, is_ok: bool) -> bool {
        if end_ns < self.start_ns || end_ns > self.end_ns() {
            return false;
        }
        if is_ok && self.commits.fetch_add(1, Ordering::Relaxed) + 1 == self.commits_max {
            self.end_ns.fetch_min(end_ns, Ordering::Relaxed);
            self.ended();
        }
        true
    }
}

/// One writer, with its handles.
pub(super) struct Member {
    shared: Arc<Shared>,
    writer: Arc<Writer>,
    tables: Vec<Handle>,
    schedule: Schedule,
    chooser: Chooser,
    backoff: ChaCha8Rng,
    /// Moment that the schedule counts from.
    begin_ns: u64,
}

/// A writer's handle of one table.
pub(super) struct Handle {
    pub(super) table: Box<dyn Table>,
    /// Version that it is at; none while that is not known.
    seen: Option<u64>,
    /// Whether its last operation failed.
    pub(super) is_stale: bool,
    /// Attempts of maintenance that the ledger knows of.
    maintenance: u64,
}

impl Handle {
    /// Brings it to the newest version.
    pub(super) async fn refresh(&mut self) -> OperationResult<()> {
        self.seen = Some(self.table.refresh().await?);
        self.is_stale = false;
        Ok(())
    }
}

impl Member {
    pub(super) fn new(
        shared: Arc<Shared>,
        writer: Arc<Writer>,
        tables: Vec<Box<dyn Table>>,
        schedule: Schedule,
        parameters: &BTreeMap<String, Value>,
        seed: u64,
        begin_ns: u64,
    ) -> Self {
        let id = writer.id();
        Self {
            shared,
            writer,
            tables: tables
                .into_iter()
                .map(|table| Handle { table, seen: Some(0), is_stale: false, maintenance: 0 })
                .collect(),
            schedule,
            chooser: Chooser::new(parameters, id, random::stream(seed, id, Purpose::Mix)),
            backoff: random::stream(seed, id, Purpose::Backoff),
            begin_ns,
        }
    }

    /// Works until time is up, and ends what it has begun.
    pub(super) async fn run(mut self) -> Result<(), ScenarioError> {
        let (mut failures, mut timeless) = (0, 0);
        while let Some(intended_ns) = self.until_due().await {
            let started_ns = clock::now_ns();
            let failure = self.operate(intended_ns).await;
            timeless = if clock::now_ns() > started_ns { 0 } else { timeless + 1 };
            failures = match &failure {
                Some(OperationError { outcome: Outcome::Error, .. }) => failures + 1,
                _ => 0,
            };
            let writer = self.writer.id();
            if let Some(source) = failure.filter(|_| failures == FAILURES_IN_A_ROW_MAX) {
                self.shared.is_stuck.store(true, Ordering::Relaxed);
                let what = format!("go on: writer {writer} failed {failures} times in a row, the last");
                return Err(ScenarioError::Operation { what, source });
            }
            if timeless == TIMELESS_IN_A_ROW_MAX {
                self.shared.is_stuck.store(true, Ordering::Relaxed);
                return Err(ScenarioError::Stuck(format!(
                    "no time passes: {timeless} operations of writer {writer} took none (give commits, or another store)"
                )));
            }
        }
        Ok(())
    }

    /// Waits until the next operation is due; none if that is after the end. The moment that it was due at, if there is a
    /// schedule.
    async fn until_due(&mut self) -> Option<Option<u64>> {
        let due_ns = self.schedule.next().map(|due| self.begin_ns.saturating_add(due));
        if let Some(due_ns) = due_ns.filter(|due_ns| *due_ns < self.shared.goal.end_ns()) {
            clock::sleep_until(due_ns).await;
        }
        let end_ns = self.shared.goal.end_ns();
        let is_late = clock::now_ns() >= end_ns;
        if let Some(due_ns) = due_ns
            && is_late
        {
            let later = self.schedule.by_ref().map(|due| self.begin_ns.saturating_add(due));
            let missed = std::iter::once(due_ns).chain(later).take_while(|due_ns| *due_ns < end_ns).count();
            self.shared.backlog.fetch_add(missed as u64, Ordering::Relaxed);
        }
        let is_over = is_late || due_ns.is_some_and(|due_ns| due_ns >= end_ns);
        (!is_over && !self.shared.is_stuck.load(Ordering::Relaxed)).then_some(due_ns)
    }

    /// Runs one operation and records it; gives its failure.
    async fn operate(&mut self, intended_ns: Option<u64>) -> Option<OperationError> {
        let (place, work) = clock::frozen(|| self.chooser.next());
        let handle = &mut self.tables[place];
        let planned = Planned {
            kind: work.kind(),
            table: u32::try_from(place).unwrap_or(u32::MAX),
            intended_ns,
            is_beside_others: true,
        };
        let run = self.shared.policy.run(handle, &work, &mut self.backoff);
        let measured = measure_planned(&self.writer, planned, |version| Some(*version), run).await;
        clock::frozen(|| self.take(place, work, measured))
    }

    /// Enters what an operation came to, and hands on its records.
    fn take(&mut self, place: usize, work: Work, mut measured: Measured<u64>) -> Option<OperationError> {
        let shared = self.shared.clone();
        let handle = &mut self.tables[place];
        let is_ok = measured.record.outcome == Outcome::Ok;
        measured.record.excluded = !shared.goal.take(measured.end_ns, is_ok);
        let effect = work.effect(handle.seen);
        let maintenance = handle.table.maintenance();
        let mut ledger = locked(&shared.ledgers[place]);
        ledger.add(effect, &measured.record, &measured.attempts);
        ledger.add_maintenance(maintenance.saturating_sub(handle.maintenance));
        drop(ledger);
        handle.maintenance = maintenance;
        locked(&shared.laws).add(&measured.record, &measured.requests, &measured.attempts);
        self.chooser.ended(place, work, is_ok);
        handle.is_stale = !is_ok;
        if is_ok {
            handle.seen = measured.record.version;
        }
        measured.emit(shared.sink.as_ref()).err()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic while it is held ends the cell: what is in it is never read.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
