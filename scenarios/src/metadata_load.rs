//! Loads of the metadata: one writer appends as in sequential commits, and at chosen versions readers load the table in
//! each way that its library has.
//!
//! A load ends when the full list of active data files is in memory; the shallow open, which has no list, is the
//! exception that its name tells. While loads run the writer waits, so that the commits are those of
//! `sequential-commit`, request for request.

use std::collections::{BTreeMap, BTreeSet};

use lakemark_core::table::{ActiveFiles, Site};
use lakemark_results::loads::kind_name;
use lakemark_results::record::{Check, OperationKind};
use serde_json::Value;

use crate::beside::{Beside, READERS_BESIDE};
use crate::files::{FILE_BYTES, FILES, ROWS};
use crate::operation::measure;
use crate::parameters::{self, Kind, Parameter};
use crate::sample::{self, Loaded, finish};
use crate::series::{APPENDS, SAMPLE_AT, Series};
use crate::{Bench, ScenarioError, ScenarioInfo};

/// What the scenario is.
pub const INFO: ScenarioInfo = ScenarioInfo {
    name: "metadata-load",
    about: "sequential-commit, with loads at chosen versions: cold open, fresh handle, refresh, shallow open",
    parameters: &[APPENDS, FILES, ROWS, FILE_BYTES, SAMPLE_AT, LOAD_AT, LOADS, BEHIND, READERS_BESIDE],
};

const LOAD_AT: Parameter = Parameter {
    name: "load-at",
    default: "auto",
    kind: Kind::Versions,
    help: "appends after which the table is loaded in each way; auto is 1, 10, 100, each thousandth and the last",
};

const LOADS: Parameter = Parameter {
    name: "loads",
    default: "5",
    kind: Kind::Count { min: 1, max: 1_000 },
    help: "times that the table is loaded in each way, each time by a new reader",
};

const BEHIND: Parameter = Parameter {
    name: "behind",
    default: "10",
    kind: Kind::Count { min: 1, max: 10_000_000 },
    help: "appends that a handle is behind before it is refreshed; fewer where the table has no more",
};

/// Runs the scenario with resolved parameters.
///
/// # Errors
/// If the table cannot be created, opened, loaded or read back, or appends fail one after another.
pub async fn run(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Result<(), ScenarioError> {
    let appends = parameters::count(parameters, APPENDS.name);
    let sample_at: BTreeSet<u64> = parameters::versions(parameters, SAMPLE_AT.name, appends).into_iter().collect();
    let mut series = Series::start(bench, parameters).await?;
    let mut loads = Loads::new(bench, parameters, appends);
    let beside = Beside::start(bench, parameters);
    // In a block of its own, so that readers are stopped whatever becomes of the writer.
    let ran = async {
        loads.prepare(&mut series).await?;
        while series.appends() < appends {
            series.append().await?;
            beside.acknowledge(series.acknowledged_files());
            loads.prepare(&mut series).await?;
            let is_sample = sample_at.contains(&series.appends());
            if loads.at.contains(&series.appends()) {
                loads.run(&mut series, is_sample).await?;
            } else if is_sample {
                series.sample().await?;
            }
        }
        Ok(())
    }
    .await;
    let read_beside = beside.stop().await;
    ran?;
    let mut checks = vec![loads.found.check("every load found every acknowledged file")];
    checks.extend(read_beside?.map(|found| found.check("every load beside the writer found what was acknowledged")));
    series.audit(checks).await
}

/// The loads of a cell.
struct Loads<'a> {
    bench: &'a Bench,
    at: BTreeSet<u64>,
    times: u64,
    behind: u64,
    unsupported: BTreeSet<&'static str>,
    /// Handles that wait to be refreshed, by the appends at which they will be.
    waiting: BTreeMap<u64, Vec<(Site, Loaded)>>,
    found: Found,
}

impl<'a> Loads<'a> {
    fn new(bench: &'a Bench, parameters: &BTreeMap<String, Value>, appends: u64) -> Self {
        Self {
            bench,
            at: parameters::versions(parameters, LOAD_AT.name, appends).into_iter().collect(),
            times: parameters::count(parameters, LOADS.name),
            behind: parameters::count(parameters, BEHIND.name),
            unsupported: bench.format.info().unsupported.iter().map(|unsupported| unsupported.what).collect(),
            waiting: BTreeMap::new(),
            found: Found::default(),
        }
    }

