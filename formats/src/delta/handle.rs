//! A handle over the library's table: its commits, its loads, its list of files.

use std::collections::HashMap;

use async_trait::async_trait;
use deltalake::checkpoints::create_checkpoint;
use deltalake::kernel::Action;
use deltalake::kernel::transaction::{CommitBuilder, CommitData, TableReference};
use deltalake::logstore::{CommitOrBytes, LogStoreRef};
use deltalake::protocol::DeltaOperation;
use deltalake::{DeltaTable, DeltaTableError};
use futures::TryStreamExt;
use lakemark_core::table::{ActiveFiles, Change, DataFile, OperationResult, Site, Table};
use uuid::Uuid;

use super::actions;
use super::failure::{failed, failed_after};
use super::log;
use super::settings::{CommitPath, Options};

/// An open table.
pub(super) struct Handle {
    table: DeltaTable,
    /// Newest version that the handle knows of. The snapshot is of an older one where `path` leaves out what brings it
    /// up to the handle's own commits.
    version: u64,
    options: Options,
    site: Site,
}

impl Handle {
    /// Loads the newest version and the list of its files: a listing of the log from the newest checkpoint, that
    /// checkpoint in many parts, and each commit after it. Protocol and schema are looked for first and the files then, so
    /// that each commit is read twice.
    pub(super) async fn open(log_store: LogStoreRef, options: Options, site: Site) -> OperationResult<Self> {
        let mut table = DeltaTable::new(log_store);
        table.load().await.map_err(failed)?;
        let version = table.snapshot().map_err(failed)?.version();
        Ok(Self { table, version, options, site })
    }

    async fn publish(&mut self, actions: Vec<Action>, operation: DeltaOperation) -> OperationResult<u64> {
        match self.options.path {
            CommitPath::Full => self.commit(actions, operation).await,
            CommitPath::LogOnly => self.write_log(actions, operation).await,
            CommitPath::LogAndCheckpoint => {
                let version = self.write_log(actions, operation).await?;
                if self.options.post_commit_checkpoint && (version + 1).is_multiple_of(self.options.checkpoint_interval)
                {
                    self.write_checkpoint().await?;
                }
                Ok(version)
            }
        }
    }

    /// The library's commit: its loop of tries, then its post-commit hooks, which bring the snapshot to the version
    /// published, write a checkpoint when one is due, and look for expired logs.
    async fn commit(&mut self, actions: Vec<Action>, operation: DeltaOperation) -> OperationResult<u64> {
        let snapshot: &dyn TableReference = self.table.snapshot().map_err(failed)?;
        // The three steps that awaiting the whole commit takes; apart, they tell whether the version was published.
        let published = CommitBuilder::from(self.options.commit_properties())
            .with_actions(actions)
            .build(Some(snapshot), self.table.log_store(), operation)
            .into_prepared_commit_future()
            .await
            .map_err(failed)?
            .await
            .map_err(failed)?;
        let version = published.version;
        let finished = published.await.map_err(|error| failed_after(version, &error))?;
        self.table.state = Some(finished.snapshot);
        self.version = version;
        Ok(version)
    }

    /// The log entry alone, by the library's publish primitive. Its commit loop and its post-commit hooks cannot be had
    /// without reading: the loop lists the log before each try, and the hooks always bring the snapshot up to date. So
    /// neither runs: no look for newer versions, no conflict check, no second try.
    async fn write_log(&mut self, actions: Vec<Action>, operation: DeltaOperation) -> OperationResult<u64> {
        let entry = CommitData::new(actions, operation, HashMap::new(), Vec::new())
            .get_bytes()
            .map_err(|error| failed(error.into()))?;
        let version = self.version + 1;
        // The number tells log stores that stage a commit which one it is; this one stages none.
        self.table
            .log_store()
            .write_commit_entry(version, CommitOrBytes::LogBytes(entry), Uuid::nil())
            .await
            .map_err(|error| failed(error.into()))?;
        self.version = version;
        Ok(version)
    }

    /// The library writes a checkpoint of the handle's snapshot, so that has to be brought up to date first.
    async fn write_checkpoint(&mut self) -> OperationResult<()> {
        let version = self.version;
        let written = async {
            self.catch_up().await?;
            create_checkpoint(&self.table, None).await
        };
        written.await.map_err(|error| failed_after(version, &error))
    }

    /// Brings the snapshot to the handle's version, where it is behind the handle's own commits.
    async fn catch_up(&mut self) -> Result<(), DeltaTableError> {
        if self.table.version() != Some(self.version) {
            self.table.update_incremental(Some(self.version)).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let actions = files.iter().map(|file| Action::Add(actions::add(file, true, &self.options))).collect();
        self.publish(actions, actions::append_operation()).await
    }

    /// Overwrite, delete and compact are the library's `Write`, `Delete` and `Optimize` with the actions that its own
    /// writers give them. Built without DataFusion, the library takes every commit to have read the whole table where
    /// another removed rows: any commit, an append too, that finds an overwrite or a delete published since its
    /// snapshot fails with a conflict that is not tried again.
    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        self.catch_up().await.map_err(failed)?;
        let (actions, operation) = actions::of_change(change, &self.table, &self.options).await?;
        self.publish(actions, operation).await
    }

    /// The log store, and with it the client, is shared. The library caches nothing of a table outside a handle: a
    /// fresh handle reads what a cold open reads.
    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        Ok(Box::new(Self::open(self.table.log_store(), self.options, self.site.clone()).await?))
    }

    /// By `update_state`: a listing of the log from the handle's checkpoint on, and each commit that is new. A handle whose
    /// commit failed is at the version where it was, and is brought up to date like any other.
    async fn refresh(&mut self) -> OperationResult<u64> {
        self.table.update_state().await.map_err(failed)?;
        self.version = self.table.snapshot().map_err(failed)?.version();
        Ok(self.version)
    }

    /// The library has the list in memory: loading reads the newest checkpoint and each commit after it and keeps the
    /// add actions that are still active (`EagerSnapshot`), and a commit on the full path brings them up to its own
    /// version. What is left is to walk them. On the other paths the handle's commits are read here.
    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        self.catch_up().await.map_err(failed)?;
        let adds = self.table.get_active_add_actions_by_partitions(&[]);
        let paths = adds.map_ok(|add| add.path().into_owned()).try_collect().await.map_err(failed)?;
        Ok(ActiveFiles { version: self.version, paths })
    }

    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        log::versions(&self.site, self.version).await
    }
}
