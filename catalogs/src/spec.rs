//! Which catalog to use, as a user names it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use url::Url;
use url::form_urlencoded;

use crate::{CatalogError, CatalogResult};

/// The forms that a catalog is named in.
pub const FORMS: &str =
    "sqlite, sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE and mysql://USER:PASSWORD@HOST/DATABASE";

const HIDDEN: &str = "***";

/// Which catalog to use: `sqlite`, `sqlite:PATH`, `postgres://…` or `mysql://…` (also `postgresql://`, `mariadb://`).
///
/// Neither `Display` nor `Debug` shows a password: of a URL's user information the name is shown, of its query nothing.
#[derive(Clone, Eq, PartialEq)]
pub struct CatalogSpec(Database);

#[derive(Clone, Eq, PartialEq)]
enum Database {
    /// A file; without a path, in a folder that lasts as long as the cell.
    Sqlite(Option<PathBuf>),
    Postgres(Url),
    MySql(Url),
}

impl CatalogSpec {
    /// SQLite in a file that lasts as long as the cell.
    pub fn embedded() -> Self {
        Self(Database::Sqlite(None))
    }

    /// Kind of the catalog: `sqlite`, `postgres` or `mysql`.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Database::Sqlite(_) => "sqlite",
            Database::Postgres(_) => "postgres",
            Database::MySql(_) => "mysql",
        }
    }

    /// The file that the user named for SQLite.
    pub fn sqlite_path(&self) -> Option<&PathBuf> {
        match &self.0 {
            Database::Sqlite(path) => path.as_ref(),
            _ => None,
        }
    }

    /// URL of a database server, with its password.
    pub(crate) fn server_url(&self) -> Option<&str> {
        self.url().map(Url::as_str)
    }

    /// The text without this catalog's URL and secrets, on one line.
    pub fn scrub(&self, text: &str) -> String {
        let mut text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some(url) = self.url() {
            text = text.replace(url.as_str(), &self.to_string());
            for secret in secrets(url) {
                text = text.replace(&secret, HIDDEN);
            }
        }
        text
    }

    fn url(&self) -> Option<&Url> {
        match &self.0 {
            Database::Sqlite(_) => None,
            Database::Postgres(url) | Database::MySql(url) => Some(url),
        }
    }
}

impl Default for CatalogSpec {
    fn default() -> Self {
        Self::embedded()
    }
}

impl FromStr for CatalogSpec {
    type Err = CatalogError;

    fn from_str(text: &str) -> CatalogResult<Self> {
        if text == "sqlite" {
            return Ok(Self::embedded());
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(CatalogError::Form { value: shown(text) });
        };
        let server = || {
            // `postgres:name` would parse, as a URL without a host.
            if !rest.starts_with("//") {
                return Err(CatalogError::Form { value: format!("\"{scheme}:…\"") });
            }
            Url::parse(text).map_err(|error| CatalogError::Url { scheme: scheme.to_owned(), reason: error.to_string() })
        };
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.starts_with(":memory:") || path.contains("mode=memory") {
                    return Err(CatalogError::InMemory { value: rest.to_owned() });
                }
                if path.is_empty() {
                    return Err(CatalogError::Form { value: shown(text) });
                }
                Ok(Self(Database::Sqlite(Some(PathBuf::from(path)))))
            }
            "postgres" | "postgresql" => Ok(Self(Database::Postgres(server()?))),
            "mysql" | "mariadb" => Ok(Self(Database::MySql(server()?))),
            // What follows an unknown scheme may hold a password anywhere.
            _ => Err(CatalogError::Form { value: format!("\"{scheme}:…\"") }),
        }
    }
}

impl fmt::Display for CatalogSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Database::Sqlite(None) => f.write_str("sqlite"),
            Database::Sqlite(Some(path)) => write!(f, "sqlite:{}", path.display()),
            Database::Postgres(url) | Database::MySql(url) => {
                write!(f, "{}://", url.scheme())?;
                if !url.username().is_empty() || url.password().is_some() {
                    f.write_str(url.username())?;
                    if url.password().is_some() {
                        write!(f, ":{HIDDEN}")?;
                    }
                    f.write_str("@")?;
                }
                f.write_str(url.host_str().unwrap_or_default())?;
                if let Some(port) = url.port() {
                    write!(f, ":{port}")?;
                }
                f.write_str(url.path())?;
                if url.query().is_some() {
                    write!(f, "?{HIDDEN}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for CatalogSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogSpec({self})")
    }
}

