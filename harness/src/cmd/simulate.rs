//! `lakemark simulate`: commit contention over a grid of cells, kept as Parquet, merged and drawn.

pub(crate) mod endive;
mod grid;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail, ensure};
use lakemark_results::table::{self, Column, Field, OutputFormat, Table};
use lakemark_sweep::estimate::{self, RUNS_MAX, SECONDS_MAX};
use lakemark_sweep::file::FileReader;
use lakemark_sweep::plot::{self, Plot};
use lakemark_sweep::row::{DEFINITIONS, SETTINGS, Scalar};
use lakemark_sweep::run::How;
use lakemark_sweep::summary::{self, CellMeans};
use lakemark_sweep::{Grid, Manifest, Shard, SweepFolder};

use super::{Ended, run};
use crate::cli::{SimulateCommand, SimulateOptions};
use crate::progress::SweepProgress;
use crate::{driver, machine, output, plan};

/// Cells that a table for readers shows.
const SHOWN_MAX: usize = 100;

/// Cells that a page shows at most.
const DRAWN_MAX: usize = 50_000;

/// Runs up to which no probe is worth its time.
const UNPROBED_MAX: u64 = 32;

/// Runs the command.
///
/// # Errors
/// If what was asked for cannot be planned, run or kept.
pub(crate) fn run(options: &SimulateOptions) -> Result<Ended> {
    match &options.command {
        Some(SimulateCommand::Merge { out, parts }) => merge(out, parts),
        Some(SimulateCommand::Plot { rows, out, definition, y }) => {
            draw_rows(rows, out.as_deref(), definition.as_deref(), y.as_deref())
        }
        None => sweep(options),
    }
}

fn sweep(options: &SimulateOptions) -> Result<Ended> {
    let (grid, folder) = plan::usage(planned(options))?;
    let shard = options.shard.unwrap_or(Shard::WHOLE);
    let threads = threads(options.threads);
    if options.dry_run {
        return dry_run(&grid, shard, options.format);
    }
    plan::usage(announce(&grid, shard, threads, options.yes))?;
    let folder = match folder {
        Some(folder) => folder,
        None => create(&grid, &options.out, options.name.as_deref(), shard)?,
    };
    let Some(rows) = complete(&folder, &grid, threads, options.transactions)? else {
        let path = folder.path().display();
        output::complain(&format!("stopped; rows are kept: go on with lakemark simulate {path} --resume"));
        return Ok(Ended::Interrupted);
    };
    let cells = summary::summarize(std::slice::from_ref(&rows), &summary_metrics())?;
    print_summary(&cells, options.format)?;
    if run::is_for_people(options.format) {
        output::print(&format!("\nRows: {}", rows.display()))?;
        if options.transactions {
            output::print(&format!("Transactions: {}", folder.transactions().display()))?;
        }
    }
    Ok(Ended::Verified)
}

/// The grid, and the folder to go on with.
fn planned(options: &SimulateOptions) -> Result<(Grid, Option<SweepFolder>)> {
    let (spec, origin) = grid::spec(options)?;
    let named = match (&options.name, options.grid.as_deref()) {
        _ if !options.resume => None,
        (_, Some(folder)) if Path::new(folder).join("sweep.toml").exists() => Some(PathBuf::from(folder)),
        (Some(name), _) => Some(options.out.join(name)),
        (None, _) => bail!("--resume needs the folder of a sweep, or --name"),
    };
    let grid = Grid::new(spec, &origin)?;
    let Some(path) = named.filter(|path| path.join("sweep.toml").exists()) else { return Ok((grid, None)) };
    let folder = SweepFolder::open(&path)?;
    ensure!(folder.manifest().grid == *grid.spec(), "{} is a sweep of another grid", path.display());
    let shard = options.shard.unwrap_or(folder.manifest().shard);
    ensure!(
        folder.manifest().shard == shard,
        "--shard {}/{}: {} is another shard",
        shard.index,
        shard.of,
        path.display()
    );
    ensure!(
        folder.manifest().tool_version == env!("CARGO_PKG_VERSION"),
        "{} was begun by version {} of this tool: rows of two versions do not belong together",
        path.display(),
        folder.manifest().tool_version
    );
    Ok((grid, Some(folder)))
}

/// Threads that were asked for, or one a CPU.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    asked.map_or(machine::cpus() as usize, usize::from)
}

