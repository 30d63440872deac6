//! One writer's identity and log: which operation runs, what it sent, what it waited for.
//!
//! The store client and the catalog decorator report here; the scenario collects the log after each operation.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lakemark_results::record::{Attempt, Layer, Method, Outcome, Request};

use crate::clock::{self, Hold};
use crate::table::Format;

type Classify = dyn Fn(&str) -> &'static str + Send + Sync;
type Publishes = dyn Fn(&str) -> bool + Send + Sync;

/// How keys are named in records: relative to a table, in the words of its format.
pub struct Scope {
    /// What keys in records leave out: the table's prefix, or what the prefixes of several tables have in common.
    root: String,
    /// Key prefixes of the tables, each with its trailing slash.
    tables: Vec<String>,
    classify: Box<Classify>,
    publishes: Box<Publishes>,
    client_retries: u32,
    /// Attempts of all its writers that succeeded, by table.
    commits: Vec<AtomicU64>,
}

impl Scope {
    /// The keys of one table of a format.
    pub fn of_table(format: Arc<dyn Format>, table: &str) -> Arc<Self> {
        Self::of_tables(format, &[table.to_owned()])
    }

    /// The keys of several tables of a format, side by side in one folder. Keys in records are relative to the folder,
    /// those of a single table to the table.
    pub fn of_tables(format: Arc<dyn Format>, tables: &[String]) -> Arc<Self> {
        let names = format.clone();
        let root = match tables {
            [only] => format!("{only}/"),
            several => several
                .first()
                .and_then(|first| first.rsplit_once('/'))
                .map_or_else(String::new, |(folder, _)| format!("{folder}/")),
        };
        Arc::new(Self {
            root,
            tables: tables.iter().map(|table| format!("{table}/")).collect(),
            client_retries: format.client_retries(),
            classify: Box::new(move |key| names.classify(key)),
            publishes: Box::new(move |key| format.publishes(key)),
            commits: tables.iter().map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Keys that no format names: every object is of class `object`, and none publishes.
    pub fn plain() -> Arc<Self> {
        Arc::new(Self {
            root: String::new(),
            tables: vec![String::new()],
            classify: Box::new(|_| "object"),
            publishes: Box::new(|_| false),
            client_retries: 10,
            commits: vec![AtomicU64::new(0)],
        })
    }

    /// A key as records have it; keys outside the scope stay as they are.
    pub fn relative<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.root).unwrap_or(key)
    }

    /// A key relative to its table; keys outside all tables stay as they are.
    fn in_table<'a>(&self, key: &'a str) -> &'a str {
        self.tables.iter().find_map(|table| key.strip_prefix(table.as_str())).unwrap_or(key)
    }

    /// Kind of the object at a key.
    pub fn class(&self, key: &str) -> &'static str {
        (self.classify)(self.in_table(key))
    }

    fn publishes(&self, key: &str) -> bool {
        (self.publishes)(self.in_table(key))
    }

    /// Commits to a table so far.
    fn commits(&self, table: usize) -> &AtomicU64 {
        // Writers name tables of the scope only; another would count with the first.
        self.commits.get(table).unwrap_or(&self.commits[0])
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("root", &self.root).finish_non_exhaustive()
    }
}

/// A request that ended. Moments are process time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Number of the request within its writer.
    pub request: u64,
    /// Verb.
    pub method: Method,
    /// Key of the object, or prefix of the listing.
    pub key: &'a str,
    /// When it was sent.
    pub start_ns: u64,
    /// When the answer was complete.
    pub end_ns: u64,
    /// Bytes of the body received.
    pub read_bytes: u64,
    /// Bytes of the body sent.
    pub written_bytes: u64,
    /// Keys in the page, for a listing.
    pub keys: Option<u32>,
    /// HTTP status of the answer; 0 if there was none.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
}

/// A writer (or reader): a client of the store and of the catalog, as one process would be.
#[derive(Debug)]
pub struct Writer {
    id: u32,
    scope: Arc<Scope>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    operation: u64,
    /// Table of the operation, by its place in the scope.
    table: usize,
    /// Commits to that table when the operation started.
    commits_before: u64,
    /// Requests of the operation that belong to an attempt that ended.
    attempted_requests: usize,
    next_request: u64,
    requests_in_flight: u32,
    catalog_calls: u32,
    hold: Option<Hold>,
    /// Since when the writer has at least one request at the store.
    waiting_since: Option<u64>,
    /// Since when the clock is held for a catalog call, with the CPU time used until then.
    held_since: Option<(u64, u64)>,
    log: OperationLog,
}

/// What happened during one operation. Times are process time in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct OperationLog {
    /// Requests in the order of their ends.
    pub requests: Vec<Request>,
    /// Attempts in the order of their ends.
    pub attempts: Vec<Attempt>,
    /// Time with at least one request at the store.
    pub wait_ns: u64,
    /// Time in a catalog call without a request at the store and without CPU use.
    pub catalog_ns: u64,
}

