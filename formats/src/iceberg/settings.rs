//! The settings of an Iceberg cell: their names, values and defaults.

use std::collections::BTreeMap;

use ::iceberg::spec::{FormatVersion, TableProperties};
use lakemark_core::table::Setting;

use crate::settings::{Settings, default};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "check-duplicate",
        default: "off",
        help: "whether an append first reads every manifest to find files that are in the table already: off or on; \
               the library's is on, and makes an append's cost grow with the number of commits",
    },
    Setting {
        name: "format-version",
        default: "2",
        help: "version of the table format: 1, 2 or 3; the library's is 2",
    },
    Setting {
        name: "statistics",
        default: "none",
        help: "statistics of each data file: none, or minmax (bounds, value count and null count of the only column)",
    },
    Setting {
        name: "max-retries",
        default: "4",
        help: "tries of a commit after one that lost (commit.retry.num-retries): a whole number from 0; \
               the library's is 4. Each try loads the table first, so that a handle that is behind loses none by it",
    },
    Setting {
        name: "retry-min-wait-ms",
        default: "100",
        help: "wait before the first retry, doubled for each further one (commit.retry.min-wait-ms): a whole number \
               from 0; the library's is 100",
    },
    Setting {
        name: "retry-max-wait-ms",
        default: "60000",
        help: "longest wait before a retry (commit.retry.max-wait-ms): a whole number from 0; the library's is 60000",
    },
    Setting {
        name: "retry-total-timeout-ms",
        default: "1800000",
        help: "sum of waits after which a commit fails (commit.retry.total-timeout-ms): a whole number from 0; \
               the library's is 1800000",
    },
    Setting {
        name: "metadata-compression",
        default: "none",
        help: "compression of metadata.json (write.metadata.compression-codec): none or gzip; the library's is none",
    },
    Setting {
        name: "scan-concurrency",
        default: "library",
        help: "manifests that a load reads at once: a whole number from 1; the library's is the number of CPUs",
    },
    Setting {
        name: "expire-snapshots-keep",
        default: "off",
        help: "snapshots that are kept, the rest being expired in a commit of its own after an append: off or a whole \
               number from 1; the library expires none by itself. It takes format-version 2 or 3",
    },
    Setting {
        name: "expire-snapshots-every",
        default: "1",
        help: "versions between expiries of snapshots, by the writer whose append completes them: a whole number from 1",
    },
    Setting {
        name: "table-path",
        default: "short",
        help: "location of the table: short (the prefix of its objects), or long (40 characters more, as a catalog that \
               chooses paths has them; each path in the metadata is as much longer)",
    },
    Setting {
        name: "pool-connections",
        default: "1",
        help: "connections to the database that each writer may open: a whole number from 1; the library's is 10, of \
               which a writer that commits one after the other uses one, or two while one is being checked in",
    },
];

/// Settings that are properties of the table.
const PROPERTIES: &[(&str, &str)] = &[
    ("max-retries", TableProperties::PROPERTY_COMMIT_NUM_RETRIES),
    ("retry-min-wait-ms", TableProperties::PROPERTY_COMMIT_MIN_RETRY_WAIT_MS),
    ("retry-max-wait-ms", TableProperties::PROPERTY_COMMIT_MAX_RETRY_WAIT_MS),
    ("retry-total-timeout-ms", TableProperties::PROPERTY_COMMIT_TOTAL_RETRY_TIME_MS),
    ("metadata-compression", TableProperties::PROPERTY_METADATA_COMPRESSION_CODEC),
];

/// The settings, read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Options {
    pub(super) check_duplicate: bool,
    pub(super) format_version: FormatVersion,
    pub(super) statistics: bool,
    /// None: as the library does.
    pub(super) scan_concurrency: Option<usize>,
    pub(super) pool_connections: u32,
    /// Snapshots to keep; none: all.
    pub(super) expire_keep: Option<usize>,
    /// Versions between expiries.
    pub(super) expire_every: u64,
    pub(super) long_path: bool,
    /// Properties to create the table with. Those at the library's default are left out, because a property adds its
    /// bytes to every metadata.json.
    pub(super) properties: Vec<(String, String)>,
}