    fn supports(&self, kind: OperationKind) -> bool {
        !self.unsupported.contains(kind_name(kind))
    }

    /// Opens the handles that fall behind from now on, until they are refreshed. They are of no measurement.
    async fn prepare(&mut self, series: &mut Series<'_>) -> Result<(), ScenarioError> {
        if !self.supports(OperationKind::Refresh) {
            return Ok(());
        }
        let now = series.appends();
        // From the start, handles wait for every load that comes before there are so many appends.
        let first = if now == 0 { 1 } else { now + self.behind };
        for at in self.at.range(first..=now + self.behind).copied().collect::<Vec<_>>() {
            for _ in 0..self.times {
                let site = series.reader();
                let mut opened = sample::cold_open(self.bench, &site).await;
                opened.record.excluded = true;
                let loaded = finish(self.bench, "open a handle to be refreshed", opened)?;
                self.found.add(&loaded.1, series);
                self.waiting.entry(at).or_default().push((site, loaded));
            }
        }
        Ok(())
    }

    /// Loads the table in each way, each time by a reader of its own; the first cold open measures the metadata, if it
    /// is wanted.
    async fn run(&mut self, series: &mut Series<'_>, is_sample: bool) -> Result<(), ScenarioError> {
        for time in 0..self.times {
            let (site, (table, files)) = if is_sample && time == 0 {
                series.sample().await?
            } else {
                let site = series.reader();
                let opened = sample::cold_open(self.bench, &site).await;
                (site, finish(self.bench, "open the table cold", opened)?)
            };
            self.found.add(&files, series);
            if self.supports(OperationKind::FreshHandle) {
                // In the process of the cold open: what its handles share is there already, of this very version.
                let load = async {
                    let mut fresh = table.fresh().await?;
                    let files = fresh.files().await?;
                    Ok((fresh, files))
                };
                let fresh = measure(&site.writer, OperationKind::FreshHandle, sample::version, load).await;
                let (_, files) = finish(self.bench, "load the table with a fresh handle", fresh)?;
                self.found.add(&files, series);
            }
        }
        for (site, (mut table, _)) in self.waiting.remove(&series.appends()).unwrap_or_default() {
            let load = async {
                table.refresh().await?;
                Ok(((), table.files().await?))
            };
            let refreshed = measure(&site.writer, OperationKind::Refresh, sample::version, load).await;
            let ((), files) = finish(self.bench, "refresh a handle", refreshed)?;
            self.found.add(&files, series);
        }
        if self.supports(OperationKind::ShallowOpen) {
            for _ in 0..self.times {
                let site = series.reader();
                let open = self.bench.format.open_shallow(&site);
                let opened = measure(&site.writer, OperationKind::ShallowOpen, |version| Some(*version), open).await;
                finish(self.bench, "open the table without its files", opened)?;
            }
        }
        Ok(())
    }
}

/// What loads found, against what the writer was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    loads: u64,
    wrong: u64,
    /// The first load that found other files.
    example: Option<String>,
}

impl Found {
    fn add(&mut self, files: &ActiveFiles, series: &Series<'_>) {
        self.add_count(files, series.acknowledged_files(), series.files_max());
    }

    /// Adds a load that must have found so many files.
    pub(crate) fn add_count(&mut self, files: &ActiveFiles, least: u64, most: u64) {
        let found = files.paths.len() as u64;
        self.loads += 1;
        if !(least..=most).contains(&found) {
            self.wrong += 1;
            let version = files.version;
            self.example
                .get_or_insert_with(|| format!("; version {version} with {found} files, not {least} to {most}"));
        }
    }

    /// Adds what others found.
    pub(crate) fn merge(&mut self, other: Self) {
        self.loads += other.loads;
        self.wrong += other.wrong;
        self.example = self.example.take().or(other.example);
    }

    fn check(&self, name: &str) -> Check {
        let example = self.example.as_deref().unwrap_or_default();
        let detail = format!("{} loads, {} with other files{example}", self.loads, self.wrong);
        Check { name: name.to_owned(), passed: self.wrong == 0 && self.loads > 0, detail }
    }
}

#[cfg(test)]
mod tests;
