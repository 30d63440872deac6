//! On a format without a store: a list of paths that every handle sees.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lakemark_core::clock::Cpu;
use lakemark_core::store::{Inspect, ListPage, ListQuery, Object, ObjectInfo, Precondition, Provider, Span, Store};
use lakemark_core::store::{StoreError, StoreResult, Traits};
use lakemark_core::table::{Change, DataFile, Format, FormatInfo, OperationError, OperationResult, Table, Unsupported};
use lakemark_core::writer::{Scope, Writer};
use lakemark_results::loads::{FIRST_READER, FIRST_READER_BESIDE};
use lakemark_results::record::{Line, Operation};

use super::*;
use crate::{Sink, sequential_commit};

#[derive(Clone, Default)]
struct Memory {
    files: Arc<Mutex<Vec<String>>>,
    unsupported: &'static [Unsupported],
    /// Loads leave out the last file.
    is_blind: bool,
}

struct Handle {
    memory: Memory,
    version: usize,
}

impl Handle {
    fn newest(memory: &Memory) -> Self {
        Self { version: memory.files.lock().unwrap().len(), memory: memory.clone() }
    }
}

#[async_trait]
impl Format for Memory {
    fn info(&self) -> FormatInfo {
        let library = "memory 1".to_owned();
        FormatInfo { name: "memory", library, catalogs: &["none"], settings: &[], unsupported: self.unsupported }
    }

    fn classify(&self, _key: &str) -> &'static str {
        "object"
    }

    fn publishes(&self, _key: &str) -> bool {
        false
    }

    async fn create(&self, _site: &Site) -> OperationResult<()> {
        Ok(())
    }

    async fn open(&self, _site: &Site) -> OperationResult<Box<dyn Table>> {
        Ok(Box::new(Handle::newest(self)))
    }

    async fn open_shallow(&self, _site: &Site) -> OperationResult<u64> {
        Ok(self.files.lock().unwrap().len() as u64)
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        // Lets readers run.
        tokio::task::yield_now().await;
        let mut all = self.memory.files.lock().unwrap();
        all.extend(files.iter().map(|file| file.path.clone()));
        self.version = all.len();
        Ok(self.version as u64)
    }

    async fn change(&mut self, _change: &Change) -> OperationResult<u64> {
        Err(OperationError::other("no changes"))
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        Ok(Box::new(Self::newest(&self.memory)))
    }

    async fn refresh(&mut self) -> OperationResult<u64> {
        *self = Self::newest(&self.memory);
        Ok(self.version as u64)
    }

    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let shown = self.version.saturating_sub(usize::from(self.memory.is_blind));
        let paths = self.memory.files.lock().unwrap()[..shown].to_vec();
        Ok(ActiveFiles { version: self.version as u64, paths })
    }

    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        Ok((1..=self.version as u64).collect())
    }
}

#[derive(Debug)]
struct NoStore;

impl Inspect for NoStore {
    fn objects(&self, _prefix: &str) -> Vec<(String, u64)> {
        Vec::new()
    }

    fn logical_bytes(&self) -> u64 {
        0
    }

    fn held_bytes(&self) -> u64 {
        0
    }
}

impl Provider for NoStore {
    fn client(self: Arc<Self>, _writer: Arc<Writer>) -> Arc<dyn Store> {
        self
    }
}

fn nothing<T>() -> StoreResult<T> {
    Err(StoreError::Unsupported { what: "any request".to_owned() })
}

#[async_trait]
impl Store for NoStore {
    fn traits(&self) -> Traits {
        Traits { ordered_list: true }
    }

    async fn get(&self, _key: &str, _span: Span) -> StoreResult<Object> {
        nothing()
    }

    async fn head(&self, _key: &str) -> StoreResult<ObjectInfo> {
        nothing()
    }

    async fn put(&self, _key: &str, _body: bytes::Bytes, _precondition: Precondition) -> StoreResult<String> {
        nothing()
    }

    async fn list(&self, _query: &ListQuery) -> StoreResult<ListPage> {
        nothing()
    }

    async fn delete(&self, _key: &str) -> StoreResult<()> {
        nothing()
    }

    async fn copy(&self, _from: &str, _to: &str, _precondition: Precondition) -> StoreResult<()> {
        nothing()
    }
}

#[derive(Default)]
struct Lines(Mutex<Vec<Line>>);

impl Sink for Lines {
    fn emit(&self, line: &Line) {
        self.0.lock().unwrap().push(line.clone());
    }
}

