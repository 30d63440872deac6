//! `lakemark run`: a grid of cells, from options or from a definition.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use lakemark_results::loads::Shown;
use lakemark_results::manifest::{CellStatus, Manifest, SCHEMA};
use lakemark_results::published::Study;
use lakemark_results::run::RunFolder;
use lakemark_results::table::{Column, Field, OutputFormat, Table};
use lakemark_scenarios::definition::{Definition, Grid};

use super::Ended;
use super::tables::{self, Named, Summarized};
use crate::cli::{HowOptions, RunOptions};
use crate::plan::{self, Cell, How};
use crate::{driver, machine, output, registry};

/// Runs the command.
///
/// # Errors
/// If what was asked for cannot be planned, or the run cannot be kept.
pub(crate) fn run(options: &RunOptions) -> Result<Ended> {
    let (name, study, cells) = plan::usage(planned(options))?;
    let Some((folder, statuses)) = start(&name, &cells, &options.how)? else { return Ok(Ended::Verified) };
    let study = study.as_deref().map(Study::load).transpose()?;
    let read = print(&folder, &statuses, study.as_ref(), options.how.format)?;
    if is_for_people(options.how.format) {
        tables::print_laws(&read)?;
    }
    Ok(Ended::of(cells.iter().map(|cell| statuses.get(&cell.plan.id))))
}

/// Prints what the cells of a run come to, beside a study if they were defined with one; gives the cells.
///
/// # Errors
/// If records cannot be read back, or standard output cannot be written.
pub(crate) fn print<'a>(
    folder: &'a RunFolder,
    statuses: &'a BTreeMap<String, CellStatus>,
    study: Option<&Study>,
    format: OutputFormat,
) -> Result<Vec<Summarized<'a>>> {
    let cells = tables::read(folder, statuses)?;
    let mut printed = vec![
        Named::new("cells", "", summary_table(&cells)),
        tables::writers(&cells),
        tables::loads(&cells, format, Shown::PowersOfTen),
    ];
    if study.is_some() || !is_for_people(format) {
        printed.push(tables::projection(&cells, study));
    }
    tables::print(&printed, format)?;
    Ok(cells)
}

/// Name of the run, the study that its definition names, and the cells.
fn planned(options: &RunOptions) -> Result<(String, Option<String>, Vec<Cell>)> {
    let definition = options.definition.as_deref().map(definition).transpose()?;
    let (cpu, seed) = definition.as_ref().map_or((None, None), |found| (found.cpu.as_deref(), found.seed));
    let how = How::new(&options.how, cpu, seed, options.repeat)?;
    let (name, study, mut grids) = match definition {
        Some(definition) => (definition.name, definition.study, definition.grid),
        None => (options.scenario.clone(), None, vec![grid(options)]),
    };
    let settings = plan::settings(&options.settings)?;
    for grid in &mut grids {
        for (flag, given, target) in
            [("formats", &options.formats, &mut grid.formats), ("stores", &options.stores, &mut grid.stores)]
        {
            if !given.is_empty() {
                *target = given.clone();
            }
            anyhow::ensure!(target.iter().all(|name| !name.is_empty()), "--{flag}: a name is empty");
        }
        grid.forget_strangers();
        if !options.catalogs.is_empty() {
            grid.catalogs = options.catalogs.clone();
        }
        for parameter in &options.parameters {
            let (name, value) = plan::pair(parameter, "--param", "NAME=VALUE")?;
            grid.parameters.insert(name, value.into());
        }
        if let Some(appends) = options.appends.as_ref().filter(|_| has_parameter(grid, "appends")) {
            grid.parameters.insert("appends".to_owned(), appends.as_str().into());
        }
        for (format, given) in &settings {
            grid.settings.entry(format.clone()).or_default().extend(given.clone());
        }
    }
    Ok((name, study, plan::cells(&grids, &how)?))
}

