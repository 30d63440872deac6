//! How an Iceberg table is created, appended to and loaded: through the public API of the `iceberg` crate and its SQL
//! catalog.
//!
//! An append is a `fast_append` transaction, and the handle goes on with the table that the commit returns, as a
//! long-lived writer's does. Each handle has a catalog, a connection pool and a file client of its own.

mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::iceberg::io::StorageFactory;
use ::iceberg::spec::{
    DataContentType, DataFile as IcebergFile, DataFileBuilder, DataFileFormat, Datum, FormatVersion, NestedField,
    PrimitiveType, Schema, Struct, TableMetadata, Type,
};
use ::iceberg::table::Table as IcebergTable;
use ::iceberg::transaction::{ApplyTransactionAction, Transaction};
use ::iceberg::{Catalog, NamespaceIdent, TableCreation, TableIdent};
use async_trait::async_trait;
use futures::TryStreamExt;
use lakemark_catalogs::counted::{ensure_namespace, outcome};
use lakemark_catalogs::{CatalogSpec, SqlDatabase};
use lakemark_core::table::{
    ActiveFiles, Change, DataFile, Format, FormatInfo, OperationError, OperationResult, Setting, Site, Table,
};
use lakemark_stores::adapter::iceberg::{IcebergStorage, location};
use tokio::sync::OnceCell;

use settings::Options;

/// Settings of the format, for `FormatInfo` and for help.
const SETTINGS: &[Setting] = settings::SETTINGS;

/// Version of the library. It exports none; a test compares this with the lock file.
const LIBRARY: &str = "iceberg 0.10.1";

const NAMESPACE: &str = "lakemark";
const METADATA: &str = "metadata/";

/// Field id of the table's only column, the first that the library gives.
const ID_FIELD: i32 = 1;
const ID_NAME: &str = "id";

/// Version of the library that commits: `iceberg 0.10.1`.
pub fn library_version() -> String {
    LIBRARY.to_owned()
}

/// Checks values of the format's settings; those not given have their defaults.
///
/// # Errors
///
/// One line that names the setting, its value and what is allowed.
pub fn check_settings(settings: &BTreeMap<String, String>) -> Result<(), String> {
    Options::resolve(settings).map(drop)
}

/// Iceberg, as the `iceberg` crate implements it, with a SQL catalog that publishes its versions.
#[derive(Debug)]
pub struct Iceberg {
    spec: CatalogSpec,
    catalog: String,
    database: OnceCell<Arc<SqlDatabase>>,
}

impl Iceberg {
    /// The format with a catalog. In a database that others use too, `catalog` tells this cell's rows from theirs, so it
    /// must be unique to the cell.
    pub fn new(spec: CatalogSpec, catalog: impl Into<String>) -> Self {
        Self { spec, catalog: catalog.into(), database: OnceCell::new() }
    }

    async fn database(&self, site: &Site) -> OperationResult<Arc<SqlDatabase>> {
        let prepare =
            async { SqlDatabase::prepare(&self.spec, &self.catalog, &site.writer, storage(site)).await.map(Arc::new) };
        self.database.get_or_try_init(|| prepare).await.cloned().map_err(OperationError::other)
    }

    async fn connect(&self, site: &Site) -> OperationResult<Connection> {
        let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
        let database = self.database(site).await?;
        let catalog = database
            .open(&site.writer, storage(site), options.pool_connections)
            .await
            .map_err(OperationError::other)?;
        Ok(Connection { catalog: Box::new(catalog), database, options })
    }
}

#[async_trait]
impl Format for Iceberg {
    fn info(&self) -> FormatInfo {
        FormatInfo {
            name: "iceberg",
            library: library_version(),
            catalogs: &["sqlite", "postgres", "mysql"],
            settings: SETTINGS,
            unsupported: &[],
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key.is_empty() || key.ends_with('/') {
            return "listing";
        }
        let Some(name) = key.strip_prefix(METADATA) else { return "data" };
        if name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz") {
            "metadata"
        } else if !name.ends_with(".avro") {
            "other"
        } else if name.starts_with("snap-") {
            "manifest_list"
        } else {
            "manifest"
        }
    }

    /// The catalog publishes a version, never an object.
    fn publishes(&self, _key: &str) -> bool {
        false
    }

    async fn create(&self, site: &Site) -> OperationResult<()> {
        let connection = self.connect(site).await?;
        let failed = |error: ::iceberg::Error| connection.failed(&error);
        let id = NestedField::optional(ID_FIELD, ID_NAME, Type::Primitive(PrimitiveType::Long));
        let schema = Schema::builder().with_fields([id.into()]).build().map_err(failed)?;
        let table = identifier(&site.table);
        let creation = TableCreation::builder()
            .name(table.name().to_owned())
            .location(location(&site.table))
            .schema(schema)
            .properties(connection.options.properties.clone())
            .format_version(connection.options.format_version)
            .build();
        ensure_namespace(&*connection.catalog, table.namespace()).await.map_err(failed)?;
        connection.catalog.create_table(table.namespace(), creation).await.map_err(failed)?;
        Ok(())
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let connection = self.connect(site).await?;
        let table =
            connection.catalog.load_table(&identifier(&site.table)).await.map_err(|error| connection.failed(&error))?;
        Ok(Box::new(Handle { connection: Arc::new(connection), table, root: format!("{}/", location(&site.table)) }))
    }

