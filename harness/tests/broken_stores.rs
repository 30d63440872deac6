//! The formats' own libraries on stores that break their promises: the audit finds the damage, and where an answer was
//! lost, the libraries find out or say that they do not know.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]
// Iceberg publishes through its catalog: a store's conditional writes are nothing to it.
#![cfg(any(feature = "lance", feature = "delta"))]

#[path = "../../scenarios/tests/common/mod.rs"]
mod scenario;

use std::sync::Arc;

use lakemark_core::clock::{Cpu, Mode};
use lakemark_core::table::Format;
use lakemark_results::record::Outcome;
use scenario::broken::{Broken, Fault};
use scenario::{Said, profile, run};

const PRESENT: &str = "acknowledged commits equal commits present";
const FILES: &str = "every acknowledged file is active exactly once";

fn formats() -> Vec<Arc<dyn Format>> {
    vec![
        #[cfg(feature = "lance")]
        Arc::new(lakemark_formats::lance::Lance),
        #[cfg(feature = "delta")]
        Arc::new(lakemark_formats::delta::Delta),
    ]
}

fn broken(format: Arc<dyn Format>, fault: Fault) -> Said {
    let given = [("writers", "5"), ("duration-s", "1.5"), ("warm-up-s", "0")];
    run((Mode::Real, Cpu::Measured), format, Broken::new(profile("s3-express"), fault), &given)
}

#[test]
fn lost_updates_are_found() {
    for format in formats() {
        let name = format.info().name;
        let said = broken(format, Fault::IgnoresPreconditions);
        let failed = said.failed_checks();
        assert!(failed.contains(&PRESENT) && failed.contains(&FILES), "{name}: {failed:?}");
    }
}

#[test]
fn forgotten_commits_are_found() {
    for format in formats() {
        let name = format.info().name;
        let said = broken(format, Fault::Forgets);
        assert!(said.failed_checks().contains(&FILES), "{name}: {:?}", said.audit);
    }
}

#[test]
fn lost_answers_leave_no_doubt_about_what_is_active() {
    for format in formats() {
        let name = format.info().name;
        let said = broken(format, Fault::LosesAnswers);
        assert_eq!(said.failed_checks(), Vec::<&str>::new(), "{name}: {:?}", said.audit);
        assert!(said.attempts.iter().any(|attempt| attempt.outcome == Outcome::Unknown), "{name}");
    }
}
