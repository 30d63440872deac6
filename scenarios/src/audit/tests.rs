use lakemark_results::record::{Layer, OperationKind};

use super::*;

fn operation(version: u64, outcome: Outcome) -> Operation {
    Operation {
        writer: 0,
        operation: version,
        kind: OperationKind::Append,
        intended_us: None,
        table: 0,
        excluded: false,
        start_us: 0,
        latency_us: 100,
        wait_us: 90,
        catalog_us: 0,
        cpu_us: 10,
        outcome,
        version: (outcome == Outcome::Ok).then_some(version),
        attempts: 1,
        requests: 1,
        read_bytes: 0,
        written_bytes: 0,
        error: None,
    }
}

fn attempt(outcome: Outcome) -> Attempt {
    Attempt {
        writer: 0,
        operation: 0,
        attempt: 0,
        layer: Layer::Store,
        start_us: 0,
        latency_us: 1,
        outcome,
        behind: 0,
        requests: 1,
        read_bytes: 0,
        written_bytes: 0,
    }
}

/// Two acknowledged appends, one that lost.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    for (version, path, outcome) in [(1, "a", Outcome::Ok), (2, "b", Outcome::Ok), (3, "c", Outcome::Conflict)] {
        ledger.add(Effect::append([path].into_iter()), &operation(version, outcome), &[attempt(outcome)]);
    }
    ledger
}

fn active(paths: &[&str]) -> ActiveFiles {
    ActiveFiles { version: 2, paths: paths.iter().map(|path| (*path).to_owned()).collect() }
}

fn failed(audit: &Audit) -> Vec<&str> {
    audit.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect()
}

#[test]
fn a_true_account_passes() {
    assert!(ledger().audit(&active(&["a", "b"]), &[1, 2]).is_valid());
}

#[test]
fn a_lost_update_is_found() {
    let audit = ledger().audit(&active(&["b"]), &[2]);
    let expected = [
        "acknowledged commits equal commits present",
        "no version twice, none missing",
        "every acknowledged file is active exactly once",
    ];
    assert_eq!(failed(&audit), expected);
}

#[test]
fn doubled_and_phantom_files_are_found() {
    let name = "every acknowledged file is active exactly once";
    assert_eq!(failed(&ledger().audit(&active(&["a", "b", "b"]), &[1, 2])), [name]);
    assert_eq!(failed(&ledger().audit(&active(&["a", "b", "c"]), &[1, 2])), [name]);
}

#[test]
fn a_version_acknowledged_twice_is_found() {
    let mut ledger = ledger();
    ledger.add(Effect::append(["d"].into_iter()), &operation(2, Outcome::Ok), &[attempt(Outcome::Ok)]);
    assert!(failed(&ledger.audit(&active(&["a", "b", "d"]), &[1, 2, 3])).contains(&"no version twice, none missing"));
}

#[test]
fn an_append_without_an_answer_may_be_there_or_not() {
    let mut ledger = ledger();
    ledger.add(Effect::append(["u"].into_iter()), &operation(4, Outcome::Unknown), &[attempt(Outcome::Unknown)]);
    assert!(ledger.audit(&active(&["a", "b"]), &[1, 2]).is_valid());
    assert!(ledger.audit(&active(&["a", "b", "u"]), &[1, 2, 3]).is_valid());
}

#[test]
fn attempts_that_were_not_recorded_are_missed() {
    let mut ledger = ledger();
    ledger.add(Effect::append(["e"].into_iter()), &operation(3, Outcome::Ok), &[]);
    let audit = ledger.audit(&active(&["a", "b", "e"]), &[1, 2, 3]);
    assert_eq!(
        failed(&audit),
        ["attempts are successes and the four failure classes", "every acknowledged commit has its attempt"]
    );
}

#[test]
fn a_commit_faster_than_its_requests_is_found() {
    let mut ledger = ledger();
    let fast = Operation { latency_us: 50, wait_us: 90, ..operation(3, Outcome::Ok) };
    ledger.add(Effect::append(["f"].into_iter()), &fast, &[attempt(Outcome::Ok)]);
    let audit = ledger.audit(&active(&["a", "b", "f"]), &[1, 2, 3]);
    assert_eq!(failed(&audit), ["no commit is faster than its requests"]);
}

