//! Which cells does a sweep run? A grid of settings, from a file, from options, or of a published study.

use lakemark_simulator::{Cell, studies};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::SweepError;
use crate::node::Node;
use crate::settings;

/// Studies whose grid is built in.
pub const STUDIES: [&str; 1] = ["endive-2026"];

/// Seeds of a sweep that says nothing else.
pub const SEEDS: u32 = 5;

/// Most seeds of a cell.
const SEEDS_MAX: u32 = 100_000;

/// A grid as it is kept beside results: what it takes to plan its cells again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GridSpec {
    /// Name of the sweep.
    pub name: String,
    /// Each cell runs with the seeds 1 to this.
    pub seeds: u32,
    /// Published study whose cells the settings change; the default cell without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// Only the study's cells of a thinned grid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinned: bool,
    /// Settings, lists of them for axes.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub cell: Value,
}

/// A grid as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    name: Option<String>,
    /// What the sweep is for; for readers of the file.
    #[serde(rename = "about")]
    _about: Option<String>,
    study: Option<String>,
    seeds: Option<i64>,
    #[serde(default)]
    cell: Value,
}

/// A cell of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Place in the grid, from 0.
    pub index: u64,
    /// The study's experiment that it belongs to.
    pub experiment: Option<&'static str>,
    /// The cell.
    pub cell: Cell,
}

/// A grid whose settings have been checked, ready to be indexed.
#[derive(Clone, Debug)]
pub struct Grid {
    spec: GridSpec,
    origin: String,
    bases: Vec<Base>,
    node: Node,
    variants: u64,
}

/// What the settings change.
#[derive(Clone, Debug)]
struct Base {
    experiment: Option<&'static str>,
    cell: Value,
}

impl GridSpec {
    /// A grid of the default cell alone.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), seeds: SEEDS, study: None, thinned: false, cell: Value::Null }
    }

    /// The grid of a published study.
    pub fn study(name: &str) -> Self {
        Self { study: Some(name.to_owned()), ..Self::new(name) }
    }

    /// Reads a grid from the text of a TOML file; `origin` names it in errors, and without its ending it names a grid
    /// that has no name of its own.
    ///
    /// # Errors
    /// If the text is not TOML, or has a key that is none of a grid's.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SweepError> {
        let file: GridFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            SweepError::grid(&format!("{origin}:{line}"), error.message().lines().collect::<Vec<_>>().join("; "))
        })?;
        let stem = std::path::Path::new(origin).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let seeds = file.seeds.unwrap_or(SEEDS.into());
        Ok(Self {
            name: file.name.or(stem).unwrap_or_else(|| "grid".to_owned()),
            seeds: u32::try_from(seeds)
                .map_err(|_| SweepError::grid(origin, format!("seeds is {seeds}; allowed: 1 to {SEEDS_MAX}")))?,
            study: file.study,
            thinned: false,
            cell: file.cell,
        })
    }

    /// The grid as the text of a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Sets one setting, `values` as an axis if there are several.
    pub fn set(&mut self, path: &str, mut values: Vec<Value>) {
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        let names: Vec<&str> = path.split('.').collect();
        set(&mut self.cell, &names, &value);
    }
}

/// Sets what a path names, in every option of a list on the way.
fn set(target: &mut Value, path: &[&str], value: &Value) {
    match (target, path) {
        (target, []) => *target = value.clone(),
        (Value::Array(options), path) => options.iter_mut().for_each(|option| set(option, path, value)),
        (Value::Object(table), [first, rest @ ..]) => {
            set(table.entry((*first).to_owned()).or_insert(Value::Null), rest, value);
        }
        (target, path) => {
            *target = Value::Object(serde_json::Map::new());
            set(target, path, value);
        }
    }
}

