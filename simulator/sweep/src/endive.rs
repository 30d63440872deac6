//! Does the model reproduce endive-2026? Its published figures, its knees, and a reference for its whole grid.

use std::collections::HashMap;

use lakemark_results::published::Study;
use lakemark_simulator::knee;
use lakemark_simulator::studies::{ENDIVE_PROVIDERS, StudyCell};

use crate::error::SweepError;
use crate::summary::{CellMeans, Mean};

/// Means and standard deviations of the grid's cells over 5 seeds, from a program that implements the study's corrected
/// model independently of this one: 1,850 of the 2,090, all but `exp4b_zipf`.
const REFERENCE: &str = include_str!("../../reference/grid.csv");

/// Standard errors that two means may be apart.
const ERRORS_MAX: f64 = 3.0;

/// Seeds of the thinned grid.
pub const QUICK_SEEDS: u32 = 3;

/// Seeds of the reference.
const REFERENCE_SEEDS: u32 = 5;

/// Share of differences that chance alone puts beyond three standard errors, where a mean over so many seeds is compared
/// with the reference: Student's t with the seeds of both, less two, degrees of freedom.
pub fn chance_share(seeds: u32) -> f64 {
    let freedom = seeds.saturating_sub(1) + REFERENCE_SEEDS - 1;
    // Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    let angle = (ERRORS_MAX / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut step = if is_odd { 3 } else { 2 };
    while step < freedom {
        term *= cosine * cosine * f64::from(step - 1) / f64::from(step);
        sum += term;
        step += 2;
    }
    1.0 - if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// Metrics of the reference: name there, and of the row's column.
const COMPARED: [(&str, &str); 12] = [
    ("table.success_rate", "table_all_success_rate"),
    ("table.throughput", "table_all_throughput_per_s"),
    ("table.mean", "table_all_latency_mean_ms"),
    ("table.p99", "table_all_latency_p99_ms"),
    ("heat.success_rate", "heatmap_all_success_rate"),
    ("heat.mean", "heatmap_all_latency_mean_ms"),
    ("heat.p50", "heatmap_all_latency_p50_ms"),
    ("heat.p99", "heatmap_all_latency_p99_ms"),
    ("heat_vo.success_rate", "heatmap_validated_overwrite_success_rate"),
    ("heat_vo.mean", "heatmap_validated_overwrite_latency_mean_ms"),
    ("knee.throughput", "knee_all_throughput_per_s"),
    ("knee_fa.success_rate", "knee_fast_append_success_rate"),
];

/// Whether a cell is in the thinned grid: all loads of each experiment at the ends of what it sweeps.
pub(crate) fn is_in_thinned(study: &StudyCell) -> bool {
    let StudyCell { catalog_latency_ms, cell, .. } = study;
    let ratio = cell.fast_append_ratio;
    match study.experiment {
        "exp1" => true,
        "exp2" => [1.0, 0.5].contains(&ratio),
        "exp3a" | "exp3b" => *catalog_latency_ms == Some(120.0),
        "exp4c" => [1, 10].contains(&cell.tables) && ratio >= 0.9,
        // Tables and selections at one latency.
        _ => *catalog_latency_ms == Some(10.0) && [1, 10].contains(&cell.tables),
    }
}

/// A published figure and what the sweep has in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRow {
    /// The study's experiment.
    pub experiment: String,
    /// Store.
    pub store: String,
    /// The other settings, as the study's file has them.
    pub parameter: String,
    /// Metric, with its definition and the type of transactions.
    pub metric: String,
    /// Unit of both figures.
    pub unit: String,
    /// The figure as printed.
    pub published: f64,
    /// Ours, in the mean over seeds.
    pub reproduced: Option<f64>,
    /// Ours divided by the published one.
    pub ratio: Option<f64>,
    /// Of a knee: median gap between arrivals of the load that ours is at, in milliseconds.
    pub knee_scale_ms: Option<f64>,
    /// Of a knee: whether it is at the published load.
    pub is_knee_equal: Option<bool>,
}

