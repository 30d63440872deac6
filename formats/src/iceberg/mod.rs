//! How an Iceberg table is created, appended to and loaded: through the public API of the `iceberg` crate and its SQL
//! catalog.
//!
//! An append is a `fast_append` transaction, and the handle goes on with the table that the commit returns, as a
//! long-lived writer's does. Each handle has a catalog, a connection pool and a file client of its own.

mod handle;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::iceberg::io::StorageFactory;
use ::iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use ::iceberg::table::Table as IcebergTable;
use ::iceberg::{Catalog, NamespaceIdent, TableCreation, TableIdent};
use async_trait::async_trait;
use lakemark_catalogs::counted::{ensure_namespace, outcome};
use lakemark_catalogs::{CatalogSpec, SqlDatabase};
use lakemark_core::table::{Format, FormatInfo, OperationError, OperationResult, Site, Table, Unsupported};
use lakemark_stores::adapter::iceberg::{IcebergStorage, location};
use tokio::sync::OnceCell;

use handle::{Handle, version};
use settings::{Options, SETTINGS};

/// Version of the library. It exports none; a test compares this with the lock file.
const LIBRARY: &str = "iceberg 0.10.1";

const NAMESPACE: &str = "lakemark";
const METADATA: &str = "metadata/";

/// Folder between the prefix of the table and the table, where its path is long: 40 characters with its slash.
const LONG_FOLDER: &str = "a-catalog-that-chooses-the-path-0123456/";

const UNSUPPORTED: &[Unsupported] = &[
    Unsupported { what: "overwrite", why: NO_REMOVAL },
    Unsupported { what: "delete", why: NO_REMOVAL },
    Unsupported { what: "compact", why: NO_REMOVAL },
];

/// Why files only come and never go.
const NO_REMOVAL: &str = "the library's transactions have no action that removes data files: fast append is the only one \
                          that makes a snapshot, and a commit cannot be built but by a transaction";

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
            unsupported: UNSUPPORTED,
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key.is_empty() || key.ends_with('/') {
            return "listing";
        }
        let key = key.strip_prefix(LONG_FOLDER).unwrap_or(key);
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
            .location(root(site, connection.options.long_path).trim_end_matches('/').to_owned())
            .schema(schema)
            .properties(connection.options.properties.clone())
            .format_version(connection.options.format_version)
            .build();
        ensure_namespace(&*connection.catalog, table.namespace()).await.map_err(failed)?;
        connection.catalog.create_table(table.namespace(), creation).await.map_err(failed)?;
        Ok(())
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let connection = Arc::new(self.connect(site).await?);
        let root = root(site, connection.options.long_path);
        Ok(Box::new(Handle::load(connection, &identifier(&site.table), root).await?))
    }

    /// The library's `load_table`: it reads metadata.json and no manifest.
    async fn open_shallow(&self, site: &Site) -> OperationResult<u64> {
        let table = self.connect(site).await?.load(&identifier(&site.table)).await?;
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
    /// Reads the newest metadata of a table.
    async fn load(&self, table: &TableIdent) -> OperationResult<IcebergTable> {
        self.catalog.load_table(table).await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &::iceberg::Error) -> OperationError {
        OperationError { outcome: outcome(error), message: self.database.message(error) }
    }
}

/// Name of the table at a key prefix. The catalog may not take slashes in a name.
fn identifier(table: &str) -> TableIdent {
    TableIdent::new(NamespaceIdent::new(NAMESPACE.to_owned()), table.replace('/', "_"))
}

/// URL of the table, with its trailing slash.
fn root(site: &Site, long_path: bool) -> String {
    format!("{}/{}", location(&site.table), if long_path { LONG_FOLDER } else { "" })
}

fn storage(site: &Site) -> Arc<dyn StorageFactory> {
    Arc::new(IcebergStorage::new(Arc::clone(&site.store)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let (name, version) = LIBRARY.split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "update LIBRARY");
    }

    #[test]
    fn a_long_path_is_40_characters_longer() {
        assert_eq!(LONG_FOLDER.len(), 40);
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
            ("a-catalog-that-chooses-the-path-0123456/metadata/6b1c-m0.avro", "manifest"),
            ("a-catalog-that-chooses-the-path-0123456/data/00000.parquet", "data"),
            ("metadata/6b1c.stats", "other"),
            ("data/00000.parquet", "data"),
            ("metadata/", "listing"),
        ] {
            assert_eq!(iceberg.classify(key), class, "{key}");
            assert!(!iceberg.publishes(key));
        }
    }
}
