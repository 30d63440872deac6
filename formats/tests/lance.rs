//! What Lance sends for an append and a load, on stores with and without ordered listings.
#![cfg(feature = "lance")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::record::Outcome;
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Span, Store, StoreError, StoreResult, Traits,
};
use lakemark_core::table::{DataFile, Format, Site};
use lakemark_core::writer::{Scope, Writer};
use lakemark_formats::lance::Lance;

const TABLE: &str = "bench/0001/table";

#[derive(Debug, Default)]
struct Shared {
    objects: BTreeMap<String, Bytes>,
    requests: Vec<String>,
    /// Answers to come for conditional writes, in order, instead of the true ones.
    refusals: Vec<StoreError>,
}

/// Objects in memory and a list of the requests that came.
#[derive(Clone, Debug)]
struct MemoryStore {
    ordered_list: bool,
    shared: Arc<Mutex<Shared>>,
}

impl MemoryStore {
    fn new(ordered_list: bool) -> Self {
        Self { ordered_list, shared: Arc::default() }
    }

    fn note(&self, verb: &str, key: &str) {
        let class = Lance.classify(key.strip_prefix(TABLE).and_then(|key| key.strip_prefix('/')).unwrap_or(key));
        self.shared.lock().unwrap().requests.push(format!("{verb} {class}"));
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().requests)
    }

    fn refuse(&self, error: StoreError) {
        self.shared.lock().unwrap().refusals.push(error);
    }

    fn site(&self) -> Site {
        Site {
            writer: Writer::new(0, Scope::plain()),
            store: Arc::new(self.clone()),
            table: TABLE.to_owned(),
            settings: BTreeMap::new(),
        }
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
        self.note("GET", key);
        let shared = self.shared.lock().unwrap();
        let body = shared.objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
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
        self.note("HEAD", key);
        let shared = self.shared.lock().unwrap();
        let body = shared.objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
        Ok(info(key, body))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        let absent = precondition == Precondition::Absent;
        self.note(if absent { "PUT-if-absent" } else { "PUT" }, key);
        let mut shared = self.shared.lock().unwrap();
        if absent {
            if !shared.refusals.is_empty() {
                return Err(shared.refusals.remove(0));
            }
            if shared.objects.contains_key(key) {
                return Err(StoreError::Precondition { key: key.to_owned(), status: 412 });
            }
        }
        let etag = info(key, &body).etag;
        shared.objects.insert(key.to_owned(), body);
        Ok(etag)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.note("LIST", &query.prefix);
        let shared = self.shared.lock().unwrap();
        let mut objects: Vec<_> = shared
            .objects
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
        self.note("DELETE", key);
        self.shared.lock().unwrap().objects.remove(key);
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
    let store = MemoryStore::new(true);
    Lance.create(&store.site()).await.unwrap();
    let mut table = Lance.open(&store.site()).await.unwrap();
    for version in 2..5 {
        store.requests();
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    }
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);
    store.requests();
    let mut reader = Lance.open(&store.site()).await.unwrap();
    let active = reader.files().await.unwrap();
    assert_eq!(active.version, 4);
    assert_eq!(active.paths, ["data/2.lance", "data/3.lance", "data/4.lance"]);
    assert_eq!(store.requests(), ["LIST listing", "GET manifest"]);
}

#[tokio::test]
async fn an_append_on_an_unordered_store_goes_by_the_version_hint() {
    let store = MemoryStore::new(false);
    Lance.create(&store.site()).await.unwrap();
    let mut table = Lance.open(&store.site()).await.unwrap();
    for version in 2..5 {
        store.requests();
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        let expected = [
            "GET version_hint",
            "HEAD manifest",
            "HEAD manifest",
            "PUT transaction",
            "PUT-if-absent manifest",
            "PUT version_hint",
        ];
        assert_eq!(store.requests(), expected);
    }
    let mut reader = Lance.open(&store.site()).await.unwrap();
    assert_eq!(reader.files().await.unwrap().paths.len(), 3);
    assert_eq!(store.requests(), ["GET version_hint", "HEAD manifest", "HEAD manifest", "GET manifest"]);
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);
}

#[tokio::test]
async fn a_writer_that_is_behind_reads_what_others_published() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site()).await.unwrap();
    let mut behind = Lance.open(&store.site()).await.unwrap();
    let mut ahead = Lance.open(&store.site()).await.unwrap();
    ahead.append(&[file(1)]).await.unwrap();
    store.requests();
    assert_eq!(behind.append(&[file(2)]).await.unwrap(), 3);
    let expected = ["LIST listing", "GET manifest", "GET manifest", "PUT transaction", "PUT-if-absent manifest"];
    assert_eq!(store.requests(), expected);
    assert_eq!(behind.files().await.unwrap().paths, ["data/1.lance", "data/2.lance"]);
}

#[tokio::test]
async fn a_lost_try_is_verified_cleaned_up_and_repeated() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site()).await.unwrap();
    let mut table = Lance.open(&store.site()).await.unwrap();
    store.requests();
    // A conflict without a winner, as a 409 is: the library finds no manifest and tries again.
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 409 });
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    println!("{:#?}", store.requests());
}

#[tokio::test]
async fn a_throttled_try_is_sent_again_by_the_librarys_rate_limiter() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site()).await.unwrap();
    let mut table = Lance.open(&store.site()).await.unwrap();
    store.requests();
    for _ in 0..3 {
        store.refuse(StoreError::Throttled { key: "k".to_owned(), status: 503 });
    }
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    println!("{:#?}", store.requests());
    for _ in 0..4 {
        store.refuse(StoreError::Throttled { key: "k".to_owned(), status: 503 });
    }
    let error = table.append(&[file(2)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Throttled, "{error}");
    println!("{error}\n{:#?}", store.requests());
}

#[tokio::test]
async fn a_table_is_created_once() {
    let store = MemoryStore::new(true);
    Lance.create(&store.site()).await.unwrap();
    println!("{:#?}", store.requests());
    let error = Lance.create(&store.site()).await.unwrap_err();
    println!("{error}");
    let mut table = Lance.open(&store.site()).await.unwrap();
    assert_eq!(table.files().await.unwrap().version, 1);
}

#[tokio::test]
async fn a_missing_table_is_an_error_on_one_line() {
    let error = Lance.open(&MemoryStore::new(true).site()).await.err().unwrap();
    println!("{error}");
    assert_eq!(error.outcome, Outcome::Error);
    assert_eq!(error.message.lines().count(), 1);
}
