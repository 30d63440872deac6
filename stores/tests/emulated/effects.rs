//! When does a request have its effect? In the middle of its round trip.

use futures::future::join;
use lakemark_core::clock;
use lakemark_core::record::Outcome;
use lakemark_core::store::{Inspect, Precondition, Span, StoreError};
use lakemark_stores::Emulated;

use crate::support::on_the_clock;
use crate::{MIB, after, body, client, exact, latencies_us, ms, outcomes, timed};

#[test]
fn a_write_has_its_effect_in_the_middle_of_its_round_trip() {
    on_the_clock(async |_| {
        // The write is sent at 0, has its effect at 30 and is answered at 60 ms; a read looks 10 ms after it is sent.
        for (sent_ms, found) in [(0, false), (19, false), (21, true), (45, true)] {
            let provider = Emulated::new(exact(), 0);
            let ((_, writer), (_, reader)) = (client(&provider, 0), client(&provider, 1));
            let write = timed(writer.put("t/a", body(0), Precondition::None));
            let read = after(ms(sent_ms), timed(reader.get("t/a", Span::Full)));
            let ((written, write_took), (read, read_took)) = join(write, read).await;
            written.unwrap();
            assert_eq!(read.is_ok(), found, "a read that is sent {sent_ms} ms after the write: {read:?}");
            assert_eq!((write_took, read_took), (ms(60), ms(20)));
        }
    });
}

#[test]
fn of_two_creators_the_one_whose_effect_is_first_wins() {
    on_the_clock(async |_| {
        // The large body is sent first; its effect is at 25 + 32 ms, that of the small one at 20 + 25 ms.
        let provider = Emulated::new(exact(), 0);
        let ((_, large), (_, small)) = (client(&provider, 0), client(&provider, 1));
        let first = large.put("t/a", body(8 * MIB), Precondition::Absent);
        let second = after(ms(20), small.put("t/a", body(3), Precondition::Absent));
        let (lost, won) = join(first, second).await;
        won.unwrap();
        assert_eq!(lost, Err(StoreError::Precondition { key: "t/a".to_owned(), status: 409 }));
        assert_eq!(provider.objects(""), [("t/a".to_owned(), 3)]);
    });
}

#[test]
fn a_creator_is_told_whether_the_object_is_new_or_old() {
    on_the_clock(async |_| {
        // The winner's effect is at 25 ms. Who was sent before that lost to a write in flight, later ones to an object.
        for (sent_ms, status) in [(0, 409), (24, 409), (26, 412), (500, 412)] {
            let provider = Emulated::new(exact(), 0);
            let ((_, winner), (_, loser)) = (client(&provider, 0), client(&provider, 1));
            let won = winner.put("t/a", body(1), Precondition::Absent);
            let lost = after(ms(sent_ms + 1), loser.put("t/a", body(2), Precondition::Absent));
            let (won, lost) = join(after(ms(1), won), lost).await;
            won.unwrap();
            assert_eq!(lost, Err(StoreError::Precondition { key: "t/a".to_owned(), status }), "{sent_ms} ms");
        }
    });
}

#[test]
fn an_update_that_lost_to_one_in_flight_is_sent_again() {
    on_the_clock(async |_| {
        let provider = Emulated::new(exact(), 0);
        let ((_, winner), (writer, loser)) = (client(&provider, 0), client(&provider, 1));
        let etag = winner.put("t/a", body(0), Precondition::None).await.unwrap();
        let won = winner.put("t/a", body(0), Precondition::Match(etag.clone()));
        let lost = after(ms(1), timed(loser.put("t/a", body(0), Precondition::Match(etag))));
        let (won, (lost, took)) = join(won, lost).await;
        won.unwrap();
        assert_eq!(lost, Err(StoreError::Precondition { key: "t/a".to_owned(), status: 412 }));
        assert_eq!(outcomes(&writer.finish_operation()), [(409, Outcome::Conflict), (412, Outcome::Conflict)]);
        assert_eq!(took, ms(40 + 100 + 40));
    });
}

#[test]
fn a_request_whose_future_is_dropped_may_have_had_its_effect() {
    on_the_clock(async |_| {
        // The effect is at 25 ms.
        for (given_up_ms, present) in [(10, false), (24, false), (26, true), (49, true)] {
            let provider = Emulated::new(exact(), 0);
            let (writer, store) = client(&provider, 0);
            tokio::select! {
                answer = store.put("t/a", body(9), Precondition::Absent) => panic!("{answer:?} before {given_up_ms} ms"),
                () = clock::sleep(ms(given_up_ms)) => {}
            }
            clock::sleep(ms(100)).await;
            assert_eq!(!provider.objects("").is_empty(), present, "given up after {given_up_ms} ms");
            let log = writer.finish_operation();
            assert_eq!(outcomes(&log), [(0, Outcome::Unknown)]);
            assert_eq!(latencies_us(&log), [given_up_ms * 1_000]);
            assert_eq!(log.requests[0].written_bytes, 9);
            assert_eq!(log.wait_ns, given_up_ms * 1_000_000);
        }
    });
}
