//! Summary of a latency sample.
//!
//! The error of a mean comes from **batch means about a line**. Successive commits depend on each other (a cache, a
//! page boundary, a checkpoint), so the usual `s / √n` would claim far too much: the sample is cut, in its order, into
//! equal batches, whose means are close to independent, and Student's interval over them holds for the sample's mean.
//! Between 10 and 30 batches serve; more gain almost nothing and lose independence (B. Schmeiser, "Batch size effects
//! in the analysis of simulation output", Operations Research 30(3), 1982). Commits also grow with the table: that
//! growth is what the run measures, not its error, so the batches' spread is taken about their least-squares line.
//! Growth that is not linear widens the interval, which errs on the safe side.

use serde::{Deserialize, Serialize};

/// Most batches that a sample is cut into.
const BATCHES_MAX: usize = 20;

/// Length of the tail that studies report beside the mean.
const LAST: usize = 100;

/// Two-sided 95 % quantiles of Student's t distribution, for 1 to 18 degrees of freedom.
const STUDENT_T_95: [f64; BATCHES_MAX - 2] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101,
];

/// What a sample of latencies comes to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Size of the sample.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Half the width of the mean's 95 % confidence interval, by batch means; none for fewer than 9 values.
    pub mean_half_width_ms: Option<f64>,
    /// Smallest value.
    pub min_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest value.
    pub max_ms: f64,
    /// Mean of the last 100 values; none for a shorter sample.
    pub last100_mean_ms: Option<f64>,
    /// Half the width of that mean's 95 % confidence interval, by batch means.
    pub last100_half_width_ms: Option<f64>,
}

impl LatencySummary {
    /// Summarizes latencies in microseconds, in the order in which they happened; none of an empty sample.
    pub fn of(latencies_us: &[u64]) -> Option<Self> {
        let in_order_ms: Vec<f64> = latencies_us.iter().copied().map(ms).collect();
        let mut sorted_us = latencies_us.to_vec();
        sorted_us.sort_unstable();
        let last100_ms = in_order_ms.len().checked_sub(LAST).map(|start| &in_order_ms[start..]);
        Some(Self {
            count: latencies_us.len() as u64,
            mean_ms: mean(&in_order_ms)?,
            mean_half_width_ms: half_width_95(&in_order_ms),
            min_ms: ms(*sorted_us.first()?),
            p50_ms: ms(percentile(&sorted_us, 50)?),
            p90_ms: ms(percentile(&sorted_us, 90)?),
            p99_ms: ms(percentile(&sorted_us, 99)?),
            max_ms: ms(*sorted_us.last()?),
            last100_mean_ms: last100_ms.and_then(mean),
            last100_half_width_ms: last100_ms.and_then(half_width_95),
        })
    }
}

/// Microseconds in milliseconds.
pub fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// Two-sided 95 % quantile of Student's t distribution: of the table, and beyond it by the expansion in powers of one over
/// the degrees of freedom (M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.7.5), good to 0.0005.
/// None without a degree of freedom.
pub fn student_t_95(degrees: usize) -> Option<f64> {
    let of_table = STUDENT_T_95.get(degrees.checked_sub(1)?).copied();
    let z = 1.959_964_f64;
    let nu = degrees as f64;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let expanded = || terms.iter().zip(1..).fold(z, |sum, (term, power)| sum + term / nu.powi(power));
    Some(of_table.unwrap_or_else(expanded))
}

/// Half the width of the 95 % confidence interval of the mean of independent values; none for fewer than 2.
pub fn student_half_width_95(independent: &[f64]) -> Option<f64> {
    let n = independent.len();
    let centre = mean(independent)?;
    let t = student_t_95(n - 1)?;
    let variance = independent.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (n - 1) as f64;
    Some(t * (variance / n as f64).sqrt())
}

