//! The settings of an Iceberg cell: their names, values and defaults.

use std::collections::BTreeMap;
use std::str::FromStr;

use ::iceberg::spec::{FormatVersion, TableProperties};
use lakemark_core::table::Setting;

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
               the library's is 4",
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
    pub(super) fn resolve(settings: &BTreeMap<String, String>) -> Result<Self, String> {
        let value = |name: &str| settings.get(name).map_or_else(|| default(name), String::as_str);
        let positive = |name: &str| match parsed::<u32>(name, value(name), "a whole number from 1")? {
            0 => Err(refused(name, "0", "a whole number from 1")),
            number => Ok(number),
        };
        parsed::<u32>("max-retries", value("max-retries"), "a whole number from 0")?;
        for name in ["retry-min-wait-ms", "retry-max-wait-ms", "retry-total-timeout-ms"] {
            parsed::<u64>(name, value(name), "a whole number from 0")?;
        }
        one_of("metadata-compression", value("metadata-compression"), &[("none", ()), ("gzip", ())])?;
        let switch = [("off", false), ("on", true)];
        let versions = [("1", FormatVersion::V1), ("2", FormatVersion::V2), ("3", FormatVersion::V3)];
        Ok(Self {
            check_duplicate: one_of("check-duplicate", value("check-duplicate"), &switch)?,
            format_version: one_of("format-version", value("format-version"), &versions)?,
            statistics: one_of("statistics", value("statistics"), &[("none", false), ("minmax", true)])?,
            scan_concurrency: match value("scan-concurrency") {
                "library" => None,
                _ => Some(positive("scan-concurrency")? as usize),
            },
            pool_connections: positive("pool-connections")?,
            properties: PROPERTIES
                .iter()
                .filter(|(name, _)| value(name) != default(name))
                .map(|(name, property)| ((*property).to_owned(), value(name).to_owned()))
                .collect(),
        })
    }
}

fn default(name: &str) -> &'static str {
    SETTINGS.iter().find(|setting| setting.name == name).map_or("", |setting| setting.default)
}

fn parsed<T: FromStr>(name: &str, value: &str, allowed: &str) -> Result<T, String> {
    value.parse().map_err(|_| refused(name, value, allowed))
}

fn one_of<T: Copy>(name: &str, value: &str, allowed: &[(&str, T)]) -> Result<T, String> {
    allowed
        .iter()
        .find(|(text, _)| *text == value)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| refused(name, value, &allowed.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(" or ")))
}

fn refused(name: &str, value: &str, allowed: &str) -> String {
    format!("{name} is `{value}`; it must be {allowed}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn resolve(settings: &[(&str, &str)]) -> Result<Options, String> {
        Options::resolve(&settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn defaults_are_the_librarys() {
        let library = TableProperties::try_from(&HashMap::new()).unwrap();
        let settings: HashMap<_, _> =
            PROPERTIES.iter().map(|(name, property)| ((*property).to_owned(), default(name).to_owned())).collect();
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
            ("scan-concurrency", "0", "a whole number from 1"),
            ("pool-connections", "0", "a whole number from 1"),
        ] {
            assert_eq!(resolve(&[(name, value)]), Err(format!("{name} is `{value}`; it must be {allowed}")));
        }
    }

    #[test]
    fn every_setting_is_read() {
        for setting in SETTINGS {
            assert!(resolve(&[(setting.name, "\u{0}")]).is_err(), "{} takes any value", setting.name);
        }
    }
}
