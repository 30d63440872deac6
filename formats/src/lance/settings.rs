//! The settings of a Lance cell: their names, values and defaults.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use ::lance::session::CacheSpec;
use lakemark_core::table::Setting;

use crate::settings::Settings;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "max-retries",
        default: "20",
        help: "tries of a commit in all, the first included: a whole number from 0, which counts as 1; the library's is \
               20. With 0 an overwrite fails, too, if the handle is behind",
    },
    Setting {
        name: "retry-timeout-s",
        default: "30",
        help: "seconds after the first try in which lost commits are tried again; takes the place of \
               LANCE_COMMIT_RETRY_TIMEOUT_SECS",
    },
    Setting { name: "stable-row-ids", default: "false", help: "create the table with stable row ids: true or false" },
    Setting { name: "statistics", default: "none", help: "none: a Lance manifest holds no column statistics" },
    Setting {
        name: "metadata-cache-mib",
        default: "16",
        help: "size of each process' cache of manifests in MiB: a whole number from 1, or library; the library's is 1024, \
               which two hundred writers in one process fill with some 50 MiB each",
    },
    Setting {
        name: "version-hint",
        default: "auto",
        help: "the file that names the newest version: auto (where listings have no order, as the library does), on \
               (anywhere, by telling the library that listings have no order), or off (where they have none, this takes \
               LANCE_USE_VERSION_HINT=0 in the environment, which the library reads once)",
    },
    Setting {
        name: "cleanup",
        default: "off",
        help: "versions between cleanups by the writer whose commit completes them, which remove all older versions \
               (lance.auto_cleanup.interval, with an older_than of 0 s): off or a whole number from 1; the library's is off",
    },
];

/// Variable by which the library turns its version hint off.
const HINT_VARIABLE: &str = "LANCE_USE_VERSION_HINT";

/// When the file that names the newest version is written and read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum VersionHint {
    Auto,
    On,
    Off,
}

/// The settings, read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) max_retries: u32,
    pub(super) retry_timeout: Duration,
    pub(super) stable_row_ids: bool,
    pub(super) version_hint: VersionHint,
    /// None: the library's.
    pub(super) metadata_cache_mib: Option<usize>,
    /// Versions between cleanups.
    pub(super) cleanup: Option<u64>,
}

impl Options {
    /// Reads settings; those not given have their defaults.
    ///
    /// # Errors
    ///
    /// One line that names the setting, its value and what is allowed.
    pub(super) fn resolve(given: &BTreeMap<String, String>) -> Result<Self, String> {
        let settings = Settings::new(SETTINGS, given);
        let hints = [("auto", VersionHint::Auto), ("on", VersionHint::On), ("off", VersionHint::Off)];
        settings.one_of("statistics", &[("none", ())])?;
        Ok(Self {
            max_retries: settings.number("max-retries", 0)?,
            retry_timeout: settings.read("retry-timeout-s", "a number above 0", |value| {
                let timeout = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
                (!timeout.is_zero()).then_some(timeout)
            })?,
            stable_row_ids: settings.flag("stable-row-ids")?,
            version_hint: settings.one_of("version-hint", &hints)?,
            metadata_cache_mib: settings.number_or("metadata-cache-mib", "library", 1)?,
            cleanup: settings.number_or("cleanup", "off", 1)?,
        })
    }

    /// Size of the cache that holds manifests.
    pub(super) fn metadata_cache(&self) -> CacheSpec {
        self.metadata_cache_mib.map_or(CacheSpec::Default, |mib| CacheSpec::Size(mib.saturating_mul(1 << 20)))
    }

    /// Checks that the version hint is what the settings say, where the environment has a part in it.
    ///
    /// # Errors
    ///
    /// One line, if the library would do otherwise.
    pub(super) fn check_hint(&self, ordered_list: bool) -> Result<(), String> {
        self.check_hint_with(ordered_list, env::var(HINT_VARIABLE).ok().as_deref())
    }

    fn check_hint_with(&self, ordered_list: bool, variable: Option<&str>) -> Result<(), String> {
        let disabled = variable.is_some_and(|value| {
            let value = value.trim();
            ["0", "false", "off"].iter().any(|off| value.eq_ignore_ascii_case(off))
        });
        match self.version_hint {
            VersionHint::Off if !ordered_list && !disabled => Err(format!(
                "version-hint is `off`; on a store whose listings have no order it takes {HINT_VARIABLE}=0 in the \
                 environment"
            )),
            VersionHint::Auto | VersionHint::On if disabled => {
                Err(format!("{HINT_VARIABLE} turns the version hint off; version-hint must be off as well"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lance_table::io::commit::CommitConfig;

    use super::*;

    fn resolve(settings: &[(&str, &str)]) -> Result<Options, String> {
        Options::resolve(&crate::settings::given(settings))
    }

    #[test]
    fn defaults_are_the_librarys() {
        let options = resolve(&[]).unwrap();
        assert_eq!(options.max_retries, CommitConfig::default().num_retries);
        // The library says in its documentation only what these are.
        assert_eq!(options.retry_timeout, Duration::from_secs(30));
        assert!(!options.stable_row_ids);
        assert_eq!(options.version_hint, VersionHint::Auto);
        assert_eq!(options.cleanup, None);
        // The one that is not: many writers share a process here.
        assert_eq!(options.metadata_cache_mib, Some(16));
        assert_eq!(resolve(&[("metadata-cache-mib", "library")]).unwrap().metadata_cache_mib, None);
    }

    #[test]
    fn refused_settings_say_what_is_allowed() {
        for (name, value, allowed) in [
            ("max-retries", "-1", "a whole number from 0"),
            ("retry-timeout-s", "0", "a number above 0"),
            ("retry-timeout-s", "NaN", "a number above 0"),
            ("stable-row-ids", "yes", "true or false"),
            ("statistics", "minmax", "none"),
            ("version-hint", "true", "auto or on or off"),
            ("metadata-cache-mib", "0", "library or a whole number from 1"),
            ("cleanup", "0", "off or a whole number from 1"),
        ] {
            assert_eq!(resolve(&[(name, value)]), Err(format!("{name} is `{value}`; it must be {allowed}")));
        }
        let half = resolve(&[("retry-timeout-s", "0.5")]).unwrap();
        assert_eq!(half.retry_timeout, Duration::from_millis(500));
    }

    #[test]
    fn every_setting_is_read() {
        for setting in SETTINGS {
            assert!(resolve(&[(setting.name, "\u{0}")]).is_err(), "{} takes any value", setting.name);
        }
    }

    #[test]
    fn the_hint_is_what_the_settings_say_or_refused() {
        let fits = |hint: &str, ordered_list, variable| {
            resolve(&[("version-hint", hint)]).unwrap().check_hint_with(ordered_list, variable).is_ok()
        };
        assert!(fits("auto", true, None) && fits("auto", false, Some("1")) && fits("on", true, None));
        assert!(fits("off", true, None) && fits("off", false, Some("0")) && fits("off", false, Some(" FALSE ")));
        assert!(!fits("off", false, None) && !fits("auto", false, Some("0")) && !fits("on", true, Some("off")));
    }
}
