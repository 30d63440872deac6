//! The tables of a run: its cells' records, read once, and what is made of them beside the command's own table.

use std::collections::BTreeMap;

use anyhow::Result;
use lakemark_results::compare::Measured;
use lakemark_results::concurrency::{self, Concurrency, across};
use lakemark_results::loads::{self, Shown};
use lakemark_results::manifest::{CellPlan, CellStatus};
use lakemark_results::projection;
use lakemark_results::published::Study;
use lakemark_results::record::OperationKind;
use lakemark_results::run::RunFolder;
use lakemark_results::statistics::LatencySummary;
use lakemark_results::summary::CellSummary;
use lakemark_results::table::{Column, Field, OutputFormat, Table};

use crate::output;

/// A cell and what its records come to.
pub(crate) struct Summarized<'a> {
    /// What it set out to do.
    pub(crate) plan: &'a CellPlan,
    /// How it ended.
    pub(crate) status: &'a CellStatus,
    /// What its records come to.
    pub(crate) summary: CellSummary,
    /// What they come to with several writers in a measured time.
    pub(crate) writers: Option<Concurrency>,
}

impl Summarized<'_> {
    /// As a comparison takes it.
    pub(crate) fn measured(&self) -> Measured<'_> {
        Measured { plan: self.plan, status: self.status, summary: &self.summary }
    }

    /// As a comparison of several writers takes it.
    pub(crate) fn with_writers(&self) -> Option<concurrency::compare::Measured<'_>> {
        let found = self.writers.as_ref()?;
        Some(concurrency::compare::Measured { plan: self.plan, status: self.status, found })
    }
}

/// The cells of a run that started, in the order of their plans.
///
/// # Errors
/// If records cannot be read back.
pub(crate) fn read<'a>(
    folder: &'a RunFolder,
    statuses: &'a BTreeMap<String, CellStatus>,
) -> Result<Vec<Summarized<'a>>> {
    let started = folder.manifest().cells.iter().filter_map(|plan| Some((plan, statuses.get(&plan.id)?)));
    started
        .map(|(plan, status)| {
            let (summary, writers) = (CellSummary::read(folder, &plan.id)?, Concurrency::read(folder, &plan.id)?);
            Ok(Summarized { plan, status, summary, writers })
        })
        .collect()
}

/// Latency of a cell's commits, computing included.
pub(crate) fn latency<'a>(
    plan: &'a CellPlan,
    status: &'a CellStatus,
    summary: &'a CellSummary,
) -> Option<&'a LatencySummary> {
    Measured { plan, status, summary }.latency()
}

/// Bytes in MiB.
pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// The first fields of a cell's row: its name, its store, its verdict.
pub(crate) fn identity(plan: &CellPlan, status: &CellStatus) -> Vec<Field> {
    let emulated = if plan.is_emulated() { "emulated" } else { "real" };
    vec![
        Field::text(Some(&plan.id)),
        Field::text(Some(&format!("{} {emulated}", plan.store))),
        Field::text(Some(if status.is_verified() { "verified" } else { status.state.as_str() })),
    ]
}

