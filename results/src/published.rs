//! The figures that published studies report.
//!
//! They are part of the binary: a comparison needs no file beside it. `published/README.md` says what each study is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const STUDIES: [(&str, &str); 5] = [
    ("lance-2026", include_str!("../published/lance-2026.csv")),
    ("wal-2026", include_str!("../published/wal-2026.csv")),
    ("oltp-2025", include_str!("../published/oltp-2025.csv")),
    ("cas-2025", include_str!("../published/cas-2025.csv")),
    ("endive-2026", include_str!("../published/endive-2026.csv")),
];

/// Why a study cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// No study of that name.
    #[error("unknown study {name:?}: the studies are {}", Study::names().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// A row that is not what it should be.
    #[error("published/{name}.csv: {reason}")]
    Row {
        /// Name of the study.
        name: String,
        /// What is wrong, with the line.
        reason: csv::Error,
    },
}

/// One figure, as its authors printed it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PublishedFigure {
    /// Name of the study: `lance-2026`.
    pub source: String,
    /// What the study measured, in a word.
    pub study: String,
    /// What was measured: a format, or a primitive.
    pub system: String,
    /// `none`, or class and product of the catalog: `sql-postgres`.
    pub catalog: String,
    /// Store.
    pub store: String,
    /// Scenario.
    pub scenario: String,
    /// Parameters, as `name=value` separated by `;`.
    pub parameter: String,
    /// What the figure is.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The figure as printed: a number, several (`43.29/14.34/277.83`) or a range (`14.7-15.3`).
    #[serde(rename = "value")]
    pub printed: String,
    /// What the study says beside it; empty for nothing.
    pub note: String,
}

impl PublishedFigure {
    /// The figure, if it is a single number.
    pub fn value(&self) -> Option<f64> {
        self.printed.parse().ok()
    }

    /// Its parameters by name.
    pub fn parameters(&self) -> BTreeMap<&str, &str> {
        self.parameter.split(';').filter_map(|pair| pair.split_once('=')).collect()
    }
}

/// Class of a catalog: products of one class are compared with each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CatalogClass {
    /// The store alone decides.
    None,
    /// A table in a database.
    Sql,
    /// A server that speaks Iceberg's REST protocol.
    Rest,
}

impl CatalogClass {
    /// Class of a catalog as studies (`sql-postgres`), cells (`sqlite`) or URLs (`postgres://…`) name it; none if the
    /// name tells nothing.
    pub fn of(catalog: &str) -> Option<Self> {
        match catalog_kind(catalog).split('-').next()? {
            "none" => Some(Self::None),
            "sql" | "sqlite" | "postgres" | "postgresql" | "mysql" | "mariadb" => Some(Self::Sql),
            "rest" | "polaris" | "http" | "https" => Some(Self::Rest),
            _ => None,
        }
    }
}

/// Kind of a catalog that may be given as a URL, whose rest may hold a password: `postgres` of `postgres://…`.
pub fn catalog_kind(catalog: &str) -> &str {
    catalog.split_once(':').map_or(catalog, |(scheme, _)| scheme)
}

/// What to look up. A figure matches if all of it does.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Format or primitive.
    pub system: &'a str,
    /// Class of the catalog.
    pub catalog: CatalogClass,
    /// Store.
    pub store: &'a str,
    /// Scenario.
    pub scenario: &'a str,
    /// Metric.
    pub metric: &'a str,
}

impl Wanted<'_> {
    fn matches(&self, figure: &PublishedFigure) -> bool {
        figure.system == self.system
            && CatalogClass::of(&figure.catalog) == Some(self.catalog)
            && figure.store == self.store
            && figure.scenario == self.scenario
            && figure.metric == self.metric
    }
}

/// All figures of one study.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// Its figures, in the order of the file.
    pub figures: Vec<PublishedFigure>,
}

impl Study {
    /// Names of the studies.
    pub fn names() -> [&'static str; STUDIES.len()] {
        STUDIES.map(|(name, _)| name)
    }

    /// Loads a study by name.
    pub fn load(name: &str) -> Result<Self, PublishedError> {
        let unknown = || PublishedError::Unknown { name: name.to_owned() };
        let (_, text) = STUDIES.iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
        Self::parse(name, text)
    }

