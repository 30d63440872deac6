//! What does each disputed rule move? The effects that were measured by switching one rule at a time.
#![allow(clippy::unwrap_used, reason = "a cell or a metric that is missing fails the test")]

use lakemark_simulator::{
    Arrivals, CasLaw, Catalog, Cell, CellResult, History, Instant, Law, LawOverrides, Model, OperationLaw, Rules,
    RuntimeScale,
};

fn study(scale_ms: f64) -> Cell {
    Cell { arrivals: Arrivals::LogNormal { scale_ms, sigma: 0.5 }, ..Cell::default() }
}

fn mean(cell: &Cell, of: impl Fn(&CellResult) -> f64) -> f64 {
    let model = Model::new(cell).unwrap();
    (1..=4).map(|seed| of(&model.run(seed))).sum::<f64>() / 4.0
}

fn success(result: &CellResult) -> f64 {
    result.table.all.success_rate.unwrap() * 100.0
}

fn throughput(result: &CellResult) -> f64 {
    result.table.all.throughput_per_s.unwrap()
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected} ± {tolerance}");
}

#[test]
fn true_exponential_arrivals_offer_more() {
    let cell = Cell { arrivals: Arrivals::Exponential { mean_ms: 200.0 }, ..study(200.0) };
    close(mean(&cell, success), 86.3, 0.8);
    close(mean(&cell, throughput), 3.97, 0.06);
    close(mean(&study(200.0), success), 91.1, 0.8);
}

#[test]
fn the_second_read_of_table_metadata_is_decisive() {
    let without = Rules { extra_table_metadata_read: false, ..Rules::default() };
    let one = Cell { rules: without.clone(), ..study(20.0) };
    close(mean(&one, throughput), 6.6, 0.1);
    for (latency_ms, with_read, without_read) in [(1.0, 88.2, 100.0), (10.0, 69.5, 99.5)] {
        let cell = Cell { tables: 50, catalog: Catalog::Service { latency_ms }, ..study(20.0) };
        let heat = |result: &CellResult| result.heatmap.all.success_rate.unwrap() * 100.0;
        close(mean(&cell, heat), with_read, 0.3);
        close(mean(&Cell { rules: without.clone(), ..cell }, heat), without_read, 0.1);
    }
}

#[test]
fn the_larger_of_two_draws_slows_the_swap() {
    let cell = Cell { tables: 50, catalog: Catalog::Storage, ..study(100.0) };
    let knee = |result: &CellResult| result.knee.fast_append.success_rate.unwrap() * 100.0;
    close(mean(&cell, knee), 95.4, 0.3);
    let plain = Rules { cas_law: CasLaw::Cas, ..Rules::default() };
    close(mean(&Cell { rules: plain, ..cell }, knee), 96.3, 0.3);
}

/// The study's 1 / (5 L) is a coincidence: with every latency at its median the ceiling is 4.8 commits a second.
#[test]
fn fixed_latencies_lower_the_ceiling() {
    let fixed = |ms| Some(OperationLaw { law: Law::constant(ms), per_mib_ms: 0.0, per_1000_keys_ms: 0.0 });
    let laws = LawOverrides { read: fixed(27.0), write: fixed(60.0), ..LawOverrides::default() };
    close(mean(&Cell { laws, ..study(20.0) }, throughput), 4.8, 0.1);
}

/// Settings whose effect nobody published: each does something, in the direction that it should.
#[test]
fn other_rules_act() {
    let latency = |result: &CellResult| result.table.all.latency.mean_ms.unwrap();
    let with = |rules: Rules, cell: Cell| mean(&Cell { rules, ..cell }, latency);
    let base = mean(&study(1_000.0), latency);
    // The floor of two attempts becomes one of an attempt and a refresh.
    let refreshed = Rules { refresh_before_first_attempt: true, ..Rules::default() };
    assert!(with(refreshed, study(1_000.0)) < 0.7 * base);
    let inlined = Rules { table_metadata_inlined: true, ..Rules::default() };
    assert!(with(inlined, study(1_000.0)) < 0.75 * base);
    // From snapshot to check it takes half a read and half a swap, or the whole swap, which is the longer of the two.
    let late = Rules { instant: Instant::End, ..Rules::default() };
    let storage = Cell { catalog: Catalog::Storage, ..study(300.0) };
    assert!(mean(&Cell { rules: late, ..storage.clone() }, success) < mean(&storage, success) - 0.5);
    let overwrites = Cell { fast_append_ratio: 0.0, ..study(1_000.0) };
    let base = mean(&overwrites, latency);
    let again = Rules { history: History::SinceSubmission, ..Rules::default() };
    // The window never grows shorter, so that only overwrites with short runtimes ever win.
    assert!(mean(&Cell { rules: again, ..overwrites.clone() }, success) < mean(&overwrites, success) - 20.0);
    let parallel = Rules { history_parallelism: 4, ..Rules::default() };
    assert!(with(parallel, overwrites.clone()) < 0.5 * base);
    // A third of the runtime, and so of the history.
    let short = Rules { runtime_scale: RuntimeScale::Mean, ..Rules::default() };
    assert!(with(short, overwrites) < 0.6 * base);
    let failing = Cell { rules: Rules { abort_pays_refresh: false, ..Rules::default() }, ..study(20.0) };
    let failure = |result: &CellResult| result.failure.all.mean_ms.unwrap();
    close(mean(&study(20.0), failure) - mean(&failing, failure), 34.0, 6.0);
}
