//! How long does a request take? As long as its law says, drawn from the seed.

use std::time::Duration;

use futures::future::join_all;
use lakemark_core::record::Method;
use lakemark_core::store::{ListQuery, Precondition, Span, Store};
use lakemark_stores::Emulated;
use lakemark_stores::profile::Profile;

use crate::support::on_the_clock;
use crate::{MIB, body, client, exact, latencies_us, ms, timed};

#[test]
fn each_request_takes_its_laws_time() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (_, store) = client(&provider, 0);
        let (etag, took) = timed(store.put("t/a", body(3 * MIB), Precondition::None)).await;
        assert_eq!(took, ms(60 + 24), "put of 3 MiB");
        let matching = Precondition::Match(etag.unwrap());
        let (_, took) = timed(store.put("t/a", body(2 * MIB), matching)).await;
        assert_eq!(took, ms(40 + 16), "put-if-match of 2 MiB");
        let (_, took) = timed(store.put("t/b", body(MIB), Precondition::Absent)).await;
        assert_eq!(took, ms(50 + 8), "put-if-absent of 1 MiB");
        let (_, took) = timed(store.put("t/b", body(MIB), Precondition::Absent)).await;
        assert_eq!(took, ms(50 + 8), "a body is sent whether it wins or loses");
        let (_, took) = timed(store.get("t/a", Span::Full)).await;
        assert_eq!(took, ms(20 + 16), "get of 2 MiB");
        let (_, took) = timed(store.get("t/a", Span::Range(5..5 + MIB as u64 / 2))).await;
        assert_eq!(took, ms(20 + 4), "get of half a MiB of it");
        let (_, took) = timed(store.get("t/a", Span::Last(MIB as u64))).await;
        assert_eq!(took, ms(20 + 8), "get of the last MiB of it");
        let (_, took) = timed(store.get("t/none", Span::Full)).await;
        assert_eq!(took, ms(20), "get of nothing");
        let (_, took) = timed(store.head("t/a")).await;
        assert_eq!(took, ms(6), "head");
        let (_, took) = timed(store.copy("t/a", "t/c", Precondition::None)).await;
        assert_eq!(took, ms(70 + 16), "copy of 2 MiB");
        let (_, took) = timed(store.delete("t/c")).await;
        assert_eq!(took, ms(10), "delete");
    });
}

#[test]
fn a_page_of_a_listing_takes_time_for_its_keys_and_folders() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (writer, store) = client(&provider, 0);
        let keys: Vec<String> = (0..1_250).map(|n| format!("t/{}/{n:04}", n % 50)).collect();
        join_all(keys.iter().map(|key| store.put(key, body(0), Precondition::None))).await;
        writer.finish_operation();

        let query = ListQuery { prefix: "t/".to_owned(), ..ListQuery::default() };
        let (page, took) = timed(store.list(&query)).await;
        assert_eq!(took, ms(30 + 100), "1,000 keys");
        let next = ListQuery { token: page.unwrap().next, ..query.clone() };
        assert!(next.token.is_some());
        let (_, took) = timed(store.list(&next)).await;
        assert_eq!(took, ms(30 + 25), "250 keys");
        let (_, took) = timed(store.list(&ListQuery { delimited: true, ..query.clone() })).await;
        assert_eq!(took, ms(30 + 5), "50 folders");
        let (_, took) = timed(store.list(&ListQuery { prefix: "u/".to_owned(), ..query })).await;
        assert_eq!(took, ms(30), "nothing");
        let listed: Vec<_> = writer.finish_operation().requests.iter().map(|request| request.keys).collect();
        assert_eq!(listed, [Some(1_000), Some(250), Some(50), Some(0)]);
    });
}

#[test]
fn a_store_that_answers_at_once_takes_no_time() {
    on_the_clock(async |_| {
        let provider = Emulated::new(Profile::builtin("instant").unwrap(), 0);
        let (_, store) = client(&provider, 0);
        let work = async {
            for n in 0..100 {
                let key = format!("t/{n}");
                store.put(&key, body(10_000), Precondition::Absent).await.unwrap();
                store.get(&key, Span::Full).await.unwrap();
            }
        };
        assert_eq!(timed(work).await.1, Duration::ZERO);
    });
}

/// Latencies in microseconds of 20 writes and 20 reads, with other requests in between.
async fn sampled(seed: u64, extra: impl AsyncFn(&dyn Store), other: impl AsyncFn(&dyn Store)) -> Vec<u64> {
    let provider = Emulated::new(Profile::builtin("s3").unwrap(), seed);
    let ((writer, store), (_, beside)) = (client(&provider, 3), client(&provider, 4));
    for n in 0..20 {
        let key = format!("t/{n}");
        store.put(&key, body(100), Precondition::Absent).await.unwrap();
        extra(&*store).await;
        other(&*beside).await;
        store.get(&key, Span::Full).await.unwrap();
    }
    let mut log = writer.finish_operation();
    log.requests.retain(|request| matches!(request.method, Method::PutIfAbsent | Method::Get));
    latencies_us(&log)
}

#[test]
fn latencies_follow_from_the_seed_and_the_writers_own_requests() {
    on_the_clock(async |_| {
        let none = async |_: &dyn Store| {};
        let alone = sampled(1, none, none).await;
        assert_eq!(alone.len(), 40);
        let distinct = std::collections::HashSet::<u64>::from_iter(alone.iter().copied());
        assert!(distinct.len() > 30, "latencies that vary: {alone:?}");
        assert_eq!(sampled(1, none, none).await, alone, "the same seed");
        assert_ne!(sampled(2, none, none).await, alone, "another seed");

        let another = async |store: &dyn Store| {
            store.put("u/a", body(1), Precondition::Absent).await.ok();
            store.get("u/a", Span::Full).await.unwrap();
        };
        assert_eq!(sampled(1, none, another).await, alone, "another writer has more requests");
        let of_other_methods = async |store: &dyn Store| {
            store.put("u/b", body(1), Precondition::None).await.unwrap();
            store.head("u/b").await.unwrap();
        };
        assert_eq!(sampled(1, of_other_methods, none).await, alone, "the writer has more requests of other methods");
    });
}

#[test]
fn each_writer_has_latencies_of_its_own() {
    on_the_clock(async |_| {
        let provider = Emulated::new(Profile::builtin("s3").unwrap(), 1);
        let clients: Vec<_> = (0..8).map(|id| client(&provider, id)).collect();
        join_all(clients.iter().map(|(_, store)| store.head("t/none"))).await;
        let mut latencies: Vec<u64> =
            clients.iter().flat_map(|(writer, _)| latencies_us(&writer.finish_operation())).collect();
        latencies.sort_unstable();
        latencies.dedup();
        assert!(latencies.len() > 5, "{latencies:?}");
    });
}