/// How many cells agree with the reference in a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Column of the metric.
    pub metric: String,
    /// Cells that both have.
    pub cells: u64,
    /// Cells whose means are within three standard errors.
    pub agreeing: u64,
    /// The largest ratio of means away from 1.
    pub worst_ratio: Option<f64>,
}

/// What identifies a cell of the study: experiment, provider's profile, selection, and numbers.
type Key = (String, String, String, [u64; 4]);

fn key(experiment: &str, profile: &str, selection: &str, numbers: [Option<f64>; 4]) -> Key {
    // To a thousandth, so that numbers can be compared; a setting that is missing is one of its own.
    let whole = numbers.map(|number| number.map_or(u64::MAX, |number| (number * 1_000.0).round() as u64));
    (experiment.to_owned(), profile.to_owned(), selection.to_owned(), whole)
}

/// The study's cells of a sweep.
#[derive(Debug)]
pub struct Reproduced<'a> {
    cells: HashMap<Key, &'a CellMeans>,
}

/// Columns that the comparison needs.
pub fn metrics() -> Vec<String> {
    let mut names: Vec<String> = COMPARED.iter().map(|(_, column)| (*column).to_owned()).collect();
    for metric in ["table_all_latency_p50_ms", "table_all_latency_p95_ms", "table_all_mean_retries"] {
        names.push(metric.to_owned());
    }
    for of in ["fast_append", "validated_overwrite"] {
        names.push(format!("heatmap_{of}_success_rate"));
        names.push(format!("heatmap_{of}_latency_p99_ms"));
        names.push(format!("knee_{of}_success_rate"));
        names.push(format!("knee_{of}_latency_mean_ms"));
    }
    names.sort();
    names.dedup();
    names
}

impl<'a> Reproduced<'a> {
    /// Finds the study's cells among those of a sweep.
    pub fn new(cells: &'a [CellMeans]) -> Self {
        let keyed = cells.iter().map(|cell| {
            let settings = &cell.settings;
            let text = |name: &str| settings.text(name).unwrap_or_default();
            let numbers = ["arrivals_scale_ms", "catalog_latency_ms", "tables", "fast_append_ratio"];
            let numbers = numbers.map(|name| settings.number(name));
            (key(text("experiment"), text("provider"), text("table_selection"), numbers), cell)
        });
        Self { cells: keyed.collect() }
    }

    /// The published figures whose cells there are.
    ///
    /// # Errors
    /// If the published figures are not part of this build as they should be.
    pub fn figures(&self) -> Result<Vec<FigureRow>, SweepError> {
        let study = Study::load("endive-2026").map_err(|error| SweepError::Rows(error.to_string()))?;
        let rows = study.figures.iter().filter_map(|figure| {
            let parameters = figure.parameters();
            let number = |name: &str| parameters.get(name).and_then(|value| value.parse::<f64>().ok());
            let (experiment, selection) = (parameters.get("experiment")?, parameters.get("selection")?);
            let profile = profile_of_store(&figure.store)?;
            let numbers = ["scale_ms", "catalog_latency_ms", "tables", "fast_append_ratio"].map(number);
            let cell = self.cells.get(&key(experiment, profile, selection, numbers))?;
            let published = figure.value()?;
            let (column, factor) = match figure.unit.as_str() {
                "%" => (figure.metric.clone(), 100.0),
                "s" => (format!("{}_ms", figure.metric), 0.001),
                "ms" => (format!("{}_ms", figure.metric), 1.0),
                "1/s" => (format!("{}_per_s", figure.metric), 1.0),
                _ => (figure.metric.clone(), 1.0),
            };
            let reproduced = cell.mean(&column).map(|mean| mean * factor);
            let is_knee = figure.metric == "knee_all_throughput";
            let knee_scale_ms = is_knee.then(|| self.knee_scale_ms(experiment, profile, selection, numbers)).flatten();
            Some(FigureRow {
                experiment: (*experiment).to_owned(),
                store: figure.store.clone(),
                parameter: figure.parameter.split_once(';')?.1.to_owned(),
                metric: figure.metric.clone(),
                unit: figure.unit.clone(),
                published,
                reproduced,
                ratio: reproduced.filter(|_| published > 0.0).map(|reproduced| reproduced / published),
                knee_scale_ms,
                is_knee_equal: is_knee.then(|| knee_scale_ms == numbers[0]),
            })
        });
        Ok(rows.collect())
    }

