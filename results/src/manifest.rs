//! What a run set out to do, and how each of its cells ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Audit, Hello, Line, Usage, Window};

/// Version of the run folder's schema, in `run.json`. It changes when a reader of the previous one would misread.
pub const SCHEMA: u32 = 1;

/// A run: what made it, where it ran, and the cells that it plans. Kept in `run.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Manifest {
    /// Version of the schema: [`SCHEMA`].
    pub schema: u32,
    /// Name of the run and of its folder.
    pub run: String,
    /// When it was created: RFC 3339, UTC.
    pub created: String,
    /// Command line that made it, program included.
    pub command: Vec<String>,
    /// Seed that the cells' seeds derive from.
    pub seed: u64,
    /// Version of the tool.
    pub tool_version: String,
    /// Commit that the tool was built from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Versions of the format libraries built in, by crate.
    pub libraries: BTreeMap<String, String>,
    /// Model of the CPU, as the system names it.
    pub cpu_model: String,
    /// CPUs that the run could use.
    pub cpus: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Kernel, with its version.
    pub kernel: String,
    /// Operating system, with its version.
    pub os: String,
    /// Hash of every emulated store's profile, by name.
    pub profiles: BTreeMap<String, String>,
    /// The cells, in the order in which they were planned.
    pub cells: Vec<CellPlan>,
}

impl Manifest {
    /// The plan of a cell.
    pub fn cell(&self, id: &str) -> Option<&CellPlan> {
        self.cells.iter().find(|cell| cell.id == id)
    }
}

/// One cell: a format, a catalog and a store under one scenario with its parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CellPlan {
    /// Name of the cell and of its folder.
    pub id: String,
    /// Format, as `lakemark list` names it.
    pub format: String,
    /// Catalog: `none`, a kind (`sqlite`, `postgres`, …), or a URL without credentials.
    pub catalog: String,
    /// Store: the name of an emulated profile, or the URL of a real one.
    pub store: String,
    /// Scenario.
    pub scenario: String,
    /// Parameters of the scenario, defaults included.
    pub parameters: BTreeMap<String, Value>,
    /// Settings of the format that were asked for; [`Hello::settings`] has those that applied.
    pub settings: BTreeMap<String, String>,
    /// Seed of the cell.
    pub seed: u64,
    /// Clock asked for: `skip` or `real`.
    pub clock: String,
    /// How CPU time passes: `measured`, `free` or `scale=F`.
    pub cpu: String,
    /// Worker built elsewhere, as it was named on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

impl CellPlan {
    /// Whether the store is emulated. Printed next to every figure.
    pub fn is_emulated(&self) -> bool {
        !self.store.contains("://")
    }

    /// Provider of the store, in the words of the profiles: the profile's own name, or what a URL's scheme tells.
    /// An S3 URL with an endpoint of its own cannot be told from AWS and counts as `s3`.
    pub fn provider(&self) -> &str {
        let Some((scheme, rest)) = self.store.split_once("://") else { return &self.store };
        let bucket = rest.split('/').next().unwrap_or(rest);
        match scheme {
            // https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html
            "s3" | "s3a" if bucket.ends_with("--x-s3") => "s3-express",
            "s3" | "s3a" => "s3",
            "gs" => "gcs",
            "az" | "azure" | "adl" | "abfs" | "abfss" => "azure",
            other => other,
        }
    }
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// It ran to its end and passed its audit.
    Ok,
    /// It ran to its end and failed its audit: its figures must not be used.
    Invalid,
    /// It could not run to its end.
    Error,
    /// It was stopped, or its worker went away.
    Interrupted,
}

