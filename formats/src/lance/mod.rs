//! Lance: appends and loads through the `lance` crate, on the harness' store.

mod failure;
mod handle;
mod settings;
mod store;
mod versions;

use std::collections::{BTreeMap, HashMap};

use ::lance::dataset::CommitBuilder;
use ::lance::dataset::transaction::{Operation, Transaction};
use ::lance::deps::arrow_schema::{DataType, Field, Schema as ArrowSchema};
use async_trait::async_trait;
use lakemark_core::table::{Format, FormatInfo, OperationError, OperationResult, Site, Table, Unsupported};
use lance_core::datatypes::Schema;
use lance_table::format::WriterVersion;

use failure::failure;
use handle::Handle;
use settings::{Options, SETTINGS};
use store::{session, uri};
use versions::{VERSIONS, manifest_version};

const TRANSACTIONS: &str = "_transactions/";
const DATA: &str = "data/";
const VERSION_HINT: &str = "_versions/latest_version_hint.json";

/// What the table says of cleanups, for every writer: versions between them, and the age that spares a version.
const CLEANUP_INTERVAL: &str = "lance.auto_cleanup.interval";
const CLEANUP_AGE: &str = "lance.auto_cleanup.older_than";

/// Why no load of a Lance table is shallow.
const NO_SHALLOW_OPEN: &str = "a Lance manifest holds the list of fragments: no open is without it";

const UNSUPPORTED: &[Unsupported] = &[
    Unsupported { what: "shallow_open", why: NO_SHALLOW_OPEN },
    Unsupported {
        what: "transactions=inline",
        why: "the library writes every transaction to a file of its own, beside the copy in the manifest; no public option \
              leaves out the file",
    },
    Unsupported {
        what: "transactions=separate",
        why: "the library copies every transaction of up to 20 MiB into the manifest, beside its file; no public option \
              leaves out the copy",
    },
];

/// The Lance table format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lance;

/// Library that commits, with its version. All crates of the library are released together under one version; this
/// is the one that it writes into manifests.
pub fn library_version() -> String {
    let WriterVersion { library, version, prerelease, .. } = WriterVersion::default();
    match prerelease {
        Some(prerelease) => format!("{library} {version}-{prerelease}"),
        None => format!("{library} {version}"),
    }
}

/// Checks values of the format's settings; those not given have their defaults.
///
/// # Errors
///
/// One line that names the setting, its value and what is allowed.
pub fn check_settings(settings: &BTreeMap<String, String>) -> Result<(), String> {
    Options::resolve(settings).map(drop)
}

#[async_trait]
impl Format for Lance {
    fn info(&self) -> FormatInfo {
        FormatInfo {
            name: "lance",
            library: library_version(),
            catalogs: &["none"],
            settings: SETTINGS,
            unsupported: UNSUPPORTED,
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key == VERSION_HINT {
            "version_hint"
        } else if key == VERSIONS || key == VERSIONS.trim_end_matches('/') {
            "listing"
        } else if key.starts_with(VERSIONS) && key.ends_with(".manifest") {
            "manifest"
        } else if key.starts_with(TRANSACTIONS) && key.ends_with(".txn") {
            "transaction"
        } else if key.starts_with(DATA) {
            "data"
        } else {
            "other"
        }
    }

    fn publishes(&self, key: &str) -> bool {
        key.strip_prefix(VERSIONS).and_then(manifest_version).is_some()
    }

    /// The library asks its client for 3, because the layer above it (AIMD) tries again as well.
    fn client_retries(&self) -> u32 {
        3
    }

    async fn create(&self, site: &Site) -> OperationResult<()> {
        let options = options(site)?;
        let field = Field::new("id", DataType::Int64, true);
        let schema = Schema::try_from(&ArrowSchema::new(vec![field])).map_err(failure)?;
        let config_upsert_values = options.cleanup.map(|versions| {
            HashMap::from([
                (CLEANUP_INTERVAL.to_owned(), versions.to_string()),
                (CLEANUP_AGE.to_owned(), "0s".to_owned()),
            ])
        });
        let operation =
            Operation::Overwrite { fragments: Vec::new(), schema, config_upsert_values, initial_bases: None };
        let uri = uri(&site.table)?;
        CommitBuilder::new(uri.as_str())
            .with_session(session(site.store.clone(), &options))
            .use_stable_row_ids(options.stable_row_ids)
            // Without retries an overwrite is strict: it fails where the table exists already.
            .with_max_retries(0)
            .execute(Transaction::new_from_version(0, operation))
            .await
            .map_err(failure)?;
        Ok(())
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let options = options(site)?;
        let session = session(site.store.clone(), &options);
        Ok(Box::new(Handle::open(session, options, site.clone()).await?))
    }

    async fn open_shallow(&self, _site: &Site) -> OperationResult<u64> {
        Err(OperationError::other(NO_SHALLOW_OPEN))
    }
}

fn options(site: &Site) -> OperationResult<Options> {
    let options = Options::resolve(&site.settings).map_err(OperationError::other)?;
    options.check_hint(site.store.traits().ordered_list).map_err(OperationError::other)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2_MANIFEST: &str = "_versions/18446744073709551613.manifest";

    #[test]
    fn keys_have_the_formats_own_classes() {
        let classes = [
            (V2_MANIFEST, "manifest"),
            ("_versions/2.manifest", "manifest"),
            ("_versions/d9223372036854775809.manifest", "manifest"),
            ("_versions/latest_version_hint.json", "version_hint"),
            ("_versions/", "listing"),
            ("_versions", "listing"),
            ("_transactions/1-1f3a9a40-6c8d-4a3e-9d3c-3a3a4b6d4f10.txn", "transaction"),
            ("data/a.lance", "data"),
            ("_indices/1f3a9a40/index.idx", "other"),
        ];
        for (key, class) in classes {
            assert_eq!(Lance.classify(key), class, "{key}");
        }
    }

    #[test]
    fn manifests_in_place_publish() {
        for key in [V2_MANIFEST, "_versions/2.manifest"] {
            assert!(Lance.publishes(key), "{key}");
        }
        let others = [
            "_versions/18446744073709551613.manifest-1f3a9a40-6c8d-4a3e-9d3c-3a3a4b6d4f10",
            "_versions/.tmp_7.manifest_9c100374-3298-4537-afc6-f5ee7913666d",
            "_versions/d9223372036854775809.manifest",
            "_versions/latest_version_hint.json",
            "_versions/.manifest",
            "_transactions/1-a.txn",
            "data/2.manifest",
        ];
        for key in others {
            assert!(!Lance.publishes(key), "{key}");
        }
    }
}
