//! The tables of a run: its cells' records, read once, and what is made of them beside the command's own table.

use std::collections::BTreeMap;

use anyhow::Result;
use lakemark_results::compare::Measured;
use lakemark_results::manifest::{CellPlan, CellStatus};
use lakemark_results::published::Study;
use lakemark_results::record::OperationKind;
use lakemark_results::run::RunFolder;
use lakemark_results::summary::CellSummary;
use lakemark_results::table::{OutputFormat, Table};
use lakemark_results::{loads, projection};

use crate::output;

/// A cell and what its records come to.
pub(crate) struct Summarized<'a> {
    /// What it set out to do.
    pub(crate) plan: &'a CellPlan,
    /// How it ended.
    pub(crate) status: &'a CellStatus,
    /// What its records come to.
    pub(crate) summary: CellSummary,
}

impl Summarized<'_> {
    /// As a comparison takes it.
    pub(crate) fn measured(&self) -> Measured<'_> {
        Measured { plan: self.plan, status: self.status, summary: &self.summary }
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
        .map(|(plan, status)| Ok(Summarized { plan, status, summary: CellSummary::read(folder, &plan.id)? }))
        .collect()
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

/// The loads of cells. For readers, cells without loads but those of their samples are left out, and so are versions
/// between the powers of ten.
pub(crate) fn loads(cells: &[Summarized<'_>], format: OutputFormat) -> Named {
    let is_short = matches!(format, OutputFormat::Text);
    let has_loads = |cell: &&Summarized<'_>| {
        let is_more = |load: &loads::LoadSummary| load.kind != OperationKind::ColdOpen || load.loads_ok > 1;
        !is_short || cell.summary.loads.iter().any(is_more)
    };
    let rows = cells
        .iter()
        .filter(has_loads)
        .flat_map(|cell| loads::rows(cell.plan, cell.status, &cell.summary.loads, is_short));
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
