//! `lakemark trace`: every request of one commit or load, as a waterfall.

use anyhow::{Context, Result, bail};
use lakemark_results::loads::in_flight::InFlight;
use lakemark_results::loads::kind_name;
use lakemark_results::manifest::CellState;
use lakemark_results::record::{Operation, OperationKind, Outcome, Request};
use lakemark_results::statistics::ms;
use lakemark_results::table::{Column, Field, OutputFormat, Table};
use lakemark_scenarios::definition::Grid;
use serde_json::Value;

use super::{Ended, run};
use crate::cli::{HowOptions, TraceOptions, Traced};
use crate::plan::{self, Cell, How};
use crate::{driver, output, registry};

/// Characters that the longest operation is drawn in.
const BAR_WIDTH: usize = 40;

/// Runs the command.
///
/// # Errors
/// If what was asked for cannot be planned or run.
pub(crate) fn run(options: &TraceOptions) -> Result<Ended> {
    let cells = plan::usage(planned(options))?;
    let cell = cells.first().context("nothing to trace")?;
    let folder = tempfile::tempdir().context("cannot create a folder for the records")?;
    let how = how_options(options, folder.path());
    let kept = run::create(&how, "trace", &cells)?;
    let statuses = driver::run(&kept, &cells, None)?;
    let Some(status) = statuses.get(&cell.plan.id) else { return Ok(Ended::Interrupted) };
    let ended = Ended::of([Some(status)].into_iter());
    if !matches!(status.state, CellState::Ok | CellState::Invalid) {
        return Ok(ended);
    }
    let kind = kind(options.operation);
    let operations: Vec<Operation> = kept.read_operations(&cell.plan.id)?.collect::<Result<_, _>>()?;
    let operation = operations
        .into_iter()
        .rfind(|operation| operation.kind == kind && !operation.excluded)
        .context("the cell has no such operation")?;
    let is_of = |request: &Request| (request.writer, request.operation) == (operation.writer, operation.operation);
    let mut requests: Vec<Request> = kept
        .read_requests(&cell.plan.id)?
        .filter(|request| request.as_ref().map_or(true, is_of))
        .collect::<Result<_, _>>()?;
    requests.sort_by_key(|request| (request.start_us, request.request));
    if run::is_for_people(options.output) {
        output::print(&heading(cell, &operation, &requests))?;
    }
    output::print_table(&waterfall(&operation, &requests, options.output), options.output)?;
    Ok(ended)
}

fn kind(traced: Traced) -> OperationKind {
    match traced {
        Traced::Commit => OperationKind::Append,
        Traced::Load => OperationKind::ColdOpen,
        Traced::Fresh => OperationKind::FreshHandle,
        Traced::Refresh => OperationKind::Refresh,
        Traced::Shallow => OperationKind::ShallowOpen,
    }
}

fn planned(options: &TraceOptions) -> Result<Vec<Cell>> {
    let info = registry::info(&options.table)?;
    let name = kind_name(kind(options.operation));
    if let Some(unsupported) = info.unsupported.iter().find(|unsupported| unsupported.what == name) {
        bail!("{} does not offer {}: {}", info.name, unsupported.what.replace('_', " "), unsupported.why);
    }
    // The sample after the last append is a cold open; the other loads need the scenario that makes them.
    let is_sample = matches!(options.operation, Traced::Commit | Traced::Load);
    let mut grid = Grid {
        scenario: if is_sample { "sequential-commit" } else { "metadata-load" }.to_owned(),
        formats: vec![options.table.clone()],
        stores: vec![options.store.clone()],
        catalogs: options.catalog.clone().into_iter().collect(),
        ..Grid::default()
    };
    grid.parameters.insert("appends".to_owned(), options.at.as_str().into());
    grid.parameters.insert("sample-at".to_owned(), options.at.as_str().into());
    if !is_sample {
        grid.parameters.insert("load-at".to_owned(), options.at.as_str().into());
        grid.parameters.insert("loads".to_owned(), 1.into());
    }
    for setting in &options.settings {
        let (name, value) = plan::pair(setting, "--set", "NAME=VALUE")?;
        grid.settings.entry(options.table.clone()).or_default().insert(name, Value::from(value));
    }
    let how = How { cpu: options.cpu, seed: options.seed, ..How::default() };
    plan::cells(&[grid], &how)
}

