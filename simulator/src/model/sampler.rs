//! How is a duration drawn, and a sum of many? Laws made ready for the inner loop, in nanoseconds.

use std::sync::{Arc, OnceLock};

use super::normal;
use super::streams::Stream;
use crate::law::Law;
use crate::provider::{MIB_BYTES, OperationLaw};
use crate::rules::Transfer;

mod moments;

pub(super) use moments::Moments;

const NS_PER_MS: f64 = 1e6;

/// Cells of a [`Table`], a power of two.
const CELL_BITS: u32 = 10;
const CELLS: usize = 1 << CELL_BITS;
/// Cells at either end that are not interpolated.
const TAIL_CELLS: usize = 8;

/// A law made ready.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    /// Always the same.
    Fixed(f64),
    /// A table of its quantiles.
    Table(Arc<Table>),
    /// The larger of two independent draws.
    Larger(Box<(Sampler, Sampler)>),
}

/// A distribution by its quantile function.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    StandardNormal,
    LogNormal { ln_ns: f64, sigma: f64, add_ns: f64, floor_ns: f64 },
    Exponential { mean_ns: f64, add_ns: f64 },
    Quantiles { points: Vec<(f64, f64)>, add_ns: f64 },
}

/// Quantiles of a shape at 1,025 evenly spaced probabilities, with straight lines between them: at each of them the
/// distribution is exact, and nowhere in between is its distribution function off by more than 2e-5 (and by 1e-6 for
/// most). The tails, where the quantile function bends, are not interpolated but computed. One draw is one random
/// number, one look into the table and one multiplication: a third of the time of a ziggurat and an exponential.
#[derive(Debug)]
pub(super) struct Table {
    /// Quantile at the cell's beginning, and how much it grows over the cell. Single precision, 1e-7, halves the room
    /// that a law takes in the processor's cache.
    cells: Box<[(f32, f32); CELLS]>,
    shape: Shape,
    moments: OnceLock<Moments>,
}

impl Sampler {
    pub(super) fn constant(ns: f64) -> Self {
        Self::Fixed(ns)
    }

    /// A law without anything moved.
    pub(super) fn law(law: &Law) -> Self {
        Self::shifted(law, 0.0)
    }

    /// One request of an operation that moves `bytes` and lists `keys`.
    pub(super) fn operation(operation: &OperationLaw, write: bool, bytes: f64, keys: f64, transfer: Transfer) -> Self {
        let moved_ms = operation.per_mib_ms * bytes / MIB_BYTES;
        let listed_ms = operation.per_1000_keys_ms * keys / 1_000.0;
        match (transfer, &operation.law) {
            (Transfer::Study, Law::LogNormal { median_ms, sigma, floor_ms }) => {
                let median_ms = median_ms + if write { moved_ms } else { 0.0 };
                Self::shifted(&Law::log_normal(median_ms, *sigma, *floor_ms), listed_ms)
            }
            (Transfer::Study, law) => Self::shifted(law, listed_ms + if write { moved_ms } else { 0.0 }),
            (Transfer::Profile, law) => Self::shifted(law, moved_ms + listed_ms),
        }
    }

    /// The larger of a draw of each.
    pub(super) fn larger(a: Self, b: Self) -> Self {
        Self::Larger(Box::new((a, b)))
    }

    fn shifted(law: &Law, add_ms: f64) -> Self {
        let add_ns = add_ms * NS_PER_MS;
        Self::of(match law {
            Law::Constant { ms } => return Self::Fixed(ms * NS_PER_MS + add_ns),
            Law::LogNormal { median_ms, sigma, floor_ms } if *sigma == 0.0 || *median_ms == 0.0 => {
                return Self::Fixed((median_ms * NS_PER_MS + add_ns).max(floor_ms * NS_PER_MS));
            }
            Law::LogNormal { median_ms, sigma, floor_ms } => Shape::LogNormal {
                ln_ns: (median_ms * NS_PER_MS).ln(),
                sigma: *sigma,
                add_ns,
                floor_ns: floor_ms * NS_PER_MS,
            },
            Law::Exponential { mean_ms } => Shape::Exponential { mean_ns: mean_ms * NS_PER_MS, add_ns },
            Law::Quantiles { points } => {
                Shape::Quantiles { points: points.iter().map(|(p, ms)| (*p, ms * NS_PER_MS)).collect(), add_ns }
            }
        })
    }

    fn of(shape: Shape) -> Self {
        Self::Table(Arc::new(Table::new(shape)))
    }

