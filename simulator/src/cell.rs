//! What is simulated? One cell: every setting of one run, as data.

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::law::Law;
use crate::protocol::Protocol;
use crate::provider::{LawOverrides, RateLimit};
use crate::retry::RetryPolicy;
use crate::rules::Rules;

mod check;

/// One cell: every setting of a run but its seed.
///
/// The default is one table of endive-2026 on S3 with a 1 ms catalog, FastAppends only, at a scale of 1,000 ms.
///
/// ```
/// use lakemark_simulator::{Arrivals, Cell, simulate};
///
/// let cell = Cell { arrivals: Arrivals::LogNormal { scale_ms: 5_000.0, sigma: 0.5 }, ..Cell::default() };
/// let result = simulate(&cell, 1)?;
/// assert_eq!(result.counts.aborted(), 0);
/// # Ok::<(), lakemark_simulator::CellError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cell {
    /// Simulated time during which transactions begin, in milliseconds. The study's metrics end here.
    pub duration_ms: f64,
    /// Time at the beginning that the drain metrics leave out, in milliseconds.
    pub warm_up_ms: f64,
    /// Follows every transaction to its end, and so yields [`CellResult::drain`](crate::CellResult::drain). The study
    /// cuts the run at `duration_ms` instead, and what is in flight there leaves no row.
    pub drain: bool,
    /// What starts transactions.
    pub arrivals: Arrivals,
    /// Time between a transaction's submission and the start of its commit.
    pub runtime: Law,
    /// Tables of the catalog.
    pub tables: u32,
    /// How a transaction chooses its table.
    pub table_selection: TableSelection,
    /// Partitions of each table; a transaction writes one, chosen uniformly.
    pub partitions: u32,
    /// Share of FastAppends; all others are ValidatedOverwrites.
    pub fast_append_ratio: f64,
    /// Probability that a ValidatedOverwrite finds, at a refresh with new commits to its table and partition, that one
    /// of them really conflicts, and is given up.
    pub real_conflict_probability: f64,
    /// Profile of the store: a built-in name, or the path of a profile that ends in `.toml`.
    pub provider: String,
    /// Laws that take the place of the profile's.
    pub laws: LawOverrides,
    /// Limit on the rate of writes to the object that all commits swap; none by default. Answers beyond it are
    /// throttled attempts. See [`Cell::profile_rate_limit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// What the catalog is.
    pub catalog: Catalog,
    /// Commit protocol: a built-in name, the path of one that ends in `.toml`, or the protocol itself.
    pub protocol: ProtocolChoice,
    /// Retry policy: a name, or the policy itself.
    pub retry: RetryChoice,
    /// The rules on which the study's text, specification and code disagree.
    pub rules: Rules,
    /// A sum of at least this many independent draws of one law is replaced by one draw from an approximation that
    /// keeps its first four moments. `u32::MAX` never does.
    pub sums_exact_below: u32,
}

/// How a transaction chooses its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TableSelection {
    /// All alike.
    Uniform,
    /// Truncated Zipf: table `k`, from 1, in proportion to `k^-exponent`.
    Zipf {
        /// Exponent; 1.5 in the study.
        exponent: f64,
    },
    /// In proportion to these weights, one a table.
    Weights {
        /// Weights, 0 or more.
        weights: Vec<f64>,
    },
}

/// What the catalog is, and so what reading and swapping it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Catalog {
    /// A service: reading and swapping both take this long.
    Service {
        /// Round trip in milliseconds, always the same.
        latency_ms: f64,
    },
    /// A service whose reads and swaps follow laws.
    ServiceLaws {
        /// Reading the pointer.
        read: Law,
        /// Swapping it.
        swap: Law,
    },
    /// An object in the store: a read, and a conditional put.
    Storage,
}

/// A protocol by name or in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProtocolChoice {
    /// A built-in name, or a path that ends in `.toml`.
    Named(String),
    /// The protocol itself.
    Full(Box<Protocol>),
}

/// A retry policy by name or in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RetryChoice {
    /// One of [`RetryPolicy::NAMES`].
    Named(String),
    /// The policy itself.
    Full(RetryPolicy),
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            duration_ms: 3_600_000.0,
            warm_up_ms: 0.0,
            drain: false,
            arrivals: Arrivals::LogNormal { scale_ms: 1_000.0, sigma: 0.5 },
            runtime: Law::log_normal(180_000.0, 1.5, 30_000.0),
            tables: 1,
            table_selection: TableSelection::Uniform,
            partitions: 1,
            fast_append_ratio: 1.0,
            real_conflict_probability: 0.0,
            provider: "s3-2025".to_owned(),
            laws: LawOverrides::default(),
            rate_limit: None,
            catalog: Catalog::Service { latency_ms: 1.0 },
            protocol: ProtocolChoice::Named("iceberg-file".to_owned()),
            retry: RetryChoice::Named("immediate".to_owned()),
            rules: Rules::default(),
            sums_exact_below: 32,
        }
    }
}

impl Cell {
    /// `clients` that commit FastAppends in closed loop to one table, without think time or runtime: what the
    /// concurrent-writers scenario does with the real libraries. `protocol` is a built-in name and brings its
    /// library's retry policy.
    pub fn concurrent_writers(protocol: &str, provider: &str, clients: u32, duration_ms: f64, warm_up_ms: f64) -> Self {
        let retry = match protocol {
            "delta-log" => "delta",
            "lance-manifest" => "lance",
            _ => "iceberg",
        };
        Self {
            duration_ms,
            warm_up_ms,
            drain: true,
            arrivals: Arrivals::ClosedLoop { clients, think: Law::constant(0.0), pinned: false },
            runtime: Law::constant(0.0),
            provider: provider.to_owned(),
            protocol: ProtocolChoice::Named(protocol.to_owned()),
            retry: RetryChoice::Named(retry.to_owned()),
            rules: Rules::profile(),
            ..Self::default()
        }
    }

    /// Transactions that an open arrival process starts in the mean; none for a closed loop.
    pub fn expected_arrivals(&self) -> Option<f64> {
        Some(self.arrivals.offered_per_s()? * self.duration_ms / 1000.0)
    }
}
