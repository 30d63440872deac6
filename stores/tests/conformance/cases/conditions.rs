//! Conditional writes: who wins, what the others are told, and what stays.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use lakemark_core::clock;
use lakemark_core::store::{Precondition, Span};

use crate::bench::Bench;
use crate::subject::Failure;

pub(super) async fn a_tag_changes_with_each_write(bench: Bench) {
    let subject = bench.subject();
    let mut etags = Vec::new();
    for body in ["one", "two", "three"] {
        let etag = subject.put("t/a", body.into(), Precondition::None).await.unwrap();
        assert!(etag.is_some(), "a write answers with a tag");
        assert_eq!(subject.head("t/a").await.unwrap().etag, etag);
        assert!(!etags.contains(&etag), "{etag:?} twice");
        etags.push(etag);
    }
    // Reading changes nothing.
    subject.get("t/a", Span::Full).await.unwrap();
    assert_eq!(subject.head("t/a").await.unwrap().etag, etags[2]);
}

pub(super) async fn put_if_absent_writes_once(bench: Bench) {
    let subject = bench.subject();
    let etag = subject.put("t/a", "first".into(), Precondition::Absent).await.unwrap();
    let lost = subject.put("t/a", "the loser's".into(), Precondition::Absent).await;
    assert_eq!(lost, Err(Failure::Lost(bench.profile.conflict.exists_status)));
    assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), "first");
    assert_eq!(subject.head("t/a").await.unwrap().etag, etag);
}

pub(super) async fn put_if_absent_writes_again_after_a_delete(bench: Bench) {
    let subject = bench.subject();
    for body in ["first", "second"] {
        subject.put("t/a", body.into(), Precondition::Absent).await.unwrap();
        assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), body);
        subject.delete("t/a").await.unwrap();
    }
}

pub(super) async fn put_if_match_needs_the_current_tag(bench: Bench) {
    let subject = bench.subject();
    let mismatch = Err(Failure::Lost(bench.profile.conflict.mismatch_status));
    let old = subject.put("t/a", "old".into(), Precondition::None).await.unwrap().unwrap();
    let new = subject.put("t/a", "new".into(), Precondition::Match(old.clone())).await.unwrap().unwrap();
    assert_ne!(old, new);
    for stale in [old, "\"none such\"".to_owned()] {
        assert_eq!(subject.put("t/a", "the loser's".into(), Precondition::Match(stale)).await, mismatch);
        assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), "new");
        assert_eq!(subject.head("t/a").await.unwrap().etag.as_ref(), Some(&new));
    }
    // The tag of another object is none of this one's.
    let other = subject.put("t/b", "new".into(), Precondition::None).await.unwrap().unwrap();
    assert_eq!(subject.put("t/a", "the loser's".into(), Precondition::Match(other)).await, mismatch);
    subject.put("t/a", "newest".into(), Precondition::Match(new)).await.unwrap();
    assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), "newest");
}

pub(super) async fn put_if_match_of_nothing_writes_nothing(bench: Bench) {
    let subject = bench.subject();
    let etag = subject.put("t/a", "gone".into(), Precondition::None).await.unwrap().unwrap();
    subject.delete("t/a").await.unwrap();
    assert_eq!(subject.put("t/a", "new".into(), Precondition::Match(etag)).await, Err(Failure::Lost(404)));
    assert!(bench.keys().is_empty());
}

pub(super) async fn copy_if_absent_copies_once(bench: Bench) {
    let subject = bench.subject();
    for key in ["t/a", "t/b"] {
        subject.put(key, key.into(), Precondition::None).await.unwrap();
    }
    subject.copy("t/a", "t/to", Precondition::Absent).await.unwrap();
    let lost = subject.copy("t/b", "t/to", Precondition::Absent).await;
    assert_eq!(lost, Err(Failure::Lost(bench.profile.conflict.exists_status)));
    assert_eq!(subject.get("t/to", Span::Full).await.unwrap(), "t/a");
    assert_eq!(subject.copy("t/never", "t/new", Precondition::Absent).await, Err(Failure::NotFound));
    assert_eq!(bench.keys(), ["t/a", "t/b", "t/to"]);
}

const CLIENTS: usize = 16;

/// Writes one key with as many clients at once, each with a body of its own. Checks that one wins, that its body is
/// there, and answers with what the losers are told.
async fn contend(bench: &Bench, precondition: Precondition) -> Vec<Failure> {
    let subjects: Vec<_> = (0..CLIENTS).map(|_| bench.subject()).collect();
    let bodies: Vec<Bytes> = (0..CLIENTS).map(|n| format!("written by {n}").into()).collect();
    let writes = subjects.iter().zip(&bodies);
    let answers = join_all(writes.map(|(subject, body)| subject.put("t/a", body.clone(), precondition.clone()))).await;
    let winners: Vec<usize> = (0..CLIENTS).filter(|n| answers[*n].is_ok()).collect();
    assert_eq!(winners.len(), 1, "winners {winners:?} of {answers:?}");
    let winner = &subjects[winners[0]];
    assert_eq!(winner.get("t/a", Span::Full).await.unwrap(), bodies[winners[0]]);
    assert_eq!(winner.head("t/a").await.unwrap().etag, answers[winners[0]].clone().unwrap());
    answers.into_iter().filter_map(Result::err).collect()
}

/// Whether the provider takes one key's writes so slowly that clients come again long after the winner, and some give
/// up before they are told who won.
fn is_limited(bench: &Bench) -> bool {
    bench.profile.limits.per_object_writes.is_some()
}

pub(super) async fn of_sixteen_creators_one_wins(bench: Bench) {
    let conflict = &bench.profile.conflict;
    let expected = if is_limited(&bench) {
        vec![Failure::Lost(conflict.exists_status), Failure::Throttled(bench.profile.limits.status)]
    } else {
        vec![Failure::Lost(conflict.in_flight_status)]
    };
    for loser in contend(&bench, Precondition::Absent).await {
        assert!(expected.contains(&loser), "{loser:?}");
    }
    clock::sleep(Duration::from_secs(2)).await;
    let late = bench.subject().put("t/a", "late".into(), Precondition::Absent).await;
    assert_eq!(late, Err(Failure::Lost(conflict.exists_status)));
}

pub(super) async fn of_sixteen_updaters_one_wins(bench: Bench) {
    let etag = bench.subject().put("t/a", "first".into(), Precondition::None).await.unwrap().unwrap();
    // Told that another update is under way (409), a client comes again, to find that it lost.
    let mut expected = vec![Failure::Lost(bench.profile.conflict.mismatch_status)];
    if is_limited(&bench) {
        expected.push(Failure::Throttled(bench.profile.limits.status));
    }
    for loser in contend(&bench, Precondition::Match(etag)).await {
        assert!(expected.contains(&loser), "{loser:?}");
    }
}
