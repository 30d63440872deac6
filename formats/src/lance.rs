//! Lance: appends and loads through the `lance` crate, on the harness' store.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use ::lance::Dataset;
use ::lance::dataset::CommitBuilder;
use ::lance::dataset::builder::DatasetBuilder;
use ::lance::dataset::transaction::{Operation, Transaction};
use ::lance::deps::arrow_schema::{DataType, Field, Schema as ArrowSchema};
use ::lance::session::{CacheSpec, Session};
use async_trait::async_trait;
use lakemark_core::record::Outcome;
use lakemark_core::store::{ListQuery, Store, StoreError};
use lakemark_core::table::{
    ActiveFiles, Change, DataFile, Format, FormatInfo, OperationError, OperationResult, Setting, Site, Table,
    Unsupported,
};
use lakemark_stores::adapter::object_store_014::Adapter;
use lance_core::Error as LanceError;
use lance_core::datatypes::Schema;
use lance_file::version::LanceFileVersion;
use lance_io::object_store::throttle::{AimdThrottleConfig, AimdThrottledStore};
use lance_io::object_store::{
    DEFAULT_CLOUD_IO_PARALLELISM, DEFAULT_DOWNLOAD_RETRY_COUNT, ObjectStore, ObjectStoreParams, ObjectStoreProvider,
    ObjectStoreRegistry,
};
use lance_table::format::{Fragment, WriterVersion};
use object_store_014::DynObjectStore;
use url::Url;

/// Scheme under which the library finds the store. It decides the commit handler: a conditional PUT of the manifest,
/// as on S3, GCS and Azure.
const SCHEME: &str = "s3";

const VERSIONS: &str = "_versions/";
const TRANSACTIONS: &str = "_transactions/";
const DATA: &str = "data/";
const VERSION_HINT: &str = "_versions/latest_version_hint.json";

/// Version that creating the table publishes.
const CREATED_VERSION: u64 = 1;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "max-retries",
        default: "20",
        help: "tries of a commit in all, the first included (0 counts as 1)",
    },
    Setting {
        name: "retry-timeout-s",
        default: "30",
        help: "seconds after the first try in which lost commits are tried again; takes the place of \
               LANCE_COMMIT_RETRY_TIMEOUT_SECS",
    },
    Setting { name: "stable-row-ids", default: "false", help: "create the table with stable row ids: true or false" },
    Setting { name: "statistics", default: "none", help: "none: a Lance manifest holds no column statistics" },
];

const UNSUPPORTED: &[Unsupported] =
    &[Unsupported { what: "shallow_open", why: "a Lance manifest holds the list of fragments: no open is without it" }];

/// The Lance table format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lance;

/// Library that commits, with its version. All crates of the library are released together under one version; this
/// is the one that it writes into manifests.
pub fn library_version() -> String {
    let WriterVersion { library, version, prerelease, .. } = WriterVersion::default();
    match prerelease {
        Some(prerelease) => format!("{library} {version}-{prerelease}"),
        None => format!("{library} {version}"),
    }
}

/// Checks values of the format's settings; those not given have their defaults.
///
/// # Errors
///
/// One line that names the setting, its value and what is allowed.
pub fn check_settings(settings: &BTreeMap<String, String>) -> Result<(), String> {
    Options::resolve(settings).map(drop)
}

