//! From what was asked to cells: every combination, resolved and checked before anything runs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use lakemark_core::clock::{Cpu, Mode};
use lakemark_results::manifest::CellPlan;
use lakemark_scenarios::definition::Grid;
use lakemark_scenarios::{ScenarioInfo, parameters};
use lakemark_stores::profile::Profile;
use serde_json::Value;

use crate::cli::HowOptions;
use crate::registry;

/// Seed of a run that names none.
pub(crate) const SEED: u64 = 2026;

/// What was asked for cannot be planned. Ends the command with the status of a usage error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Marks an error as one of usage.
pub(crate) fn usage<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| anyhow!(UsageError(format!("{error:#}"))))
}

/// A cell, with what its worker needs and records must not hold.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// What is recorded of it.
    pub(crate) plan: CellPlan,
    /// Profile of its store.
    pub(crate) profile: Profile,
    /// Its catalog as it was given, a password included. Goes to the worker, never to a file.
    pub(crate) catalog: String,
}

/// How all cells of a run are run.
#[derive(Clone, Debug)]
pub(crate) struct How {
    /// How waiting is done.
    pub(crate) clock: Mode,
    /// How much process time computing takes.
    pub(crate) cpu: Cpu,
    /// Seed of the first repetition.
    pub(crate) seed: u64,
    /// Times that each cell runs.
    pub(crate) repeat: u16,
    /// Workers built elsewhere, by format.
    pub(crate) workers: BTreeMap<String, String>,
}

impl Default for How {
    fn default() -> Self {
        Self { clock: Mode::Skip, cpu: Cpu::Measured, seed: SEED, repeat: 1, workers: BTreeMap::new() }
    }
}

impl How {
    /// From the command line, with what a definition says where the command line is silent.
    ///
    /// # Errors
    /// If a value is not allowed.
    pub(crate) fn new(options: &HowOptions, cpu: Option<&str>, seed: Option<u64>, repeat: u16) -> Result<Self> {
        let cpu = match (options.cpu, cpu) {
            (Some(cpu), _) => cpu,
            (None, Some(text)) => text.parse().map_err(|reason: String| anyhow!(reason))?,
            (None, None) => Cpu::default(),
        };
        let workers =
            options.workers.iter().map(|worker| pair(worker, "--worker", "FORMAT=PATH")).collect::<Result<_>>()?;
        Ok(Self { clock: options.clock, cpu, seed: options.seed.or(seed).unwrap_or(SEED), repeat, workers })
    }
}

/// Splits `NAME=VALUE`.
///
/// # Errors
/// If there is no `=`, or nothing before it.
pub(crate) fn pair(text: &str, flag: &str, form: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!("{flag} {text:?}: the form is {form}"),
    }
}

/// Settings by format from `FORMAT.NAME=VALUE`.
///
/// # Errors
/// If the form is another.
pub(crate) fn settings(given: &[String]) -> Result<BTreeMap<String, BTreeMap<String, Value>>> {
    let mut settings: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for text in given {
        let (name, value) = pair(text, "--set", "FORMAT.NAME=VALUE")?;
        let Some((format, name)) = name.split_once('.') else { bail!("--set {text:?}: the form is FORMAT.NAME=VALUE") };
        settings.entry(format.to_owned()).or_default().insert(name.to_owned(), value.into());
    }
    Ok(settings)
}

/// A profile by its name, or from a file.
///
/// # Errors
/// If there is no such profile, or the file is not one.
pub(crate) fn profile(store: &str) -> Result<Profile> {
    if store.contains("://") {
        bail!(
            "store {store:?}: this version measures emulated stores; name a profile or a profile file ending in .toml"
        );
    }
    if store.ends_with(".toml") {
        return Ok(Profile::read(Path::new(store))?);
    }
    Profile::builtin(store).with_context(|| {
        let known: Vec<&str> = Profile::builtin_names().collect();
        format!("store {store:?} is not known: name a profile ({}) or a profile file ending in .toml", known.join(", "))
    })
}

/// All cells of some grids.
///
/// # Errors
/// If a name is unknown, a value is not allowed, or a combination leaves no cell.
pub(crate) fn cells(grids: &[Grid], how: &How) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for grid in grids {
        add_grid(&mut cells, grid, how)?;
    }
    if let Some(unused) = how.workers.keys().find(|format| cells.iter().all(|cell| cell.plan.format != **format)) {
        bail!("--worker {unused}=…: no cell of this run has the format {unused:?}");
    }
    let mut ids: Vec<&str> = cells.iter().map(|cell| cell.plan.id.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("two cells would be called {}: they differ in nothing but parameters or settings", pair[0]),
        None => Ok(cells),
    }
}

fn add_grid(cells: &mut Vec<Cell>, grid: &Grid, how: &How) -> Result<()> {
    let scenario = lakemark_scenarios::find(&grid.scenario).with_context(|| {
        format!("scenario {:?} is not known: there is {}", grid.scenario, lakemark_scenarios::known_names())
    })?;
    for (swept, given) in sweep(&scenario, &grid.parameters) {
        add_point(cells, grid, how, &scenario, &swept, &given)?;
    }
    Ok(())
}

