//! Published figures beside what a run measured: *published · reproduced · ratio*.

use serde::{Deserialize, Serialize};

use crate::loads::LoadSummary;
use crate::manifest::{CellPlan, CellState, CellStatus};
use crate::published::{CatalogClass, PublishedFigure, Study, Wanted, catalog_kind};
use crate::record::{MetadataSample, OperationKind};
use crate::statistics::LatencySummary;
use crate::summary::{CellSummary, LatencySplit};
use crate::table::{Column, Field, Row, group_digits};

mod loads;

/// Scenarios in plans and studies. Cells of the second make the commits of the first as well.
const SEQUENTIAL_COMMIT: &str = "sequential-commit";
const METADATA_LOAD: &str = "metadata-load";

const BYTES_PER_MIB: f64 = 1_048_576.0;

/// A metric that a cell with one writer and a study both have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Metric {
    CommitLatencyMean,
    CommitLatencyLast100Mean,
    ActiveMetadata,
    LoadLatency,
}

impl Metric {
    const ALL: [Self; 4] =
        [Self::CommitLatencyMean, Self::CommitLatencyLast100Mean, Self::ActiveMetadata, Self::LoadLatency];

    /// The metrics that cells of a scenario give.
    fn of(scenario: &str) -> &'static [Self] {
        match scenario {
            SEQUENTIAL_COMMIT => &Self::ALL[..3],
            METADATA_LOAD => &Self::ALL,
            _ => &[],
        }
    }

    /// Scenario under which a study has it, and the parameter there that says how large the table is.
    fn published_as(self) -> (&'static str, &'static str) {
        match self {
            Self::LoadLatency => (METADATA_LOAD, "version"),
            _ => (SEQUENTIAL_COMMIT, "appends"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::CommitLatencyMean => "commit_latency_mean",
            Self::CommitLatencyLast100Mean => "commit_latency_last100_mean",
            Self::ActiveMetadata => "active_metadata",
            Self::LoadLatency => "load_latency",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::CommitLatencyMean | Self::CommitLatencyLast100Mean | Self::LoadLatency => "ms",
            Self::ActiveMetadata => "MiB",
        }
    }
}

/// A cell that may be compared.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What it set out to do.
    pub plan: &'a CellPlan,
    /// How it ended.
    pub status: &'a CellStatus,
    /// What its records come to.
    pub summary: &'a CellSummary,
}

impl<'a> Measured<'a> {
    /// Clock in use, as far as it is known: a worker that cannot skip falls back to `real`.
    fn clock(&self) -> &'a str {
        self.status.hello.as_ref().map_or(&self.plan.clock, |hello| &hello.clock)
    }

    /// Whether process time stood still while the cell computed, so that its latencies hold no computing. On the real
    /// clock `cpu` has no effect.
    fn is_without_computing(&self) -> bool {
        self.plan.cpu == "free" && self.clock() != "real"
    }

    /// Latency of the commits, computing included. A latency without it gets the CPU time of the same commits, at
    /// scale 1: unlike time measured while computing, it holds no wait for a CPU, which a loaded machine adds.
    pub fn latency(&self) -> Option<&'a LatencySummary> {
        let CellSummary { latency, latency_with_cpu, .. } = self.summary;
        if self.is_without_computing() { latency_with_cpu } else { latency }.as_ref()
    }
}

/// One metric of one cell beside the published figure.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// The cell.
    pub cell: String,
    /// Format.
    pub system: String,
    /// Catalog that the run used.
    pub catalog: String,
    /// Store that the run used.
    pub store: String,
    /// Writers, where there are several.
    #[serde(default)]
    pub writers: Option<u32>,
    /// Metric, as the study names it.
    pub metric: String,
    /// Unit of the figures.
    pub unit: String,
    /// The study's figure, if it has one.
    pub published: Option<f64>,
    /// Whether the study gives it as a lower bound: the ratio is then an upper one.
    #[serde(default)]
    pub published_at_least: bool,
    /// The run's figure, if it has one. A latency includes computing, whatever the cell's `cpu`.
    pub reproduced: Option<f64>,
    /// Half the width of its 95 % confidence interval, for a mean.
    pub half_width: Option<f64>,
    /// Reproduced by published.
    pub ratio: Option<f64>,
    /// Of the reproduced latency: mean wait for the store, emulated if the store is.
    pub wait_ms: Option<f64>,
    /// Of the reproduced latency: mean wait for the catalog.
    pub catalog_ms: Option<f64>,
    /// Mean CPU time of these commits, at full speed: what a faster CPU would change.
    pub cpu_ms: Option<f64>,
    /// Whether the cell passed its audit.
    pub verified: bool,
    /// Whether the store is emulated.
    pub emulated: bool,
    /// What a reader must know before comparing.
    pub notes: Vec<String>,
}

