//! The small interface between a format's store adapter and a provider, emulated or real.

use std::error::Error;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_results::record::Outcome;

/// Precondition of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Precondition {
    /// None: the last write wins.
    None,
    /// No object may have the key.
    Absent,
    /// The object must have this tag.
    Match(String),
}

/// Part of an object to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Span {
    /// All of it.
    Full,
    /// These bytes; an end beyond the object is cut to its size.
    Range(Range<u64>),
    /// From this byte to the end.
    From(u64),
    /// The last bytes, at most this many.
    Last(u64),
}

/// What a provider says of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObjectInfo {
    /// Key, without a leading slash.
    pub key: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Entity tag.
    pub etag: String,
    /// When it was written: Unix time in milliseconds, on the process clock.
    pub modified_ms: i64,
}

/// An object, or a part of it.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is.
    pub info: ObjectInfo,
    /// First byte of `body` within the object.
    pub start: u64,
    /// The bytes.
    pub body: Bytes,
}

/// Which keys to list.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Keys start with this.
    pub prefix: String,
    /// Fold keys at the next `/` after the prefix into common prefixes.
    pub delimited: bool,
    /// Only keys after this one in key order. Providers without key order do not take it.
    pub start_after: Option<String>,
    /// Where the last page ended.
    pub token: Option<String>,
}

/// One page of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// Objects of the page, in the provider's order.
    pub objects: Vec<ObjectInfo>,
    /// Common prefixes, each with its trailing slash.
    pub common_prefixes: Vec<String>,
    /// Where the next page starts; none after the last.
    pub next: Option<String>,
}

/// Why a request failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// No object has the key.
    #[error("no object {key}")]
    NotFound {
        /// The key.
        key: String,
    },
    /// The precondition does not hold: another object was there first (412), or another write was under way (409).
    #[error("precondition failed on {key} (HTTP {status})")]
    Precondition {
        /// The key.
        key: String,
        /// 409 or 412.
        status: u16,
    },
    /// The provider asked to slow down.
    #[error("throttled on {key} (HTTP {status})")]
    Throttled {
        /// The key.
        key: String,
        /// 429 or 503.
        status: u16,
    },
    /// The provider cannot do what was asked.
    #[error("not supported: {what}")]
    Unsupported {
        /// What was asked.
        what: String,
    },
    /// The request failed, and whether it had its effect is not known.
    #[error("no answer for {key}: {reason}")]
    Unknown {
        /// The key.
        key: String,
        /// What happened.
        reason: String,
    },
    /// The request failed and had no effect.
    #[error("request for {key} failed: {reason}")]
    Failed {
        /// The key.
        key: String,
        /// What happened.
        reason: String,
    },
}

impl StoreError {
    /// Class of an operation that failed because of this.
    pub fn operation_outcome(&self) -> Outcome {
        match self {
            Self::Precondition { .. } => Outcome::Conflict,
            Self::Throttled { .. } => Outcome::Throttled,
            Self::Unknown { .. } => Outcome::Unknown,
            Self::NotFound { .. } | Self::Unsupported { .. } | Self::Failed { .. } => Outcome::Error,
        }
    }

    /// The store's error that a library's error is, or has among its causes: the outermost.
    pub fn among_causes<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut causes = std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source());
        causes.find_map(|error| error.downcast_ref())
    }
}

/// Result of a request.
pub type StoreResult<T> = Result<T, StoreError>;

/// Traits of a provider that change what a client must do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Traits {
    /// Listings come in key order and take a start key. S3 Express: no.
    pub ordered_list: bool,
}

/// One writer's client of an object store.
///
/// Every call is recorded under the writer's current operation. Calls follow what an HTTP client for the provider
/// does: throttled requests are retried with backoff, each retry a request of its own on the wire.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// What the provider is like.
    fn traits(&self) -> Traits;

    /// Reads an object or a part of it.
    async fn get(&self, key: &str, span: Span) -> StoreResult<Object>;

    /// Reads what the provider says of an object.
    async fn head(&self, key: &str) -> StoreResult<ObjectInfo>;

    /// Writes an object; answers with its tag.
    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String>;

    /// Reads one page of a listing.
    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage>;

    /// Removes an object; removing one that is not there is no error.
    async fn delete(&self, key: &str) -> StoreResult<()>;

    /// Copies an object.
    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()>;
}

/// A store as the harness sees it from outside: no latency, no record.
pub trait Inspect: Send + Sync {
    /// Keys and sizes of all objects under a prefix, in key order.
    fn objects(&self, prefix: &str) -> Vec<(String, u64)>;

    /// Bytes of all objects that can still be read.
    fn logical_bytes(&self) -> u64;

    /// Bytes held for them.
    fn held_bytes(&self) -> u64;
}

/// Makes clients, one for each writer.
pub trait Provider: Inspect {
    /// A new client for a writer, as a new process would have.
    fn client(self: Arc<Self>, writer: Arc<crate::writer::Writer>) -> Arc<dyn Store>;
}
