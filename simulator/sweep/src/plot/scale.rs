//! Where on an axis is a value, and how is it written?

use lakemark_results::table::{format_number, group_digits};

/// What a number is of, and so how it is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    /// A share, written in percent.
    Share,
    /// Milliseconds, written as such or in seconds.
    Ms,
    /// A rate or another number.
    Plain,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            // As many digits as tell 99.9 from 100.
            Self::Share => format!("{:.1}", value * 100.0),
            Self::Ms if value < 999.5 => format!("{value:.0}"),
            Self::Ms => format!("{} s", format_number(value / 1_000.0)),
            Self::Plain => format_number(value),
        }
    }
}

/// A range of values, spread evenly or by their logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// The scale that holds some values; by logarithm if they are positive and more than a factor of 20 apart.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return Self { low: 0.0, high: 1.0, is_log: false };
        }
        let is_log = low > 0.0 && high > 20.0 * low;
        // A range needs a width.
        if low == high {
            (low, high) = (low - 0.5 * low.abs().max(1e-9), high + 0.5 * high.abs().max(1e-9));
        }
        Self { low, high, is_log }
    }

    /// Evenly from one value to another.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        Self { low, high, is_log: false }
    }

    pub(crate) fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Where a value is: 0 at the low end, 1 at the high one.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// The value at a place.
    pub(crate) fn value(&self, place: f64) -> f64 {
        if self.is_log {
            self.low * (self.high / self.low).powf(place)
        } else {
            self.low + (self.high - self.low) * place
        }
    }

    /// Round values to draw lines at.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let inside = |value: &f64| (self.low..=self.high).contains(value);
        if self.is_log {
            let decades = (self.high / self.low).log10();
            let steps: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let all = exponents.flat_map(|exponent| steps.iter().map(move |step| step * 10_f64.powi(exponent)));
            return all.filter(inside).collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * decade);
        let first = (self.low / step).ceil() as i64;
        (0..20).map(|i| (first + i) as f64 * step).take_while(|value| *value <= self.high * (1.0 + 1e-12)).collect()
    }
}

/// A setting's value, as it stands at an axis.
pub(crate) fn label(value: f64) -> String {
    let short = value.to_string();
    if short.len() <= 5 || value == value.trunc() { group_digits(&short) } else { format_number(value) }
}

/// A colour from dark violet by green to yellow, light where values are high; and one that is readable on it.
pub(crate) fn colour(place: f64) -> (String, &'static str) {
    // Nine points of the viridis map (S. van der Walt and N. Smith, public domain).
    const POINTS: [[f64; 3]; 9] = [
        [68.0, 1.0, 84.0],
        [71.0, 44.0, 122.0],
        [59.0, 81.0, 139.0],
        [44.0, 113.0, 142.0],
        [33.0, 144.0, 141.0],
        [39.0, 173.0, 129.0],
        [92.0, 200.0, 99.0],
        [170.0, 220.0, 50.0],
        [253.0, 231.0, 37.0],
    ];
    let at = place.clamp(0.0, 1.0) * (POINTS.len() - 1) as f64;
    let below = (at as usize).min(POINTS.len() - 2);
    let [red, green, blue] = [0, 1, 2].map(|channel| {
        let (low, high) = (POINTS[below][channel], POINTS[below + 1][channel]);
        low + (high - low) * (at - below as f64)
    });
    let is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 130.0;
    (format!("#{:02x}{:02x}{:02x}", red as u8, green as u8, blue as u8), if is_light { "#000" } else { "#fff" })
}

/// Colours of lines, told apart by most people (M. Okabe and K. Ito).
pub(crate) const LINES: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ranges_are_by_logarithm() {
        let scale = Scale::of([1.0, 1_000.0].into_iter());
        assert!((scale.place(10.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((scale.value(1.0 / 3.0) - 10.0).abs() < 1e-9);
        assert!(scale.ticks().contains(&200.0), "{:?}", scale.ticks());
        let scale = Scale::of([0.0, 10.0].into_iter());
        assert_eq!((scale.place(5.0), scale.ticks()), (0.5, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]));
    }

    #[test]
    fn ranges_without_width_or_values_are_drawable() {
        for scale in [Scale::of([7.0].into_iter()), Scale::of([0.0].into_iter()), Scale::of(std::iter::empty())] {
            assert!(scale.place(7.0).is_finite() && !scale.ticks().is_empty());
        }
    }

    #[test]
    fn values_are_written_with_their_unit() {
        assert_eq!(Unit::Share.show(0.99949), "99.9");
        assert_eq!((Unit::Ms.show(412.3), Unit::Ms.show(20_200.0)), ("412".to_owned(), "20.2 s".to_owned()));
        assert_eq!([0.9, 5_000.0, 17.649_939].map(label), ["0.9", "5,000", "17.6"]);
        assert_eq!(colour(0.0).0, "#440154");
        assert_eq!(colour(1.0), ("#fde725".to_owned(), "#000"));
    }
}
