//! What does one commit do, and what does it contend for? Commit protocols, as data.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::CellError;

mod check;

/// A commit protocol: what an attempt does in each of its phases, and against what it is checked.
///
/// An attempt runs through these phases in order. Only *refresh* and *publish* touch state that transactions share, at
/// one instant each; everything else is waiting.
///
/// ```text
/// [before_refresh] [refresh ● after_refresh…] [first | after_catalog_conflict | after_table_conflict] [publish ●]
///      won:  [after_success]                            lost:  [after_failure] [backoff] and again
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Name on the command line and in results.
    pub name: String,
    /// What it stands for, in a line.
    pub about: String,
    /// Whose commits an attempt loses to.
    pub scope: Scope,
    /// The conditional write that publishes a commit.
    pub publish: Publish,
    /// The read that takes the snapshot which the next attempt is based on.
    pub refresh: Operation,
    /// The first attempt refreshes as well. Without this it is checked against the snapshot that was read when the
    /// transaction was submitted, before its runtime.
    pub refresh_first_attempt: bool,
    /// Before each refresh.
    #[serde(default)]
    pub before_refresh: Vec<Step>,
    /// After a refresh that follows a lost attempt, whatever it finds.
    #[serde(default)]
    pub after_failed_refresh: Vec<Step>,
    /// Work for each commit to the own table that a refresh finds.
    #[serde(default)]
    pub winners: Option<Winners>,
    /// Between snapshot and publish in the first attempt.
    #[serde(default)]
    pub first: Vec<Step>,
    /// Between snapshot and publish after losing to another table only.
    #[serde(default)]
    pub after_catalog_conflict: Vec<Step>,
    /// Between snapshot and publish after losing to the own table.
    #[serde(default)]
    pub after_table_conflict: Vec<Step>,
    /// Of the steps between snapshot and publish, the client compares versions after this many and gives the attempt
    /// up early when it has lost; none where only the publish tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_check_after: Option<u32>,
    /// After the publish has succeeded, before the caller has its answer.
    #[serde(default)]
    pub after_success: Vec<Step>,
    /// After the publish has failed, before the backoff.
    #[serde(default)]
    pub after_failure: Vec<Step>,
}

/// Whose commits an attempt loses to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Those of any table: one object or sequence number for the whole catalog.
    Catalog,
    /// Those of the own table.
    Table,
    /// Those of the own partition of the own table.
    Partition,
}

/// The conditional write that publishes a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Publish {
    /// A compare-and-swap at the cell's catalog: a service or an object in the store.
    CatalogSwap {
        /// Bytes of the catalog object, where it is one.
        #[serde(default)]
        bytes: u64,
    },
    /// A write of the next name, if no object has it. Names differ, so a limit per object does not apply.
    PutIfAbsent {
        /// Bytes of the object.
        bytes: u64,
        /// Bytes that it grows by with each version of the table.
        #[serde(default)]
        bytes_per_version: f64,
    },
    /// A service to which requests are sent. It commits all that wait, at most `batch_max`, in one compare-and-swap at
    /// the cell's catalog, one batch at a time. Requests that arrive meanwhile wait. FastAppends never lose there;
    /// a ValidatedOverwrite loses when its snapshot of the table is no longer the newest.
    Batch {
        /// Most requests in one batch.
        batch_max: u32,
        /// Round trip between client and service, in milliseconds.
        round_trip_ms: f64,
        /// Bytes of the object that the service swaps.
        #[serde(default)]
        bytes: u64,
    },
}

/// Work for each commit to the own table that a refresh finds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winners {
    /// The work, for each winner.
    pub steps: Vec<Step>,
    /// Winners that cost nothing: 1 where the newest one is read anyway.
    #[serde(default)]
    pub skip: u32,
    /// Done by a FastAppend too, and not by a ValidatedOverwrite only.
    pub fast_append: bool,
}

/// One or more requests, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is asked of the store.
    pub operation: Operation,
    /// What it moves, in words: `manifest list`, `metadata.json`.
    #[serde(default)]
    pub object: String,
    /// How often.
    #[serde(default = "once")]
    pub times: u32,
    /// Bytes of the body, sent or received.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes that the body grows by with each version of the table.
    #[serde(default)]
    pub bytes_per_version: f64,
    /// Keys that a listing grows by with each version of the table; each full page is one more request.
    #[serde(default)]
    pub keys_per_version: f64,
    /// Milliseconds that it takes on top, whatever the store: the library's own work.
    #[serde(default)]
    pub work_ms: f64,
}

fn once() -> u32 {
    1
}

/// What is asked of the store or the catalog.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// GET of an object.
    Read,
    /// HEAD of an object.
    Head,
    /// PUT without a precondition.
    Write,
    /// One page of a listing.
    List,
    /// PUT if no object has the name.
    PutIfAbsent,
    /// A read of the cell's catalog: a call to the service, or a GET of its object.
    CatalogRead,
    /// No request: only [`Step::work_ms`].
    Work,
}

const BUILTIN: [(&str, &str); 7] = [
    ("iceberg-file", include_str!("../protocols/iceberg-file.toml")),
    ("iceberg-table", include_str!("../protocols/iceberg-table.toml")),
    ("iceberg-rust-sql", include_str!("../protocols/iceberg-rust-sql.toml")),
    ("iceberg-single-file", include_str!("../protocols/iceberg-single-file.toml")),
    ("delta-log", include_str!("../protocols/delta-log.toml")),
    ("lance-manifest", include_str!("../protocols/lance-manifest.toml")),
    ("batch-service", include_str!("../protocols/batch-service.toml")),
];

impl Protocol {
    /// The built-in protocol of this name.
    pub fn builtin(name: &str) -> Option<Self> {
        let (name, text) = BUILTIN.iter().find(|(builtin, _)| *builtin == name)?;
        // That every built-in protocol parses is tested.
        Self::parse(text, name).ok()
    }

    /// Names of the built-in protocols.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Reads a protocol from TOML text; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text is not TOML, misses a field, has an unknown one or one of another type, or a value is out of
    /// range.
    pub fn parse(text: &str, origin: &str) -> Result<Self, CellError> {
        let protocol: Self = toml::from_str(text).map_err(|error| CellError::toml(origin, text, &error))?;
        protocol.check()?;
        Ok(protocol)
    }

    /// The protocol as TOML text, which [`Protocol::parse`] reads.
    pub fn to_toml(&self) -> String {
        // What has no form in TOML, a null or a map with keys that are no strings, no protocol has.
        toml::to_string(self).unwrap_or_default()
    }

    /// The built-in protocol of this name, or the one in the file of this name if it ends in `.toml`.
    ///
    /// # Errors
    /// When there is none, or as [`Protocol::parse`].
    pub fn named(name: &str) -> Result<Self, CellError> {
        if name.ends_with(".toml") {
            let read = |source| CellError::Read { field: "protocol".to_owned(), path: name.to_owned(), source };
            return Self::parse(&std::fs::read_to_string(Path::new(name)).map_err(read)?, name);
        }
        let allowed = || Self::builtin_names().collect::<Vec<_>>().join(", ");
        Self::builtin(name).ok_or_else(|| CellError::Protocol { name: name.to_owned(), allowed: allowed() })
    }
}
