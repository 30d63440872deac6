//! Iceberg's SQL catalog on SQLite, Postgres or MySQL, opened by each writer for itself.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use iceberg::io::StorageFactory;
use iceberg::{Catalog, CatalogBuilder};
use iceberg_catalog_sql::{SqlBindStyle, SqlCatalog, SqlCatalogBuilder};
use lakemark_core::writer::Writer;
use sqlx::AnyConnection;
use sqlx::any::install_default_drivers;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;
use url::Url;

use crate::{CatalogError, CatalogResult, CatalogSpec, Counted};

/// Characters that the catalog's name, namespace and table columns hold: `VARCHAR(255)`.
pub const NAME_CHARS_MAX: usize = 255;

/// After how many seconds a pool closes an unused connection. The catalog's default is 10 s, which on a clock that skips
/// waiting passes during any longer backoff: each pool would wake the clock every ten seconds, and reconnecting would be
/// measured as if a commit had caused it. The pool's own limit of half an hour on a connection's age cannot be set.
const IDLE_TIMEOUT_S: u32 = 3_600;

/// A memory file system, where SQLite's syncs cost nothing, so that an emulated run does not depend on this disk.
const MEMORY_FOLDER: &str = "/dev/shm";

/// A database that is ready for a cell's catalogs.
///
/// Known limits of `iceberg-catalog-sql` 0.10.1, which every figure carries: it ignores an error of `COMMIT`, so that a
/// compare-and-swap whose `COMMIT` failed is reported as a success (the check after the cell finds the lost commit), and
/// of all failures it lets the library retry only lost compare-and-swaps.
pub struct SqlDatabase {
    spec: CatalogSpec,
    /// With its password: never shown.
    url: String,
    catalog: String,
    description: String,
    /// Removed with the database in it when the cell ends.
    _folder: Option<TempDir>,
}

impl fmt::Debug for SqlDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlDatabase").field("spec", &self.spec).field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl SqlDatabase {
    /// Makes the database and the catalog's tables, unless they exist.
    ///
    /// A new SQLite file is put in WAL mode, in which a commit does not wait for readers; an existing one stays as it
    /// is. `catalog` tells the rows of this cell from those of others in a shared database, so it must be unique.
    /// Catalogs can be opened at the same time afterwards; the tables are made here, by one connection, because in
    /// Postgres two `CREATE TABLE IF NOT EXISTS` at once can fail with a unique violation in its own catalog.
    ///
    /// # Errors
    ///
    /// A bad name, or what the database says.
    pub async fn prepare(
        spec: &CatalogSpec,
        catalog: &str,
        writer: &Arc<Writer>,
        storage: Arc<dyn StorageFactory>,
    ) -> CatalogResult<Self> {
        let chars = catalog.chars().count();
        if catalog.trim().is_empty() || chars > NAME_CHARS_MAX {
            return Err(CatalogError::Name { value: catalog.to_owned() });
        }
        let (url, description, folder) = {
            let _call = writer.catalog_call();
            match spec.server_url() {
                Some(url) => (url.to_owned(), describe_server(spec, url).await?, None),
                None => prepare_sqlite(spec).await?,
            }
        };
        let database = Self { spec: spec.clone(), url, catalog: catalog.to_owned(), description, _folder: folder };
        // Other processes may be making the two tables, and be first at either: what one lost exists at the next try.
        for _ in 0..2 {
            if database.open(writer, storage.clone(), 1).await.is_ok() {
                return Ok(database);
            }
        }
        database.open(writer, storage, 1).await?;
        Ok(database)
    }

    /// Opens the catalog for a writer, with a connection pool of its own.
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn open(
        &self,
        writer: &Arc<Writer>,
        storage: Arc<dyn StorageFactory>,
        pool_connections: u32,
    ) -> CatalogResult<Counted<SqlCatalog>> {
        let _call = writer.catalog_call();
        let bind_style = match self.spec.kind() {
            "postgres" => SqlBindStyle::DollarNumeric,
            _ => SqlBindStyle::QMark,
        };
        let catalog = SqlCatalogBuilder::default()
            .uri(&self.url)
            .sql_bind_style(bind_style)
            .prop("pool.max-connections", pool_connections.to_string())
            .prop("pool.idle-timeout", IDLE_TIMEOUT_S.to_string())
            .with_storage_factory(storage)
            .load(&self.catalog, HashMap::new())
            .await
            .map_err(|error| self.failed("open it", &error))?;
        Ok(Counted::new(catalog, writer.clone()))
    }

    /// Removes every table and namespace of this cell's catalog from the database. Objects in the store stay.
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn clean(&self, writer: &Arc<Writer>, storage: Arc<dyn StorageFactory>) -> CatalogResult<()> {
        let failed = |error: iceberg::Error| self.failed("remove the cell's rows", &error);
        let catalog = self.open(writer, storage, 1).await?;
        for namespace in catalog.list_namespaces(None).await.map_err(failed)? {
            for table in catalog.list_tables(&namespace).await.map_err(failed)? {
                catalog.drop_table(&table).await.map_err(failed)?;
            }
            catalog.drop_namespace(&namespace).await.map_err(failed)?;
        }
        Ok(())
    }

    /// What the database is, for the record: its version, and how durable a commit is.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// A message of the library or of the database, on one line and without the password.
    pub fn message(&self, error: &dyn fmt::Display) -> String {
        self.spec.scrub(&error.to_string())
    }

    fn failed(&self, action: &'static str, error: &dyn fmt::Display) -> CatalogError {
        failed(&self.spec, action, error)
    }
}

