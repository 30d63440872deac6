//! The audit finds what a store breaks: lost updates, forgotten commits, commits made twice. And it does not blame a store
//! for an answer that was lost on the way.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use common::broken::{Broken, Fault};
use common::log_format::{LogFormat, Unanswered};
use common::{Said, profile, run};
use lakemark_core::clock::{Cpu, Mode};
use lakemark_results::record::{Operation, OperationKind, Outcome};

const PRESENT: &str = "acknowledged commits equal commits present";
const VERSIONS: &str = "no version twice, none missing";
const FILES: &str = "every acknowledged file is active exactly once";

/// Half a second of six writers, in real time.
const BUSY: [(&str, &str); 3] = [("writers", "6"), ("duration-s", "0.4"), ("warm-up-s", "0.1")];

fn broken(fault: Fault, unanswered: Unanswered) -> Said {
    let provider = Broken::new(profile("s3-express"), fault);
    run((Mode::Real, Cpu::Measured), Arc::new(LogFormat(unanswered)), provider, &BUSY)
}

fn sound(given: &[(&str, &str)]) -> Said {
    let given = [&BUSY[..], given].concat();
    run((Mode::Real, Cpu::Measured), Arc::new(LogFormat(Unanswered::Verify)), profile("s3-express"), &given)
}

fn appends(said: &Said) -> Vec<&Operation> {
    said.operations.iter().filter(|operation| operation.kind == OperationKind::Append).collect()
}

#[test]
fn a_sound_store_is_valid_and_has_lost_attempts() {
    let said = sound(&[]);
    assert_eq!(said.failed_checks(), Vec::<&str>::new());
    let lost = said.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Conflict).count();
    let won = said.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok).count();
    assert!(lost > 10 && won > 10, "{lost} lost, {won} won");
    assert!(said.attempts.iter().any(|attempt| attempt.behind > 0));
    // Those of the warm-up and those that ended too late are recorded, and marked.
    let appends = appends(&said);
    let is_inside = |append: &&&Operation| {
        let end_us = append.start_us + append.latency_us;
        (said.window.start_us..=said.window.end_us).contains(&end_us)
    };
    assert!(appends.iter().any(|append| append.excluded) && appends.iter().any(|append| !append.excluded));
    for append in &appends {
        assert_eq!(is_inside(&append), !append.excluded, "{append:?} {:?}", said.window);
    }
}

#[test]
fn a_store_that_ignores_preconditions_loses_updates() {
    let said = broken(Fault::IgnoresPreconditions, Unanswered::Verify);
    let failed = said.failed_checks();
    assert!(failed.contains(&PRESENT) && failed.contains(&VERSIONS) && failed.contains(&FILES), "{failed:?}");
}

#[test]
fn a_store_that_forgets_commits_is_found() {
    let said = broken(Fault::Forgets, Unanswered::Verify);
    let failed = said.failed_checks();
    assert!(failed.contains(&PRESENT) && failed.contains(&FILES), "{failed:?}");
}

#[test]
fn a_commit_that_is_made_again_behind_the_writers_back_is_found() {
    let said = broken(Fault::Repeats, Unanswered::Verify);
    let failed = said.failed_checks();
    assert!(failed.contains(&PRESENT) && failed.contains(&FILES), "{failed:?}");
}

#[test]
fn a_lost_answer_that_the_library_follows_up_is_valid() {
    let said = broken(Fault::LosesAnswers, Unanswered::Verify);
    assert_eq!(said.failed_checks(), Vec::<&str>::new());
    assert!(said.attempts.iter().any(|attempt| attempt.outcome == Outcome::Unknown));
    assert!(appends(&said).iter().all(|append| append.outcome != Outcome::Unknown));
}

#[test]
fn a_lost_answer_that_the_library_reports_is_unknown_and_valid() {
    let said = broken(Fault::LosesAnswers, Unanswered::Tell);
    assert_eq!(said.failed_checks(), Vec::<&str>::new());
    assert!(appends(&said).iter().any(|append| append.outcome == Outcome::Unknown));
}

#[test]
fn a_library_that_repeats_a_commit_without_an_answer_doubles_files() {
    let said = broken(Fault::LosesAnswers, Unanswered::Repeat);
    let failed = said.failed_checks();
    assert!(failed.contains(&PRESENT) && failed.contains(&FILES), "{failed:?}");
}

#[test]
fn mixes_on_several_tables_are_audited_exactly() {
    let said = sound(&[("mix", "append=6,overwrite=1,delete=2,compact=2"), ("tables", "3"), ("files", "2")]);
    assert_eq!(said.failed_checks(), Vec::<&str>::new(), "{:?}", said.audit);
    for kind in [OperationKind::Append, OperationKind::Overwrite, OperationKind::Delete, OperationKind::Compact] {
        let done = said.operations.iter().filter(|o| o.kind == kind && o.outcome == Outcome::Ok);
        assert!(done.count() > 0, "{kind:?}");
    }
    let tables: std::collections::BTreeSet<u32> = appends(&said).iter().map(|append| append.table).collect();
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_mix_on_a_broken_store_is_found() {
    let provider = Broken::new(profile("s3-express"), Fault::Forgets);
    let format = Arc::new(LogFormat(Unanswered::Verify));
    let given = [&BUSY[..], &[("mix", "append=6,overwrite=1,delete=2"), ("tables", "2")]].concat();
    let said = run((Mode::Real, Cpu::Measured), format, provider, &given);
    assert!(said.failed_checks().contains(&PRESENT), "{:?}", said.audit);
}

#[test]
fn policies_differ_in_who_tries_again() {
    let attempts = |said: &Said| appends(said).iter().map(|append| append.attempts).max().unwrap();
    let none = sound(&[("retry", "none")]);
    assert_eq!(none.failed_checks(), Vec::<&str>::new());
    assert_eq!(attempts(&none), 1);
    assert!(appends(&none).iter().any(|append| append.outcome == Outcome::Conflict));
    let common = sound(&[("retry", "common"), ("retry-attempts", "4"), ("retry-base-ms", "5")]);
    assert_eq!(common.failed_checks(), Vec::<&str>::new());
    assert!((2..=4).contains(&attempts(&common)), "{}", attempts(&common));
}

#[test]
fn late_operations_wait_for_their_writer_and_are_counted_from_when_they_were_due() {
    // Far more than one writer can do: most operations never start.
    let said = sound(&[("writers", "1"), ("arrivals", "constant"), ("rate-per-s", "1000")]);
    assert_eq!(said.failed_checks(), Vec::<&str>::new());
    assert!(said.window.backlog > 100, "{:?}", said.window);
    let appends = appends(&said);
    let late_us = |append: &&Operation| append.start_us - append.intended_us.expect("a schedule");
    assert!(appends.windows(2).all(|pair| late_us(&pair[0]) <= late_us(&pair[1])), "the backlog grows");
    let idle = sound(&[("writers", "2"), ("arrivals", "poisson"), ("rate-per-s", "20"), ("duration-s", "1")]);
    assert_eq!((idle.failed_checks(), idle.window.backlog), (Vec::<&str>::new(), 0));
}

#[test]
fn a_number_of_commits_ends_the_measured_time() {
    let said = sound(&[("commits", "7"), ("duration-s", "30")]);
    let done = appends(&said).into_iter().filter(|append| append.outcome == Outcome::Ok && !append.excluded);
    assert_eq!(done.count(), 7);
    assert!(said.window.seconds() < 5.0, "{:?}", said.window);
}