impl CellState {
    /// Whether the cell ran to its end, so that `resume` leaves it alone.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Ok | Self::Invalid)
    }

    /// The state in a word, as `cell.json` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Invalid => "invalid",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The status row of a cell. Kept in `cell.json`, which is absent while the cell is pending.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CellStatus {
    /// The cell.
    pub cell: String,
    /// How it ended.
    pub state: CellState,
    /// Why, if it is not `ok`: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the worker said it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hello: Option<Hello>,
    /// Its measured time, if operations ended when time was up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The verdict on the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What the cell used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl CellStatus {
    /// The status of a cell whose worker has said nothing yet. Unless a last line arrives, that is how it ended.
    pub fn started(cell: &str) -> Self {
        Self {
            cell: cell.to_owned(),
            state: CellState::Interrupted,
            reason: Some("stopped before the worker's last line".to_owned()),
            hello: None,
            window: None,
            audit: None,
            usage: None,
        }
    }

    /// Takes in a line that speaks of the cell as a whole; records of operations, requests and the like are ignored.
    pub fn absorb(&mut self, line: Line) {
        match line {
            Line::Hello(hello) => self.hello = Some(hello),
            Line::Window(window) => self.window = Some(window),
            Line::Audit(audit) => self.audit = Some(audit),
            Line::Done(usage) => {
                self.usage = Some(usage);
                (self.state, self.reason) = verdict(self.audit.as_ref());
            }
            Line::Error(failure) => {
                self.state = CellState::Error;
                self.reason = Some(failure.reason);
            }
            Line::Operation(_) | Line::Request(_) | Line::Attempt(_) | Line::Metadata(_) => {}
        }
    }

    /// Whether the figures of the cell were checked and hold.
    pub fn is_verified(&self) -> bool {
        self.state == CellState::Ok && self.audit.as_ref().is_some_and(Audit::is_valid)
    }
}

fn verdict(audit: Option<&Audit>) -> (CellState, Option<String>) {
    match audit {
        Some(audit) if audit.is_valid() => (CellState::Ok, None),
        Some(audit) => {
            let failed: Vec<&str> =
                audit.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
            let failed = if failed.is_empty() { "it checked nothing".to_owned() } else { failed.join(", ") };
            (CellState::Invalid, Some(format!("audit failed: {failed}")))
        }
        None => (CellState::Invalid, Some("the worker sent no audit".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Check, Failure};

    fn audit(passed: bool) -> Line {
        Line::Audit(Audit {
            checks: vec![Check { name: "commits".into(), passed, detail: "3 = 3".into() }],
            notes: Vec::new(),
        })
    }

    #[test]
    fn a_cell_is_ok_only_with_a_passed_audit_and_a_last_line() {
        let mut status = CellStatus::started("c");
        status.absorb(audit(true));
        assert_eq!(status.state, CellState::Interrupted);
        assert!(!status.is_verified());
        status.absorb(Line::Done(Usage::default()));
        assert_eq!((status.state, status.reason.as_deref()), (CellState::Ok, None));
        assert!(status.is_verified());
    }

    #[test]
    fn failed_missing_and_empty_audits_are_invalid() {
        for (line, reason) in [
            (Some(audit(false)), "audit failed: commits"),
            (Some(Line::Audit(Audit::default())), "audit failed: it checked nothing"),
            (None, "the worker sent no audit"),
        ] {
            let mut status = CellStatus::started("c");
            if let Some(line) = line {
                status.absorb(line);
            }
            status.absorb(Line::Done(Usage::default()));
            assert_eq!((status.state, status.reason.as_deref()), (CellState::Invalid, Some(reason)));
            assert!(!status.is_verified());
        }
    }

    #[test]
    fn an_error_line_keeps_its_reason() {
        let mut status = CellStatus::started("c");
        status.absorb(Line::Error(Failure { reason: "out of memory".into() }));
        assert_eq!((status.state, status.reason.as_deref()), (CellState::Error, Some("out of memory")));
    }

    #[test]
    fn stores_are_told_apart_by_name_and_url() {
        let mut plan = crate::run::tests::plan("c");
        for (store, emulated, provider) in [
            ("s3-express", true, "s3-express"),
            ("s3://bucket/prefix", false, "s3"),
            ("s3://bucket--use1-az4--x-s3/prefix", false, "s3-express"),
            ("gs://bucket", false, "gcs"),
            ("file:///tmp/table", false, "file"),
        ] {
            plan.store = store.into();
            assert_eq!((plan.is_emulated(), plan.provider()), (emulated, provider), "{store}");
        }
    }
}