/// One row a cell with several writers.
pub(crate) fn writers(cells: &[Summarized<'_>]) -> Named {
    let columns = [
        Column::text("cell", "cell"),
        Column::text("store", "store"),
        Column::text("verdict", "verdict"),
        Column::number("commits", "commits"),
        Column::number("commits_per_s", "commits/s"),
        Column::number("failed_operations_percent", "failed operations %"),
        Column::number("failed_attempts_percent", "failed attempts %"),
        Column::number("attempts_per_commit", "attempts per commit"),
        Column::number("behind_mean", "versions behind"),
        Column::number("p50_ms", "p50 ms"),
        Column::number("p99_ms", "p99 ms"),
        Column::number("failed_p50_ms", "failed p50 ms"),
        Column::number("writer_commits_min", "fewest commits"),
        Column::number("writer_commits_max", "most commits"),
        Column::number("starvation_s_max", "starved s"),
        Column::number("wasted_requests_percent", "wasted requests %"),
        Column::number("wasted_cost_percent", "wasted cost %"),
        Column::number("cpu_saturation_percent", "CPU %"),
        Column::number("real_s", "real s"),
        Column::number("memory_mib", "memory MiB"),
        Column::text("notes", "notes"),
    ];
    let mut table = Table::new(&columns);
    for Summarized { plan, status, writers, .. } in cells {
        let Some(found) = writers else { continue };
        let percent = |share: Option<f64>| Field::number(share.map(|share| share * 100.0));
        let mut fields = identity(plan, status);
        fields.extend([
            Field::Count(found.commits.0),
            Field::number(found.commits_per_s),
            percent(found.failed_operation_rate),
            percent(found.failed_attempt_rate),
            Field::number(found.attempts_per_commit),
            Field::number(found.behind_mean),
            Field::number(found.commit_latency.map(|commits| commits.p50_ms)),
            Field::number(found.commit_latency.map(|commits| commits.p99_ms)),
            Field::number(found.failed_latency.map(|failed| failed.p50_ms)),
            Field::Count(found.fairness.commits_min),
            Field::Count(found.fairness.commits_max),
            Field::number(Some(found.fairness.starvation_s_max)),
            percent(found.wasted_request_share()),
            percent(found.wasted_cost_share()),
            percent(found.window.cpu_saturation),
            Field::number(status.usage.as_ref().map(|usage| usage.real_s)),
            Field::number(status.usage.as_ref().map(|usage| mib(usage.peak_memory_bytes as f64))),
            notes(status),
        ]);
        table.push(fields);
    }
    Named::new("writers", "Concurrent writers (docs/CONCURRENCY.md):", table)
}

/// What the audit says beside its verdict.
fn notes(status: &CellStatus) -> Field {
    match &status.audit {
        Some(audit) if !audit.notes.is_empty() => Field::Notes(audit.notes.clone()),
        _ => Field::Missing,
    }
}

/// A table with the name that programs know it by, and what readers see above it.
pub(crate) struct Named {
    name: &'static str,
    title: &'static str,
    table: Table,
}

impl Named {
    /// A table. An empty title leaves none.
    pub(crate) fn new(name: &'static str, title: &'static str, table: Table) -> Self {
        Self { name, title, table }
    }
}

/// Prints how the cells of several writer counts stand to the laws that hold across them, a line each.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_laws(cells: &[Summarized<'_>]) -> Result<()> {
    let found = cells.iter().filter_map(|cell| Some(across::CellOf { plan: cell.plan, found: cell.writers.as_ref()? }));
    across::laws(&found.collect::<Vec<_>>()).iter().try_for_each(|line| output::print(line))
}

/// The loads of cells. For readers, those at some versions, and no cells without loads but those of their samples.
pub(crate) fn loads(cells: &[Summarized<'_>], format: OutputFormat, for_readers: Shown) -> Named {
    let is_short = matches!(format, OutputFormat::Text);
    let shown = if is_short { for_readers } else { Shown::All };
    let has_loads = |cell: &&Summarized<'_>| {
        let is_more = |load: &loads::LoadSummary| load.kind != OperationKind::ColdOpen || load.loads_ok > 1;
        !is_short || cell.summary.loads.iter().any(is_more)
    };
    let rows =
        cells.iter().filter(has_loads).flat_map(|cell| loads::rows(cell.plan, cell.status, &cell.summary.loads, shown));
    Named::new("loads", "Loads (docs/LOADS.md):", Table::of(&rows.collect::<Vec<_>>()))
}

/// The growth of the metadata, and what it comes to.
pub(crate) fn projection(cells: &[Summarized<'_>], study: Option<&Study>) -> Named {
    let measured: Vec<Measured<'_>> = cells.iter().map(Summarized::measured).collect();
    let title = "Growth of the metadata, and the fitted line at 1,000,000 active files:";
    Named::new("projection", title, Table::of(&projection::rows(study, &measured)))
}

/// Prints tables: for readers one below the other, without those that are empty; as one JSON document of them all; as
/// CSV, which holds one table, the first.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print(tables: &[Named], format: OutputFormat) -> Result<()> {
    match format {
        OutputFormat::Json => {
            let document = tables.iter().map(|named| (named.name.to_owned(), named.table.to_json()));
            let document = serde_json::Value::Object(document.collect());
            output::print(&serde_json::to_string_pretty(&document)?)
        }
        OutputFormat::Csv => tables.first().map_or(Ok(()), |named| output::print_table(&named.table, format)),
        OutputFormat::Text => {
            for (number, named) in tables.iter().filter(|named| !named.table.is_empty()).enumerate() {
                if number > 0 {
                    output::print("")?;
                }
                if !named.title.is_empty() {
                    output::print(named.title)?;
                }
                output::print_table(&named.table, format)?;
            }
            Ok(())
        }
    }
}
