//! The settings of a Delta cell: their names, values and defaults.

use std::collections::BTreeMap;

use deltalake::kernel::transaction::CommitProperties;
use lakemark_core::table::Setting;

use crate::settings::Settings;

/// Commits between checkpoints, if the table does not say.
pub(super) const LIBRARY_CHECKPOINT_INTERVAL: u64 = 100;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "checkpoint-interval",
        default: "100",
        help: "commits between checkpoints (delta.checkpointInterval): a whole number from 1; the library's is 100",
    },
    Setting {
        name: "max-retries",
        default: "15",
        help: "tries of a commit after one that lost: a whole number from 0; the library's is 15. With 0 a handle that \
               is behind fails without a try until it is refreshed",
    },
    Setting {
        name: "statistics",
        default: "none",
        help: "statistics in each add action: none, or minmax (row count, minimum, maximum and null count)",
    },
    Setting {
        name: "post-commit-checkpoint",
        default: "true",
        help: "whether the writer whose commit completes an interval writes the checkpoint: true or false; \
               the library's is true",
    },
    Setting {
        name: "cleanup-expired-logs",
        default: "true",
        help: "whether a writer lists the whole log after each commit and removes what is older than 30 days: \
               true or false; the library's is true",
    },
    Setting {
        name: "path",
        default: "full",
        help: "how much of a commit runs: full (the library's commit loop and post-commit hooks), \
               log-and-checkpoint (the write of the log entry, and checkpoints), or log-only (that write alone); \
               without the loop each commit has one try, and the handle keeps no list of files",
    },
    Setting {
        name: "append-table",
        default: "handle",
        help: "the library's table that appends: handle (DeltaTable), or blind (BlindDeltaTable: it loads no list of \
               files, tries each commit once, and writes no checkpoint); blind takes path=full only",
    },
];

/// How much of a commit runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CommitPath {
    Full,
    LogAndCheckpoint,
    LogOnly,
}

/// The settings, read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Options {
    pub(super) checkpoint_interval: u64,
    pub(super) max_retries: usize,
    pub(super) statistics: bool,
    pub(super) post_commit_checkpoint: bool,
    pub(super) cleanup_expired_logs: bool,
    pub(super) path: CommitPath,
    /// Whether the library's blind table appends.
    pub(super) blind: bool,
}

impl Options {
    /// Reads settings; those not given have their defaults.
    ///
    /// # Errors
    ///
    /// One line that names the setting, its value and what is allowed.
    pub(super) fn resolve(given: &BTreeMap<String, String>) -> Result<Self, String> {
        let settings = Settings::new(SETTINGS, given);
        let paths = [
            ("full", CommitPath::Full),
            ("log-and-checkpoint", CommitPath::LogAndCheckpoint),
            ("log-only", CommitPath::LogOnly),
        ];
        let options = Self {
            checkpoint_interval: settings.number("checkpoint-interval", 1)?,
            max_retries: settings.number("max-retries", 0)?,
            statistics: settings.one_of("statistics", &[("none", false), ("minmax", true)])?,
            post_commit_checkpoint: settings.flag("post-commit-checkpoint")?,
            cleanup_expired_logs: settings.flag("cleanup-expired-logs")?,
            path: settings.one_of("path", &paths)?,
            blind: settings.one_of("append-table", &[("handle", false), ("blind", true)])?,
        };
        if options.blind && options.path != CommitPath::Full {
            return Err(format!("path is `{}`; with append-table=blind it must be full", settings.text("path")));
        }
        Ok(options)
    }

    /// What a commit is made with: the library's defaults, but for what is set otherwise.
    pub(super) fn commit_properties(&self) -> CommitProperties {
        let properties = CommitProperties::default()
            .with_max_retries(self.max_retries)
            .with_create_checkpoint(self.post_commit_checkpoint);
        if self.cleanup_expired_logs { properties } else { properties.with_cleanup_expired_logs(Some(false)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(settings: &[(&str, &str)]) -> Result<Options, String> {
        Options::resolve(&crate::settings::given(settings))
    }

    #[test]
    fn defaults_are_the_librarys() {
        let options = resolve(&[]).unwrap();
        assert_eq!(options.checkpoint_interval, LIBRARY_CHECKPOINT_INTERVAL);
        let [ours, librarys] = [options.commit_properties(), CommitProperties::default()];
        assert_eq!(format!("{ours:?}"), format!("{librarys:?}"));
        assert_eq!(options.path, CommitPath::Full);
        assert!(!options.blind);
    }

    #[test]
    fn refused_settings_say_what_is_allowed() {
        for (name, value, allowed) in [
            ("checkpoint-interval", "0", "a whole number from 1"),
            ("max-retries", "-1", "a whole number from 0"),
            ("statistics", "all", "none or minmax"),
            ("cleanup-expired-logs", "no", "true or false"),
            ("path", "log", "full or log-and-checkpoint or log-only"),
            ("append-table", "none", "handle or blind"),
        ] {
            assert_eq!(resolve(&[(name, value)]), Err(format!("{name} is `{value}`; it must be {allowed}")));
        }
        let message = "path is `log-only`; with append-table=blind it must be full";
        assert_eq!(resolve(&[("path", "log-only"), ("append-table", "blind")]), Err(message.to_owned()));
        assert_eq!(resolve(&[("max-retries", "0")]).unwrap().max_retries, 0);
    }

    #[test]
    fn every_setting_is_read() {
        for setting in SETTINGS {
            assert!(resolve(&[(setting.name, "\u{0}")]).is_err(), "{} takes any value", setting.name);
        }
    }
}
