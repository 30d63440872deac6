//! What did each cell yield over its seeds? Means, and how far seeds scatter.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::SweepError;
use crate::file::{FileReader, RowRead};
use crate::row::{KEY, SETTINGS};

/// A metric over the seeds of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Mean over the seeds that have a value.
    pub mean: f64,
    /// Standard deviation of a seed; 0 of one.
    pub sd: f64,
    /// Seeds that have a value.
    pub seeds: u32,
}

impl Mean {
    fn of(values: &[f64]) -> Option<Self> {
        let seeds = values.len() as f64;
        let mean = values.iter().sum::<f64>() / seeds;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if values.len() > 1 { (squares / (seeds - 1.0)).sqrt() } else { 0.0 };
        (!values.is_empty()).then_some(Self { mean, sd, seeds: values.len() as u32 })
    }
}

/// A cell: its settings, and its metrics over seeds.
#[derive(Clone, Debug)]
pub struct CellMeans {
    /// The settings, of its first row.
    pub settings: RowRead,
    names: Arc<[String]>,
    means: Vec<Option<Mean>>,
}

impl CellMeans {
    #[cfg(test)]
    pub(crate) fn unrun(settings: RowRead) -> Self {
        Self { settings, names: Arc::from(Vec::new()), means: Vec::new() }
    }

    /// A metric, if it was asked for and any seed has a value.
    pub fn metric(&self, name: &str) -> Option<Mean> {
        self.means[self.names.iter().position(|known| known == name)?]
    }

    /// The mean of a metric.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.metric(name).map(|metric| metric.mean)
    }
}

/// Reads the cells of sorted files, with the mean of some metrics.
///
/// # Errors
/// If a file cannot be read, or is not sorted.
pub fn summarize(files: &[PathBuf], metrics: &[String]) -> Result<Vec<CellMeans>, SweepError> {
    let wanted = |name: &str| {
        // The text of a cell is long, and its settings are in other columns.
        let is_setting = SETTINGS.contains(&name) && !name.ends_with("_json");
        is_setting || KEY.contains(&name) || metrics.iter().any(|metric| metric == name)
    };
    let mut cells = std::collections::BTreeMap::<u64, (RowRead, Vec<Vec<f64>>)>::new();
    let mut seen = std::collections::HashSet::new();
    for path in files {
        for row in FileReader::open(path, Some(&wanted))? {
            let row = row?;
            // Where a sweep was interrupted between merging and removing, a row is in two files.
            if !seen.insert(row.key()) {
                continue;
            }
            let (_, values) =
                cells.entry(row.key().0).or_insert_with(|| (row.clone(), vec![Vec::new(); metrics.len()]));
            for (values, metric) in values.iter_mut().zip(metrics) {
                values.extend(row.number(metric));
            }
        }
    }
    let names: Arc<[String]> = metrics.into();
    let means = |(settings, values): (RowRead, Vec<Vec<f64>>)| CellMeans {
        settings,
        names: Arc::clone(&names),
        means: values.iter().map(|values| Mean::of(values)).collect(),
    };
    Ok(cells.into_values().map(means).collect())
}

/// Settings that differ between cells, in the order of columns.
pub fn varying(cells: &[CellMeans]) -> Vec<&'static str> {
    let Some(first) = cells.first() else { return Vec::new() };
    let is_varying = |name: &&&'static str| {
        **name != "config_hash" && cells.iter().any(|cell| cell.settings.get(name) != first.settings.get(name))
    };
    SETTINGS.iter().filter(is_varying).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_deviations_are_those_of_a_sample() {
        let mean = Mean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((mean.mean, mean.sd, mean.seeds), (2.0, 1.0, 3));
        assert_eq!(Mean::of(&[5.0]).unwrap().sd, 0.0);
        assert_eq!(Mean::of(&[]), None);
    }
}