fn how_options(options: &TraceOptions, out: &std::path::Path) -> HowOptions {
    HowOptions {
        clock: lakemark_core::clock::Mode::Skip,
        cpu: Some(options.cpu),
        seed: Some(options.seed),
        jobs: None,
        out: out.to_owned(),
        name: None,
        workers: Vec::new(),
        dry_run: false,
        format: options.output,
    }
}

fn heading(cell: &Cell, operation: &Operation, requests: &[Request]) -> String {
    let what = match operation.kind {
        OperationKind::Append => "commit".to_owned(),
        kind => kind_name(kind).replace('_', " "),
    };
    let version = operation.version.map(|version| format!(" of version {version}")).unwrap_or_default();
    let spans: Vec<(u64, u64)> = requests.iter().map(|r| (r.start_us, r.start_us + r.latency_us)).collect();
    let in_flight = InFlight::of(&spans);
    format!(
        "{} on {} (emulated): {what}{version}, {:.1} ms = {:.1} ms at the store + {:.1} ms at the catalog + {:.1} ms computing; {} attempts; {} requests, at most {} at once, {:.1} on average\n",
        cell.plan.format,
        cell.plan.store,
        ms(operation.latency_us),
        ms(operation.wait_us),
        ms(operation.catalog_us),
        ms(operation.latency_us.saturating_sub(operation.wait_us + operation.catalog_us)),
        operation.attempts,
        operation.requests,
        in_flight.max,
        InFlight::mean_of(&[in_flight]),
    )
}

/// One row a request.
fn waterfall(operation: &Operation, requests: &[Request], format: OutputFormat) -> Table {
    let mut columns = vec![
        Column::number("start_ms", "start ms"),
        Column::number("length_ms", "length ms"),
        Column::text("method", "method"),
        Column::text("class", "class"),
        Column::number("read_bytes", "read B"),
        Column::number("written_bytes", "written B"),
        Column::number("keys", "keys"),
        Column::number("status", "status"),
        Column::text("outcome", "outcome"),
        Column::text("key", "key"),
    ];
    let is_drawn = run::is_for_people(format);
    if is_drawn {
        columns.insert(2, Column::text("waterfall", ""));
    }
    let mut table = Table::new(&columns);
    for request in requests {
        let start_us = request.start_us.saturating_sub(operation.start_us);
        let mut fields = vec![
            Field::number(Some(ms(start_us))),
            Field::number(Some(ms(request.latency_us))),
            Field::text(Some(&word(&request.method))),
            Field::text(Some(&request.class)),
            Field::Count(request.read_bytes),
            Field::Count(request.written_bytes),
            request.keys.map_or(Field::Missing, |keys| Field::Count(keys.into())),
            Field::Count(request.status.into()),
            Field::text(Some(&word(&request.outcome))),
            Field::text(Some(if is_drawn { short(&request.key) } else { &request.key })),
        ];
        if is_drawn {
            fields.insert(
                2,
                Field::text(Some(&bar(start_us, request.latency_us, operation.latency_us, request.outcome))),
            );
        }
        table.push(fields);
    }
    table
}

/// A request drawn over the time of its operation.
fn bar(start_us: u64, length_us: u64, whole_us: u64, outcome: Outcome) -> String {
    let column = |us: u64| (us as f64 / whole_us.max(1) as f64 * BAR_WIDTH as f64).round() as usize;
    let start = column(start_us).min(BAR_WIDTH - 1);
    let end = column(start_us + length_us).clamp(start + 1, BAR_WIDTH);
    let mark = if matches!(outcome, Outcome::Ok | Outcome::NotFound) { "█" } else { "░" };
    format!("{}{}", "·".repeat(start), mark.repeat(end - start))
}

/// A record's word for an enumerated value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The last part of a key, which tells objects apart.
fn short(key: &str) -> &str {
    let name = key.trim_end_matches('/').rsplit('/').next().unwrap_or(key);
    match name.char_indices().rev().nth(23) {
        Some((start, _)) => &name[start..],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_within_the_operation() {
        assert_eq!(bar(0, 100, 100, Outcome::Ok), "█".repeat(BAR_WIDTH));
        assert_eq!(bar(50, 50, 100, Outcome::Ok).chars().filter(|mark| *mark == '█').count(), BAR_WIDTH / 2);
        // A request without length, and one that outlives its operation, are still drawn.
        assert_eq!(bar(100, 0, 100, Outcome::Conflict).chars().next_back(), Some('░'));
        assert_eq!(bar(90, 50, 100, Outcome::Ok).chars().count(), BAR_WIDTH);
    }
}