    /// The duration, if it never varies.
    pub(super) fn fixed_ns(&self) -> Option<f64> {
        match self {
            Self::Fixed(ns) => Some(*ns),
            _ => None,
        }
    }

    /// One draw, in nanoseconds.
    #[inline(always)]
    pub(super) fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Table(table) => table.draw(stream),
            Self::Fixed(ns) => *ns,
            Self::Larger(both) => both.0.draw_rarely(stream).max(both.1.draw_rarely(stream)),
        }
    }

    /// Both draw from one table.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Table(a), Self::Table(b)) if Arc::ptr_eq(a, b))
    }

    /// The sum of a few draws, one by one.
    #[inline(always)]
    pub(super) fn few(&self, n: u32, stream: &mut Stream) -> f64 {
        match self {
            Self::Table(table) => {
                let mut sum = 0.0;
                for _ in 0..n {
                    sum += table.draw(stream);
                }
                sum
            }
            other => (0..n).map(|_| other.draw_rarely(stream)).sum(),
        }
    }

    #[inline(never)]
    fn draw_rarely(&self, stream: &mut Stream) -> f64 {
        self.draw(stream)
    }

    /// The sum of `n` independent draws, in nanoseconds. From `exact_below` on it is one draw from an approximation.
    #[inline]
    pub(super) fn sum(&self, n: u32, exact_below: u32, stream: &mut Stream) -> f64 {
        match self {
            Self::Fixed(ns) => ns * f64::from(n),
            Self::Table(table) if n >= exact_below => table.moments().sum(f64::from(n), standard_normal().draw(stream)),
            _ => self.few(n, stream),
        }
    }
}

impl Table {
    fn new(shape: Shape) -> Self {
        let at = |index: usize| shape.quantile(index as f64 / CELLS as f64);
        let mut cells = Box::new([(0.0, 0.0); CELLS]);
        // The cells of the tails are never looked into.
        let mut from = at(TAIL_CELLS);
        for index in TAIL_CELLS..CELLS - TAIL_CELLS {
            let to = at(index + 1);
            cells[index] = (from as f32, (to - from) as f32);
            from = to;
        }
        Self { cells, shape, moments: OnceLock::new() }
    }

    #[inline(always)]
    fn draw(&self, stream: &mut Stream) -> f64 {
        let bits = stream.next();
        let index = (bits >> (64 - CELL_BITS)) as usize;
        if index.wrapping_sub(TAIL_CELLS) < CELLS - 2 * TAIL_CELLS {
            let (from, growth) = self.cells[index];
            // What is left below the index, as a share of the cell.
            // Signed, as processors convert those in one instruction.
            let share =
                (bits & ((1 << (64 - CELL_BITS)) - 1)) as i64 as f64 * (1.0 / (1u64 << (64 - CELL_BITS)) as f64);
            return f64::from(from) + f64::from(growth) * share;
        }
        self.tail(bits)
    }

    #[cold]
    #[inline(never)]
    fn tail(&self, bits: u64) -> f64 {
        self.shape.quantile(((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64))
    }

    pub(super) fn moments(&self) -> &Moments {
        self.moments.get_or_init(|| Moments::of(&self.shape))
    }
}

/// The standard normal, as a table.
fn standard_normal() -> &'static Table {
    static NORMAL: OnceLock<Table> = OnceLock::new();
    NORMAL.get_or_init(|| Table::new(Shape::StandardNormal))
}

impl Shape {
    fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::StandardNormal => normal::quantile(p),
            Self::LogNormal { ln_ns, sigma, add_ns, floor_ns } => {
                ((ln_ns + sigma * normal::quantile(p)).exp() + add_ns).max(*floor_ns)
            }
            Self::Exponential { mean_ns, add_ns } => add_ns - mean_ns * (1.0 - p).max(1e-300).ln(),
            Self::Quantiles { points, add_ns } => {
                let above = points.partition_point(|point| point.0 < p).clamp(1, points.len() - 1);
                let (low, high) = (points[above - 1], points[above]);
                add_ns + low.1 + (high.1 - low.1) * (p - low.0) / (high.0 - low.0)
            }
        }
    }
}

/// Whole nanoseconds of a duration, to the nearest: adding 2^52 leaves them in the low bits of the sum. One addition,
/// where a cast has to look for values that do not fit. 52 days at most, more than any run.
#[inline(always)]
pub(super) fn whole_ns(ns: f64) -> u64 {
    const SHIFT: f64 = (1u64 << 52) as f64;
    (ns.min(SHIFT - 1.0) + SHIFT).to_bits() & ((1 << 52) - 1)
}

#[cfg(test)]
mod tests;
