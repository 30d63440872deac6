//! What is known afterwards: every request, every attempt, and what the store holds.

use std::sync::Arc;

use async_trait::async_trait;
use lakemark_core::clock;
use lakemark_core::record::{Attempt, Layer, Method, Outcome, Request};
use lakemark_core::store::{Inspect, ListQuery, Precondition, Provider, Span, Store};
use lakemark_core::table::{Format, FormatInfo, OperationError, OperationResult, Site, Table};
use lakemark_core::writer::{OperationLog, Scope, Writer};
use lakemark_stores::Emulated;

use crate::support::on_the_clock;
use crate::{body, client, exact, limited, ms};

/// A format of which only the names of its keys are asked.
struct Named;

#[async_trait]
impl Format for Named {
    fn info(&self) -> FormatInfo {
        FormatInfo { name: "named", library: "none".to_owned(), catalogs: &["none"], settings: &[], unsupported: &[] }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key.starts_with("_log/") { "log" } else { "other" }
    }

    fn publishes(&self, key: &str) -> bool {
        key.starts_with("_log/")
    }

    async fn create(&self, _: &Site) -> OperationResult<()> {
        Err(OperationError::other("a format in name only"))
    }

    async fn open(&self, _: &Site) -> OperationResult<Box<dyn Table>> {
        Err(OperationError::other("a format in name only"))
    }

    async fn open_shallow(&self, _: &Site) -> OperationResult<u64> {
        Err(OperationError::other("a format in name only"))
    }
}

/// A client of a writer of the table `bench/t`.
fn of_table(provider: &Arc<Emulated>, id: u32) -> (Arc<Writer>, Arc<dyn Store>) {
    let writer = Writer::new(id, Scope::of_table(Arc::new(Named), "bench/t"));
    (writer.clone(), provider.clone().client(writer))
}

#[test]
fn a_request_is_recorded_as_it_was() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (writer, store) = of_table(&provider, 5);
        writer.finish_operation();
        clock::start_records();
        clock::sleep(ms(3)).await;
        store.put("bench/t/_log/0", body(1_000), Precondition::Absent).await.unwrap();
        store.get("bench/t/_log/0", Span::Range(10..30)).await.unwrap();
        store.head("elsewhere").await.unwrap_err();
        let query = ListQuery { prefix: "bench/t/_log/".to_owned(), ..ListQuery::default() };
        store.list(&query).await.unwrap();
        store.copy("bench/t/_log/0", "bench/t/c", Precondition::None).await.unwrap();
        store.delete("bench/t/c").await.unwrap();

        let mut log = writer.finish_operation();
        assert!(log.requests[3].read_bytes > 0, "a listing has an answer");
        log.requests[3].read_bytes = 0;
        let latency_us = log.requests.iter().map(|request| request.latency_us).collect::<Vec<_>>();
        // To the microsecond: 50 ms and 1,000 bytes, 20 ms and 20 bytes, one key, 1,000 bytes.
        assert_eq!(latency_us, [50_007, 20_000, 6_000, 30_100, 70_007, 10_000]);
        let expected = |request, method, key: &str, class: &str, written_bytes, read_bytes, keys, status, outcome| {
            let before_us: u64 = latency_us[..request as usize].iter().sum();
            Request {
                writer: 5,
                operation: 1,
                request,
                method,
                key: key.to_owned(),
                class: class.to_owned(),
                start_us: 3_000 + before_us,
                latency_us: latency_us[request as usize],
                read_bytes,
                written_bytes,
                keys,
                status,
                outcome,
            }
        };
        let ok = Outcome::Ok;
        let records = [
            expected(0, Method::PutIfAbsent, "_log/0", "log", 1_000, 0, None, 200, ok),
            expected(1, Method::Get, "_log/0", "log", 0, 20, None, 200, ok),
            expected(2, Method::Head, "elsewhere", "other", 0, 0, None, 404, Outcome::NotFound),
            expected(3, Method::List, "_log/", "log", 0, 0, Some(1), 200, ok),
            expected(4, Method::Copy, "c", "other", 0, 0, None, 200, ok),
            expected(5, Method::Delete, "c", "other", 0, 0, None, 200, ok),
        ];
        for (recorded, mut expected) in log.requests.into_iter().zip(records) {
            // Each is rounded down to a microsecond, and so is their sum.
            assert!(recorded.start_us.abs_diff(expected.start_us) <= 2, "{recorded:?}");
            expected.start_us = recorded.start_us;
            assert_eq!(recorded, expected);
        }
    });
}

fn attempts(log: &OperationLog) -> Vec<(u32, Outcome)> {
    log.attempts.iter().map(|attempt| (attempt.attempt, attempt.outcome)).collect()
}

