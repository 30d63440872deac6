//! One writer's client of the emulated provider: a round trip for each request, recorded, and retried when throttled
//! as the HTTP client that the formats use does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::record::{Method, Outcome};
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Span, Store, StoreError, StoreResult, Traits,
};
use lakemark_core::writer::{AtStore, Ended, Writer};
use rand::RngExt;

use crate::emulated::{Emulated, State, span_of};
use crate::law::Law;
use crate::seed;

/// Backoff and time-out of `object_store`'s HTTP client at its defaults; the format says how often it retries.
const RETRY_TIMEOUT_NS: u64 = 180_000_000_000;
const BACKOFF_MS_FIRST: f64 = 100.0;
const BACKOFF_MS_MAX: f64 = 15_000.0;

/// Numbers of random streams: one for each verb, one for backoff.
const METHODS: [Method; 8] = [
    Method::Get,
    Method::Head,
    Method::Put,
    Method::PutIfAbsent,
    Method::PutIfMatch,
    Method::List,
    Method::Delete,
    Method::Copy,
];
const BACKOFF_STREAM: u8 = 8;

/// A client that one writer uses.
#[derive(Debug)]
pub(crate) struct Client {
    provider: Arc<Emulated>,
    writer: Arc<Writer>,
    /// Requests so far, by random stream.
    sent: [AtomicU64; METHODS.len() + 1],
}

/// What one request is, before its effect.
struct Call<'a> {
    method: Method,
    key: &'a str,
    law: Law,
    written_bytes: u64,
}

/// How much an answer carries.
#[derive(Clone, Copy, Default)]
struct Carried {
    read_bytes: u64,
    keys: Option<u32>,
}

/// A request under way. If its future is dropped before the answer, it is recorded as one whose outcome the client
/// never learned.
struct InFlight<'a> {
    client: &'a Client,
    call: &'a Call<'a>,
    request: u64,
    start_ns: u64,
    carried: Carried,
    answer: Option<(u16, Outcome)>,
    at_store: Option<AtStore>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        drop(self.at_store.take());
        let (status, outcome) = self.answer.unwrap_or((0, Outcome::Unknown));
        clock::frozen(|| {
            self.client.writer.record_request(&Ended {
                request: self.request,
                method: self.call.method,
                key: self.call.key,
                start_ns: self.start_ns,
                end_ns: clock::now_ns(),
                read_bytes: self.carried.read_bytes,
                written_bytes: self.call.written_bytes,
                keys: self.carried.keys,
                status,
                outcome,
            });
        });
    }
}

impl Client {
    pub(crate) fn new(provider: Arc<Emulated>, writer: Arc<Writer>) -> Self {
        Self { provider, writer, sent: Default::default() }
    }

