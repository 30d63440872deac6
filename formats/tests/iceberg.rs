//! What Iceberg sends for an append and a load, and what becomes of appends that lose or fail.
#![cfg(feature = "iceberg")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_catalogs::CatalogSpec;
use lakemark_core::record::Outcome;
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Span, Store, StoreError, StoreResult, Traits,
};
use lakemark_core::table::{DataFile, Format, Site};
use lakemark_core::writer::{Scope, Writer};
use lakemark_formats::iceberg::Iceberg;

const TABLE: &str = "bench/0001/table";

#[derive(Debug, Default)]
struct Shared {
    objects: BTreeMap<String, Bytes>,
    requests: Vec<String>,
    /// Answer to the next writes of a metadata.json.
    refusal: Option<StoreError>,
}

/// Objects in memory and a list of the requests that came.
#[derive(Clone, Debug, Default)]
struct MemoryStore(Arc<Mutex<Shared>>);

impl MemoryStore {
    fn note(&self, verb: &str, key: &str) {
        let key = key.strip_prefix(TABLE).and_then(|key| key.strip_prefix('/')).unwrap_or(key);
        let class = Iceberg::new(CatalogSpec::embedded(), "").classify(key);
        self.0.lock().unwrap().requests.push(format!("{verb} {class}"));
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().requests)
    }

    fn sizes(&self, end: &str) -> Vec<usize> {
        let shared = self.0.lock().unwrap();
        shared.objects.iter().filter(|(key, _)| key.ends_with(end)).map(|(_, body)| body.len()).collect()
    }

    fn site(&self, writer: u32, settings: &[(&str, &str)]) -> Site {
        Site {
            writer: Writer::new(writer, Scope::plain()),
            store: Arc::new(self.clone()),
            table: TABLE.to_owned(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn traits(&self) -> Traits {
        Traits { ordered_list: true }
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        assert_eq!(span, Span::Full, "Iceberg reads metadata whole");
        self.note("GET", key);
        let body = self.0.lock().unwrap().objects.get(key).cloned();
        let body = body.ok_or(StoreError::NotFound { key: key.to_owned() })?;
        let info =
            ObjectInfo { key: key.to_owned(), size_bytes: body.len() as u64, etag: String::new(), modified_ms: 0 };
        Ok(Object { info, start: 0, body })
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        self.note("HEAD", key);
        Err(StoreError::Unsupported { what: "head".into() })
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        assert_eq!(precondition, Precondition::None);
        self.note("PUT", key);
        let mut shared = self.0.lock().unwrap();
        if key.ends_with(".metadata.json")
            && let Some(refusal) = &shared.refusal
        {
            return Err(refusal.clone());
        }
        shared.objects.insert(key.to_owned(), body);
        Ok(String::new())
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.note("LIST", &query.prefix);
        Err(StoreError::Unsupported { what: "list".into() })
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.note("DELETE", key);
        Err(StoreError::Unsupported { what: "delete".into() })
    }

    async fn copy(&self, from: &str, _: &str, _: Precondition) -> StoreResult<()> {
        self.note("COPY", from);
        Err(StoreError::Unsupported { what: "copy".into() })
    }
}

fn file(number: u64) -> DataFile {
    DataFile {
        path: format!("data/{number:05}.parquet"),
        size_bytes: 1_000 + number,
        rows: 10,
        bounds: Some((0, i64::try_from(number).unwrap())),
    }
}

fn iceberg() -> Iceberg {
    Iceberg::new(CatalogSpec::embedded(), "cell")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_reads_and_writes_what_the_design_says() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.create(&site).await.unwrap();
    assert_eq!(store.requests(), ["PUT metadata"]);
    assert!(format.catalog_description().unwrap().contains("journal_mode=wal"));

    let mut table = format.open(&site).await.unwrap();
    assert_eq!(store.requests(), ["GET metadata"]);
    assert_eq!(site.writer.finish_operation().attempts.len(), 0);

    assert_eq!(table.append(&[file(0)]).await.unwrap(), 1);
    assert_eq!(store.requests(), ["GET metadata", "PUT manifest", "PUT manifest_list", "GET metadata", "PUT metadata"]);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(
        store.requests(),
        ["GET metadata", "GET manifest_list", "PUT manifest", "PUT manifest_list", "GET metadata", "PUT metadata"]
    );
    assert_eq!(site.writer.finish_operation().attempts.len(), 2);
    assert!(store.0.lock().unwrap().objects.keys().all(|key| key.starts_with("bench/0001/table/metadata/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_reads_every_manifest_once_a_handle() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    assert_eq!(table.files().await.unwrap().paths, Vec::<String>::new());
    for number in 0..3 {
        table.append(&[file(number)]).await.unwrap();
    }
    store.requests();

    let mut fresh = format.open(&site).await.unwrap();
    let mut active = fresh.files().await.unwrap();
    active.paths.sort();
    assert_eq!(active.version, 3);
    assert_eq!(active.paths, ["data/00000.parquet", "data/00001.parquet", "data/00002.parquet"]);
    assert_eq!(store.requests(), ["GET metadata", "GET manifest_list", "GET manifest", "GET manifest", "GET manifest"]);
    fresh.files().await.unwrap();
    assert_eq!(store.requests(), Vec::<String>::new());
    assert_eq!(fresh.commits().await.unwrap(), [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_once_lose_attempts_and_no_commit() {
    const WRITERS: u32 = 4;
    const APPENDS: u64 = 5;
    let (format, store) = (Arc::new(iceberg()), MemoryStore::default());
    let settings = [("max-retries", "1000"), ("retry-min-wait-ms", "1"), ("retry-max-wait-ms", "2")];
    format.create(&store.site(0, &settings)).await.unwrap();
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let site = store.site(writer, &settings);
        let format = Arc::clone(&format);
        tasks.push(tokio::spawn(async move {
            let mut table = format.open(&site).await.unwrap();
            let mut versions = Vec::new();
            for number in 0..APPENDS {
                versions.push(table.append(&[file(u64::from(writer) * APPENDS + number)]).await.unwrap());
            }
            (versions, site.writer.finish_operation().attempts)
        }));
    }
    let (mut versions, mut attempts) = (Vec::new(), Vec::new());
    for task in tasks {
        let (ours, theirs) = task.await.unwrap();
        versions.extend(ours);
        attempts.extend(theirs);
    }
    versions.sort_unstable();
    let all: Vec<u64> = (1..=u64::from(WRITERS) * APPENDS).collect();
    assert_eq!(versions, all);
    assert_eq!(attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok).count(), all.len());
    assert!(attempts.iter().all(|attempt| matches!(attempt.outcome, Outcome::Ok | Outcome::Conflict)));

    let mut table = format.open(&store.site(9, &settings)).await.unwrap();
    assert_eq!(table.commits().await.unwrap(), all);
    let mut paths = table.files().await.unwrap().paths;
    paths.sort();
    assert_eq!(paths, (0..all.len() as u64).map(|number| file(number).path).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_append_has_its_class_and_publishes_nothing() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    store.0.lock().unwrap().refusal = Some(StoreError::Throttled { key: "k".into(), status: 503 });
    site.writer.finish_operation();
    let error = table.append(&[file(0)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Throttled);
    assert!(error.message.contains("HTTP 503"), "{}", error.message);
    let attempts = site.writer.finish_operation().attempts;
    assert_eq!(attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>(), [Outcome::Throttled]);
    store.0.lock().unwrap().refusal = None;
    assert_eq!(format.open(&site).await.unwrap().commits().await.unwrap(), Vec::<u64>::new());
    assert_eq!(table.append(&[file(0)]).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_change_what_is_written() {
    for format_version in ["1", "2", "3"] {
        let (format, store) = (iceberg(), MemoryStore::default());
        let site = store.site(0, &[("format-version", format_version), ("metadata-compression", "gzip")]);
        format.create(&site).await.unwrap();
        let mut table = format.open(&site).await.unwrap();
        for number in 0..2 {
            assert_eq!(table.append(&[file(number)]).await.unwrap(), number + 1, "format version {format_version}");
        }
        assert_eq!(table.commits().await.unwrap(), [1, 2], "format version {format_version}");
        assert_eq!(format.open(&site).await.unwrap().files().await.unwrap().paths.len(), 2);
        assert_eq!(store.sizes(".gz.metadata.json").len(), 3);
    }

    let manifest_bytes = async |statistics| {
        let (format, store) = (iceberg(), MemoryStore::default());
        let site = store.site(0, &[("statistics", statistics)]);
        format.create(&site).await.unwrap();
        format.open(&site).await.unwrap().append(&[file(7)]).await.unwrap();
        store.sizes("-m0.avro")[0]
    };
    assert!(manifest_bytes("minmax").await > manifest_bytes("none").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_duplicate_check_reads_every_manifest_and_refuses_a_file_twice() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[("check-duplicate", "on")]);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    table.append(&[file(0)]).await.unwrap();
    table.append(&[file(1)]).await.unwrap();
    store.requests();
    let error = table.append(&[file(0)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Error);
    assert_eq!(store.requests(), ["GET metadata", "GET manifest_list", "GET manifest", "GET manifest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_removes_the_cells_rows_and_no_object() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.clean(&site).await.unwrap();
    format.create(&site).await.unwrap();
    format.clean(&site).await.unwrap();
    assert_eq!(store.sizes(".metadata.json").len(), 1);
    let Err(error) = format.open(&site).await else { panic!("the table is still there") };
    assert!(error.message.contains("bench_0001_table"), "{}", error.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_setting_fails_before_anything_is_sent() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let error = format.create(&store.site(0, &[("format-version", "4")])).await.unwrap_err();
    assert_eq!(error.message, "format-version is `4`; it must be 1 or 2 or 3");
    assert_eq!(store.requests(), Vec::<String>::new());
}
