//! Records every compare-and-swap of a catalog, and holds the clock while the catalog works.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{Catalog, Error, ErrorKind, Namespace, NamespaceIdent, Result, TableCommit, TableCreation, TableIdent};
use lakemark_core::record::Outcome;
use lakemark_core::store::StoreError;
use lakemark_core::writer::Writer;

/// One writer's view of a catalog.
///
/// Every call is one of the writer's catalog calls, so the clock stands still while it waits for the database alone and
/// runs while the library, inside the call, waits for the store. Each `update_table` is one attempt: the library's
/// retry loop is above, so that attempts are counted as for a format whose store decides.
#[derive(Debug)]
pub struct Counted<C> {
    catalog: C,
    writer: Arc<Writer>,
}

impl<C: Catalog> Counted<C> {
    /// The catalog, recorded for this writer.
    pub fn new(catalog: C, writer: Arc<Writer>) -> Self {
        Self { catalog, writer }
    }
}

/// Class of a failed commit, by what the library reports and by what caused it.
///
/// A conflict is a lost compare-and-swap or a requirement that no longer holds. For other failures the cause decides:
/// the store's error, or a connection that broke, after which it is unknown whether the database did what was asked.
pub fn outcome(error: &Error) -> Outcome {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(error) = current.downcast_ref::<Error>()
            && error.kind() == ErrorKind::CatalogCommitConflicts
        {
            return Outcome::Conflict;
        }
        if let Some(error) = current.downcast_ref::<StoreError>() {
            return error.operation_outcome();
        }
        if let Some(error) = current.downcast_ref::<sqlx::Error>() {
            return match error {
                sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => Outcome::Unknown,
                _ => Outcome::Error,
            };
        }
        cause = current.source();
    }
    Outcome::Error
}

/// Creates a namespace unless it is there. Another process may create it at the same moment.
///
/// # Errors
///
/// What the catalog says, if the namespace does not exist afterwards.
pub async fn ensure_namespace(catalog: &dyn Catalog, namespace: &NamespaceIdent) -> Result<()> {
    if catalog.namespace_exists(namespace).await? {
        return Ok(());
    }
    if let Err(error) = catalog.create_namespace(namespace, HashMap::new()).await
        && !catalog.namespace_exists(namespace).await?
    {
        return Err(error);
    }
    Ok(())
}

