//! What does an operation do? It appends, or makes another change, as the mix says.

use std::collections::{BTreeMap, VecDeque};

use lakemark_core::table::{Change, DataFile, OperationResult, Table};
use lakemark_results::record::OperationKind;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::audit::{Effect, FileId, Removal};
use crate::files::{self, FileMaker};
use crate::parameters;

/// Kinds of operation that a mix may name.
pub(super) const KINDS: [&str; 4] = ["append", "overwrite", "delete", "compact"];

/// Most files that a compaction replaces by one.
const COMPACTED_MAX: usize = 10;

/// Bits of a file's number that count within a writer. With 12 for the writer it fits a file's name.
const NUMBER_BITS: u32 = 36;

/// One operation.
#[derive(Debug)]
pub(super) enum Work {
    Append(Vec<DataFile>),
    Change(Change),
}

impl Work {
    pub(super) async fn run(&self, table: &mut dyn Table) -> OperationResult<u64> {
        match self {
            Self::Append(files) => table.append(files).await,
            Self::Change(change) => table.change(change).await,
        }
    }

    pub(super) fn kind(&self) -> OperationKind {
        match self {
            Self::Append(_) => OperationKind::Append,
            Self::Change(Change::Overwrite { .. }) => OperationKind::Overwrite,
            Self::Change(Change::Delete { .. }) => OperationKind::Delete,
            Self::Change(Change::Compact { .. }) => OperationKind::Compact,
        }
    }

    /// What it does to the table, if the handle has seen a version before it.
    pub(super) fn effect(&self, seen: Option<u64>) -> Effect {
        let ids = |files: &[DataFile]| files.iter().map(|file| FileId::of(&file.path)).collect();
        let none = Box::default();
        match self {
            Self::Append(add) => Effect { add: ids(add), remove: Removal::Nothing },
            Self::Change(Change::Overwrite { add }) => Effect { add: ids(add), remove: Removal::All { seen } },
            Self::Change(Change::Delete { remove }) => Effect { add: none, remove: Removal::Files(ids(remove)) },
            Self::Change(Change::Compact { remove, add }) => {
                Effect { add: ids(add), remove: Removal::Files(ids(remove)) }
            }
        }
    }
}

/// Chooses a writer's operations.
#[derive(Debug)]
pub(super) struct Chooser {
    files: FileMaker,
    mix: Vec<(String, u64)>,
    random: ChaCha8Rng,
    /// Number of the next file.
    next_file: u64,
    /// By table: files that this writer added and that none of its operations removed, oldest first. Kept only if the mix
    /// removes some. Each writer removes its own: two that removed one file would each be right to lose.
    own: Vec<VecDeque<DataFile>>,
    keeps_own: bool,
}

impl Chooser {
    pub(super) fn new(parameters: &BTreeMap<String, Value>, writer: u32, random: ChaCha8Rng) -> Self {
        let mix = parameters::mix(parameters, "mix");
        let tables = parameters::count(parameters, "tables") as usize;
        Self {
            files: FileMaker::new(parameters),
            keeps_own: mix.iter().any(|(name, _)| name == "delete" || name == "compact"),
            mix,
            random,
            next_file: u64::from(writer) << NUMBER_BITS,
            own: vec![VecDeque::new(); tables],
        }
    }

    /// The next operation, and its table.
    pub(super) fn next(&mut self) -> (usize, Work) {
        let table = match self.own.len() {
            1 => 0,
            tables => self.random.random_range(0..tables),
        };
        let total: u64 = self.mix.iter().map(|(_, weight)| weight).sum();
        let mut place = if self.mix.len() > 1 { self.random.random_range(0..total) } else { 0 };
        let mut kind = "append";
        for (name, weight) in &self.mix {
            if place < *weight {
                kind = name;
                break;
            }
            place -= weight;
        }
        let own = self.own[table].len();
        let work = match kind {
            "overwrite" => Work::Change(Change::Overwrite { add: self.new_files() }),
            "delete" if own >= 1 => {
                let count = own.min(self.files.per_append() as usize);
                Work::Change(Change::Delete { remove: self.oldest(table, count) })
            }
            "compact" if own >= 2 => {
                let remove = self.oldest(table, own.min(COMPACTED_MAX));
                let add = vec![files::compacted(self.take_numbers(1), &remove)];
                Work::Change(Change::Compact { remove, add })
            }
            // Nothing to remove yet: the writer adds something.
            _ => Work::Append(self.new_files()),
        };
        (table, work)
    }

