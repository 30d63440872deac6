//! `lakemark reproduce`: the cells of a published study, and its figures beside the reproduced ones.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use lakemark_results::compare::{self, ComparisonRow, Measured};
use lakemark_results::manifest::CellStatus;
use lakemark_results::published::Study;
use lakemark_results::run::RunFolder;
use lakemark_results::summary::CellSummary;
use lakemark_results::table::Table;
use lakemark_scenarios::definition::{Definition, Expected};

use super::{Ended, run, simulate};
use crate::cli::ReproduceOptions;
use crate::output;
use crate::plan::{self, Cell, How};

/// Runs the command.
///
/// # Errors
/// If what was asked for cannot be planned, or the run cannot be kept.
pub(crate) fn run(options: &ReproduceOptions) -> Result<Ended> {
    if options.study == simulate::endive::STUDY {
        return simulate::endive::run(options);
    }
    let is_measured = if options.seeds.is_none() {
        Ok(())
    } else {
        Err(anyhow!("--seeds: {:?} is no simulated study; allowed: --seed", options.study))
    };
    plan::usage(is_measured)?;
    let (definition, study, cells) = plan::usage(planned(options))?;
    let Some((folder, statuses)) = run::start(&definition.name, &cells, &options.how)? else {
        return Ok(Ended::Verified);
    };
    let rows = print(&folder, &statuses, &study, options)?;
    if run::is_for_people(options.how.format) {
        tell_expectations(&rows, &definition.expected)?;
        tell_usage(&cells, &statuses)?;
        output::print(&format!("\nRecords: {}", folder.path().display()))?;
    }
    Ok(Ended::of(cells.iter().map(|cell| statuses.get(&cell.plan.id))))
}

fn planned(options: &ReproduceOptions) -> Result<(Definition, Study, Vec<Cell>)> {
    let mut definition = Definition::builtin(&options.study)?;
    let study = Study::load(definition.study.as_deref().unwrap_or(&definition.name))?;
    if options.quick {
        definition.make_quick();
    }
    if let Some(scenario) = &options.scenario {
        let known: Vec<String> = definition.grid.iter().map(|grid| grid.scenario.clone()).collect();
        definition.grid.retain(|grid| grid.scenario == *scenario);
        ensure!(!definition.grid.is_empty(), "--scenario {scenario:?}: {} has {}", definition.name, known.join(", "));
    }
    let settings = plan::settings(&options.settings)?;
    for grid in &mut definition.grid {
        keep("--formats", &options.formats, &mut grid.formats)?;
        keep("--stores", &options.stores, &mut grid.stores)?;
        grid.catalogs.extend(options.catalog.clone());
        if let Some(appends) = &options.appends {
            grid.parameters.insert("appends".to_owned(), appends.as_str().into());
        }
        for (format, given) in &settings {
            grid.settings.entry(format.clone()).or_default().extend(given.clone());
        }
    }
    let how = How::new(&options.how, definition.cpu.as_deref(), definition.seed, 1)?;
    let cells = plan::cells(&definition.grid, &how)?;
    Ok((definition, study, cells))
}

/// Keeps of a definition's names those that were asked for.
fn keep(flag: &str, wanted: &[String], names: &mut Vec<String>) -> Result<()> {
    if let Some(stranger) = wanted.iter().find(|name| !names.contains(name)) {
        anyhow::bail!("{flag} {stranger:?}: the study has {}", names.join(", "));
    }
    if !wanted.is_empty() {
        names.retain(|name| wanted.contains(name));
    }
    Ok(())
}

/// Prints the comparison; gives its rows.
fn print(
    folder: &RunFolder,
    statuses: &BTreeMap<String, CellStatus>,
    study: &Study,
    options: &ReproduceOptions,
) -> Result<Vec<ComparisonRow>> {
    let plans = &folder.manifest().cells;
    let summaries: Vec<(&CellStatus, CellSummary)> = plans
        .iter()
        .filter_map(|plan| statuses.get(&plan.id))
        .map(|status| Ok((status, CellSummary::read(folder, &status.cell)?)))
        .collect::<Result<_>>()?;
    let measured: Vec<Measured<'_>> = summaries
        .iter()
        .filter_map(|(status, summary)| Some(Measured { plan: folder.manifest().cell(&status.cell)?, status, summary }))
        .collect();
    let rows = compare::sequential_commit(study, &measured);
    output::print_table(&Table::of(&rows), options.how.format)?;
    Ok(rows)
}

/// Says where a ratio is not as the definition expects.
fn tell_expectations(rows: &[ComparisonRow], expected: &[Expected]) -> Result<()> {
    for expectation in expected {
        let is_meant = |row: &&ComparisonRow| {
            (&row.system, &row.store, &row.metric) == (&expectation.format, &expectation.store, &expectation.metric)
        };
        let Some(ratio) = rows.iter().find(is_meant).and_then(|row| row.ratio) else { continue };
        if !(expectation.ratio_min..=expectation.ratio_max).contains(&ratio) {
            output::print(&format!(
                "{} on {}, {}: the ratio {ratio:.2} is outside the expected {} to {} ({})",
                expectation.format,
                expectation.store,
                expectation.metric,
                expectation.ratio_min,
                expectation.ratio_max,
                expectation.why
            ))?;
        }
    }
    Ok(())
}

/// Says what the run took, and how much of it was the harness' own.
fn tell_usage(cells: &[Cell], statuses: &BTreeMap<String, CellStatus>) -> Result<()> {
    output::print("")?;
    for cell in cells {
        let Some(status) = statuses.get(&cell.plan.id) else { continue };
        let Some(usage) = &status.usage else { continue };
        let verdict = if status.is_verified() { "verified" } else { status.state.as_str() };
        let harness_s = usage.clock_cpu_s + usage.store_cpu_s;
        output::print(&format!(
            "{:<43} {verdict}, {:>6.1} s real for {:>8.1} s emulated; CPU {:>7.1} s library, {:>5.1} s harness ({:.0} %); {:>5.0} MiB",
            cell.plan.id,
            usage.real_s,
            usage.process_s,
            usage.cpu_s - harness_s,
            harness_s,
            100.0 * harness_s / usage.cpu_s.max(f64::MIN_POSITIVE),
            usage.peak_memory_bytes as f64 / f64::from(1 << 20),
        ))?;
    }
    Ok(())
}
