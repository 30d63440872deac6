//! The lines that a worker writes: one JSON object a line, told apart by `type`.
//!
//! Times are process time in whole microseconds, counted from the start of the cell; sizes are bytes. The field names
//! are the contract that readers outside this repository rely on (`docs/SCHEMA.md`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One line of a worker's output.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The first line: what the worker is and what it resolved the cell to.
    Hello(Hello),
    /// One operation, after its requests and attempts.
    Operation(Operation),
    /// One request on the wire.
    Request(Request),
    /// One try at the publish primitive.
    Attempt(Attempt),
    /// Size of the metadata at one version.
    Metadata(MetadataSample),
    /// The measured time of a cell whose operations end when time is up.
    Window(Window),
    /// The verdict on the cell.
    Audit(Audit),
    /// The last line of a cell that ran to its end.
    Done(Usage),
    /// The last line of a cell that could not.
    Error(Failure),
}

/// What the worker is and what it resolved the cell to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Hello {
    /// Version of the worker protocol.
    pub protocol: u32,
    /// Format, as `lakemark list` names it.
    pub format: String,
    /// Library that commits, with its version: `deltalake-core 1.1.3`.
    pub library: String,
    /// Clock that the cell runs on, after any fall-back: `skip` or `real`.
    pub clock: String,
    /// Why the clock is not the one asked for, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_note: Option<String>,
    /// Whether the worker keeps to one CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_cpu: bool,
    /// Every setting of the format, defaults included.
    pub settings: BTreeMap<String, String>,
    /// What the library does not offer, by the name of the operation, and why: scenarios leave it out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsupported: BTreeMap<String, String>,
}

/// How an operation, a request or an attempt ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what was asked.
    Ok,
    /// The object is not there (an answer, not a failure of the store).
    NotFound,
    /// It lost against another writer.
    Conflict,
    /// The provider asked to slow down (429, 503).
    Throttled,
    /// It failed and had no effect.
    Error,
    /// It failed and may have had its effect.
    Unknown,
}

/// Kind of operation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Creates the table.
    Create,
    /// Opens a writer's handle, before its first append.
    Open,
    /// Appends data files.
    Append,
    /// Removes every active file and adds others.
    Overwrite,
    /// Removes data files.
    Delete,
    /// Puts data files in the place of others with the same rows.
    Compact,
    /// Loads the full list of active data files with a new handle and no caches.
    ColdOpen,
    /// Loads it with a new handle in a warm process, which shares what the library lets handles share.
    FreshHandle,
    /// Loads it with an open handle, brought to the newest version.
    Refresh,
    /// Opens the table without the list: what a library offers of the kind.
    ShallowOpen,
    /// Reads what the audit compares; no part of the measurement.
    Audit,
}

/// One operation, as its caller saw it: the library's own retries are inside.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Operation {
    /// Writer (or reader) that ran it.
    pub writer: u32,
    /// Number of the operation within its writer, from 0.
    pub operation: u64,
    /// What it did.
    pub kind: OperationKind,
    /// When it should have started, if arrivals follow a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_us: Option<u64>,
    /// Table that it is of, where there are several, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub table: u32,
    /// Whether it is of no measurement: it prepares one, ended in the warm-up or after the end. An operation belongs to the time
    /// in which it ends, whenever it started: with the other rule, commits that take half the measured time would hardly
    /// count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excluded: bool,
    /// When it started.
    pub start_us: u64,
    /// From start to return.
    pub latency_us: u64,
    /// Part of the latency with at least one request of this writer at the store.
    pub wait_us: u64,
    /// Part of the latency spent waiting for the catalog: in a catalog call, with no request at the store and no CPU used.
    pub catalog_us: u64,
    /// CPU time of the process during the operation, the harness' own excluded, in real microseconds whatever the clock.
    /// 0 where several writers share the process: its CPU time cannot be told apart by operation.
    pub cpu_us: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Table version that it published or read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Tries at the publish primitive.
    pub attempts: u32,
    /// Requests on the wire.
    pub requests: u32,
    /// Bytes received from the store.
    pub read_bytes: u64,
    /// Bytes sent to the store.
    pub written_bytes: u64,
    /// What the library said, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn is_first(table: &u32) -> bool {
    *table == 0
}

/// Verb of a request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Reads an object or a range of it.
    Get,
    /// Reads an object's size and tag.
    Head,
    /// Writes an object.
    Put,
    /// Writes an object that must not exist.
    PutIfAbsent,
    /// Writes an object whose tag must match.
    PutIfMatch,
    /// Reads one page of a listing.
    List,
    /// Removes an object.
    Delete,
    /// Copies an object inside the store.
    Copy,
}

