//! What does one variant of a grid mean? Its settings laid over a cell.

use std::collections::BTreeSet;

use lakemark_simulator::{Cell, Protocol, RetryPolicy};
use serde_json::{Map, Value};

use crate::error::SweepError;
use crate::node::Node;

/// Arrivals a second in the mean: another way to give the rate of the cell's arrivals.
pub const LOAD: &str = "load_per_s";

/// `FastAppends/ValidatedOverwrites` in percent: another way to give `fast_append_ratio`.
pub const MIX: &str = "mix";

/// Keys of a cell, and what a grid has beside them.
fn known_keys() -> BTreeSet<String> {
    let cell = serde_json::to_value(Cell::default()).unwrap_or_default();
    let mut keys: BTreeSet<String> = cell.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    // None by default, and so not in it.
    keys.extend(["rate_limit", LOAD, MIX].map(str::to_owned));
    keys
}

/// Refuses a key that a cell does not have, wherever in the grid.
pub(crate) fn check_keys(node: &Node, origin: &str) -> Result<(), SweepError> {
    match node {
        Node::Choice(options) => options.iter().try_for_each(|option| check_keys(option, origin)),
        Node::Table(table) => {
            let known = known_keys();
            match table.keys().find(|key| !known.contains(*key)) {
                None => Ok(()),
                Some(key) => {
                    let allowed = known.into_iter().collect::<Vec<_>>().join(", ");
                    Err(SweepError::grid(origin, format!("unknown setting {key:?}; allowed: {allowed}")))
                }
            }
        }
        Node::Leaf(value) => {
            Err(SweepError::grid(origin, format!("cell is {value}; allowed: a table of settings, or several")))
        }
    }
}

/// Lays a variant's settings over a cell.
///
/// # Errors
/// What is wrong, in one line.
pub(crate) fn cell(base: &Value, variant: Value) -> Result<Cell, String> {
    let Value::Object(mut given) = variant else { return Err("a cell is a table of settings".to_owned()) };
    let load_per_s = given.remove(LOAD);
    if let Some(mix) = given.remove(MIX) {
        if given.contains_key("fast_append_ratio") {
            return Err(format!("{MIX} and fast_append_ratio say the same; allowed: one of them"));
        }
        given.insert("fast_append_ratio".to_owned(), fast_append_ratio(&mix)?.into());
    }
    let gives_rate = given
        .get("arrivals")
        .is_some_and(|arrivals| ["scale_ms", "mean_ms", "rates_per_s"].iter().any(|name| arrivals.get(name).is_some()));
    let names: Vec<String> = given.keys().cloned().collect();
    let mut settings = base.clone();
    merge(&mut settings, Value::Object(given));
    if let Some(load) = load_per_s {
        if gives_rate {
            return Err(format!("{LOAD} and the gap in arrivals say the same; allowed: one of them"));
        }
        set_load(settings.get_mut("arrivals").unwrap_or(&mut Value::Null), &load)?;
    }
    match read::<Cell>(&settings) {
        Ok(cell) => Ok(cell),
        Err(error) => Err(located(&settings, &names).unwrap_or(error)),
    }
}

/// A value read, or one line of what is wrong with it.
fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string().replace('\n', " "))
}

/// What is wrong, by the name of the setting that it is wrong in.
fn located(settings: &Value, names: &[String]) -> Option<String> {
    let wrong = |name: &String| {
        let value = settings.get(name)?;
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        let message = match (name.as_str(), value) {
            // These two may be a name instead, which hides what is wrong with a table.
            ("retry", Value::Object(_)) => read::<RetryPolicy>(value).err(),
            ("protocol", Value::Object(_)) => read::<Protocol>(value).err(),
            _ => read::<Cell>(&alone).err(),
        };
        Some(format!("{name} is {value}: {}", message?))
    };
    names.iter().find_map(wrong)
}