/// A ledger of changes at versions 1, 2, …: all acknowledged.
fn changes(effects: &[Effect]) -> Ledger {
    let mut ledger = Ledger::default();
    for (version, effect) in (1..).zip(effects) {
        ledger.add(effect.clone(), &operation(version, Outcome::Ok), &[attempt(Outcome::Ok)]);
    }
    ledger
}

fn effect(add: &[&str], remove: Removal) -> Effect {
    Effect { add: add.iter().map(|path| FileId::of(path)).collect(), remove }
}

fn files(paths: &[&str]) -> Removal {
    Removal::Files(paths.iter().map(|path| FileId::of(path)).collect())
}

const FILES: &str = "every acknowledged file is active exactly once";

#[test]
fn changes_are_replayed_in_the_order_of_their_versions() {
    let mut ledger = Ledger::default();
    // Told in another order than that of the versions.
    let second = effect(&["c"], files(&["a", "b"]));
    ledger.add(second, &operation(2, Outcome::Ok), &[attempt(Outcome::Ok)]);
    let first = effect(&["a", "b"], Removal::Nothing);
    ledger.add(first, &operation(1, Outcome::Ok), &[attempt(Outcome::Ok)]);
    assert!(ledger.audit(&active(&["c"]), &[1, 2]).is_valid());
    // A file that was replaced and is still there is as wrong as one that is gone.
    assert_eq!(failed(&ledger.audit(&active(&["a", "c"]), &[1, 2])), [FILES]);
    assert_eq!(failed(&ledger.audit(&active(&[]), &[1, 2])), [FILES]);
}

#[test]
fn an_overwrite_leaves_to_the_isolation_only_what_it_had_not_seen() {
    let seen_one = Removal::All { seen: Some(1) };
    let ledger = changes(&[
        effect(&["a"], Removal::Nothing),
        effect(&["b"], Removal::Nothing),
        effect(&["c"], seen_one),
        effect(&["d"], Removal::Nothing),
    ]);
    for paths in [&["c", "d"][..], &["b", "c", "d"]] {
        let audit = ledger.audit(&active(paths), &[1, 2, 3, 4]);
        assert!(audit.is_valid(), "{paths:?}");
        assert_eq!(audit.notes.len(), 1, "{:?}", audit.notes);
    }
    assert_eq!(failed(&ledger.audit(&active(&["a", "c", "d"]), &[1, 2, 3, 4])), [FILES]);
    assert_eq!(failed(&ledger.audit(&active(&["b", "d"]), &[1, 2, 3, 4])), [FILES]);
}

#[test]
fn a_change_without_an_answer_may_be_there_only_if_its_version_is() {
    let mut ledger = changes(&[effect(&["a"], Removal::Nothing), effect(&["b"], Removal::Nothing)]);
    let lost = Operation { version: None, ..operation(3, Outcome::Unknown) };
    ledger.add(effect(&["u"], files(&["a"])), &lost, &[attempt(Outcome::Unknown)]);
    assert!(ledger.audit(&active(&["a", "b"]), &[1, 2]).is_valid());
    assert!(ledger.audit(&active(&["b", "u"]), &[1, 2, 3]).is_valid());
    assert_eq!(failed(&ledger.audit(&active(&["b", "u"]), &[1, 2])), [FILES]);
    assert_eq!(failed(&ledger.audit(&active(&["a", "u"]), &[1, 2, 3])), [FILES]);
}

#[test]
fn one_bad_table_makes_the_whole_invalid() {
    let good = || ledger().audit(&active(&["a", "b"]), &[1, 2]);
    let bad = ledger().audit(&active(&["a"]), &[1, 2]);
    assert!(merged(vec![good(), good()]).is_valid());
    let audit = merged(vec![good(), bad, good()]);
    assert_eq!(failed(&audit), [FILES]);
    let detail = audit.checks.into_iter().find(|check| !check.passed).expect("it failed").detail;
    assert!(detail.starts_with("table 1: 2 acknowledged, 1 active, 1 lost"), "{detail}");
}
