//! Stores that break their promises about conditional writes. Whatever they do, each of a writer's requests is recorded
//! as its client saw it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::record::{Method, Outcome};
use lakemark_core::store::{
    Inspect, ListPage, ListQuery, Object, ObjectInfo, Precondition, Provider, Span, Store, StoreError, StoreResult,
    Traits,
};
use lakemark_core::writer::{Ended, Scope, Writer};

/// What the store does wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// It takes every creation for a plain write: the last of two that race wins, and both are told so.
    IgnoresPreconditions,
    /// It acknowledges every tenth creation and forgets it.
    Forgets,
    /// It loses its answer to every third creation, after the effect.
    LosesAnswers,
    /// It makes every tenth creation again under the next number, as a proxy that sends a request twice might.
    Repeats,
}

/// A provider with a fault.
pub struct Broken<P> {
    inner: Arc<P>,
    fault: Fault,
    creations: AtomicU64,
}

impl<P: Provider> Broken<P> {
    pub fn new(inner: Arc<P>, fault: Fault) -> Arc<Self> {
        Arc::new(Self { inner, fault, creations: AtomicU64::new(0) })
    }

    /// Whether the creation that comes now is one of every so many.
    fn is_nth(&self, every: u64) -> bool {
        (self.creations.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }
}

impl<P: Provider> Inspect for Broken<P> {
    fn objects(&self, prefix: &str) -> Vec<(String, u64)> {
        self.inner.objects(prefix)
    }

    fn logical_bytes(&self) -> u64 {
        self.inner.logical_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.inner.held_bytes()
    }
}

impl<P: Provider + 'static> Provider for Broken<P> {
    fn client(self: Arc<Self>, writer: Arc<Writer>) -> Arc<dyn Store> {
        let inner = self.inner.clone().client(writer.clone());
        // Sends what the writer's client never hears of. Its latencies are drawn from the writer's own streams.
        let silent = self.inner.clone().client(Writer::new(writer.id(), Scope::plain()));
        Arc::new(Client { broken: Arc::new(Named(self)), writer, inner, silent })
    }
}

/// What a client needs of its provider, whatever is inside.
trait Faults: Send + Sync {
    fn fault(&self) -> Fault;
    fn is_nth(&self, every: u64) -> bool;
}

struct Named<P>(Arc<Broken<P>>);

impl<P: Provider> Faults for Named<P> {
    fn fault(&self) -> Fault {
        self.0.fault
    }

    fn is_nth(&self, every: u64) -> bool {
        self.0.is_nth(every)
    }
}

struct Client {
    broken: Arc<dyn Faults>,
    writer: Arc<Writer>,
    inner: Arc<dyn Store>,
    silent: Arc<dyn Store>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// A creation that the store does in its own way, recorded with the outcome that the client sees.
    async fn create(&self, key: &str, body: Bytes, is_effective: bool, seen: Outcome) -> StoreResult<String> {
        let request = self.writer.next_request();
        let start_ns = clock::now_ns();
        let written_bytes = body.len() as u64;
        let at_store = self.writer.at_store();
        let result = if is_effective {
            self.silent.put(key, body, Precondition::Absent).await
        } else {
            self.silent.head(key).await.map(|info| info.etag).or(Ok("forgotten".to_owned()))
        };
        drop(at_store);
        let outcome = match &result {
            Err(StoreError::Precondition { .. }) => Outcome::Conflict,
            _ => seen,
        };
        self.writer.record_request(&Ended {
            request,
            method: Method::PutIfAbsent,
            key,
            start_ns,
            end_ns: clock::now_ns(),
            read_bytes: 0,
            written_bytes,
            keys: None,
            status: if outcome == Outcome::Unknown { 0 } else { 200 },
            outcome,
        });
        match (result, outcome) {
            (Ok(_), Outcome::Unknown) => Err(StoreError::Unknown { key: key.to_owned(), reason: "cut off".to_owned() }),
            (result, _) => result,
        }
    }
}

#[async_trait]
impl Store for Client {
    fn traits(&self) -> Traits {
        self.inner.traits()
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        self.inner.get(key, span).await
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        self.inner.head(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        if precondition != Precondition::Absent {
            return self.inner.put(key, body, precondition).await;
        }
        match self.broken.fault() {
            Fault::IgnoresPreconditions => self.inner.put(key, body, Precondition::None).await,
            Fault::Forgets if self.broken.is_nth(10) => self.create(key, body, false, Outcome::Ok).await,
            Fault::LosesAnswers if self.broken.is_nth(3) => self.create(key, body, true, Outcome::Unknown).await,
            Fault::Repeats if self.broken.is_nth(10) => {
                let done = self.inner.put(key, body.clone(), precondition).await?;
                let (folder, number) = key.rsplit_once('/').unwrap_or(("", key));
                if let Ok(number) = number.parse::<u64>() {
                    let again = format!("{folder}/{:08}", number + 1);
                    // Where the next number is taken already, the repetition has no effect.
                    let _ = self.silent.put(&again, body, Precondition::Absent).await;
                }
                Ok(done)
            }
            _ => self.inner.put(key, body, precondition).await,
        }
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.inner.list(query).await
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.inner.delete(key).await
    }

    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()> {
        self.inner.copy(from, to, precondition).await
    }
}
