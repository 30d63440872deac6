//! What does a sweep look like? Heatmaps, curves and knees of its cells, as one HTML file that needs nothing else.

mod curves;
mod heatmap;
mod layout;
mod scale;
mod svg;

use lakemark_results::table::format_number;
use lakemark_simulator::{KNEE_SUCCESS_RATE, knee};

use self::curves::{Curves, Point};
use self::heatmap::Heatmap;
use self::layout::{Group, Panel};
use self::scale::{Scale, Unit};
use self::svg::escape;
use crate::row::{DEFINITIONS, Scalar};
use crate::summary::CellMeans;

/// What heatmaps show: name of the metric behind its definition and type, title, unit.
const METRICS: [(&str, &str, Unit); 6] = [
    ("success_rate", "Success rate, %", Unit::Share),
    ("latency_p50_ms", "Commit latency, median, ms", Unit::Ms),
    ("latency_p95_ms", "Commit latency, 95th percentile, ms", Unit::Ms),
    ("latency_p99_ms", "Commit latency, 99th percentile, ms", Unit::Ms),
    ("latency_mean_ms", "Commit latency, mean, ms", Unit::Ms),
    ("throughput_per_s", "Throughput, commits/s", Unit::Plain),
];

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Plot<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Definition of the metrics: one of [`DEFINITIONS`].
    pub definition: &'a str,
    /// Setting on the vertical axis of heatmaps; the first that varies without it.
    pub y: Option<&'a str>,
    /// Text of the grid.
    pub grid: &'a str,
}

/// The metrics that a page by some definition needs.
pub fn metrics(definition: &str) -> Vec<String> {
    let mut names: Vec<String> = METRICS.iter().map(|(metric, ..)| format!("{definition}_all_{metric}")).collect();
    let knee = knee_definition(definition);
    names.push(format!("{knee}_all_throughput_per_s"));
    names.push(format!("{knee}_fast_append_success_rate"));
    names.push(format!("{knee}_validated_overwrite_success_rate"));
    names.sort();
    names.dedup();
    names
}

/// The definition that fits cells: the one without censoring, where all have it.
pub fn definition_for(cells: &[CellMeans]) -> &'static str {
    let is_drained = |cell: &CellMeans| cell.settings.get("drain") == Some(&Scalar::Flag(Some(true)));
    if cells.iter().all(is_drained) { DEFINITIONS[3] } else { DEFINITIONS[0] }
}

/// A knee is the study's, by its own definition, unless cells are followed to their ends.
fn knee_definition(definition: &str) -> &str {
    if definition == DEFINITIONS[3] { definition } else { DEFINITIONS[2] }
}

