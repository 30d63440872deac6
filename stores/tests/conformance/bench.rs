//! A provider under test, and the clients that a case asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use futures::{StreamExt, stream};
use lakemark_core::store::{Inspect, Precondition, Provider, Store};
use lakemark_core::writer::{Scope, Writer};
use lakemark_stores::Emulated;
use lakemark_stores::law::Law;
use lakemark_stores::profile::Profile;

use crate::subject::Subject;

/// Sees a client through an interface.
pub(crate) type Open = fn(Arc<dyn Store>) -> Box<dyn Subject>;

/// Writes under way at once when a bench is filled: below every provider's limits.
const WRITES_IN_FLIGHT: usize = 100;

pub(crate) struct Bench {
    pub(crate) profile: Profile,
    provider: Arc<Emulated>,
    open: Open,
    writers: AtomicU32,
}

impl Bench {
    /// An empty provider.
    pub(crate) fn new(profile: Profile, open: Open) -> Self {
        let provider = Emulated::new(profile.clone(), 7);
        Self { profile, provider, open, writers: AtomicU32::new(0) }
    }

    /// An empty provider like this one, with pages of another size and the same latency for every write: filling it
    /// takes few steps of the clock.
    pub(crate) fn with_pages(&self, page_keys: u32) -> Self {
        let mut profile = self.profile.clone();
        profile.list.page_keys = page_keys;
        profile.laws.put.law = Law { sigma: 0.0, ..profile.laws.put.law };
        Self::new(profile, self.open)
    }

    /// A client of a writer of its own, and that writer.
    pub(crate) fn recorded(&self) -> (Arc<Writer>, Box<dyn Subject>) {
        let (writer, store) = self.client();
        (writer, (self.open)(store))
    }

    pub(crate) fn subject(&self) -> Box<dyn Subject> {
        self.recorded().1
    }

    /// A client beside the interface under test.
    pub(crate) fn client(&self) -> (Arc<Writer>, Arc<dyn Store>) {
        let writer = Writer::new(self.writers.fetch_add(1, Ordering::Relaxed), Scope::plain());
        (writer.clone(), self.provider.clone().client(writer))
    }

    /// Writes small objects, each with its key as its body.
    pub(crate) async fn fill<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) {
        let (_, client) = self.client();
        stream::iter(keys)
            .map(|key| {
                let client = client.clone();
                async move {
                    let key = key.as_ref();
                    let body = Bytes::copy_from_slice(key.as_bytes());
                    client.put(key, body, Precondition::None).await.expect("the object is written")
                }
            })
            .buffer_unordered(WRITES_IN_FLIGHT)
            .for_each(async |_| {})
            .await;
    }

    /// Keys of all objects, from outside.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.provider.objects("").into_iter().map(|(key, _)| key).collect()
    }
}
