//! A straight line through points: how bytes and keys grow with the table's version.

/// Points below which a slope means nothing.
const POINTS_MIN: usize = 8;

/// `at_zero + slope × x`. The slope is 0 unless it is positive and more than three standard errors from 0: with it a size
/// is a constant, its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) at_zero: f64,
    pub(crate) slope: f64,
}

impl Line {
    /// The line of least squares.
    pub(crate) fn through(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        if points.is_empty() {
            return Self::default();
        }
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
        let constant = Self { at_zero: y_mean, slope: 0.0 };
        let squares: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        if points.len() < POINTS_MIN || squares == 0.0 {
            return constant;
        }
        let products: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let slope = products / squares;
        let at_zero = y_mean - slope * x_mean;
        let rest: f64 = points.iter().map(|(x, y)| (y - at_zero - slope * x).powi(2)).sum();
        let standard_error = (rest / (count - 2.0) / squares).sqrt();
        if slope <= 0.0 || slope < 3.0 * standard_error {
            return constant;
        }
        Self { at_zero, slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_scatter_is_none() {
        let grows: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), 100.0 + 68.0 * f64::from(x))).collect();
        let line = Line::through(&grows);
        assert!((line.at_zero - 100.0).abs() < 1e-9 && (line.slope - 68.0).abs() < 1e-9, "{line:?}");
        let scatters: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), if x % 2 == 0 { 4.0 } else { 6.0 })).collect();
        assert_eq!(Line::through(&scatters), Line { at_zero: 5.0, slope: 0.0 });
        let falls: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), -f64::from(x))).collect();
        assert_eq!(Line::through(&falls), Line { at_zero: -9.5, slope: 0.0 });
    }

    #[test]
    fn few_points_are_a_constant_and_none_are_nothing() {
        assert_eq!(Line::through(&[(0.0, 1.0), (1.0, 3.0)]), Line { at_zero: 2.0, slope: 0.0 });
        assert_eq!(Line::through(&[]), Line::default());
        assert_eq!(Line::through(&[(5.0, 7.0); 9]), Line { at_zero: 7.0, slope: 0.0 });
    }
}
