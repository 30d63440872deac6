//! Is a cell one that can be run, and what do its names stand for?

use lakemark_stores::profile::Profile;

use super::{Catalog, Cell, ProtocolChoice, RetryChoice, TableSelection};
use crate::error::CellError;
use crate::protocol::Protocol;
use crate::provider::{self, RateLimit};
use crate::retry::RetryPolicy;

/// A cell would hold this many transactions at most.
const ARRIVALS_MAX: f64 = 1e9;

impl Cell {
    /// Refuses settings that cannot be run.
    ///
    /// # Errors
    /// One line that names the field, its value and what is allowed.
    pub fn validate(&self) -> Result<(), CellError> {
        let within = |field: &str, value: f64, min: f64, max: f64| match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(CellError::field(field, value, format!("{min} to {max}"))),
        };
        // 31 days: past that, nanoseconds and milliseconds in 32 bits no longer hold.
        within("duration_ms", self.duration_ms, 1.0, 2_678_400_000.0)?;
        within("warm_up_ms", self.warm_up_ms, 0.0, self.duration_ms)?;
        within("tables", f64::from(self.tables), 1.0, 1_000_000.0)?;
        within("partitions", f64::from(self.partitions), 1.0, 1_000_000.0)?;
        within("tables × partitions", f64::from(self.tables) * f64::from(self.partitions), 1.0, 10_000_000.0)?;
        within("fast_append_ratio", self.fast_append_ratio, 0.0, 1.0)?;
        within("real_conflict_probability", self.real_conflict_probability, 0.0, 1.0)?;
        within("sums_exact_below", f64::from(self.sums_exact_below), 16.0, f64::from(u32::MAX))?;
        self.arrivals.check()?;
        if let Some(arrivals) = self.expected_arrivals() {
            within("expected arrivals", arrivals, 0.0, ARRIVALS_MAX)?;
        }
        self.runtime.check("runtime")?;
        self.check_selection()?;
        match &self.catalog {
            Catalog::Storage => {}
            Catalog::Service { latency_ms } => within("catalog.latency_ms", *latency_ms, 0.0, 1e9)?,
            Catalog::ServiceLaws { read, swap } => {
                read.check("catalog.read")?;
                swap.check("catalog.swap")?;
            }
        }
        if let Some(RateLimit { per_s, burst }) = self.rate_limit {
            within("rate_limit.per_s", per_s, 1e-6, 1e9)?;
            within("rate_limit.burst", burst, 1.0, 1e9)?;
        }
        self.laws.check()?;
        self.rules.check()?;
        self.resolved_retry()?;
        self.resolved_protocol()?;
        self.resolved_profile().map(|_| ())
    }

    fn check_selection(&self) -> Result<(), CellError> {
        match &self.table_selection {
            TableSelection::Uniform => Ok(()),
            TableSelection::Zipf { exponent } => match (0.0..=10.0).contains(exponent) {
                true => Ok(()),
                false => Err(CellError::field("table_selection.exponent", exponent, "0 to 10")),
            },
            TableSelection::Weights { weights } => {
                let usable = weights.len() == self.tables as usize
                    && weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
                    && weights.iter().sum::<f64>() > 0.0;
                match usable {
                    true => Ok(()),
                    false => Err(CellError::field(
                        "table_selection.weights",
                        format!("{weights:?}"),
                        format!("{} weights of 0 or more, one a table, at least one above 0", self.tables),
                    )),
                }
            }
        }
    }

    /// The retry policy that the cell names or holds.
    ///
    /// # Errors
    /// When no policy has the name, or a value is out of range.
    pub fn resolved_retry(&self) -> Result<RetryPolicy, CellError> {
        let policy = match &self.retry {
            RetryChoice::Full(policy) => policy.clone(),
            RetryChoice::Named(name) => RetryPolicy::named(name)
                .ok_or_else(|| CellError::field("retry", format!("{name:?}"), RetryPolicy::NAMES.join(", ")))?,
        };
        policy.check()?;
        Ok(policy)
    }

    /// The protocol that the cell names or holds, before [`Rules`](crate::Rules) are applied.
    ///
    /// # Errors
    /// When no protocol has the name, or a value is out of range.
    pub fn resolved_protocol(&self) -> Result<Protocol, CellError> {
        match &self.protocol {
            ProtocolChoice::Named(name) => Protocol::named(name),
            ProtocolChoice::Full(protocol) => {
                protocol.check()?;
                Ok(protocol.as_ref().clone())
            }
        }
    }

    /// The profile that the cell names.
    ///
    /// # Errors
    /// When there is none, or its file is refused.
    pub fn resolved_profile(&self) -> Result<Profile, CellError> {
        provider::profile(&self.provider)
    }

    /// The limit on writes to one object that the cell's profile documents, for [`Cell::rate_limit`].
    ///
    /// # Errors
    /// As [`Cell::resolved_profile`].
    pub fn profile_rate_limit(&self) -> Result<Option<RateLimit>, CellError> {
        let limit = self.resolved_profile()?.limits.per_object_writes;
        Ok(limit.map(|rate| RateLimit { per_s: rate.per_s, burst: rate.burst }))
    }
}