    /// Parses a study in the columns of `published/README.md`.
    pub fn parse(name: &str, text: &str) -> Result<Self, PublishedError> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let figures = reader.deserialize().collect::<Result<_, _>>();
        let figures = figures.map_err(|reason| PublishedError::Row { name: name.to_owned(), reason })?;
        Ok(Self { name: name.to_owned(), figures })
    }

    /// The figure with exactly these parameters: one more in the study (`path=log-only`) is another figure.
    pub fn find(&self, wanted: Wanted<'_>, parameters: &[(&str, &str)]) -> Option<&PublishedFigure> {
        let parameters: BTreeMap<&str, &str> = parameters.iter().copied().collect();
        self.figures.iter().find(|figure| wanted.matches(figure) && figure.parameters() == parameters)
    }

    /// The figures with exactly these names of parameters, whatever their values.
    pub fn find_any(&self, wanted: Wanted<'_>, parameters: &[&str]) -> Vec<&PublishedFigure> {
        let named = |figure: &PublishedFigure| {
            let names = figure.parameters();
            names.len() == parameters.len() && parameters.iter().all(|name| names.contains_key(name))
        };
        self.figures.iter().filter(|figure| wanted.matches(figure) && named(figure)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lance_mean<'a>(system: &'a str, catalog: CatalogClass) -> Wanted<'a> {
        Wanted { system, catalog, store: "s3", scenario: "sequential-commit", metric: "commit_latency_mean" }
    }

    #[test]
    fn every_study_loads_and_every_row_is_its_own() {
        let figures = Study::names().map(|name| {
            let study = Study::load(name).unwrap();
            assert!(study.figures.iter().all(|figure| figure.source == name));
            study.figures.len()
        });
        assert_eq!(figures, [48, 56, 20, 6, 183]);
    }

    #[test]
    fn unknown_studies_and_broken_rows_are_named() {
        let message = Study::load("lance").unwrap_err().to_string();
        assert_eq!(
            message,
            r#"unknown study "lance": the studies are lance-2026, wal-2026, oltp-2025, cas-2025, endive-2026"#
        );
        let header = "source,study,system,catalog,store,scenario,parameter,metric,unit,value,note";
        let message = Study::parse("x", &format!("{header}\na,b\n")).unwrap_err().to_string();
        assert!(message.starts_with("published/x.csv: ") && message.contains("line: 2"), "{message}");
    }

    #[test]
    fn compound_figures_keep_their_text_and_have_no_value() {
        let oltp = Study::load("oltp-2025").unwrap();
        assert_eq!((oltp.figures[0].printed.as_str(), oltp.figures[0].value()), ("43.29/14.34/277.83", None));
        let cas = Study::load("cas-2025").unwrap();
        assert_eq!((cas.figures[0].printed.as_str(), cas.figures[0].value()), ("14.7-15.3", None));
        assert!(cas.figures[0].note.starts_with("1 to 16 clients on one key, no retries; "));
    }

    #[test]
    fn lookups_tell_the_full_path_from_the_log_only_one() {
        let study = Study::load("lance-2026").unwrap();
        let delta = lance_mean("delta", CatalogClass::None);
        let value = |parameters: &[(&str, &str)]| study.find(delta, parameters).and_then(PublishedFigure::value);
        assert_eq!(value(&[("appends", "10000")]), Some(534.0));
        assert_eq!(value(&[("path", "log-only"), ("appends", "10000")]), Some(64.5));
        assert_eq!(value(&[("appends", "1000")]), None);
        assert_eq!(study.find_any(delta, &["appends"]).len(), 1);
    }

    #[test]
    fn lookups_go_by_the_class_of_the_catalog() {
        let study = Study::load("lance-2026").unwrap();
        let value = |class| study.find(lance_mean("iceberg", class), &[("appends", "10000")])?.value();
        assert_eq!(value(CatalogClass::Sql), Some(457.0));
        assert_eq!(value(CatalogClass::Rest), Some(583.0));
        assert_eq!(value(CatalogClass::None), None);
        for (name, class) in [
            ("sqlite", Some(CatalogClass::Sql)),
            ("postgres://user:secret@host/db", Some(CatalogClass::Sql)),
            ("rest-s3tables", Some(CatalogClass::Rest)),
            ("none", Some(CatalogClass::None)),
            ("glue", None),
        ] {
            assert_eq!(CatalogClass::of(name), class, "{name}");
        }
    }
}