/// Adds the cells of one combination of parameters; `swept` tells them apart in the cells' names.
fn add_point(
    cells: &mut Vec<Cell>,
    grid: &Grid,
    how: &How,
    scenario: &ScenarioInfo,
    swept: &str,
    given: &BTreeMap<String, Value>,
) -> Result<()> {
    let parameters = parameters::resolve(scenario, given)?;
    if let Some(stranger) = grid.settings.keys().find(|format| !grid.formats.contains(format)) {
        bail!("settings are given for {stranger:?}, which is not among the formats {}", grid.formats.join(", "));
    }
    let profiles = grid.stores.iter().map(|store| profile(store)).collect::<Result<Vec<_>>>()?;
    for format in &grid.formats {
        let given = grid.settings.get(format).map(texts).unwrap_or_default();
        let info = registry::info(format)?;
        lakemark_scenarios::refuse_unsupported(scenario.name, &parameters, info.name, info.unsupported)?;
        let mut all = given.clone();
        all.extend(lakemark_scenarios::settings(scenario.name, &parameters, &given)?);
        registry::settings(format, &all)?;
        for (catalog, profile) in catalogs(format, &grid.catalogs)?
            .iter()
            .flat_map(|catalog| profiles.iter().map(move |profile| (catalog, profile)))
        {
            for repetition in 0..how.repeat {
                let kind = catalog_kind(catalog);
                let mut id = format!("{format}-{kind}-{}-{}", profile.name, grid.scenario).replace("-none-", "-");
                if let Some(label) = &grid.label {
                    id = format!("{id}-{label}");
                }
                id.push_str(swept);
                if how.repeat > 1 {
                    id = format!("{id}-{}", repetition + 1);
                }
                let plan = CellPlan {
                    id,
                    format: format.clone(),
                    catalog: shown_catalog(catalog),
                    store: profile.name.clone(),
                    scenario: grid.scenario.clone(),
                    parameters: parameters.clone(),
                    settings: given.clone(),
                    seed: how.seed + u64::from(repetition),
                    clock: how.clock.to_string(),
                    cpu: how.cpu.to_string(),
                    worker: how.workers.get(format).cloned(),
                };
                cells.push(Cell { plan, profile: profile.clone(), catalog: catalog.clone() });
            }
        }
    }
    Ok(())
}

/// Every combination of the parameters that were given several values: an array, or a list with commas, of a kind that
/// takes one. With each, what a cell's name says of it.
fn sweep(scenario: &ScenarioInfo, given: &BTreeMap<String, Value>) -> Vec<(String, BTreeMap<String, Value>)> {
    let mut points = vec![(String::new(), given.clone())];
    for (name, value) in given {
        let Some(parameter) = scenario.parameters.iter().find(|parameter| parameter.name == name) else { continue };
        let values: Vec<Value> = match value {
            _ if !parameter.kind.sweeps() => continue,
            Value::Array(values) => values.clone(),
            Value::String(text) => text.split(',').map(|part| part.trim().into()).collect(),
            _ => continue,
        };
        if values.len() < 2 {
            let only = values.into_iter().next().unwrap_or_default();
            points.iter_mut().for_each(|(_, point)| _ = point.insert(name.clone(), only.clone()));
            continue;
        }
        let with = |(swept, point): &(String, BTreeMap<String, Value>)| {
            let mut one_each = Vec::new();
            for value in &values {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let mut point = point.clone();
                point.insert(name.clone(), value.clone());
                one_each.push((format!("{swept}-{name}-{text}"), point));
            }
            one_each
        };
        points = points.iter().flat_map(with).collect();
    }
    points
}

fn texts(values: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The catalogs of a format among those given; its own default if none is given.
fn catalogs(format: &str, given: &[String]) -> Result<Vec<String>> {
    let info = registry::info(format)?;
    let is_alone = info.catalogs == ["none"];
    // Every catalog is checked, whether this format uses one or not.
    let kinds: Vec<&str> = given.iter().map(|catalog| check_catalog(catalog)).collect::<Result<_>>()?;
    if given.is_empty() || is_alone {
        return Ok(info.catalogs.first().map(|first| (*first).to_owned()).into_iter().collect());
    }
    let usable: Vec<String> = given
        .iter()
        .zip(kinds)
        .filter(|(_, kind)| info.catalogs.contains(kind))
        .map(|(catalog, _)| catalog.clone())
        .collect();
    if usable.is_empty() {
        bail!("{format} can use none of the catalogs given: it can use {}", info.catalogs.join(", "));
    }
    Ok(usable)
}

#[cfg(feature = "iceberg")]
fn check_catalog(catalog: &str) -> Result<&'static str> {
    if catalog == "none" {
        return Ok("none");
    }
    Ok(catalog.parse::<lakemark_catalogs::CatalogSpec>()?.kind())
}

