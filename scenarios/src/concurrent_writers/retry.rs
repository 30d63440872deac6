//! What does a writer do when its commit lost? What the library does, nothing, or the same for every format.

use std::collections::BTreeMap;
use std::time::Duration;

use lakemark_core::clock;
use lakemark_core::table::OperationResult;
use lakemark_results::record::Outcome;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::member::Handle;
use super::work::Work;
use crate::parameters;

/// Who tries again after a commit that lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Policy {
    /// The library, as its settings say.
    Library,
    /// No one.
    None,
    /// The scenario, after an exponential backoff with full jitter: a wait between 0 and `base` × 2ⁿ
    /// (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>).
    Common {
        base_ms: f64,
        max_ms: f64,
        /// Tries in all.
        attempts: u64,
    },
}

impl Policy {
    pub(super) fn new(parameters: &BTreeMap<String, Value>) -> Self {
        match parameters::word(parameters, "retry") {
            "none" => Self::None,
            "common" => Self::Common {
                base_ms: parameters::number(parameters, "retry-base-ms"),
                max_ms: parameters::number(parameters, "retry-max-ms"),
                attempts: parameters::count(parameters, "retry-attempts"),
            },
            _ => Self::Library,
        }
    }

    /// Runs one operation to its end. A handle whose last operation failed first looks at the table again, as its program
    /// would before it goes on.
    pub(super) async fn run(self, handle: &mut Handle, work: &Work, random: &mut ChaCha8Rng) -> OperationResult<u64> {
        if handle.is_stale {
            handle.refresh().await?;
        }
        let mut tries = 1;
        loop {
            let error = match work.run(handle.table.as_mut()).await {
                Ok(version) => return Ok(version),
                Err(error) => error,
            };
            let Self::Common { base_ms, max_ms, attempts } = self else { return Err(error) };
            // One that may have had its effect is not made again: it could be there twice.
            if tries >= attempts || !matches!(error.outcome, Outcome::Conflict | Outcome::Throttled) {
                return Err(error);
            }
            // At 2^53 and more the limit has long been reached.
            let doublings = i32::try_from(tries - 1).unwrap_or(i32::MAX).min(53);
            let longest_ms = (base_ms * 2f64.powi(doublings)).min(max_ms);
            clock::sleep(Duration::from_secs_f64(random.random::<f64>() * longest_ms / 1e3)).await;
            handle.refresh().await?;
            tries += 1;
        }
    }
}