    /// The library's `load_table`: it reads metadata.json and no manifest.
    async fn open_shallow(&self, site: &Site) -> OperationResult<u64> {
        let connection = self.connect(site).await?;
        let table =
            connection.catalog.load_table(&identifier(&site.table)).await.map_err(|error| connection.failed(&error))?;
        Ok(version(table.metadata()))
    }

    fn catalog_description(&self) -> Option<String> {
        self.database.get().map(|database| database.description().to_owned())
    }

    /// Removes this cell's rows from the database, if it was used. Objects in the store stay.
    async fn clean(&self, site: &Site) -> OperationResult<()> {
        match self.database.get() {
            Some(database) => database.clean(&site.writer, storage(site)).await.map_err(OperationError::other),
            None => Ok(()),
        }
    }
}

/// A catalog that one writer opened.
struct Connection {
    catalog: Box<dyn Catalog>,
    database: Arc<SqlDatabase>,
    options: Options,
}

impl Connection {
    fn failed(&self, error: &::iceberg::Error) -> OperationError {
        OperationError { outcome: outcome(error), message: self.database.message(error) }
    }
}

/// An open table.
struct Handle {
    /// Shared by the handles of one process.
    connection: Arc<Connection>,
    table: IcebergTable,
    /// URL of the table, with its trailing slash.
    root: String,
}

impl Handle {
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

    async fn scan(&self) -> ::iceberg::Result<Vec<String>> {
        let mut scan = self.table.scan();
        if let Some(limit) = self.connection.options.scan_concurrency {
            scan = scan.with_concurrency_limit(limit);
        }
        let tasks = scan.build()?.plan_files().await?;
        tasks.map_ok(|task| task.data_file_path).try_collect().await
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let files = files.iter().map(|file| self.described(file)).collect::<OperationResult<_>>()?;
        self.table = self.commit(files).await.map_err(|error| self.connection.failed(&error))?;
        Ok(version(self.table.metadata()))
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        Err(OperationError::other(format!("{} is not supported", change.name())))
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        let table = self.connection.catalog.load_table(self.table.identifier()).await;
        let table = table.map_err(|error| self.connection.failed(&error))?;
        Ok(Box::new(Self { connection: Arc::clone(&self.connection), table, root: self.root.clone() }))
    }

    async fn refresh(&mut self) -> OperationResult<u64> {
        let table = self.connection.catalog.load_table(self.table.identifier()).await;
        self.table = table.map_err(|error| self.connection.failed(&error))?;
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
    /// be a lost commit. Only appends make snapshots here.
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
        let sequence_numbers = snapshots.iter().map(|snapshot| snapshot.sequence_number().unsigned_abs());
        Ok((0..).zip(sequence_numbers).map(number).collect())
    }
}

/// Number of the current snapshot: its sequence number, which version 1 of the format does not have.
fn version(metadata: &TableMetadata) -> u64 {
    match metadata.format_version() {
        FormatVersion::V1 => metadata.snapshots().len() as u64,
        _ => metadata.last_sequence_number().unsigned_abs(),
    }
}

/// Name of the table at a key prefix. The catalog may not take slashes in a name.
fn identifier(table: &str) -> TableIdent {
    TableIdent::new(NamespaceIdent::new(NAMESPACE.to_owned()), table.replace('/', "_"))
}

fn storage(site: &Site) -> Arc<dyn StorageFactory> {
    Arc::new(IcebergStorage::new(Arc::clone(&site.store)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        let lock = include_str!("../../Cargo.lock");
        let (name, version) = LIBRARY.split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "update LIBRARY");
    }

    #[test]
    fn keys_have_the_formats_own_words() {
        let iceberg = Iceberg::new(CatalogSpec::embedded(), "cell");
        for (key, class) in [
            ("metadata/00000-6b1c.metadata.json", "metadata"),
            ("metadata/00001-6b1c.gz.metadata.json", "metadata"),
            ("metadata/00001-6b1c.metadata.json.gz", "metadata"),
            ("metadata/snap-17-0-6b1c.avro", "manifest_list"),
            ("metadata/6b1c-m0.avro", "manifest"),
            ("metadata/6b1c.stats", "other"),
            ("data/00000.parquet", "data"),
            ("metadata/", "listing"),
        ] {
            assert_eq!(iceberg.classify(key), class, "{key}");
            assert!(!iceberg.publishes(key));
        }
    }
}
