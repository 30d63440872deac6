//! What does a sweep keep of a run? One row: its settings, its metrics by every definition, its counts, its histograms.

use lakemark_simulator::{
    Arrivals, Catalog, CellError, CellResult, Latency, Law, PerType, ProtocolChoice, RetryChoice, Summary,
    TableSelection,
};
use serde_json::{Value, json};

use crate::grid::PlannedCell;
use crate::sketch;

/// One value of a row, or none of its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A count.
    Count(Option<u64>),
    /// A number.
    Number(Option<f64>),
    /// A word.
    Text(Option<String>),
    /// Yes or no.
    Flag(Option<bool>),
    /// A serialized histogram.
    Bytes(Option<Vec<u8>>),
}

impl Scalar {
    /// Its number, if it has one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => count.map(|count| count as f64),
            Self::Number(number) => *number,
            _ => None,
        }
    }

    /// Its word, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            _ => None,
        }
    }

    /// How a reader would write it; nothing if there is none.
    pub fn show(&self) -> String {
        match self {
            Self::Count(count) => count.map(|count| count.to_string()),
            Self::Number(number) => number.map(|number| number.to_string()),
            Self::Text(text) => text.clone(),
            Self::Flag(flag) => flag.map(|flag| flag.to_string()),
            Self::Bytes(_) => None,
        }
        .unwrap_or_default()
    }
}

/// One value of a row, under its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of the column.
    pub name: String,
    /// The value.
    pub value: Scalar,
}

/// Columns that every row is found by.
pub const KEY: [&str; 2] = ["cell", "seed"];

/// Columns of settings. `docs/SWEEPS.md` says what each means.
pub const SETTINGS: [&str; 32] = [
    "experiment",
    "duration_ms",
    "warm_up_ms",
    "drain",
    "arrivals",
    "arrivals_scale_ms",
    "arrivals_mean_ms",
    "offered_per_s",
    "clients",
    "runtime",
    "runtime_median_ms",
    "tables",
    "table_selection",
    "zipf_exponent",
    "partitions",
    "fast_append_ratio",
    "real_conflict_probability",
    "provider",
    "catalog",
    "catalog_latency_ms",
    "protocol",
    "retry",
    "attempts_max",
    "budget_ms",
    "after_catalog_conflict_json",
    "after_table_conflict_json",
    "rate_limit_per_s",
    "sums_exact_below",
    "rules_json",
    "laws_json",
    "cell_json",
    "config_hash",
];

/// Names of the metrics' definitions, as columns begin with them.
pub const DEFINITIONS: [&str; 4] = ["table", "heatmap", "knee", "drain"];

/// Names of the transactions that a metric is of, as columns go on.
pub const TYPES: [&str; 3] = ["all", "fast_append", "validated_overwrite"];

/// The row of one run, behind the columns that [`settings`] gives.
pub fn fields(settings: &[Field], seed: u64, result: &CellResult) -> Vec<Field> {
    let mut row = Row(Vec::with_capacity(200));
    let (cell, others) = settings.split_at(settings.len().min(1));
    row.0.extend_from_slice(cell);
    row.count("seed", seed);
    row.0.extend_from_slice(others);
    let drain = result.drain.clone().unwrap_or_default();
    for (definition, metrics) in DEFINITIONS.iter().zip([&result.table, &result.heatmap, &result.knee, &drain]) {
        for (of, summary) in each(metrics) {
            row.summary(&format!("{definition}_{of}"), summary);
        }
    }
    for (of, latency) in each(&result.failure) {
        row.latency(&format!("failure_{of}"), latency);
    }
    row.counts(result);
    for (of, histogram) in each(&result.histograms) {
        row.push(format!("histogram_{of}"), Scalar::Bytes(Some(sketch::encode(histogram))));
    }
    row.0
}

