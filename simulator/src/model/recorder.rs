//! What is kept of a transaction that has ended? Its share in each metric.

use super::Model;
use super::transaction::Transaction;
use super::windows::Window;
use crate::histogram::Histogram;
use crate::law::Law;
use crate::result::{CellResult, Counts, Latency, PerType, Summary};

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) submit_ms: u32,
    pub(super) end_ms: u32,
    pub(super) latency_ms: u32,
    pub(super) retries: u32,
    pub(super) validated_overwrite: bool,
    pub(super) committed: bool,
}

/// Counts of some transactions, and the latencies of those that committed.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    committed: u64,
    aborted: u64,
    retries: u64,
    latency: Histogram,
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, row: Row) {
        if row.committed {
            self.committed += 1;
            self.retries += u64::from(row.retries);
            self.latency.record(row.latency_ms);
        } else {
            self.aborted += 1;
        }
    }

    fn merged(&self, other: &Self) -> Self {
        let mut latency = self.latency.clone();
        latency.merge(&other.latency);
        Self {
            committed: self.committed + other.committed,
            aborted: self.aborted + other.aborted,
            retries: self.retries + other.retries,
            latency,
        }
    }

    /// The metrics of what was tallied, with commits a second over a span.
    fn summary(&self, throughput_commits: u64, span_s: f64) -> Summary {
        let transactions = self.committed + self.aborted;
        Summary {
            transactions,
            committed: self.committed,
            success_rate: (transactions > 0).then(|| self.committed as f64 / transactions as f64),
            throughput_per_s: (span_s > 0.0).then(|| throughput_commits as f64 / span_s),
            latency: Latency::of(&self.latency),
            mean_retries: (self.committed > 0).then(|| self.retries as f64 / self.committed as f64),
        }
    }
}

impl<T> PerType<T> {
    fn from_types(types: [T; 2], all: T) -> Self {
        let [fast_append, validated_overwrite] = types;
        Self { all, fast_append, validated_overwrite }
    }
}

/// First and last submission.
type Span = Option<(u32, u32)>;

pub(super) struct Recorder {
    end_ns: u64,
    warm_up_ns: u64,
    drain: bool,
    /// The table metric's window.
    table_ms: (u32, u32),
    table: [Tally; 2],
    table_spans: [Span; 2],
    /// All rows of the run.
    whole: [Tally; 2],
    /// Windows over all transactions, over FastAppends and over ValidatedOverwrites. The latter two are left out where
    /// there is one type only.
    windows: (Window, Option<[Window; 2]>),
    drained: [Tally; 2],
    drained_in_time: [u64; 2],
    failure: [Histogram; 2],
}

impl Recorder {
    pub(super) fn new(model: &Model, margin: f64) -> Self {
        let cell = &model.cell;
        let duration_ms = cell.duration_ms;
        let runtime_ms = match &cell.runtime {
            Law::Constant { ms } => *ms,
            Law::LogNormal { median_ms, .. } => *median_ms,
            Law::Exponential { mean_ms } => *mean_ms,
            Law::Quantiles { points } => points.iter().find(|point| point.0 >= 0.5).map_or(0.0, |point| point.1),
        };
        let aside_ms = (5.0 * runtime_ms).clamp(300_000.0, 900_000.0);
        let share = cell.fast_append_ratio;
        let both = share > 0.0 && share < 1.0;
        // Fewer transactions of a type than of both, so a wider margin.
        let window = |share: f64| Window::new(duration_ms, margin / share);
        Self {
            end_ns: model.end_ns,
            warm_up_ns: (cell.warm_up_ms * 1e6) as u64,
            drain: cell.drain,
            table_ms: (aside_ms as u32, (duration_ms - aside_ms).max(0.0) as u32),
            table: Default::default(),
            table_spans: [None; 2],
            whole: Default::default(),
            windows: (window(1.0), both.then(|| [window(share), window(1.0 - share)])),
            drained: Default::default(),
            drained_in_time: [0; 2],
            failure: Default::default(),
        }
    }

