//! Why was a cell refused?

use std::fmt::Display;

/// Why a cell, or a protocol or trace that it names, was refused. Each message is one line that names what is wrong,
/// its value, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// A value is out of range.
    #[error("{field} is {value}; allowed: {allowed}")]
    Field {
        /// The field, with its table.
        field: String,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// No profile has this name.
    #[error("provider is {name:?}; allowed: {allowed}, or the path of a profile that ends in .toml")]
    Provider {
        /// The name given.
        name: String,
        /// Names of the built-in profiles.
        allowed: String,
    },
    /// A profile's file was refused.
    #[error("provider: {0}")]
    Profile(#[from] lakemark_stores::profile::ProfileError),
    /// No protocol has this name.
    #[error("protocol is {name:?}; allowed: {allowed}, or the path of a protocol that ends in .toml")]
    Protocol {
        /// The name given.
        name: String,
        /// Names of the built-in protocols.
        allowed: String,
    },
    /// A file could not be read.
    #[error("{field} is {path:?}: {source}")]
    Read {
        /// The field that names the file.
        field: String,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file or text is not what it should be.
    #[error("{origin}:{line}: {message}")]
    Parse {
        /// File or name.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}

impl CellError {
    pub(crate) fn field(field: impl Into<String>, value: impl Display, allowed: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), allowed: allowed.into() }
    }

    /// A TOML error in `text`, as one line.
    pub(crate) fn toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Self::Parse {
            origin: origin.to_owned(),
            line: 1 + before.matches('\n').count(),
            message: error.message().lines().collect::<Vec<_>>().join("; "),
        }
    }
}