/// The columns of a cell, which all its seeds share: the cell's index and its settings, names resolved.
///
/// # Errors
/// If the protocol, policy or profile that the cell names cannot be read.
pub fn settings(planned: &PlannedCell) -> Result<Vec<Field>, CellError> {
    let cell = &planned.cell;
    let mut row = Row(Vec::with_capacity(SETTINGS.len() + 1));
    row.count("cell", planned.index);
    row.text("experiment", planned.experiment);
    row.number("duration_ms", Some(cell.duration_ms));
    row.number("warm_up_ms", Some(cell.warm_up_ms));
    row.push("drain", Scalar::Flag(Some(cell.drain)));
    row.text("arrivals", kind(&cell.arrivals).as_deref());
    let (scale_ms, mean_ms, clients) = match &cell.arrivals {
        Arrivals::LogNormal { scale_ms, .. } => (Some(*scale_ms), None, None),
        Arrivals::Exponential { mean_ms } | Arrivals::OnOff { mean_ms, .. } => (None, Some(*mean_ms), None),
        Arrivals::ClosedLoop { clients, .. } => (None, None, Some(u64::from(*clients))),
        Arrivals::Trace { .. } | Arrivals::TraceFile { .. } => (None, None, None),
    };
    row.number("arrivals_scale_ms", scale_ms);
    row.number("arrivals_mean_ms", mean_ms);
    row.number("offered_per_s", cell.arrivals.offered_per_s());
    row.push("clients", Scalar::Count(clients));
    row.text("runtime", kind(&cell.runtime).as_deref());
    let median_ms = if let Law::LogNormal { median_ms, .. } = &cell.runtime { Some(*median_ms) } else { None };
    row.number("runtime_median_ms", median_ms);
    row.count("tables", cell.tables.into());
    row.text("table_selection", kind(&cell.table_selection).as_deref());
    let exponent = if let TableSelection::Zipf { exponent } = &cell.table_selection { Some(*exponent) } else { None };
    row.number("zipf_exponent", exponent);
    row.count("partitions", cell.partitions.into());
    row.number("fast_append_ratio", Some(cell.fast_append_ratio));
    row.number("real_conflict_probability", Some(cell.real_conflict_probability));
    row.text("provider", Some(&cell.provider));
    row.text("catalog", kind(&cell.catalog).as_deref());
    let latency_ms = if let Catalog::Service { latency_ms } = &cell.catalog { Some(*latency_ms) } else { None };
    row.number("catalog_latency_ms", latency_ms);
    let (protocol, policy) = (cell.resolved_protocol()?, cell.resolved_retry()?);
    row.text("protocol", Some(&protocol.name));
    row.text("retry", Some(if let RetryChoice::Named(name) = &cell.retry { name } else { "own" }));
    row.count("attempts_max", policy.attempts_max.into());
    row.number("budget_ms", policy.budget_ms);
    row.json("after_catalog_conflict_json", &policy.after_catalog_conflict);
    row.json("after_table_conflict_json", &policy.after_table_conflict);
    row.number("rate_limit_per_s", cell.rate_limit.map(|limit| limit.per_s));
    row.count("sums_exact_below", cell.sums_exact_below.into());
    row.json("rules_json", &cell.rules);
    row.json("laws_json", &cell.laws);
    // With the protocol, the policy and a trace in full, so that the row says what ran whatever becomes of a name.
    let mut resolved = cell.clone();
    resolved.arrivals = cell.arrivals.resolved()?;
    resolved.protocol = ProtocolChoice::Full(Box::new(protocol));
    resolved.retry = RetryChoice::Full(policy);
    let resolved = serde_json::to_value(&resolved).unwrap_or_default();
    row.text("cell_json", Some(&resolved.to_string()));
    let hashed = json!({"cell": resolved, "profile": cell.resolved_profile()?.to_json()}).to_string();
    row.text("config_hash", Some(&format!("{:016x}", xxhash_rust::xxh3::xxh3_64(hashed.as_bytes()))));
    Ok(row.0)
}

/// The word for an enumerated setting.
fn kind(setting: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(setting).ok()?.get("kind").and_then(Value::as_str).map(str::to_owned)
}

