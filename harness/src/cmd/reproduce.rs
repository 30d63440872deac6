//! `lakemark reproduce`: the cells of a published study, and its figures beside the reproduced ones.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use lakemark_results::compare::{self, ComparisonRow, Measured};
use lakemark_results::concurrency;
use lakemark_results::loads::Shown;
use lakemark_results::manifest::CellStatus;
use lakemark_results::published::Study;
use lakemark_results::table::Table;
use lakemark_scenarios::definition::{Definition, Expected};

use super::tables::{self, Named, Summarized};
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
    let read = tables::read(&folder, &statuses)?;
    let rows = print(&read, &study, options)?;
    if run::is_for_people(options.how.format) {
        // Of fewer appends other ratios are to be expected.
        if !options.quick && options.appends.is_none() {
            for departure in departures(&rows, &definition.expected) {
                output::print(&departure)?;
            }
        }
        tables::print_laws(&read)?;
        tell_usage(&cells, &statuses)?;
        output::print(&format!("\nRecords: {}", folder.path().display()))?;
    }
    Ok(Ended::of(cells.iter().map(|cell| statuses.get(&cell.plan.id))))
}

fn planned(options: &ReproduceOptions) -> Result<(Definition, Study, Vec<Cell>)> {
    let mut definition = Definition::builtin(&options.study)
        .map_err(|error| anyhow!("{error}; {} is simulated", simulate::endive::STUDY))?;
    let study = Study::load(definition.study.as_deref().unwrap_or(&definition.name))?;
    if options.quick {
        definition.make_quick();
    }
    if let Some(scenario) = &options.scenario {
        let known: Vec<String> = definition.scenarios().map(str::to_owned).collect();
        definition.keep_scenario(scenario);
        ensure!(!definition.grid.is_empty(), "--scenario {scenario:?}: {} has {}", definition.name, known.join(", "));
    }
    let settings = plan::settings(&options.settings)?;
    for grid in &mut definition.grid {
        keep("--formats", &options.formats, &mut grid.formats)?;
        keep("--stores", &options.stores, &mut grid.stores)?;
        grid.forget_strangers();
        grid.catalogs.extend(options.catalog.clone());
        if let Some(appends) = options.appends.as_ref().filter(|_| run::has_parameter(grid, "appends")) {
            grid.parameters.insert("appends".to_owned(), appends.as_str().into());
            // Chosen for the definition's own number of appends, they would miss the last.
            grid.parameters.retain(|name, _| !["load-at", "sample-at"].contains(&name.as_str()));
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

/// Prints the comparison, the loads and the projection; gives the rows of the first.
fn print(cells: &[Summarized<'_>], study: &Study, options: &ReproduceOptions) -> Result<Vec<ComparisonRow>> {
    let measured: Vec<Measured<'_>> = cells.iter().map(Summarized::measured).collect();
    let mut rows = compare::rows(study, &measured);
    rows.extend(concurrency::compare::concurrent_writers(
        study,
        &cells.iter().filter_map(Summarized::with_writers).collect::<Vec<_>>(),
    ));
    let format = options.how.format;
    let comparison = Named::new("comparison", "", Table::of(&rows));
    tables::print(
        &[comparison, tables::loads(cells, format, Shown::Last), tables::projection(cells, Some(study))],
        format,
    )?;
    Ok(rows)
}

/// Where a ratio is not as the definition expects, one line each.
fn departures(rows: &[ComparisonRow], expected: &[Expected]) -> Vec<String> {
    let departure = |expectation: &Expected| {
        let Expected { format, store, metric, ratio_min, ratio_max, why, writers } = expectation;
        let is_meant = |row: &&ComparisonRow| {
            (&row.system, &row.store, &row.metric) == (format, store, metric)
                && (writers.is_none() || *writers == row.writers)
        };
        let ratio = rows.iter().find(is_meant)?.ratio?;
        (!(*ratio_min..=*ratio_max).contains(&ratio)).then(|| {
            format!("{format} on {store}, {metric}: the ratio {ratio:.2} is outside the expected {ratio_min} to {ratio_max} ({why})")
        })
    };
    expected.iter().filter_map(departure).collect()
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

#[cfg(test)]
mod tests {
    use lakemark_results::table::Row;

    use super::*;

    fn row(metric: &str, ratio: Option<f64>) -> ComparisonRow {
        ComparisonRow {
            cell: "lance-s3-metadata-load".to_owned(),
            system: "lance".to_owned(),
            catalog: "none".to_owned(),
            store: "s3".to_owned(),
            writers: None,
            metric: metric.to_owned(),
            unit: "ms".to_owned(),
            published: Some(199.0),
            published_at_least: false,
            reproduced: None,
            half_width: None,
            ratio,
            wait_ms: None,
            catalog_ms: None,
            cpu_ms: None,
            verified: true,
            emulated: true,
            notes: Vec::new(),
        }
    }

    fn expected(metric: &str) -> Expected {
        Expected {
            format: "lance".to_owned(),
            store: "s3".to_owned(),
            metric: metric.to_owned(),
            writers: None,
            ratio_min: 0.8,
            ratio_max: 1.2,
            why: "tests".to_owned(),
        }
    }

    #[test]
    fn ratios_of_commits_and_loads_are_held_against_what_is_expected() {
        let rows = [row("commit_latency_mean", Some(1.0)), row("load_latency", Some(1.5))];
        assert_eq!(rows[0].fields().len(), ComparisonRow::COLUMNS.len());
        let expectations = [expected("commit_latency_mean"), expected("load_latency"), expected("active_metadata")];
        let departures = departures(&rows, &expectations);
        assert_eq!(departures.len(), 1);
        assert!(
            departures[0].contains("load_latency: the ratio 1.50 is outside the expected 0.8 to 1.2"),
            "{departures:?}"
        );
        assert!(super::departures(&[row("load_latency", None)], &expectations).is_empty());
    }

    #[test]
    fn expectations_of_builtin_definitions_are_of_figures_that_their_studies_have() {
        for name in lakemark_scenarios::definition::builtin_names() {
            let definition = Definition::builtin(name).expect("a definition");
            let Some(study) = &definition.study else { continue };
            let study = Study::load(study).expect("a study");
            for expected in &definition.expected {
                let is_meant = |figure: &lakemark_results::published::PublishedFigure| {
                    (&figure.system, &figure.store, &figure.metric)
                        == (&expected.format, &expected.store, &expected.metric)
                };
                assert!(study.figures.iter().any(is_meant), "{name}: {expected:?}");
            }
        }
    }
}