/// Says what is about to run, and refuses what is large and not confirmed.
pub(crate) fn announce(grid: &Grid, shard: Shard, threads: usize, is_confirmed: bool) -> Result<()> {
    let runs = lakemark_sweep::run::shard_runs(grid, shard);
    // What is refused for its number need not be measured.
    let is_measured = runs > UNPROBED_MAX && (is_confirmed || runs <= RUNS_MAX);
    let seconds = estimate::seconds(grid, runs, threads, is_measured)?;
    let count = |count: u64| table::group_digits(&count.to_string());
    let part = if shard == Shard::WHOLE { String::new() } else { format!(", shard {}/{}", shard.index, shard.of) };
    let size = format!(
        "{} cells × {} seeds{part}: {} runs, about {} on {threads} threads",
        count(grid.cells()),
        count(grid.spec().seeds.into()),
        count(runs),
        estimate::spoken(seconds)
    );
    if !is_confirmed && (runs > RUNS_MAX || seconds > SECONDS_MAX) {
        bail!(
            "{size}; more than {} runs or {} needs --yes (or fewer values, or --shard I/N)",
            count(RUNS_MAX),
            estimate::spoken(SECONDS_MAX)
        );
    }
    output::tell(&size);
    Ok(())
}

/// The folder of a new sweep.
pub(crate) fn create(grid: &Grid, out: &Path, name: Option<&str>, shard: Shard) -> Result<SweepFolder> {
    let name = name.map_or_else(|| machine::run_name(&grid.spec().name), str::to_owned);
    let manifest = Manifest {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        grid: grid.spec().clone(),
        shard,
    };
    Ok(SweepFolder::create(&out.join(name), manifest)?)
}

/// Runs what a sweep still lacks, and puts its rows into one file, which it gives; none if it was stopped.
pub(crate) fn complete(
    folder: &SweepFolder,
    grid: &Grid,
    threads: usize,
    transactions: bool,
) -> Result<Option<PathBuf>> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let done: HashSet<(u64, u64)> = folder.done()?;
    let runs = lakemark_sweep::run::shard_runs(grid, folder.manifest().shard);
    let left = runs.saturating_sub(done.len() as u64);
    if !done.is_empty() {
        output::tell(&format!("{} runs are done, {left} are left", done.len()));
    }
    stop_on_signal(&STOP)?;
    let progress = SweepProgress::new(left);
    let how = How { threads, stop: &STOP, transactions };
    let kept = lakemark_sweep::run::run(folder, grid, &done, how, &mut || progress.run())?;
    drop(progress);
    if kept < left {
        ensure!(STOP.load(Ordering::Relaxed), "{kept} of {left} runs ended: {} is not whole", folder.path().display());
        return Ok(None);
    }
    if left > 0 || !folder.rows().exists() {
        folder.finish()?;
    }
    Ok(Some(folder.rows()))
}

/// Sets a flag at the first signal; cells that run end first. At the second, ends the process.
fn stop_on_signal(stop: &'static AtomicBool) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    std::thread::spawn(move || {
        for is_second in [false, true] {
            if runtime.block_on(driver::until_signal()).is_err() {
                return;
            }
            if is_second {
                std::process::exit(130);
            }
            stop.store(true, Ordering::Relaxed);
        }
    });
    Ok(())
}

fn dry_run(grid: &Grid, shard: Shard, format: OutputFormat) -> Result<Ended> {
    let mut table = Table::new(&[Column::text("setting", "setting"), Column::number("values", "values")]);
    for (path, values) in grid.axes() {
        table.push(vec![Field::Text(path), Field::Count(values)]);
    }
    for (name, count) in [
        ("cells", grid.cells()),
        ("seeds", grid.spec().seeds.into()),
        ("runs", lakemark_sweep::run::shard_runs(grid, shard)),
    ] {
        table.push(vec![Field::Text(name.to_owned()), Field::Count(count)]);
    }
    output::print_table(&table, format)?;
    Ok(Ended::Verified)
}

fn merge(out: &Path, parts: &[String]) -> Result<Ended> {
    let files = plan::usage(lakemark_sweep::row_files(parts).map_err(Into::into))?;
    plan::usage(if out.extension().is_some_and(|ending| ending == "parquet") {
        Ok(())
    } else {
        Err(anyhow!("{}: the file to write ends in .parquet", out.display()))
    })?;
    ensure!(!files.iter().any(|file| file == out), "{} is one of the files to merge", out.display());
    let merged = lakemark_sweep::merge::merge(&files, out)?;
    let spec = FileReader::open(out, Some(&|_| false))?.grid().clone();
    let runs = Grid::new(spec, &out.display().to_string())?.runs();
    let count = |count: u64| table::group_digits(&count.to_string());
    output::tell(&format!("{} rows of {} files: {}", count(merged.rows), files.len(), out.display()));
    if merged.repeated > 0 {
        output::tell(&format!("{} rows were in more than one file", count(merged.repeated)));
    }
    if merged.rows < runs {
        output::complain(&format!("{} of the grid's {} runs are missing", count(runs - merged.rows), count(runs)));
        return Ok(Ended::Failed);
    }
    Ok(Ended::Verified)
}

