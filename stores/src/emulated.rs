//! The emulated provider: objects in memory, with the latencies, limits and answers of a profile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::store::{
    Inspect, ListPage, ListQuery, Object, ObjectInfo, Precondition, Provider, Span, Store, StoreError, StoreResult,
};
use lakemark_core::writer::Writer;
use xxhash_rust::xxh3::xxh3_64;

use crate::client::Client;
use crate::content::{Chunks, Content};
use crate::limit::Buckets;
use crate::profile::Profile;

/// A provider that answers from memory after the time that its profile says.
pub struct Emulated {
    profile: Profile,
    seed: u64,
    state: Mutex<State>,
}

impl fmt::Debug for Emulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulated").field("profile", &self.profile.name).finish_non_exhaustive()
    }
}

impl Emulated {
    /// An empty provider. Latencies follow from the seed.
    pub fn new(profile: Profile, seed: u64) -> Arc<Self> {
        let state = State { by_hash: (!profile.list.ordered).then(BTreeSet::new), ..State::default() };
        Arc::new(Self { profile, seed, state: Mutex::new(state) })
    }

    /// What the provider is like.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Seed of the latencies.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Every effect checks first and changes last: a panic in between leaves consistent objects.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Inspect for Emulated {
    fn objects(&self, prefix: &str) -> Vec<(String, u64)> {
        let state = self.state();
        state
            .from(Bound::Included(prefix))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, stored)| (key.clone(), stored.content.size() as u64))
            .collect()
    }

    fn logical_bytes(&self) -> u64 {
        self.state().objects.values().map(|stored| stored.content.size() as u64).sum()
    }

    fn held_bytes(&self) -> u64 {
        self.state().chunks.held_bytes()
    }
}

impl Provider for Emulated {
    fn client(self: Arc<Self>, writer: Arc<Writer>) -> Arc<dyn Store> {
        Arc::new(Client::new(self, writer))
    }
}

/// An object as it stands.
#[derive(Clone, Debug)]
struct Stored {
    content: Content,
    tag: u64,
    modified_ms: i64,
    /// When it was written: process time in nanoseconds.
    written_ns: u64,
}

impl Stored {
    fn info(&self, key: &str) -> ObjectInfo {
        ObjectInfo {
            key: key.to_owned(),
            size_bytes: self.content.size() as u64,
            etag: etag(self.tag),
            modified_ms: self.modified_ms,
        }
    }
}

fn etag(tag: u64) -> String {
    format!("\"{tag:016x}\"")
}

/// The provider's objects, and how busy it is.
#[derive(Default)]
pub(crate) struct State {
    objects: BTreeMap<String, Stored>,
    /// Keys in an order that is not theirs, for a provider that lists so.
    by_hash: Option<BTreeSet<(u64, String)>>,
    chunks: Chunks,
    next_tag: u64,
    pub(crate) buckets: Buckets,
}

