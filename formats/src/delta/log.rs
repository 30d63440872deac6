//! The names of objects in a table's log.

use lakemark_core::store::ListQuery;
use lakemark_core::table::{OperationError, OperationResult, Site};

/// The log, relative to the table.
pub(super) const LOG: &str = "_delta_log/";

/// Version that the name of an object in the log stands for: 20 digits and `.json`.
pub(super) fn commit_version(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    let is_version = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_version.then(|| digits.parse().ok()).flatten()
}

/// Versions after the one that created the table, up to the newest that a handle knows of. Found by listing the log,
/// which is independent of the library and has no need to read each commit.
pub(super) async fn versions(site: &Site, newest: u64) -> OperationResult<Vec<u64>> {
    let prefix = format!("{}/{LOG}", site.table);
    let mut query = ListQuery { prefix, ..ListQuery::default() };
    let mut versions = Vec::new();
    loop {
        let page = site.store.list(&query).await.map_err(OperationError::other)?;
        let names = page.objects.iter().filter_map(|object| object.key.strip_prefix(&query.prefix));
        versions.extend(names.filter_map(commit_version).filter(|version| (1..=newest).contains(version)));
        match page.next {
            Some(token) => query.token = Some(token),
            None => break,
        }
    }
    versions.sort_unstable();
    Ok(versions)
}