/// Whether the scenario of a grid has a parameter. One that is not known is refused later, with its parameters.
pub(crate) fn has_parameter(grid: &Grid, name: &str) -> bool {
    lakemark_scenarios::find(&grid.scenario)
        .is_none_or(|scenario| scenario.parameters.iter().any(|parameter| parameter.name == name))
}

fn grid(options: &RunOptions) -> Grid {
    let all = registry::infos().iter().map(|info| info.name.to_owned()).collect();
    Grid {
        scenario: options.scenario.clone(),
        formats: if options.formats.is_empty() { all } else { options.formats.clone() },
        stores: if options.stores.is_empty() { vec!["s3".to_owned()] } else { options.stores.clone() },
        ..Grid::default()
    }
}

fn definition(name: &str) -> Result<Definition> {
    let is_file = Path::new(name).extension().is_some_and(|extension| extension == "toml");
    Ok(if is_file { Definition::read(Path::new(name))? } else { Definition::builtin(name)? })
}

/// Runs cells into a new run folder, or says what would run; none in the latter case.
///
/// # Errors
/// If the folder cannot be made or written.
pub(crate) fn start(
    name: &str,
    cells: &[Cell],
    options: &HowOptions,
) -> Result<Option<(RunFolder, BTreeMap<String, CellStatus>)>> {
    if options.dry_run {
        output::print_table(&plan_table(cells), options.format)?;
        return Ok(None);
    }
    let folder = create(options, name, cells)?;
    output::tell(&format!("{} cells into {}", cells.len(), folder.path().display()));
    let statuses = driver::run(&folder, cells, options.jobs)?;
    Ok(Some((folder, statuses)))
}

/// Makes a run folder for cells.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn create(options: &HowOptions, name: &str, cells: &[Cell]) -> Result<RunFolder> {
    let run = options.name.clone().unwrap_or_else(|| {
        let run = machine::run_name(name);
        // Two runs may begin in one second.
        let others = (2..).map(|number| format!("{run}-{number}"));
        std::iter::once(run.clone()).chain(others).find(|run| !options.out.join(run).exists()).unwrap_or(run)
    });
    let folder = RunFolder::create(&options.out, manifest(run, cells)?)?;
    keep_profiles(&folder, cells)?;
    Ok(folder)
}

fn manifest(run: String, cells: &[Cell]) -> Result<Manifest> {
    let libraries = cells.iter().map(|cell| {
        let info = registry::info(&cell.plan.format)?;
        let (library, version) = info.library.split_once(' ').unwrap_or((&info.library, "unknown"));
        Ok((library.to_owned(), version.to_owned()))
    });
    Ok(Manifest {
        schema: SCHEMA,
        run,
        created: machine::now(),
        command: std::env::args().map(|argument| without_password(&argument)).collect(),
        seed: cells.first().map_or(plan::SEED, |cell| cell.plan.seed),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: machine::commit(),
        libraries: libraries.collect::<Result<_>>()?,
        cpu_model: machine::cpu_model(),
        cpus: machine::cpus(),
        memory_bytes: machine::memory_bytes(),
        kernel: machine::kernel(),
        os: std::env::consts::OS.to_owned(),
        profiles: cells.iter().map(|cell| (cell.profile.name.clone(), cell.profile.hash())).collect(),
        cells: cells.iter().map(|cell| cell.plan.clone()).collect(),
    })
}

/// An argument as a file may hold it: of a URL, only what is before and behind the user's name and password.
fn without_password(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else { return argument.to_owned() };
    // The password may itself hold an @ or a slash: everything up to the last @ goes; so does a query.
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split(['?', '#']).next().unwrap_or_default();
    if host.len() == rest.len() { argument.to_owned() } else { format!("{scheme}://***@{host}") }
}