impl State {
    fn from<'a>(&'a self, start: Bound<&str>) -> impl Iterator<Item = (&'a String, &'a Stored)> {
        self.objects.range::<str, _>((start, Bound::Unbounded))
    }

    fn stored(&self, key: &str) -> StoreResult<&Stored> {
        self.objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.to_owned() })
    }

    /// Size of an object; 0 if there is none.
    pub(crate) fn size(&self, key: &str) -> u64 {
        self.objects.get(key).map_or(0, |stored| stored.content.size() as u64)
    }

    pub(crate) fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        Ok(self.stored(key)?.info(key))
    }

    pub(crate) fn get(&mut self, key: &str, span: &Span) -> StoreResult<Object> {
        let stored = self.stored(key)?;
        let info = stored.info(key);
        let content = stored.content.clone();
        let bytes = span_of(span, info.size_bytes).ok_or_else(|| StoreError::Failed {
            key: key.to_owned(),
            reason: format!("HTTP 416, {span:?} of {} bytes", info.size_bytes),
        })?;
        let body = self.chunks.read(&content).slice(bytes.start as usize..bytes.end as usize);
        Ok(Object { info, start: bytes.start, body })
    }

    /// Writes an object that a request sent at `sent_ns` carries.
    pub(crate) fn put(
        &mut self,
        profile: &Profile,
        key: &str,
        body: Bytes,
        precondition: &Precondition,
        sent_ns: u64,
    ) -> StoreResult<String> {
        self.check(profile, key, precondition, sent_ns)?;
        let content = self.chunks.keep(body);
        Ok(self.store(key, content))
    }

    pub(crate) fn copy(
        &mut self,
        profile: &Profile,
        from: &str,
        to: &str,
        precondition: &Precondition,
        sent_ns: u64,
    ) -> StoreResult<()> {
        let content = self.stored(from)?.content.clone();
        self.check(profile, to, precondition, sent_ns)?;
        self.store(to, content);
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &str) {
        // The chunks stay: other objects may share them, and counting who does would cost more than it saves.
        self.objects.remove(key);
        if let Some(by_hash) = &mut self.by_hash {
            by_hash.remove(&(xxh3_64(key.as_bytes()), key.to_owned()));
        }
    }

    fn store(&mut self, key: &str, content: Content) -> String {
        self.next_tag += 1;
        let tag = self.next_tag;
        let stored = Stored { content, tag, modified_ms: clock::wall_ms(), written_ns: clock::now_ns() };
        self.objects.insert(key.to_owned(), stored);
        if let Some(by_hash) = &mut self.by_hash {
            by_hash.insert((xxh3_64(key.as_bytes()), key.to_owned()));
        }
        etag(tag)
    }

    /// Answers as the provider does when a precondition fails: an object written while this request was under way is
    /// a conflict between the two, one from before is a plain mismatch.
    fn check(&self, profile: &Profile, key: &str, precondition: &Precondition, sent_ns: u64) -> StoreResult<()> {
        let (stored, plain_status) = match (precondition, self.objects.get(key)) {
            (Precondition::None, _) | (Precondition::Absent, None) => return Ok(()),
            (Precondition::Match(_), None) => return Err(StoreError::NotFound { key: key.to_owned() }),
            (Precondition::Match(wanted), Some(stored)) if *wanted == etag(stored.tag) => return Ok(()),
            (Precondition::Match(_), Some(stored)) => (stored, profile.conflict.mismatch_status),
            (Precondition::Absent, Some(stored)) => (stored, profile.conflict.exists_status),
        };
        let status = if stored.written_ns >= sent_ns { profile.conflict.in_flight_status } else { plain_status };
        Err(StoreError::Precondition { key: key.to_owned(), status })
    }

    /// One page of a listing.
    pub(crate) fn list(&self, profile: &Profile, query: &ListQuery) -> StoreResult<ListPage> {
        let page = self.page(profile, query)?;
        let objects = page.objects.into_iter().map(|(key, stored)| stored.info(key)).collect();
        Ok(ListPage { objects, common_prefixes: page.common_prefixes, next: page.next })
    }

    /// How many keys and common prefixes a page of a listing has.
    pub(crate) fn listed_keys(&self, profile: &Profile, query: &ListQuery) -> StoreResult<usize> {
        Ok(self.page(profile, query)?.keys())
    }

    fn page(&self, profile: &Profile, query: &ListQuery) -> StoreResult<Page<'_>> {
        let refused = |what: &str| Err(StoreError::Unsupported { what: format!("{what} on {}", profile.name) });
        if query.start_after.is_some() && !profile.list.start_after {
            return refused("listing from a start key");
        }
        if profile.list.prefix_ends_in_slash && !query.prefix.is_empty() && !query.prefix.ends_with('/') {
            return refused("listing a prefix that does not end in a slash");
        }
        let page_keys = profile.list.page_keys as usize;
        Ok(match &self.by_hash {
            None => self.list_in_order(query, page_keys),
            Some(by_hash) => self.list_by_hash(by_hash, query, page_keys),
        })
    }

    fn list_in_order(&self, query: &ListQuery, page_keys: usize) -> Page<'_> {
        let mut page = Page::default();
        // The token is the last key, or the last common prefix, of the page before.
        let mut after = query.token.clone().or_else(|| query.start_after.clone());
        loop {
            let start = match &after {
                Some(last) if *last >= query.prefix => match common_prefix(query, last) {
                    // Every key under a common prefix is folded into it: go on behind them all.
                    Some(_) if query.token.is_some() || !page.common_prefixes.is_empty() => {
                        Bound::Included(behind_folder(last))
                    }
                    _ => Bound::Excluded(last.clone()),
                },
                _ => Bound::Included(query.prefix.clone()),
            };
            let start = start.as_ref().map(String::as_str);
            let mut next_folder = None;
            for (key, stored) in self.from(start).take_while(|(key, _)| key.starts_with(&query.prefix)) {
                if page.keys() == page_keys {
                    page.next = page.last();
                    return page;
                }
                if let Some(folder) = common_prefix(query, key) {
                    next_folder = Some(folder.to_owned());
                    break;
                }
                page.objects.push((key, stored));
            }
            let Some(folder) = next_folder else { return page };
            page.common_prefixes.push(folder.clone());
            after = Some(folder);
        }
    }

    fn list_by_hash(&self, by_hash: &BTreeSet<(u64, String)>, query: &ListQuery, page_keys: usize) -> Page<'_> {
        let mut page = Page::default();
        let mut folders = BTreeSet::new();
        let start = match query.token.as_deref().and_then(|token| token.split_once(' ')) {
            Some((hash, key)) => Bound::Excluded((u64::from_str_radix(hash, 16).unwrap_or(u64::MAX), key.to_owned())),
            None => Bound::Unbounded,
        };
        let mut last = None;
        for (hash, key) in by_hash.range((start, Bound::Unbounded)).filter(|(_, key)| key.starts_with(&query.prefix)) {
            if page.objects.len() + folders.len() == page_keys {
                page.next = last;
                break;
            }
            match common_prefix(query, key) {
                // A folder whose keys lie on several pages is on each of them, as with the real provider.
                Some(folder) => _ = folders.insert(folder.to_owned()),
                None => page.objects.extend(self.objects.get_key_value(key)),
            }
            last = Some(format!("{hash:016x} {key}"));
        }
        page.common_prefixes = folders.into_iter().collect();
        page
    }
}