/// Arithmetic mean; none of an empty sample.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The value that at least `percent` of a sorted sample do not exceed (nearest rank: always a value of the sample);
/// none of an empty sample. `percent` is at most 100.
pub fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Half the width of the 95 % confidence interval of a sample's mean, by the means of `√n`, at most 20, batches about
/// their line; none for fewer than 9 values, since a line through two batches leaves no spread.
pub fn half_width_95(in_order: &[f64]) -> Option<f64> {
    let n = in_order.len();
    let batches = n.isqrt().min(BATCHES_MAX);
    if batches < 3 {
        return None;
    }
    // Sizes differ by at most one, so that no value is left out.
    let batch = |i: usize| &in_order[i * n / batches..(i + 1) * n / batches];
    let means: Vec<f64> = (0..batches).filter_map(|i| mean(batch(i))).collect();
    let centre = mean(&means)?;
    let middle = (batches - 1) as f64 / 2.0;
    let offsets = || means.iter().enumerate().map(|(i, m)| (i as f64 - middle, m - centre));
    let slope = offsets().map(|(x, y)| x * y).sum::<f64>() / offsets().map(|(x, _)| x * x).sum::<f64>();
    // The line's height at its middle is the mean, with variance s²/b; the slope takes one more degree of freedom.
    let degrees = batches - 2;
    let variance = offsets().map(|(x, y)| (y - slope * x).powi(2)).sum::<f64>() / degrees as f64;
    Some(STUDENT_T_95[degrees - 1] * (variance / batches as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn batch_means_of_a_known_series() {
        // Four batches of four with means 1, 2, 3, 6: the line leaves 0.4, -0.2, -0.8, 0.6, so s² = 1.2 / 2.
        let series = [0.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 1.0, 5.0, 3.0, 6.0, 6.0, 4.0, 8.0];
        assert!(close(half_width_95(&series).unwrap(), 4.303 * (0.6f64 / 4.0).sqrt()));
    }

    #[test]
    fn batches_take_every_value() {
        // 11 values in 3 batches of 3, 4 and 4 with means 3, 0, 0: the line leaves 0.5, -1, 0.5.
        let mut series = [0.0; 11];
        series[..3].fill(3.0);
        assert!(close(half_width_95(&series).unwrap(), 12.706 * (1.5f64 / 3.0).sqrt()));
    }

    #[test]
    fn growth_is_no_error() {
        let growing: Vec<f64> = (0..10_000).map(|i| 100.0 + f64::from(i) * 0.05).collect();
        assert!(half_width_95(&growing).unwrap() < 1e-6);
    }

    #[test]
    fn a_constant_has_no_error_and_eight_values_have_none_to_give() {
        assert_eq!(half_width_95(&[5.0; 1_000]), Some(0.0));
        assert_eq!(half_width_95(&[1.0; 8]), None);
        assert_eq!(half_width_95(&[1.0; 9]), Some(0.0));
    }

    /// Numbers in [0, 1), from a multiplicative generator (MINSTD).
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state * 48_271 % 2_147_483_647;
            state as f64 / 2_147_483_647.0
        }
    }

    /// Share of 400 samples whose interval covers the true mean, 0. `s / √n` covers some 59 % with this dependence.
    #[test]
    fn interval_covers_the_mean_of_a_dependent_series() {
        let mut random = uniform(7);
        let mut covered = 0;
        for _ in 0..400 {
            let mut value = 0.0;
            let series: Vec<f64> = (0..1_000)
                .map(|_| {
                    value = 0.7 * value + random() - 0.5;
                    value
                })
                .collect();
            if mean(&series).unwrap().abs() <= half_width_95(&series).unwrap() {
                covered += 1;
            }
        }
        assert!((368..=392).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn quantiles_of_students_distribution() {
        assert_eq!(student_t_95(0), None);
        for (degrees, t) in
            [(1, 12.706), (4, 2.776), (18, 2.101), (19, 2.093), (30, 2.042), (60, 2.000), (1_000, 1.962)]
        {
            assert!((student_t_95(degrees).unwrap() - t).abs() < 6e-4, "{degrees}: {:?}", student_t_95(degrees));
        }
    }

    #[test]
    fn interval_of_independent_values() {
        // s² = 2.5 for 1 to 5.
        assert!(close(student_half_width_95(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), 2.776 * 0.5_f64.sqrt()));
        assert_eq!((student_half_width_95(&[1.0]), student_half_width_95(&[])), (None, None));
    }

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let sorted: Vec<u64> = (1..=10).collect();
        assert_eq!([0, 10, 50, 51, 90, 99, 100].map(|p| percentile(&sorted, p).unwrap()), [1, 1, 5, 6, 9, 10, 10]);
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn summary_in_milliseconds_with_the_tail_in_order() {
        let latencies_us: Vec<u64> = (1..=200).rev().map(|i| i * 1_000).collect();
        let summary = LatencySummary::of(&latencies_us).unwrap();
        assert_eq!((summary.count, summary.min_ms, summary.max_ms), (200, 1.0, 200.0));
        assert_eq!((summary.p50_ms, summary.p90_ms, summary.p99_ms), (100.0, 180.0, 198.0));
        assert!(close(summary.mean_ms, 100.5));
        assert!(close(summary.last100_mean_ms.unwrap(), 50.5));
    }

    #[test]
    fn short_and_empty_samples() {
        assert_eq!(LatencySummary::of(&[]), None);
        let summary = LatencySummary::of(&[7_000; 99]).unwrap();
        assert_eq!((summary.last100_mean_ms, summary.last100_half_width_ms), (None, None));
        assert_eq!(LatencySummary::of(&[1]).unwrap().mean_ms, 0.001);
    }
}