impl Grid {
    /// Checks a grid and makes it ready; `origin` names it in errors.
    ///
    /// # Errors
    /// One line, if a key is unknown, a list is empty, there are more cells than can be counted, or a cell is refused. Of
    /// a large grid, a sample of cells is looked at.
    pub fn new(spec: GridSpec, origin: &str) -> Result<Self, SweepError> {
        if !(1..=SEEDS_MAX).contains(&spec.seeds) {
            return Err(SweepError::grid(origin, format!("seeds is {}; allowed: 1 to {SEEDS_MAX}", spec.seeds)));
        }
        let bases = bases(&spec, origin)?;
        let settings = if spec.cell.is_null() { Value::Object(serde_json::Map::new()) } else { spec.cell.clone() };
        let node = Node::read(settings);
        if let Some(path) = node.empty_choice() {
            return Err(SweepError::grid(origin, format!("{path} is an empty list; allowed: a value, or values")));
        }
        let variants = node.count().filter(|count| {
            let runs = count.checked_mul(bases.len() as u64).and_then(|cells| cells.checked_mul(spec.seeds.into()));
            runs.is_some()
        });
        let Some(variants) = variants else {
            let axes: Vec<String> = node.axes().iter().map(|(path, count)| format!("{path} {count}")).collect();
            let message = format!("the grid has more than 2^64 runs ({}); allowed: fewer values", axes.join(" × "));
            return Err(SweepError::grid(origin, message));
        };
        let grid = Self { spec, origin: origin.to_owned(), bases, node, variants };
        settings::check_keys(&grid.node, origin)?;
        grid.check()?;
        Ok(grid)
    }

    /// What the grid was made from.
    pub fn spec(&self) -> &GridSpec {
        &self.spec
    }

    /// Number of cells.
    pub fn cells(&self) -> u64 {
        self.variants * self.bases.len() as u64
    }

    /// Number of runs: cells times seeds.
    pub fn runs(&self) -> u64 {
        self.cells() * u64::from(self.spec.seeds)
    }

    /// Settings with more than one value, by path, and how many they have.
    pub fn axes(&self) -> Vec<(String, u64)> {
        self.node.axes()
    }

    /// Cell `index`, from 0.
    ///
    /// # Errors
    /// If its settings are no cell's.
    pub fn cell(&self, index: u64) -> Result<PlannedCell, SweepError> {
        let base = usize::try_from(index / self.variants).ok().and_then(|place| self.bases.get(place));
        let (Some(base), Some(variant)) = (base, self.node.nth(index % self.variants)) else {
            return Err(SweepError::Rows(format!("the grid has {} cells: there is no cell {index}", self.cells())));
        };
        let cell = settings::cell(&base.cell, variant).map_err(|message| self.refused(index, message))?;
        Ok(PlannedCell { index, experiment: base.experiment, cell })
    }

    /// Up to `count` cells, spread over the grid; always the same ones.
    pub fn sample(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let cells = self.cells();
        let stride = stride(cells);
        (0..count.min(cells)).map(move |i| (u128::from(i) * u128::from(stride) % u128::from(cells)) as u64)
    }

    /// Refuses what no cell may hold, before anything runs.
    fn check(&self) -> Result<(), SweepError> {
        // Cells that differ in one value are refused for it alike: a sample of a large grid meets each value.
        const CHECKED_MAX: u64 = 4_096;
        let last = self.cells() - 1;
        for index in self.sample(CHECKED_MAX).chain([last]) {
            let planned = self.cell(index)?;
            planned.cell.validate().map_err(|reason| SweepError::Cell { origin: self.origin.clone(), reason })?;
        }
        Ok(())
    }

    fn refused(&self, index: u64, message: String) -> SweepError {
        let origin = if self.cells() == 1 { self.origin.clone() } else { format!("{}, cell {index}", self.origin) };
        SweepError::Grid { origin, message }
    }
}

