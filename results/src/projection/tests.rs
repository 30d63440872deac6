use proptest::prelude::*;

use super::*;
use crate::record::Extent;

fn sample(appends: u64, active: u64, retained: u64, written: u64) -> MetadataSample {
    let extent = |bytes| Extent { objects: 1, bytes };
    MetadataSample {
        appends,
        active: extent(active),
        active_by_class: Default::default(),
        retained: extent(retained),
        retained_by_class: Default::default(),
        written_bytes: written,
        load_latency_us: 0,
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1.0)
}

#[test]
fn a_known_line_is_found_without_error() {
    let line = Line::fit(&[(0.0, 500.0), (10.0, 1_320.0), (100.0, 8_700.0), (1_000.0, 82_500.0)]).unwrap();
    assert!(close(line.slope, 82.0) && close(line.intercept, 500.0));
    assert!(line.slope_half_width.unwrap() < 1e-6 && line.residual_max < 1e-9);
    assert!(close(line.at(FILES), 82_000_500.0));
    assert!(line.half_width_at(FILES).unwrap() < 1.0);
}

#[test]
fn noise_widens_the_interval_by_the_textbook() {
    // Residuals 1, -2, 1 about y = 3 + 2x at 0, 1, 2: s² = 6, Sxx = 2, t(1) = 12.706.
    let line = Line::fit(&[(0.0, 4.0), (1.0, 3.0), (2.0, 8.0)]).unwrap();
    assert!(close(line.slope, 2.0) && close(line.intercept, 3.0));
    assert!(close(line.slope_half_width.unwrap(), 12.706 * 3.0_f64.sqrt()));
    assert!(close(line.half_width_at(1.0).unwrap(), 12.706 * 2.0_f64.sqrt()));
    assert!(close(line.half_width_at(5.0).unwrap(), 12.706 * (6.0_f64 * (1.0 / 3.0 + 8.0)).sqrt()));
    assert!(close(line.residual_max, 0.4));
}

#[test]
fn too_few_points_give_no_interval_or_no_line() {
    let line = Line::fit(&[(0.0, 1.0), (2.0, 5.0)]).unwrap();
    assert_eq!((line.slope, line.slope_half_width, line.half_width_at(9.0)), (2.0, None, None));
    assert_eq!(Line::fit(&[(3.0, 1.0)]), None);
    assert_eq!(Line::fit(&[(3.0, 1.0), (3.0, 2.0)]), None);
    assert!(growth(&[], 1, None).is_empty());
}

#[test]
fn a_sawtooth_is_fitted_at_one_distance_from_its_checkpoints() {
    // A checkpoint of 200 bytes a file each 100 commits, and log entries of 900 bytes since.
    let active = |appends: u64| (appends - appends % 100) * 200 + appends % 100 * 900;
    let at = |appends: u64| sample(appends, active(appends), active(appends), 0);
    let samples: Vec<_> = [1, 10, 100, 150, 200, 300, 377, 400].into_iter().map(at).collect();
    let fitted = growth(&samples, 1, Some(100))[0];
    assert!(close(fitted.line.slope, 200.0) && fitted.line.slope_half_width.unwrap() < 1e-6);
    assert_eq!((fitted.line.points, fitted.distance, fitted.left_out), (4, Some(0), 4));
    // All together they would lie about the line, and the residual says so.
    let mixed = growth(&samples, 1, None)[0];
    assert!(mixed.line.residual_max > 0.2 && mixed.distance.is_none(), "{mixed:?}");
    // Another distance serves as well, if most are at it.
    let samples: Vec<_> = [100, 150, 250, 350].into_iter().map(at).collect();
    assert_eq!(growth(&samples, 1, Some(100))[0].distance, Some(50));
}

#[test]
fn quadratic_sums_are_fitted_by_what_a_commit_adds() {
    // Version n holds 70 bytes for each of its files, and all versions are kept.
    let sum = |n: u64| 35 * n * n;
    let samples: Vec<_> = (1..=6).map(|n| sample(n * 10, 70 * n * 10, sum(n * 10), sum(n * 10))).collect();
    let fitted = growth(&samples, 2, None);
    // Two files an append: half as many bytes a file.
    assert!(close(fitted[0].line.slope, 35.0));
    for growth in &fitted[1..] {
        assert!(close(growth.line.slope, 35.0) && growth.line.residual_max < 1e-9, "{growth:?}");
        assert_eq!(growth.line.points, 5);
    }
}

proptest! {
    #[test]
    fn any_line_is_found_and_moves_with_its_points(
        slope in -1e4_f64..1e4,
        intercept in -1e6_f64..1e6,
        noise in proptest::collection::vec(-100.0_f64..100.0, 4..20),
        lift in -1e5_f64..1e5,
    ) {
        let points = |lift: f64| -> Vec<(f64, f64)> {
            noise.iter().enumerate().map(|(x, e)| (x as f64, lift + intercept + slope * x as f64 + e)).collect()
        };
        let line = Line::fit(&points(0.0)).unwrap();
        // The slope's error is a mean of the noise with weights that add up in size to 2 at most.
        prop_assert!((line.slope - slope).abs() <= 200.0);
        let lifted = Line::fit(&points(lift)).unwrap();
        prop_assert!((lifted.slope - line.slope).abs() < 1e-6 * slope.abs().max(1.0));
        prop_assert!((lifted.intercept - line.intercept - lift).abs() < 1e-6 * (lift.abs() + intercept.abs()).max(1.0));
        // Residuals of least squares add up to nothing.
        let sum: f64 = points(0.0).iter().map(|(x, y)| y - line.at(*x)).sum();
        prop_assert!(sum.abs() < 1e-3, "{sum}");
    }
}
