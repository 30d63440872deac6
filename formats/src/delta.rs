//! How a Delta table is created, appended to and loaded: through the public API of `deltalake`.
//!
//! An append goes through `CommitBuilder` with the post-commit hooks of a normal write, and the handle goes on with the
//! snapshot that the commit returns, as a long-lived writer's does. Operations need a multi-threaded tokio runtime: on
//! a current-thread runtime the library starts a thread with a runtime of its own for each step of a commit.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use deltalake::kernel::transaction::{CommitBuilder, CommitProperties, TableReference, TransactionError};
use deltalake::kernel::{Action, Add, DataType, Snapshot};
use deltalake::logstore::{LogStoreRef, ObjectStoreRef, StorageConfig, default_logstore};
use deltalake::operations::create::CreateBuilder;
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::{DeltaTable, DeltaTableError, TableProperty};
use futures::TryStreamExt;
use lakemark_core::clock;
use lakemark_core::record::Outcome;
use lakemark_core::store::{ListQuery, StoreError};
use lakemark_core::table::{
    ActiveFiles, Change, DataFile, Format, FormatInfo, OperationError, OperationResult, Setting, Site, Table,
};
use lakemark_stores::adapter::object_store_013::Adapter;
use url::Url;

const LOG: &str = "_delta_log/";

/// Commits between checkpoints, if the table does not say.
const LIBRARY_CHECKPOINT_INTERVAL: u64 = 100;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "checkpoint-interval",
        default: "100",
        help: "commits between checkpoints (delta.checkpointInterval): a whole number from 1; the library's is 100",
    },
    Setting {
        name: "max-retries",
        default: "15",
        help: "tries of a commit after one that lost: a whole number from 0; the library's is 15",
    },
    Setting {
        name: "statistics",
        default: "none",
        help: "statistics in each add action: none, or minmax (row count, minimum, maximum and null count)",
    },
    Setting {
        name: "post-commit-checkpoint",
        default: "true",
        help: "whether the writer whose commit completes an interval writes the checkpoint: true or false; \
               the library's is true",
    },
    Setting {
        name: "cleanup-expired-logs",
        default: "true",
        help: "whether a writer lists the whole log after each commit and removes what is older than 30 days: \
               true or false; the library's is true",
    },
];

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

/// The settings, read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Options {
    checkpoint_interval: u64,
    max_retries: usize,
    statistics: bool,
    post_commit_checkpoint: bool,
    cleanup_expired_logs: bool,
}

impl Options {
    fn resolve(settings: &BTreeMap<String, String>) -> Result<Self, String> {
        let value = |name: &str| {
            let default = SETTINGS.iter().find(|setting| setting.name == name).map_or("", |setting| setting.default);
            settings.get(name).map_or(default, String::as_str)
        };
        let checkpoint_interval = parsed("checkpoint-interval", value("checkpoint-interval"), "a whole number from 1")?;
        if checkpoint_interval == 0 {
            return Err(refused("checkpoint-interval", "0", "a whole number from 1"));
        }
        Ok(Self {
            checkpoint_interval,
            max_retries: parsed("max-retries", value("max-retries"), "a whole number from 0")?,
            statistics: match value("statistics") {
                "none" => false,
                "minmax" => true,
                other => return Err(refused("statistics", other, "none or minmax")),
            },
            post_commit_checkpoint: parsed("post-commit-checkpoint", value("post-commit-checkpoint"), "true or false")?,
            cleanup_expired_logs: parsed("cleanup-expired-logs", value("cleanup-expired-logs"), "true or false")?,
        })
    }

    /// What a commit is made with: the library's defaults, but for what is set otherwise.
    fn commit_properties(&self) -> CommitProperties {
        let properties = CommitProperties::default()
            .with_max_retries(self.max_retries)
            .with_create_checkpoint(self.post_commit_checkpoint);
        if self.cleanup_expired_logs { properties } else { properties.with_cleanup_expired_logs(Some(false)) }
    }

    fn add_action(&self, file: &DataFile) -> Action {
        Action::Add(Add {
            path: file.path.clone(),
            size: i64::try_from(file.size_bytes).unwrap_or(i64::MAX),
            modification_time: clock::wall_ms(),
            data_change: true,
            stats: self.statistics.then(|| statistics(file)),
            ..Add::default()
        })
    }
}

fn parsed<T: FromStr>(name: &str, value: &str, allowed: &str) -> Result<T, String> {
    value.parse().map_err(|_| refused(name, value, allowed))
}

fn refused(name: &str, value: &str, allowed: &str) -> String {
    format!("{name} is `{value}`; it must be {allowed}")
}

/// Statistics of a file, as the protocol's "Per-file Statistics" section has them.
fn statistics(file: &DataFile) -> String {
    match file.bounds {
        Some((min, max)) => serde_json::json!({
            "numRecords": file.rows,
            "minValues": { "id": min },
            "maxValues": { "id": max },
            "nullCount": { "id": 0 },
        }),
        None => serde_json::json!({ "numRecords": file.rows }),
    }
    .to_string()
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
        let mut table = DeltaTable::new(log_store(site)?);
        table.load().await.map_err(failed)?;
        Ok(Box::new(Handle { table, options, site: site.clone() }))
    }

    /// A snapshot without files: the library reads the log for the protocol and the schema alone.
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

