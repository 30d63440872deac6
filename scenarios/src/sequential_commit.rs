//! Sequential commits: one writer appends to one table, again and again, and the metadata grows.

use std::collections::{BTreeMap, BTreeSet};

use lakemark_core::clock;
use lakemark_core::table::{ActiveFiles, OperationResult, Site, Table};
use lakemark_results::record::{Extent, Line, MetadataSample, Method, OperationKind, Outcome, Request};
use serde_json::Value;

use crate::audit::{Effect, Ledger};
use crate::files::{self, FileMaker};
use crate::operation::{Measured, measure};
use crate::parameters::{self, Kind, Parameter};
use crate::{Bench, ScenarioError, ScenarioInfo};

/// What the scenario is.
pub const INFO: ScenarioInfo = ScenarioInfo {
    name: "sequential-commit",
    about: "appends by one writer: latency by commit, requests, and the growth of the metadata",
    parameters: &[
        Parameter {
            name: "appends",
            default: "10000",
            kind: Kind::Count { min: 1, max: 10_000_000 },
            help: "appends that the writer makes",
        },
        files::FILES,
        files::ROWS,
        files::FILE_BYTES,
        Parameter {
            name: "sample-at",
            default: "auto",
            kind: Kind::Versions,
            help: "appends after which the metadata is measured; auto is 1, 10, 100, each thousandth and the last",
        },
    ],
};

/// Appends that fail one after another before the cell is given up: one more would teach nothing.
const FAILURES_IN_A_ROW_MAX: u32 = 10;

/// Number of the first reader. Writers count from 0, so that readers never share a random stream with one.
const FIRST_READER: u32 = 1 << 16;

/// Runs the scenario with resolved parameters.
///
/// # Errors
/// If the table cannot be created, opened or read back, or appends fail one after another.
pub async fn run(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Result<(), ScenarioError> {
    let appends = parameters::count(parameters, "appends");
    let sample_at: BTreeSet<u64> = parameters::versions(parameters, "sample-at", appends).into_iter().collect();
    let files = FileMaker::new(parameters);
    let site = bench.site(0);
    let mut written_bytes = 0;

    let created = measure(&site.writer, OperationKind::Create, |()| None, bench.format.create(&site)).await;
    written_bytes += finish(bench, "create the table", created)?.1;
    let opened = measure(&site.writer, OperationKind::Open, |_| None, bench.format.open(&site)).await;
    let (mut table, _) = finish(bench, "open the table", opened)?;

    let mut ledger = Ledger::default();
    let mut failures_in_a_row = 0;
    let mut reader = FIRST_READER;
    for append in 1..=appends {
        let added = clock::frozen(|| files.of_append(append));
        let kind = OperationKind::Append;
        let measured = measure(&site.writer, kind, |version| Some(*version), table.append(&added)).await;
        measured.emit(bench.sink.as_ref());
        clock::frozen(|| {
            let paths = added.iter().map(|file| file.path.as_str());
            ledger.add(Effect::append(paths), &measured.record, &measured.attempts);
            written_bytes += written(&measured.requests);
        });
        match measured.result {
            Ok(_) => failures_in_a_row = 0,
            Err(source) => {
                failures_in_a_row += 1;
                if failures_in_a_row == FAILURES_IN_A_ROW_MAX {
                    let what = format!("append: {failures_in_a_row} failures in a row, the last");
                    return Err(ScenarioError::Operation { what, source });
                }
            }
        }
        if sample_at.contains(&append) {
            let site = bench.site(reader);
            reader += 1;
            sample(bench, &site, ledger.acknowledged(), written_bytes).await?;
        }
    }
    audit(bench, &bench.site(reader), &ledger).await
}

/// Emits an operation that everything else depends on. Gives its value and the bytes that it wrote.
fn finish<T>(bench: &Bench, what: &str, measured: Measured<T>) -> Result<(T, u64), ScenarioError> {
    measured.emit(bench.sink.as_ref());
    let bytes = written(&measured.requests);
    let value = measured.result.map_err(|source| ScenarioError::Operation { what: what.to_owned(), source })?;
    Ok((value, bytes))
}

fn written(requests: &[Request]) -> u64 {
    let had_effect = |request: &&Request| request.outcome == Outcome::Ok;
    requests.iter().filter(had_effect).map(|request| request.written_bytes).sum()
}

async fn load(bench: &Bench, site: &Site) -> OperationResult<(Box<dyn Table>, ActiveFiles)> {
    let mut table = bench.format.open(site).await?;
    let files = table.files().await?;
    Ok((table, files))
}

/// Measures the metadata: opens the table as a new reader and looks at what that read.
async fn sample(bench: &Bench, site: &Site, appends: u64, written_bytes: u64) -> Result<(), ScenarioError> {
    let version = |(_, files): &(_, ActiveFiles)| Some(files.version);
    let measured = measure(&site.writer, OperationKind::ColdOpen, version, load(bench, site)).await;
    let requests = measured.requests.clone();
    let load_latency_us = measured.record.latency_us;
    finish(bench, "open the table cold", measured)?;
    clock::frozen(|| {
        let (active, active_by_class) = active_metadata(bench, &requests);
        let (retained, retained_by_class) = retained_metadata(bench);
        bench.sink.emit(&Line::Metadata(MetadataSample {
            appends,
            active,
            active_by_class,
            retained,
            retained_by_class,
            written_bytes,
            load_latency_us,
        }));
    });
    Ok(())
}

type ByClass = BTreeMap<String, Extent>;

/// The objects that the requests read, each once and with its whole size.
fn active_metadata(bench: &Bench, requests: &[Request]) -> (Extent, ByClass) {
    let sizes: BTreeMap<String, u64> = bench.provider.objects(&format!("{}/", bench.table)).into_iter().collect();
    let read: BTreeSet<(&str, &str)> = requests
        .iter()
        .filter(|request| request.method == Method::Get && request.outcome == Outcome::Ok)
        .map(|request| (request.key.as_str(), request.class.as_str()))
        .collect();
    let size = |key: &str| sizes.get(&format!("{}/{key}", bench.table)).copied().unwrap_or_default();
    add_up(read.into_iter().map(|(key, class)| (class, size(key))))
}

/// All objects under the table. Data files are described and never written, so that all of them are metadata.
fn retained_metadata(bench: &Bench) -> (Extent, ByClass) {
    let prefix = format!("{}/", bench.table);
    let objects = bench.provider.objects(&prefix);
    add_up(objects.iter().map(|(key, size)| (bench.format.classify(key.strip_prefix(&prefix).unwrap_or(key)), *size)))
}

fn add_up<'a>(objects: impl Iterator<Item = (&'a str, u64)>) -> (Extent, ByClass) {
    let mut all = Extent::default();
    let mut by_class = ByClass::new();
    for (class, size_bytes) in objects {
        all.add(size_bytes);
        by_class.entry(class.to_owned()).or_default().add(size_bytes);
    }
    (all, by_class)
}

/// Reads the table back with a new handle and compares it with what the writer was told.
async fn audit(bench: &Bench, site: &Site, ledger: &Ledger) -> Result<(), ScenarioError> {
    let run = async {
        let (mut table, files) = load(bench, site).await?;
        Ok((files, table.commits().await?))
    };
    let measured = measure(&site.writer, OperationKind::Audit, |(files, _)| Some(files.version), run).await;
    let ((files, commits), _) = finish(bench, "read the table back for the audit", measured)?;
    clock::frozen(|| bench.sink.emit(&Line::Audit(ledger.audit(&files, &commits))));
    Ok(())
}
