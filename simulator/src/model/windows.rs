//! Which transactions does the heatmap's and the knee's window hold? It depends on when the last commit was, which is
//! known only at the end.
//!
//! Both windows begin a tenth after the first submission and end a tenth before the last commit, of the time between
//! the two. Before the run is over, these instants are known to lie within a margin, if the last commit is near the end
//! of the run and the first submission near its beginning. Transactions outside of both margins are counted at once;
//! those inside are kept, and judged at the end. The margin shrinks as the number of transactions grows, so that what
//! is kept does not. A run in which the first or last instant lies elsewhere is repeated with a wider margin: the
//! result is always exact.

use super::recorder::{Row, Tally};
use crate::cell::Cell;

/// Transactions that a margin holds, about: few enough to keep, and so many that the last commit falls within.
const KEPT: f64 = 1_000.0;

/// The first guess of the margin, as a share of the run.
pub(super) fn first_margin(cell: &Cell) -> f64 {
    match cell.expected_arrivals() {
        Some(arrivals) => KEPT / arrivals.max(1.0),
        None => 0.01,
    }
}

/// The window of transactions of some types.
pub(super) struct Window {
    margin: f64,
    end_ms: f64,
    first_submit_ms: u32,
    last_commit_ms: u32,
    kept: Vec<Row>,
    /// Of FastAppends and of ValidatedOverwrites.
    tallies: [Tally; 2],
}

impl Window {
    pub(super) fn new(end_ms: f64, margin: f64) -> Self {
        let margin = margin.min(1.0);
        Self {
            margin,
            end_ms,
            first_submit_ms: u32::MAX,
            last_commit_ms: 0,
            kept: Vec::new(),
            tallies: Default::default(),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, row: Row) {
        self.first_submit_ms = self.first_submit_ms.min(row.submit_ms);
        if row.committed {
            self.last_commit_ms = self.last_commit_ms.max(row.end_ms);
        }
        // Between which instants the window begins, and ends, whatever happens within the margins.
        let (early, late) = (self.margin * self.end_ms, (1.0 - self.margin) * self.end_ms);
        let begin_ms = (0.1 * late, 0.1 * self.end_ms + 0.9 * early);
        let end_ms = (0.9 * late, 0.9 * self.end_ms + 0.1 * early);
        let (submit_ms, commit_ms) = (f64::from(row.submit_ms), f64::from(row.end_ms));
        if submit_ms < begin_ms.0 || (row.committed && commit_ms > end_ms.1) {
            return;
        }
        if submit_ms >= begin_ms.1 && (!row.committed || commit_ms <= end_ms.0) {
            self.tallies[usize::from(row.validated_overwrite)].add(row);
        } else {
            self.kept.push(row);
        }
    }

    /// The tallies of FastAppends and ValidatedOverwrites in the window; none if the margin was too narrow.
    pub(super) fn close(mut self) -> Option<[Tally; 2]> {
        if self.last_commit_ms == 0 {
            // Nothing committed: there is no window, and nothing in it.
            return Some(Default::default());
        }
        let (first_ms, last_ms) = (f64::from(self.first_submit_ms), f64::from(self.last_commit_ms));
        let within = first_ms <= self.margin * self.end_ms && last_ms >= (1.0 - self.margin) * self.end_ms;
        if !within && self.margin < 1.0 {
            return None;
        }
        let tenth_ms = 0.1 * (last_ms - first_ms);
        for row in self.kept {
            let before_end = !row.committed || f64::from(row.end_ms) <= last_ms - tenth_ms;
            if f64::from(row.submit_ms) >= first_ms + tenth_ms && before_end {
                self.tallies[usize::from(row.validated_overwrite)].add(row);
            }
        }
        Some(self.tallies)
    }
}