#[async_trait]
impl Format for Lance {
    fn info(&self) -> FormatInfo {
        FormatInfo {
            name: "lance",
            library: library_version(),
            catalogs: &["none"],
            settings: SETTINGS,
            unsupported: UNSUPPORTED,
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key == VERSION_HINT {
            "version_hint"
        } else if key == VERSIONS || key == VERSIONS.trim_end_matches('/') {
            "listing"
        } else if key.starts_with(VERSIONS) && key.ends_with(".manifest") {
            "manifest"
        } else if key.starts_with(TRANSACTIONS) && key.ends_with(".txn") {
            "transaction"
        } else if key.starts_with(DATA) {
            "data"
        } else {
            "other"
        }
    }

    fn publishes(&self, key: &str) -> bool {
        key.strip_prefix(VERSIONS).and_then(manifest_version).is_some()
    }

    /// The library asks its client for 3, because the layer above it (AIMD) tries again as well.
    fn client_retries(&self) -> u32 {
        3
    }

    async fn create(&self, site: &Site) -> OperationResult<()> {
        let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
        let field = Field::new("id", DataType::Int64, true);
        let schema = Schema::try_from(&ArrowSchema::new(vec![field])).map_err(failure)?;
        let operation =
            Operation::Overwrite { fragments: Vec::new(), schema, config_upsert_values: None, initial_bases: None };
        let uri = uri(&site.table)?;
        CommitBuilder::new(uri.as_str())
            .with_session(session(site.store.clone()))
            .use_stable_row_ids(options.stable_row_ids)
            // Without retries an overwrite is strict: it fails where the table exists already.
            .with_max_retries(0)
            .execute(Transaction::new_from_version(0, operation))
            .await
            .map_err(failure)?;
        Ok(())
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
        let dataset = DatasetBuilder::from_uri(uri(&site.table)?.as_str())
            .with_session(session(site.store.clone()))
            .load()
            .await
            .map_err(failure)?;
        Ok(Box::new(Handle { site: site.clone(), options, dataset: Arc::new(dataset) }))
    }

    async fn open_shallow(&self, _site: &Site) -> OperationResult<u64> {
        Err(OperationError::other(UNSUPPORTED[0].why))
    }
}

/// An open dataset, with the store and the caches of one process.
struct Handle {
    site: Site,
    options: Options,
    dataset: Arc<Dataset>,
}

impl Handle {
    /// Describes a data file as a fragment of its own, as the library does for each file that it writes.
    fn fragment(&self, file: &DataFile) -> OperationResult<Fragment> {
        // The library keeps paths relative to `data/`, and knows no data file elsewhere under the table.
        let Some(path) = file.path.strip_prefix(DATA) else {
            return Err(OperationError::other(format!("data file {}: a Lance table keeps them in data/", file.path)));
        };
        let rows = usize::try_from(file.rows).map_err(OperationError::other)?;
        let fields: Vec<i32> = self.dataset.schema().fields.iter().map(|field| field.id).collect();
        let columns = (0..).take(fields.len()).collect();
        // The commit assigns the fragment's number.
        Ok(Fragment::new(0)
            .with_file(path, fields, columns, LanceFileVersion::default().resolve(), NonZeroU64::new(file.size_bytes))
            .with_physical_rows(rows))
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        let fragments = files.iter().map(|file| self.fragment(file)).collect::<OperationResult<Vec<_>>>()?;
        let transaction = Transaction::new_from_version(self.dataset.version_id(), Operation::Append { fragments });
        let dataset = CommitBuilder::new(self.dataset.clone())
            .with_max_retries(self.options.max_retries)
            .with_retry_timeout(self.options.retry_timeout)
            .execute(transaction)
            .await
            .map_err(failure)?;
        let version = dataset.version_id();
        self.dataset = Arc::new(dataset);
        Ok(version)
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        Err(OperationError::other(format!("{} is not supported", change.name())))
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        let dataset = DatasetBuilder::from_uri(uri(&self.site.table)?.as_str())
            .with_session(self.dataset.session())
            .load()
            .await
            .map_err(failure)?;
        Ok(Box::new(Self { site: self.site.clone(), options: self.options, dataset: Arc::new(dataset) }))
    }

    async fn refresh(&mut self) -> OperationResult<u64> {
        let mut dataset = Dataset::clone(&self.dataset);
        dataset.checkout_latest().await.map_err(failure)?;
        self.dataset = Arc::new(dataset);
        Ok(self.dataset.version_id())
    }

    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let files = self.dataset.fragments().iter().flat_map(|fragment| &fragment.files);
        let paths = files.map(|file| format!("{DATA}{}", file.path)).collect();
        Ok(ActiveFiles { version: self.dataset.version_id(), paths })
    }

    /// Reads the names of the manifests, not the library: what is there is what counts.
    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        let prefix = format!("{}/{VERSIONS}", self.site.table);
        let mut query = ListQuery { prefix: prefix.clone(), ..ListQuery::default() };
        let mut versions = Vec::new();
        loop {
            let page = self
                .site
                .store
                .list(&query)
                .await
                .map_err(|error| OperationError { outcome: store_outcome(&error), message: error.to_string() })?;
            let names = page.objects.iter().filter_map(|object| object.key.strip_prefix(&prefix));
            versions.extend(names.filter_map(manifest_version).filter(|version| *version > CREATED_VERSION));
            match page.next {
                Some(token) => query.token = Some(token),
                None => break,
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }
}

/// The settings, read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Options {
    max_retries: u32,
    retry_timeout: Duration,
    stable_row_ids: bool,
}

impl Options {
    fn resolve(settings: &BTreeMap<String, String>) -> Result<Self, String> {
        read(settings, "statistics", "none", |value| (value == "none").then_some(()))?;
        Ok(Self {
            max_retries: read(settings, "max-retries", "a whole number from 0", |value| value.parse().ok())?,
            retry_timeout: read(settings, "retry-timeout-s", "a number above 0", |value| {
                let timeout = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
                (!timeout.is_zero()).then_some(timeout)
            })?,
            stable_row_ids: read(settings, "stable-row-ids", "true or false", |value| value.parse().ok())?,
        })
    }
}