#[async_trait]
impl<C: Catalog> Catalog for Counted<C> {
    async fn list_namespaces(&self, parent: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        let _call = self.writer.catalog_call();
        self.catalog.list_namespaces(parent).await
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<Namespace> {
        let _call = self.writer.catalog_call();
        self.catalog.create_namespace(namespace, properties).await
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> Result<Namespace> {
        let _call = self.writer.catalog_call();
        self.catalog.get_namespace(namespace).await
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> Result<bool> {
        let _call = self.writer.catalog_call();
        self.catalog.namespace_exists(namespace).await
    }

    async fn update_namespace(&self, namespace: &NamespaceIdent, properties: HashMap<String, String>) -> Result<()> {
        let _call = self.writer.catalog_call();
        self.catalog.update_namespace(namespace, properties).await
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        let _call = self.writer.catalog_call();
        self.catalog.drop_namespace(namespace).await
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        let _call = self.writer.catalog_call();
        self.catalog.list_tables(namespace).await
    }

    async fn create_table(&self, namespace: &NamespaceIdent, creation: TableCreation) -> Result<Table> {
        let _call = self.writer.catalog_call();
        self.catalog.create_table(namespace, creation).await
    }

    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        let _call = self.writer.catalog_call();
        self.catalog.load_table(table).await
    }

    async fn drop_table(&self, table: &TableIdent) -> Result<()> {
        let _call = self.writer.catalog_call();
        self.catalog.drop_table(table).await
    }

    async fn purge_table(&self, table: &TableIdent) -> Result<()> {
        let _call = self.writer.catalog_call();
        self.catalog.purge_table(table).await
    }

    async fn table_exists(&self, table: &TableIdent) -> Result<bool> {
        let _call = self.writer.catalog_call();
        self.catalog.table_exists(table).await
    }

    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        let _call = self.writer.catalog_call();
        self.catalog.rename_table(from, to).await
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> Result<Table> {
        let _call = self.writer.catalog_call();
        self.catalog.register_table(table, metadata_location).await
    }

    async fn update_table(&self, commit: TableCommit) -> Result<Table> {
        let call = self.writer.catalog_call();
        let result = self.catalog.update_table(commit).await;
        call.attempted(match &result {
            Ok(_) => Outcome::Ok,
            Err(error) => outcome(error),
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use iceberg::memory::{MEMORY_CATALOG_WAREHOUSE, MemoryCatalogBuilder};
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
    use iceberg::transaction::{ApplyTransactionAction, Transaction};
    use iceberg::{CatalogBuilder, MemoryCatalog};
    use lakemark_core::record::{Attempt, Layer};
    use lakemark_core::writer::Scope;

    use super::*;

    async fn memory(writer: &Arc<Writer>) -> Counted<MemoryCatalog> {
        let properties = HashMap::from([(MEMORY_CATALOG_WAREHOUSE.to_owned(), "memory://w".to_owned())]);
        let catalog = MemoryCatalogBuilder::default().load("m", properties).await.unwrap();
        Counted::new(catalog, writer.clone())
    }

    async fn table(catalog: &dyn Catalog) -> Table {
        let namespace = NamespaceIdent::new("n".into());
        ensure_namespace(catalog, &namespace).await.unwrap();
        ensure_namespace(catalog, &namespace).await.unwrap();
        let field = NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long));
        let schema = Schema::builder().with_fields([field.into()]).build().unwrap();
        let creation = TableCreation::builder().name("t".into()).schema(schema).build();
        catalog.create_table(&namespace, creation).await.unwrap()
    }

    async fn set_property(catalog: &dyn Catalog, table: &Table) -> Result<Table> {
        let transaction = Transaction::new(table);
        let action = transaction.update_table_properties().set("k".into(), "v".into());
        action.apply(transaction)?.commit(catalog).await
    }

    fn outcomes(attempts: &[Attempt]) -> Vec<(Layer, Outcome)> {
        attempts.iter().map(|attempt| (attempt.layer, attempt.outcome)).collect()
    }

    #[tokio::test]
    async fn a_commit_is_one_attempt_and_other_calls_are_none() {
        let writer = Writer::new(0, Scope::plain());
        let catalog = memory(&writer).await;
        let table = table(&catalog).await;
        assert_eq!(outcomes(&writer.finish_operation().attempts), []);
        set_property(&catalog, &table).await.unwrap();
        assert_eq!(outcomes(&writer.finish_operation().attempts), [(Layer::Catalog, Outcome::Ok)]);
    }

    /// Loses the first compare-and-swaps, as if another writer had been first.
    #[derive(Debug)]
    struct Losing {
        catalog: Counted<MemoryCatalog>,
        left: std::sync::atomic::AtomicU32,
    }

    /// Forwards what the test needs and refuses the rest.
    #[async_trait]
    impl Catalog for Losing {
        async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
            Err(refused())
        }
        async fn create_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> Result<Namespace> {
            Err(refused())
        }
        async fn get_namespace(&self, _: &NamespaceIdent) -> Result<Namespace> {
            Err(refused())
        }
        async fn namespace_exists(&self, _: &NamespaceIdent) -> Result<bool> {
            Err(refused())
        }
        async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> Result<()> {
            Err(refused())
        }
        async fn drop_namespace(&self, _: &NamespaceIdent) -> Result<()> {
            Err(refused())
        }
        async fn list_tables(&self, _: &NamespaceIdent) -> Result<Vec<TableIdent>> {
            Err(refused())
        }
        async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> Result<Table> {
            Err(refused())
        }
        async fn load_table(&self, table: &TableIdent) -> Result<Table> {
            self.catalog.catalog.load_table(table).await
        }
        async fn drop_table(&self, _: &TableIdent) -> Result<()> {
            Err(refused())
        }
        async fn purge_table(&self, _: &TableIdent) -> Result<()> {
            Err(refused())
        }
        async fn table_exists(&self, _: &TableIdent) -> Result<bool> {
            Err(refused())
        }
        async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> Result<()> {
            Err(refused())
        }
        async fn register_table(&self, _: &TableIdent, _: String) -> Result<Table> {
            Err(refused())
        }
        async fn update_table(&self, commit: TableCommit) -> Result<Table> {
            use std::sync::atomic::Ordering;
            if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                return Err(Error::new(ErrorKind::CatalogCommitConflicts, "lost").with_retryable(true));
            }
            self.catalog.catalog.update_table(commit).await
        }
    }

    fn refused() -> Error {
        Error::new(ErrorKind::FeatureUnsupported, "not in this test")
    }

    #[tokio::test]
    async fn each_of_the_librarys_tries_is_an_attempt() {
        let writer = Writer::new(0, Scope::plain());
        let inner = memory(&writer).await;
        let table = table(&inner).await;
        let losing = Counted::new(Losing { catalog: inner, left: 2.into() }, writer.clone());
        writer.finish_operation();
        set_property(&losing, &table).await.unwrap();
        assert_eq!(
            outcomes(&writer.finish_operation().attempts),
            [(Layer::Catalog, Outcome::Conflict), (Layer::Catalog, Outcome::Conflict), (Layer::Catalog, Outcome::Ok)]
        );
    }

    #[test]
    fn a_failure_has_the_class_of_its_cause() {
        let because = |cause: StoreError| {
            let inner = Error::new(ErrorKind::Unexpected, "request failed").with_source(cause);
            outcome(&Error::new(ErrorKind::Unexpected, "cannot commit").with_source(Arc::new(inner)))
        };
        let key = || "k".to_owned();
        assert_eq!(because(StoreError::Throttled { key: key(), status: 503 }), Outcome::Throttled);
        assert_eq!(because(StoreError::Unknown { key: key(), reason: String::new() }), Outcome::Unknown);
        assert_eq!(because(StoreError::Failed { key: key(), reason: String::new() }), Outcome::Error);
        assert_eq!(because(StoreError::NotFound { key: key() }), Outcome::Error);
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let sql = |error: sqlx::Error| outcome(&Error::new(ErrorKind::Unexpected, "sql").with_source(error));
        assert_eq!(sql(sqlx::Error::Io(broken)), Outcome::Unknown);
        assert_eq!(sql(sqlx::Error::PoolTimedOut), Outcome::Error);
        assert_eq!(outcome(&Error::new(ErrorKind::CatalogCommitConflicts, "lost")), Outcome::Conflict);
        assert_eq!(outcome(&Error::new(ErrorKind::DataInvalid, "bad")), Outcome::Error);
    }
}