    /// The load at the knee of a line of the grid, as its median gap between arrivals.
    fn knee_scale_ms(
        &self,
        experiment: &str,
        profile: &str,
        selection: &str,
        [_, latency_ms, tables, ratio]: [Option<f64>; 4],
    ) -> Option<f64> {
        let of = if ratio == Some(1.0) { "fast_append" } else { "validated_overwrite" };
        let scales = lakemark_simulator::studies::ENDIVE_SCALES_MS;
        let rates = scales.map(|scale_ms| {
            let numbers = [Some(scale_ms), latency_ms, tables, ratio];
            self.cells.get(&key(experiment, profile, selection, numbers))?.mean(&format!("knee_{of}_success_rate"))
        });
        knee(rates).map(|place| scales[place])
    }

    /// How the cells agree with the reference, metric by metric.
    ///
    /// # Errors
    /// If the reference is not what it should be.
    pub fn agreements(&self) -> Result<Vec<Agreement>, SweepError> {
        let mut agreements: Vec<Agreement> = COMPARED
            .iter()
            .map(|(_, metric)| Agreement { metric: (*metric).to_owned(), cells: 0, agreeing: 0, worst_ratio: None })
            .collect();
        let mut reader = csv::Reader::from_reader(REFERENCE.as_bytes());
        for row in reader.deserialize::<HashMap<String, String>>() {
            let row = row.map_err(|error| SweepError::Rows(format!("reference of endive-2026: {error}")))?;
            let text = |name: &str| row.get(name).map_or("", String::as_str);
            let number = |name: &str| text(name).parse::<f64>().ok();
            let profile =
                ENDIVE_PROVIDERS.iter().find(|(name, _)| *name == text("provider")).map_or("", |found| found.1);
            let numbers = ["inter_arrival_scale_ms", "catalog_latency_ms", "num_tables", "fast_append_ratio"];
            let found = key(text("experiment"), profile, text("table_selection"), numbers.map(number));
            let Some(cell) = self.cells.get(&found) else { continue };
            for ((name, column), agreement) in COMPARED.iter().zip(&mut agreements) {
                let reference = number(name).zip(number(&format!("{name}.sd"))).zip(number("seeds"));
                let (Some(((mean, sd), seeds)), Some(ours)) = (reference, cell.metric(column)) else { continue };
                let factor = if name.ends_with("success_rate") { 0.01 } else { 1.0 };
                let reference = Mean { mean: mean * factor, sd: sd * factor, seeds: seeds as u32 };
                agreement.add(ours, reference);
            }
        }
        Ok(agreements)
    }
}

impl Agreement {
    fn add(&mut self, ours: Mean, reference: Mean) {
        // Both programs draw from one distribution, if they agree: one variance, from both samples.
        let [ours_n, reference_n] = [ours, reference].map(|mean| f64::from(mean.seeds));
        let squares = (ours_n - 1.0) * ours.sd.powi(2) + (reference_n - 1.0) * reference.sd.powi(2);
        let variance = squares / (ours_n + reference_n - 2.0).max(1.0);
        // The reference is printed with five digits.
        let rounding = 1e-4 * reference.mean.abs();
        let allowed = ERRORS_MAX * (variance * (1.0 / ours_n + 1.0 / reference_n)).sqrt() + rounding;
        self.cells += 1;
        self.agreeing += u64::from((ours.mean - reference.mean).abs() <= allowed);
        if reference.mean != 0.0 {
            let ratio = ours.mean / reference.mean;
            let is_worse = self.worst_ratio.is_none_or(|worst| (ratio - 1.0).abs() > (worst - 1.0).abs());
            if is_worse {
                self.worst_ratio = Some(ratio);
            }
        }
    }
}