/// One request on the wire. A retry of the client below the format is a request of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Request {
    /// Writer whose client sent it.
    pub writer: u32,
    /// Operation that it belongs to.
    pub operation: u64,
    /// Number of the request within its writer, from 0.
    pub request: u64,
    /// Verb.
    pub method: Method,
    /// Key of the object, or prefix of the listing.
    pub key: String,
    /// Kind of object: `log`, `checkpoint`, `manifest`, … as the format names it.
    pub class: String,
    /// When it was sent.
    pub start_us: u64,
    /// From sending to the last byte of the answer.
    pub latency_us: u64,
    /// Bytes of the body received.
    pub read_bytes: u64,
    /// Bytes of the body sent.
    pub written_bytes: u64,
    /// Keys in the page, for a listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// HTTP status of the answer.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
}

/// Where an attempt was counted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A conditional write of the object that publishes a version.
    Store,
    /// The catalog's compare-and-swap.
    Catalog,
}

/// One try at the publish primitive, below the library's retry loop.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Attempt {
    /// Writer that tried.
    pub writer: u32,
    /// Operation that it belongs to.
    pub operation: u64,
    /// Number of the attempt within its operation, from 0.
    pub attempt: u32,
    /// Where it was counted.
    pub layer: Layer,
    /// When it started.
    pub start_us: u64,
    /// From start to answer.
    pub latency_us: u64,
    /// `ok`, or one of the four failure classes.
    pub outcome: Outcome,
    /// Versions behind: commits that other writers published between the start of the operation and the end of this
    /// attempt.
    #[serde(default)]
    pub behind: u64,
    /// Requests of the writer that ended since the operation's start or its last attempt, this one's own included. Of an
    /// attempt that failed they are wasted.
    #[serde(default)]
    pub requests: u32,
    /// Bytes that these received.
    #[serde(default)]
    pub read_bytes: u64,
    /// Bytes that these sent.
    #[serde(default)]
    pub written_bytes: u64,
}

/// Number and size of a set of objects.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Extent {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Extent {
    /// Adds one object of `bytes`.
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// Size of a table's metadata at one version.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MetadataSample {
    /// Appends acknowledged so far.
    pub appends: u64,
    /// What a cold open read to get the full list of active data files, each object once.
    pub active: Extent,
    /// The same by kind of object.
    pub active_by_class: BTreeMap<String, Extent>,
    /// All metadata objects under the table.
    pub retained: Extent,
    /// The same by kind of object.
    pub retained_by_class: BTreeMap<String, Extent>,
    /// Bytes of metadata written since the table's creation, whether still retained or not.
    pub written_bytes: u64,
    /// Latency of the cold open.
    pub load_latency_us: u64,
}

/// The measured time of a cell with several writers, between the warm-up and the end.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Window {
    /// When it began.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// Writers.
    pub writers: u32,
    /// CPU time of the process within it, the harness' own excluded, in real seconds.
    pub library_cpu_s: f64,
    /// CPUs that the process could use.
    pub cpus: u32,
    /// Share of these CPUs' time that was used, 0 to 1; absent where computing takes no process time, or another time
    /// than on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_saturation: Option<f64>,
    /// Operations that were due by the end and had not started, since their writers were busy.
    #[serde(default)]
    pub backlog: u64,
}

impl Window {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_us.saturating_sub(self.start_us) as f64 / 1e6
    }
}

/// One thing that the audit looked at.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Check {
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub passed: bool,
    /// The figures behind the verdict.
    pub detail: String,
}

/// Verdict on a cell. Figures of a cell that failed it are *invalid*.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Audit {
    /// Everything that was looked at.
    pub checks: Vec<Check>,
    /// What a reader should know of a valid cell: where it departs from a law, what its isolation let through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Audit {
    /// Whether every check passed. An audit without checks proves nothing and is not valid.
    pub fn is_valid(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }
}

/// What a cell used.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Usage {
    /// Real time of the worker.
    pub real_s: f64,
    /// Process time of the worker.
    pub process_s: f64,
    /// CPU time of the worker, everything included.
    pub cpu_s: f64,
    /// CPU time of the clock's own thread.
    pub clock_cpu_s: f64,
    /// CPU time of the emulated store, the recorder and the audit.
    pub store_cpu_s: f64,
    /// Largest resident memory of the worker.
    pub peak_memory_bytes: u64,
    /// Bytes of objects that the emulated store can still answer with.
    pub store_logical_bytes: u64,
    /// Bytes that the emulated store holds for them.
    pub store_held_bytes: u64,
    /// What the catalog was: its product and version, and how durable a commit is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
}

/// Why a cell has no result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Failure {
    /// One line.
    pub reason: String,
}
