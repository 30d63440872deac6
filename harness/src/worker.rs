//! The worker: runs one cell in a process of its own. The protocol is in `docs/PROTOCOL.md`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Stdout, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, anyhow, bail};
use lakemark_core::clock::{self, Cpu, Mode};
use lakemark_core::store::{Inspect, Provider};
use lakemark_core::writer::Scope;
use lakemark_results::manifest::CellPlan;
use lakemark_results::record::{Failure, Hello, Line, Usage};
use lakemark_scenarios::{Bench, Sink, concurrent_writers, metadata_load, sequential_commit};
use lakemark_stores::Emulated;
use lakemark_stores::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::{machine, output, registry};

/// Version of the protocol between the driver and its workers.
pub(crate) const PROTOCOL: u32 = 1;

/// Where tables lie in the emulated bucket. As long as a real prefix with a date and a run's name, and the same for
/// every format, since paths are part of metadata.
const TABLE: &str = "lakemark/bench/2026-01-01/table";

/// Threads of the runtime that the formats run on, where they have several CPUs. Their own come on top.
const RUNTIME_THREADS: usize = 2;

/// What the driver sends a worker: one line of JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Order {
    /// Version of the protocol.
    pub(crate) protocol: u32,
    /// The cell.
    pub(crate) cell: CellPlan,
    /// Profile of its store.
    pub(crate) profile: Profile,
    /// Its catalog, a password included.
    pub(crate) catalog: String,
    /// Which of the CPUs that the worker may use it keeps to, if to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_place: Option<usize>,
}

/// Lines to standard output. What it costs is the harness' own work; a reader that is gone ends the process.
struct Output(Mutex<BufWriter<Stdout>>);

impl Sink for Output {
    fn emit(&self, line: &Line) {
        let write = || -> io::Result<()> {
            // A panic while the lock is held cannot leave half a line in the buffer: lines are written whole.
            let mut out = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            out.write_all(&text)?;
            // Requests and attempts go out with their operation.
            if matches!(line, Line::Request(_) | Line::Attempt(_)) { Ok(()) } else { out.flush() }
        };
        if clock::frozen(write).is_err() {
            std::process::exit(1);
        }
    }
}

/// Runs the cell on standard input.
pub(crate) fn main() -> ExitCode {
    let sink = Arc::new(Output(Mutex::new(BufWriter::new(io::stdout()))));
    match run(&sink) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let reason = format!("{error:#}").lines().collect::<Vec<_>>().join(" ");
            output::complain(&reason);
            sink.emit(&Line::Error(Failure { reason }));
            ExitCode::FAILURE
        }
    }
}

fn run(sink: &Arc<Output>) -> Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the cell from standard input")?;
    let order: Order = serde_json::from_str(&line).context("standard input is not a cell")?;
    if order.protocol != PROTOCOL {
        bail!("the driver speaks protocol {}, this worker {PROTOCOL}", order.protocol);
    }
    let cell = &order.cell;
    let mode: Mode = cell.clock.parse().map_err(|reason: String| anyhow!(reason))?;
    let cpu: Cpu = cell.cpu.parse().map_err(|reason: String| anyhow!(reason))?;
    let one_cpu = order.cpu_place.is_some_and(clock::keep_to_cpu);
    let format = registry::make(&cell.format, &order.catalog, &cell.id)?;
    let mut given = cell.settings.clone();
    given.extend(lakemark_scenarios::settings(&cell.scenario, &cell.parameters, &given)?);
    let settings = registry::settings(&cell.format, &given)?;
    // Embedded SQLite computes inside this process. Any other catalog may wait for another process, be it for a lock on
    // a file.
    let catalog_outside = order.catalog != "sqlite";
    let switched = clock::switch_on(mode, cpu, catalog_outside).context("cannot start the clock")?;
    let provider = Emulated::new(order.profile.clone(), cell.seed);
    sink.emit(&Line::Hello(Hello {
        protocol: PROTOCOL,
        format: cell.format.clone(),
        library: format.info().library,
        clock: switched.mode.to_string(),
        clock_note: switched.note.map(str::to_owned),
        one_cpu,
        settings: settings.clone(),
        unsupported: format.info().unsupported.iter().map(|u| (u.what.to_owned(), u.why.to_owned())).collect(),
    }));
    let bench = Bench {
        format: format.clone(),
        provider: provider.clone() as Arc<dyn Provider>,
        settings,
        table: TABLE.to_owned(),
        scope: Scope::of_table(format.clone(), TABLE),
        sink: sink.clone() as Arc<dyn Sink>,
        seed: cell.seed,
        cpu,
    };
    // On one CPU a second thread would only have to be woken and waited for.
    let threads = if one_cpu { 1 } else { RUNTIME_THREADS };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    clock::start_records();
    let (start_ns, start_real_ns) = (clock::now_ns(), clock::real_ns());
    let (name, parameters) = (cell.scenario.clone(), cell.parameters.clone());
    let cleaner = format.clone();
    // As a task, it runs on the thread that waits for events, and not beside it: nobody needs to be woken for it.
    let ran = runtime.spawn(async move {
        let ran = scenario(&bench, &name, &parameters).await;
        // Whatever became of the scenario, nothing is left behind in a database that outlives the cell.
        let cleaned = cleaner.clean(&bench.site(u32::MAX)).await;
        ran?;
        cleaned.context("cannot clean up the catalog")
    });
    runtime.block_on(ran).context("the scenario panicked")??;
    let cpu = clock::cpu_time();
    clock::skipped();
    sink.emit(&Line::Done(Usage {
        real_s: seconds(clock::real_ns() - start_real_ns),
        process_s: seconds(clock::now_ns() - start_ns),
        cpu_s: cpu.process_s,
        clock_cpu_s: cpu.clock_s,
        store_cpu_s: cpu.frozen_s,
        peak_memory_bytes: machine::peak_memory_bytes(),
        store_logical_bytes: provider.logical_bytes(),
        store_held_bytes: provider.held_bytes(),
        catalog: format.catalog_description(),
    }));
    // The libraries' background threads are not waited for: the cell is over.
    runtime.shutdown_background();
    Ok(())
}

async fn scenario(bench: &Bench, name: &str, parameters: &BTreeMap<String, serde_json::Value>) -> Result<()> {
    match name {
        "sequential-commit" => Ok(sequential_commit::run(bench, parameters).await?),
        "metadata-load" => Ok(metadata_load::run(bench, parameters).await?),
        "concurrent-writers" => Ok(concurrent_writers::run(bench, parameters).await?),
        _ => bail!("scenario {name:?} is not known"),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
