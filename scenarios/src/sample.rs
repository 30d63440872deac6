//! How much metadata a table has at one version: what a cold open reads, and what lies under the table.

use std::collections::{BTreeMap, BTreeSet};

use lakemark_core::clock;
use lakemark_core::table::{ActiveFiles, OperationResult, Site, Table};
use lakemark_results::record::{Extent, MetadataSample, Method, OperationKind, Outcome, Request};

use crate::operation::{Measured, measure};
use crate::{Bench, ScenarioError};

/// A handle and the list of its active data files.
pub(crate) type Loaded = (Box<dyn Table>, ActiveFiles);

/// Loads the table as a new process would: a new handle, client and caches, and the full list of active data files.
pub(crate) async fn cold_open(bench: &Bench, site: &Site) -> Measured<Loaded> {
    measure(&site.writer, OperationKind::ColdOpen, version, load(bench, site)).await
}

/// The version that a load is of.
pub(crate) fn version<T>((_, files): &(T, ActiveFiles)) -> Option<u64> {
    Some(files.version)
}

/// Opens the table and brings the list of its active data files into memory.
pub(crate) async fn load(bench: &Bench, site: &Site) -> OperationResult<Loaded> {
    let mut table = bench.format.open(site).await?;
    let files = table.files().await?;
    Ok((table, files))
}

/// Emits an operation that everything else depends on; gives its value.
///
/// # Errors
/// If the operation failed.
pub(crate) fn finish<T>(bench: &Bench, what: &str, measured: Measured<T>) -> Result<T, ScenarioError> {
    measured.emit(bench.sink.as_ref()).map_err(|source| ScenarioError::Operation { what: what.to_owned(), source })
}

/// Bytes that requests wrote.
pub(crate) fn written(requests: &[Request]) -> u64 {
    let had_effect = |request: &&Request| request.outcome == Outcome::Ok;
    requests.iter().filter(had_effect).map(|request| request.written_bytes).sum()
}

/// The size of the metadata, as a cold open found it.
pub(crate) fn metadata(
    bench: &Bench,
    cold_open: &Measured<Loaded>,
    appends: u64,
    written_bytes: u64,
) -> MetadataSample {
    clock::frozen(|| {
        let (active, active_by_class) = active_metadata(bench, &cold_open.requests);
        let (retained, retained_by_class) = retained_metadata(bench);
        MetadataSample {
            appends,
            active,
            active_by_class,
            retained,
            retained_by_class,
            written_bytes,
            load_latency_us: cold_open.record.latency_us,
        }
    })
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