impl Writer {
    /// A writer with a number that is unique in its cell.
    pub fn new(id: u32, scope: Arc<Scope>) -> Arc<Self> {
        Arc::new(Self { id, scope, state: Mutex::default() })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How often its client of the store sends a throttled request again.
    pub fn client_retries(&self) -> u32 {
        self.scope.client_retries
    }

    /// Number of the operation that runs.
    pub fn operation(&self) -> u64 {
        self.state().operation
    }

    /// Starts an operation: from now on it counts the commits of others. Without this it counts them from the end of
    /// the operation before.
    pub fn start_operation(&self) {
        self.start_operation_on(0);
    }

    /// Starts an operation on a table, by its place in the scope.
    pub fn start_operation_on(&self, table: usize) {
        let mut state = self.state();
        state.table = table;
        state.commits_before = self.scope.commits(table).load(Ordering::Relaxed);
    }

    /// Ends the operation: takes its log and makes the next operation the current one.
    pub fn finish_operation(&self) -> OperationLog {
        let mut state = self.state();
        state.operation += 1;
        state.attempted_requests = 0;
        state.commits_before = self.scope.commits(state.table).load(Ordering::Relaxed);
        std::mem::take(&mut state.log)
    }

    /// Number for the writer's next request.
    pub fn next_request(&self) -> u64 {
        let mut state = self.state();
        state.next_request += 1;
        state.next_request - 1
    }

    /// Marks a request as being at the store until the guard is dropped. While one is, a catalog call does not hold
    /// the clock: what the writer waits for is the emulated store.
    pub fn at_store(self: &Arc<Self>) -> AtStore {
        let mut state = self.state();
        state.requests_in_flight += 1;
        if state.requests_in_flight == 1 {
            state.waiting_since = Some(clock::now_ns());
        }
        state.update_hold();
        AtStore(self.clone())
    }

    /// Marks a catalog call as being in flight until the guard is dropped.
    pub fn catalog_call(self: &Arc<Self>) -> CatalogCall {
        let mut state = self.state();
        state.catalog_calls += 1;
        state.update_hold();
        CatalogCall { writer: self.clone(), start_ns: clock::now_ns() }
    }

    /// Records a request that ended. A write of a key that publishes is an attempt as well.
    pub fn record_request(&self, ended: &Ended<'_>) {
        let mut state = self.state();
        let request = Request {
            writer: self.id,
            operation: state.operation,
            request: ended.request,
            method: ended.method,
            key: self.scope.relative(ended.key).to_owned(),
            class: self.scope.class(ended.key).to_owned(),
            start_us: clock::since_start_us(ended.start_ns),
            latency_us: ended.end_ns.saturating_sub(ended.start_ns) / 1_000,
            read_bytes: ended.read_bytes,
            written_bytes: ended.written_bytes,
            keys: ended.keys,
            status: ended.status,
            outcome: ended.outcome,
        };
        state.log.requests.push(request);
        drop(state);
        let is_write = matches!(ended.method, Method::Put | Method::PutIfAbsent | Method::PutIfMatch | Method::Copy);
        if is_write && self.scope.publishes(ended.key) {
            self.record_attempt(Layer::Store, ended.start_ns, ended.end_ns, ended.outcome);
        }
    }

    /// Records an attempt that ended, between two moments of process time in nanoseconds.
    pub fn record_attempt(&self, layer: Layer, start_ns: u64, end_ns: u64, outcome: Outcome) {
        let mut state = self.state();
        let commits = self.scope.commits(state.table);
        let commits = match outcome {
            Outcome::Ok => commits.fetch_add(1, Ordering::Relaxed),
            _ => commits.load(Ordering::Relaxed),
        };
        let spent = &state.log.requests[state.attempted_requests.min(state.log.requests.len())..];
        let attempt = Attempt {
            writer: self.id,
            operation: state.operation,
            attempt: u32::try_from(state.log.attempts.len()).unwrap_or(u32::MAX),
            layer,
            start_us: clock::since_start_us(start_ns),
            latency_us: end_ns.saturating_sub(start_ns) / 1_000,
            outcome,
            behind: commits.saturating_sub(state.commits_before),
            requests: u32::try_from(spent.len()).unwrap_or(u32::MAX),
            read_bytes: spent.iter().map(|request| request.read_bytes).sum(),
            written_bytes: spent.iter().map(|request| request.written_bytes).sum(),
        };
        state.attempted_requests = state.log.requests.len();
        state.log.attempts.push(attempt);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves counters that are still consistent: each is changed in one step.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    /// Holds the clock exactly while a catalog call is in flight and nothing is at the store.
    fn update_hold(&mut self) {
        let wanted = self.catalog_calls > 0 && self.requests_in_flight == 0;
        if wanted == self.hold.is_some() {
            return;
        }
        if wanted {
            self.hold = Some(clock::hold());
            self.held_since = Some((clock::now_ns(), clock::library_cpu_ns()));
        } else {
            if let Some((since_ns, cpu_ns)) = self.held_since.take() {
                let elapsed_ns = clock::now_ns().saturating_sub(since_ns);
                let busy_ns = clock::library_cpu_ns().saturating_sub(cpu_ns);
                self.log.catalog_ns += elapsed_ns.saturating_sub(busy_ns);
            }
            self.hold = None;
        }
    }
}

/// A request at the store.
#[derive(Debug)]
pub struct AtStore(Arc<Writer>);

impl Drop for AtStore {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests_in_flight -= 1;
        if state.requests_in_flight == 0
            && let Some(since_ns) = state.waiting_since.take()
        {
            state.log.wait_ns += clock::now_ns().saturating_sub(since_ns);
        }
        state.update_hold();
    }
}

/// A catalog call in flight.
#[derive(Debug)]
pub struct CatalogCall {
    writer: Arc<Writer>,
    start_ns: u64,
}

impl CatalogCall {
    /// Records the call as one compare-and-swap, from its start to now.
    pub fn attempted(&self, outcome: Outcome) {
        self.writer.record_attempt(Layer::Catalog, self.start_ns, clock::now_ns(), outcome);
    }
}

impl Drop for CatalogCall {
    fn drop(&mut self) {
        let mut state = self.writer.state();
        state.catalog_calls -= 1;
        state.update_hold();
    }
}
