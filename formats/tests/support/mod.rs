//! Objects in memory, and what was asked of them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Span, Store, StoreError, StoreResult, Traits,
};
use lakemark_core::table::{DataFile, Site};
use lakemark_core::writer::{Scope, Writer};

/// Prefix of the table in the store.
pub(crate) const TABLE: &str = "bench/0001/table";

#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) body: Bytes,
    modified_ms: i64,
}

/// One client of objects in memory, with a list of the requests that it sent.
#[derive(Clone, Debug)]
pub(crate) struct MemoryStore {
    ordered_list: bool,
    /// Name of a key, relative to the table, in the list of requests.
    name: fn(&str) -> String,
    pub(crate) objects: Arc<Mutex<BTreeMap<String, Stored>>>,
    requests: Arc<Mutex<Vec<String>>>,
    read_bytes: Arc<Mutex<u64>>,
    /// Answers to the next conditional writes, without their effect.
    refusals: Arc<Mutex<Vec<StoreError>>>,
}

impl MemoryStore {
    pub(crate) fn new(ordered_list: bool, name: fn(&str) -> String) -> Self {
        Self {
            ordered_list,
            name,
            objects: Arc::default(),
            requests: Arc::default(),
            read_bytes: Arc::default(),
            refusals: Arc::default(),
        }
    }

    /// A client of the same objects with a list of its own, as another process has.
    pub(crate) fn another_client(&self) -> Self {
        Self { objects: self.objects.clone(), ..Self::new(self.ordered_list, self.name) }
    }

    /// Notes a request, and lets others run as a round trip would.
    async fn note(&self, verb: &str, key: &str) {
        let key = key.strip_prefix(TABLE).and_then(|key| key.strip_prefix('/')).unwrap_or(key);
        self.requests.lock().unwrap().push(format!("{verb} {}", (self.name)(key)));
        tokio::task::yield_now().await;
    }

    /// What was asked since the last call. Requests of one verb that follow each other may have been sent at once, so
    /// they are in the order of their names, and those alike are counted.
    pub(crate) fn requests(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        let verb = |request: &String| request.split(' ').next().map(str::to_owned);
        requests.chunk_by_mut(|one, next| verb(one) == verb(next)).for_each(<[String]>::sort);
        counted(&requests)
    }

    /// What was asked since the last call by something that lists, reads and deletes at once.
    pub(crate) fn requests_in_any_order(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.sort();
        counted(&requests)
    }

    /// Bytes of bodies read since the last call.
    pub(crate) fn read_bytes(&self) -> u64 {
        std::mem::take(&mut *self.read_bytes.lock().unwrap())
    }

    pub(crate) fn refuse(&self, error: StoreError, times: usize) {
        self.refusals.lock().unwrap().extend(vec![error; times]);
    }

    pub(crate) fn site(&self, settings: &[(&str, &str)]) -> Site {
        Site {
            writer: Writer::new(0, Scope::plain()),
            store: Arc::new(self.clone()),
            table: TABLE.to_owned(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }
}

fn counted(requests: &[String]) -> Vec<String> {
    let counted = requests.chunk_by(|one, next| one == next).map(|alike| match alike.len() {
        1 => alike[0].clone(),
        times => format!("{} ×{times}", alike[0]),
    });
    counted.collect()
}

fn info(key: &str, stored: &Stored) -> ObjectInfo {
    ObjectInfo {
        key: key.to_owned(),
        size_bytes: stored.body.len() as u64,
        etag: format!("\"{key}\""),
        modified_ms: stored.modified_ms,
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn traits(&self) -> Traits {
        Traits { ordered_list: self.ordered_list }
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        self.note("GET", key).await;
        let objects = self.objects.lock().unwrap();
        let stored = objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
        let size = stored.body.len() as u64;
        let range = match span {
            Span::Full => 0..size,
            Span::Range(range) => range.start..range.end.min(size),
            Span::From(start) => start..size,
            Span::Last(bytes) => size.saturating_sub(bytes)..size,
        };
        *self.read_bytes.lock().unwrap() += range.end - range.start;
        let part = stored.body.slice(range.start as usize..range.end as usize);
        Ok(Object { info: info(key, stored), start: range.start, body: part })
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        self.note("HEAD", key).await;
        let objects = self.objects.lock().unwrap();
        let stored = objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })?;
        Ok(info(key, stored))
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
        let stored = Stored { body, modified_ms: clock::wall_ms() };
        let etag = info(key, &stored).etag;
        objects.insert(key.to_owned(), stored);
        Ok(etag)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.note("LIST", query.start_after.as_ref().unwrap_or(&query.prefix)).await;
        let objects = self.objects.lock().unwrap();
        let mut objects: Vec<_> = objects
            .iter()
            .filter(|(key, _)| key.starts_with(&query.prefix))
            .filter(|(key, _)| query.start_after.as_ref().is_none_or(|start| *key > start))
            .map(|(key, stored)| info(key, stored))
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

/// A data file in the table's folder for them.
pub(crate) fn file(number: u64, extension: &str) -> DataFile {
    DataFile {
        path: format!("data/{number}.{extension}"),
        size_bytes: 1_000 + number,
        rows: 10,
        bounds: Some((0, number.cast_signed())),
    }
}
