//! The catalogs that publish a table's versions: which one to use, how to open it, and the record of every
//! compare-and-swap that goes through it.

pub mod counted;
pub mod spec;
pub mod sql;

pub use counted::Counted;
pub use spec::CatalogSpec;
pub use sql::SqlDatabase;

/// Why a catalog could not be used. Messages never hold a password: sources are kept as text from which it is removed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CatalogError {
    /// The text is none of the forms of a catalog.
    #[error("catalog {value} is not known: allowed are {}", spec::FORMS)]
    Form {
        /// What was given, without what may be a password.
        value: String,
    },
    /// The URL is not one.
    #[error("catalog URL {scheme}://… cannot be read: {reason}")]
    Url {
        /// Its scheme.
        scheme: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A database that every connection would have to itself.
    #[error(
        "catalog sqlite:{value} is in memory, where each connection has a database of its own: use sqlite or sqlite:PATH"
    )]
    InMemory {
        /// What follows the scheme.
        value: String,
    },
    /// A name that does not fit the catalog's columns.
    #[error("catalog name {value:?} must have 1 to {} characters", sql::NAME_CHARS_MAX)]
    Name {
        /// The name.
        value: String,
    },
    /// The database or the library refused.
    #[error("catalog {catalog}: cannot {action}: {reason}")]
    Failed {
        /// Which catalog, without its password.
        catalog: String,
        /// What was tried.
        action: &'static str,
        /// What the database or the library said.
        reason: String,
    },
}

/// Result of a catalog's use.
pub type CatalogResult<T> = Result<T, CatalogError>;
