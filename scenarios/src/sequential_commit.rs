//! Sequential commits: one writer appends to one table, again and again, and the metadata grows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::files::{FILE_BYTES, FILES, ROWS};
use crate::series::{APPENDS, SAMPLE_AT, Series};
use crate::{Bench, ScenarioError, ScenarioInfo, parameters};

/// What the scenario is.
pub const INFO: ScenarioInfo = ScenarioInfo {
    name: "sequential-commit",
    about: "appends by one writer: latency by commit, requests, and the growth of the metadata",
    parameters: &[APPENDS, FILES, ROWS, FILE_BYTES, SAMPLE_AT],
};

/// Runs the scenario with resolved parameters.
///
/// # Errors
/// If the table cannot be created, opened or read back, or appends fail one after another.
pub async fn run(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Result<(), ScenarioError> {
    let appends = parameters::count(parameters, APPENDS.name);
    let sample_at: BTreeSet<u64> = parameters::versions(parameters, SAMPLE_AT.name, appends).into_iter().collect();
    let mut series = Series::start(bench, parameters).await?;
    while series.appends() < appends {
        series.append().await?;
        if sample_at.contains(&series.appends()) {
            series.sample().await?;
        }
    }
    series.audit(Vec::new()).await
}
