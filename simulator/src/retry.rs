//! What does a client do after a lost attempt? Retry policies, as data.

use serde::{Deserialize, Serialize};

use crate::error::CellError;

/// How often, how long and after which waits a transaction is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; 11 in the study (`retry = 10`).
    pub attempts_max: u32,
    /// No attempt starts later than this after the first, in milliseconds; none for no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ms: Option<f64>,
    /// Wait after losing to a commit to another table, or to a throttled answer.
    #[serde(default)]
    pub after_catalog_conflict: Backoff,
    /// Wait after losing to a commit to the own table.
    #[serde(default)]
    pub after_table_conflict: Backoff,
}

/// A wait before the next attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Backoff {
    /// None.
    #[default]
    Immediate,
    /// `min(cap_ms, base_ms × factor^n)` after failure `n`, from 0.
    Exponential {
        /// First wait in milliseconds.
        base_ms: f64,
        /// What each further wait is multiplied by.
        factor: f64,
        /// Longest wait in milliseconds.
        cap_ms: f64,
        /// How the wait is spread.
        #[serde(default)]
        jitter: Jitter,
    },
    /// A random one of `min(slots_max, slots_first × 2^n)` slots, from 0, each `unit_factor` times as long as the
    /// transaction's first attempt took after its refresh.
    Slots {
        /// Slots after the first failure.
        slots_first: u32,
        /// Most slots.
        slots_max: u32,
        /// Length of a slot in first attempts.
        unit_factor: f64,
    },
}

/// How an exponential wait is spread.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Uniform from 0 to the wait.
    Full,
}

impl RetryPolicy {
    /// The study's: 11 attempts, at once.
    pub fn immediate() -> Self {
        Self {
            attempts_max: 11,
            budget_ms: None,
            after_catalog_conflict: Backoff::Immediate,
            after_table_conflict: Backoff::Immediate,
        }
    }

    /// 11 attempts with exponential backoff from 100 ms to 10 s and full jitter.
    pub fn full_jitter() -> Self {
        let backoff = Backoff::Exponential { base_ms: 100.0, factor: 2.0, cap_ms: 10_000.0, jitter: Jitter::Full };
        Self { after_catalog_conflict: backoff.clone(), after_table_conflict: backoff, ..Self::immediate() }
    }

    /// What endive-2026 proposes: at once after a catalog conflict, exponential backoff after a table conflict.
    pub fn split() -> Self {
        Self { after_catalog_conflict: Backoff::Immediate, ..Self::full_jitter() }
    }

    /// Iceberg's defaults (`commit.retry.*`): 4 retries, 100 ms doubling to 60 s without jitter, 30 minutes in all.
    pub fn iceberg() -> Self {
        let backoff = Backoff::Exponential { base_ms: 100.0, factor: 2.0, cap_ms: 60_000.0, jitter: Jitter::None };
        Self {
            attempts_max: 5,
            budget_ms: Some(1_800_000.0),
            after_catalog_conflict: backoff.clone(),
            after_table_conflict: backoff,
        }
    }

    /// delta-rs's defaults: 15 retries, at once.
    pub fn delta() -> Self {
        Self { attempts_max: 16, ..Self::immediate() }
    }

    /// Lance's defaults: 20 attempts, 4 slots doubling to 128, each 1.1 times the first attempt, 30 s in all.
    pub fn lance() -> Self {
        let backoff = Backoff::Slots { slots_first: 4, slots_max: 128, unit_factor: 1.1 };
        Self {
            attempts_max: 20,
            budget_ms: Some(30_000.0),
            after_catalog_conflict: backoff.clone(),
            after_table_conflict: backoff,
        }
    }

    /// The policy of this name: `immediate`, `full-jitter`, `split`, `iceberg`, `delta` or `lance`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "immediate" => Self::immediate(),
            "full-jitter" => Self::full_jitter(),
            "split" => Self::split(),
            "iceberg" => Self::iceberg(),
            "delta" => Self::delta(),
            "lance" => Self::lance(),
            _ => return None,
        })
    }

    /// Names that [`RetryPolicy::named`] knows.
    pub const NAMES: [&str; 6] = ["immediate", "full-jitter", "split", "iceberg", "delta", "lance"];

    pub(crate) fn check(&self) -> Result<(), CellError> {
        if !(1..=10_000).contains(&self.attempts_max) {
            return Err(CellError::field("retry.attempts_max", self.attempts_max, "1 to 10,000"));
        }
        if let Some(budget_ms) = self.budget_ms
            && !(budget_ms.is_finite() && budget_ms > 0.0)
        {
            return Err(CellError::field("retry.budget_ms", budget_ms, "more than 0 ms"));
        }
        self.after_catalog_conflict.check("retry.after_catalog_conflict")?;
        self.after_table_conflict.check("retry.after_table_conflict")
    }
}

impl Backoff {
    fn check(&self, field: &str) -> Result<(), CellError> {
        let within = |name: &str, value: f64, min: f64, max: f64| match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(CellError::field(format!("{field}.{name}"), value, format!("{min} to {max}"))),
        };
        match self {
            Self::Immediate => Ok(()),
            Self::Exponential { base_ms, factor, cap_ms, .. } => {
                within("base_ms", *base_ms, 0.0, 1e9)?;
                within("factor", *factor, 1.0, 100.0)?;
                within("cap_ms", *cap_ms, 0.0, 1e9)
            }
            Self::Slots { slots_first, slots_max, unit_factor } => {
                within("slots_first", f64::from(*slots_first), 1.0, 1e6)?;
                within("slots_max", f64::from(*slots_max), f64::from(*slots_first), 1e6)?;
                within("unit_factor", *unit_factor, 0.0, 1e3)
            }
        }
    }
}
