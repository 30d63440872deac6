//! What is measured: the scenarios, which know no format, and the definitions of what to run.

pub mod audit;
mod beside;
pub mod concurrent_writers;
pub mod definition;
mod files;
mod laws;
pub mod metadata_load;
pub mod operation;
pub mod parameters;
mod random;
mod sample;
pub mod sequential_commit;
mod series;

use std::collections::BTreeMap;
use std::sync::Arc;

use lakemark_core::clock::Cpu;
use lakemark_core::store::Provider;
use lakemark_core::table::{Format, OperationError, Site, Unsupported};
use lakemark_core::writer::{Scope, Writer};
use lakemark_results::record::Line;
use serde_json::Value;

/// Takes a cell's lines, in order.
pub trait Sink: Send + Sync {
    /// Takes one line. What it costs is the harness' own work.
    fn emit(&self, line: &Line);
}

/// What a scenario runs on: one table of one format at one provider.
#[derive(Clone)]
pub struct Bench {
    /// The format.
    pub format: Arc<dyn Format>,
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// Resolved settings of the format.
    pub settings: BTreeMap<String, String>,
    /// Key prefix of the table, without slashes at its ends.
    pub table: String,
    /// How the table's keys are named in records; its writers' commits are counted there.
    pub scope: Arc<Scope>,
    /// Where the lines go.
    pub sink: Arc<dyn Sink>,
    /// Seed of what the scenario chooses: arrivals, mixes, backoffs.
    pub seed: u64,
    /// How much process time computing takes.
    pub cpu: Cpu,
}

impl Bench {
    /// A place for one more writer or reader, with a client and a log of its own.
    pub fn site(&self, writer: u32) -> Site {
        let writer = Writer::new(writer, self.scope.clone());
        let store = self.provider.clone().client(writer.clone());
        Site { writer, store, table: self.table.clone(), settings: self.settings.clone() }
    }
}

/// Why a scenario could not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A parameter has a value that is not allowed.
    #[error("{name} is {value}: allowed is {allowed}")]
    Parameter {
        /// Its name.
        name: String,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A parameter that the scenario does not have.
    #[error("{scenario} has no parameter {name}: it has {known}")]
    UnknownParameter {
        /// The scenario.
        scenario: &'static str,
        /// What was given.
        name: String,
        /// The names that it has.
        known: String,
    },
    /// A parameter asks for what the format's library does not offer.
    #[error("{name} has {what}, which {format} does not offer: {why}")]
    Unsupported {
        /// The parameter.
        name: &'static str,
        /// What it asks for.
        what: &'static str,
        /// The format.
        format: &'static str,
        /// Why, in the format's words.
        why: &'static str,
    },
    /// A setting of the format that the scenario sets itself.
    #[error("{setting} is set by {parameter}={value}: give one of them")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: String,
    },
    /// The cell cannot go on.
    #[error("{0}")]
    Stuck(String),
    /// An operation that everything else depends on failed.
    #[error("cannot {what}: {source}")]
    Operation {
        /// What was tried.
        what: String,
        /// What the library said.
        source: OperationError,
    },
}

/// What a scenario is, for `lakemark list`.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [parameters::Parameter],
}

/// All scenarios.
pub const SCENARIOS: [ScenarioInfo; 3] = [sequential_commit::INFO, metadata_load::INFO, concurrent_writers::INFO];

/// Names of all scenarios, with commas between them, for messages that say what is allowed.
pub fn known_names() -> String {
    SCENARIOS.map(|scenario| scenario.name).join(", ")
}

/// The scenario of a name.
pub fn find(name: &str) -> Option<ScenarioInfo> {
    SCENARIOS.into_iter().find(|scenario| scenario.name == name)
}

/// Settings of the format that a scenario's parameters stand for.
///
/// # Errors
/// If one of them was given as well.
pub fn settings(
    scenario: &str,
    parameters: &BTreeMap<String, Value>,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ScenarioError> {
    match scenario {
        "concurrent-writers" => concurrent_writers::settings(parameters, given),
        _ => Ok(BTreeMap::new()),
    }
}

/// Refuses parameters that ask for what a format's library does not offer.
///
/// # Errors
/// With the format's reason.
pub fn refuse_unsupported(
    scenario: &str,
    parameters: &BTreeMap<String, Value>,
    format: &'static str,
    unsupported: &'static [Unsupported],
) -> Result<(), ScenarioError> {
    match scenario {
        "concurrent-writers" => concurrent_writers::refuse_unsupported(parameters, format, unsupported),
        _ => Ok(()),
    }
}