/// The values of each type, with the type's name.
fn each<T>(values: &PerType<T>) -> [(&'static str, &T); 3] {
    [(TYPES[0], &values.all), (TYPES[1], &values.fast_append), (TYPES[2], &values.validated_overwrite)]
}

/// A row that grows.
struct Row(Vec<Field>);

impl Row {
    fn push(&mut self, name: impl Into<String>, value: Scalar) {
        self.0.push(Field { name: name.into(), value });
    }

    fn count(&mut self, name: impl Into<String>, count: u64) {
        self.push(name, Scalar::Count(Some(count)));
    }

    fn number(&mut self, name: impl Into<String>, number: Option<f64>) {
        self.push(name, Scalar::Number(number));
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        self.push(name, Scalar::Text(text.map(str::to_owned)));
    }

    fn json(&mut self, name: &str, value: &impl serde::Serialize) {
        self.push(name, Scalar::Text(serde_json::to_string(value).ok()));
    }

    fn summary(&mut self, name: &str, summary: &Summary) {
        self.count(format!("{name}_transactions"), summary.transactions);
        self.count(format!("{name}_committed"), summary.committed);
        self.number(format!("{name}_success_rate"), summary.success_rate);
        self.number(format!("{name}_throughput_per_s"), summary.throughput_per_s);
        self.latency(name, &summary.latency);
        self.number(format!("{name}_mean_retries"), summary.mean_retries);
    }

    fn latency(&mut self, name: &str, latency: &Latency) {
        self.count(format!("{name}_latency_count"), latency.count);
        self.number(format!("{name}_latency_mean_ms"), latency.mean_ms);
        self.number(format!("{name}_latency_p50_ms"), latency.p50_ms);
        self.number(format!("{name}_latency_p95_ms"), latency.p95_ms);
        self.number(format!("{name}_latency_p99_ms"), latency.p99_ms);
    }

    fn counts(&mut self, result: &CellResult) {
        let counts = &result.counts;
        for (name, count) in [
            ("arrivals_count", counts.arrivals),
            ("committed", counts.committed),
            ("aborted_attempts", counts.aborted_attempts),
            ("aborted_budget", counts.aborted_budget),
            ("aborted_conflict", counts.aborted_conflict),
            ("in_flight", counts.in_flight),
            ("attempts", counts.attempts),
            ("failed_catalog_conflict", counts.failed_catalog_conflict),
            ("failed_table_conflict", counts.failed_table_conflict),
            ("failed_throttled", counts.failed_throttled),
            ("given_up_early", counts.given_up_early),
            ("requests", counts.requests),
            ("requests_wasted", counts.requests_wasted),
            ("moved_bytes", counts.bytes),
            ("wasted_bytes", counts.bytes_wasted),
            ("events", counts.events),
        ] {
            self.count(name, count);
        }
        self.number("failed_attempt_rate", counts.failed_attempt_rate());
        self.number("failed_operation_rate", counts.failed_operation_rate());
        self.number("mean_batch", counts.mean_batch);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lakemark_simulator::{Cell, simulate};

    use super::*;

    #[test]
    fn a_row_has_each_column_once() {
        let cell = Cell { duration_ms: 60_000.0, ..Cell::default() };
        let planned = PlannedCell { index: 7, experiment: None, cell: cell.clone() };
        let shared = settings(&planned).unwrap();
        let names: Vec<&str> = shared.iter().skip(1).map(|field| field.name.as_str()).collect();
        assert_eq!(names, SETTINGS);
        let row = fields(&shared, 3, &simulate(&cell, 3).unwrap());
        assert_eq!(row[..2].iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), KEY);
        assert_eq!(row.iter().map(|field| &field.name).collect::<BTreeSet<_>>().len(), row.len());
        assert!(row.iter().any(|field| field.name == "drain_validated_overwrite_latency_p99_ms"));
    }

    #[test]
    fn the_hash_is_of_what_a_cell_holds() {
        let hash = |cell: Cell| {
            let fields = settings(&PlannedCell { index: 0, experiment: None, cell }).unwrap();
            fields.last().unwrap().value.clone()
        };
        let named = hash(Cell::default());
        let policy = RetryChoice::Full(lakemark_simulator::RetryPolicy::immediate());
        assert_eq!(hash(Cell { retry: policy, ..Cell::default() }), named);
        assert_ne!(hash(Cell { tables: 2, ..Cell::default() }), named);
    }
}
