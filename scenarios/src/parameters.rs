//! Parameters of scenarios: their names, their defaults, and how a given value is checked.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{ScenarioError, ScenarioInfo};

/// Kind of value that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// A number between two bounds, both included.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Names out of some, each with a whole number above 0 as its weight: `append=90,delete=10`. A name alone weighs 1.
    Mix(&'static [&'static str]),
}

impl Kind {
    /// Whether several values may be given at once, with commas between them, for a cell each.
    pub fn sweeps(self) -> bool {
        matches!(self, Self::Count { .. } | Self::Number { .. } | Self::Choice(_))
    }
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
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Choice(words) => words.join(", "),
            Kind::Mix(names) => format!("NAME=WEIGHT with commas between them, of {}", names.join(", ")),
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
            Kind::Number { min, max } => match text.parse::<f64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(number.into()),
                _ => Err(self.refuse(text)),
            },
            Kind::Choice(words) if words.contains(&text) => Ok(text.into()),
            Kind::Choice(_) => Err(self.refuse(text)),
            Kind::Mix(names) => match parse_mix(text) {
                Some(mix) if mix.iter().all(|(name, _)| names.contains(&name.as_str())) => Ok(text.into()),
                _ => Err(self.refuse(text)),
            },
        }
    }
}

/// Names with their weights; none if the text is no mix, or names something twice.
fn parse_mix(text: &str) -> Option<Vec<(String, u64)>> {
    let mut mix: Vec<(String, u64)> = Vec::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let (name, weight) = (name.trim(), weight.trim().parse().ok()?);
        if weight == 0 || weight > u64::from(u32::MAX) || mix.iter().any(|(known, _)| known == name) {
            return None;
        }
        mix.push((name.to_owned(), weight));
    }
    Some(mix)
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

/// A number among resolved parameters.
pub fn number(parameters: &BTreeMap<String, Value>, name: &str) -> f64 {
    parameters.get(name).and_then(Value::as_f64).unwrap_or_default()
}

/// A word among resolved parameters.
pub fn word<'a>(parameters: &'a BTreeMap<String, Value>, name: &str) -> &'a str {
    parameters.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The names and weights of a mix among resolved parameters.
pub fn mix(parameters: &BTreeMap<String, Value>, name: &str) -> Vec<(String, u64)> {
    parse_mix(word(parameters, name)).unwrap_or_default()
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
    fn numbers_words_and_mixes_are_checked() {
        let parameter = |kind| Parameter { name: "p", default: "", kind, help: "" };
        let number = parameter(Kind::Number { min: 0.5, max: 10.0 });
        assert_eq!(number.parse("2.5").expect("a number"), 2.5);
        let word = parameter(Kind::Choice(&["closed", "poisson"]));
        assert_eq!(word.parse("poisson").expect("a word"), "poisson");
        let mix = parameter(Kind::Mix(&["append", "delete"]));
        assert_eq!(mix.parse("append=9, delete=1").expect("a mix"), "append=9, delete=1");
        assert_eq!(parse_mix("append=9, delete"), Some(vec![("append".to_owned(), 9), ("delete".to_owned(), 1)]));
        for (parameter, values, allowed) in [
            (number, ["0.4", "nan", "x"], "a number from 0.5 to 10"),
            (word, ["open", "", "Poisson"], "closed, poisson"),
            (mix, ["append=0", "append,append", "drop"], "NAME=WEIGHT with commas between them, of append, delete"),
        ] {
            for value in values {
                let error = parameter.parse(value).expect_err("refused").to_string();
                assert_eq!(error, format!("p is {value}: allowed is {allowed}"));
            }
        }
    }

    #[test]
    fn automatic_versions_end_with_the_last() {
        let auto = given("sample-at", "auto");
        assert_eq!(versions(&auto, "sample-at", 2_500), [1, 10, 100, 1_000, 2_000, 2_500]);
        assert_eq!(versions(&auto, "sample-at", 5), [1, 5]);
        assert_eq!(versions(&given("sample-at", vec![2, 9]), "sample-at", 5), [2]);
    }
}
