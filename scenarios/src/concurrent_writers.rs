//! Concurrent writers: N writers, each as a process of its own would be, commit to the same tables.

mod arrivals;
mod member;
mod retry;
mod work;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use lakemark_core::clock::{self, Cpu};
use lakemark_core::table::{Site, Table, Unsupported};
use lakemark_core::writer::{Scope, Writer};
use lakemark_results::record::{Audit, Line, OperationKind, Window};
use serde_json::Value;

use crate::audit::{self, Ledger};
use crate::files;
use crate::laws::{self, Laws};
use crate::operation::{Planned, measure_planned};
use crate::parameters::{self, Kind, Parameter};
use crate::{Bench, ScenarioError, ScenarioInfo, sample};
use arrivals::Arrivals;
use member::{Goal, Member};
use retry::Policy;

/// What the scenario is.
pub const INFO: ScenarioInfo = ScenarioInfo {
    name: "concurrent-writers",
    about: "many writers at the same tables: commits a second, lost attempts and failed operations, latency, fairness",
    parameters: &[
        Parameter {
            name: "writers",
            default: "10",
            kind: Kind::Count { min: 1, max: 4_096 },
            help: "writers, each with a handle and a client of its own",
        },
        Parameter {
            name: "duration-s",
            default: "60",
            kind: Kind::Number { min: 0.001, max: 1e6 },
            help: "measured time, in seconds of process time",
        },
        Parameter {
            name: "commits",
            default: "0",
            kind: Kind::Count { min: 0, max: 1 << 32 },
            help: "commits after which the measured time ends, if it has not ended before; 0 is no such end",
        },
        Parameter {
            name: "warm-up-s",
            default: "10",
            kind: Kind::Number { min: 0.0, max: 1e6 },
            help: "time before the measured time; what ends in it is recorded and in no figure",
        },
        Parameter {
            name: "arrivals",
            default: "closed",
            kind: Kind::Choice(&["closed", "poisson", "constant", "bursts"]),
            help: "closed: a writer starts again at once; otherwise by a schedule, and late ones wait for their writer",
        },
        Parameter {
            name: "rate-per-s",
            default: "1",
            kind: Kind::Number { min: 1e-6, max: 1e6 },
            help: "operations due in a second at each table, shared out over the writers, unless arrivals are closed",
        },
        Parameter {
            name: "burst-size",
            default: "10",
            kind: Kind::Count { min: 1, max: 1_000_000 },
            help: "operations of a burst",
        },
        Parameter {
            name: "retry",
            default: "library",
            kind: Kind::Choice(&["library", "none", "common"]),
            help: "after a lost commit: as the library does; not at all; by one backoff for every format, the library's off",
        },
        Parameter {
            name: "retry-base-ms",
            default: "50",
            kind: Kind::Number { min: 0.0, max: 1e6 },
            help: "longest wait after the first lost try; it doubles, and the wait is drawn between 0 and it",
        },
        Parameter {
            name: "retry-max-ms",
            default: "5000",
            kind: Kind::Number { min: 0.0, max: 1e9 },
            help: "where the doubling ends",
        },
        Parameter {
            name: "retry-attempts",
            default: "20",
            kind: Kind::Count { min: 1, max: 1_000_000 },
            help: "tries in all, of retry=common",
        },
        Parameter {
            name: "mix",
            default: "append",
            kind: Kind::Mix(&work::KINDS),
            help: "operations and their weights: append=90,overwrite=5,delete=5",
        },
        Parameter {
            name: "tables",
            default: "1",
            kind: Kind::Count { min: 1, max: 4_096 },
            help: "tables in one catalog; each operation is on one of them, all alike",
        },
        files::FILES,
        files::ROWS,
        files::FILE_BYTES,
    ],
};

/// Number of the first reader. Writers count from 0, so that readers never share a random stream with one.
const FIRST_READER: u32 = 1 << 16;

/// The setting that turns a library's own retries off, by the same name in every format.
const MAX_RETRIES: &str = "max-retries";