/// An open table.
struct Handle {
    table: DeltaTable,
    options: Options,
    site: Site,
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let actions = files.iter().map(|file| self.options.add_action(file)).collect();
        let operation = DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None };
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
        let finished = published.await.map_err(|error| OperationError {
            outcome: Outcome::Unknown,
            message: format!("version {version} was published, then a post-commit step failed: {}", one_line(&error)),
        })?;
        self.table.state = Some(finished.snapshot);
        Ok(version)
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        Err(OperationError::other(format!("{} is not supported", change.name())))
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        let mut table = DeltaTable::new(self.table.log_store());
        table.load().await.map_err(failed)?;
        Ok(Box::new(Self { table, options: self.options, site: self.site.clone() }))
    }

    async fn refresh(&mut self) -> OperationResult<u64> {
        self.table.update_state().await.map_err(failed)?;
        Ok(self.table.snapshot().map_err(failed)?.version())
    }

    /// The library has the list in memory: loading reads the newest checkpoint and each commit after it and keeps the
    /// add actions that are still active (`EagerSnapshot`), and an append brings them up to its own version. What is
    /// left is to walk them, which a snapshot without the list would answer by reading the log.
    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let version = self.table.snapshot().map_err(failed)?.version();
        let adds = self.table.get_active_add_actions_by_partitions(&[]);
        let paths = adds.map_ok(|add| add.path().into_owned()).try_collect().await.map_err(failed)?;
        Ok(ActiveFiles { version, paths })
    }

    /// Found by listing the log, which is independent of the library and has no need to read each commit.
    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        let newest = self.table.snapshot().map_err(failed)?.version();
        let prefix = format!("{}/{LOG}", self.site.table);
        let mut query = ListQuery { prefix, ..ListQuery::default() };
        let mut versions = Vec::new();
        loop {
            let page = self.site.store.list(&query).await.map_err(OperationError::other)?;
            let names = page.objects.iter().filter_map(|object| object.key.strip_prefix(&query.prefix));
            // Version 0 creates the table; all others append.
            versions.extend(names.filter_map(commit_version).filter(|version| (1..=newest).contains(version)));
            match page.next {
                Some(token) => query.token = Some(token),
                None => break,
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }
}

/// Version that the name of an object in the log stands for: 20 digits and `.json`.
fn commit_version(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    let is_version = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_version.then(|| digits.parse().ok()).flatten()
}

fn failed(error: DeltaTableError) -> OperationError {
    OperationError { outcome: outcome_of(&error), message: one_line(&error) }
}

fn one_line(error: &impl Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn outcome_of(error: &DeltaTableError) -> Outcome {
    use TransactionError::{CommitConflict, MaxCommitAttempts, VersionAlreadyExists};
    match error {
        DeltaTableError::VersionAlreadyExists(_)
        | DeltaTableError::Transaction { source: CommitConflict(_) | MaxCommitAttempts(_) | VersionAlreadyExists(_) } =>
        {
            return Outcome::Conflict;
        }
        _ => {}
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<StoreError>() {
            return match error {
                StoreError::Precondition { .. } => Outcome::Conflict,
                StoreError::Throttled { .. } => Outcome::Throttled,
                StoreError::Unknown { .. } => Outcome::Unknown,
                StoreError::NotFound { .. } | StoreError::Unsupported { .. } | StoreError::Failed { .. } => {
                    Outcome::Error
                }
            };
        }
        cause = error.source();
    }
    // Looking for the newest version, the library keeps only the text of what went wrong. A listing that got no answer
    // had no effect, so that throttling is all there is to find.
    if error.to_string().contains("throttled on ") { Outcome::Throttled } else { Outcome::Error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

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

    #[test]
    fn defaults_are_the_librarys() -> Result<(), String> {
        let options = Options::resolve(&BTreeMap::new())?;
        assert_eq!(options.checkpoint_interval, LIBRARY_CHECKPOINT_INTERVAL);
        let [ours, librarys] = [options.commit_properties(), CommitProperties::default()];
        assert_eq!(format!("{ours:?}"), format!("{librarys:?}"));
        Ok(())
    }

    #[test]
    fn refused_settings_say_what_is_allowed() {
        for (name, value, message) in [
            ("checkpoint-interval", "0", "checkpoint-interval is `0`; it must be a whole number from 1"),
            ("max-retries", "-1", "max-retries is `-1`; it must be a whole number from 0"),
            ("statistics", "all", "statistics is `all`; it must be none or minmax"),
            ("cleanup-expired-logs", "no", "cleanup-expired-logs is `no`; it must be true or false"),
        ] {
            assert_eq!(check_settings(&with(name, value)), Err(message.to_owned()));
        }
        assert_eq!(check_settings(&with("max-retries", "0")), Ok(()));
    }

    #[test]
    fn statistics_follow_the_protocol() {
        let mut file = DataFile { path: "a".into(), size_bytes: 1, rows: 5, bounds: Some((-1, 3)) };
        let all = r#"{"maxValues":{"id":3},"minValues":{"id":-1},"nullCount":{"id":0},"numRecords":5}"#;
        assert_eq!(statistics(&file), all);
        file.bounds = None;
        assert_eq!(statistics(&file), r#"{"numRecords":5}"#);
    }

    #[test]
    fn failures_have_their_classes() {
        let source = StoreError::Unknown { key: "a".into(), reason: "time-out".into() };
        let throttled = StoreError::Throttled { key: "a".into(), status: 503 };
        let stored = |source: StoreError| DeltaTableError::ObjectStore {
            source: object_store_013::Error::Generic { store: "s", source: Box::new(source) },
        };
        let lost = DeltaTableError::Transaction { source: TransactionError::MaxCommitAttempts(15) };
        assert_eq!(outcome_of(&lost), Outcome::Conflict);
        assert_eq!(outcome_of(&stored(source)), Outcome::Unknown);
        assert_eq!(outcome_of(&stored(throttled.clone())), Outcome::Throttled);
        assert_eq!(outcome_of(&DeltaTableError::Generic(throttled.to_string())), Outcome::Throttled);
        assert_eq!(outcome_of(&DeltaTableError::NotInitialized), Outcome::Error);
    }
}
