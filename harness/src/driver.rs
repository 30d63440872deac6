//! The driver: runs each cell in a worker process and keeps what it says.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use lakemark_results::manifest::{CellState, CellStatus};
use lakemark_results::run::{CellWriter, RunFolder};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::{Semaphore, watch};

use crate::machine;
use crate::output;
use crate::plan::Cell;
use crate::progress::{CellProgress, Progress};
use crate::worker::{Order, PROTOCOL};

/// Cells that run side by side unless told otherwise: more would measure each other.
const JOBS_MAX: usize = 2;

/// Lines of a worker's standard error that are kept to explain its end.
const LAST_WORDS_MAX: usize = 5;

/// Runs cells, some side by side, into a run folder; gives the status of each that started.
///
/// A signal stops the workers; what they have said until then is kept.
///
/// # Errors
/// If the driver itself cannot go on: the folder cannot be written, or workers cannot be started at all.
pub(crate) fn run(folder: &RunFolder, cells: &[Cell], jobs: Option<u16>) -> Result<BTreeMap<String, CellStatus>> {
    let jobs = jobs.map_or_else(|| (machine::cpus() as usize).clamp(1, JOBS_MAX), usize::from);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        let signals = tokio::spawn(async move {
            if until_signal().await.is_ok() {
                // Without receivers every cell has ended already.
                let _ = stop.send(true);
            }
            // Keeps the sender: a closed channel would look like a signal.
            std::future::pending::<()>().await;
        });
        let places = Arc::new(Semaphore::new(jobs));
        let progress = Progress::new();
        let mut running = Vec::new();
        for cell in cells {
            let writer = WriterSource { folder, cell };
            running.push(one(writer, places.clone(), progress.clone(), stopped.clone()));
        }
        let ended = futures::future::join_all(running).await;
        signals.abort();
        let mut statuses = BTreeMap::new();
        for status in ended {
            if let Some(status) = status? {
                statuses.insert(status.cell.clone(), status);
            }
        }
        Ok(statuses)
    })
}

/// Waits for the signal of a terminal (Ctrl-C) or of whatever runs this (termination).
pub(crate) async fn until_signal() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// A cell and the folder that its records go to.
struct WriterSource<'a> {
    folder: &'a RunFolder,
    cell: &'a Cell,
}

/// Runs one cell once there is a place for it; none if it was stopped before.
async fn one(
    source: WriterSource<'_>,
    places: Arc<Semaphore>,
    progress: Progress,
    mut stopped: watch::Receiver<bool>,
) -> Result<Option<CellStatus>> {
    let place = tokio::select! {
        place = places.acquire() => place.context("no place for a worker")?,
        _ = stopped.wait_for(|stopped| *stopped) => return Ok(None),
    };
    let cell = source.cell;
    let mut records = source.folder.writer(&cell.plan.id)?;
    let bar = progress.cell(&cell.plan);
    let mut status = CellStatus::started(&cell.plan.id);
    let talked = talk(cell, &mut records, &mut status, &bar, &mut stopped).await;
    if *stopped.borrow() && !status.state.is_final() {
        status.state = CellState::Interrupted;
        status.reason = Some("stopped by a signal".to_owned());
    } else if let Err(error) = talked {
        status.state = CellState::Error;
        status.reason = Some(format!("{error:#}"));
    }
    records.finish(&status)?;
    drop(place);
    if let Some(reason) = &status.reason {
        output::complain(&format!("cell {}: {}: {reason}", status.cell, status.state.as_str()));
    }
    Ok(Some(status))
}

/// Starts a worker, sends it the cell, and takes its lines until it ends.
async fn talk(
    cell: &Cell,
    records: &mut CellWriter,
    status: &mut CellStatus,
    bar: &CellProgress,
    stopped: &mut watch::Receiver<bool>,
) -> Result<()> {
    let (program, mut worker) = start(cell)?;
    let order = Order {
        protocol: PROTOCOL,
        cell: cell.plan.clone(),
        profile: cell.profile.clone(),
        catalog: cell.catalog.clone(),
    };
    let mut text = serde_json::to_vec(&order)?;
    text.push(b'\n');
    if let Some(mut stdin) = worker.stdin.take() {
        // A worker that is gone already says why below.
        let _ = stdin.write_all(&text).await;
    }
    let stdout = worker.stdout.take().context("the worker has no standard output")?;
    let stderr = worker.stderr.take().context("the worker has no standard error")?;
    let (taken, last_words) = {
        let reading = async { tokio::join!(take_lines(stdout, records, status, bar), last_words(stderr)) };
        tokio::pin!(reading);
        tokio::select! {
            ended = &mut reading => ended,
            _ = stopped.wait_for(|stopped| *stopped) => {
                worker.start_kill().context("cannot stop the worker")?;
                // What it had said by then is still to be read.
                reading.await
            }
        }
    };
    if taken.is_err() {
        worker.kill().await.context("cannot stop the worker")?;
    }
    let ended = worker.wait().await.context("cannot wait for the worker")?;
    taken?;
    if !status.state.is_final() && status.state != CellState::Error {
        let last_words = if last_words.is_empty() { String::new() } else { format!(": {last_words}") };
        anyhow::bail!("the worker {} ended without a last line ({ended}){last_words}", program.display());
    }
    Ok(())
}

fn start(cell: &Cell) -> Result<(PathBuf, Child)> {
    let program = match &cell.plan.worker {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe().context("cannot find this program")?,
    };
    let mut command = Command::new(&program);
    // A group of its own: Ctrl-C on the terminal reaches the driver alone, which then stops its workers.
    #[cfg(unix)]
    command.process_group(0);
    let worker = command
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start the worker {}", program.display()))?;
    Ok((program, worker))
}

async fn take_lines(
    stdout: ChildStdout,
    records: &mut CellWriter,
    status: &mut CellStatus,
    bar: &CellProgress,
) -> Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, stdout).lines();
    while let Some(raw) = lines.next_line().await.context("cannot read from the worker")? {
        bar.line(&raw);
        if let Some(line) = records.line(&raw)? {
            status.absorb(line);
        }
        // An operation is the last line of what belongs together.
        if raw.starts_with("{\"type\":\"operation\"") {
            records.flush()?;
        }
    }
    Ok(())
}

/// The last lines of a worker's standard error, on one line.
async fn last_words(stderr: ChildStderr) -> String {
    let mut last = VecDeque::new();
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if last.len() == LAST_WORDS_MAX {
            last.pop_front();
        }
        last.push_back(line.trim().to_owned());
    }
    Vec::from(last).join(" | ")
}