    /// Counts a transaction that ended at `end_ns`.
    pub(super) fn add(&mut self, transaction: &Transaction, end_ns: u64, committed: bool) {
        let row = Row {
            submit_ms: whole_ms(transaction.submit_ns),
            end_ms: whole_ms(end_ns),
            latency_ms: whole_ms(end_ns - transaction.commit_ns),
            retries: transaction.failures,
            validated_overwrite: transaction.validated_overwrite,
            committed,
        };
        let kind = usize::from(row.validated_overwrite);
        if !committed {
            self.failure[kind].record(row.latency_ms);
        }
        if self.drain {
            if transaction.submit_ns >= self.warm_up_ns {
                self.drained[kind].add(row);
            }
            if committed && (self.warm_up_ns..self.end_ns).contains(&end_ns) {
                self.drained_in_time[kind] += 1;
            }
        }
        if end_ns <= self.end_ns {
            self.add_in_time(row, kind);
        }
    }

    fn add_in_time(&mut self, row: Row, kind: usize) {
        let whole = &mut self.whole[kind];
        match row.committed {
            true => whole.committed += 1,
            false => whole.aborted += 1,
        }
        if (self.table_ms.0..self.table_ms.1).contains(&row.submit_ms) {
            self.table[kind].add(row);
            let span = &mut self.table_spans[kind];
            let (first, last) = span.unwrap_or((row.submit_ms, row.submit_ms));
            *span = Some((first.min(row.submit_ms), last.max(row.submit_ms)));
        }
        if let Some(windows) = &mut self.windows.1 {
            windows[kind].add(row);
        }
        self.windows.0.add(row);
    }

    /// The metrics; none if a window's margin was too narrow.
    pub(super) fn finish(self, model: &Model, seed: u64, counts: Counts) -> Option<CellResult> {
        let cell = &model.cell;
        let duration_s = cell.duration_ms / 1_000.0;
        let windowed = self.windows.0.close()?;
        let own = match self.windows.1 {
            None => windowed.clone(),
            Some([fast_append, validated_overwrite]) => {
                let ([fast_append, _], [_, validated_overwrite]) = (fast_append.close()?, validated_overwrite.close()?);
                [fast_append, validated_overwrite]
            }
        };
        let windowed_all = windowed[0].merged(&windowed[1]);
        let whole_all = self.whole[0].merged(&self.whole[1]);
        // Success over the whole run, all else over the window.
        let heat = |whole: &Tally, window: &Tally| Summary {
            latency: Latency::of(&window.latency),
            mean_retries: (window.committed > 0).then(|| window.retries as f64 / window.committed as f64),
            ..whole.summary(window.committed, duration_s)
        };
        let knee = |tally: &Tally| tally.summary(tally.committed, 0.8 * duration_s);
        let table = |tally: &Tally, span: Span| {
            let span_ms = span.map_or(0, |(first, last)| last - first);
            tally.summary(tally.committed, f64::from(span_ms) / 1_000.0)
        };
        let spans = self.table_spans;
        let span_all = match spans {
            [Some(a), Some(b)] => Some((a.0.min(b.0), a.1.max(b.1))),
            [a, b] => a.or(b),
        };
        let drained_all = self.drained[0].merged(&self.drained[1]);
        let drain_s = duration_s - cell.warm_up_ms / 1_000.0;
        let [in_time_fa, in_time_vo] = self.drained_in_time;
        let drain = self.drain.then(|| PerType {
            all: drained_all.summary(in_time_fa + in_time_vo, drain_s),
            fast_append: self.drained[0].summary(in_time_fa, drain_s),
            validated_overwrite: self.drained[1].summary(in_time_vo, drain_s),
        });
        let mut failure_all = self.failure[0].clone();
        failure_all.merge(&self.failure[1]);
        let table_all = self.table[0].merged(&self.table[1]);
        let behind = if self.drain { (self.drained, drained_all) } else { (own.clone(), windowed_all.clone()) };
        Some(CellResult {
            seed,
            counts,
            table: PerType::from_types(
                [table(&self.table[0], spans[0]), table(&self.table[1], spans[1])],
                table(&table_all, span_all),
            ),
            heatmap: PerType::from_types(
                [heat(&self.whole[0], &own[0]), heat(&self.whole[1], &own[1])],
                heat(&whole_all, &windowed_all),
            ),
            knee: PerType::from_types([knee(&windowed[0]), knee(&windowed[1])], knee(&windowed_all)),
            drain,
            failure: PerType::from_types(
                [Latency::of(&self.failure[0]), Latency::of(&self.failure[1])],
                Latency::of(&failure_all),
            ),
            histograms: PerType::from_types(behind.0.map(|tally| tally.latency), behind.1.latency),
        })
    }
}

/// Rounded to whole milliseconds.
#[inline(always)]
fn whole_ms(ns: u64) -> u32 {
    ((ns + 500_000) / 1_000_000) as u32
}
