//! A handle over the library's blind table, which appends without a list of files.

use async_trait::async_trait;
use deltalake::BlindDeltaTable;
use deltalake::logstore::LogStoreRef;
use futures::TryStreamExt;
use lakemark_core::table::{ActiveFiles, Change, DataFile, OperationError, OperationResult, Site, Table};

use super::failure::failed;
use super::settings::Options;
use super::{actions, log};

/// An open table that only appends.
///
/// Its commits go through the kernel's transaction, not through `CommitBuilder`: one try at the version after the
/// handle's own, and a lost one is an error. `max-retries` has no part in it: the library's 15 tries are for requests
/// that failed. Afterwards the library opens the published version anew, again without its files. There are no
/// post-commit hooks: nobody writes checkpoints, and the log grows. Of statistics it writes the row count alone.
pub(super) struct BlindHandle {
    table: BlindDeltaTable,
    options: Options,
    site: Site,
}

impl BlindHandle {
    /// Opens the newest version without its files: a listing of the log, and the commits from the newest back to the
    /// one that holds the schema, or to the checkpoint, of which the schema alone is read.
    pub(super) async fn open(log_store: LogStoreRef, options: Options, site: Site) -> OperationResult<Self> {
        let table = BlindDeltaTable::try_new_with_log_store(log_store).await.map_err(failed)?;
        Ok(Self { table, options, site })
    }
}

#[async_trait]
impl Table for BlindHandle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let adds = files.iter().map(|file| actions::add(file, true, &self.options)).collect();
        self.table.commit(adds).await.map_err(failed)
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        Err(OperationError::other(format!("{}: the library's blind table only appends", change.name())))
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        Ok(Box::new(Self::open(self.table.log_store(), self.options, self.site.clone()).await?))
    }

    /// The library has no update of a blind table: it is opened anew.
    async fn refresh(&mut self) -> OperationResult<u64> {
        self.table = BlindDeltaTable::try_new_with_log_store(self.table.log_store()).await.map_err(failed)?;
        Ok(self.table.version())
    }

    /// Read from the log at each call, since the handle keeps no list.
    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let log_store = self.table.log_store();
        let adds = self.table.snapshot().file_views(&log_store, None);
        let paths = adds.map_ok(|add| add.path().into_owned()).try_collect().await.map_err(failed)?;
        Ok(ActiveFiles { version: self.table.version(), paths })
    }

    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        log::versions(&self.site, self.table.version()).await
    }
}
