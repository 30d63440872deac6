//! Does what a cell says hold? Commits against acknowledgements, files against commits, attempts against outcomes.

use std::collections::{BTreeMap, BTreeSet};

use lakemark_core::table::ActiveFiles;
use lakemark_results::record::{Attempt, Audit, Check, Operation, Outcome};

/// What a cell's writers were told, added up as the cell runs.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Paths of acknowledged files, each with the number of acknowledgements.
    files: BTreeMap<String, u32>,
    /// Paths of files whose append failed without an effect, as the library says.
    refused: BTreeSet<String>,
    /// Paths of files whose append ended without an answer.
    unknown: BTreeSet<String>,
    /// Versions of acknowledged commits, in order.
    versions: Vec<u64>,
    /// Attempts that operations report.
    attempts_in_operations: u64,
    /// Attempts by outcome.
    attempts: BTreeMap<Outcome, u64>,
    /// Latency and store wait of acknowledged appends, added up.
    latency_us: u64,
    wait_us: u64,
    /// Appends whose latency is below the time that their requests were at the store.
    impossible: u64,
    appends: u64,
}

impl Ledger {
    /// Adds an append of some files.
    pub fn append<'a>(&mut self, paths: impl Iterator<Item = &'a str>, operation: &Operation, attempts: &[Attempt]) {
        for path in paths {
            match operation.outcome {
                Outcome::Ok => *self.files.entry(path.to_owned()).or_default() += 1,
                Outcome::Unknown => _ = self.unknown.insert(path.to_owned()),
                _ => _ = self.refused.insert(path.to_owned()),
            }
        }
        self.attempts_in_operations += u64::from(operation.attempts);
        for attempt in attempts {
            *self.attempts.entry(attempt.outcome).or_default() += 1;
        }
        if operation.outcome == Outcome::Ok {
            self.versions.extend(operation.version);
            self.appends += 1;
            self.latency_us += operation.latency_us;
            self.wait_us += operation.wait_us;
        }
        // A microsecond for each of the two roundings.
        self.impossible += u64::from(operation.latency_us + 2 < operation.wait_us);
    }

    /// Appends that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.appends
    }

    /// Compares with what a new handle finds in the table: its active files and the versions of its commits.
    pub fn audit(&self, active: &ActiveFiles, commits: &[u64]) -> Audit {
        Audit {
            checks: vec![
                self.commits_present(commits),
                self.versions_once(commits),
                self.files_active_once(active),
                self.attempts_conserved(),
                self.attempts_committed(),
                self.serial_floor(),
            ],
        }
    }

    fn commits_present(&self, commits: &[u64]) -> Check {
        let present = commits.len() as u64;
        // A commit that ended without an answer may be there.
        let most = self.appends + self.unknown.len() as u64;
        check(
            "acknowledged commits equal commits present",
            (self.appends..=most).contains(&present),
            format!("{} acknowledged, {} without an answer, {present} present", self.appends, self.unknown.len()),
        )
    }

    fn versions_once(&self, commits: &[u64]) -> Check {
        let acknowledged: BTreeSet<u64> = self.versions.iter().copied().collect();
        let present: BTreeSet<u64> = commits.iter().copied().collect();
        let twice = self.versions.len() - acknowledged.len() + commits.len() - present.len();
        let missing = acknowledged.difference(&present).count();
        check(
            "no version twice, none missing",
            twice == 0 && missing == 0 && self.versions.len() as u64 == self.appends,
            format!("{} versions acknowledged, {twice} twice, {missing} missing", self.versions.len()),
        )
    }

    fn files_active_once(&self, active: &ActiveFiles) -> Check {
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for path in &active.paths {
            *found.entry(path.as_str()).or_default() += 1;
        }
        let lost = self.files.keys().filter(|path| !found.contains_key(path.as_str())).count();
        let doubled = found.values().filter(|times| **times > 1).count()
            + self.files.values().filter(|acknowledgements| **acknowledgements > 1).count();
        let phantom =
            found.keys().filter(|path| !self.files.contains_key(**path) && !self.unknown.contains(**path)).count();
        check(
            "every acknowledged file is active exactly once",
            lost == 0 && doubled == 0 && phantom == 0,
            format!(
                "{} acknowledged, {} active, {lost} lost, {doubled} doubled, {phantom} that no writer was told of",
                self.files.len(),
                active.paths.len()
            ),
        )
    }

    fn attempts_conserved(&self) -> Check {
        let classes = [Outcome::Ok, Outcome::Conflict, Outcome::Throttled, Outcome::Error, Outcome::Unknown];
        let by_class: u64 = classes.iter().filter_map(|class| self.attempts.get(class)).sum();
        let all: u64 = self.attempts.values().sum();
        check(
            "attempts are successes and the four failure classes",
            all == by_class && all == self.attempts_in_operations,
            format!("{} in operations, {all} recorded, {by_class} in the five classes", self.attempts_in_operations),
        )
    }

    fn attempts_committed(&self) -> Check {
        let ok = self.attempts.get(&Outcome::Ok).copied().unwrap_or_default();
        let unknown = self.attempts.get(&Outcome::Unknown).copied().unwrap_or_default();
        // A commit may be acknowledged through an attempt whose outcome the client had to find out afterwards.
        check(
            "every acknowledged commit has its attempt",
            ok <= self.appends + self.unknown.len() as u64 && self.appends <= ok + unknown,
            format!("{} acknowledged, {ok} attempts that succeeded, {unknown} unknown", self.appends),
        )
    }

    fn serial_floor(&self) -> Check {
        check(
            "no commit is faster than its requests",
            self.impossible == 0 && self.latency_us + 2 * self.appends >= self.wait_us,
            format!(
                "{} commits below the time of their requests; {} µs of latency, {} µs of requests",
                self.impossible, self.latency_us, self.wait_us
            ),
        )
    }
}

fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_owned(), passed, detail }
}

#[cfg(test)]
mod tests {
    use lakemark_results::record::{Layer, OperationKind};

    use super::*;

    fn operation(version: u64, outcome: Outcome) -> Operation {
        Operation {
            writer: 0,
            operation: version,
            kind: OperationKind::Append,
            intended_us: None,
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
            ledger.append([path].into_iter(), &operation(version, outcome), &[attempt(outcome)]);
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
        ledger.append(["d"].into_iter(), &operation(2, Outcome::Ok), &[attempt(Outcome::Ok)]);
        assert!(
            failed(&ledger.audit(&active(&["a", "b", "d"]), &[1, 2, 3])).contains(&"no version twice, none missing")
        );
    }

    #[test]
    fn an_append_without_an_answer_may_be_there_or_not() {
        let mut ledger = ledger();
        ledger.append(["u"].into_iter(), &operation(4, Outcome::Unknown), &[attempt(Outcome::Unknown)]);
        assert!(ledger.audit(&active(&["a", "b"]), &[1, 2]).is_valid());
        assert!(ledger.audit(&active(&["a", "b", "u"]), &[1, 2, 3]).is_valid());
    }

    #[test]
    fn attempts_that_were_not_recorded_are_missed() {
        let mut ledger = ledger();
        ledger.append(["e"].into_iter(), &operation(3, Outcome::Ok), &[]);
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
        ledger.append(["f"].into_iter(), &fast, &[attempt(Outcome::Ok)]);
        let audit = ledger.audit(&active(&["a", "b", "f"]), &[1, 2, 3]);
        assert_eq!(failed(&audit), ["no commit is faster than its requests"]);
    }
}
