//! `lakemark fit`: commit protocols read off recorded requests, and the model beside what was measured.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use lakemark_fit::{Comparison, Fit, ModelSettings, Trace, fit};
use lakemark_results::concurrency::Concurrency;
use lakemark_results::manifest::{CellPlan, CellState};
use lakemark_results::run::RunFolder;
use lakemark_results::table::{Column, Field, Table};
use lakemark_simulator::Protocol;

use super::{Ended, run};
use crate::cli::FitOptions;
use crate::{output, plan};

/// Runs the command.
///
/// # Errors
/// If the run cannot be read, a cell that was named cannot be fitted, or a file cannot be written.
pub(crate) fn run(options: &FitOptions) -> Result<Ended> {
    let folder = plan::usage(RunFolder::open(&options.folder).map_err(Into::into))?;
    let given = options.protocol.as_deref().map(Protocol::named).transpose();
    let given = plan::usage(given.map_err(|error| anyhow!("--protocol: {error}")))?;
    let cells = plan::usage(chosen(&folder, &options.cells))?;
    let out = options.out.clone().unwrap_or_else(|| folder.path().join("protocols"));
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut table = Table::new(&columns());
    for cell in cells {
        let fitted = match read(&folder, cell) {
            Ok(fitted) => fitted,
            // Of all cells, those that there is nothing to learn from are left out with a word.
            Err(error) if options.cells.is_empty() => {
                output::tell(&format!("left out: {error:#}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        let file = out.join(format!("{}.toml", cell.id));
        write(&fitted.protocol, &file)?;
        let comparison = compare(&folder, cell, &fitted, given.as_ref(), options)?;
        table.push(row(cell, &fitted, comparison.as_ref()));
    }
    ensure!(!table.is_empty(), "{}: no cell of it can be fitted", options.folder.display());
    output::print_table(&table, options.format)?;
    if run::is_for_people(options.format) {
        output::print(&format!("\nProtocols: {}", out.display()))?;
    }
    Ok(Ended::Verified)
}

fn chosen<'a>(folder: &'a RunFolder, named: &[String]) -> Result<Vec<&'a CellPlan>> {
    let manifest = folder.manifest();
    if named.is_empty() {
        return Ok(manifest.cells.iter().collect());
    }
    let known = || manifest.cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>().join(", ");
    named
        .iter()
        .map(|id| manifest.cell(id).with_context(|| format!("--cell {id}: the run's cells are {}", known())))
        .collect()
}

fn read(folder: &RunFolder, cell: &CellPlan) -> Result<Fit> {
    let status = folder.status(&cell.id)?.with_context(|| format!("cell {}: it has not run", cell.id))?;
    ensure!(status.state == CellState::Ok, "cell {}: it ended as {}", cell.id, status.state.as_str());
    let library = status.hello.as_ref().map_or("an unknown library", |hello| hello.library.as_str());
    let about = format!("{library}, {}, catalog {}: read off {}", cell.store, cell.catalog, cell.id);
    Ok(fit(&Trace::read(folder, &cell.id)?, &cell.id, &about)?)
}

fn write(protocol: &Protocol, file: &Path) -> Result<()> {
    let text = protocol.to_toml();
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// The model beside the cell; none where the cell measured no contention.
fn compare(
    folder: &RunFolder,
    cell: &CellPlan,
    fitted: &Fit,
    given: Option<&Protocol>,
    options: &FitOptions,
) -> Result<Option<Comparison>> {
    let Some(measured) = Concurrency::read(folder, &cell.id)? else { return Ok(None) };
    let settings = folder.status(&cell.id)?.and_then(|status| status.hello).map(|hello| hello.settings);
    let model = ModelSettings {
        // A model without a wait for the catalog would commit in no time where nothing else waits.
        catalog_ms: fitted.catalog_ms.unwrap_or(0.0).max(0.01),
        winners_parallelism: fitted.winners_parallelism.round().clamp(1.0, 1_000.0) as u32,
        duration_ms: f64::from(options.duration_s) * 1e3,
        seeds: options.seeds,
    };
    let protocol = given.unwrap_or(&fitted.protocol);
    Ok(Some(Comparison::new(cell, &settings.unwrap_or_default(), &measured, protocol, &model)?))
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("cell", "cell"),
        Column::text("format", "format"),
        Column::text("store", "store"),
        Column::number("writers", "writers"),
        Column::number("alike_pct", "like the protocol, %"),
        Column::number("commits_per_s", "commits/s"),
        Column::number("model_commits_per_s", "model"),
        Column::number("commits_ratio", "ratio"),
        Column::number("failed_attempts_pct", "failed attempts, %"),
        Column::number("model_failed_attempts_pct", "model, %"),
        Column::number("failed_operations_pct", "failed operations, %"),
        Column::number("model_failed_operations_pct", "model, %"),
    ]
}

fn row(cell: &CellPlan, fitted: &Fit, comparison: Option<&Comparison>) -> Vec<Field> {
    let recorded: usize = fitted.phases.iter().map(|phase| phase.recorded).sum();
    let alike: f64 = fitted.phases.iter().map(|phase| phase.alike * phase.recorded as f64).sum();
    let mut fields = vec![
        Field::Text(cell.id.clone()),
        Field::Text(cell.format.clone()),
        Field::Text(cell.store.clone()),
        comparison.map_or(Field::Missing, |comparison| Field::Count(comparison.writers.into())),
        Field::number(Some(100.0 * alike / recorded.max(1) as f64)),
    ];
    let figures = comparison.map(|comparison| (comparison.measured, comparison.modelled));
    let field = |value: Option<f64>| Field::number(value);
    fields.extend([
        field(figures.map(|(measured, _)| measured.commits_per_s)),
        field(figures.map(|(_, model)| model.commits_per_s)),
        field(figures.map(|(measured, model)| model.commits_per_s / measured.commits_per_s)),
        field(figures.map(|(measured, _)| 100.0 * measured.failed_attempt_rate)),
        field(figures.map(|(_, model)| 100.0 * model.failed_attempt_rate)),
        field(figures.map(|(measured, _)| 100.0 * measured.failed_operation_rate)),
        field(figures.map(|(_, model)| 100.0 * model.failed_operation_rate)),
    ]);
    fields
}
