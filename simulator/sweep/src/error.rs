//! Why can a sweep not be read, run or kept?

use std::path::{Path, PathBuf};

use lakemark_simulator::CellError;

/// Why a sweep cannot be read, run or kept. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A grid is not what it should be.
    #[error("{origin}: {message}")]
    Grid {
        /// The file, or the options, that it came from.
        origin: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A cell was refused.
    #[error("{origin}: {reason}")]
    Cell {
        /// The file, or the options, that it came from, and which cell.
        origin: String,
        /// Why.
        reason: CellError,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried: `read`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// A Parquet file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Rows that do not belong together.
    #[error("{0}")]
    Rows(String),
}

impl SweepError {
    pub(crate) fn grid(origin: &str, message: impl Into<String>) -> Self {
        Self::Grid { origin: origin.to_owned(), message: message.into() }
    }

    pub(crate) fn io(action: &'static str, path: &Path, reason: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), reason }
    }

    pub(crate) fn parquet(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Parquet { path: path.to_owned(), reason: reason.to_string() }
    }
}
