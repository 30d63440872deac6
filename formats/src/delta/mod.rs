//! How a Delta table is created, appended to and loaded: through the public API of `deltalake`.
//!
//! An append goes through `CommitBuilder` with the post-commit hooks of a normal write, and the handle goes on with the
//! snapshot that the commit returns, as a long-lived writer's does. Operations need a multi-threaded tokio runtime: on
//! a current-thread runtime the library starts a thread with a runtime of its own for each step of a commit.

mod actions;
mod blind;
mod failure;
mod handle;
mod log;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use deltalake::TableProperty;
use deltalake::kernel::{DataType, Snapshot};
use deltalake::logstore::{LogStoreRef, ObjectStoreRef, StorageConfig, default_logstore};
use deltalake::operations::create::CreateBuilder;
use lakemark_core::table::{Format, FormatInfo, OperationError, OperationResult, Site, Table};
use lakemark_stores::adapter::object_store_013::Adapter;
use url::Url;

use blind::BlindHandle;
use failure::failed;
use handle::Handle;
use log::{LOG, commit_version};
use settings::{LIBRARY_CHECKPOINT_INTERVAL, Options, SETTINGS};

/// Version of the library that commits: `deltalake-core 1.1.3`.
pub fn library_version() -> String {
    format!("deltalake-core {}", deltalake::crate_version())
}

/// Checks values of the format's settings; those not given have their defaults.
///
/// # Errors
///
/// One line that names the setting, its value and what is allowed.
pub fn check_settings(settings: &BTreeMap<String, String>) -> Result<(), String> {
    Options::resolve(settings).map(drop)
}

/// Delta Lake, as `deltalake-core` implements it. The store alone decides who publishes a version.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta;

#[async_trait]
impl Format for Delta {
    fn info(&self) -> FormatInfo {
        FormatInfo {
            name: "delta",
            library: library_version(),
            catalogs: &["none"],
            settings: SETTINGS,
            unsupported: &[],
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key.is_empty() || key.ends_with('/') {
            return "listing";
        }
        let Some(name) = key.strip_prefix(LOG) else { return "data" };
        if commit_version(name).is_some() {
            "log"
        } else if name == "_last_checkpoint" {
            "last_checkpoint"
        } else if name.contains(".checkpoint.") || name.starts_with("_sidecars/") {
            "checkpoint"
        } else if name.ends_with(".crc") {
            "crc"
        } else {
            "other"
        }
    }

    fn publishes(&self, key: &str) -> bool {
        key.strip_prefix(LOG).and_then(commit_version).is_some()
    }

    async fn create(&self, site: &Site) -> OperationResult<()> {
        let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
        let mut create =
            CreateBuilder::new().with_log_store(log_store(site)?).with_column("id", DataType::LONG, true, None);
        if options.checkpoint_interval != LIBRARY_CHECKPOINT_INTERVAL {
            create = create.with_configuration_property(
                TableProperty::CheckpointInterval,
                Some(options.checkpoint_interval.to_string()),
            );
        }
        create.await.map_err(failed)?;
        Ok(())
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
        let log_store = log_store(site)?;
        Ok(if options.blind {
            Box::new(BlindHandle::open(log_store, options, site.clone()).await?)
        } else {
            Box::new(Handle::open(log_store, options, site.clone()).await?)
        })
    }

    /// A snapshot without files (`Snapshot::try_new`): the library lists the log from the newest checkpoint and looks for
    /// the protocol and the schema alone. It reads each commit after the checkpoint once, where a full open reads each
    /// twice, and of the checkpoint the footer and the columns of those two actions, never those of the files.
    async fn open_shallow(&self, site: &Site) -> OperationResult<u64> {
        let snapshot = Snapshot::try_new(&*log_store(site)?, None).await.map_err(failed)?;
        Ok(snapshot.version())
    }
}

/// The library's view of the table's place. It is what `deltalake` builds for S3 with conditional writes, its default:
/// a log store that publishes with a conditional PUT, over the bucket and over the same with the table as a prefix.
fn log_store(site: &Site) -> OperationResult<LogStoreRef> {
    // The kernel takes the order of listings from the name of the bucket: directory buckets of S3 Express end so.
    let bucket = if site.store.traits().ordered_list { "lakemark" } else { "lakemark--x-s3" };
    let url = Url::parse(&format!("s3://{bucket}/{}/", site.table)).map_err(OperationError::other)?;
    let config = StorageConfig::default();
    let root: ObjectStoreRef = Arc::new(Adapter::new(Arc::clone(&site.store)));
    let prefixed = config.decorate_store(Arc::clone(&root), &url).map_err(failed)?;
    Ok(default_logstore(Arc::new(prefixed), root, &url, &config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_kinds() {
        let kinds = [
            ("_delta_log/00000000000000000007.json", "log"),
            ("_delta_log/00000000000000000099.checkpoint.parquet", "checkpoint"),
            ("_delta_log/00000000000000000099.checkpoint.0000000001.0000000002.parquet", "checkpoint"),
            ("_delta_log/_sidecars/a.parquet", "checkpoint"),
            ("_delta_log/_last_checkpoint", "last_checkpoint"),
            ("_delta_log/00000000000000000007.crc", "crc"),
            ("_delta_log/7.json", "other"),
            ("_delta_log/", "listing"),
            ("part-00000.parquet", "data"),
        ];
        for (key, kind) in kinds {
            assert_eq!(Delta.classify(key), kind, "{key}");
            assert_eq!(Delta.publishes(key), kind == "log", "{key}");
        }
    }
}
