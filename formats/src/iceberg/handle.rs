//! An open table: its commits, its loads, its list of files.

use std::collections::HashMap;
use std::sync::Arc;

use ::iceberg::TableIdent;
use ::iceberg::spec::{
    DataContentType, DataFile as IcebergFile, DataFileBuilder, DataFileFormat, Datum, FormatVersion, Struct,
    TableMetadata,
};
use ::iceberg::table::Table as IcebergTable;
use ::iceberg::transaction::{ApplyTransactionAction, Transaction};
use async_trait::async_trait;
use futures::TryStreamExt;
use lakemark_core::clock;
use lakemark_core::record::Outcome;
use lakemark_core::table::{ActiveFiles, Change, DataFile, OperationError, OperationResult, Table};

use super::settings::Options;
use super::{Connection, ID_FIELD, NO_REMOVAL};

/// An open table.
pub(super) struct Handle {
    /// Shared by the handles of one process.
    connection: Arc<Connection>,
    table: IcebergTable,
    /// URL of the table, with its trailing slash.
    root: String,
    /// Expiries of snapshots that this handle committed.
    expiries: u64,
}

impl Handle {
    /// Reads the newest metadata of a table; no manifest.
    pub(super) async fn load(connection: Arc<Connection>, table: &TableIdent, root: String) -> OperationResult<Self> {
        let table = connection.load(table).await?;
        Ok(Self { connection, table, root, expiries: 0 })
    }

    fn described(&self, file: &DataFile) -> OperationResult<IcebergFile> {
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(format!("{}{}", self.root, file.path))
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(self.table.metadata().default_partition_spec_id())
            .record_count(file.rows)
            .file_size_in_bytes(file.size_bytes);
        if self.connection.options.statistics {
            builder
                .value_counts(HashMap::from([(ID_FIELD, file.rows)]))
                .null_value_counts(HashMap::from([(ID_FIELD, 0)]));
            if let Some((min, max)) = file.bounds {
                builder
                    .lower_bounds(HashMap::from([(ID_FIELD, Datum::long(min))]))
                    .upper_bounds(HashMap::from([(ID_FIELD, Datum::long(max))]));
            }
        }
        builder.build().map_err(OperationError::other)
    }

    async fn commit(&self, files: Vec<IcebergFile>) -> ::iceberg::Result<IcebergTable> {
        let transaction = Transaction::new(&self.table);
        let append = transaction
            .fast_append()
            .with_check_duplicate(self.connection.options.check_duplicate)
            .add_data_files(files);
        append.apply(transaction)?.commit(&*self.connection.catalog).await
    }

    /// Expires all snapshots but the last ones, in a commit of its own. The library would take both actions into one
    /// transaction, but the expiry then requires the snapshot that the append has yet to publish, and the catalog refuses
    /// it.
    async fn expire(&mut self, keep: usize) -> ::iceberg::Result<()> {
        let transaction = Transaction::new(&self.table);
        let expiry = transaction.expire_snapshots().expire_older_than_ms(i64::MAX).retain_last(keep);
        self.table = expiry.apply(transaction)?.commit(&*self.connection.catalog).await?;
        self.expiries += 1;
        Ok(())
    }

    async fn scan(&self) -> ::iceberg::Result<Vec<String>> {
        let mut scan = self.table.scan();
        // The library's own limit is the CPUs that it finds, which is one where the process keeps to one.
        let limit = self.connection.options.scan_concurrency.unwrap_or_else(clock::parallelism);
        scan = scan.with_concurrency_limit(limit);
        let tasks = scan.build()?.plan_files().await?;
        tasks.map_ok(|task| task.data_file_path).try_collect().await
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let files = files.iter().map(|file| self.described(file)).collect::<OperationResult<_>>()?;
        self.table = self.commit(files).await.map_err(|error| self.connection.failed(&error))?;
        let version = version(self.table.metadata());
        let Options { expire_keep, expire_every, .. } = self.connection.options;
        if let Some(keep) = expire_keep
            && version.is_multiple_of(expire_every)
            && self.table.metadata().snapshots().len() > keep
            && let Err(error) = self.expire(keep).await
        {
            let OperationError { outcome, message } = self.connection.failed(&error);
            // Lost to others for as often as the library tries: the next expiry takes these snapshots too.
            if outcome != Outcome::Conflict {
                let message =
                    format!("version {version} was published, then the expiry of snapshots failed: {message}");
                return Err(OperationError { outcome: Outcome::Unknown, message });
            }
        }
        Ok(version)
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        Err(OperationError::other(format!("{}: {NO_REMOVAL}", change.name())))
    }

    /// Shares the catalog, with its connections to the database, and the client. The library caches manifests in the
    /// table that `load_table` returns, so that a fresh handle reads them all again.
    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        let connection = Arc::clone(&self.connection);
        Ok(Box::new(Self::load(connection, self.table.identifier(), self.root.clone()).await?))
    }

    /// By `load_table`, which always reads metadata.json and begins with an empty cache of manifests: the library has no
    /// way to bring a table up to date that keeps them.
    async fn refresh(&mut self) -> OperationResult<u64> {
        self.table = self.connection.load(self.table.identifier()).await?;
        Ok(version(self.table.metadata()))
    }

    /// By the library's scan planning, which reads the manifest list and then every manifest, several at once. A second
    /// call on the same version of a handle reads nothing: the library keeps manifests in the handle's cache. The order
    /// is that in which manifests arrive.
    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let paths = self.scan().await.map_err(|error| self.connection.failed(&error))?;
        let relative = |path: String| match path.strip_prefix(&self.root) {
            Some(relative) => relative.to_owned(),
            None => path,
        };
        Ok(ActiveFiles { version: version(self.table.metadata()), paths: paths.into_iter().map(relative).collect() })
    }

    /// The snapshots from which the current one descends: one that is in the metadata but not among its ancestors would
    /// be a lost commit. Only appends make snapshots here. Those before the oldest that is left have expired: their
    /// sequence numbers were given out one by one.
    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        let metadata = self.table.metadata();
        let mut snapshots = Vec::with_capacity(metadata.snapshots().len());
        let mut next = metadata.current_snapshot();
        // Ancestors are distinct, unless the metadata is corrupt.
        while let Some(snapshot) = next
            && snapshots.len() < metadata.snapshots().len()
        {
            snapshots.push(snapshot);
            next = snapshot.parent_snapshot_id().and_then(|parent| metadata.snapshot_by_id(parent));
        }
        snapshots.reverse();
        let number = |(position, sequence_number): (u64, u64)| match metadata.format_version() {
            FormatVersion::V1 => position + 1,
            _ => sequence_number,
        };
        let expired = match snapshots.first() {
            Some(oldest) if oldest.parent_snapshot_id().is_some() => 1..oldest.sequence_number().unsigned_abs(),
            _ => 1..1,
        };
        let sequence_numbers = snapshots.iter().map(|snapshot| snapshot.sequence_number().unsigned_abs());
        Ok(expired.chain((0..).zip(sequence_numbers).map(number)).collect())
    }

    fn maintenance(&self) -> u64 {
        self.expiries
    }
}

/// Number of the current snapshot: its sequence number, which version 1 of the format does not have.
pub(super) fn version(metadata: &TableMetadata) -> u64 {
    match metadata.format_version() {
        FormatVersion::V1 => metadata.snapshots().len() as u64,
        _ => metadata.last_sequence_number().unsigned_abs(),
    }
}
