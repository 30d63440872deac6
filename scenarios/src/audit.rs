//! Does what a cell says hold? Commits against acknowledgements, files against commits, attempts against outcomes.

mod replay;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use lakemark_core::table::ActiveFiles;
use lakemark_results::record::{Attempt, Audit, Check, Operation, Outcome};

/// A data file of a table, known by a 64-bit hash of its path: of ten million files, two share one with a probability
/// of 3 in a million.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId(u64);

impl FileId {
    /// The file at a path relative to the table.
    pub fn of(path: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// What a change takes out of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Removal {
    /// Nothing.
    Nothing,
    /// These files.
    Files(Box<[FileId]>),
    /// Every file of the version that the writer had seen. Whether one that another writer added since then goes as well
    /// is left to the format's isolation.
    All {
        /// That version, if it is known.
        seen: Option<u64>,
    },
}

/// What a change does to a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Effect {
    /// Files that it adds.
    pub add: Box<[FileId]>,
    /// Files that it removes.
    pub remove: Removal,
}

impl Effect {
    /// An append of files at some paths.
    pub fn append<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        Self { add: paths.map(FileId::of).collect(), remove: Removal::Nothing }
    }
}

/// What the writers of one table were told, added up as the cell runs.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Acknowledged changes with their versions.
    acknowledged: Vec<(Option<u64>, Effect)>,
    /// Changes that ended without an answer.
    unknown: Vec<Effect>,
    /// Attempts that operations report.
    attempts_in_operations: u64,
    /// Attempts by outcome.
    attempts: BTreeMap<Outcome, u64>,
    /// Attempts that succeeded and published no version.
    maintenance: u64,
    /// Latency and store wait of acknowledged changes, added up.
    latency_us: u64,
    wait_us: u64,
    /// Operations whose latency is below the time that their requests were at the store.
    impossible: u64,
}

impl Ledger {
    /// Adds a change that ended. One that failed without an effect, as its library says, must leave no trace.
    pub fn add(&mut self, effect: Effect, operation: &Operation, attempts: &[Attempt]) {
        self.attempts_in_operations += u64::from(operation.attempts);
        for attempt in attempts {
            *self.attempts.entry(attempt.outcome).or_default() += 1;
        }
        match operation.outcome {
            Outcome::Ok => {
                self.acknowledged.push((operation.version, effect));
                self.latency_us += operation.latency_us;
                self.wait_us += operation.wait_us;
            }
            Outcome::Unknown => self.unknown.push(effect),
            _ => {}
        }
        // A microsecond for each of the two roundings.
        self.impossible += u64::from(operation.latency_us + 2 < operation.wait_us);
    }

    /// Adds attempts that succeeded without publishing a version, as [`lakemark_core::table::Table::maintenance`] counts
    /// them.
    pub fn add_maintenance(&mut self, attempts: u64) {
        self.maintenance += attempts;
    }

    /// Changes that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// Compares with what a new handle finds in the table: its active files and the versions of its commits.
    pub fn audit(&self, active: &ActiveFiles, commits: &[u64]) -> Audit {
        let expected = replay::expected(&self.acknowledged, &self.unknown, commits);
        let mut notes = Vec::new();
        if expected.beside_overwrites > 0 {
            notes.push(format!(
                "{} files were added while an overwrite ran; whether it removed them is the format's isolation",
                expected.beside_overwrites
            ));
        }
        Audit {
            checks: vec![
                self.commits_present(commits),
                self.versions_once(commits),
                self.files_active_once(&expected, active),
                self.attempts_conserved(),
                self.attempts_committed(),
                self.serial_floor(),
            ],
            notes,
        }
    }

    fn unknown(&self) -> u64 {
        self.unknown.len() as u64
    }

    fn commits_present(&self, commits: &[u64]) -> Check {
        let present = commits.len() as u64;
        // A commit that ended without an answer may be there.
        let most = self.acknowledged() + self.unknown();
        check(
            "acknowledged commits equal commits present",
            (self.acknowledged()..=most).contains(&present),
            format!("{} acknowledged, {} without an answer, {present} present", self.acknowledged(), self.unknown()),
        )
    }

    fn versions_once(&self, commits: &[u64]) -> Check {
        let versions: Vec<u64> = self.acknowledged.iter().filter_map(|(version, _)| *version).collect();
        let acknowledged: BTreeSet<u64> = versions.iter().copied().collect();
        let present: BTreeSet<u64> = commits.iter().copied().collect();
        let twice = versions.len() - acknowledged.len() + commits.len() - present.len();
        let missing = acknowledged.difference(&present).count();
        check(
            "no version twice, none missing",
            twice == 0 && missing == 0 && versions.len() == self.acknowledged.len(),
            format!("{} versions acknowledged, {twice} twice, {missing} missing", versions.len()),
        )
    }

    fn files_active_once(&self, expected: &replay::Expected, active: &ActiveFiles) -> Check {
        let mut found: HashMap<FileId, u32> = HashMap::with_capacity(active.paths.len());
        for path in &active.paths {
            *found.entry(FileId::of(path)).or_default() += 1;
        }
        let lost = expected.certain.iter().filter(|file| !found.contains_key(file)).count();
        let doubled = found.values().filter(|times| **times > 1).count() + expected.doubled;
        let is_known = |file: &&FileId| expected.certain.contains(file) || expected.possible.contains_key(file);
        let phantom = found.keys().filter(|file| !is_known(file)).count();
        check(
            "every acknowledged file is active exactly once",
            lost == 0 && doubled == 0 && phantom == 0,
            format!(
                "{} acknowledged, {} active, {lost} lost, {doubled} doubled, {phantom} that no writer was told of",
                expected.certain.len(),
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
        let acknowledged = self.acknowledged();
        // A commit may be acknowledged through an attempt whose outcome the client had to find out afterwards.
        check(
            "every acknowledged commit has its attempt",
            ok <= acknowledged + self.unknown() + self.maintenance && acknowledged + self.maintenance <= ok + unknown,
            format!(
                "{acknowledged} acknowledged, {} of maintenance, {ok} attempts that succeeded, {unknown} unknown",
                self.maintenance
            ),
        )
    }

    fn serial_floor(&self) -> Check {
        check(
            "no commit is faster than its requests",
            self.impossible == 0 && self.latency_us + 2 * self.acknowledged() >= self.wait_us,
            format!(
                "{} commits below the time of their requests; {} µs of latency, {} µs of requests",
                self.impossible, self.latency_us, self.wait_us
            ),
        )
    }
}

pub(crate) fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_owned(), passed, detail }
}

/// The verdicts on several tables as one: a check passes if it does for each table. Its detail is that of the tables
/// that fail it, or of the first.
pub(crate) fn merged(audits: Vec<Audit>) -> Audit {
    let tables = audits.len();
    let mut all = Audit::default();
    for (table, audit) in audits.into_iter().enumerate() {
        let of_table = |text: String| if tables == 1 { text } else { format!("table {table}: {text}") };
        for check in audit.checks {
            let check = Check { detail: of_table(check.detail), ..check };
            match all.checks.iter_mut().find(|known| known.name == check.name) {
                None => all.checks.push(check),
                Some(known) if known.passed && !check.passed => *known = check,
                Some(known) if !check.passed => known.detail = format!("{}; {}", known.detail, check.detail),
                Some(_) => {}
            }
        }
        all.notes.extend(audit.notes.into_iter().map(of_table));
    }
    all
}

#[cfg(test)]
mod tests;
