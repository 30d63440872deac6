//! What to run, from TOML: grids of formats, catalogs, stores and parameters, with the reason for running them and what
//! they are expected to give.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// Definitions that come with the tool.
const BUILTIN: [(&str, &str); 3] = [
    ("lance-2026", include_str!("../definitions/lance-2026.toml")),
    ("active-metadata", include_str!("../definitions/statistics.toml")),
    ("one-layer", include_str!("../definitions/one-layer.toml")),
];

/// What to run and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name, in kebab case.
    pub name: String,
    /// One line on what it is.
    pub title: String,
    /// What is measured, why so, and how to read the figures.
    pub analysis: String,
    /// Published study that the figures are set beside.
    pub study: Option<String>,
    /// How much process time computing takes, if not as measured.
    pub cpu: Option<String>,
    /// Seed, if not the tool's.
    pub seed: Option<u64>,
    /// Grids, in the order of their running.
    pub grid: Vec<Grid>,
    /// What replaces parameters in a quick run.
    #[serde(default)]
    pub quick: Quick,
    /// Ratios of reproduced to published figures that were found, and why they are what they are.
    #[serde(default)]
    pub expected: Vec<Expected>,
}

/// All combinations of some formats, catalogs and stores under one scenario.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Scenario.
    pub scenario: String,
    /// Scenarios whose figures these cells give as well, because theirs does all that those do.
    #[serde(default)]
    pub also: Vec<String>,
    /// What the names of its cells end with, where grids differ in nothing but parameters or settings.
    pub label: Option<String>,
    /// Formats.
    pub formats: Vec<String>,
    /// Catalogs; those that a format cannot use are left out for it. Without any, each format's own default.
    #[serde(default)]
    pub catalogs: Vec<String>,
    /// Stores: names of profiles, or paths of profile files.
    pub stores: Vec<String>,
    /// Parameters of the scenario.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// Settings by format.
    #[serde(default)]
    pub settings: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Grid {
    /// Drops the settings of formats that it no longer has.
    pub fn forget_strangers(&mut self) {
        self.settings.retain(|format, _| self.formats.contains(format));
    }
}

/// What a quick run changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Parameters that replace those of every grid whose scenario has them.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
}

/// A ratio that is expected.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Format.
    pub format: String,
    /// Store.
    pub store: String,
    /// Writers, if the figure is of some number of them.
    pub writers: Option<u32>,
    /// Metric, as in the published figures.
    pub metric: String,
    /// Smallest ratio of reproduced to published.
    pub ratio_min: f64,
    /// Largest ratio of reproduced to published.
    pub ratio_max: f64,
    /// Why.
    pub why: String,
}

