//! An open dataset: its commits, its loads, its list of fragments.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use ::lance::Dataset;
use ::lance::dataset::CommitBuilder;
use ::lance::dataset::builder::DatasetBuilder;
use ::lance::dataset::transaction::{Operation, RewriteGroup, Transaction};
use ::lance::session::Session;
use async_trait::async_trait;
use lakemark_core::table::{ActiveFiles, Change, DataFile, OperationError, OperationResult, Site, Table};
use lance_file::version::LanceFileVersion;
use lance_table::format::Fragment;

use super::failure::failure;
use super::settings::Options;
use super::store::uri;
use super::{DATA, versions};

/// An open dataset, with the store and the caches of one process.
pub(super) struct Handle {
    site: Site,
    options: Options,
    dataset: Arc<Dataset>,
}

impl Handle {
    /// Opens the newest version: a listing of `_versions`, or what the version hint says, and its manifest, unless the
    /// session's cache has it.
    pub(super) async fn open(session: Arc<Session>, options: Options, site: Site) -> OperationResult<Self> {
        let dataset =
            DatasetBuilder::from_uri(uri(&site.table)?.as_str()).with_session(session).load().await.map_err(failure)?;
        Ok(Self { site, options, dataset: Arc::new(dataset) })
    }

    /// Describes a data file as a fragment of its own, as the library does for each file that it writes.
    fn fragment(&self, file: &DataFile) -> OperationResult<Fragment> {
        let path = path_in_data(file)?;
        let rows = usize::try_from(file.rows).map_err(OperationError::other)?;
        let fields: Vec<i32> = self.dataset.schema().fields.iter().map(|field| field.id).collect();
        let columns = (0..).take(fields.len()).collect();
        // The commit assigns the fragment's number.
        Ok(Fragment::new(0)
            .with_file(path, fields, columns, LanceFileVersion::default().resolve(), NonZeroU64::new(file.size_bytes))
            .with_physical_rows(rows))
    }

    fn fragments(&self, files: &[DataFile]) -> OperationResult<Vec<Fragment>> {
        files.iter().map(|file| self.fragment(file)).collect()
    }

    /// The fragments of the handle's version that hold these files.
    fn active(&self, files: &[DataFile]) -> OperationResult<Vec<Fragment>> {
        let by_path: HashMap<&str, &Fragment> = self
            .dataset
            .fragments()
            .iter()
            .flat_map(|fragment| fragment.files.iter().map(move |file| (file.path.as_str(), fragment)))
            .collect();
        let found = |file: &DataFile| {
            by_path.get(path_in_data(file)?).map(|fragment| Fragment::clone(fragment)).ok_or_else(|| {
                OperationError::other(format!("data file {} is not active in the handle's version", file.path))
            })
        };
        files.iter().map(found).collect()
    }

    fn operation(&self, change: &Change) -> OperationResult<Operation> {
        Ok(match change {
            Change::Overwrite { add } => Operation::Overwrite {
                fragments: self.fragments(add)?,
                schema: self.dataset.schema().clone(),
                config_upsert_values: None,
                initial_bases: None,
            },
            Change::Delete { remove } => Operation::Delete {
                updated_fragments: Vec::new(),
                deleted_fragment_ids: self.active(remove)?.iter().map(|fragment| fragment.id).collect(),
                predicate: String::new(),
            },
            Change::Compact { remove, add } => Operation::Rewrite {
                groups: vec![RewriteGroup { old_fragments: self.active(remove)?, new_fragments: self.fragments(add)? }],
                rewritten_indices: Vec::new(),
                frag_reuse_index: None,
            },
        })
    }

    /// The library's commit. Before each try it looks for newer versions and reads what they did, so that a handle that
    /// is behind catches up before its first: a conflict is a lost race, or a version that the operation cannot follow.
    async fn commit(&mut self, operation: Operation) -> OperationResult<u64> {
        let transaction = Transaction::new_from_version(self.dataset.version_id(), operation);
        let dataset = CommitBuilder::new(self.dataset.clone())
            .with_max_retries(self.options.max_retries)
            .with_retry_timeout(self.options.retry_timeout)
            .execute(transaction)
            .await
            .map_err(failure)?;
        let version = dataset.version_id();
        self.dataset = Arc::new(dataset);
        Ok(version)
    }
}

/// Path of a data file within `data/`: the library keeps paths relative to it, and knows no data file elsewhere under
/// the table.
fn path_in_data(file: &DataFile) -> OperationResult<&str> {
    file.path
        .strip_prefix(DATA)
        .ok_or_else(|| OperationError::other(format!("data file {}: a Lance table keeps them in data/", file.path)))
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let fragments = self.fragments(files)?;
        self.commit(Operation::Append { fragments }).await
    }

    /// Overwrite, delete and compact are the library's `Overwrite`, `Delete` and `Rewrite`. An overwrite replaces what
    /// others appended since the handle's version, too, and an append that finds an overwrite published since fails with
    /// a conflict that is not tried again. Deletes and compactions fail so if the fragments that they remove are gone.
    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        let operation = self.operation(change)?;
        self.commit(operation).await
    }

    /// Shares the session: the client and the caches of manifests and transactions. A version that a handle of the
    /// session committed or loaded is found by its listing and not read again.
    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        Ok(Box::new(Self::open(self.dataset.session(), self.options, self.site.clone()).await?))
    }

    /// By `checkout_latest`: a listing, and the newest manifest if it is another than the handle's and not in the
    /// session's cache.
    async fn refresh(&mut self) -> OperationResult<u64> {
        let mut dataset = Dataset::clone(&self.dataset);
        dataset.checkout_latest().await.map_err(failure)?;
        self.dataset = Arc::new(dataset);
        Ok(self.dataset.version_id())
    }

    /// In memory since the manifest was read.
    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let files = self.dataset.fragments().iter().flat_map(|fragment| &fragment.files);
        let paths = files.map(|file| format!("{DATA}{}", file.path)).collect();
        Ok(ActiveFiles { version: self.dataset.version_id(), paths })
    }

    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        versions::published(&self.site, self.options.cleanup.is_some()).await
    }
}