/// Reads a setting, or its default where it is not set.
fn read<T>(
    settings: &BTreeMap<String, String>,
    name: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, String> {
    let default = SETTINGS.iter().find(|setting| setting.name == name).map_or("", |setting| setting.default);
    let value = settings.get(name).map_or(default, String::as_str);
    parse(value).ok_or_else(|| format!("{name} is `{value}`; it must be {allowed}"))
}

/// Version in a manifest's file name, in either naming scheme: `<version>.manifest`, or the version's distance from
/// 2^64 - 1 in 20 digits, so that the newest comes first in key order
/// (<https://lance.org/format/table/transaction/#manifest-naming-schemes>). Staged and detached manifests have none:
/// their names hold more than digits.
fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".manifest")?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    Some(if digits.len() == 20 { u64::MAX - number } else { number })
}

/// Address of the table. The bucket is a name only: keys in the store start with the table's prefix.
fn uri(table: &str) -> OperationResult<Url> {
    let mut uri = Url::parse(&format!("{SCHEME}://lakemark")).map_err(OperationError::other)?;
    uri.path_segments_mut()
        .map_err(|()| OperationError::other(format!("table {table} has no address")))?
        .extend(table.split('/'));
    Ok(uri)
}

/// What a new process has: empty caches of the library's default sizes, and a client of the store.
fn session(store: Arc<dyn Store>) -> Arc<Session> {
    let registry = ObjectStoreRegistry::empty();
    registry.insert(SCHEME, Arc::new(StoreProvider(store)));
    Arc::new(Session::with_cache_backends(CacheSpec::Default, CacheSpec::Default, Arc::new(registry)))
}

/// Gives the library the harness' store in the place of its own S3 client, below the layers that it puts around that.
#[derive(Debug)]
struct StoreProvider(Arc<dyn Store>);

#[async_trait]
impl ObjectStoreProvider for StoreProvider {
    async fn new_store(&self, base_path: Url, params: &ObjectStoreParams) -> lance_core::Result<ObjectStore> {
        let mut client: Arc<DynObjectStore> = Arc::new(Adapter::new(self.0.clone()));
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
            self.0.traits().ordered_list,
            DEFAULT_CLOUD_IO_PARALLELISM,
            DEFAULT_DOWNLOAD_RETRY_COUNT,
            params.storage_options(),
        );
        // The constructor adds a layer that counts requests, and the registry adds it again: once is what S3 gets.
        store.inner = client;
        Ok(store)
    }
}

/// The library's error as the harness reports it.
fn failure(error: LanceError) -> OperationError {
    OperationError { outcome: outcome(&error), message: one_line(&error.to_string()) }
}

