//! What the emulated store costs: keeping and reading back objects that repeat as the formats' metadata does.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lakemark_core::store::{ListQuery, Precondition, Provider, Span, Store};
use lakemark_core::writer::{Scope, Writer};
use lakemark_stores::Emulated;
use lakemark_stores::profile::Profile;
use std::sync::Arc;

fn client() -> Arc<dyn Store> {
    let profile = Profile::builtin("instant").expect("a built-in profile");
    Emulated::new(profile, 1).client(Writer::new(0, Scope::plain()))
}

/// JSON with an array of `count` snapshots, in an order of its own for each version.
fn table_metadata(count: u64, version: u64) -> Bytes {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_key(|n| n.wrapping_mul(version | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let entries: Vec<String> = order
        .iter()
        .map(|n| {
            format!(
                "{{\"snapshot-id\":{n},\"manifest-list\":\"{}{n}\",\"summary\":{{\"n\":\"{n}\"}}}}",
                "x".repeat(450)
            )
        })
        .collect();
    Bytes::from(format!("{{\"version\":{version},\"snapshots\":[{}]}}", entries.join(",")))
}

fn objects(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let store = client();
    let size = table_metadata(5_000, 1).len() as u64;
    let mut group = criterion.benchmark_group("table-metadata-5000-snapshots");
    group.throughput(Throughput::Bytes(size)).sample_size(20);
    let mut version = 0;
    group.bench_function("put", |bench| {
        bench.iter_batched(
            || {
                version += 1;
                (format!("metadata/{version}"), table_metadata(5_000, version))
            },
            |(key, body)| runtime.block_on(store.put(&key, body, Precondition::None)).expect("a written object"),
            BatchSize::LargeInput,
        );
    });
    let mut read = 0;
    group.bench_function("get-older", |bench| {
        bench.iter(|| {
            // Never one of those kept whole: they are read in a circle.
            read = read % version + 1;
            runtime.block_on(store.get(&format!("metadata/{read}"), Span::Full)).expect("an object")
        });
    });
    group.finish();
}

fn listing(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let store = client();
    runtime.block_on(async {
        for number in 0..10_000 {
            let key = format!("_delta_log/{number:020}.json");
            store.put(&key, Bytes::from_static(b"{}"), Precondition::None).await.expect("a written object");
        }
    });
    let query = ListQuery {
        prefix: "_delta_log/".to_owned(),
        start_after: Some(format!("_delta_log/{:020}.json", 5_000)),
        ..ListQuery::default()
    };
    criterion.bench_function("list/page-of-10000-keys", |bench| {
        bench.iter(|| runtime.block_on(store.list(&query)).expect("a page"));
    });
}

criterion_group!(benches, objects, listing);
criterion_main!(benches);