#[test]
fn a_write_of_a_publishing_key_is_an_attempt() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let ((first, one), (second, other)) = (of_table(&provider, 0), of_table(&provider, 1));
        let publish = async |store: &dyn Store| {
            store.put("bench/t/data/x", body(1), Precondition::None).await.unwrap();
            store.get("bench/t/_log/0", Span::Full).await.ok();
            store.put("bench/t/_log/1", body(1), Precondition::Absent).await.ok();
        };
        publish(&*one).await;
        publish(&*other).await;
        let (won, lost) = (first.finish_operation(), second.finish_operation());
        assert_eq!(attempts(&won), [(0, Outcome::Ok)]);
        assert_eq!(attempts(&lost), [(0, Outcome::Conflict)]);
        let last = won.requests.last().unwrap();
        assert_eq!(
            won.attempts,
            [Attempt {
                writer: 0,
                operation: 0,
                attempt: 0,
                layer: Layer::Store,
                start_us: last.start_us,
                latency_us: 50_000,
                outcome: Outcome::Ok,
                behind: 0,
                requests: 3,
                read_bytes: 0,
                written_bytes: 2,
            }]
        );
        // Each operation counts its own, also one without any.
        one.get("bench/t/_log/1", Span::Full).await.unwrap();
        assert_eq!(attempts(&first.finish_operation()), []);
        one.put("bench/t/_log/2", body(1), Precondition::Absent).await.unwrap();
        let third = first.finish_operation();
        assert_eq!((third.attempts[0].operation, third.attempts[0].attempt), (2, 0));
    });
}

#[test]
fn an_attempt_knows_what_it_spent_and_how_far_behind_it_was() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let scope = Scope::of_table(Arc::new(Named), "bench/t");
        let [first, second] = [0, 1].map(|id| Writer::new(id, scope.clone()));
        let [one, other] = [&first, &second].map(|writer| provider.clone().client(writer.clone()));
        first.start_operation();
        second.start_operation();
        for version in 1..=2 {
            one.put(&format!("bench/t/_log/{version}"), body(10), Precondition::Absent).await.unwrap();
        }
        for version in 1..=3 {
            other.put(&format!("bench/t/_log/{version}"), body(10), Precondition::Absent).await.ok();
            other.get("bench/t/_log/1", Span::Full).await.unwrap();
        }
        let spent: Vec<_> = second
            .finish_operation()
            .attempts
            .iter()
            .map(|attempt| (attempt.outcome, attempt.behind, attempt.requests, attempt.read_bytes))
            .collect();
        // The read after the last attempt belongs to none.
        assert_eq!(spent, [(Outcome::Conflict, 2, 1, 0), (Outcome::Conflict, 2, 2, 10), (Outcome::Ok, 2, 2, 10)]);
        second.start_operation();
        other.put("bench/t/_log/4", body(1), Precondition::Absent).await.unwrap();
        assert_eq!(second.finish_operation().attempts[0].behind, 0);
    });
}

#[test]
fn each_retry_of_a_throttled_publish_is_an_attempt() {
    on_the_clock(async |_| {
        let provider = Emulated::new(limited(0.2), 0);
        let (writer, store) = of_table(&provider, 0);
        store.put("bench/t/_log/1", body(1), Precondition::None).await.unwrap();
        // Effects: 30 ms, 90 ms (refused), after a pause of 100 ms 250 ms: 220 ms after the first.
        store.put("bench/t/_log/1", body(1), Precondition::None).await.unwrap();
        let log = writer.finish_operation();
        assert_eq!(attempts(&log), [(0, Outcome::Ok), (1, Outcome::Throttled), (2, Outcome::Ok)]);
        assert_eq!(log.requests.len(), 3);
    });
}

#[test]
fn an_attempt_that_is_given_up_is_unknown() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (writer, store) = of_table(&provider, 0);
        tokio::select! {
            answer = store.put("bench/t/_log/1", body(1), Precondition::Absent) => panic!("{answer:?}"),
            () = clock::sleep(ms(30)) => {}
        }
        assert_eq!(attempts(&writer.finish_operation()), [(0, Outcome::Unknown)]);
    });
}

#[test]
fn objects_are_seen_from_outside() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (_, store) = client(&provider, 0);
        for (key, size) in [("t/b", 2_000), ("t/a", 10), ("u", 5), ("t/b", 3_000)] {
            store.put(key, body(size), Precondition::None).await.unwrap();
        }
        store.copy("t/b", "t/c", Precondition::None).await.unwrap();
        assert_eq!(provider.objects("t/"), [("t/a", 10), ("t/b", 3_000), ("t/c", 3_000)].map(|(k, n)| (k.into(), n)));
        assert_eq!(provider.logical_bytes(), 6_015);
        assert!(provider.held_bytes() > 0);
        store.delete("t/b").await.unwrap();
        assert_eq!(provider.logical_bytes(), 3_015);
    });
}