/// Runs the scenario with some parameters given; gives the operations, and whether the cell is valid.
async fn run_on(memory: Memory, given: &[(&str, &str)]) -> (Vec<Operation>, bool) {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let resolved = parameters::resolve(&INFO, &given).unwrap();
    let lines = Arc::new(Lines::default());
    let format: Arc<dyn Format> = Arc::new(memory);
    let bench = Bench {
        format: format.clone(),
        provider: Arc::new(NoStore),
        settings: BTreeMap::new(),
        table: "table".to_owned(),
        scope: Scope::of_table(format, "table"),
        sink: lines.clone(),
        seed: 0,
        cpu: Cpu::Free,
    };
    run(&bench, &resolved).await.unwrap();
    let lines = lines.0.lock().unwrap();
    for pair in lines.windows(2).filter(|pair| matches!(pair[1], Line::Metadata(_))) {
        let is_cold_open = |line: &Line| matches!(line, Line::Operation(open) if open.kind == OperationKind::ColdOpen);
        assert!(is_cold_open(&pair[0]), "a sample stands behind the cold open that it is of");
    }
    let operations = lines.iter().filter_map(|line| match line {
        Line::Operation(operation) => Some(operation.clone()),
        _ => None,
    });
    // Nothing is sent, so that the ledger's count of attempts does not hold: only loads and files are looked at.
    let is_valid = lines.iter().all(|line| match line {
        Line::Audit(audit) => audit.checks.iter().filter(|check| check.name.contains("every load")).all(|c| c.passed),
        _ => true,
    });
    (operations.collect(), is_valid)
}

fn of(operations: &[Operation], kind: OperationKind) -> Vec<u64> {
    let of_kind = operations.iter().filter(|operation| operation.kind == kind && !operation.excluded);
    of_kind.filter_map(|operation| operation.version).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_of_loading_runs_as_often_as_asked_at_each_version() {
    let given = [("appends", "12"), ("load-at", "3,12"), ("sample-at", "5,12"), ("loads", "2"), ("behind", "4")];
    let (operations, is_valid) = run_on(Memory::default(), &given).await;
    assert!(is_valid);
    // A sample is a cold open; where loads are wanted as well, it is the first of them.
    assert_eq!(of(&operations, OperationKind::ColdOpen), [3, 3, 5, 12, 12]);
    for kind in [OperationKind::FreshHandle, OperationKind::Refresh, OperationKind::ShallowOpen] {
        assert_eq!(of(&operations, kind), [3, 3, 12, 12], "{kind:?}");
    }
    // Handles fall behind by as much as there is: 3 of 4, and then 4.
    let opened: Vec<u64> = operations.iter().filter(|o| o.excluded).filter_map(|o| o.version).collect();
    assert_eq!(opened, [0, 0, 8, 8]);
    // Each reader has a number of its own, and none that a writer could have.
    let mut readers: Vec<u32> = operations
        .iter()
        .filter(|o| matches!(o.kind, OperationKind::ColdOpen | OperationKind::ShallowOpen))
        .map(|o| o.writer)
        .collect();
    assert!(readers.iter().all(|reader| (FIRST_READER..FIRST_READER_BESIDE).contains(reader)));
    let count = readers.len();
    readers.sort_unstable();
    readers.dedup();
    assert_eq!(readers.len(), count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_format_does_not_offer_is_left_out() {
    const UNSUPPORTED: &[Unsupported] = &[
        Unsupported { what: "shallow_open", why: "none" },
        Unsupported { what: "refresh", why: "none" },
        Unsupported { what: "fresh_handle", why: "none" },
    ];
    let memory = Memory { unsupported: UNSUPPORTED, ..Memory::default() };
    let (operations, is_valid) = run_on(memory, &[("appends", "3"), ("loads", "2")]).await;
    assert!(is_valid);
    assert_eq!(of(&operations, OperationKind::ColdOpen), [1, 1, 3, 3]);
    for kind in [OperationKind::FreshHandle, OperationKind::Refresh, OperationKind::ShallowOpen] {
        assert_eq!(of(&operations, kind), Vec::<u64>::new(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_misses_a_file_makes_the_cell_invalid() {
    let (_, is_valid) = run_on(Memory { is_blind: true, ..Memory::default() }, &[("appends", "3")]).await;
    assert!(!is_valid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_beside_the_writer_load_until_it_ends() {
    let given = [("appends", "50"), ("load-at", "50"), ("readers-beside", "3")];
    let (operations, is_valid) = run_on(Memory::default(), &given).await;
    assert!(is_valid);
    let beside: Vec<&Operation> = operations.iter().filter(|o| o.writer >= FIRST_READER_BESIDE).collect();
    for reader in 0..3 {
        let loads = beside.iter().filter(|o| (o.writer - FIRST_READER_BESIDE) % 3 == reader).count();
        assert!(loads > 0, "reader {reader} never loaded");
    }
    let blind = Memory { is_blind: true, ..Memory::default() };
    assert!(!run_on(blind, &given).await.1);
}

#[test]
fn the_scenario_takes_every_parameter_of_sequential_commit() {
    for parameter in sequential_commit::INFO.parameters {
        assert!(INFO.parameters.iter().any(|known| known.name == parameter.name), "{}", parameter.name);
    }
}
