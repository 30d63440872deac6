//! Which latencies occurred, and how often? A histogram of whole milliseconds.

use serde::{Deserialize, Serialize};

/// Counters of one page: 256 ms.
const PAGE_MS: usize = 256;

/// A histogram of durations in whole milliseconds. As durations are rounded to whole milliseconds before they are
/// counted, nothing is lost: means and percentiles are exact. Its size grows with the range of what it has seen, never
/// with the number of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(u32, u32)>", into = "Vec<(u32, u32)>")]
pub struct Histogram {
    pages: Vec<Option<Box<[u32; PAGE_MS]>>>,
    count: u64,
    sum_ms: u64,
}

impl Histogram {
    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, ms: u32) {
        self.record_n(ms, 1);
    }

    /// Counts a duration `n` times.
    #[inline]
    pub fn record_n(&mut self, ms: u32, n: u32) {
        let page = ms as usize / PAGE_MS;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE_MS]));
        page[ms as usize % PAGE_MS] += n;
        self.count += u64::from(n);
        self.sum_ms += u64::from(ms) * u64::from(n);
    }

    /// Adds what another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        for (ms, n) in other.iter() {
            self.record_n(ms, n);
        }
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in milliseconds; none of nothing.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ms as f64 / self.count as f64)
    }

    /// Durations in milliseconds and how often each occurred, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pages = self.pages.iter().enumerate().filter_map(|(index, page)| Some((index, page.as_ref()?)));
        pages.flat_map(|(index, page)| {
            let counters = page.iter().enumerate().filter(|(_, n)| **n > 0);
            counters.map(move |(ms, n)| ((index * PAGE_MS + ms) as u32, *n))
        })
    }

    /// Percentiles in milliseconds, interpolated linearly between the two nearest ranks: with the `n` sorted durations
    /// `x[0]…x[n-1]` and `h = (n - 1) × p / 100`, `x[⌊h⌋] + (h - ⌊h⌋) × (x[⌊h⌋ + 1] - x[⌊h⌋])`. This is R's type 7 and
    /// the default of NumPy and pandas. `percents` ascend. None of nothing.
    pub fn percentiles_ms<const N: usize>(&self, percents: [f64; N]) -> Option<[f64; N]> {
        if self.count == 0 {
            return None;
        }
        let mut found = [0.0; N];
        let mut durations = self.iter();
        // The duration at hand, and the rank after its last occurrence.
        let (mut ms, n) = durations.next()?;
        let mut end = u64::from(n);
        for (percentile, percent) in found.iter_mut().zip(percents) {
            let rank = (self.count - 1) as f64 * percent / 100.0;
            let low_rank = rank.floor() as u64;
            while low_rank >= end {
                let next = durations.next()?;
                ms = next.0;
                end += u64::from(next.1);
            }
            let low_ms = f64::from(ms);
            let fraction = rank - rank.floor();
            // The next rank's duration; looking does not move on, as the next percentile may lie in between.
            let high_ms = match low_rank + 1 < end || fraction == 0.0 {
                true => low_ms,
                false => self.after(ms).map_or(low_ms, f64::from),
            };
            *percentile = low_ms + fraction * (high_ms - low_ms);
        }
        Some(found)
    }

    /// The smallest duration above this one.
    fn after(&self, ms: u32) -> Option<u32> {
        let first = ms as usize + 1;
        (first / PAGE_MS..self.pages.len()).find_map(|index| {
            let page = self.pages[index].as_ref()?;
            let from = if index == first / PAGE_MS { first % PAGE_MS } else { 0 };
            let offset = page[from..].iter().position(|n| *n > 0)?;
            Some((index * PAGE_MS + from + offset) as u32)
        })
    }
}

impl From<Vec<(u32, u32)>> for Histogram {
    fn from(counts: Vec<(u32, u32)>) -> Self {
        let mut histogram = Self::default();
        counts.into_iter().for_each(|(ms, n)| histogram.record_n(ms, n));
        histogram
    }
}

impl From<Histogram> for Vec<(u32, u32)> {
    fn from(histogram: Histogram) -> Self {
        histogram.iter().collect()
    }
}
