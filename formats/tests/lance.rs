//! What Lance sends for an append and a load, on stores with and without ordered listings.
#![cfg(feature = "lance")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // Helpers of tests panic as tests do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::record::Outcome;
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Span, Store, StoreError, StoreResult, Traits,
};
use lakemark_core::table::{DataFile, Format, Site, Table};
use lakemark_core::writer::{Scope, Writer};
use lakemark_formats::lance::Lance;

const TABLE: &str = "bench/0001/table";

/// One client of objects in memory, with a list of the requests that it sent.
#[derive(Clone, Debug)]
struct MemoryStore {
    ordered_list: bool,
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    requests: Arc<Mutex<Vec<String>>>,
    /// Answers to the next conditional writes, without their effect.
    refusals: Arc<Mutex<Vec<StoreError>>>,
}

impl MemoryStore {
    fn new(ordered_list: bool) -> Self {
        Self { ordered_list, objects: Arc::default(), requests: Arc::default(), refusals: Arc::default() }
    }

    fn another_client(&self) -> Self {
        Self { objects: self.objects.clone(), ..Self::new(self.ordered_list) }
    }

    /// Notes a request, and lets others run as a round trip would.
    async fn note(&self, verb: &str, key: &str) {
        let key = key.strip_prefix(TABLE).and_then(|key| key.strip_prefix('/')).unwrap_or(key);
        self.requests.lock().unwrap().push(format!("{verb} {}", Lance.classify(key)));
        tokio::task::yield_now().await;
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    fn refuse(&self, error: StoreError, times: usize) {
        self.refusals.lock().unwrap().extend(vec![error; times]);
    }

    fn site(&self, settings: &[(&str, &str)]) -> Site {
        Site {
            writer: Writer::new(0, Scope::plain()),
            store: Arc::new(self.clone()),
            table: TABLE.to_owned(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    async fn created(ordered_list: bool) -> Self {
        let store = Self::new(ordered_list);
        Lance.create(&store.site(&[])).await.unwrap();
        store.requests();
        store
    }

    async fn open(&self) -> Box<dyn Table> {
        let table = Lance.open(&self.site(&[])).await.unwrap();
        self.requests();
        table
    }
}

fn info(key: &str, body: &Bytes) -> ObjectInfo {
    ObjectInfo { key: key.to_owned(), size_bytes: body.len() as u64, etag: format!("\"{key}\""), modified_ms: 0 }
}

#[async_trait]
impl Store for MemoryStore {
    fn traits(&self) -> Traits {
        Traits { ordered_list: self.ordered_list }
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        self.note("GET", key).await;
        let objects = self.objects.lock().unwrap();
        let body = objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
        let size = body.len() as u64;
        let range = match span {
            Span::Full => 0..size,
            Span::Range(range) => range.start..range.end.min(size),
            Span::From(start) => start..size,
            Span::Last(bytes) => size.saturating_sub(bytes)..size,
        };
        let part = body.slice(range.start as usize..range.end as usize);
        Ok(Object { info: info(key, body), start: range.start, body: part })
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        self.note("HEAD", key).await;
        let objects = self.objects.lock().unwrap();
        let body = objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
        Ok(info(key, body))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        let absent = precondition == Precondition::Absent;
        self.note(if absent { "PUT-if-absent" } else { "PUT" }, key).await;
        let mut objects = self.objects.lock().unwrap();
        if absent {
            if let Some(error) = self.refusals.lock().unwrap().pop() {
                return Err(error);
            }
            if objects.contains_key(key) {
                return Err(StoreError::Precondition { key: key.to_owned(), status: 412 });
            }
        }
        let etag = info(key, &body).etag;
        objects.insert(key.to_owned(), body);
        Ok(etag)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.note("LIST", &query.prefix).await;
        let objects = self.objects.lock().unwrap();
        let mut objects: Vec<_> = objects
            .iter()
            .filter(|(key, _)| key.starts_with(&query.prefix))
            .filter(|(key, _)| query.start_after.as_ref().is_none_or(|start| *key > start))
            .map(|(key, body)| info(key, body))
            .collect();
        if !self.ordered_list {
            objects.reverse();
        }
        Ok(ListPage { objects, ..ListPage::default() })
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.note("DELETE", key).await;
        self.objects.lock().unwrap().remove(key);
        Ok(())
    }

    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()> {
        let body = self.get(from, Span::Full).await?.body;
        self.put(to, body, precondition).await.map(|_| ())
    }
}

fn file(number: u64) -> DataFile {
    DataFile { path: format!("data/{number}.lance"), size_bytes: 1_000 + number, rows: 10, bounds: None }
}

#[tokio::test]
async fn an_append_on_an_ordered_store_lists_and_writes_twice() {
    let store = MemoryStore::created(true).await;
    let mut table = store.open().await;
    for version in 2..5 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    }
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);

    let reader = store.another_client();
    let active = Lance.open(&reader.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.version, 4);
    assert_eq!(active.paths, ["data/2.lance", "data/3.lance", "data/4.lance"]);
    assert_eq!(reader.requests(), ["LIST listing", "GET manifest"]);
}

#[tokio::test]
async fn an_append_on_an_unordered_store_goes_by_the_version_hint() {
    let store = MemoryStore::created(false).await;
    let mut table = store.open().await;
    for version in 2..5 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        let expected = [
            "GET version_hint",
            // The next version, in both naming schemes: neither is there.
            "HEAD manifest",
            "HEAD manifest",
            "PUT transaction",
            "PUT-if-absent manifest",
            "PUT version_hint",
        ];
        assert_eq!(store.requests(), expected);
    }
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);

