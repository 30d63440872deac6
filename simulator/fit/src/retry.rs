//! The retry policy of a cell, in the model's words.

use std::collections::BTreeMap;

use lakemark_results::manifest::CellPlan;
use lakemark_simulator::{Backoff, Jitter, RetryPolicy};

/// What a cell's writers did after a lost attempt: nothing, the scenario's own backoff, or what their library does with
/// these settings (all of them, as the worker resolved them).
pub(crate) fn policy(plan: &CellPlan, settings: &BTreeMap<String, String>) -> RetryPolicy {
    let parameter = |name: &str| plan.parameters.get(name);
    match parameter("retry").and_then(|value| value.as_str()) {
        Some("none") => RetryPolicy { attempts_max: 1, ..RetryPolicy::immediate() },
        Some("common") => {
            let number = |name: &str| parameter(name).and_then(|value| value.as_f64()).unwrap_or_default();
            let backoff = Backoff::Exponential {
                base_ms: number("retry-base-ms"),
                factor: 2.0,
                cap_ms: number("retry-max-ms"),
                jitter: Jitter::Full,
            };
            both(number("retry-attempts") as u32, None, backoff)
        }
        _ => of_library(&plan.format, settings),
    }
}

fn of_library(format: &str, settings: &BTreeMap<String, String>) -> RetryPolicy {
    let number = |name: &str| settings.get(name).and_then(|value| value.parse::<f64>().ok());
    let retries = number("max-retries").map(|retries| retries as u32);
    match format {
        // Lance counts all tries, and always makes one.
        "lance" => {
            let default = RetryPolicy::lance();
            RetryPolicy {
                attempts_max: retries.map_or(default.attempts_max, |tries| tries.max(1)),
                budget_ms: number("retry-timeout-s").map(|seconds| seconds * 1e3).or(default.budget_ms),
                ..default
            }
        }
        "iceberg" => {
            let default = RetryPolicy::iceberg();
            let backoff = Backoff::Exponential {
                base_ms: number("retry-min-wait-ms").unwrap_or(100.0),
                factor: 2.0,
                cap_ms: number("retry-max-wait-ms").unwrap_or(60_000.0),
                jitter: Jitter::None,
            };
            both(
                retries.map_or(default.attempts_max, |retries| retries.saturating_add(1)),
                number("retry-total-timeout-ms").or(default.budget_ms),
                backoff,
            )
        }
        _ => {
            let default = RetryPolicy::delta();
            RetryPolicy {
                attempts_max: retries.map_or(default.attempts_max, |retries| retries.saturating_add(1)),
                ..default
            }
        }
    }
}

fn both(attempts_max: u32, budget_ms: Option<f64>, backoff: Backoff) -> RetryPolicy {
    RetryPolicy { attempts_max, budget_ms, after_catalog_conflict: backoff.clone(), after_table_conflict: backoff }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(format: &str, parameters: &[(&str, serde_json::Value)]) -> CellPlan {
        CellPlan {
            id: "c".to_owned(),
            format: format.to_owned(),
            catalog: "none".to_owned(),
            store: "s3".to_owned(),
            scenario: "concurrent-writers".to_owned(),
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            settings: BTreeMap::new(),
            seed: 1,
            clock: "skip".to_owned(),
            cpu: "free".to_owned(),
            worker: None,
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_that_are_the_librarys_are_the_named_policies() {
        let library = [("retry", "library".into())];
        for (format, given, named) in [
            ("delta", settings(&[("max-retries", "15")]), RetryPolicy::delta()),
            ("lance", settings(&[("max-retries", "20"), ("retry-timeout-s", "30")]), RetryPolicy::lance()),
            (
                "iceberg",
                settings(&[
                    ("max-retries", "4"),
                    ("retry-min-wait-ms", "100"),
                    ("retry-max-wait-ms", "60000"),
                    ("retry-total-timeout-ms", "1800000"),
                ]),
                RetryPolicy::iceberg(),
            ),
        ] {
            assert_eq!(policy(&plan(format, &library), &given), named, "{format}");
        }
        assert_eq!(policy(&plan("lance", &library), &settings(&[("max-retries", "0")])).attempts_max, 1);
        assert_eq!(policy(&plan("delta", &library), &settings(&[("max-retries", "0")])).attempts_max, 1);
    }

    #[test]
    fn the_scenarios_own_policies_replace_the_librarys() {
        let none = policy(&plan("lance", &[("retry", "none".into())]), &BTreeMap::new());
        assert_eq!((none.attempts_max, none.budget_ms), (1, None));
        let common = [
            ("retry", "common".into()),
            ("retry-base-ms", 50.into()),
            ("retry-max-ms", 5000.into()),
            ("retry-attempts", 7.into()),
        ];
        let policy = policy(&plan("delta", &common), &BTreeMap::new());
        let jitter = Backoff::Exponential { base_ms: 50.0, factor: 2.0, cap_ms: 5_000.0, jitter: Jitter::Full };
        assert_eq!((policy.attempts_max, policy.after_table_conflict), (7, jitter));
    }
}
