//! A small format and stores that break their promises, to show what the audit sees.

// Each test binary uses a part of this.
#![allow(dead_code, clippy::expect_used, clippy::unwrap_used, unreachable_pub, missing_docs)]

pub mod broken;
pub mod log_format;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lakemark_core::clock::{self, Cpu, Mode};
use lakemark_core::store::Provider;
use lakemark_core::table::Format;
use lakemark_core::writer::Scope;
use lakemark_results::record::{Attempt, Audit, Line, Operation, Window};
use lakemark_scenarios::{Bench, Sink, concurrent_writers, parameters};
use lakemark_stores::Emulated;
use lakemark_stores::profile::Profile;
use serde_json::Value;

const TABLE: &str = "bench/table";

/// Keeps what a cell says.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Line>>);

impl Sink for Kept {
    fn emit(&self, line: &Line) {
        self.0.lock().expect("no test panics here").push(line.clone());
    }
}

/// What a cell said.
pub struct Said {
    pub operations: Vec<Operation>,
    pub attempts: Vec<Attempt>,
    pub window: Window,
    pub audit: Audit,
}

impl Said {
    pub fn failed_checks(&self) -> Vec<&str> {
        self.audit.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect()
    }
}

pub fn profile(name: &str) -> Arc<Emulated> {
    Emulated::new(Profile::builtin(name).expect("a profile"), 7)
}

/// Runs the scenario on a format and a provider, on a clock of some mode.
pub fn run(
    (mode, cpu): (Mode, Cpu),
    format: Arc<dyn Format>,
    provider: Arc<dyn Provider>,
    given: &[(&str, &str)],
) -> Said {
    clock::switch_on(mode, cpu, false).expect("a clock");
    let given: BTreeMap<String, Value> =
        given.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let parameters = parameters::resolve(&concurrent_writers::INFO, &given).expect("parameters");
    let mut settings: BTreeMap<String, String> =
        format.info().settings.iter().map(|setting| (setting.name.to_owned(), setting.default.to_owned())).collect();
    settings.extend(concurrent_writers::settings(&parameters, &BTreeMap::new()).expect("settings"));
    let sink = Arc::new(Kept::default());
    let bench = Bench {
        scope: Scope::of_table(format.clone(), TABLE),
        format,
        provider,
        settings,
        table: TABLE.to_owned(),
        sink: sink.clone(),
        seed: 7,
        cpu,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(concurrent_writers::run(&bench, &parameters)).expect("a cell that runs to its end");
    let (mut operations, mut attempts, mut window, mut audit) = (Vec::new(), Vec::new(), None, None);
    for line in std::mem::take(&mut *sink.0.lock().expect("no test panics here")) {
        match line {
            Line::Operation(operation) => operations.push(operation),
            Line::Attempt(attempt) => attempts.push(attempt),
            Line::Window(found) => window = Some(found),
            Line::Audit(found) => audit = Some(found),
            _ => {}
        }
    }
    Said { operations, attempts, window: window.expect("a measured time"), audit: audit.expect("an audit") }
}
