//! Several writers at one table, for each format: a small form of what `one-layer` runs, checked and repeated.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use common::{code, formats, lakemark, only_cell, operations, run, scratch, stderr, stdout};
use lakemark_results::concurrency::Concurrency;
use lakemark_results::record::{Attempt, Operation, OperationKind, Outcome};
use lakemark_results::run::RunFolder;
use lakemark_results::summary::Attempts;

const SMOKE: [&str; 12] = [
    "--scenario",
    "concurrent-writers",
    "--stores",
    "s3-express",
    "--cpu",
    "free",
    "--param",
    "writers=5",
    "--param",
    "duration-s=2",
    "--param",
    "warm-up-s=0.5",
];

fn smoke(name: &str, out: &tempfile::TempDir, format: &str, more: &[&str]) -> RunFolder {
    run(out.path(), name, &[&SMOKE[..], &["--formats", format], more].concat())
}

fn read(folder: &RunFolder) -> Concurrency {
    Concurrency::read(folder, &only_cell(folder)).expect("records").expect("a measured time")
}

fn attempts(folder: &RunFolder) -> Vec<Attempt> {
    let all = folder.read_attempts(&only_cell(folder)).expect("attempts");
    all.map(|attempt| attempt.expect("an attempt")).collect()
}

fn appends(folder: &RunFolder) -> Vec<Operation> {
    operations(folder, &only_cell(folder), OperationKind::Append)
}

#[test]
fn writers_commit_beside_each_other_and_lose_attempts() {
    let out = scratch();
    for format in formats() {
        let folder = smoke(format, &out, format, &[]);
        let found = read(&folder);
        assert!(found.commits.0 > 5, "{format}: {found:?}");
        assert_eq!(found.window.writers, 5);
        assert!((found.window.seconds() - 2.0).abs() < 1e-6, "{format}: {:?}", found.window);
        assert!(found.attempts.get(&Outcome::Conflict).copied().unwrap_or_default() > Attempts(0), "{format}");
        assert!(found.failed_attempt_rate >= found.failed_operation_rate, "{format}: {found:?}");
        assert!(found.wasted.requests > 0 && found.wasted.usd < found.spent.usd, "{format}: {found:?}");
        assert!(found.behind_max > 0, "{format}: {found:?}");
        let writers: std::collections::BTreeSet<u32> = appends(&folder).iter().map(|append| append.writer).collect();
        assert_eq!(writers.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{format}");
        let audit = folder.status(&only_cell(&folder)).expect("a status").expect("an end").audit.expect("an audit");
        assert!(audit.checks.len() >= 9, "{format}: {audit:?}");
    }
}

#[test]
fn policies_and_arrivals_are_the_scenarios() {
    let out = scratch();
    for format in formats() {
        let none = smoke(&format!("{format}-none"), &out, format, &["--param", "retry=none"]);
        assert!(attempts(&none).iter().all(|attempt| attempt.attempt == 0), "{format}: one try for each operation");
        assert!(read(&none).failed_operation_rate > Some(0.0), "{format}");
        let common = smoke(&format!("{format}-common"), &out, format, &["--param", "retry=common"]);
        assert!(attempts(&common).iter().any(|attempt| attempt.attempt > 0), "{format}");
        let paced = ["--param", "arrivals=constant", "--param", "rate-per-s=4"];
        let paced = smoke(&format!("{format}-paced"), &out, format, &paced);
        // Within the measured time eight are due; those at its ends may fall on either side.
        let ended = read(&paced).commits.0;
        assert!((6..=9).contains(&ended), "{format}: {ended}");
        assert!(appends(&paced).iter().all(|append| append.intended_us.is_some()), "{format}");
    }
}

#[test]
fn tables_of_one_catalog_do_not_contend() {
    let out = scratch();
    for format in formats() {
        let one = read(&smoke(&format!("{format}-one"), &out, format, &[]));
        let many = smoke(&format!("{format}-many"), &out, format, &["--param", "tables=8"]);
        let tables: std::collections::BTreeSet<u32> = appends(&many).iter().map(|append| append.table).collect();
        assert!(tables.len() > 4, "{format}: {tables:?}");
        let many = read(&many);
        // Not by their failures: in so short a time Lance's losers have not given up, and do not count.
        assert!(many.commits_per_s > one.commits_per_s, "{format}: {many:?}");
    }
}

#[test]
fn what_a_library_does_not_offer_is_refused_with_its_reason() {
    for format in formats() {
        for kind in ["overwrite", "delete", "compact"] {
            let mix = format!("mix=append=9,{kind}=1");
            let all = [&["run", "--formats", format, "--dry-run"], &SMOKE[..], &["--param", &mix]].concat();
            let output = lakemark(&all);
            let is_refused = stderr(&output).contains(&format!("mix has {kind}, which {format} does not offer: "));
            assert_eq!(code(&output) != 0, is_refused, "{format} {kind}: {}{}", stdout(&output), stderr(&output));
        }
    }
}

/// Delta alone: Lance draws its backoff from the process' own random numbers, and the end of Iceberg's falls on a tick of
/// its runtime's timer, which is counted in whole milliseconds from the runtime's making.
#[test]
fn the_same_seed_gives_the_same_attempts() {
    let out = scratch();
    for format in formats().into_iter().filter(|format| *format == "delta") {
        let of = |name: &str| {
            let folder = smoke(&format!("{format}-{name}"), &out, format, &["--seed", "7"]);
            let mut all: Vec<_> =
                attempts(&folder).iter().map(|a| (a.writer, a.operation, a.attempt, a.outcome, a.behind)).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of("one"), of("two"), "{format}");
    }
}
