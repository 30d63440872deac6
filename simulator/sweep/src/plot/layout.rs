//! Which cell goes where? Settings dealt out to the axes of pictures, and to several of them.

use super::scale::label;
use crate::row::{SETTINGS, Scalar};
use crate::summary::CellMeans;

/// Settings that stand for the load, of which the first that varies goes along the horizontal axis.
const X: [&str; 2] = ["offered_per_s", "clients"];

/// Settings that go up the vertical axis first, and what they are called there.
const Y: [(&str, &str); 9] = [
    ("tables", "tables"),
    ("catalog_latency_ms", "catalog latency, ms"),
    ("fast_append_ratio", "share of FastAppends"),
    ("retry", "retry policy"),
    ("protocol", "protocol"),
    ("provider", "provider"),
    ("zipf_exponent", "Zipf exponent"),
    ("partitions", "partitions"),
    ("runtime_median_ms", "median runtime, ms"),
];

/// A value of a setting on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) label: String,
    pub(crate) number: Option<f64>,
}

/// The cells of one experiment.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) title: String,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) panel_title: String,
    /// Columns, ascending.
    pub(crate) x: Vec<Value>,
    /// Rows.
    pub(crate) y: Vec<Value>,
    pub(crate) panels: Vec<Panel<'a>>,
}

/// The cells that share all settings but two.
#[derive(Debug)]
pub(crate) struct Panel<'a> {
    pub(crate) title: String,
    /// By row and column.
    pub(crate) cells: Vec<Vec<Option<&'a CellMeans>>>,
}

impl<'a> Panel<'a> {
    pub(crate) fn map<T>(&self, what: impl Fn(&Option<&'a CellMeans>) -> T) -> Vec<Vec<T>> {
        self.cells.iter().map(|row| row.iter().map(&what).collect()).collect()
    }
}

/// Cells by experiment, each laid out by what varies in it.
pub(crate) fn groups<'a>(cells: &'a [CellMeans], y: Option<&str>) -> Vec<Group<'a>> {
    let mut experiments: Vec<(&str, Vec<&CellMeans>)> = Vec::new();
    for cell in cells {
        let experiment = cell.settings.text("experiment").unwrap_or_default();
        match experiments.iter_mut().find(|(name, _)| *name == experiment) {
            Some((_, cells)) => cells.push(cell),
            None => experiments.push((experiment, vec![cell])),
        }
    }
    experiments.into_iter().map(|(name, cells)| group(name, &cells, y)).collect()
}

fn group<'a>(experiment: &str, cells: &[&'a CellMeans], y: Option<&str>) -> Group<'a> {
    let varying: Vec<&str> = SETTINGS
        .iter()
        .filter(|name| !["experiment", "config_hash"].contains(name) && values(cells, name).len() > 1)
        .copied()
        .collect();
    let x = X.iter().find(|name| varying.contains(name)).copied();
    // Without a load, the first number that varies.
    let x = x.or_else(|| varying.iter().find(|name| values(cells, name).iter().all(|v| v.number.is_some())).copied());
    let x = x.unwrap_or("offered_per_s");
    let is_free = |name: &str| name != x && varying.contains(&name) && !follows(cells, name, &[x]);
    let first = || Y.iter().map(|(name, _)| *name).chain(varying.iter().copied()).find(|name| is_free(name));
    let y = y.filter(|name| is_free(name)).or_else(first).unwrap_or("");
    let mut panel_by: Vec<&str> = Vec::new();
    for name in &varying {
        let known: Vec<&str> = [x, y].into_iter().chain(panel_by.iter().copied()).collect();
        if *name != x && *name != y && !follows(cells, name, &known) {
            panel_by.push(name);
        }
    }
    let mut columns = values(cells, x);
    columns.sort_by(|a, b| a.number.unwrap_or_default().total_cmp(&b.number.unwrap_or_default()));
    let mut rows = values(cells, y);
    if rows.iter().all(|value| value.number.is_some()) {
        rows.sort_by(|a, b| a.number.unwrap_or_default().total_cmp(&b.number.unwrap_or_default()));
    }
    let mut panels: Vec<Panel<'a>> = Vec::new();
    for cell in cells {
        let shown: Vec<String> = panel_by.iter().map(|name| format!("{name} {}", value(cell, name).label)).collect();
        let title = shown.join(", ");
        let place = panels.iter().position(|panel| panel.title == title).unwrap_or_else(|| {
            panels.push(Panel { title, cells: vec![vec![None; columns.len()]; rows.len()] });
            panels.len() - 1
        });
        let row = rows.iter().position(|known| *known == value(cell, y));
        let column = columns.iter().position(|known| *known == value(cell, x));
        if let (Some(row), Some(column)) = (row, column) {
            panels[place].cells[row][column] = Some(cell);
        }
    }
    let title = if experiment.is_empty() { "All cells".to_owned() } else { experiment.to_owned() };
    Group {
        title,
        x_title: title_of(x),
        y_title: title_of(y),
        panel_title: panel_by.join(", "),
        x: columns,
        y: rows,
        panels,
    }
}

fn title_of(name: &str) -> String {
    match name {
        "offered_per_s" => "offered load, transactions/s".to_owned(),
        "clients" => "clients".to_owned(),
        name => Y.iter().find(|(known, _)| *known == name).map_or(name, |(_, title)| title).to_owned(),
    }
}

/// Values of a setting, in the order in which cells have them.
fn values(cells: &[&CellMeans], name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for cell in cells {
        let value = value(cell, name);
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

fn value(cell: &CellMeans, name: &str) -> Value {
    let scalar = cell.settings.get(name);
    let number = scalar.and_then(Scalar::number);
    let label = number.map_or_else(|| scalar.map(Scalar::show).unwrap_or_default(), label);
    Value { label: if label.is_empty() && scalar.is_some() { "none".to_owned() } else { label }, number }
}

/// Whether a setting's value follows from those of others, as a scale does from a load.
fn follows(cells: &[&CellMeans], name: &str, from: &[&str]) -> bool {
    let mut known: std::collections::HashMap<Vec<String>, Option<Scalar>> = std::collections::HashMap::new();
    cells.iter().all(|cell| {
        let key = from.iter().map(|name| cell.settings.get(name).map(Scalar::show).unwrap_or_default()).collect();
        let value = cell.settings.get(name).cloned();
        *known.entry(key).or_insert_with(|| value.clone()) == value
    })
}