/// The page.
pub fn page(cells: &[CellMeans], plot: &Plot<'_>) -> String {
    let mut body = String::new();
    let seeds = cells.iter().flat_map(|cell| cell.metric(&format!("{}_all_success_rate", plot.definition)));
    let seeds = seeds.map(|mean| mean.seeds).max().unwrap_or_default();
    body.push_str(&format!(
        "<h1>{}</h1>\n<p>Simulated, not measured. {} cells, means over {seeds} seeds. Metrics by the <em>{}</em> \
         definition; knees by <em>{}</em>.</p>\n",
        escape(plot.title),
        cells.len(),
        escape(plot.definition),
        escape(knee_definition(plot.definition)),
    ));
    for group in layout::groups(cells, plot.y) {
        body.push_str(&section(&group, plot.definition));
    }
    body.push_str(&format!("<h2>Grid</h2>\n<pre>{}</pre>\n", escape(plot.grid)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>{STYLE}</style>\
         </head><body>\n{body}</body></html>\n",
        escape(plot.title)
    )
}

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;color:#222;background:#fff;margin:24px;max-width:1400px}\
    svg{margin:0 18px 14px 0;vertical-align:top}table{border-collapse:collapse;margin:8px 0}\
    td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
    summary{cursor:pointer;font-weight:600;margin:8px 0}pre{background:#f6f6f6;padding:10px;overflow-x:auto}";

/// One experiment: its panels, and its knees over all of them.
fn section(group: &Group<'_>, definition: &str) -> String {
    let mut text = format!("<h2>{}</h2>\n", escape(&group.title));
    let knees: Vec<Vec<Option<Knee>>> = group.panels.iter().map(|panel| knees(group, panel, definition)).collect();
    if group.x.len() > 1 {
        text.push_str(&knee_chart(group, &knees));
        text.push_str(&knee_table(group, &knees));
    }
    for (place, panel) in group.panels.iter().enumerate() {
        let open = if place == 0 { " open" } else { "" };
        let title = if panel.title.is_empty() { "All cells" } else { &panel.title };
        text.push_str(&format!("<details{open}><summary>{}</summary>\n", escape(title)));
        for (metric, title, unit) in METRICS {
            text.push_str(&heatmap(group, panel, &format!("{definition}_all_{metric}"), title, unit));
        }
        if group.x.len() > 1 {
            text.push_str("<br>\n");
            text.push_str(&load_curves(group, panel, definition));
            for (metric, title) in [("latency_p50_ms", "median"), ("latency_p99_ms", "99th percentile")] {
                text.push_str(&latency_curves(group, panel, definition, metric, title));
            }
        }
        text.push_str("</details>\n");
    }
    text
}

fn heatmap(group: &Group<'_>, panel: &Panel<'_>, metric: &str, title: &str, unit: Unit) -> String {
    // One scale for all panels, so that they can be compared.
    let all = group.panels.iter().flat_map(|panel| panel.cells.iter().flatten().flatten());
    let scale = match unit {
        Unit::Share => Scale::linear(0.0, 1.0),
        _ => Scale::of(all.filter_map(|cell| cell.mean(metric))),
    };
    let hint = |cell: &Option<&CellMeans>| {
        let Some((cell, mean)) = cell.and_then(|cell| Some((cell, cell.metric(metric)?))) else { return String::new() };
        let error = mean.sd / f64::from(mean.seeds).sqrt();
        format!("cell {}: {} ± {} (standard error)", cell.settings.key().0, mean.mean, format_number(error))
    };
    let drawn = Heatmap {
        title,
        unit,
        scale,
        x_title: &group.x_title,
        y_title: &group.y_title,
        x: group.x.iter().map(|value| value.label.clone()).collect(),
        y: group.y.iter().map(|value| value.label.clone()).collect(),
        values: panel.map(|cell| cell.and_then(|cell| cell.mean(metric))),
        hints: panel.map(hint),
    };
    drawn.draw()
}

/// Success by load, a curve for each row of the heatmap.
fn load_curves(group: &Group<'_>, panel: &Panel<'_>, definition: &str) -> String {
    let metric = format!("{definition}_all_success_rate");
    let point = |x: usize, cell: &CellMeans| Some((group.x[x].number?, cell.mean(&metric)?));
    Curves {
        title: "Success by load",
        x_title: &group.x_title,
        y_title: "success rate, %",
        y_unit: Unit::Share,
        legend_title: &group.y_title,
        curves: curves(group, panel, &point),
        level: Some(KNEE_SUCCESS_RATE),
    }
    .draw()
}

/// Latency against throughput, along the loads.
fn latency_curves(group: &Group<'_>, panel: &Panel<'_>, definition: &str, metric: &str, title: &str) -> String {
    let (throughput, latency) = (format!("{definition}_all_throughput_per_s"), format!("{definition}_all_{metric}"));
    let point = |_: usize, cell: &CellMeans| Some((cell.mean(&throughput)?, cell.mean(&latency)?));
    Curves {
        title: &format!("Latency by throughput, {title}"),
        x_title: "throughput, commits/s",
        y_title: "commit latency, ms",
        y_unit: Unit::Ms,
        legend_title: &group.y_title,
        curves: curves(group, panel, &point),
        level: None,
    }
    .draw()
}

/// Where a cell of a column stands in a chart; none if it does not.
type Place<'a> = dyn Fn(usize, &CellMeans) -> Option<(f64, f64)> + 'a;

/// A curve for each row, along its columns.
fn curves(group: &Group<'_>, panel: &Panel<'_>, point: &Place<'_>) -> Vec<(String, Vec<Point>)> {
    let rows = group.y.iter().zip(&panel.cells);
    let curve = |(label, cells): (&layout::Value, &Vec<Option<&CellMeans>>)| {
        let points = cells.iter().enumerate().filter_map(|(x, cell)| {
            let (at_x, at_y) = point(x, cell.as_ref()?)?;
            Some(([at_x, at_y], format!("{} {}: {} / {}", group.x_title, group.x[x].label, at_x, at_y)))
        });
        (label.label.clone(), points.collect::<Vec<Point>>())
    };
    rows.map(curve).filter(|(_, points)| !points.is_empty()).collect()
}

/// The heaviest load that a row sustains.
struct Knee {
    load: String,
    throughput_per_s: Option<f64>,
}

/// The knee of each row.
fn knees(group: &Group<'_>, panel: &Panel<'_>, definition: &str) -> Vec<Option<Knee>> {
    let definition = knee_definition(definition);
    let knee_of = |cells: &Vec<Option<&CellMeans>>| {
        // Columns ascend; the scan is from the heaviest load.
        let rates = cells.iter().rev().map(|cell| {
            let cell = cell.as_ref()?;
            let is_pure = cell.settings.number("fast_append_ratio") == Some(1.0);
            let of = if is_pure { "fast_append" } else { "validated_overwrite" };
            cell.mean(&format!("{definition}_{of}_success_rate"))
        });
        let x = cells.len() - 1 - knee(rates)?;
        let throughput_per_s = cells[x]?.mean(&format!("{definition}_all_throughput_per_s"));
        Some(Knee { load: group.x[x].label.clone(), throughput_per_s })
    };
    panel.cells.iter().map(knee_of).collect()
}

fn knee_chart(group: &Group<'_>, knees: &[Vec<Option<Knee>>]) -> String {
    if group.y.len() < 2 || group.y.iter().any(|value| value.number.is_none()) {
        return String::new();
    }
    let curve = |(panel, knees): (&Panel<'_>, &Vec<Option<Knee>>)| {
        let points = group.y.iter().zip(knees).filter_map(|(y, knee)| {
            let knee = knee.as_ref()?;
            let (at_x, at_y) = (y.number?, knee.throughput_per_s?);
            Some(([at_x, at_y], format!("{} at load {}", format_number(at_y), knee.load)))
        });
        (panel.title.clone(), points.collect::<Vec<Point>>())
    };
    let curves: Vec<_> = group.panels.iter().zip(knees).map(curve).filter(|(_, points)| !points.is_empty()).collect();
    if curves.is_empty() {
        return String::new();
    }
    Curves {
        title: "Knees: throughput at the heaviest load of which 95 % succeed",
        x_title: &group.y_title,
        y_title: "commits/s",
        y_unit: Unit::Plain,
        legend_title: &group.panel_title,
        curves,
        level: None,
    }
    .draw()
}

fn knee_table(group: &Group<'_>, knees: &[Vec<Option<Knee>>]) -> String {
    let mut text =
        format!("<details><summary>Knees as a table</summary>\n<table><tr><th>{}</th>", escape(&group.panel_title));
    for value in &group.y {
        text.push_str(&format!("<th>{} {}</th>", escape(&group.y_title), escape(&value.label)));
    }
    text.push_str("</tr>\n");
    for (panel, knees) in group.panels.iter().zip(knees) {
        text.push_str(&format!("<tr><td>{}</td>", escape(&panel.title)));
        for knee in knees {
            let shown = knee.as_ref().map(|knee| {
                let throughput = knee.throughput_per_s.map_or_else(|| "–".to_owned(), format_number);
                format!("{throughput} (load {})", knee.load)
            });
            text.push_str(&format!("<td>{}</td>", escape(&shown.unwrap_or_else(|| "none".to_owned()))));
        }
        text.push_str("</tr>\n");
    }
    text + "</table></details>\n"
}
