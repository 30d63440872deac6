use super::*;
use crate::model::streams::Purpose;

/// The profiles' laws of a read that vary most, and one that has a floor within reach.
fn laws() -> [Law; 4] {
    [
        Law::log_normal(27.0, 0.62, 10.0),
        Law::log_normal(38.0, 0.66, 20.0),
        Law::log_normal(200.0, 0.3, 80.0),
        Law::log_normal(2.5, 0.57, 1.0),
    ]
}

fn draws(sampler: &Sampler, n: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Service, 7);
    (0..n).map(|_| sampler.draw(&mut stream) / NS_PER_MS).collect()
}

/// The largest distance between two samples' distribution functions (Kolmogorov and Smirnov).
fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (mut i, mut j, mut worst) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        // Past all that is equal in both: floors make many.
        let at = a[i].min(b[j]);
        i += a[i..].iter().take_while(|x| **x <= at).count();
        j += b[j..].iter().take_while(|x| **x <= at).count();
        worst = worst.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    worst
}

#[test]
fn table_follows_the_law() {
    let n = 400_000;
    for law in laws() {
        let Law::LogNormal { median_ms, sigma, floor_ms } = law else { unreachable!() };
        let mut stream = Stream::new(3, Purpose::Arrivals, 1);
        let exact =
            (0..n).map(|_| (median_ms * (sigma * normal::quantile(stream.unit())).exp()).max(floor_ms)).collect();
        // 99.9 % of distances of two samples of one distribution are below 1.95 × sqrt(2 / n).
        let found = distance(draws(&Sampler::law(&law), n, 1), exact);
        assert!(found < 1.95 * (2.0 / n as f64).sqrt(), "{law:?}: {found}");
    }
}

/// Closed forms without a floor: Crow and Shimizu, "Lognormal distributions" (1988), section 1.2.
#[test]
fn moments_agree_with_closed_forms() {
    let Sampler::Table(table) = Sampler::law(&Law::log_normal(27.0, 0.62, 0.0)) else { unreachable!() };
    let w = (0.62f64 * 0.62).exp();
    let moments = table.moments();
    let close = |found: f64, exact: f64| assert!((found / exact - 1.0).abs() < 1e-3, "{found} {exact}");
    close(moments.mean_ns, 27e6 * w.sqrt());
    close(moments.sd_ns, 27e6 * (w * (w - 1.0)).sqrt());
    close(moments.skewness, (w + 2.0) * (w - 1.0).sqrt());
    close(moments.kurtosis, w.powi(4) + 2.0 * w.powi(3) + 3.0 * w * w - 6.0);
}

/// Sums by the approximation cannot be told from exact ones in samples of 100,000, from the smallest that it is used
/// for.
#[test]
fn approximate_sums_are_as_exact_ones() {
    let n = 100_000;
    for law in laws() {
        let sampler = Sampler::law(&law);
        for terms in [32, 100, 1_000] {
            // Fewer of the long ones: each is a thousand draws.
            let n = if terms == 1_000 { n / 4 } else { n };
            let mut stream = Stream::new(11, Purpose::Service, u64::from(terms));
            let mut sums = |exact_below| -> Vec<f64> {
                (0..n).map(|_| sampler.sum(terms, exact_below, &mut stream) / NS_PER_MS).collect()
            };
            let (exact, approximate) = (sums(u32::MAX), sums(0));
            let found = distance(exact, approximate);
            // As above; a distance of 0.6 % would show.
            assert!(found < 1.95 * (2.0 / n as f64).sqrt(), "{law:?} × {terms}: {found}");
        }
    }
}

#[test]
fn quantiles_are_interpolated_to_their_ends() {
    let law = Law::Quantiles { points: vec![(0.0, 5.0), (0.5, 10.0), (1.0, 100.0)] };
    let mut drawn = draws(&Sampler::law(&law), 100_000, 5);
    drawn.sort_by(f64::total_cmp);
    assert!(drawn[0] >= 5.0 && drawn[99_999] <= 100.0);
    assert!((drawn[25_000] - 7.5).abs() < 0.1, "{}", drawn[25_000]);
    assert!((drawn[75_000] - 55.0).abs() < 1.0, "{}", drawn[75_000]);
}

#[test]
fn larger_of_two_draws() {
    let both = Sampler::larger(Sampler::constant(5e6), Sampler::law(&Law::log_normal(4.0, 0.5, 0.0)));
    let drawn = draws(&both, 10_000, 2);
    let at_least = drawn.iter().filter(|ms| **ms == 5.0).count();
    // P(z < ln(5 / 4) / 0.5) = 67.2 %.
    assert!(drawn.iter().all(|ms| *ms >= 5.0) && (at_least as f64 / 1e4 - 0.672).abs() < 0.02, "{at_least}");
}