    fn nth(&self, stream: u8) -> u64 {
        self.sent[usize::from(stream)].fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request: half of the round trip, the effect, the other half. `expect` says how many bytes and keys the
    /// answer will carry, since they are part of the latency.
    async fn send<T>(
        &self,
        call: &Call<'_>,
        expect: impl Fn(&State) -> Carried,
        mut effect: impl FnMut(&mut State, u64) -> StoreResult<T>,
        carried: impl Fn(&T) -> Carried,
    ) -> StoreResult<T> {
        let request = self.writer.next_request();
        let start_ns = clock::now_ns();
        let latency_ns = clock::frozen(|| {
            let expected = expect(&self.provider.state());
            let stream = METHODS.iter().position(|method| *method == call.method).unwrap_or_default() as u8;
            let mut random = seed::stream(self.provider.seed(), self.writer.id(), stream, self.nth(stream));
            let bytes = call.written_bytes + expected.read_bytes;
            let latency = call.law.sample(&mut random, bytes, expected.keys.unwrap_or(0).into());
            u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
        });
        let at_store = Some(self.writer.at_store());
        let mut in_flight =
            InFlight { client: self, call, request, start_ns, carried: Carried::default(), answer: None, at_store };
        clock::sleep_until(start_ns + latency_ns / 2).await;
        let result = clock::frozen(|| {
            let mut state = self.provider.state();
            let is_write = !matches!(call.method, Method::Get | Method::Head | Method::List);
            let limits = &self.provider.profile().limits;
            if state.buckets.admit(limits, call.key, is_write, clock::now_ns()) {
                effect(&mut state, start_ns)
            } else {
                Err(StoreError::Throttled { key: call.key.to_owned(), status: limits.status })
            }
        });
        clock::sleep_until(start_ns + latency_ns).await;
        in_flight.answer = Some(match &result {
            Ok(_) => (200, Outcome::Ok),
            Err(error) => answer(error),
        });
        if let Ok(value) = &result {
            in_flight.carried = carried(value);
        }
        result
    }

    /// Sends a request until it is not throttled, at most as often and as long as the HTTP client does.
    async fn send_patiently<T>(
        &self,
        call: Call<'_>,
        expect: impl Fn(&State) -> Carried,
        mut effect: impl FnMut(&mut State, u64) -> StoreResult<T>,
        carried: impl Fn(&T) -> Carried,
    ) -> StoreResult<T> {
        let started_ns = clock::now_ns();
        let mut backoff_ms = BACKOFF_MS_FIRST;
        let mut retries = 0;
        loop {
            let result = self.send(&call, &expect, &mut effect, &carried).await;
            // The client sees a conflict between two conditional updates (409) as passing, one between two creations
            // as the object's being there.
            let passing = match &result {
                Err(StoreError::Throttled { .. }) => true,
                Err(StoreError::Precondition { status: 409, .. }) => call.method == Method::PutIfMatch,
                _ => false,
            };
            let waited_ns = clock::now_ns().saturating_sub(started_ns);
            if !passing || retries == self.writer.client_retries() || waited_ns >= RETRY_TIMEOUT_NS {
                return result;
            }
            retries += 1;
            let nth = self.nth(BACKOFF_STREAM);
            let mut random = seed::stream(self.provider.seed(), self.writer.id(), BACKOFF_STREAM, nth);
            let pause_ms = backoff_ms;
            backoff_ms = random.random_range(BACKOFF_MS_FIRST..=backoff_ms * 2.0).min(BACKOFF_MS_MAX);
            // The writer waits for the store here, too: a catalog call around this request must not hold the clock, which
            // would then never reach the end of the pause.
            let _waits = self.writer.at_store();
            clock::sleep(Duration::from_secs_f64(pause_ms / 1e3)).await;
        }
    }
}

/// HTTP status and outcome of a failed request.
fn answer(error: &StoreError) -> (u16, Outcome) {
    match error {
        StoreError::NotFound { .. } => (404, Outcome::NotFound),
        StoreError::Precondition { status, .. } => (*status, Outcome::Conflict),
        StoreError::Throttled { status, .. } => (*status, Outcome::Throttled),
        StoreError::Unsupported { .. } => (501, Outcome::Error),
        StoreError::Failed { .. } => (400, Outcome::Error),
        StoreError::Unknown { .. } => (0, Outcome::Unknown),
    }
}

fn nothing<T>(_: &T) -> Carried {
    Carried::default()
}

#[async_trait]
impl Store for Client {
    fn traits(&self) -> Traits {
        Traits { ordered_list: self.provider.profile().list.ordered }
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        let call = Call { method: Method::Get, key, law: self.provider.profile().laws.get.law, written_bytes: 0 };
        self.send_patiently(
            call,
            |state| {
                let bytes = span_of(&span, state.size(key)).unwrap_or(0..0);
                Carried { read_bytes: bytes.end - bytes.start, keys: None }
            },
            |state, _| state.get(key, &span),
            |object| Carried { read_bytes: object.body.len() as u64, keys: None },
        )
        .await
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        let call = Call { method: Method::Head, key, law: self.provider.profile().laws.head.law, written_bytes: 0 };
        self.send_patiently(call, nothing, |state, _| state.head(key), nothing).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        let profile = self.provider.profile();
        let (method, law) = match precondition {
            Precondition::None => (Method::Put, profile.laws.put.law),
            Precondition::Absent => (Method::PutIfAbsent, profile.laws.put_if_absent.law),
            Precondition::Match(_) => (Method::PutIfMatch, profile.laws.put_if_match.law),
        };
        let call = Call { method, key, law, written_bytes: body.len() as u64 };
        self.send_patiently(
            call,
            nothing,
            |state, sent_ns| state.put(profile, key, body.clone(), &precondition, sent_ns),
            nothing,
        )
        .await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        let profile = self.provider.profile();
        let call = Call { method: Method::List, key: &query.prefix, law: profile.laws.list.law, written_bytes: 0 };
        let keys = |keys: usize| u32::try_from(keys).ok();
        let carried = |page: &ListPage| Carried {
            read_bytes: listing_bytes(page),
            keys: keys(page.objects.len() + page.common_prefixes.len()),
        };
        self.send_patiently(
            call,
            |state| Carried { read_bytes: 0, keys: state.listed_keys(profile, query).ok().and_then(keys) },
            |state, _| state.list(profile, query),
            carried,
        )
        .await
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        let call = Call { method: Method::Delete, key, law: self.provider.profile().laws.delete.law, written_bytes: 0 };
        let effect = |state: &mut State, _| {
            state.delete(key);
            Ok(())
        };
        self.send_patiently(call, nothing, effect, nothing).await
    }

    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()> {
        let profile = self.provider.profile();
        let call = Call { method: Method::Copy, key: to, law: profile.laws.copy.law, written_bytes: 0 };
        self.send_patiently(
            call,
            // What the provider moves inside itself takes its time, and nothing crosses the wire.
            |state| Carried { read_bytes: state.size(from), keys: None },
            |state, sent_ns| state.copy(profile, from, to, &precondition, sent_ns),
            nothing,
        )
        .await
    }
}

/// Bytes of a listing's answer: an estimate, since the emulator writes no XML. An entry of S3's answer is about 270
/// bytes beside its key.
fn listing_bytes(page: &ListPage) -> u64 {
    let entries = page.objects.iter().map(|info| info.key.len() + 270);
    let folders = page.common_prefixes.iter().map(|folder| folder.len() + 60);
    entries.chain(folders).sum::<usize>() as u64
}
