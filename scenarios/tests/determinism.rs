//! The same seed gives the same attempts, with several writers at one table.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use common::log_format::{LogFormat, Unanswered};
use common::{profile, run};
use lakemark_core::clock::{Cpu, Mode};
use lakemark_core::record::Outcome;

/// Every attempt: its writer, operation and number, when it ended, and how.
fn attempts() -> Vec<(u32, u64, u32, u64, Outcome)> {
    let given = [
        ("writers", "8"),
        ("duration-s", "20"),
        ("warm-up-s", "1"),
        ("mix", "append=8,delete=1,compact=1"),
        ("retry", "common"),
    ];
    let said = run((Mode::Skip, Cpu::Free), Arc::new(LogFormat(Unanswered::Verify)), profile("s3"), &given);
    let mut attempts: Vec<_> = said
        .attempts
        .iter()
        .map(|a| (a.writer, a.operation, a.attempt, a.start_us + a.latency_us, a.outcome))
        .collect();
    attempts.sort_unstable();
    // The cells do not begin at the same moment of process time.
    let first_us = attempts.iter().map(|attempt| attempt.3).min().expect("attempts");
    attempts.iter_mut().for_each(|attempt| attempt.3 -= first_us);
    attempts
}

#[test]
fn the_same_seed_gives_the_same_attempts() {
    let (one, two) = (attempts(), attempts());
    assert!(one.iter().filter(|attempt| attempt.4 == Outcome::Conflict).count() > 50);
    assert_eq!(one.len(), two.len());
    for (a, b) in one.iter().zip(&two) {
        assert_eq!((a.0, a.1, a.2, a.4), (b.0, b.1, b.2, b.4));
        // A nanosecond that falls on the other side of a whole microsecond.
        assert!(a.3.abs_diff(b.3) <= 1, "{a:?} {b:?}");
    }
}