/// Keeps the profiles, so that `resume` runs on the same ones whatever becomes of their files.
fn keep_profiles(folder: &RunFolder, cells: &[Cell]) -> Result<()> {
    let profiles = folder.path().join("profiles");
    std::fs::create_dir_all(&profiles).with_context(|| format!("cannot create {}", profiles.display()))?;
    for cell in cells {
        let path = profiles.join(format!("{}.json", cell.profile.name));
        let text = serde_json::to_string_pretty(&cell.profile.to_json())?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// What would run.
pub(crate) fn plan_table(cells: &[Cell]) -> Table {
    let columns = ["cell", "format", "catalog", "store", "scenario", "parameters", "settings"]
        .map(|name| Column::text(name, name));
    let mut table = Table::new(&columns);
    for Cell { plan, .. } in cells {
        let parameters: Vec<String> = plan.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let settings: Vec<String> = plan.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let fields = [
            &plan.id,
            &plan.format,
            &plan.catalog,
            &plan.store,
            &plan.scenario,
            &parameters.join(" "),
            &settings.join(" "),
        ];
        table.push(fields.map(|text| Field::text(Some(text.as_str()))).into());
    }
    table
}

/// One row a cell with a single writer: what it measured and what it used.
fn summary_table(cells: &[Summarized<'_>]) -> Table {
    let columns = [
        Column::text("cell", "cell"),
        Column::text("store", "store"),
        Column::text("verdict", "verdict"),
        Column::number("appends", "appends"),
        Column::number("failed_appends", "failed"),
        Column::number("failed_attempts_percent", "failed attempts %"),
        Column::number("mean_ms", "mean ms"),
        Column::number("p99_ms", "p99 ms"),
        Column::number("last100_ms", "last 100 ms"),
        Column::number("wait_ms", "wait ms"),
        Column::number("catalog_ms", "catalog ms"),
        Column::number("cpu_ms", "CPU ms"),
        Column::number("active_mib", "active MiB"),
        Column::number("real_s", "real s"),
        Column::number("memory_mib", "memory MiB"),
    ];
    let mut table = Table::new(&columns);
    for Summarized { plan, status, summary, .. } in cells.iter().filter(|cell| cell.writers.is_none()) {
        // With computing, as a reader who times a commit has it.
        let latency = tables::latency(plan, status, summary);
        let split = summary.split.as_ref();
        let active_bytes = summary.metadata.last().map(|sample| sample.active.bytes as f64);
        let mut fields = tables::identity(plan, status);
        fields.extend([
            Field::Count(summary.appends_ok.0),
            Field::Count(summary.appends_failed.0),
            Field::number(summary.failed_attempt_rate.map(|rate| rate * 100.0)),
            Field::number(latency.map(|latency| latency.mean_ms)),
            Field::number(latency.map(|latency| latency.p99_ms)),
            Field::number(latency.and_then(|latency| latency.last100_mean_ms)),
            Field::number(split.map(|split| split.wait_ms)),
            Field::number(split.map(|split| split.catalog_ms)),
            Field::number(split.map(|split| split.cpu_ms)),
            Field::number(active_bytes.map(tables::mib)),
            Field::number(status.usage.as_ref().map(|usage| usage.real_s)),
            Field::number(status.usage.as_ref().map(|usage| tables::mib(usage.peak_memory_bytes as f64))),
        ]);
        table.push(fields);
    }
    table
}

/// Whether a form of output is for people, who want to be told more than the data.
pub(crate) fn is_for_people(format: OutputFormat) -> bool {
    matches!(format, OutputFormat::Text)
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_on_the_command_line_is_not_kept() {
        assert_eq!(without_password("postgres://me:pass@host/db"), "postgres://***@host/db");
        assert_eq!(
            without_password("--catalog=postgres://me:p@ss/w@host/db?sslpassword=x"),
            "--catalog=postgres://***@host/db"
        );
        assert_eq!(without_password("postgres://host/db"), "postgres://host/db");
        assert_eq!(without_password("--appends"), "--appends");
    }
}
