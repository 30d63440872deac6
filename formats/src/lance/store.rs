//! The harness' store in the place of the library's own client.

use std::sync::Arc;

use ::lance::session::{CacheSpec, Session};
use async_trait::async_trait;
use lakemark_core::store::Store;
use lakemark_core::table::{OperationError, OperationResult};
use lakemark_stores::adapter::object_store_014::Adapter;
use lance_io::object_store::throttle::{AimdThrottleConfig, AimdThrottledStore};
use lance_io::object_store::{
    DEFAULT_CLOUD_IO_PARALLELISM, DEFAULT_DOWNLOAD_RETRY_COUNT, ObjectStore, ObjectStoreParams, ObjectStoreProvider,
    ObjectStoreRegistry,
};
use object_store_014::DynObjectStore;
use url::Url;

use super::settings::{Options, VersionHint};

/// Scheme under which the library finds the store. It decides the commit handler: a conditional PUT of the manifest,
/// as on S3, GCS and Azure.
const SCHEME: &str = "s3";

/// Address of the table. The bucket is a name only: keys in the store start with the table's prefix.
pub(super) fn uri(table: &str) -> OperationResult<Url> {
    let mut uri = Url::parse(&format!("{SCHEME}://lakemark")).map_err(OperationError::other)?;
    uri.path_segments_mut()
        .map_err(|()| OperationError::other(format!("table {table} has no address")))?
        .extend(table.split('/'));
    Ok(uri)
}

/// What a new process has: empty caches, and a client of the store.
pub(super) fn session(store: Arc<dyn Store>, options: &Options) -> Arc<Session> {
    let registry = ObjectStoreRegistry::empty();
    // The library writes and reads its version hint where listings have no order, and nowhere else.
    let ordered_list = store.traits().ordered_list && options.version_hint != VersionHint::On;
    registry.insert(SCHEME, Arc::new(StoreProvider { store, ordered_list }));
    Arc::new(Session::with_cache_backends(CacheSpec::Default, options.metadata_cache(), Arc::new(registry)))
}

/// Gives the library the harness' store in the place of its own S3 client, below the layers that it puts around that.
#[derive(Debug)]
struct StoreProvider {
    store: Arc<dyn Store>,
    /// What the library is told of the order of listings.
    ordered_list: bool,
}

#[async_trait]
impl ObjectStoreProvider for StoreProvider {
    async fn new_store(&self, base_path: Url, params: &ObjectStoreParams) -> lance_core::Result<ObjectStore> {
        let mut client: Arc<DynObjectStore> = Arc::new(Adapter::new(self.store.clone()));
        // The library's S3 client is rate-limited by what it observes (AIMD), one limit for each process and bucket.
        // A writer here stands for a process, so each has its own.
        let config = AimdThrottleConfig::from_storage_options(params.storage_options())?;
        if !config.is_disabled() {
            client = Arc::new(AimdThrottledStore::new(client, config)?);
        }
        let mut store = ObjectStore::new(
            client.clone(),
            base_path,
            params.block_size,
            None,
            params.use_constant_size_upload_parts,
            self.ordered_list,
            DEFAULT_CLOUD_IO_PARALLELISM,
            DEFAULT_DOWNLOAD_RETRY_COUNT,
            params.storage_options(),
        );
        // The constructor adds a layer that counts requests, and the registry adds it again: once is what S3 gets.
        store.inner = client;
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_start_with_the_tables_prefix() {
        for table in ["bench/0001/table", "a table/50%/#1?"] {
            // How the library's stores read the path out of an address.
            let path = object_store_014::path::Path::from_url_path(uri(table).unwrap().path()).unwrap();
            assert_eq!(path.as_ref(), table);
        }
    }
}
