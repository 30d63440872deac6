//! What the loads of a cell come to: by kind of load and by version, with how many reads were under way at once.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::record::{Method, Operation, OperationKind, Outcome, Request};
use crate::statistics::{mean, ms, student_half_width_95};

pub mod in_flight;
mod rows;

use in_flight::InFlight;
pub use rows::{LoadRow, rows};

/// Number of the first reader. Writers count from 0, so that readers never share a random stream with one.
pub const FIRST_READER: u32 = 1 << 16;

/// Number of the first reader that loads while writers write. Readers below it load while the writer waits.
pub const FIRST_READER_BESIDE: u32 = 1 << 20;

/// Name of a kind of operation that reads a table, as records and formats' lists of what they do not offer have it.
pub fn kind_name(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::ColdOpen => "cold_open",
        OperationKind::FreshHandle => "fresh_handle",
        OperationKind::Refresh => "refresh",
        OperationKind::ShallowOpen => "shallow_open",
        _ => "",
    }
}

/// Kinds of loads, the dearest first.
pub const KINDS: [OperationKind; 4] =
    [OperationKind::ColdOpen, OperationKind::FreshHandle, OperationKind::Refresh, OperationKind::ShallowOpen];

/// Loads of one kind at one version, or all of a kind beside a writer. Figures are means over those that succeeded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoadSummary {
    /// What kind of load.
    pub kind: OperationKind,
    /// Appends that were acknowledged before; of loads beside a writer, before the last of them.
    pub appends: u64,
    /// Table version that they are of, as the format counts; of loads beside a writer, the newest.
    pub version: Option<u64>,
    /// Whether they ran while the writer wrote.
    pub is_beside: bool,
    /// Versions that the handles were behind, for a refresh.
    pub behind: Option<u64>,
    /// Loads that succeeded.
    pub loads_ok: u64,
    /// Loads that failed.
    pub loads_failed: u64,
    /// Latency.
    pub latency_ms: f64,
    /// Half the width of its 95 % confidence interval, by Student's t; none for a single load.
    pub latency_half_width_ms: Option<f64>,
    /// Latency and CPU time of each load together: an upper bound of what a load takes, for a latency that holds no
    /// computing. A library that computes on several threads, or while requests are under way, takes less.
    pub latency_with_cpu_ms: f64,
    /// Half the width of its 95 % confidence interval.
    pub latency_with_cpu_half_width_ms: Option<f64>,
    /// With at least one request at the store: emulated wait, on an emulated store.
    pub wait_ms: f64,
    /// Waiting for the catalog.
    pub catalog_ms: f64,
    /// CPU of the process, the harness' own excluded; beside a writer, that of all that ran.
    pub cpu_ms: f64,
    /// Requests.
    pub requests: f64,
    /// Bytes received.
    pub read_bytes: f64,
    /// Objects read, each counted once a load.
    pub objects: f64,
    /// Most requests of one load that were under way at once.
    pub in_flight_max: u64,
    /// Requests under way, on average over the time with at least one.
    pub in_flight_mean: f64,
}

/// One load and what it sent.
struct Load {
    operation: Operation,
    appends: u64,
    behind: Option<u64>,
    spans_us: Vec<(u64, u64)>,
    /// Hashes of the keys read.
    objects: HashSet<u64>,
}

/// Gathers loads from a cell's records: operations first, then requests, each in the order of the file.
#[derive(Default)]
pub struct Collector {
    appends: u64,
    /// Version that each reader last saw.
    seen: HashMap<u32, u64>,
    loads: Vec<Load>,
    index: HashMap<(u32, u64), usize>,
}

