//! Parameters of scenarios: their names, their defaults, and how a given value is checked.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{ScenarioError, ScenarioInfo};

/// Kind of value that a parameter takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A whole number between two bounds, both included.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// Rising whole numbers above 0, with commas between them; or `auto`.
    Versions,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name, as in `--param NAME=VALUE` and in definitions.
    pub name: &'static str,
    /// Value when not given.
    pub default: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What it is, with its unit.
    pub help: &'static str,
}

impl Parameter {
    fn refuse(&self, value: &str) -> ScenarioError {
        let allowed = match self.kind {
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Versions => "auto, or rising whole numbers above 0 with commas between them".to_owned(),
        };
        ScenarioError::Parameter { name: self.name.to_owned(), value: value.to_owned(), allowed }
    }

    /// Checks a value given as text.
    fn parse(&self, text: &str) -> Result<Value, ScenarioError> {
        match self.kind {
            Kind::Count { min, max } => match text.parse::<u64>() {
                Ok(count) if (min..=max).contains(&count) => Ok(count.into()),
                _ => Err(self.refuse(text)),
            },
            Kind::Versions if text == "auto" => Ok(text.into()),
            Kind::Versions => {
                let versions: Option<Vec<u64>> = text.split(',').map(|version| version.trim().parse().ok()).collect();
                let versions = versions.ok_or_else(|| self.refuse(text))?;
                let is_rising = versions.first().is_some_and(|first| *first > 0)
                    && versions.windows(2).all(|pair| pair[0] < pair[1]);
                if is_rising { Ok(versions.into()) } else { Err(self.refuse(text)) }
            }
        }
    }
}

/// Every parameter of a scenario, from those given and the defaults.
///
/// # Errors
/// If a name is unknown or a value is not allowed.
pub fn resolve(
    scenario: &ScenarioInfo,
    given: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, ScenarioError> {
    if let Some(name) = given.keys().find(|name| scenario.parameters.iter().all(|known| known.name != **name)) {
        let known: Vec<&str> = scenario.parameters.iter().map(|parameter| parameter.name).collect();
        let known = known.join(", ");
        return Err(ScenarioError::UnknownParameter { scenario: scenario.name, name: name.clone(), known });
    }
    scenario
        .parameters
        .iter()
        .map(|parameter| {
            let text = match given.get(parameter.name) {
                None => parameter.default.to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(values)) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
                Some(value) => value.to_string(),
            };
            Ok((parameter.name.to_owned(), parameter.parse(&text)?))
        })
        .collect()
}

/// A count among resolved parameters.
pub fn count(parameters: &BTreeMap<String, Value>, name: &str) -> u64 {
    parameters.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The versions among resolved parameters, up to a last one: with `auto` 1, 10, 100, then each thousandth, and the
/// last.
pub fn versions(parameters: &BTreeMap<String, Value>, name: &str, last: u64) -> Vec<u64> {
    match parameters.get(name) {
        Some(Value::Array(versions)) => versions.iter().filter_map(Value::as_u64).filter(|v| *v <= last).collect(),
        _ => {
            let mut versions: Vec<u64> = [1, 10, 100].into_iter().chain((1_000..=last).step_by(1_000)).collect();
            versions.push(last);
            versions.retain(|version| *version <= last);
            versions.sort_unstable();
            versions.dedup();
            versions
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequential_commit::INFO;

    fn given(name: &str, value: impl Into<Value>) -> BTreeMap<String, Value> {
        BTreeMap::from([(name.to_owned(), value.into())])
    }

    #[test]
    fn defaults_fill_what_is_not_given() {
        let resolved = resolve(&INFO, &given("appends", 7)).expect("a count");
        assert_eq!(count(&resolved, "appends"), 7);
        assert_eq!(count(&resolved, "files"), 1);
    }

    #[test]
    fn what_is_not_allowed_is_refused_by_name_and_value() {
        for (name, value) in [("appends", Value::from(-3)), ("appends", 0.into()), ("appends", "many".into())] {
            let error = resolve(&INFO, &given(name, value.clone())).expect_err("refused").to_string();
            assert!(error.contains("appends") && error.contains(value.to_string().trim_matches('"')), "{error}");
        }
        let error = resolve(&INFO, &given("sample-at", "3,2")).expect_err("refused").to_string();
        assert!(error.contains("sample-at is 3,2"), "{error}");
        let error = resolve(&INFO, &given("append", 1)).expect_err("refused").to_string();
        assert!(error.contains("no parameter append") && error.contains("appends"), "{error}");
    }

    #[test]
    fn automatic_versions_end_with_the_last() {
        let auto = given("sample-at", "auto");
        assert_eq!(versions(&auto, "sample-at", 2_500), [1, 10, 100, 1_000, 2_000, 2_500]);
        assert_eq!(versions(&auto, "sample-at", 5), [1, 5]);
        assert_eq!(versions(&given("sample-at", vec![2, 9]), "sample-at", 5), [2]);
    }
}
