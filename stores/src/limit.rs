//! How much a provider takes before it asks to slow down.

use std::collections::HashMap;

use crate::profile::{Limits, Rate};

/// What a rate is counted for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Scope {
    Object,
    Prefix,
    Bucket,
}

/// A token bucket for everything that a limit counts.
#[derive(Debug, Default)]
pub(crate) struct Buckets(HashMap<(Scope, bool, String), Bucket>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at_ns: u64,
}

impl Buckets {
    /// Counts a request against every limit that applies; says whether it is within all of them. Prefix limits count
    /// by folder.
    pub(crate) fn admit(&mut self, limits: &Limits, key: &str, is_write: bool, now_ns: u64) -> bool {
        let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (object, prefix, bucket) = if is_write {
            (limits.per_object_writes, limits.per_prefix_writes, limits.per_bucket_writes)
        } else {
            (None, limits.per_prefix_reads, limits.per_bucket_reads)
        };
        let applying = [(Scope::Object, object, key), (Scope::Prefix, prefix, folder), (Scope::Bucket, bucket, "")];
        // A refused request still counts where it was let through: a provider does not know yet that another of its
        // parts will refuse.
        applying.into_iter().fold(true, |admitted, (scope, rate, name)| {
            admitted & rate.is_none_or(|rate| self.take(scope, is_write, name, rate, now_ns))
        })
    }

    fn take(&mut self, scope: Scope, is_write: bool, name: &str, rate: Rate, now_ns: u64) -> bool {
        let bucket =
            self.0.entry((scope, is_write, name.to_owned())).or_insert(Bucket { tokens: rate.burst, at_ns: now_ns });
        let refill = now_ns.saturating_sub(bucket.at_ns) as f64 / 1e9 * rate.per_s;
        bucket.tokens = (bucket.tokens + refill).min(rate.burst);
        bucket.at_ns = now_ns;
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}
