//! What does a writer wait for: the store, or its catalog?

use std::time::Duration;

use futures::future::join;
use lakemark_core::clock::{self, Mode};
use lakemark_core::record::{Layer, Outcome};
use lakemark_core::store::{Precondition, Span};
use lakemark_stores::Emulated;

use crate::support::on_the_clock;
use crate::{HOUR, after, body, client, exact, limited, ms, timed};

#[test]
fn a_writer_waits_while_any_of_its_requests_is_at_the_store() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let (writer, store) = client(&provider, 0);
        // 0 to 20 and 10 to 70, in it 30 to 36; then 100 to 110.
        let head = async { store.head("t/a").await.map(drop) };
        let (read, written) = (store.get("t/a", Span::Full), store.put("t/b", body(0), Precondition::None));
        let together = join(join(read, after(ms(10), written)), after(ms(30), head));
        let ((_, took), ()) = join(timed(together), after(ms(100), async { store.delete("t/a").await.unwrap() })).await;
        assert_eq!(took, ms(70));
        let log = writer.finish_operation();
        assert_eq!(log.requests.len(), 4);
        assert_eq!(Duration::from_nanos(log.wait_ns), ms(70 + 10));
        // Another writer's waits are its own.
        let (idle, _) = client(&provider, 1);
        assert_eq!(idle.finish_operation().wait_ns, 0);
    });
}

#[test]
fn a_catalog_call_holds_the_clock_for_all() {
    on_the_clock(async |switched| {
        assert_eq!((switched.mode, switched.note), (Mode::Skip, None), "this machine can skip");
        let provider = Emulated::new(exact(), 0);
        let ((caller, _), (_, store)) = (client(&provider, 0), client(&provider, 1));
        let real_ns = clock::real_ns();
        let call = async {
            let call = caller.catalog_call();
            // Real time, since the clock is held.
            clock::sleep(ms(80)).await;
            call.attempted(Outcome::Conflict);
        };
        // Another writer's wait does not let the clock go.
        join(call, store.get("t/a", Span::Full)).await.1.unwrap_err();
        assert!(clock::real_ns() - real_ns >= 80_000_000, "the clock skipped during a catalog call");
        let log = caller.finish_operation();
        assert_eq!(log.wait_ns, 0);
        assert!((20_000_000..5_000_000_000).contains(&log.catalog_ns), "{} ns in the catalog", log.catalog_ns);
        assert_eq!((log.attempts[0].layer, log.attempts[0].outcome), (Layer::Catalog, Outcome::Conflict));
        assert!(log.attempts[0].latency_us >= 80_000);
    });
}

#[test]
fn a_wait_for_the_store_within_a_catalog_call_is_a_wait_for_the_store() {
    on_the_clock(async |_| {
        let mut profile = exact();
        profile.laws.get.law.median_ms = HOUR.as_secs_f64() * 1e3;
        let provider = Emulated::new(profile, 0);
        let (writer, store) = client(&provider, 0);
        let real_ns = clock::real_ns();
        let call = writer.catalog_call();
        clock::sleep(ms(30)).await;
        store.get("t/a", Span::Full).await.unwrap_err();
        clock::sleep(ms(30)).await;
        drop(call);
        assert!(clock::real_ns() - real_ns < 60_000_000_000, "the clock was held for an hour's request");
        let log = writer.finish_operation();
        // To the moment between the sending of the request and the clock's being let go, in which it runs.
        assert!(HOUR.abs_diff(Duration::from_nanos(log.wait_ns)) < ms(1_000), "{} ns at the store", log.wait_ns);
        assert!((10_000_000..5_000_000_000).contains(&log.catalog_ns), "{} ns in the catalog", log.catalog_ns);
    });
}

#[test]
fn a_throttled_request_within_a_catalog_call_does_not_hold_the_clock() {
    on_the_clock(async |_| {
        let provider = Emulated::new(limited(2.0), 0);
        let (writer, store) = client(&provider, 0);
        store.put("t/a", body(1), Precondition::None).await.unwrap();
        writer.finish_operation();
        let real_ns = clock::real_ns();
        let call = writer.catalog_call();
        let (answer, took) = timed(store.put("t/a", body(2), Precondition::None)).await;
        answer.unwrap();
        drop(call);
        let real = Duration::from_nanos(clock::real_ns() - real_ns);
        assert!(took >= ms(1_900), "{took:?} for a write each 2 s");
        assert!(real < ms(1_000), "{real:?} of real time: the clock was held during the pauses");
        let waited = Duration::from_nanos(writer.finish_operation().wait_ns);
        assert!(waited.abs_diff(took) < ms(200), "{waited:?} at the store, pauses included, of {took:?}");
    });
}