    /// Takes note of what became of an operation: whether it was acknowledged. Files that a failed operation was to
    /// remove are not tried again: another writer's overwrite may have removed them.
    pub(super) fn ended(&mut self, table: usize, work: Work, is_ok: bool) {
        if !self.keeps_own {
            return;
        }
        let own = &mut self.own[table];
        match work {
            Work::Append(add) if is_ok => own.extend(add),
            Work::Change(Change::Compact { add, .. }) if is_ok => own.extend(add),
            Work::Change(Change::Overwrite { add }) if is_ok => *own = add.into(),
            _ => {}
        }
    }

    fn oldest(&mut self, table: usize, count: usize) -> Vec<DataFile> {
        self.own[table].drain(..count).collect()
    }

    fn new_files(&mut self) -> Vec<DataFile> {
        let first = self.take_numbers(self.files.per_append());
        self.files.numbered(first)
    }

    fn take_numbers(&mut self, count: u64) -> u64 {
        self.next_file += count;
        self.next_file - count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Purpose};

    fn chooser(mix: &str, tables: u64) -> Chooser {
        let parameters = BTreeMap::from([
            ("mix".to_owned(), mix.into()),
            ("tables".to_owned(), tables.into()),
            ("files".to_owned(), 1.into()),
            ("rows".to_owned(), 10.into()),
            ("file-bytes".to_owned(), 100.into()),
        ]);
        Chooser::new(&parameters, 3, random::stream(1, 3, Purpose::Mix))
    }

    #[test]
    fn operations_follow_the_weights_and_the_tables_are_even() {
        let mut chooser = chooser("append=6,delete=2,compact=1,overwrite=1", 4);
        let mut kinds: BTreeMap<OperationKind, u64> = BTreeMap::new();
        let mut tables = [0u64; 4];
        for _ in 0..10_000 {
            let (table, work) = chooser.next();
            *kinds.entry(work.kind()).or_default() += 1;
            tables[table] += 1;
            chooser.ended(table, work, true);
        }
        assert!(tables.iter().all(|count| count.abs_diff(2_500) < 250), "{tables:?}");
        assert!(kinds[&OperationKind::Overwrite].abs_diff(1_000) < 150, "{kinds:?}");
        // Some deletions and compactions find nothing to remove and append.
        assert!((6_000..8_500).contains(&kinds[&OperationKind::Append]), "{kinds:?}");
        assert!(kinds[&OperationKind::Compact] > 300 && kinds[&OperationKind::Delete] > 1_000, "{kinds:?}");
    }

    #[test]
    fn a_writer_removes_only_what_it_added_and_nothing_twice() {
        let mut chooser = chooser("append=5,delete=3,compact=2", 1);
        let mut active: Vec<String> = Vec::new();
        for round in 0..2_000 {
            let (table, work) = chooser.next();
            let is_ok = round % 5 != 0;
            let (add, remove) = match &work {
                Work::Append(add) => (add.as_slice(), [].as_slice()),
                Work::Change(Change::Compact { add, remove }) => (add.as_slice(), remove.as_slice()),
                Work::Change(Change::Delete { remove }) => ([].as_slice(), remove.as_slice()),
                Work::Change(Change::Overwrite { .. }) => panic!("the mix has none"),
            };
            for file in remove {
                assert!(active.contains(&file.path), "{} is not active", file.path);
            }
            if is_ok {
                active.retain(|path| remove.iter().all(|file| file.path != *path));
                active.extend(add.iter().map(|file| file.path.clone()));
            }
            chooser.ended(table, work, is_ok);
        }
    }

    #[test]
    fn no_two_writers_make_one_file() {
        let mut one = chooser("append", 1);
        let random = random::stream(1, 4, Purpose::Mix);
        let mut other = Chooser { next_file: 4 << NUMBER_BITS, random, ..chooser("append", 1) };
        let path = |work: Work| match work {
            Work::Append(files) => files[0].path.clone(),
            Work::Change(_) => panic!("the mix has none"),
        };
        let paths: std::collections::BTreeSet<String> =
            (0..100).flat_map(|_| [path(one.next().1), path(other.next().1)]).collect();
        assert_eq!(paths.len(), 200);
        assert!(paths.iter().all(|path| path.len() == "data/".len() + 36 + ".parquet".len()));
    }
}