/// A value that is not known to be a URL, as far as it can be shown.
fn shown(text: &str) -> String {
    if text.contains('@') { HIDDEN.to_owned() } else { format!("{text:?}") }
}

/// The passwords in a URL, as written and as meant. Postgres takes one in the query as well.
fn secrets(url: &Url) -> Vec<String> {
    let mut secrets = Vec::new();
    if let Some(password) = url.password() {
        secrets.push(password.to_owned());
        let query = format!("p={}", password.replace('+', "%2B").replace('&', "%26"));
        secrets.extend(form_urlencoded::parse(query.as_bytes()).map(|(_, value)| value.into_owned()));
    }
    secrets.extend(url.query_pairs().filter(|(name, _)| name.contains("pass")).map(|(_, value)| value.into_owned()));
    secrets.retain(|secret| !secret.is_empty());
    // The longest first: a shorter one may be a part of it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> CatalogSpec {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        text.parse::<CatalogSpec>().unwrap_err().to_string()
    }

    #[test]
    fn every_form_has_its_kind() {
        for (text, kind) in [
            ("sqlite", "sqlite"),
            ("sqlite:/tmp/c.db", "sqlite"),
            ("sqlite://c.db", "sqlite"),
            ("postgres://u:p@host/db", "postgres"),
            ("postgresql:///db?host=/run/postgresql", "postgres"),
            ("mysql://u@host:3307/db", "mysql"),
            ("mariadb://host/db", "mysql"),
        ] {
            assert_eq!(spec(text).kind(), kind, "{text}");
        }
        assert_eq!(spec("sqlite"), CatalogSpec::default());
        assert_eq!(spec("sqlite:/tmp/c.db").sqlite_path(), Some(&PathBuf::from("/tmp/c.db")));
        assert_eq!(spec("sqlite://c.db").sqlite_path(), Some(&PathBuf::from("c.db")));
    }

    #[test]
    fn bad_values_are_named_with_what_is_allowed() {
        assert_eq!(error("oracle"), format!("catalog \"oracle\" is not known: allowed are {FORMS}"));
        assert_eq!(error("oracle://h/db"), format!("catalog \"oracle:…\" is not known: allowed are {FORMS}"));
        assert_eq!(error("postgres:db"), format!("catalog \"postgres:…\" is not known: allowed are {FORMS}"));
        assert!(error("sqlite::memory:").contains("sqlite:PATH"));
        assert!(error("sqlite://?mode=memory").contains("sqlite:PATH"));
        assert_eq!(
            error("postgres://u:p@host:port/db"),
            "catalog URL postgres://… cannot be read: invalid port number"
        );
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://me:s3cret@host:5433/db?sslmode=require",
            "postgres://me@host/db?password=s3cret",
            "mysql://me:s3cret@host/db",
        ] {
            let spec = spec(text);
            let shown = format!("{spec} {spec:?} {:?}", Some(&spec));
            assert!(!shown.contains("s3cret") && shown.contains("host"), "{shown}");
            assert!(!spec.scrub(&format!("cannot open {text}: bad s3cret")).contains("s3cret"));
        }
        for text in ["postgresq://me:s3cret@host/db", "me:s3cret@host", "s3cret@host", "mysql:me:s3cret@host/db"] {
            assert!(!error(text).contains("s3cret"), "{}", error(text));
        }
        assert_eq!(
            spec("postgres://me:s3cret@host:5433/db?sslmode=require").to_string(),
            "postgres://me:***@host:5433/db?***"
        );
    }

    #[test]
    fn a_password_is_scrubbed_as_written_and_as_meant() {
        let spec = spec("postgres://me:a%2Fb+c@host/db");
        assert_eq!(spec.scrub("user me,\n  password a/b+c or a%2Fb+c"), "user me, password *** or ***");
    }
}
