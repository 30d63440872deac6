//! What holds for any cell?

use lakemark_simulator::{
    Arrivals, Catalog, Cell, Law, Model, Protocol, ProtocolChoice, RetryChoice, RetryPolicy, simulate,
};
use proptest::prelude::*;

/// Any cell of a few thousand transactions at most.
fn cells() -> impl Strategy<Value = Cell> {
    let arrivals = prop_oneof![
        (50.0..2_000.0).prop_map(|scale_ms| Arrivals::LogNormal { scale_ms, sigma: 0.5 }),
        (50.0..2_000.0).prop_map(|mean_ms| Arrivals::Exponential { mean_ms }),
        (20.0..500.0, 1_000.0..60_000.0, 0.0..60_000.0).prop_map(|(mean_ms, on_ms, off_ms)| Arrivals::OnOff {
            mean_ms,
            on_ms,
            off_ms
        }),
        (proptest::collection::vec(0.1..20.0, 1..5), 1_000.0..60_000.0)
            .prop_map(|(rates_per_s, step_ms)| Arrivals::Trace { step_ms, rates_per_s }),
        (1u32..30, 0.0..500.0, any::<bool>()).prop_map(|(clients, ms, pinned)| Arrivals::ClosedLoop {
            clients,
            think: Law::constant(ms),
            pinned
        }),
    ];
    let names: Vec<&str> = Protocol::builtin_names().collect();
    let setting = (
        prop::sample::select(names),
        prop::sample::select(RetryPolicy::NAMES.to_vec()),
        prop::sample::select(vec!["s3-2025", "s3-express", "azure", "gcs", "instant"]),
        any::<bool>(),
        any::<bool>(),
    );
    (arrivals, setting, 1u32..6, 1u32..4, 0.0..1.0f64, 0.0..0.5f64).prop_map(
        |(arrivals, (protocol, retry, provider, storage, drain), tables, partitions, ratio, conflict)| Cell {
            duration_ms: 120_000.0,
            warm_up_ms: 10_000.0,
            drain,
            arrivals,
            runtime: Law::log_normal(2_000.0, 1.0, 0.0),
            tables,
            partitions,
            fast_append_ratio: ratio,
            real_conflict_probability: conflict,
            provider: provider.to_owned(),
            // A closed loop over a catalog that takes no time would never get on.
            catalog: if storage { Catalog::Storage } else { Catalog::Service { latency_ms: 5.0 } },
            protocol: ProtocolChoice::Named(protocol.to_owned()),
            retry: RetryChoice::Named(retry.to_owned()),
            ..Cell::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transactions_and_attempts_are_conserved(cell in cells(), seed in 0u64..1_000) {
        let result = simulate(&cell, seed).unwrap();
        let counts = &result.counts;
        prop_assert_eq!(counts.arrivals, counts.committed + counts.aborted() + counts.in_flight);
        prop_assert!(counts.in_flight == 0 || !cell.drain);
        prop_assert!(counts.published >= counts.committed);
        if cell.drain {
            prop_assert_eq!(counts.published, counts.committed);
        }
        let pending = counts.attempts - counts.published - counts.failed_attempts();
        // All attempts are accounted for, but those that wait at a batching service when the run ends.
        prop_assert!(pending == 0 || matches!(&cell.protocol, ProtocolChoice::Named(name) if name == "batch-service"));
        prop_assert!(pending == 0 || !cell.drain);
        prop_assert!(counts.requests_wasted <= counts.requests && counts.bytes_wasted <= counts.bytes);
        let heat = &result.heatmap;
        prop_assert!(heat.all.transactions == heat.fast_append.transactions + heat.validated_overwrite.transactions);
        if let Some(drain) = &result.drain {
            prop_assert!(drain.all.transactions <= counts.arrivals);
            prop_assert_eq!(drain.all.committed, result.histograms.all.count());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_result_on_any_thread(cell in cells(), seed in 0u64..1_000) {
        let model = Model::new(&cell).unwrap();
        let here = model.run(seed);
        let elsewhere: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..3).map(|other| scope.spawn({
                let model = &model;
                // Another run before it must leave no trace.
                move || { model.run(seed + 1 + other); model.run(seed) }
            })).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        prop_assert!(elsewhere.iter().all(|result| *result == here));
        prop_assert_eq!(simulate(&cell, seed).unwrap(), here);
    }

    #[test]
    fn a_cell_survives_toml(cell in cells()) {
        let text = toml::to_string(&cell).unwrap();
        prop_assert_eq!(toml::from_str::<Cell>(&text).unwrap(), cell);
    }
}
