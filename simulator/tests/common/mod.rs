//! How close are simulated cells to reference values? What the thinned tests and the whole grid share.

#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]
#![allow(clippy::unwrap_used, reason = "a reference file that does not parse fails the test")]

use std::collections::BTreeMap;

use lakemark_simulator::studies::StudyCell;
use lakemark_simulator::{CellResult, Model};

/// Our value of a column of `reference/grid.csv`, in its unit.
pub fn column(result: &CellResult, name: &str) -> Option<f64> {
    let (definition, metric) = name.split_once('.')?;
    let summary = match definition {
        "table" => &result.table.all,
        "heat" => &result.heatmap.all,
        "heat_fa" => &result.heatmap.fast_append,
        "heat_vo" => &result.heatmap.validated_overwrite,
        "knee" => &result.knee.all,
        "knee_fa" => &result.knee.fast_append,
        "knee_vo" => &result.knee.validated_overwrite,
        _ => return None,
    };
    match metric {
        "success_rate" => summary.success_rate.map(|rate| rate * 100.0),
        "throughput" => summary.throughput_per_s,
        "mean" => summary.latency.mean_ms,
        "p50" => summary.latency.p50_ms,
        "p95" => summary.latency.p95_ms,
        "p99" => summary.latency.p99_ms,
        "mean_retries" => summary.mean_retries,
        _ => None,
    }
}

/// The key of a cell in the reference files: experiment, scale, catalog latency, tables, mix, provider.
pub type Key = (String, u32, String, u32, String, String);

/// The key of a cell of the study.
pub fn key(study: &StudyCell) -> Key {
    let latency = study.catalog_latency_ms.map_or(String::new(), |ms| format!("{ms}"));
    let cell = &study.cell;
    let mix = format!("{}", cell.fast_append_ratio);
    (study.experiment.to_owned(), study.scale_ms as u32, latency, cell.tables, mix, study.provider.to_owned())
}

/// A line of a reference file: its key, and its cells by column.
pub type Line = (Key, BTreeMap<String, String>);

/// The lines of a reference file.
pub fn lines(text: &str) -> Vec<Line> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let line = |record: csv::StringRecord| {
        let columns: BTreeMap<String, String> = header.iter().cloned().zip(record.iter().map(str::to_owned)).collect();
        let number = |name: &str| columns[name].parse::<f64>().unwrap();
        let key = (
            columns["experiment"].clone(),
            number("inter_arrival_scale_ms") as u32,
            columns["catalog_latency_ms"].clone(),
            number("num_tables") as u32,
            format!("{}", number("fast_append_ratio")),
            columns["provider"].clone(),
        );
        (key, columns)
    };
    reader.records().map(|record| line(record.unwrap())).collect()
}

/// Results of a cell under `seeds` seeds of its own, so that errors of different cells are independent.
pub fn run(study: &StudyCell, nth: usize, seeds: u64) -> Vec<CellResult> {
    let model = Model::new(&study.cell).unwrap();
    (1..=seeds).map(|seed| model.run(1_000 * (nth as u64 + 1) + seed)).collect()
}

/// Mean and standard deviation over the seeds that have a value; none of nothing.
pub fn mean_sd(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Some((mean, variance.sqrt()))
}

/// A value of ours against a reference of 5 seeds.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub column: String,
    pub ours: f64,
    pub reference: f64,
    /// Difference in standard errors of the difference.
    pub z: f64,
}

/// Compares all columns that the reference has.
pub fn compare(results: &[CellResult], columns: &BTreeMap<String, String>) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (name, value) in columns {
        let Ok(reference) = value.parse::<f64>() else { continue };
        let Some(sd) = columns.get(&format!("{name}.sd")) else { continue };
        let reference_sd: f64 = sd.parse().unwrap();
        let values: Vec<f64> = results.iter().filter_map(|result| column(result, name)).collect();
        let Some((ours, sd)) = mean_sd(&values) else { continue };
        // References are printed with five significant digits, and their percentiles are not of whole milliseconds.
        let percentile = name.ends_with("p50") || name.ends_with("p95") || name.ends_with("p99");
        let rounding = (reference.abs() * 3e-5).max(if percentile { 0.3 } else { 0.0 });
        // One variance, estimated from both samples together.
        let n = values.len() as f64;
        let variance = (4.0 * reference_sd.powi(2) + (n - 1.0) * sd.powi(2)) / (n + 3.0);
        let error = (variance * (1.0 / 5.0 + 1.0 / n) + rounding.powi(2)).sqrt();
        let z = if ours == reference { 0.0 } else { (ours - reference) / error.max(1e-12) };
        comparisons.push(Comparison { column: name.clone(), ours, reference, z });
    }
    comparisons
}