impl Options {
    /// Reads settings; those not given have their defaults, and names that are not Iceberg's are not looked at.
    ///
    /// # Errors
    ///
    /// One line that names the setting, its value and what is allowed.
    pub(super) fn resolve(given: &BTreeMap<String, String>) -> Result<Self, String> {
        let settings = Settings::new(SETTINGS, given);
        settings.number::<u32>("max-retries", 0)?;
        for name in ["retry-min-wait-ms", "retry-max-wait-ms", "retry-total-timeout-ms"] {
            settings.number::<u64>(name, 0)?;
        }
        settings.one_of("metadata-compression", &[("none", ()), ("gzip", ())])?;
        let versions = [("1", FormatVersion::V1), ("2", FormatVersion::V2), ("3", FormatVersion::V3)];
        let options = Self {
            check_duplicate: settings.one_of("check-duplicate", &[("off", false), ("on", true)])?,
            format_version: settings.one_of("format-version", &versions)?,
            statistics: settings.one_of("statistics", &[("none", false), ("minmax", true)])?,
            scan_concurrency: settings.number_or("scan-concurrency", "library", 1)?,
            pool_connections: settings.number("pool-connections", 1)?,
            expire_keep: settings.number_or("expire-snapshots-keep", "off", 1)?,
            expire_every: settings.number("expire-snapshots-every", 1)?,
            long_path: settings.one_of("table-path", &[("short", false), ("long", true)])?,
            properties: PROPERTIES
                .iter()
                .map(|(name, property)| (*name, *property, settings.text(name)))
                .filter(|(name, _, value)| *value != default(SETTINGS, name))
                .map(|(_, property, value)| (property.to_owned(), value.to_owned()))
                .collect(),
        };
        // Snapshots of version 1 have no sequence numbers: they are told apart by counting them.
        if options.expire_keep.is_some() && options.format_version == FormatVersion::V1 {
            return Err("format-version is `1`; with expire-snapshots-keep it must be 2 or 3".to_owned());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn resolve(settings: &[(&str, &str)]) -> Result<Options, String> {
        Options::resolve(&crate::settings::given(settings))
    }

    #[test]
    fn defaults_are_the_librarys() {
        let library = TableProperties::try_from(&HashMap::new()).unwrap();
        let settings: HashMap<_, _> = PROPERTIES
            .iter()
            .map(|(name, property)| ((*property).to_owned(), default(SETTINGS, name).to_owned()))
            .collect();
        let ours = TableProperties::try_from(&settings).unwrap();
        assert_eq!(ours.commit_num_retries, library.commit_num_retries);
        assert_eq!(ours.commit_min_retry_wait_ms, library.commit_min_retry_wait_ms);
        assert_eq!(ours.commit_max_retry_wait_ms, library.commit_max_retry_wait_ms);
        assert_eq!(ours.commit_total_retry_timeout_ms, library.commit_total_retry_timeout_ms);
        assert_eq!(ours.metadata_compression_codec, library.metadata_compression_codec);
        assert_eq!(settings.len(), PROPERTIES.len());
        assert_eq!(resolve(&[]).unwrap().properties, []);
    }

    #[test]
    fn what_differs_from_the_default_becomes_a_property() {
        let options =
            resolve(&[("max-retries", "9"), ("retry-min-wait-ms", "100"), ("metadata-compression", "gzip")]).unwrap();
        let expected = [("commit.retry.num-retries", "9"), ("write.metadata.compression-codec", "gzip")];
        assert_eq!(options.properties, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_bad_value_is_named_with_what_is_allowed() {
        for (name, value, allowed) in [
            ("check-duplicate", "yes", "off or on"),
            ("format-version", "4", "1 or 2 or 3"),
            ("statistics", "all", "none or minmax"),
            ("max-retries", "-1", "a whole number from 0"),
            ("retry-total-timeout-ms", "1h", "a whole number from 0"),
            ("metadata-compression", "zstd", "none or gzip"),
            ("scan-concurrency", "0", "library or a whole number from 1"),
            ("pool-connections", "0", "a whole number from 1"),
            ("expire-snapshots-keep", "0", "off or a whole number from 1"),
            ("expire-snapshots-every", "0", "a whole number from 1"),
            ("table-path", "longer", "short or long"),
        ] {
            assert_eq!(resolve(&[(name, value)]), Err(format!("{name} is `{value}`; it must be {allowed}")));
        }
        let message = "format-version is `1`; with expire-snapshots-keep it must be 2 or 3";
        assert_eq!(resolve(&[("format-version", "1"), ("expire-snapshots-keep", "5")]), Err(message.to_owned()));
    }

    #[test]
    fn every_setting_is_read() {
        for setting in SETTINGS {
            assert!(resolve(&[(setting.name, "\u{0}")]).is_err(), "{} takes any value", setting.name);
        }
    }
}