fn outcome(error: &LanceError) -> Outcome {
    // Asked first: such an error may carry the request's own error as its source.
    if error.is_commit_status_unknown() {
        return Outcome::Unknown;
    }
    match error.find_root() {
        LanceError::CommitConflict { .. }
        | LanceError::RetryableCommitConflict { .. }
        | LanceError::IncompatibleTransaction { .. }
        | LanceError::TooMuchWriteContention { .. } => Outcome::Conflict,
        // Only the whole commit has a time limit, and a request may have been on its way.
        LanceError::Timeout { .. } => Outcome::Unknown,
        root => {
            let mut cause: Option<&(dyn StdError + 'static)> = Some(root);
            while let Some(error) = cause {
                if let Some(error) = error.downcast_ref::<StoreError>() {
                    return store_outcome(error);
                }
                cause = error.source();
            }
            Outcome::Error
        }
    }
}

fn store_outcome(error: &StoreError) -> Outcome {
    match error {
        StoreError::Precondition { .. } => Outcome::Conflict,
        StoreError::Throttled { .. } => Outcome::Throttled,
        StoreError::Unknown { .. } => Outcome::Unknown,
        StoreError::NotFound { .. } | StoreError::Unsupported { .. } | StoreError::Failed { .. } => Outcome::Error,
    }
}

/// The message on one line. The library ends messages with the place in its source; what is before the crate's name
/// in it belongs to the machine that built the binary.
fn one_line(message: &str) -> String {
    let words = message.split_whitespace().map(|word| match word.split_once("/registry/src/") {
        Some((_, path)) => path.split_once('/').map_or(path, |(_, path)| path),
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use lance_table::io::commit::CommitConfig;

    use super::*;

    const V2_MANIFEST: &str = "_versions/18446744073709551613.manifest";

    #[test]
    fn keys_have_the_formats_own_classes() {
        let classes = [
            (V2_MANIFEST, "manifest"),
            ("_versions/2.manifest", "manifest"),
            ("_versions/d9223372036854775809.manifest", "manifest"),
            ("_versions/latest_version_hint.json", "version_hint"),
            ("_versions/", "listing"),
            ("_versions", "listing"),
            ("_transactions/1-1f3a9a40-6c8d-4a3e-9d3c-3a3a4b6d4f10.txn", "transaction"),
            ("data/a.lance", "data"),
            ("_indices/1f3a9a40/index.idx", "other"),
        ];
        for (key, class) in classes {
            assert_eq!(Lance.classify(key), class, "{key}");
        }
    }

    #[test]
    fn manifests_in_place_publish() {
        for key in [V2_MANIFEST, "_versions/2.manifest"] {
            assert!(Lance.publishes(key), "{key}");
        }
        let others = [
            "_versions/18446744073709551613.manifest-1f3a9a40-6c8d-4a3e-9d3c-3a3a4b6d4f10",
            "_versions/.tmp_7.manifest_9c100374-3298-4537-afc6-f5ee7913666d",
            "_versions/d9223372036854775809.manifest",
            "_versions/latest_version_hint.json",
            "_versions/.manifest",
            "_transactions/1-a.txn",
            "data/2.manifest",
        ];
        for key in others {
            assert!(!Lance.publishes(key), "{key}");
        }
    }

    #[test]
    fn both_naming_schemes_give_the_version() {
        assert_eq!(manifest_version("18446744073709551613.manifest"), Some(2));
        assert_eq!(manifest_version("2.manifest"), Some(2));
        assert_eq!(manifest_version("99999999999999999999.manifest"), None);
    }

    #[test]
    fn defaults_are_the_librarys() {
        let options = Options::resolve(&BTreeMap::new()).unwrap();
        assert_eq!(options.max_retries, CommitConfig::default().num_retries);
        // The library says in its documentation only what the other two are.
        assert_eq!(options.retry_timeout, Duration::from_secs(30));
        assert!(!options.stable_row_ids);
    }

    #[test]
    fn refused_settings_say_what_is_allowed() {
        let with = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        for (name, value, allowed) in [
            ("max-retries", "-1", "a whole number from 0"),
            ("retry-timeout-s", "0", "a number above 0"),
            ("retry-timeout-s", "NaN", "a number above 0"),
            ("stable-row-ids", "yes", "true or false"),
            ("statistics", "minmax", "none"),
        ] {
            let message = format!("{name} is `{value}`; it must be {allowed}");
            assert_eq!(check_settings(&with(name, value)), Err(message));
        }
        let half = Options::resolve(&with("retry-timeout-s", "0.5")).unwrap();
        assert_eq!(half.retry_timeout, Duration::from_millis(500));
    }

    #[test]
    fn keys_start_with_the_tables_prefix() {
        for table in ["bench/0001/table", "a table/50%/#1?"] {
            // How the library's stores read the path out of an address.
            let path = object_store_014::path::Path::from_url_path(uri(table).unwrap().path()).unwrap();
            assert_eq!(path.as_ref(), table);
        }
    }

    #[test]
    fn failures_are_classed_by_their_cause() {
        let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
        let wrapped = object_store_014::Error::Generic { store: "s", source: Box::new(throttled) };
        assert_eq!(outcome(&LanceError::from(wrapped)), Outcome::Throttled);

        let unknown = StoreError::Unknown { key: "k".to_owned(), reason: "timed out".to_owned() };
        let wrapped = object_store_014::Error::Generic { store: "s", source: Box::new(unknown) };
        assert_eq!(outcome(&LanceError::from(wrapped)), Outcome::Unknown);

        let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
        let unknown = LanceError::commit_status_unknown_source(2, Box::new(throttled));
        assert_eq!(outcome(&unknown), Outcome::Unknown);

        assert_eq!(outcome(&LanceError::too_much_write_contention("20 times")), Outcome::Conflict);
        assert_eq!(outcome(&LanceError::invalid_input("no")), Outcome::Error);
    }

    #[test]
    fn messages_are_one_line_without_the_build_machine() {
        let message = "Commit conflict:\n lost, /home/a/.cargo/registry/src/index-1/lance-14.0.2/src/io/commit.rs:5:9";
        assert_eq!(one_line(message), "Commit conflict: lost, lance-14.0.2/src/io/commit.rs:5:9");
    }
}