/// The profile behind a store, as published figures name it.
fn profile_of_store(store: &str) -> Option<&'static str> {
    let name = match store {
        "s3" => "s3",
        "s3-express" => "s3x",
        "azure" => "azure",
        "azure-premium" => "azurex",
        "gcs" => "gcp",
        _ => return None,
    };
    ENDIVE_PROVIDERS.iter().find(|(known, _)| *known == name).map(|(_, profile)| *profile)
}

#[cfg(test)]
mod tests {
    use lakemark_simulator::studies;

    use super::*;
    use crate::file::RowRead;
    use crate::grid::{Grid, GridSpec};
    use crate::row;

    /// The study's cells with settings only.
    fn unrun(thinned: bool) -> Vec<CellMeans> {
        let grid = Grid::new(GridSpec { thinned, ..GridSpec::study("endive-2026") }, "test").unwrap();
        (0..grid.cells())
            .map(|index| CellMeans::unrun(RowRead::new(row::settings(&grid.cell(index).unwrap()).unwrap())))
            .collect()
    }

    #[test]
    fn every_published_figure_and_all_of_the_reference_have_a_cell() {
        let cells = unrun(false);
        assert_eq!(cells.len(), 2_090);
        let reproduced = Reproduced::new(&cells);
        assert_eq!(reproduced.figures().unwrap().len(), 183);
        let needed = metrics();
        for figure in Study::load("endive-2026").unwrap().figures {
            let known = |ending: &str| needed.contains(&format!("{}{ending}", figure.metric));
            assert!(["", "_ms", "_per_s"].into_iter().any(known), "{} is not read", figure.metric);
        }
        let mut reader = csv::Reader::from_reader(REFERENCE.as_bytes());
        assert_eq!(reader.records().count(), 1_850);
    }

    #[test]
    fn the_thinned_grid_has_whole_lines_of_loads() {
        let cells = unrun(true);
        let thinned = studies::endive_2026().iter().filter(|study| is_in_thinned(study)).count();
        assert_eq!(cells.len(), thinned);
        assert_eq!(thinned % 10, 0);
        assert!((200..400).contains(&thinned), "{thinned}");
        assert!(Reproduced::new(&cells).figures().unwrap().len() > 80);
    }

    #[test]
    fn chance_is_that_of_students_t() {
        for (seeds, share) in [(1, 0.0399), (2, 0.0301), (3, 0.0240), (5, 0.0171), (6, 0.0150), (1_000, 0.0028)] {
            assert!((chance_share(seeds) - share).abs() < 1e-4, "{seeds}: {}", chance_share(seeds));
        }
    }

    #[test]
    fn agreement_is_by_standard_errors_and_forgives_rounding() {
        let mean = |mean, sd| Mean { mean, sd, seeds: 5 };
        let agrees = |ours, reference| {
            let mut agreement = Agreement { metric: String::new(), cells: 0, agreeing: 0, worst_ratio: None };
            agreement.add(ours, reference);
            agreement.agreeing == 1
        };
        assert!(agrees(mean(10.0, 1.0), mean(11.8, 1.0)));
        assert!(!agrees(mean(10.0, 1.0), mean(12.0, 1.0)));
        assert!(agrees(mean(0.999_95, 0.0), mean(1.0, 0.0)));
        assert!(!agrees(mean(0.999, 0.0), mean(1.0, 0.0)));
    }
}
