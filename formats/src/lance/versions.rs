//! The names of manifests, and the versions that they stand for.

use lakemark_core::store::ListQuery;
use lakemark_core::table::{OperationError, OperationResult, Site};

/// Where manifests are, relative to the table.
pub(super) const VERSIONS: &str = "_versions/";

/// Version that creating the table publishes.
const CREATED_VERSION: u64 = 1;

/// Version in a manifest's file name, in either naming scheme: `<version>.manifest`, or the version's distance from
/// 2^64 - 1 in 20 digits, so that the newest comes first in key order
/// (<https://lance.org/format/table/transaction/#manifest-naming-schemes>). Staged and detached manifests have none:
/// their names hold more than digits.
pub(super) fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".manifest")?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    Some(if digits.len() == 20 { u64::MAX - number } else { number })
}

/// Versions after the one that created the table. Found by the names of the manifests and not by the library: what is
/// there is what counts. Where old versions are `cleaned`, those before the oldest that is there were published too:
/// the library cleans from the oldest on, and each version is built on the one before it.
pub(super) async fn published(site: &Site, cleaned: bool) -> OperationResult<Vec<u64>> {
    let prefix = format!("{}/{VERSIONS}", site.table);
    let mut query = ListQuery { prefix: prefix.clone(), ..ListQuery::default() };
    let mut versions = Vec::new();
    loop {
        let page = site
            .store
            .list(&query)
            .await
            .map_err(|error| OperationError { outcome: error.operation_outcome(), message: error.to_string() })?;
        let names = page.objects.iter().filter_map(|object| object.key.strip_prefix(&prefix));
        versions.extend(names.filter_map(manifest_version).filter(|version| *version > CREATED_VERSION));
        match page.next {
            Some(token) => query.token = Some(token),
            None => break,
        }
    }
    versions.sort_unstable();
    if cleaned && let Some(oldest) = versions.first() {
        let gone = CREATED_VERSION + 1..*oldest;
        versions = gone.chain(versions).collect();
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_naming_schemes_give_the_version() {
        assert_eq!(manifest_version("18446744073709551613.manifest"), Some(2));
        assert_eq!(manifest_version("2.manifest"), Some(2));
        assert_eq!(manifest_version("99999999999999999999.manifest"), None);
    }
}