/// Compares the cells with one writer with a study: for each cell, in its order, a row for each metric that the study
/// or the cell has. Commits and active metadata come from sequential commits and from metadata loads, loads from the
/// latter alone. Cells of other scenarios are passed over.
pub fn rows(study: &Study, cells: &[Measured<'_>]) -> Vec<ComparisonRow> {
    let of_cell = |cell| Metric::of(cell_scenario(cell)).iter().filter_map(move |metric| compare(study, cell, *metric));
    cells.iter().flat_map(of_cell).collect()
}

/// The study's figures of sequential commits and metadata loads that no cell stands against.
pub fn not_reproduced<'a>(study: &'a Study, cells: &[Measured<'_>]) -> Vec<&'a PublishedFigure> {
    let of_cell =
        |cell| Metric::of(cell_scenario(cell)).iter().filter_map(move |metric| published(study, cell, *metric));
    let covered: Vec<&PublishedFigure> = cells.iter().flat_map(of_cell).collect();
    let is_meant = |figure: &&PublishedFigure| [SEQUENTIAL_COMMIT, METADATA_LOAD].contains(&figure.scenario.as_str());
    study.figures.iter().filter(is_meant).filter(|figure| !covered.contains(figure)).collect()
}

fn cell_scenario<'a>(cell: &Measured<'a>) -> &'a str {
    &cell.plan.scenario
}

/// The study's figure for a cell: of the same number of appends if there is one, else of the largest.
fn published<'a>(study: &'a Study, cell: &Measured<'_>, metric: Metric) -> Option<&'a PublishedFigure> {
    let (scenario, size) = metric.published_as();
    let wanted = Wanted {
        system: &cell.plan.format,
        catalog: CatalogClass::of(&cell.plan.catalog)?,
        store: cell.plan.provider(),
        scenario,
        metric: metric.name(),
    };
    let figures = study.find_any(wanted, &[size]);
    figures.into_iter().max_by_key(|figure| {
        let appends = appends_of(figure);
        (appends == Some(cell.summary.appends_ok.0), appends)
    })
}

/// Appends that the figure is of. A version of the study stands for as many: how formats number the versions of a new
/// table differs by one.
fn appends_of(figure: &PublishedFigure) -> Option<u64> {
    let parameters = figure.parameters();
    parameters.get("appends").or_else(|| parameters.get("version"))?.parse().ok()
}

/// A cell's figure for a metric.
#[derive(Default)]
struct Reproduced {
    value: Option<f64>,
    half_width: Option<f64>,
    split: Option<LatencySplit>,
    /// Appends that the figure is of.
    appends: u64,
}

fn reproduced(cell: &Measured<'_>, metric: Metric, published_appends: Option<u64>) -> Reproduced {
    let (summary, latency) = (cell.summary, cell.latency());
    let appends = summary.appends_ok.0;
    match metric {
        Metric::CommitLatencyMean => Reproduced {
            value: latency.map(|latency| latency.mean_ms),
            half_width: latency.and_then(|latency| latency.mean_half_width_ms),
            split: summary.split,
            appends,
        },
        Metric::CommitLatencyLast100Mean => Reproduced {
            value: latency.and_then(|latency| latency.last100_mean_ms),
            half_width: latency.and_then(|latency| latency.last100_half_width_ms),
            split: summary.last100_split,
            appends,
        },
        Metric::ActiveMetadata => match sample_at(&summary.metadata, published_appends) {
            Some(sample) => Reproduced {
                value: Some(sample.active.bytes as f64 / BYTES_PER_MIB),
                appends: sample.appends,
                ..Reproduced::default()
            },
            None => Reproduced { appends, ..Reproduced::default() },
        },
        Metric::LoadLatency => match cold_open_at(&summary.loads, published_appends) {
            Some(load) => loads::reproduced(load, cell.is_without_computing()),
            None => Reproduced { appends, ..Reproduced::default() },
        },
    }
}

