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
use lakemark_core::table::{Change, DataFile, Format, Site};
use lakemark_core::writer::{Scope, Writer};
use lakemark_formats::iceberg::Iceberg;
use tokio::sync::Barrier;

const TABLE: &str = "bench/0001/table";

#[derive(Debug, Default)]
struct Shared {
    objects: BTreeMap<String, Bytes>,
    requests: Vec<String>,
    /// Answer to the next writes of a metadata.json.
    refusal: Option<StoreError>,
    /// Where the next two writes of a metadata.json, the last request before the compare-and-swap, wait for each other.
    meeting: Option<(Arc<Barrier>, u32)>,
}

impl Shared {
    fn meet(&mut self) -> Option<Arc<Barrier>> {
        let (barrier, left) = self.meeting.take()?;
        if left > 1 {
            self.meeting = Some((barrier.clone(), left - 1));
        }
        Some(barrier)
    }
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
        let meeting = {
            let mut shared = self.0.lock().unwrap();
            let is_metadata = key.ends_with(".metadata.json");
            if is_metadata && let Some(refusal) = &shared.refusal {
                return Err(refusal.clone());
            }
            shared.objects.insert(key.to_owned(), body);
            if is_metadata { shared.meet() } else { None }
        };
        if let Some(barrier) = meeting {
            barrier.wait().await;
        }
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

#[tokio::test(flavor = "multi_thread")]
async fn a_load_reads_everything_again_and_a_shallow_one_no_manifest() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    for number in 0..2 {
        table.append(&[file(number)]).await.unwrap();
    }
    table.files().await.unwrap();
    store.requests();
    assert_eq!(format.open_shallow(&site).await.unwrap(), 2);
    assert_eq!(store.requests(), ["GET metadata"]);