/// Lays settings over others: tables are merged, unless they are of another kind.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let is_other_kind = over.get("kind").is_some_and(|kind| base.get("kind") != Some(kind));
            if is_other_kind {
                base.clear();
            }
            for (name, value) in over {
                merge(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Sets the mean rate of arrivals of a kind that has one.
fn set_load(arrivals: &mut Value, load: &Value) -> Result<(), String> {
    let allowed = "a number of arrivals a second, more than 0";
    let per_s = load.as_f64().filter(|load| load.is_finite() && *load > 0.0);
    let Some(per_s) = per_s else { return Err(format!("{LOAD} is {load}; allowed: {allowed}")) };
    let gap_ms = 1_000.0 / per_s;
    let number = |arrivals: &Value, name: &str, default: f64| {
        arrivals.get(name).map_or(Ok(default), |value| {
            value.as_f64().ok_or_else(|| format!("arrivals.{name} is {value}; allowed: a number"))
        })
    };
    let kind = arrivals.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, value) = match kind.as_str() {
        // The study's spread, where none is given.
        "log-normal" => ("scale_ms", gap_ms / (number(arrivals, "sigma", 0.5)?.powi(2) / 2.0).exp()),
        "exponential" => ("mean_ms", gap_ms),
        "on-off" => {
            let (on_ms, off_ms) = (number(arrivals, "on_ms", 1.0)?, number(arrivals, "off_ms", 0.0)?);
            ("mean_ms", gap_ms * on_ms / (on_ms + off_ms))
        }
        _ => {
            return Err(format!(
                "{LOAD} does not apply to arrivals of kind {kind:?}; allowed: log-normal, exponential, on-off"
            ));
        }
    };
    arrivals[name] = value.into();
    Ok(())
}

/// The share of FastAppends in `90/10`.
fn fast_append_ratio(mix: &Value) -> Result<f64, String> {
    let refuse = |why: &str| {
        let shown = mix.as_str().map_or_else(|| mix.to_string(), str::to_owned);
        format!(
            "{MIX} is {shown}{why}; allowed: shares of FastAppends and ValidatedOverwrites that sum to 100, as in \"90/10\""
        )
    };
    let shares: Option<Vec<f64>> =
        mix.as_str().and_then(|text| text.split('/').map(|share| share.trim().parse().ok()).collect());
    let Some([fast_append, validated_overwrite]) = shares.as_deref() else { return Err(refuse("")) };
    let sum = fast_append + validated_overwrite;
    if *fast_append < 0.0 || *validated_overwrite < 0.0 {
        return Err(refuse(", which has a negative share"));
    }
    // Written with decimals, shares need not sum exactly.
    if !sum.is_finite() || (sum - 100.0).abs() > 1e-9 {
        return Err(refuse(&format!(", which sums to {sum}")));
    }
    Ok(fast_append / 100.0)
}

#[cfg(test)]
mod tests {
    use lakemark_simulator::{Arrivals, Catalog, TableSelection};
    use serde_json::json;

    use super::*;

    fn over_default(settings: Value) -> Result<Cell, String> {
        cell(&serde_json::to_value(Cell::default()).unwrap(), settings)
    }

    #[test]
    fn settings_are_laid_over_the_base() {
        let cell = over_default(json!({
            "arrivals": {"scale_ms": 20}, "catalog": {"kind": "storage"},
            "table_selection": {"kind": "zipf", "exponent": 1.5}, "tables": 5, "mix": "90/10",
        }))
        .unwrap();
        assert_eq!(cell.arrivals, Arrivals::LogNormal { scale_ms: 20.0, sigma: 0.5 });
        assert_eq!((cell.catalog, cell.tables, cell.fast_append_ratio), (Catalog::Storage, 5, 0.9));
        assert_eq!(cell.table_selection, TableSelection::Zipf { exponent: 1.5 });
    }

    #[test]
    fn a_load_is_the_mean_rate_of_any_open_process() {
        for arrivals in [
            json!({"kind": "log-normal"}),
            json!({"kind": "exponential"}),
            json!({"kind": "on-off", "on_ms": 1000, "off_ms": 3000}),
        ] {
            let cell = over_default(json!({"arrivals": arrivals, "load_per_s": 4})).unwrap();
            let offered = cell.arrivals.offered_per_s().unwrap();
            assert!((offered - 4.0).abs() < 1e-9, "{arrivals}: {offered}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let refused = |settings: Value, words: &[&str]| {
            let message = over_default(settings).unwrap_err();
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
            assert!(!message.contains('\n'), "{message}");
        };
        refused(json!({"load_per_s": -1}), &["load_per_s", "-1", "more than 0"]);
        refused(json!({"load_per_s": 1, "arrivals": {"scale_ms": 5}}), &["load_per_s", "one of them"]);
        refused(json!({"mix": "90/20"}), &["90/20", "110", "sum to 100"]);
        refused(json!({"mix": "90"}), &["90", "sum to 100"]);
        refused(json!({"mix": 0.9}), &["0.9", "90/10"]);
        refused(json!({"mix": "90/10", "fast_append_ratio": 0.9}), &["one of them"]);
        refused(json!({"tables": "many"}), &["tables", "many"]);
        refused(json!({"arrivals": {"kind": "weekly"}}), &["arrivals", "weekly", "exponential"]);
        refused(json!({"catalog": {"latency": 5}}), &["catalog", "latency", "latency_ms"]);
        refused(json!({"retry": {"attempts": 3}}), &["retry", "attempts_max"]);
    }
}
