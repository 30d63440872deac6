//! Appends by one writer to one table, one after another: what the scenarios with a single writer share.

use std::collections::BTreeMap;

use lakemark_core::clock;
use lakemark_core::table::{Site, Table};
use lakemark_results::loads::FIRST_READER;
use lakemark_results::record::{Check, Line, OperationKind};
use serde_json::Value;

use crate::audit::{Effect, Ledger};
use crate::files::FileMaker;
use crate::operation::measure;
use crate::parameters::{Kind, Parameter};
use crate::sample::{self, finish, load, written};
use crate::{Bench, ScenarioError};

/// Parameter `appends`.
pub(crate) const APPENDS: Parameter = Parameter {
    name: "appends",
    default: "10000",
    kind: Kind::Count { min: 1, max: 10_000_000 },
    help: "appends that the writer makes",
};

/// Parameter `sample-at`.
pub(crate) const SAMPLE_AT: Parameter = Parameter {
    name: "sample-at",
    default: "auto",
    kind: Kind::Versions,
    help: "appends after which the metadata is measured; auto is 1, 10, 100, each thousandth and the last",
};

/// Appends that fail one after another before the cell is given up: one more would teach nothing.
const FAILURES_IN_A_ROW_MAX: u32 = 10;

/// A new table, its writer, and what the writer was told.
pub(crate) struct Series<'a> {
    bench: &'a Bench,
    site: Site,
    table: Box<dyn Table>,
    files: FileMaker,
    ledger: Ledger,
    /// Appends made, whatever became of them.
    appends: u64,
    failures_in_a_row: u32,
    written_bytes: u64,
    next_reader: u32,
}

impl<'a> Series<'a> {
    /// Creates the table and opens the writer's handle.
    ///
    /// # Errors
    /// If the library cannot do either.
    pub(crate) async fn start(bench: &'a Bench, parameters: &BTreeMap<String, Value>) -> Result<Self, ScenarioError> {
        let site = bench.site(0);
        let created = measure(&site.writer, OperationKind::Create, |()| None, bench.format.create(&site)).await;
        let mut written_bytes = written(&created.requests);
        finish(bench, "create the table", created)?;
        let opened = measure(&site.writer, OperationKind::Open, |_| None, bench.format.open(&site)).await;
        written_bytes += written(&opened.requests);
        let table = finish(bench, "open the table", opened)?;
        Ok(Self {
            bench,
            site,
            table,
            files: FileMaker::new(parameters),
            ledger: Ledger::default(),
            appends: 0,
            failures_in_a_row: 0,
            written_bytes,
            next_reader: FIRST_READER,
        })
    }

    /// Appends made so far.
    pub(crate) fn appends(&self) -> u64 {
        self.appends
    }

    /// Data files that the writer was told are in the table.
    pub(crate) fn acknowledged_files(&self) -> u64 {
        self.ledger.acknowledged() * self.files.per_append()
    }

    /// Most data files that may be in the table: those of appends that ended without an answer included.
    pub(crate) fn files_max(&self) -> u64 {
        self.appends * self.files.per_append()
    }

    /// Makes the next append.
    ///
    /// # Errors
    /// If it failed, and so did those before it.
    pub(crate) async fn append(&mut self) -> Result<(), ScenarioError> {
        self.appends += 1;
        let added = clock::frozen(|| self.files.of_append(self.appends));
        let append = self.table.append(&added);
        let measured = measure(&self.site.writer, OperationKind::Append, |version| Some(*version), append).await;
        clock::frozen(|| {
            let paths = added.iter().map(|file| file.path.as_str());
            self.ledger.add(Effect::append(paths), &measured.record, &measured.attempts);
            self.written_bytes += written(&measured.requests);
        });
        match measured.emit(self.bench.sink.as_ref()) {
            Ok(_) => self.failures_in_a_row = 0,
            Err(source) => {
                self.failures_in_a_row += 1;
                if self.failures_in_a_row == FAILURES_IN_A_ROW_MAX {
                    let what = format!("append: {} failures in a row, the last", self.failures_in_a_row);
                    return Err(ScenarioError::Operation { what, source });
                }
            }
        }
        Ok(())
    }

    /// A place for one more reader: a new process, as far as the store and the catalog can tell.
    pub(crate) fn reader(&mut self) -> Site {
        self.next_reader += 1;
        self.bench.site(self.next_reader - 1)
    }

    /// Measures the metadata with a cold open of a new reader, which it returns.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub(crate) async fn sample(&mut self) -> Result<(Site, sample::Loaded), ScenarioError> {
        let site = self.reader();
        let measured = sample::cold_open(self.bench, &site).await;
        let metadata = sample::metadata(self.bench, &measured, self.ledger.acknowledged(), self.written_bytes);
        let loaded = finish(self.bench, "open the table cold", measured)?;
        clock::frozen(|| self.bench.sink.emit(&Line::Metadata(metadata)));
        Ok((site, loaded))
    }

    /// Reads the table back with a new handle and compares it with what the writer was told. Other checks go behind
    /// these.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(crate) async fn audit(mut self, other: Vec<Check>) -> Result<(), ScenarioError> {
        let site = self.reader();
        let run = async {
            let (mut table, files) = load(self.bench, &site).await?;
            Ok((table.commits().await?, files))
        };
        let measured = measure(&site.writer, OperationKind::Audit, sample::version, run).await;
        let (commits, files) = finish(self.bench, "read the table back for the audit", measured)?;
        clock::frozen(|| {
            self.ledger.add_maintenance(self.table.maintenance());
            let mut audit = self.ledger.audit(&files, &commits);
            audit.checks.extend(other);
            self.bench.sink.emit(&Line::Audit(audit));
        });
        Ok(())
    }
}