/// A step that visits all of `count` places in an order that looks random: about the golden section, without a common
/// divisor.
pub(crate) fn stride(count: u64) -> u64 {
    let near = (count as f64 * 0.618_033_988_749_895) as u64;
    (near.max(1)..).find(|stride| gcd(*stride, count) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Cells that the settings change: the default one, or those of a study.
fn bases(spec: &GridSpec, origin: &str) -> Result<Vec<Base>, SweepError> {
    let json = |cell: &Cell| {
        serde_json::to_value(cell)
            .map_err(|error| SweepError::grid(origin, format!("a cell has no JSON form: {error}")))
    };
    match spec.study.as_deref() {
        // Followed to their ends: of what is in flight at the end of a run, the study's metrics know nothing.
        None => Ok(vec![Base { experiment: None, cell: json(&Cell { drain: true, ..Cell::default() })? }]),
        Some("endive-2026") => studies::endive_2026()
            .iter()
            .filter(|study| !spec.thinned || crate::endive::is_in_thinned(study))
            .map(|study| Ok(Base { experiment: Some(study.experiment), cell: json(&study.cell)? }))
            .collect(),
        Some(name) => Err(SweepError::grid(origin, format!("study is {name:?}; allowed: {}", STUDIES.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, words: &[&str]) {
        let message = match GridSpec::parse(text, "grid.toml").and_then(|spec| Grid::new(spec, "grid.toml")) {
            Ok(_) => panic!("{text} is accepted"),
            Err(error) => error.to_string(),
        };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(message.starts_with("grid.toml") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn bad_grids_are_refused_in_one_line_that_names_the_file() {
        refused("[cell]\nload_per_s = -1", &["load_per_s", "-1", "more than 0"]);
        refused("[cell]\ntables = [1, 0]", &["tables is 0", "1 to"]);
        refused("[cell]\nmix = '90/20'", &["90/20", "110", "sum to 100"]);
        refused("[cell]\nprovider = 's4'", &["s4", "s3-express"]);
        refused("[cell]\ntabels = 1", &["tabels", "tables"]);
        refused("[cell]\ntables = []", &["tables", "empty"]);
        refused("[cell]\narrivals = {kind = 'exponential', mean = 5}", &["arrivals", "mean_ms"]);
        refused("sedes = 5", &["grid.toml:1", "sedes", "seeds"]);
        refused("seeds = 0", &["seeds is 0", "1 to"]);
        refused("seeds = -1", &["seeds is -1", "1 to"]);
        refused("study = 'endive'", &["endive", "endive-2026"]);
        refused("cell = 5", &["5", "table"]);
        refused("name = ", &["grid.toml:1"]);
        let many: Vec<String> = (1..=2_000).map(|n| n.to_string()).collect();
        let axis = |name: &str| format!("{name} = [{}]\n", many.join(","));
        let names =
            ["duration_ms", "load_per_s", "partitions", "real_conflict_probability", "sums_exact_below", "tables"];
        let text: String = names.iter().map(|name| axis(name)).collect();
        refused(&format!("[cell]\n{text}"), &["2^64", "tables 2000"]);
    }

    #[test]
    fn a_study_is_changed_by_settings_and_keeps_its_own() {
        let spec = GridSpec::parse("study = 'endive-2026'\n[cell]\nretry = ['immediate', 'split']", "x.toml").unwrap();
        let grid = Grid::new(spec, "x.toml").unwrap();
        assert_eq!((grid.spec().name.as_str(), grid.cells(), grid.runs()), ("x", 4_180, 20_900));
        let first = grid.cell(0).unwrap();
        assert_eq!((first.experiment, first.cell), (Some("exp1"), studies::endive_2026()[0].cell.clone()));
        let last = grid.cell(4_179).unwrap();
        assert_eq!(last.cell.arrivals, studies::endive_2026()[2_089].cell.arrivals);
        assert!(grid.cell(4_180).is_err());
    }

    #[test]
    fn cells_without_a_study_are_followed_to_their_end() {
        assert!(Grid::new(GridSpec::new("x"), "x").unwrap().cell(0).unwrap().cell.drain);
    }

    #[test]
    fn a_grid_comes_back_from_its_text() {
        let text = "name = 'x'\nseeds = 2\n[[cell]]\nload_per_s = [0.1, 0.30000000000000004]\n[[cell]]\ntables = 3\n";
        let spec = GridSpec::parse(text, "x.toml").unwrap();
        assert_eq!(GridSpec::parse(&spec.to_toml(), "x.toml").unwrap(), spec);
        assert_eq!(Grid::new(spec, "x.toml").unwrap().cells(), 3);
    }

    #[test]
    fn strides_visit_everything_once() {
        for count in [1, 2, 10, 64, 2_090, 9_973] {
            let stride = stride(count);
            let seen: std::collections::BTreeSet<u64> = (0..count).map(|i| i * stride % count).collect();
            assert_eq!(seen.len() as u64, count);
        }
    }
}