    let reader = store.another_client();
    let active = Lance.open(&reader.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.paths.len(), 3);
    assert_eq!(reader.requests(), ["GET version_hint", "HEAD manifest", "HEAD manifest", "GET manifest"]);
}

#[tokio::test]
async fn a_manifest_beyond_64_kib_is_read_in_three_parts() {
    let store = MemoryStore::created(true).await;
    let files: Vec<_> = (0..5_000).map(file).collect();
    store.open().await.append(&files).await.unwrap();
    store.requests();
    let active = Lance.open(&store.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.paths.len(), files.len());
    assert_eq!(store.requests(), ["LIST listing", "GET manifest", "GET manifest", "GET manifest"]);
}

#[tokio::test]
async fn a_writer_that_is_behind_reads_what_others_published() {
    let store = MemoryStore::created(true).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (store.open().await, other.open().await);
    ahead.append(&[file(1)]).await.unwrap();
    ahead.append(&[file(2)]).await.unwrap();
    assert_eq!(behind.append(&[file(3)]).await.unwrap(), 4);
    let expected = ["LIST listing", "GET manifest", "GET manifest", "PUT transaction", "PUT-if-absent manifest"];
    assert_eq!(store.requests(), expected);
    assert_eq!(behind.files().await.unwrap().paths, ["data/1.lance", "data/2.lance", "data/3.lance"]);
}

#[tokio::test]
async fn a_lost_race_is_verified_cleaned_up_and_repeated() {
    let store = MemoryStore::created(true).await;
    let other = store.another_client();
    let (mut first, mut second) = (store.open().await, other.open().await);
    let (files, other_files) = ([file(1)], [file(2)]);
    let (one, two) = tokio::join!(first.append(&files), second.append(&other_files));
    assert_eq!((one.unwrap(), two.unwrap()), (2, 3));
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    let expected = [
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
        // Whose is the version? Its manifest, then the transaction in it.
        "HEAD manifest",
        "GET manifest",
        "GET manifest",
        "DELETE transaction",
        "LIST listing",
        "GET manifest",
        "PUT transaction",
        "PUT-if-absent manifest",
    ];
    assert_eq!(other.requests(), expected);
    assert_eq!(second.files().await.unwrap().paths, ["data/1.lance", "data/2.lance"]);
    assert_eq!(second.commits().await.unwrap(), [2, 3]);
}

#[tokio::test]
async fn a_conflict_without_a_winner_is_repeated() {
    let store = MemoryStore::created(true).await;
    let mut table = store.open().await;
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 409 }, 1);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    let expected = [
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
        "HEAD manifest",
        "HEAD manifest",
        "DELETE transaction",
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
    ];
    assert_eq!(store.requests(), expected);
}

#[tokio::test]
async fn the_last_lost_try_is_a_conflict() {
    let store = MemoryStore::created(true).await;
    let mut table = Lance.open(&store.site(&[("max-retries", "2")])).await.unwrap();
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 412 }, 2);
    let error = table.append(&[file(1)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Conflict, "{error}");
    assert_eq!(store.requests().iter().filter(|request| *request == "PUT-if-absent manifest").count(), 2);
}

#[tokio::test]
async fn throttled_writes_are_sent_again_by_the_librarys_rate_limiter() {
    let store = MemoryStore::created(true).await;
    let mut table = store.open().await;
    let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
    store.refuse(throttled.clone(), 3);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(store.requests().iter().filter(|request| *request == "PUT-if-absent manifest").count(), 4);

    store.refuse(throttled, 4);
    let error = table.append(&[file(2)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Throttled, "{error}");
}

#[tokio::test]
async fn a_failed_append_leaves_the_handle_usable() {
    let store = MemoryStore::created(true).await;
    let mut table = store.open().await;
    store.refuse(StoreError::Unknown { key: "k".to_owned(), reason: "timed out".to_owned() }, 1);
    let error = table.append(&[file(1)]).await.unwrap_err();
    // The library looked for its manifest and found none, but the write may still be on its way.
    assert_eq!(error.outcome, Outcome::Unknown, "{error}");
    assert_eq!(table.append(&[file(2)]).await.unwrap(), 2);
    assert_eq!(table.files().await.unwrap().paths, ["data/2.lance"]);
}

#[tokio::test]
async fn stable_row_ids_are_set_when_the_table_is_created() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site(&[("stable-row-ids", "true")])).await.unwrap();
    let mut table = store.open().await;
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(table.append(&[file(2)]).await.unwrap(), 3);
    let with_ids: usize = store.objects.lock().unwrap().values().map(Bytes::len).sum();

    let store = MemoryStore::created(true).await;
    let mut table = store.open().await;
    table.append(&[file(1)]).await.unwrap();
    table.append(&[file(2)]).await.unwrap();
    let without: usize = store.objects.lock().unwrap().values().map(Bytes::len).sum();
    assert!(with_ids > without, "{with_ids} {without}");
}

#[tokio::test]
async fn a_table_is_created_once() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site(&[])).await.unwrap();
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    Lance.create(&store.site(&[])).await.unwrap_err();
    assert_eq!(store.open().await.files().await.unwrap().version, 1);
}

#[tokio::test]
async fn what_cannot_be_done_is_said_on_one_line() {
    let error = Lance.open(&MemoryStore::new(true).site(&[])).await.err().unwrap();
    assert_eq!(error.outcome, Outcome::Error);
    assert!(error.message.contains(TABLE) && error.message.lines().count() == 1, "{error}");

    let mut table = MemoryStore::created(true).await.open().await;
    let elsewhere = DataFile { path: "part-0.lance".to_owned(), ..file(1) };
    let error = table.append(&[elsewhere]).await.unwrap_err();
    assert_eq!(error.message, "data file part-0.lance: a Lance table keeps them in data/");
}