    let expected = ["GET metadata", "GET manifest_list", "GET manifest", "GET manifest"];
    let mut fresh = table.fresh().await.unwrap();
    assert_eq!(fresh.files().await.unwrap().paths.len(), 2);
    assert_eq!(store.requests(), expected);
    // Nothing is new, and yet all is read.
    assert_eq!(table.refresh().await.unwrap(), 2);
    assert_eq!(table.files().await.unwrap().paths.len(), 2);
    assert_eq!(store.requests(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_retries_a_lost_swap_is_one_attempt_and_a_handle_that_is_behind_loses_none() {
    let (format, store) = (Arc::new(iceberg()), MemoryStore::default());
    let settings = [("max-retries", "0")];
    let sites = [store.site(0, &settings), store.site(1, &settings)];
    format.create(&sites[0]).await.unwrap();
    let mut tables = [format.open(&sites[0]).await.unwrap(), format.open(&sites[1]).await.unwrap()];
    let attempts = |site: &Site| {
        let attempts = site.writer.finish_operation().attempts;
        attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>()
    };
    tables[0].append(&[file(0)]).await.unwrap();
    attempts(&sites[0]);
    store.requests();
    // Each try begins with a load of the table.
    assert_eq!(tables[1].append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(attempts(&sites[1]), [Outcome::Ok]);
    assert_eq!(
        store.requests(),
        ["GET metadata", "GET manifest_list", "PUT manifest", "PUT manifest_list", "GET metadata", "PUT metadata"]
    );

    store.0.lock().unwrap().meeting = Some((Arc::new(Barrier::new(2)), 2));
    let mut ended = Vec::new();
    let mut tasks = Vec::new();
    for (number, (mut table, site)) in (2..).zip(tables.into_iter().zip(sites)) {
        tasks.push(tokio::spawn(async move {
            let result = table.append(&[file(number)]).await;
            (result, table, site)
        }));
    }
    for task in tasks {
        ended.push(task.await.unwrap());
    }
    ended.sort_by_key(|(result, ..)| result.is_err());
    let [(won, _, winner), (lost, table, loser)] = &mut ended[..] else { panic!("two ended") };
    assert_eq!(*won.as_ref().unwrap(), 3);
    assert_eq!(lost.as_ref().unwrap_err().outcome, Outcome::Conflict);
    assert_eq!((attempts(winner), attempts(loser)), (vec![Outcome::Ok], vec![Outcome::Conflict]));
    // The handle that lost is as good as any.
    assert_eq!(table.refresh().await.unwrap(), 3);
    assert_eq!(table.append(&[file(4)]).await.unwrap(), 4);
    assert_eq!(table.files().await.unwrap().paths.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn expiring_snapshots_takes_a_commit_of_its_own_and_keeps_the_last() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let settings = [("expire-snapshots-keep", "2"), ("expire-snapshots-every", "4")];
    let site = store.site(0, &settings);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    for number in 0..3 {
        table.append(&[file(number)]).await.unwrap();
    }
    assert_eq!(table.maintenance(), 0);
    site.writer.finish_operation();
    store.requests();
    assert_eq!(table.append(&[file(3)]).await.unwrap(), 4);
    assert_eq!(
        store.requests(),
        [
            "GET metadata",
            "GET manifest_list",
            "PUT manifest",
            "PUT manifest_list",
            "GET metadata",
            "PUT metadata",
            // The expiry.
            "GET metadata",
            "GET metadata",
            "PUT metadata"
        ]
    );
    assert_eq!(site.writer.finish_operation().attempts.len(), 2);
    assert_eq!(table.maintenance(), 1);
    assert_eq!(table.append(&[file(4)]).await.unwrap(), 5);
    let newest = {
        let shared = store.0.lock().unwrap();
        let newest = shared.objects.iter().rfind(|(key, _)| key.ends_with(".metadata.json"));
        String::from_utf8(newest.unwrap().1.to_vec()).unwrap()
    };
    assert_eq!(newest.matches("\"manifest-list\"").count(), 3, "{newest}");

    let mut reader = format.open(&site).await.unwrap();
    assert_eq!(reader.commits().await.unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(reader.files().await.unwrap().paths.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_path_is_in_every_file_of_metadata() {
    let written = async |path: &str| {
        let (format, store) = (iceberg(), MemoryStore::default());
        let site = store.site(0, &[("table-path", path)]);
        format.create(&site).await.unwrap();
        let mut table = format.open(&site).await.unwrap();
        for number in 0..3 {
            table.append(&[file(number)]).await.unwrap();
        }
        assert_eq!(
            store.requests()[2..],
            [
                vec!["GET metadata", "PUT manifest", "PUT manifest_list", "GET metadata", "PUT metadata"],
                [
                    "GET metadata",
                    "GET manifest_list",
                    "PUT manifest",
                    "PUT manifest_list",
                    "GET metadata",
                    "PUT metadata"
                ]
                .repeat(2)
            ]
            .concat()
        );
        let mut paths = format.open(&site).await.unwrap().files().await.unwrap().paths;
        paths.sort();
        assert_eq!(paths, (0..3).map(|number| file(number).path).collect::<Vec<_>>());
        let shared = store.0.lock().unwrap();
        let newest = shared.objects.iter().rfind(|(key, _)| key.ends_with(".metadata.json"));
        String::from_utf8(newest.unwrap().1.to_vec()).unwrap().matches("/a-catalog-that-chooses-the-path-").count()
    };
    // The location, a manifest list for each of three snapshots, and a log of three files.
    assert_eq!((written("short").await, written("long").await), (0, 1 + 3 + 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_library_does_not_offer_is_listed_and_refused() {
    let (format, store) = (iceberg(), MemoryStore::default());
    let site = store.site(0, &[]);
    format.create(&site).await.unwrap();
    let mut table = format.open(&site).await.unwrap();
    store.requests();
    for change in [
        Change::Overwrite { add: vec![file(0)] },
        Change::Delete { remove: vec![file(0)] },
        Change::Compact { remove: vec![file(0)], add: vec![file(1)] },
    ] {
        let error = table.change(&change).await.unwrap_err();
        let listed = format.info().unsupported.iter().find(|unsupported| unsupported.what == change.name()).unwrap();
        assert_eq!(error.message, format!("{}: {}", listed.what, listed.why));
    }
    assert_eq!(store.requests(), Vec::<String>::new());
}