impl Collector {
    /// Takes an operation, whatever its kind.
    pub fn operation(&mut self, operation: &Operation) {
        let is_ok = operation.outcome == Outcome::Ok;
        if operation.kind == OperationKind::Append {
            self.appends += u64::from(is_ok);
            return;
        }
        if kind_name(operation.kind).is_empty() {
            return;
        }
        let before = match operation.version {
            Some(version) => self.seen.insert(operation.writer, version),
            None => self.seen.get(&operation.writer).copied(),
        };
        if operation.excluded {
            return;
        }
        let is_refresh = operation.kind == OperationKind::Refresh;
        let behind = operation.version.zip(before).filter(|_| is_refresh);
        self.index.insert((operation.writer, operation.operation), self.loads.len());
        self.loads.push(Load {
            operation: operation.clone(),
            appends: self.appends,
            behind: behind.map(|(now, before)| now.saturating_sub(before)),
            spans_us: Vec::new(),
            objects: HashSet::new(),
        });
    }

    /// Takes a request; one of no load is passed over.
    pub fn request(&mut self, request: &Request) {
        let Some(load) = self.index.get(&(request.writer, request.operation)) else { return };
        let load = &mut self.loads[*load];
        load.spans_us.push((request.start_us, request.start_us + request.latency_us));
        if request.method == Method::Get && request.outcome == Outcome::Ok {
            let mut hasher = DefaultHasher::new();
            request.key.hash(&mut hasher);
            load.objects.insert(hasher.finish());
        }
    }

    /// What the loads come to: by kind within the versions, those beside a writer last.
    pub fn finish(self) -> Vec<LoadSummary> {
        let mut groups = BTreeMap::<_, Vec<Load>>::new();
        for load in self.loads {
            let is_beside = load.operation.writer >= FIRST_READER_BESIDE;
            let appends = if is_beside { 0 } else { load.appends };
            groups.entry((is_beside, appends, load.operation.kind)).or_default().push(load);
        }
        groups.into_iter().filter_map(|((is_beside, _, kind), loads)| summary(kind, is_beside, &loads)).collect()
    }
}

fn summary(kind: OperationKind, is_beside: bool, all: &[Load]) -> Option<LoadSummary> {
    let loads: Vec<&Load> = all.iter().filter(|load| load.operation.outcome == Outcome::Ok).collect();
    let sample = |pick: &dyn Fn(&Load) -> f64| loads.iter().map(|load| pick(load)).collect::<Vec<f64>>();
    let average = |pick: &dyn Fn(&Load) -> f64| mean(&sample(pick)).unwrap_or_default();
    let latency = sample(&|load| ms(load.operation.latency_us));
    let with_cpu = sample(&|load| ms(load.operation.latency_us + load.operation.cpu_us));
    let in_flight: Vec<InFlight> = loads.iter().map(|load| InFlight::of(&load.spans_us)).collect();
    Some(LoadSummary {
        kind,
        appends: all.iter().map(|load| load.appends).max()?,
        version: loads.iter().filter_map(|load| load.operation.version).max(),
        is_beside,
        behind: loads.iter().filter_map(|load| load.behind).max(),
        loads_ok: loads.len() as u64,
        loads_failed: (all.len() - loads.len()) as u64,
        latency_ms: mean(&latency).unwrap_or_default(),
        latency_half_width_ms: student_half_width_95(&latency),
        latency_with_cpu_ms: mean(&with_cpu).unwrap_or_default(),
        latency_with_cpu_half_width_ms: student_half_width_95(&with_cpu),
        wait_ms: average(&|load| ms(load.operation.wait_us)),
        catalog_ms: average(&|load| ms(load.operation.catalog_us)),
        cpu_ms: average(&|load| ms(load.operation.cpu_us)),
        requests: average(&|load| f64::from(load.operation.requests)),
        read_bytes: average(&|load| load.operation.read_bytes as f64),
        objects: average(&|load| load.objects.len() as f64),
        in_flight_max: in_flight.iter().map(|load| load.max).max().unwrap_or_default(),
        in_flight_mean: InFlight::mean_of(&in_flight),
    })
}

#[cfg(test)]
mod tests;
