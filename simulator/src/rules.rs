//! Which reading of a disputed rule holds? The places where endive-2026's text, specification and code disagree.

use serde::{Deserialize, Serialize};

use crate::error::CellError;

/// The rules on which endive-2026's text, specification and code disagree, each as a setting. The default is what the
/// corrected code of April 2026 does. That the study's arrivals are log-normal is a setting of
/// [`Arrivals`](crate::Arrivals), the sizes of its objects are in its [`Protocol`](crate::Protocol), and its three
/// windows are the three metrics of [`CellResult`](crate::CellResult).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// What the runtime's `median_ms` stands for. The study calls it the mean and draws with it as the median.
    pub runtime_scale: RuntimeScale,
    /// Work after a failed attempt's refresh (in the study a second read of the table's metadata) is paid. Its text
    /// counts five round trips an attempt and leaves this one out.
    pub extra_table_metadata_read: bool,
    /// How long a conditional put of the catalog's object takes.
    pub cas_law: CasLaw,
    /// The first attempt takes a new snapshot at the start of the commit, whatever the protocol says.
    pub refresh_before_first_attempt: bool,
    /// Which commits a ValidatedOverwrite reads up on.
    pub history: History,
    /// History reads that run at a time. The study's documents divide by 4; its code reads one after the other.
    pub history_parallelism: u32,
    /// The table's metadata is inlined in the catalog: steps that move `metadata.json` cost nothing.
    pub table_metadata_inlined: bool,
    /// When in a round trip the catalog is read or swapped.
    pub instant: Instant,
    /// The last lost attempt is followed by a refresh, with all that this costs, before the transaction gives up.
    pub abort_pays_refresh: bool,
    /// What a body adds to a request's duration.
    pub transfer: Transfer,
}

/// What a log-normal runtime's `median_ms` stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeScale {
    /// The median, as in the code.
    Median,
    /// The mean before the floor, as in the text.
    Mean,
}

/// How long a conditional put of the catalog's object takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CasLaw {
    /// The larger of a draw of the profile's conditional put and of its plain put, as in the code.
    MaxOfCasAndWrite,
    /// The profile's conditional put, as in the text.
    Cas,
}

/// Which commits a ValidatedOverwrite reads up on after a lost attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// Those to its table since its previous snapshot, but for those that the protocol skips (`V - 1`): the code.
    SincePreviousAttempt,
    /// Those to its table since its previous snapshot, all `V`: the specification's version 2.1.
    SincePreviousAttemptAll,
    /// Those to its table since the snapshot of its submission, again after each lost attempt: the posts.
    SinceSubmission,
    /// Those to any table since its previous snapshot: the code before the correction.
    AnyTable,
}

/// When in a round trip the catalog is read or swapped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instant {
    /// In the middle.
    Middle,
    /// At the end: the code before the correction.
    End,
}

/// What a body adds to a request's duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// Writes: the median grows by the per-MiB term, before the spread and the floor. Reads: nothing. The study's.
    Study,
    /// As in the emulated stores: after the spread, before the floor, for reads and writes.
    Profile,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            runtime_scale: RuntimeScale::Median,
            extra_table_metadata_read: true,
            cas_law: CasLaw::MaxOfCasAndWrite,
            refresh_before_first_attempt: false,
            history: History::SincePreviousAttempt,
            history_parallelism: 1,
            table_metadata_inlined: false,
            instant: Instant::Middle,
            abort_pays_refresh: true,
            transfer: Transfer::Study,
        }
    }
}

impl Rules {
    /// The rules for protocols beside the study's: a conditional put takes what the profile says, bodies are charged as
    /// in the emulated stores, and the last lost attempt ends the transaction at once.
    pub fn profile() -> Self {
        Self { cas_law: CasLaw::Cas, transfer: Transfer::Profile, abort_pays_refresh: false, ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<(), CellError> {
        match (1..=1_000).contains(&self.history_parallelism) {
            true => Ok(()),
            false => Err(CellError::field("rules.history_parallelism", self.history_parallelism, "1 to 1,000")),
        }
    }
}
