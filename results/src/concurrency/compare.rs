//! Published figures of concurrent writers beside a run's: goodput, and failures at either layer.
//!
//! A study that prints one failure rate says which layer it counted by its own figures: by Little's law, writers ×
//! success ratio / goodput is the mean time of whatever it counted. Here that time is computed for the study and, for
//! attempts and for operations, for the run.

use super::Concurrency;
use crate::compare::{ComparisonRow, catalog_note, verdict_note};
use crate::manifest::{CellPlan, CellStatus};
use crate::published::{CatalogClass, PublishedFigure, Study, Wanted, catalog_kind};

/// Name of the scenario in plans and studies.
const SCENARIO: &str = "concurrent-writers";

const COMPUTED: &str = "published: computed from the study's goodput and failure rate";

/// A cell that may be compared.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What it set out to do.
    pub plan: &'a CellPlan,
    /// How it ended.
    pub status: &'a CellStatus,
    /// What its records come to.
    pub found: &'a Concurrency,
}

/// Compares cells of concurrent writers with a study: for each, in its order, the goodput, the failure rates of both
/// layers, and the times that they imply.
pub fn concurrent_writers(study: &Study, cells: &[Measured<'_>]) -> Vec<ComparisonRow> {
    cells.iter().filter(|cell| cell.plan.scenario == SCENARIO).flat_map(|cell| rows(study, cell)).collect()
}

fn rows(study: &Study, cell: &Measured<'_>) -> Vec<ComparisonRow> {
    let found = cell.found;
    let writers = f64::from(found.window.writers);
    let goodput = figure(study, cell, "successful_commits_per_s");
    let failed = figure(study, cell, "failed_attempt_rate");
    let value = |figure: Option<&PublishedFigure>| figure.and_then(PublishedFigure::value);
    let per_commit_s = value(goodput).filter(|goodput| *goodput > 0.0).map(|goodput| writers / goodput);
    let per_counted_s = per_commit_s.zip(value(failed)).map(|(time_s, failed)| time_s * (1.0 - failed / 100.0));
    let per_operation_s =
        found.time_per_commit_s().zip(found.failed_operation_rate).map(|(time_s, failed)| time_s * (1.0 - failed));
    let percent = |rate: Option<f64>| rate.map(|rate| rate * 100.0);
    let mut rows = vec![
        row(cell, "successful_commits_per_s", "1/s", value(goodput), found.commits_per_s, notes(cell, goodput)),
        row(cell, "failed_attempt_rate", "%", value(failed), percent(found.failed_attempt_rate), notes(cell, failed)),
        row(cell, "failed_operation_rate", "%", None, percent(found.failed_operation_rate), notes(cell, None)),
    ];
    let computed = if goodput.is_some() { vec![COMPUTED.to_owned()] } else { Vec::new() };
    for (metric, published, reproduced) in [
        ("time_per_commit", per_commit_s, found.time_per_commit_s()),
        ("time_per_attempt", per_counted_s, found.time_per_attempt_s()),
        ("time_per_operation", per_counted_s, per_operation_s),
    ] {
        rows.push(row(cell, metric, "s", published, reproduced, computed.clone()));
    }
    rows
}

fn figure<'a>(study: &'a Study, cell: &Measured<'_>, metric: &str) -> Option<&'a PublishedFigure> {
    let wanted = Wanted {
        system: &cell.plan.format,
        catalog: CatalogClass::of(&cell.plan.catalog)?,
        store: cell.plan.provider(),
        scenario: SCENARIO,
        metric,
    };
    study.find(wanted, &[("writers", &cell.found.window.writers.to_string())])
}

fn row(
    cell: &Measured<'_>,
    metric: &str,
    unit: &str,
    published: Option<f64>,
    reproduced: Option<f64>,
    notes: Vec<String>,
) -> ComparisonRow {
    let ratio = reproduced.zip(published).filter(|(_, published)| *published > 0.0);
    ComparisonRow {
        cell: cell.plan.id.clone(),
        system: cell.plan.format.clone(),
        catalog: catalog_kind(&cell.plan.catalog).to_owned(),
        store: cell.plan.store.clone(),
        writers: Some(cell.found.window.writers),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        published,
        published_at_least: false,
        reproduced,
        half_width: None,
        ratio: ratio.map(|(reproduced, published)| reproduced / published),
        wait_ms: None,
        catalog_ms: None,
        cpu_ms: None,
        verified: cell.status.is_verified(),
        emulated: cell.plan.is_emulated(),
        notes,
    }
}

fn notes(cell: &Measured<'_>, figure: Option<&PublishedFigure>) -> Vec<String> {
    let mut notes: Vec<String> = verdict_note(cell.status).into_iter().collect();
    if let Some(figure) = figure {
        notes.extend(catalog_note(cell.plan, figure));
        if figure.value().is_none() {
            notes.push(format!("published as {}", figure.printed));
        }
        if !figure.note.is_empty() {
            notes.push(format!("study: {}", figure.note));
        }
    }
    if cell.plan.cpu == "free" && cell.plan.clock != "real" {
        notes.push("computing took no time: what the store alone gives".to_owned());
    }
    let audit = cell.status.audit.iter().flat_map(|audit| &audit.notes);
    notes.extend(audit.filter(|note| note.starts_with("CPU saturated")).cloned());
    notes
}
