//! How does a sweep run? Cells and seeds on all threads, rows kept as they come.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use lakemark_core::clock::real_ns;
use lakemark_simulator::Model;

use crate::error::SweepError;
use crate::file::RowRead;
use crate::folder::{Shard, SweepFolder};
use crate::grid::{Grid, stride};
use crate::row::{self, Field};
use crate::transactions;

/// Rows of a part file. A crash loses at most these.
const PART_ROWS: usize = 1_000;

/// Longest time that a row waits to be kept, in seconds. A crash loses at most this.
const PART_S: u64 = 10;

/// How a sweep runs.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Threads.
    pub threads: usize,
    /// Set when the sweep is to stop: cells that run end first.
    pub stop: &'a AtomicBool,
    /// Keeps a row for each transaction too, in [`SweepFolder::transactions`].
    pub transactions: bool,
}

/// Number of runs that a shard of a grid has.
pub fn shard_runs(grid: &Grid, shard: Shard) -> u64 {
    if shard == Shard::WHOLE {
        return grid.runs();
    }
    // Exact where counting is quick.
    const COUNTED_MAX: u64 = 10_000_000;
    let cells = match grid.cells() {
        cells @ ..=COUNTED_MAX => (0..cells).filter(|cell| shard.has(*cell)).count() as u64,
        cells => cells / u64::from(shard.of),
    };
    cells * u64::from(grid.spec().seeds)
}

/// Runs what a folder's shard of a grid still lacks; gives the number of rows kept. `told` hears after each run.
///
/// The order of cells looks random, so that time left is known early and threads end together. Rows do not depend on it.
///
/// # Errors
/// If a cell is refused, or rows cannot be kept. Rows that came before are kept.
pub fn run(
    folder: &SweepFolder,
    grid: &Grid,
    done: &HashSet<(u64, u64)>,
    how: How<'_>,
    told: &mut dyn FnMut(),
) -> Result<u64, SweepError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(how.threads.max(1))
        .build()
        .map_err(|error| SweepError::Rows(format!("cannot start {} threads: {error}", how.threads)))?;
    let seeds = grid.spec().seeds.into();
    let next = Next { cells: grid.cells(), seeds, stride: stride(grid.cells()), taken: AtomicU64::new(0) };
    let failed = AtomicBool::new(false);
    // Bounded: workers wait when rows cannot be written as fast as they come.
    let (sender, receiver) = mpsc::sync_channel::<Result<RowRead, SweepError>>(PART_ROWS);
    let shard = folder.manifest().shard;
    let work = |sender: &mpsc::SyncSender<_>| {
        let mut worker = Worker::default();
        while let Some((cell, seed)) = next.take() {
            if how.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                break;
            }
            if !shard.has(cell) || done.contains(&(cell, seed)) {
                continue;
            }
            let row = worker.run(folder, grid, (cell, seed), how.transactions);
            let is_failed = row.is_err();
            if sender.send(row).is_err() || is_failed {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pool.broadcast(|_| work(&sender.clone()));
            // The receiver ends when the last sender is gone.
            drop(sender);
        });
        let kept = keep(folder, &receiver, told);
        // Where rows cannot be kept, or a cell failed, the others need not run.
        failed.store(kept.is_err(), Ordering::Relaxed);
        drop(receiver);
        kept
    })
}

/// Keeps rows as they come, in parts.
fn keep(
    folder: &SweepFolder,
    rows: &mpsc::Receiver<Result<RowRead, SweepError>>,
    told: &mut dyn FnMut(),
) -> Result<u64, SweepError> {
    let mut part = Vec::new();
    let mut kept = 0;
    let mut kept_ns = real_ns();
    let mut refused = None;
    loop {
        let received = rows.recv_timeout(Duration::from_secs(1));
        let is_over = match received {
            Ok(Ok(row)) => {
                part.push(row);
                told();
                false
            }
            Ok(Err(error)) => {
                refused = Some(error);
                true
            }
            Err(mpsc::RecvTimeoutError::Timeout) => false,
            Err(mpsc::RecvTimeoutError::Disconnected) => true,
        };
        let is_due = part.len() >= PART_ROWS || real_ns() - kept_ns > PART_S * 1_000_000_000;
        if !part.is_empty() && (is_over || is_due) {
            kept += part.len() as u64;
            folder.keep(std::mem::take(&mut part))?;
            kept_ns = real_ns();
        }
        if is_over {
            return refused.map_or(Ok(kept), Err);
        }
    }
}

/// Which run comes next: cell after cell, in an order that looks random, and of each all seeds.
struct Next {
    cells: u64,
    seeds: u64,
    stride: u64,
    taken: AtomicU64,
}

impl Next {
    /// Cell and seed of the next run; none after the last.
    fn take(&self) -> Option<(u64, u64)> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let (place, seed) = (taken / self.seeds, taken % self.seeds + 1);
        let cell = u128::from(place) * u128::from(self.stride) % u128::from(self.cells);
        (place < self.cells).then_some((cell as u64, seed))
    }
}

/// What a thread keeps between runs: the last cell, made ready.
#[derive(Default)]
struct Worker {
    ready: Option<(u64, Model, Vec<Field>)>,
}

impl Worker {
    fn run(
        &mut self,
        folder: &SweepFolder,
        grid: &Grid,
        (cell, seed): (u64, u64),
        transactions: bool,
    ) -> Result<RowRead, SweepError> {
        let (_, model, settings) = match self.ready.take().filter(|(index, ..)| *index == cell) {
            Some(ready) => self.ready.insert(ready),
            None => {
                let planned = grid.cell(cell)?;
                let refused = |reason| SweepError::Cell { origin: format!("cell {cell}"), reason };
                let model = Model::new(&planned.cell).map_err(refused)?;
                self.ready.insert((cell, model, row::settings(&planned).map_err(refused)?))
            }
        };
        let result = match transactions {
            true => transactions::keep(&folder.transactions(), model, cell, seed)?,
            false => model.run(seed),
        };
        Ok(RowRead::new(row::fields(settings, seed, &result)))
    }
}
