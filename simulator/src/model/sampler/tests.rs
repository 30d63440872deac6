use super::*;
use crate::model::streams::Purpose;

fn s3_read() -> Sampler {
    Sampler::law(&Law::log_normal(27.0, 0.62, 10.0))
}

#[test]
fn exp_agrees_with_libm() {
    for step in -20_000..=20_000 {
        let x = f64::from(step) / 500.0;
        let error = exp(x) / x.exp() - 1.0;
        assert!(error.abs() < 1e-8, "exp({x}): {error}");
    }
}
