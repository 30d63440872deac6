//! How the metadata grows: lines fitted to the samples of a cell, and what they come to at a million data files.
//!
//! Three quantities, each against the number of active data files:
//!
//! - *active*: bytes that a cold open reads. Its slope is bytes per active file.
//! - *written* and *retained*: bytes that one commit adds. Where each version holds everything (Iceberg's metadata.json,
//!   Lance's manifest) the sums grow with the square of the versions, so that no line fits them; what a commit adds is
//!   taken between neighbouring samples, at their middle, and grows along a line. Its slope is bytes per commit and
//!   active file.
//!
//! A checkpoint every so many commits makes a sawtooth of the active metadata: samples at different distances from a
//! checkpoint lie on different lines. Where a format has such an interval, only samples at one distance are fitted, the
//! one that most of them have. The largest distance of a sample from the line is given in any case.

use serde::{Deserialize, Serialize};

use crate::record::MetadataSample;
use crate::statistics::{mean, student_t_95};

mod rows;

pub use rows::{ProjectionRow, rows};

/// Active data files that the projection is for.
pub const FILES: f64 = 1e6;

/// A straight line by ordinary least squares.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Line {
    /// Points that it was fitted to.
    pub points: u64,
    /// Its height at 0.
    pub intercept: f64,
    /// Its rise for each step.
    pub slope: f64,
    /// Half the width of the slope's 95 % confidence interval; none for two points, which leave no spread.
    pub slope_half_width: Option<f64>,
    /// Largest distance of a point from the line, by the height of the line there.
    pub residual_max: f64,
    /// Mean of the places fitted.
    centre: f64,
    /// Sum of squares of the places about their mean.
    squares: f64,
    /// Variance about the line; none for two points.
    variance: Option<f64>,
}

impl Line {
    /// Fits a line; none for fewer than two places.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len();
        let centre = mean(&points.iter().map(|(x, _)| *x).collect::<Vec<_>>())?;
        let height = mean(&points.iter().map(|(_, y)| *y).collect::<Vec<_>>())?;
        let squares: f64 = points.iter().map(|(x, _)| (x - centre).powi(2)).sum();
        if n < 2 || squares <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|(x, y)| (x - centre) * (y - height)).sum::<f64>() / squares;
        let at = |x: f64| height + slope * (x - centre);
        let degrees = n - 2;
        let variance =
            (degrees > 0).then(|| points.iter().map(|(x, y)| (y - at(*x)).powi(2)).sum::<f64>() / degrees as f64);
        let half_width = |spread: f64| Some(student_t_95(degrees)? * spread.sqrt());
        let residual = |(x, y): &(f64, f64)| {
            let distance = (y - at(*x)).abs();
            if distance == 0.0 { 0.0 } else { distance / at(*x).abs() }
        };
        Some(Self {
            points: n as u64,
            intercept: at(0.0),
            slope,
            slope_half_width: variance.and_then(|variance| half_width(variance / squares)),
            residual_max: points.iter().map(residual).fold(0.0, f64::max),
            centre,
            squares,
            variance,
        })
    }

    /// Its height at a place.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// Half the width of the 95 % confidence interval of that height; none for two points. It holds the spread of the
    /// points, not the error of taking the line beyond them.
    pub fn half_width_at(&self, x: f64) -> Option<f64> {
        let degrees = usize::try_from(self.points).ok()?.checked_sub(2)?;
        let spread = self.variance? * (1.0 / self.points as f64 + (x - self.centre).powi(2) / self.squares);
        Some(student_t_95(degrees)? * spread.sqrt())
    }
}

/// What a line is fitted to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes that a cold open reads.
    Active,
    /// Bytes that a commit writes.
    WrittenPerCommit,
    /// Bytes that a commit leaves under the table.
    RetainedPerCommit,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Active, Self::WrittenPerCommit, Self::RetainedPerCommit];
}

/// A quantity's growth with the active data files.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Growth {
    /// What grows.
    pub quantity: Quantity,
    /// Bytes against active data files.
    pub line: Line,
    /// Appends past a multiple of the checkpoint interval, the same for all samples fitted, if the format writes
    /// checkpoints and samples were chosen.
    pub distance: Option<u64>,
    /// Samples that were left out for being at another distance.
    pub left_out: u64,
}

/// Fits what a cell's samples allow. `files_per_append` data files come with each append and none goes;
/// `checkpoint_interval` is the commits between checkpoints, if the format writes any.
pub fn growth(samples: &[MetadataSample], files_per_append: u64, checkpoint_interval: Option<u64>) -> Vec<Growth> {
    let (chosen, distance) = at_one_distance(samples, checkpoint_interval);
    let left_out = (samples.len() - chosen.len()) as u64;
    let files = |sample: &MetadataSample| sample.appends as f64 * files_per_append as f64;
    let points = |quantity: Quantity| -> Vec<(f64, f64)> {
        let per_commit = |bytes: fn(&MetadataSample) -> u64| {
            let steps = chosen.windows(2).filter(|pair| pair[0].appends < pair[1].appends);
            let step = |pair: &[&MetadataSample]| {
                let commits = (pair[1].appends - pair[0].appends) as f64;
                let added = bytes(pair[1]) as f64 - bytes(pair[0]) as f64;
                (f64::midpoint(files(pair[0]), files(pair[1])), added / commits)
            };
            steps.map(step).collect()
        };
        match quantity {
            Quantity::Active => chosen.iter().map(|sample| (files(sample), sample.active.bytes as f64)).collect(),
            Quantity::WrittenPerCommit => per_commit(|sample| sample.written_bytes),
            Quantity::RetainedPerCommit => per_commit(|sample| sample.retained.bytes),
        }
    };
    let fitted = |quantity| Some(Growth { quantity, line: Line::fit(&points(quantity))?, distance, left_out });
    Quantity::ALL.into_iter().filter_map(fitted).collect()
}

/// The samples at the distance from a checkpoint that most have (of several such, the smallest), and that distance. All
/// of them, if no checkpoints are written or fewer than three samples are at one distance.
fn at_one_distance(samples: &[MetadataSample], interval: Option<u64>) -> (Vec<&MetadataSample>, Option<u64>) {
    let all: Vec<&MetadataSample> = samples.iter().collect();
    let Some(interval) = interval.filter(|interval| *interval > 1) else { return (all, None) };
    // Before the first checkpoint there is no distance from one.
    let at = |distance| samples.iter().filter(move |s| s.appends >= interval && s.appends % interval == distance);
    let distances = samples.iter().map(|sample| sample.appends % interval);
    match distances.max_by_key(|distance| (at(*distance).count(), std::cmp::Reverse(*distance))) {
        Some(distance) if at(distance).count() >= 3 => (at(distance).collect(), Some(distance)),
        _ => (all, None),
    }
}

#[cfg(test)]
mod tests;
