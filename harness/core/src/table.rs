//! What a format is to the harness: a table that appends, and can list its active data files.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lakemark_results::record::Outcome;

use crate::store::Store;
use crate::writer::Writer;

/// A data file that an append adds. It is described, never written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DataFile {
    /// Path relative to the table.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Smallest and largest value of the only column, if statistics are kept.
    pub bounds: Option<(i64, i64)>,
}

/// One setting of a format.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// Name, as in `--set NAME=VALUE`.
    pub name: &'static str,
    /// Value when not set; `library` stands for the library's own default.
    pub default: &'static str,
    /// What it does and which values it takes.
    pub help: &'static str,
}

/// Something that a scenario may ask of a table and that a format's library does not offer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unsupported {
    /// What: an operation or a load by its name in records, such as `overwrite` or `shallow_open`.
    pub what: &'static str,
    /// Why, in one line.
    pub why: &'static str,
}

/// What a format is.
#[derive(Clone, Debug)]
pub struct FormatInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// Library that commits, with its version: `deltalake-core 1.1.3`.
    pub library: String,
    /// Catalogs that it can commit through; `none` where the store alone decides.
    pub catalogs: &'static [&'static str],
    /// Its settings.
    pub settings: &'static [Setting],
    /// What its library does not offer.
    pub unsupported: &'static [Unsupported],
}

/// A change of a table other than an append.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// Removes every active file and adds these.
    Overwrite {
        /// Files to add.
        add: Vec<DataFile>,
    },
    /// Removes some files.
    Delete {
        /// Active files to remove.
        remove: Vec<DataFile>,
    },
    /// Puts files in the place of others that hold the same rows.
    Compact {
        /// Active files to remove.
        remove: Vec<DataFile>,
        /// Files to add.
        add: Vec<DataFile>,
    },
}

impl Change {
    /// Its name, as in [`Unsupported::what`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Overwrite { .. } => "overwrite",
            Self::Delete { .. } => "delete",
            Self::Compact { .. } => "compact",
        }
    }
}

/// Why an operation failed, after the library gave up.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct OperationError {
    /// Class of the failure.
    pub outcome: Outcome,
    /// What the library said.
    pub message: String,
}

impl OperationError {
    /// A failure of a class that is neither a conflict nor a throttle.
    pub fn other(error: impl std::fmt::Display) -> Self {
        Self { outcome: Outcome::Error, message: error.to_string() }
    }
}

/// Result of an operation.
pub type OperationResult<T> = Result<T, OperationError>;

/// Where one writer finds the table.
#[derive(Clone, Debug)]
pub struct Site {
    /// The writer, whose clock holds and records the catalog's calls go to.
    pub writer: Arc<Writer>,
    /// Its client of the store.
    pub store: Arc<dyn Store>,
    /// Key prefix of the table, without slashes at its ends: `bench/0001/table`.
    pub table: String,
    /// Resolved settings of the format: every name of `FormatInfo::settings`.
    pub settings: BTreeMap<String, String>,
}

/// The active data files of a table.
#[derive(Clone, Debug, Default)]
pub struct ActiveFiles {
    /// Version that they are of, as the format counts.
    pub version: u64,
    /// Paths relative to the table, in the format's order.
    pub paths: Vec<String>,
}

/// A table format, as its library implements it.
#[async_trait]
pub trait Format: Send + Sync {
    /// What it is.
    fn info(&self) -> FormatInfo;

    /// Kind of the object at `key` (relative to the table), in the format's own words: `log`, `manifest`, `data`.
    fn classify(&self, key: &str) -> &'static str;

    /// Whether a conditional write of `key` (relative to the table) is what publishes a version.
    fn publishes(&self, key: &str) -> bool;

    /// Creates an empty table.
    async fn create(&self, site: &Site) -> OperationResult<()>;

    /// Opens the table with a new handle that shares no cache with any other.
    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>>;

    /// Opens the table without the list of its files, as far as the library has such an open; returns the version.
    async fn open_shallow(&self, site: &Site) -> OperationResult<u64>;

    /// How often its client of the store sends a throttled request again. The default is that of `object_store`.
    fn client_retries(&self) -> u32 {
        10
    }

    /// What its catalog turned out to be (product, version, how durable a commit is), once it was used.
    fn catalog_description(&self) -> Option<String> {
        None
    }

    /// Removes what a cell left outside the store (a catalog's rows). The emulated store goes with its process.
    async fn clean(&self, _site: &Site) -> OperationResult<()> {
        Ok(())
    }
}

/// An open handle of a table.
#[async_trait]
pub trait Table: Send + Sync {
    /// Appends data files through the library's public commit path; returns the version published.
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64>;

    /// Makes another change through the library's public commit path; returns the version published.
    async fn change(&mut self, change: &Change) -> OperationResult<u64>;

    /// A new handle in this warm process, at the newest version: it shares whatever the library lets the handles of one
    /// process share (caches of a session, a catalog's connection).
    async fn fresh(&self) -> OperationResult<Box<dyn Table>>;

    /// Brings this handle to the newest version; returns it.
    async fn refresh(&mut self) -> OperationResult<u64>;

    /// Brings the full list of active data files of the handle's version into memory.
    async fn files(&mut self) -> OperationResult<ActiveFiles>;

    /// Versions (commits, snapshots) in the handle's history that appends published, for the audit.
    async fn commits(&mut self) -> OperationResult<Vec<u64>>;

    /// Attempts of this handle that succeeded and published no version, such as expiries of snapshots: the audit has to
    /// expect so many successes more than there are commits.
    fn maintenance(&self) -> u64 {
        0
    }
}
