//! The commands, one file each, and how a command can end.

pub(crate) mod fit;
pub(crate) mod list;
pub(crate) mod reproduce;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod tables;
pub(crate) mod trace;

use std::process::ExitCode;

use lakemark_results::manifest::{CellState, CellStatus};

/// How a command ended; its exit status.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Ended {
    /// Everything ran and was verified: 0.
    Verified,
    /// At least one cell failed its audit, so its figures must not be used: 3.
    Invalid,
    /// At least one cell, or the command itself, failed: 1.
    Failed,
    /// The command was not understood: 2.
    Usage,
    /// Stopped by a signal; what was measured is kept: 130.
    Interrupted,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(match ended {
            Ended::Verified => 0_u8,
            Ended::Failed => 1,
            Ended::Usage => 2,
            Ended::Invalid => 3,
            Ended::Interrupted => 130,
        })
    }
}

impl Ended {
    /// The worst of what cells ended as; a cell that never started counts as interrupted.
    pub(crate) fn of<'a>(statuses: impl Iterator<Item = Option<&'a CellStatus>>) -> Self {
        statuses
            .map(|status| match status.map(|status| status.state) {
                Some(CellState::Ok) => Self::Verified,
                Some(CellState::Invalid) => Self::Invalid,
                Some(CellState::Error) => Self::Failed,
                Some(CellState::Interrupted) | None => Self::Interrupted,
            })
            .max()
            .unwrap_or(Self::Verified)
    }
}