/// The sample at the published number of appends, else the last one.
fn sample_at(samples: &[MetadataSample], appends: Option<u64>) -> Option<&MetadataSample> {
    let exact = samples.iter().rfind(|sample| Some(sample.appends) == appends);
    exact.or_else(|| samples.iter().max_by_key(|sample| sample.appends))
}

/// The cold opens at the published number of appends, else the last.
fn cold_open_at(loads: &[LoadSummary], appends: Option<u64>) -> Option<&LoadSummary> {
    let cold = || loads.iter().filter(|l| l.kind == OperationKind::ColdOpen && !l.is_beside && l.loads_ok > 0);
    cold().find(|load| Some(load.appends) == appends).or_else(|| cold().max_by_key(|load| load.appends))
}

fn compare(study: &Study, cell: &Measured<'_>, metric: Metric) -> Option<ComparisonRow> {
    let figure = published(study, cell, metric);
    let reproduced = reproduced(cell, metric, figure.and_then(appends_of));
    let published = figure.and_then(PublishedFigure::value);
    if figure.is_none() && reproduced.value.is_none() {
        return None;
    }
    let ratio = reproduced.value.zip(published).filter(|(_, published)| *published > 0.0);
    Some(ComparisonRow {
        cell: cell.plan.id.clone(),
        system: cell.plan.format.clone(),
        catalog: catalog_kind(&cell.plan.catalog).to_owned(),
        store: cell.plan.store.clone(),
        writers: None,
        metric: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        published,
        published_at_least: figure.is_some_and(PublishedFigure::is_lower_bound),
        reproduced: reproduced.value,
        half_width: reproduced.half_width,
        ratio: ratio.map(|(reproduced, published)| reproduced / published),
        wait_ms: reproduced.split.map(|split| split.wait_ms),
        catalog_ms: reproduced.split.map(|split| split.catalog_ms),
        cpu_ms: reproduced.split.map(|split| split.cpu_ms),
        verified: cell.status.is_verified(),
        emulated: cell.plan.is_emulated(),
        notes: notes(cell, metric, figure, &reproduced),
    })
}

fn notes(
    cell: &Measured<'_>,
    metric: Metric,
    figure: Option<&PublishedFigure>,
    reproduced: &Reproduced,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(verdict_note(cell.status));
    if !cell.summary.torn.is_empty() {
        notes.push(format!("last line torn in {}", cell.summary.torn.join(", ")));
    }
    if let Some(figure) = figure {
        if let Some(appends) = appends_of(figure).filter(|appends| *appends != reproduced.appends) {
            let [run, study] = [reproduced.appends, appends].map(|n| group_digits(&n.to_string()));
            notes.push(format!("{run} appends against {study}"));
        }
        notes.extend(catalog_note(cell.plan, figure));
        if figure.value().is_none() {
            notes.push(format!("published as {}", figure.printed));
        }
        if !figure.note.is_empty() {
            notes.push(format!("study: {}", figure.note));
        }
    }
    if metric == Metric::CommitLatencyLast100Mean && reproduced.value.is_none() && reproduced.appends > 0 {
        notes.push("fewer than 100 commits".to_owned());
    }
    if metric == Metric::LoadLatency && reproduced.value.is_some() {
        notes.extend(loads::notes(cell, reproduced, figure.and_then(PublishedFigure::value)));
    }
    if metric != Metric::ActiveMetadata && reproduced.value.is_some() {
        notes.extend(cpu_note(cell));
    }
    notes
}

/// Why a cell is not verified, if it is not.
pub(crate) fn verdict_note(status: &CellStatus) -> Option<String> {
    if status.is_verified() {
        return None;
    }
    let state = match status.state {
        // The state says that all is well; the audit, that nothing shows it.
        CellState::Ok => "not verified",
        state => state.as_str(),
    };
    let reason = status.reason.as_deref().unwrap_or("no valid audit");
    Some(format!("{state}: {reason}"))
}