#[cfg(not(feature = "iceberg"))]
fn check_catalog(catalog: &str) -> Result<&'static str> {
    if catalog == "none" { Ok("none") } else { bail!("catalog: no format of this build uses one") }
}

fn catalog_kind(catalog: &str) -> &'static str {
    check_catalog(catalog).unwrap_or("none")
}

/// A catalog as records may hold it.
#[cfg(feature = "iceberg")]
fn shown_catalog(catalog: &str) -> String {
    catalog
        .parse::<lakemark_catalogs::CatalogSpec>()
        .map_or_else(|_| catalog_kind(catalog).to_owned(), |spec| spec.to_string())
}

#[cfg(not(feature = "iceberg"))]
fn shown_catalog(catalog: &str) -> String {
    catalog_kind(catalog).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how() -> How {
        How { seed: 1, ..How::default() }
    }

    fn grid(formats: &[&str], stores: &[&str]) -> Grid {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Grid { scenario: "sequential-commit".to_owned(), formats: own(formats), stores: own(stores), ..Grid::default() }
    }

    fn refusal(grid: &Grid) -> String {
        format!("{:#}", cells(std::slice::from_ref(grid), &how()).expect_err("refused"))
    }

    #[test]
    fn unknown_names_are_refused_with_what_is_allowed() {
        assert!(refusal(&grid(&["hudi"], &["s3"])).contains("\"hudi\" is not known: this build has"));
        let format = registry::infos()[0].name;
        assert!(refusal(&grid(&[format], &["s4"])).contains("\"s4\" is not known: name a profile (s3,"));
        let other = Grid { scenario: "commits".to_owned(), ..grid(&[format], &["s3"]) };
        assert!(refusal(&other).contains("\"commits\" is not known"));
    }

    #[test]
    fn several_values_of_a_parameter_are_a_cell_each() {
        let format = registry::infos()[0].name;
        let mut many = Grid { scenario: "concurrent-writers".to_owned(), ..grid(&[format], &["s3"]) };
        many.parameters.insert("writers".to_owned(), "10,200".into());
        many.parameters.insert("retry".to_owned(), Value::from(vec!["library", "none"]));
        many.parameters.insert("mix".to_owned(), "append=9,delete=1".into());
        let planned = cells(std::slice::from_ref(&many), &how()).expect("cells");
        let ids: Vec<&str> = planned.iter().map(|cell| cell.plan.id.as_str()).collect();
        assert_eq!(ids.len(), 4);
        assert!(ids[1].ends_with("concurrent-writers-retry-library-writers-200"), "{ids:?}");
        assert_eq!(planned[1].plan.parameters["writers"], 200);
        assert_eq!(planned[1].plan.parameters["mix"], "append=9,delete=1");
        many.parameters.insert("writers".to_owned(), "10,many".into());
        assert!(refusal(&many).contains("writers is many"), "{}", refusal(&many));
    }

    #[test]
    fn a_retry_policy_and_a_librarys_retries_exclude_each_other() {
        let format = registry::infos()[0].name;
        let mut both = Grid { scenario: "concurrent-writers".to_owned(), ..grid(&[format], &["s3"]) };
        both.parameters.insert("retry".to_owned(), "none".into());
        both.settings.insert(format.to_owned(), BTreeMap::from([("max-retries".to_owned(), 3.into())]));
        assert_eq!(refusal(&both), "max-retries is set by retry=none: give one of them");
    }

    #[test]
    fn repetitions_have_seeds_and_names_of_their_own() {
        let format = registry::infos()[0].name;
        let planned = cells(&[grid(&[format], &["s3"])], &How { repeat: 3, ..how() }).expect("cells");
        assert_eq!(planned.iter().map(|cell| cell.plan.seed).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(planned[2].plan.id.ends_with("-3"), "{}", planned[2].plan.id);
    }

    #[cfg(feature = "iceberg")]
    #[test]
    fn a_password_is_in_no_plan() {
        let catalog = "postgres://me:sesame@localhost/db".to_owned();
        let grid = Grid { catalogs: vec![catalog.clone()], ..grid(&["iceberg"], &["s3"]) };
        let planned = cells(&[grid], &how()).expect("cells");
        assert_eq!(planned[0].catalog, catalog);
        let recorded = serde_json::to_string(&planned[0].plan).expect("a plan serializes");
        assert!(!recorded.contains("sesame"), "{recorded}");
        assert_eq!(planned[0].plan.id, "iceberg-postgres-s3-sequential-commit");
    }

    #[test]
    fn pairs_need_a_name_and_a_sign() {
        assert_eq!(pair("a=b=c", "--param", "NAME=VALUE").expect("a pair"), ("a".to_owned(), "b=c".to_owned()));
        for text in ["a", "=b"] {
            let message = pair(text, "--param", "NAME=VALUE").expect_err("refused").to_string();
            assert!(message.contains("NAME=VALUE") && message.contains(text), "{message}");
        }
    }
}
