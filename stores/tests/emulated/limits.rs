//! What is refused, and how the client comes again.

use futures::future::join_all;
use lakemark_core::record::{Method, Outcome, Request};
use lakemark_core::store::{Inspect, ListQuery, Precondition, Span, StoreError};
use lakemark_stores::Emulated;
use lakemark_stores::profile::{Profile, Rate};

use crate::support::on_the_clock;
use crate::{body, client, exact, limited, outcomes};

/// As many as get through in time: ten retries last for some three seconds.
const WRITERS: u32 = 3;

/// What writers that all write one object at once have on the wire, in the order of the answers.
async fn burst(profile: Profile, key: impl Fn(u32) -> String) -> Vec<Request> {
    let provider = Emulated::new(profile, 11);
    let clients: Vec<_> = (0..WRITERS).map(|id| client(&provider, id)).collect();
    let keys: Vec<String> = (0..WRITERS).map(key).collect();
    let writes = clients.iter().zip(&keys).map(|((_, store), key)| store.put(key, body(7), Precondition::None));
    for answer in join_all(writes).await {
        answer.expect("every writer gets through in the end");
    }
    let mut requests: Vec<Request> =
        clients.iter().flat_map(|(writer, _)| writer.finish_operation().requests).collect();
    requests.sort_by_key(|request| request.start_us + request.latency_us);
    requests
}

#[test]
fn an_object_takes_a_write_a_second_and_refused_ones_come_again() {
    on_the_clock(async |_| {
        let mut profile = Profile::builtin("gcs").unwrap();
        profile.laws.put.law = exact().laws.put.law;
        let requests = burst(profile, |_| "t/a".to_owned()).await;

        let through: Vec<&Request> = requests.iter().filter(|request| request.outcome == Outcome::Ok).collect();
        assert_eq!(through.len(), WRITERS as usize);
        for pair in through.windows(2) {
            let apart_us = pair[1].start_us - pair[0].start_us;
            assert!(apart_us >= 1_000_000, "two writes of one object {apart_us} µs apart");
        }
        let refused: Vec<&Request> = requests.iter().filter(|request| request.outcome != Outcome::Ok).collect();
        assert!(refused.len() >= WRITERS as usize, "{} refusals", refused.len());
        for request in &refused {
            assert_eq!((request.status, request.outcome), (429, Outcome::Throttled));
            assert_eq!((request.method, request.written_bytes), (Method::Put, 7), "the body is sent each time");
        }
    });
}

#[test]
fn other_objects_are_not_limited() {
    on_the_clock(async |_| {
        let requests = burst(limited(1.0), |writer| format!("t/{writer}")).await;
        assert_eq!(requests.len(), WRITERS as usize);
    });
}

#[test]
fn reads_are_not_counted_as_writes() {
    on_the_clock(async |_| {
        let provider = Emulated::new(limited(1_000.0), 0);
        let (writer, store) = client(&provider, 0);
        store.put("t/a", body(1), Precondition::None).await.unwrap();
        for _ in 0..10 {
            store.get("t/a", Span::Full).await.unwrap();
            store.head("t/a").await.unwrap();
            store.list(&ListQuery::default()).await.unwrap();
        }
        assert_eq!(writer.finish_operation().requests.len(), 31);
    });
}

#[test]
fn a_client_comes_again_ten_times_after_pauses_that_vary() {
    on_the_clock(async |_| {
        let provider = Emulated::new(limited(1e9), 0);
        client(&provider, 0).1.put("t/a", body(1), Precondition::None).await.unwrap();
        let mut all_us = std::collections::BTreeSet::new();
        for id in 1..4 {
            let (writer, store) = client(&provider, id);
            let refused = store.put("t/a", body(2), Precondition::None).await;
            assert_eq!(refused, Err(StoreError::Throttled { key: "t/a".to_owned(), status: 429 }));
            let log = writer.finish_operation();
            assert_eq!(outcomes(&log), [(429, Outcome::Throttled); 11]);
            assert!(log.requests.iter().map(|request| request.request).eq(0..11), "numbered in order");

            let pauses = log.requests.windows(2);
            let pauses_us: Vec<u64> =
                pauses.map(|pair| pair[1].start_us - pair[0].start_us - pair[0].latency_us).collect();
            assert!(pauses_us[0].abs_diff(100_000) <= 1, "the first pause is 100 ms: {pauses_us:?}");
            for pair in pauses_us.windows(2) {
                // Each is drawn between the first and twice the one before.
                assert!((99_999..=2 * pair[0] + 2).contains(&pair[1]), "{pauses_us:?}");
            }
            all_us.extend(pauses_us[1..].iter().copied());
        }
        assert!(all_us.len() > 20, "pauses vary: {all_us:?}");
        assert!(all_us.last() > Some(&200_000), "pauses grow: {all_us:?}");
        assert_eq!(provider.objects(""), [("t/a".to_owned(), 1)], "a refused write has no effect");
    });
}

#[test]
fn a_bucket_and_a_prefix_have_limits_of_their_own() {
    on_the_clock(async |_| {
        let two = Some(Rate { per_s: 1.0, burst: 2.0 });
        let mut by_prefix = exact();
        by_prefix.limits.per_prefix_writes = two;
        let mut by_bucket = exact();
        by_bucket.limits.per_bucket_writes = two;
        for (profile, keys, refused) in [
            (&by_prefix, ["t/a", "t/b", "t/c", "u/a"], true),
            (&by_prefix, ["t/a", "t/b", "u/a", "u/b"], false),
            (&by_bucket, ["t/a", "t/b", "u/a", "v"], true),
        ] {
            let provider = Emulated::new(profile.clone(), 0);
            let (writer, store) = client(&provider, 0);
            join_all(keys.map(|key| store.put(key, body(1), Precondition::None))).await;
            let throttled =
                writer.finish_operation().requests.iter().any(|request| request.outcome == Outcome::Throttled);
            assert_eq!(throttled, refused, "{keys:?}");
        }
    });
}