/// Settings of the format that the parameters stand for.
///
/// # Errors
/// If one of them was given as well.
pub fn settings(
    parameters: &BTreeMap<String, Value>,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ScenarioError> {
    let retry = parameters::word(parameters, "retry");
    if retry == "library" {
        return Ok(BTreeMap::new());
    }
    if given.contains_key(MAX_RETRIES) {
        return Err(ScenarioError::Setting { setting: MAX_RETRIES, parameter: "retry", value: retry.to_owned() });
    }
    Ok(BTreeMap::from([(MAX_RETRIES.to_owned(), "0".to_owned())]))
}

/// Refuses a mix that a format's library cannot make.
///
/// # Errors
/// With the format's reason.
pub fn refuse_unsupported(
    parameters: &BTreeMap<String, Value>,
    format: &'static str,
    unsupported: &'static [Unsupported],
) -> Result<(), ScenarioError> {
    let mix = parameters::mix(parameters, "mix");
    match unsupported.iter().find(|unsupported| mix.iter().any(|(name, _)| name == unsupported.what)) {
        Some(Unsupported { what, why }) => Err(ScenarioError::Unsupported { name: "mix", what, format, why }),
        None => Ok(()),
    }
}

/// What the writers of a cell share.
struct Shared {
    sink: Arc<dyn crate::Sink>,
    goal: Goal,
    policy: Policy,
    ledgers: Vec<Mutex<Ledger>>,
    laws: Mutex<Laws>,
    /// Operations that were due by the end and had not started.
    backlog: AtomicU64,
    /// Whether a writer gave up, and all others are to stop.
    is_stuck: AtomicBool,
}

/// Runs the scenario with resolved parameters.
///
/// # Errors
/// If a table cannot be created, opened or read back, or a writer's operations fail in a way that is not contention.
pub async fn run(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Result<(), ScenarioError> {
    let writers = u32::try_from(parameters::count(parameters, "writers")).unwrap_or(u32::MAX);
    let places = Places::new(bench, parameters::count(parameters, "tables"));
    places.create().await?;
    let arrivals = Arrivals::new(parameters);
    let mut open = Vec::new();
    for writer in 0..writers {
        open.push(places.open(writer).await?);
    }

    let second_ns = |name: &str| (parameters::number(parameters, name) * 1e9) as u64;
    let start_ns = clock::now_ns();
    let goal =
        Goal::new(start_ns + second_ns("warm-up-s"), second_ns("duration-s"), parameters::count(parameters, "commits"));
    let shared = Arc::new(Shared {
        sink: bench.sink.clone(),
        goal,
        policy: Policy::new(parameters),
        ledgers: places.tables.iter().map(|_| Mutex::default()).collect(),
        laws: Mutex::default(),
        backlog: AtomicU64::new(0),
        is_stuck: AtomicBool::new(false),
    });
    let watch = tokio::spawn(watch_cpu(shared.clone()));
    let members = open.into_iter().zip(0..).map(|((log, tables), writer)| {
        let schedule = arrivals.of_writer(writer, writers, bench.seed);
        let member = Member::new(shared.clone(), log, tables, schedule, parameters, bench.seed, start_ns);
        tokio::spawn(member.run())
    });
    let ended = join_all(members.collect::<Vec<_>>()).await;
    watch.abort();
    for member in ended {
        member.map_err(|panic| ScenarioError::Stuck(format!("a writer ended early: {panic}")))??;
    }

    let window = clock::frozen(|| window(bench, &shared, writers));
    bench.sink.emit(&Line::Window(window));
    let mut audits = Vec::new();
    for (table, ledger) in shared.ledgers.iter().enumerate() {
        let ledger = clock::frozen(|| std::mem::take(&mut *ledger.lock().unwrap_or_else(|held| held.into_inner())));
        audits.push(places.audit(table, &ledger).await?);
    }
    clock::frozen(|| {
        let mut audit = audit::merged(audits);
        let laws = shared.laws.lock().unwrap_or_else(|held| held.into_inner());
        audit.checks.extend(laws.checks(&window, arrivals.is_closed()));
        audit.notes.extend(laws.notes(&window, arrivals.is_closed(), places.tables.len() as u64));
        audit.notes.extend(laws::saturation_note(&window));
        bench.sink.emit(&Line::Audit(audit));
    });
    Ok(())
}

/// Notes the CPU time at the beginning and the end of the measured time.
async fn watch_cpu(shared: Arc<Shared>) {
    clock::sleep_until(shared.goal.start_ns).await;
    shared.goal.started();
    clock::sleep_until(shared.goal.end_ns()).await;
    shared.goal.ended();
}

fn window(bench: &Bench, shared: &Shared, writers: u32) -> Window {
    shared.goal.ended();
    let used_s = shared.goal.library_cpu_ns() as f64 / 1e9;
    let mut window = Window {
        start_us: clock::since_start_us(shared.goal.start_ns),
        end_us: clock::since_start_us(shared.goal.end_ns()),
        writers,
        library_cpu_s: used_s,
        cpus: u32::try_from(clock::parallelism()).unwrap_or(u32::MAX),
        cpu_saturation: None,
        backlog: shared.backlog.load(std::sync::atomic::Ordering::Relaxed),
    };
    if bench.cpu == Cpu::Measured && window.seconds() > 0.0 {
        window.cpu_saturation = Some(used_s / (window.seconds() * f64::from(window.cpus)));
    }
    window
}

/// Where the tables are, and who may go there.
struct Places<'a> {
    bench: &'a Bench,
    tables: Vec<String>,
    scope: Arc<Scope>,
}

impl<'a> Places<'a> {
    fn new(bench: &'a Bench, tables: u64) -> Self {
        if tables == 1 {
            return Self { bench, tables: vec![bench.table.clone()], scope: bench.scope.clone() };
        }
        let tables: Vec<String> = (0..tables).map(|table| format!("{}-{table:04}", bench.table)).collect();
        let scope = Scope::of_tables(bench.format.clone(), &tables);
        Self { bench, tables, scope }
    }

    /// One client for all tables, as a process has.
    fn sites(&self, id: u32) -> Vec<Site> {
        let writer = Writer::new(id, self.scope.clone());
        let store = self.bench.provider.clone().client(writer.clone());
        let site = |table: &String| Site {
            writer: writer.clone(),
            store: store.clone(),
            table: table.clone(),
            settings: self.bench.settings.clone(),
        };
        self.tables.iter().map(site).collect()
    }

    async fn create(&self) -> Result<(), ScenarioError> {
        for (table, site) in (0..).zip(self.sites(FIRST_READER - 1)) {
            let run = self.bench.format.create(&site);
            let created = measure_planned(&site.writer, before(OperationKind::Create, table), |()| None, run).await;
            sample::finish(self.bench, "create the table", created)?;
        }
        Ok(())
    }

    /// Opens every table for a writer.
    async fn open(&self, writer: u32) -> Result<(Arc<Writer>, Vec<Box<dyn Table>>), ScenarioError> {
        let sites = self.sites(writer);
        let mut tables = Vec::new();
        for (table, site) in (0..).zip(&sites) {
            let run = self.bench.format.open(site);
            let opened = measure_planned(&site.writer, before(OperationKind::Open, table), |_| None, run).await;
            tables.push(sample::finish(self.bench, "open the table", opened)?);
        }
        // There is at least one table.
        Ok((sites[0].writer.clone(), tables))
    }

    /// Reads a table back with a new handle and compares it with what its writers were told.
    async fn audit(&self, table: usize, ledger: &Ledger) -> Result<Audit, ScenarioError> {
        let number = u32::try_from(table).unwrap_or(u32::MAX);
        let site = &self.sites(FIRST_READER + number)[table];
        let run = async {
            let mut table = self.bench.format.open(site).await?;
            let files = table.files().await?;
            Ok((files, table.commits().await?))
        };
        let planned = before(OperationKind::Audit, number);
        let read = measure_planned(&site.writer, planned, |(files, _)| Some(files.version), run).await;
        let (files, commits) = sample::finish(self.bench, "read the table back for the audit", read)?;
        Ok(clock::frozen(|| ledger.audit(&files, &commits)))
    }
}

/// An operation before or after the measured time, on its own.
fn before(kind: OperationKind, table: u32) -> Planned {
    Planned { kind, table, intended_ns: None, is_beside_others: false }
}
