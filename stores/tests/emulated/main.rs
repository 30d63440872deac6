//! The emulated provider: when a request has its effect, how long it takes, what is refused, and what is recorded.
//!
//! Laws here are exact (sigma 0) and computing takes no time, so that moments are equal, not near.

#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used)]

mod effects;
mod latencies;
mod limits;
mod records;
#[path = "../support/mod.rs"]
mod support;
mod waits;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::record::Outcome;
use lakemark_core::store::{Provider, Store};
use lakemark_core::writer::{OperationLog, Scope, Writer};
use lakemark_stores::Emulated;
use lakemark_stores::law::Law;
use lakemark_stores::profile::{Profile, Rate};

const MIB: usize = 1 << 20;
const HOUR: Duration = Duration::from_secs(3_600);

/// Amazon S3's answers with latencies that are easy to add, 8 ms for each MiB, and no limits.
fn exact() -> Profile {
    let mut profile = Profile::builtin("s3").expect("a built-in profile");
    let law = |median_ms: f64| Law { median_ms, per_mib_ms: 8.0, ..Law::default() };
    let laws = &mut profile.laws;
    for (sourced, median_ms) in [
        (&mut laws.get, 20.0),
        (&mut laws.head, 6.0),
        (&mut laws.put, 60.0),
        (&mut laws.put_if_absent, 50.0),
        (&mut laws.put_if_match, 40.0),
        (&mut laws.list, 30.0),
        (&mut laws.delete, 10.0),
        (&mut laws.copy, 70.0),
    ] {
        sourced.law = law(median_ms);
    }
    laws.list.law.per_1000_keys_ms = 100.0;
    profile.limits.per_prefix_writes = None;
    profile.limits.per_prefix_reads = None;
    profile
}

/// [`exact`], and one object takes one write each `seconds`.
fn limited(seconds: f64) -> Profile {
    let mut profile = exact();
    profile.limits.status = 429;
    profile.limits.per_object_writes = Some(Rate { per_s: 1.0 / seconds, burst: 1.0 });
    profile
}

fn client(provider: &Arc<Emulated>, id: u32) -> (Arc<Writer>, Arc<dyn Store>) {
    let writer = Writer::new(id, Scope::plain());
    (writer.clone(), provider.clone().client(writer))
}

fn body(size: usize) -> Bytes {
    vec![b'x'; size].into()
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What something answers and the process time that it takes.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start_ns = clock::now_ns();
    let answer = work.await;
    (answer, Duration::from_nanos(clock::now_ns() - start_ns))
}

/// Does something later.
async fn after<T>(delay: Duration, work: impl Future<Output = T>) -> T {
    clock::sleep(delay).await;
    work.await
}

fn latencies_us(log: &OperationLog) -> Vec<u64> {
    log.requests.iter().map(|request| request.latency_us).collect()
}

fn outcomes(log: &OperationLog) -> Vec<(u16, Outcome)> {
    log.requests.iter().map(|request| (request.status, request.outcome)).collect()
}