fn failed(spec: &CatalogSpec, action: &'static str, error: &dyn fmt::Display) -> CatalogError {
    CatalogError::Failed { catalog: spec.to_string(), action, reason: spec.scrub(&error.to_string()) }
}

/// URL and description of a SQLite file, and the folder that it goes with if the user named none.
async fn prepare_sqlite(spec: &CatalogSpec) -> CatalogResult<(String, String, Option<TempDir>)> {
    let (path, folder) = match spec.sqlite_path() {
        Some(path) => {
            let path = std::path::absolute(path).map_err(|error| failed(spec, "find its file", &error))?;
            (path, None)
        }
        None => {
            let mut builder = tempfile::Builder::new();
            builder.prefix("lakemark-");
            let folder = match builder.tempdir_in(Path::new(MEMORY_FOLDER)) {
                Ok(folder) => folder,
                Err(_) => builder.tempdir().map_err(|error| failed(spec, "make its folder", &error))?,
            };
            (folder.path().join("catalog.db"), Some(folder))
        }
    };
    let mut options = SqliteConnectOptions::new().filename(&path);
    if !path.exists() {
        options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    }
    let open = async {
        let mut connection: SqliteConnection = options.connect().await?;
        let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut connection).await?;
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await?;
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(format!("SQLite {version}, journal_mode={journal}, synchronous={synchronous}"))
    };
    let description = open.await.map_err(|error| failed(spec, "open its file", &error))?;
    let place = if path.starts_with(MEMORY_FOLDER) { "in memory" } else { "on disk" };
    // A file URL is encoded as a SQLite URL must be.
    let url = Url::from_file_path(&path).map_err(|()| failed(spec, "name its file", &path.display()))?;
    Ok((format!("sqlite{}", url.as_str().trim_start_matches("file")), format!("{description}, {place}"), folder))
}

async fn describe_server(spec: &CatalogSpec, url: &str) -> CatalogResult<String> {
    install_default_drivers();
    let (name, durability) = match spec.kind() {
        "postgres" => ("synchronous_commit", "SELECT current_setting('synchronous_commit')"),
        _ => ("innodb_flush_log_at_trx_commit", "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)"),
    };
    let ask = async {
        let mut connection = AnyConnection::connect(url).await?;
        let version: String = sqlx::query_scalar("SELECT version()").fetch_one(&mut connection).await?;
        let durability: String = sqlx::query_scalar(durability).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(format!("{} {version}, {name}={durability}", spec.kind()))
    };
    ask.await.map_err(|error| failed(spec, "connect", &error))
}

