//! `lakemark reproduce endive-2026`: the study's grid, its figures beside the simulated ones, knees and a reference.

use anyhow::{Result, bail};
use lakemark_results::table::{Column, Field, Row, Table};
use lakemark_sweep::endive::{self, Agreement, FigureRow, Reproduced};
use lakemark_sweep::{Grid, GridSpec, Shard, summary};

use super::{Ended, announce, complete, create, draw, threads};
use crate::cli::ReproduceOptions;
use crate::cmd::run;
use crate::{output, plan};

/// The study.
pub(crate) const STUDY: &str = "endive-2026";

/// Runs the command.
///
/// # Errors
/// If an option does not apply to a simulated study, or the sweep cannot be run or kept.
pub(crate) fn run(options: &ReproduceOptions) -> Result<Ended> {
    plan::usage(refuse_others(options))?;
    let mut spec = GridSpec { thinned: options.quick, ..GridSpec::study(STUDY) };
    spec.seeds = options.seeds.unwrap_or(if options.quick { endive::QUICK_SEEDS } else { spec.seeds });
    let seeds = spec.seeds;
    let grid = Grid::new(spec, STUDY)?;
    let threads = threads(options.how.jobs);
    if options.how.dry_run {
        return super::dry_run(&grid, Shard::WHOLE, options.how.format);
    }
    announce(&grid, Shard::WHOLE, threads, true)?;
    let folder = create(&grid, &options.how.out, options.how.name.as_deref(), Shard::WHOLE)?;
    let Some(rows) = complete(&folder, &grid, threads, false)? else {
        output::complain(&format!("stopped; rows are kept in {}", folder.path().display()));
        return Ok(Ended::Interrupted);
    };
    let cells = summary::summarize(std::slice::from_ref(&rows), &endive::metrics())?;
    let reproduced = Reproduced::new(&cells);
    let figures = reproduced.figures()?;
    let agreements = reproduced.agreements()?;
    output::print_table(&Table::of(&figures.iter().map(Printed).collect::<Vec<_>>()), options.how.format)?;
    let plots = folder.path().join("plots.html");
    draw(std::slice::from_ref(&rows), &plots, Some("heatmap"), None)?;
    if run::is_for_people(options.how.format) {
        print_knees(&figures)?;
        output::print(
            "\nAll cells against a reference, an independent program's 5 seeds (simulator/reference/grid.csv):",
        )?;
        output::print_table(&Table::of(&agreements.iter().map(Agreed).collect::<Vec<_>>()), options.how.format)?;
        output::print(&format!(
            "Chance alone puts about {:.1} % of differences beyond 3 standard errors.",
            100.0 * endive::chance_share(seeds)
        ))?;
        output::print(&format!("\nRows: {}\nPlots: {}", rows.display(), plots.display()))?;
    }
    Ok(Ended::Verified)
}

/// Options of other studies mean nothing here.
fn refuse_others(options: &ReproduceOptions) -> Result<()> {
    let ReproduceOptions { scenario, formats, stores, catalog, appends, settings, how, .. } = options;
    let given = [
        ("--scenario", scenario.is_some()),
        ("--formats", !formats.is_empty()),
        ("--stores", !stores.is_empty()),
        ("--catalog", catalog.is_some()),
        ("--appends", appends.is_some()),
        ("--set", !settings.is_empty()),
        ("--seed", how.seed.is_some()),
        ("--cpu", how.cpu.is_some()),
        ("--worker", !how.workers.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!(
            "{option} does not apply to {STUDY}, which is simulated; allowed: --quick, --seeds, --jobs, --out, --name, --dry-run, --format"
        ),
        None => Ok(()),
    }
}

/// Says how many knees are at the load that was published.
fn print_knees(figures: &[FigureRow]) -> Result<()> {
    let knees: Vec<&FigureRow> = figures.iter().filter(|figure| figure.is_knee_equal.is_some()).collect();
    let equal = knees.iter().filter(|figure| figure.is_knee_equal == Some(true)).count();
    output::print(&format!("\nKnees: {equal} of {} at the published load.", knees.len()))?;
    for figure in knees.iter().filter(|figure| figure.is_knee_equal == Some(false)) {
        let ours = figure.knee_scale_ms.map_or_else(|| "at no load".to_owned(), |scale_ms| format!("at {scale_ms} ms"));
        output::print(&format!("  {} {}: ours is {ours}", figure.store, figure.parameter))?;
    }
    Ok(())
}

/// A figure as a row of the table.
struct Printed<'a>(&'a FigureRow);

impl Row for Printed<'_> {
    const COLUMNS: &'static [Column] = &[
        Column::text("experiment", "experiment"),
        Column::text("store", "store"),
        Column::text("parameter", "parameter"),
        Column::text("metric", "metric"),
        Column::text("unit", "unit"),
        Column::number("published", "published"),
        Column::number("reproduced", "reproduced"),
        Column::number("ratio", "ratio"),
        Column::text("is_knee_equal", "knee"),
    ];

    fn fields(&self) -> Vec<Field> {
        let figure = self.0;
        vec![
            Field::text(Some(&figure.experiment)),
            Field::text(Some(&figure.store)),
            Field::text(Some(&figure.parameter)),
            Field::text(Some(&figure.metric)),
            Field::text(Some(&figure.unit)),
            Field::Exact(figure.published),
            Field::number(figure.reproduced),
            figure.ratio.map_or(Field::Missing, Field::Ratio),
            figure.is_knee_equal.map_or(Field::Missing, |is_equal| Field::Flag(is_equal, ["equal", "differs"])),
        ]
    }
}

/// An agreement as a row of a table.
struct Agreed<'a>(&'a Agreement);

impl Row for Agreed<'_> {
    const COLUMNS: &'static [Column] = &[
        Column::text("metric", "metric"),
        Column::number("cells", "cells"),
        Column::number("agreeing", "within 3 standard errors"),
        Column::number("agreeing_percent", "%"),
        Column::number("worst_ratio", "worst ratio"),
    ];

    fn fields(&self) -> Vec<Field> {
        let Agreement { metric, cells, agreeing, worst_ratio } = self.0;
        vec![
            Field::text(Some(metric)),
            Field::Count(*cells),
            Field::Count(*agreeing),
            Field::number((*cells > 0).then(|| 100.0 * *agreeing as f64 / *cells as f64)),
            worst_ratio.map_or(Field::Missing, Field::Ratio),
        ]
    }
}