/// One page of a listing, as it stands in the store: a listing's latency is known from its keys before its answer is
/// made.
#[derive(Default)]
struct Page<'a> {
    objects: Vec<(&'a String, &'a Stored)>,
    common_prefixes: Vec<String>,
    next: Option<String>,
}

impl Page<'_> {
    fn keys(&self) -> usize {
        self.objects.len() + self.common_prefixes.len()
    }

    /// The greatest key or common prefix of a page in key order.
    fn last(&self) -> Option<String> {
        let key = self.objects.last().map(|(key, _)| *key);
        key.max(self.common_prefixes.last()).cloned()
    }
}

/// The folder that a key is folded into.
fn common_prefix<'a>(query: &ListQuery, key: &'a str) -> Option<&'a str> {
    if !query.delimited {
        return None;
    }
    let name = key.strip_prefix(&query.prefix)?;
    name.find('/').map(|slash| &key[..query.prefix.len() + slash + 1])
}

/// The smallest string that is greater than every key in a folder: `0` is what follows `/`.
fn behind_folder(folder: &str) -> String {
    // One slash only: before it may stand another, of a folder without a name.
    let mut behind = folder.strip_suffix('/').unwrap_or(folder).to_owned();
    behind.push('0');
    behind
}

/// The bytes that a span means in an object of some size; none if it starts at or behind its end, or asks for its last
/// zero bytes (RFC 9110, 14.1.2).
pub(crate) fn span_of(span: &Span, size: u64) -> Option<std::ops::Range<u64>> {
    let range = match span {
        Span::Full => return Some(0..size),
        Span::Range(range) => range.start..range.end.min(size),
        Span::From(start) => *start..size,
        Span::Last(0) => return None,
        Span::Last(length) => return Some(size.saturating_sub(*length)..size),
    };
    (range.start < range.end).then_some(range)
}