#[cfg(test)]
mod tests {
    use iceberg::io::MemoryStorageFactory;
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
    use iceberg::{NamespaceIdent, TableCreation};
    use lakemark_core::writer::Scope;

    use super::*;
    use crate::counted::ensure_namespace;

    fn storage() -> Arc<dyn StorageFactory> {
        Arc::new(MemoryStorageFactory)
    }

    async fn create_table(catalog: &dyn Catalog) {
        let namespace = NamespaceIdent::new("n".into());
        ensure_namespace(catalog, &namespace).await.unwrap();
        let field = NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long));
        let schema = Schema::builder().with_fields([field.into()]).build().unwrap();
        let creation = TableCreation::builder().name("t".into()).location("memory://w/t".into()).schema(schema).build();
        catalog.create_table(&namespace, creation).await.unwrap();
    }

    #[tokio::test]
    async fn writers_share_the_embedded_database_and_it_goes_with_the_cell() {
        let writer = Writer::new(0, Scope::plain());
        let database = SqlDatabase::prepare(&CatalogSpec::embedded(), "cell", &writer, storage()).await.unwrap();
        assert!(database.description().contains("journal_mode=wal"), "{}", database.description());
        let folder = database._folder.as_ref().unwrap().path().to_owned();
        let first = database.open(&writer, storage(), 1).await.unwrap();
        let second = database.open(&Writer::new(1, Scope::plain()), storage(), 1).await.unwrap();
        create_table(&first).await;
        let namespaces = second.list_namespaces(None).await.unwrap();
        assert_eq!(second.list_tables(&namespaces[0]).await.unwrap().len(), 1);
        drop((first, second, database));
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn a_shared_database_keeps_cells_apart_and_each_is_cleaned_alone() {
        let folder = tempfile::tempdir().unwrap();
        // A name that a URL must encode.
        let path = folder.path().join("a b?#%.db");
        let spec: CatalogSpec = format!("sqlite:{}", path.display()).parse().unwrap();
        let writer = Writer::new(0, Scope::plain());
        let mut catalogs = Vec::new();
        for name in ["one", "two"] {
            let database = SqlDatabase::prepare(&spec, name, &writer, storage()).await.unwrap();
            let catalog = database.open(&writer, storage(), 1).await.unwrap();
            create_table(&catalog).await;
            catalogs.push((database, catalog));
        }
        assert!(path.exists());
        catalogs[0].0.clean(&writer, storage()).await.unwrap();
        assert_eq!(catalogs[0].1.list_namespaces(None).await.unwrap(), []);
        assert_eq!(catalogs[1].1.list_namespaces(None).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_failure_is_one_line_without_the_password() {
        // The mode of TLS is checked before anything is sent, and the error quotes it.
        let spec: CatalogSpec = "postgres://me:s3cret@127.0.0.1:1/db?sslmode=s3cret".parse().unwrap();
        let error = SqlDatabase::prepare(&spec, "cell", &Writer::new(0, Scope::plain()), storage()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("catalog postgres://me:***@127.0.0.1:1/db?***: cannot connect: "), "{error}");
        assert!(!error.contains("s3cret") && !error.contains('\n'), "{error}");
    }

    #[tokio::test]
    async fn a_name_must_fit_its_column() {
        for name in [" ".to_owned(), "n".repeat(NAME_CHARS_MAX + 1)] {
            let result =
                SqlDatabase::prepare(&CatalogSpec::embedded(), &name, &Writer::new(0, Scope::plain()), storage()).await;
            assert_eq!(result.unwrap_err(), CatalogError::Name { value: name });
        }
    }
}
