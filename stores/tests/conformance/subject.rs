//! A store as a case sees it: the least that says what was asked and what was answered.

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::store::{Precondition, Span, StoreError};

/// What an interface has words for, beyond writing, reading, sizes and deletion of whole objects by key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ability {
    /// Preconditions of writes, and the tags that they name.
    Condition,
    /// Reads from an offset to the end, and of the last bytes.
    OpenSpan,
    /// Listings.
    List,
    /// Copies.
    Copy,
    /// Objects written in parts.
    Parts,
    /// Deletion of all objects in a folder.
    DeleteFolder,
    /// Single requests, keys that are no paths, and prefixes that end within a name: the client itself.
    Wire,
}

/// Why a request was not answered with what it asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Failure {
    /// No object has the key.
    NotFound,
    /// The precondition does not hold, and the provider said so with this status.
    Lost(u16),
    /// The provider asked to slow down, with this status, as often as the client comes again.
    Throttled(u16),
    /// Anything else.
    Refused(String),
}

pub(crate) type Answer<T> = Result<T, Failure>;

/// What is known of an object. An interface that does not tell leaves out what it does not tell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Known {
    pub(crate) size_bytes: u64,
    pub(crate) etag: Option<String>,
    pub(crate) modified_ms: Option<i64>,
}

/// A listing of one folder's direct content. Folders are without their trailing slash.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Folder {
    pub(crate) keys: Vec<String>,
    pub(crate) folders: Vec<String>,
}

/// One client of a store, through the store's own interface or an adapter's. A folder is a path without a slash at
/// either end, the empty one the whole store.
#[async_trait]
pub(crate) trait Subject: Send + Sync {
    fn abilities(&self) -> &'static [Ability];

    async fn get(&self, key: &str, span: Span) -> Answer<Bytes>;

    async fn head(&self, key: &str) -> Answer<Known>;

    /// Answers with the tag, where the interface has tags.
    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> Answer<Option<String>>;

    async fn delete(&self, key: &str) -> Answer<()>;

    /// [`Ability::Parts`].
    async fn put_parts(&self, key: &str, _parts: &[Bytes]) -> Answer<()> {
        panic!("no words for {key} in parts")
    }

    /// [`Ability::List`]: keys under a folder, in the order in which they come.
    async fn list(&self, folder: &str, _after: Option<&str>) -> Answer<Vec<String>> {
        panic!("no words for a listing of {folder}")
    }

    /// [`Ability::List`].
    async fn list_folder(&self, folder: &str) -> Answer<Folder> {
        panic!("no words for a listing of {folder}")
    }

    /// [`Ability::Copy`].
    async fn copy(&self, from: &str, to: &str, _precondition: Precondition) -> Answer<()> {
        panic!("no words for a copy of {from} to {to}")
    }

    /// [`Ability::DeleteFolder`].
    async fn delete_folder(&self, folder: &str) -> Answer<()> {
        panic!("no words for the deletion of {folder}")
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::NotFound,
            StoreError::Precondition { status, .. } => Self::Lost(status),
            StoreError::Throttled { status, .. } => Self::Throttled(status),
            error => Self::Refused(error.to_string()),
        }
    }
}
