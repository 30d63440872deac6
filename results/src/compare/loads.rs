//! The cold open as a comparison takes it.

use super::{Measured, Reproduced};
use crate::loads::LoadSummary;
use crate::summary::LatencySplit;
use crate::table::{format_number, format_ratio};

/// The figure of some cold opens. A latency without computing gets the CPU time of the same loads, as a commit's does:
/// an upper bound, since a library may compute on several threads and while requests are under way.
pub(super) fn reproduced(load: &LoadSummary, is_without_computing: bool) -> Reproduced {
    let (value, half_width) = if is_without_computing {
        (load.latency_with_cpu_ms, load.latency_with_cpu_half_width_ms)
    } else {
        (load.latency_ms, load.latency_half_width_ms)
    };
    Reproduced {
        value: Some(value),
        half_width,
        split: Some(LatencySplit { wait_ms: load.wait_ms, catalog_ms: load.catalog_ms, cpu_ms: load.cpu_ms }),
        appends: load.appends,
    }
}

/// What must be known of a load's latency: between which bounds it lies, if computing was added to it.
pub(super) fn notes(cell: &Measured<'_>, reproduced: &Reproduced, published: Option<f64>) -> Option<String> {
    let split = reproduced.split.filter(|_| cell.is_without_computing())?;
    // All computing within the wait, on as many threads as it takes: then the wait alone is left.
    let least_ms = split.wait_ms + split.catalog_ms;
    let ratio = published.map(|published| format!(", {} of the published", format_ratio(least_ms / published)));
    Some(format!(
        "computing added as if one thread did all of it, after the wait: an upper bound; with computing in parallel and \
         within the wait, not below {} ms{}",
        format_number(least_ms),
        ratio.unwrap_or_default()
    ))
}