fn draw_rows(rows: &[String], out: Option<&Path>, definition: Option<&str>, y: Option<&str>) -> Result<Ended> {
    let files = plan::usage(lakemark_sweep::row_files(rows).map_err(Into::into))?;
    if let Some(name) = definition {
        let known = DEFINITIONS.contains(&name);
        plan::usage(if known {
            Ok(())
        } else {
            Err(anyhow!("--definition {name:?}: it is {}", DEFINITIONS.join(", ")))
        })?;
    }
    if let Some(name) = y {
        let known = SETTINGS.contains(&name);
        plan::usage(if known { Ok(()) } else { Err(anyhow!("--y {name:?}: it is {}", SETTINGS.join(", "))) })?;
    }
    let beside = || files[0].with_file_name("plots.html");
    let out = out.map_or_else(beside, Path::to_path_buf);
    draw(&files, &out, definition, y)?;
    output::tell(&format!("Plots: {}", out.display()));
    Ok(Ended::Verified)
}

/// Draws the rows of files into one.
pub(crate) fn draw(files: &[PathBuf], out: &Path, definition: Option<&str>, y: Option<&str>) -> Result<()> {
    let first = files.first().context("there are no rows to draw")?;
    let grid = FileReader::open(first, Some(&|_| false))?.grid().clone();
    let definition = match definition {
        Some(definition) => definition,
        None => plot::definition_for(&summary::summarize(files, &[])?),
    };
    let cells = summary::summarize(files, &plot::metrics(definition))?;
    ensure!(cells.len() <= DRAWN_MAX, "{} cells are more than a page can show ({DRAWN_MAX})", cells.len());
    let text = grid.to_toml();
    let page = plot::page(&cells, &Plot { title: &grid.name, definition, y, grid: &text });
    std::fs::write(out, page).with_context(|| format!("cannot write {}", out.display()))
}

/// Metrics that a summary shows, of either definition.
fn summary_metrics() -> Vec<String> {
    SUMMARY.iter().flat_map(|(_, _, drain, table)| [*drain, *table].map(str::to_owned)).collect()
}

/// Columns of a summary: name, header, and the metric behind them by the drain and by the table definition.
const SUMMARY: [(&str, &str, &str, &str); 8] = [
    ("success_rate", "success", "drain_all_success_rate", "table_all_success_rate"),
    ("throughput_per_s", "commits/s", "drain_all_throughput_per_s", "table_all_throughput_per_s"),
    ("latency_mean_ms", "mean ms", "drain_all_latency_mean_ms", "table_all_latency_mean_ms"),
    ("latency_p50_ms", "p50 ms", "drain_all_latency_p50_ms", "table_all_latency_p50_ms"),
    ("latency_p95_ms", "p95 ms", "drain_all_latency_p95_ms", "table_all_latency_p95_ms"),
    ("latency_p99_ms", "p99 ms", "drain_all_latency_p99_ms", "table_all_latency_p99_ms"),
    ("mean_retries", "retries", "drain_all_mean_retries", "table_all_mean_retries"),
    ("failed_attempt_rate", "failed attempts", "failed_attempt_rate", "failed_attempt_rate"),
];

/// One row a cell: what varies, and its means over seeds.
fn print_summary(cells: &[CellMeans], format: OutputFormat) -> Result<()> {
    let varying = summary::varying(cells);
    let mut columns = vec![Column::number("cell", "cell")];
    columns.extend(varying.iter().map(|name| match cells[0].settings.get(name) {
        Some(Scalar::Text(_) | Scalar::Flag(_)) => Column::text(name, name),
        _ => Column::number(name, name),
    }));
    columns.extend(SUMMARY.iter().map(|(name, header, ..)| Column::number(name, header)));
    let mut table = Table::new(&columns);
    let is_for_people = run::is_for_people(format);
    let shown = if is_for_people { SHOWN_MAX.min(cells.len()) } else { cells.len() };
    for cell in &cells[..shown] {
        let is_drained = cell.settings.get("drain") == Some(&Scalar::Flag(Some(true)));
        let mut fields = vec![Field::Count(cell.settings.key().0)];
        fields.extend(varying.iter().map(|name| match cell.settings.get(name) {
            Some(Scalar::Count(Some(count))) => Field::Count(*count),
            Some(Scalar::Number(number)) => Field::number(*number),
            Some(scalar) if !scalar.show().is_empty() => Field::Text(scalar.show()),
            _ => Field::Missing,
        }));
        fields.extend(
            SUMMARY.iter().map(|(_, _, drain, table)| Field::number(cell.mean(if is_drained { drain } else { table }))),
        );
        table.push(fields);
    }
    output::print_table(&table, format)?;
    if shown < cells.len() {
        output::print(&format!("… and {} cells more: --format csv shows them all", cells.len() - shown))?;
    }
    Ok(())
}