/// Which catalogs are compared, if they are not of one product.
pub(crate) fn catalog_note(plan: &CellPlan, figure: &PublishedFigure) -> Option<String> {
    let (run, study) = (catalog_kind(&plan.catalog), figure.catalog.as_str());
    let product = study.split_once('-').map_or(study, |(_, product)| product);
    let differ = run != product && !(run == "postgresql" && product == "postgres");
    differ.then(|| format!("catalog {run} against {product}"))
}

/// How computing got into the latency, if not as it passed on this machine.
fn cpu_note(cell: &Measured<'_>) -> Option<String> {
    match cell.plan.cpu.as_str() {
        "measured" => None,
        cpu if cell.clock() == "real" => Some(format!("the clock was real: CPU {cpu} had no effect")),
        "free" => Some("computing added from CPU time, scale 1".to_owned()),
        cpu => Some(format!("CPU time in the latency: {cpu}")),
    }
}

impl Row for ComparisonRow {
    const COLUMNS: &'static [Column] = &[
        Column::data_only("cell"),
        Column::text("system", "system"),
        Column::text("catalog", "catalog"),
        Column::text("store", "store"),
        Column::text("emulated", ""),
        Column::number("writers", "writers"),
        Column::text("metric", "metric"),
        Column::data_only("unit"),
        Column::number("published", "published"),
        Column::data_only("published_at_least"),
        Column::number("reproduced", "reproduced"),
        Column::number("half_width", "± 95 %"),
        Column::number("ratio", "ratio"),
        Column::number("wait_ms", "wait\nms"),
        Column::number("catalog_ms", "catalog\nms"),
        Column::number("cpu_ms", "CPU\nms"),
        Column::data_only("verified"),
        Column::text("notes", "notes"),
    ];

    fn fields(&self) -> Vec<Field> {
        let metric = match self.metric.as_str() {
            "commit_latency_mean" => Field::Label("commit_latency_mean", "commit mean, ms"),
            "commit_latency_last100_mean" => Field::Label("commit_latency_last100_mean", "last 100 mean, ms"),
            "active_metadata" => Field::Label("active_metadata", "active metadata, MiB"),
            "load_latency" => Field::Label("load_latency", "cold open, ms"),
            "successful_commits_per_s" => Field::Label("successful_commits_per_s", "commits/s"),
            "failed_attempt_rate" => Field::Label("failed_attempt_rate", "failed attempts, %"),
            "failed_operation_rate" => Field::Label("failed_operation_rate", "failed operations, %"),
            "time_per_commit" => Field::Label("time_per_commit", "writers' time per commit, s"),
            "time_per_attempt" => Field::Label("time_per_attempt", "writers' time per attempt, s"),
            "time_per_operation" => Field::Label("time_per_operation", "writers' time per operation, s"),
            other => Field::Text(other.to_owned()),
        };
        let bound = |sign, field| if self.published_at_least { Field::Bound(sign, Box::new(field)) } else { field };
        vec![
            Field::Text(self.cell.clone()),
            Field::Text(self.system.clone()),
            Field::Text(self.catalog.clone()),
            Field::Text(self.store.clone()),
            Field::Flag(self.emulated, ["emulated", "real"]),
            self.writers.map_or(Field::Missing, |writers| Field::Count(writers.into())),
            metric,
            Field::Text(self.unit.clone()),
            self.published.map_or(Field::Missing, |value| bound("≥", Field::Exact(value))),
            Field::Flag(self.published_at_least, ["yes", "no"]),
            Field::number(self.reproduced),
            Field::number(self.half_width),
            self.ratio.map_or(Field::Missing, |ratio| bound("≤", Field::Ratio(ratio))),
            Field::number(self.wait_ms),
            Field::number(self.catalog_ms),
            Field::number(self.cpu_ms),
            Field::Flag(self.verified, ["yes", "no"]),
            Field::Notes(self.notes.clone()),
        ]
    }
}

#[cfg(test)]
mod tests;