/// Why a definition cannot be used: one line.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// No definition has the name.
    #[error("no definition {name}: known are {}", builtin_names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The text is not a definition.
    #[error("{origin}:{line}: {reason}")]
    Form {
        /// The file, or the built-in name.
        origin: String,
        /// Line of the fault, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value is not allowed.
    #[error("{origin}: {field} is {value}: allowed is {allowed}")]
    Value {
        /// The file, or the built-in name.
        origin: String,
        /// The field.
        field: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

/// Names of the definitions that come with the tool.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

impl Definition {
    /// A definition that comes with the tool.
    ///
    /// # Errors
    /// If there is none of the name.
    pub fn builtin(name: &str) -> Result<Self, DefinitionError> {
        match BUILTIN.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, name),
            None => Err(DefinitionError::Unknown { name: name.to_owned() }),
        }
    }

    /// A definition in a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a definition.
    pub fn read(path: &Path) -> Result<Self, DefinitionError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &origin),
            Err(reason) => Err(DefinitionError::Read { path: origin, reason }),
        }
    }

    /// A definition from its text.
    ///
    /// # Errors
    /// If it is not one; the error names the origin.
    pub fn parse(text: &str, origin: &str) -> Result<Self, DefinitionError> {
        let definition: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.get(..start).map_or(0, |before| before.matches('\n').count()) + 1;
            let reason = error.message().lines().next().unwrap_or("not TOML").to_owned();
            DefinitionError::Form { origin: origin.to_owned(), line, reason }
        })?;
        definition.check(origin)?;
        Ok(definition)
    }

    fn check(&self, origin: &str) -> Result<(), DefinitionError> {
        let refuse = |field: String, value: String, allowed: &str| {
            Err(DefinitionError::Value { origin: origin.to_owned(), field, value, allowed: allowed.to_owned() })
        };
        for (number, grid) in self.grid.iter().enumerate() {
            for (field, values) in [("formats", &grid.formats), ("stores", &grid.stores)] {
                if values.is_empty() {
                    return refuse(format!("grid[{number}].{field}"), "empty".to_owned(), "at least one");
                }
            }
            for (field, scenario) in
                std::iter::once(("scenario", &grid.scenario)).chain(grid.also.iter().map(|also| ("also", also)))
            {
                if crate::find(scenario).is_none() {
                    return refuse(format!("grid[{number}].{field}"), scenario.clone(), &crate::known_names());
                }
            }
        }
        if self.grid.is_empty() {
            return refuse("grid".to_owned(), "empty".to_owned(), "at least one [[grid]]");
        }
        match self.expected.iter().find(|expected| expected.ratio_min > expected.ratio_max) {
            Some(Expected { metric, ratio_min, ratio_max, .. }) => {
                refuse(format!("expected {metric}"), format!("{ratio_min} to {ratio_max}"), "a rising interval")
            }
            None => Ok(()),
        }
    }

    /// Scenarios whose figures it gives.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.grid.iter().flat_map(|grid| std::iter::once(&grid.scenario).chain(&grid.also)).map(String::as_str)
    }

    /// Keeps the grids of one scenario. One that gives its figures beside those of a larger scenario runs the smaller one
    /// instead, with the parameters that this has.
    pub fn keep_scenario(&mut self, name: &str) {
        self.grid.retain(|grid| grid.scenario == name || grid.also.iter().any(|also| also == name));
        for grid in self.grid.iter_mut().filter(|grid| grid.scenario != name) {
            name.clone_into(&mut grid.scenario);
            let known = crate::find(name).map_or(&[][..], |scenario| scenario.parameters);
            grid.parameters.retain(|name, _| known.iter().any(|parameter| parameter.name == name));
        }
    }

    /// Replaces parameters by those of a quick run.
    pub fn make_quick(&mut self) {
        for grid in &mut self.grid {
            let Some(scenario) = crate::find(&grid.scenario) else { continue };
            for (name, value) in &self.quick.parameters {
                if scenario.parameters.iter().any(|parameter| parameter.name == name) {
                    grid.parameters.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
name = "small"
title = "A small run"
analysis = "None."
[[grid]]
scenario = "sequential-commit"
formats = ["lance"]
stores = ["s3"]
[grid.parameters]
appends = 10
"#;

    #[test]
    fn every_builtin_definition_parses() {
        for name in builtin_names() {
            let definition = Definition::builtin(name).expect("a definition");
            assert_eq!(definition.name, name);
            assert!(definition.analysis.len() > 200, "{name} says too little of itself");
        }
    }

    #[test]
    fn settings_go_with_their_format() {
        let mut grid = Definition::builtin("lance-2026").expect("a definition").grid.remove(0);
        assert_eq!(grid.settings["iceberg"]["scan-concurrency"], 192);
        grid.formats.retain(|format| format == "lance");
        grid.forget_strangers();
        assert!(grid.settings.is_empty());
    }

    #[test]
    fn a_quick_run_replaces_parameters() {
        let mut definition = Definition::builtin("lance-2026").expect("a definition");
        definition.make_quick();
        assert_eq!(definition.grid[0].parameters["appends"], 1_000);
    }

    #[test]
    fn a_smaller_scenario_can_be_taken_from_the_cells_of_a_larger_one() {
        let mut definition = Definition::builtin("lance-2026").expect("a definition");
        assert!(["metadata-load", "sequential-commit"].iter().all(|name| definition.scenarios().any(|s| s == *name)));
        definition.keep_scenario("sequential-commit");
        let grid = &definition.grid[0];
        assert_eq!((definition.grid.len(), grid.scenario.as_str()), (1, "sequential-commit"));
        let scenario = crate::find(&grid.scenario).expect("a scenario");
        crate::parameters::resolve(&scenario, &grid.parameters).expect("only parameters that it has");
        definition.keep_scenario("reads");
        assert!(definition.grid.is_empty());
        let text = SMALL.replace("formats", "also = [\"commit\"]\nformats");
        let message = Definition::parse(&text, "my.toml").expect_err("refused").to_string();
        assert!(message.contains("grid[0].also is commit"), "{message}");
    }

    #[test]
    fn a_malformed_definition_is_refused_with_its_line() {
        let message = |text: &str| Definition::parse(text, "my.toml").expect_err("refused").to_string();
        assert_eq!(message("name = \n").split(": ").next(), Some("my.toml:1"));
        let unknown = SMALL.replace("title", "titel");
        assert!(message(&unknown).contains("my.toml:") && message(&unknown).contains("titel"), "{}", message(&unknown));
        let scenario = SMALL.replace("sequential-commit", "commit");
        assert!(message(&scenario).contains("grid[0].scenario is commit"), "{}", message(&scenario));
        let formats = SMALL.replace("[\"lance\"]", "[]");
        assert!(message(&formats).contains("grid[0].formats is empty"), "{}", message(&formats));
    }
}
