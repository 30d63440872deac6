//! Do the settings beyond the study do what they say?
#![allow(clippy::unwrap_used, reason = "a cell or a metric that is missing fails the test")]

use lakemark_simulator::{
    Arrivals, Backoff, Catalog, Cell, CellResult, Jitter, Law, LawOverrides, OperationLaw, Protocol, ProtocolChoice,
    Publish, RateLimit, RetryChoice, RetryPolicy, Scope, TableSelection, simulate,
};

fn writers(protocol: &str, clients: u32) -> CellResult {
    simulate(&Cell::concurrent_writers(protocol, "s3", clients, 330_000.0, 30_000.0), 1).unwrap()
}

fn per_s(result: &CellResult) -> f64 {
    result.drain.as_ref().unwrap().all.throughput_per_s.unwrap()
}

/// A tenth of the study's runtimes, to the end.
fn drained(arrivals: Arrivals) -> Cell {
    Cell { arrivals, drain: true, runtime: Law::constant(1_000.0), ..Cell::default() }
}

#[test]
fn processes_offer_their_rates() {
    let burst = Arrivals::OnOff { mean_ms: 50.0, on_ms: 5_000.0, off_ms: 15_000.0 };
    let day = Arrivals::Trace { step_ms: 600_000.0, rates_per_s: vec![1.0, 4.0, 10.0] };
    for arrivals in [Arrivals::Exponential { mean_ms: 200.0 }, burst, day] {
        let offered = arrivals.offered_per_s().unwrap();
        assert!((offered - 5.0).abs() < 1e-9);
        let result = simulate(&drained(arrivals.clone()), 3).unwrap();
        let rate = result.counts.arrivals as f64 / 3_600.0;
        assert!((rate / offered - 1.0).abs() < 0.12, "{arrivals:?}: {rate}");
    }
}

#[test]
fn bursts_cost_success() {
    let even = simulate(&drained(Arrivals::Exponential { mean_ms: 400.0 }), 1).unwrap();
    let bursts = Arrivals::OnOff { mean_ms: 50.0, on_ms: 5_000.0, off_ms: 35_000.0 };
    let bursts = simulate(&drained(bursts), 1).unwrap();
    let success = |result: &CellResult| result.drain.as_ref().unwrap().all.success_rate.unwrap();
    assert!(success(&even) > 0.95 && success(&bursts) < 0.8, "{} {}", success(&even), success(&bursts));
}

#[test]
fn a_trace_is_read_from_a_file() {
    let path = std::env::temp_dir().join(format!("lakemark-trace-{}.csv", std::process::id()));
    std::fs::write(&path, "# a day in three steps\n1\n4\n\n10\n").unwrap();
    let arrivals = Arrivals::TraceFile { step_ms: 600_000.0, path: path.display().to_string() };
    let inline = Arrivals::Trace { step_ms: 600_000.0, rates_per_s: vec![1.0, 4.0, 10.0] };
    assert_eq!(simulate(&drained(arrivals.clone()), 1).unwrap(), simulate(&drained(inline), 1).unwrap());
    std::fs::write(&path, "1\nmany\n").unwrap();
    let message = drained(arrivals).validate().unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(
        message.ends_with(":2: \"many\" is no rate; allowed: one number of arrivals a second on each line"),
        "{message}"
    );
}

/// Lone writers lose nothing, and take what their requests add up to.
#[test]
fn one_writer_takes_the_sum_of_its_requests() {
    // GET 27, PUT 60, put-if-absent 55, LIST 27 ms at the median; means are 1.21, 1.04, 1.07 and 1.21 times that.
    for (protocol, ms) in [("lance-manifest", 32.7 + 62.8 + 58.7), ("iceberg-single-file", 1.0 + 32.9 + 63.2 + 1.0)] {
        let result = writers(protocol, 1);
        let mean_ms = result.drain.as_ref().unwrap().all.latency.mean_ms.unwrap();
        assert_eq!(result.counts.failed_attempts(), 0);
        assert!((mean_ms / ms - 1.0).abs() < 0.03, "{protocol}: {mean_ms}, expected {ms}");
    }
}

#[test]
fn more_writers_lose_more_attempts() {
    for protocol in ["delta-log", "lance-manifest", "iceberg-table", "iceberg-rust-sql"] {
        let lost: Vec<f64> = [2, 10, 50].map(|n| writers(protocol, n).counts.failed_attempt_rate().unwrap()).to_vec();
        assert!(lost[0] < lost[1] && lost[1] < lost[2] && lost[2] > 0.5, "{protocol}: {lost:?}");
    }
}

#[test]
fn pinned_writers_of_their_own_tables_do_not_contend() {
    let cell = Cell::concurrent_writers("delta-log", "s3", 8, 330_000.0, 30_000.0);
    let arrivals = Arrivals::ClosedLoop { clients: 8, think: Law::constant(0.0), pinned: true };
    let pinned = simulate(&Cell { arrivals, tables: 8, ..cell }, 1).unwrap();
    assert_eq!(pinned.counts.failed_attempts(), 0);
    assert!((per_s(&pinned) / per_s(&writers("delta-log", 1)) - 8.0).abs() < 0.3);
}

#[test]
fn the_early_check_spares_publishes() {
    let result = writers("iceberg-rust-sql", 20);
    assert!(result.counts.given_up_early > result.counts.failed_attempts(), "{:?}", result.counts);
}

#[test]
fn a_batch_takes_all_that_wait() {
    let cell =
        Cell { catalog: Catalog::Storage, ..Cell::concurrent_writers("batch-service", "s3", 50, 330_000.0, 30_000.0) };
    let result = simulate(&cell, 1).unwrap();
    assert_eq!(result.counts.failed_attempts(), 0);
    assert!(result.counts.mean_batch.unwrap() > 5.0, "{:?}", result.counts);
    assert!(per_s(&result) > 10.0 * per_s(&writers("iceberg-table", 50)));
    // One commit a batch: the service is a queue.
    let mut protocol = Protocol::builtin("batch-service").unwrap();
    protocol.publish = Publish::Batch { batch_max: 1, round_trip_ms: 1.0, bytes: 0 };
    let queued = simulate(&Cell { protocol: ProtocolChoice::Full(Box::new(protocol)), ..cell }, 1).unwrap();
    assert_eq!(queued.counts.mean_batch, Some(1.0));
    // A conditional put takes 59 ms in the mean.
    assert!((per_s(&queued) - 1_000.0 / 58.7).abs() < 0.5, "{}", per_s(&queued));
}

#[test]
fn a_limit_on_one_object_throttles() {
    let cell =
        Cell { catalog: Catalog::Storage, ..Cell::concurrent_writers("iceberg-table", "gcs", 10, 630_000.0, 30_000.0) };
    let limit = cell.profile_rate_limit().unwrap();
    assert_eq!(limit, Some(RateLimit { per_s: 1.0, burst: 1.0 }));
    let (free, limited) = (simulate(&cell, 1).unwrap(), simulate(&Cell { rate_limit: limit, ..cell }, 1).unwrap());
    assert_eq!(free.counts.failed_throttled, 0);
    assert!(limited.counts.failed_throttled > 0);
    assert!(per_s(&limited) <= 1.0 && per_s(&limited) < per_s(&free), "{} {}", per_s(&limited), per_s(&free));
}

#[test]
fn a_failed_publish_may_answer_faster() {
    let cell = Cell::concurrent_writers("delta-log", "s3", 10, 330_000.0, 30_000.0);
    let fast = OperationLaw { law: Law::constant(1.0), per_mib_ms: 0.0, per_1000_keys_ms: 0.0 };
    let laws = LawOverrides { failed_publish: Some(fast), ..LawOverrides::default() };
    let (same, fast) = (simulate(&cell, 1).unwrap(), simulate(&Cell { laws, ..cell }, 1).unwrap());
    // An attempt less costs some 27 of 150 ms.
    assert!(fast.counts.attempts as f64 > 1.1 * same.counts.attempts as f64);
}

#[test]
fn measured_quantiles_take_a_law_s_place() {
    let points = vec![(0.0, 20.0), (0.5, 60.0), (0.99, 100.0), (1.0, 5_000.0)];
    let law = OperationLaw { law: Law::Quantiles { points }, per_mib_ms: 0.0, per_1000_keys_ms: 0.0 };
    let laws = LawOverrides { put_if_absent: Some(law), ..LawOverrides::default() };
    let cell = Cell { laws, ..Cell::concurrent_writers("lance-manifest", "s3", 1, 3_600_000.0, 0.0) };
    let p99 = |result: &CellResult| result.drain.as_ref().unwrap().all.latency.p99_ms.unwrap();
    let tail = simulate(&cell, 1).unwrap();
    // A hundredth of publishes takes 100 to 5,000 ms, so that the percentile is where the tail begins.
    assert!(tail.histograms.all.iter().last().unwrap().0 > 4_000 && p99(&tail) > 250.0);
}

#[test]
fn real_conflicts_are_given_up_and_partitions_spare_them() {
    let cell = Cell {
        arrivals: Arrivals::LogNormal { scale_ms: 500.0, sigma: 0.5 },
        fast_append_ratio: 0.0,
        real_conflict_probability: 0.2,
        drain: true,
        ..Cell::default()
    };
    let one = simulate(&cell, 1).unwrap();
    let many = simulate(&Cell { partitions: 10_000, ..cell.clone() }, 1).unwrap();
    let rate = |result: &CellResult| result.counts.aborted_conflict as f64 / result.counts.arrivals as f64;
    assert!(rate(&one) > 0.3 && rate(&many) < 0.05, "{} {}", rate(&one), rate(&many));
    // Protocols that compare partitions only do not even retry.
    let mut protocol = Protocol::builtin("iceberg-table").unwrap();
    protocol.scope = Scope::Partition;
    let apart = Cell { partitions: 10_000, protocol: ProtocolChoice::Full(Box::new(protocol)), ..cell };
    let apart = simulate(&apart, 1).unwrap();
    assert!(apart.counts.failed_attempt_rate().unwrap() < 0.01);
}

#[test]
fn policies_wait_as_they_say() {
    let cell = |retry: RetryPolicy| Cell {
        retry: RetryChoice::Full(retry),
        ..Cell::concurrent_writers("delta-log", "s3", 30, 330_000.0, 30_000.0)
    };
    let at_once = simulate(&cell(RetryPolicy::immediate()), 1).unwrap();
    let jitter = simulate(&cell(RetryPolicy::full_jitter()), 1).unwrap();
    assert!(jitter.counts.failed_attempt_rate() < at_once.counts.failed_attempt_rate());
    assert!(jitter.counts.failed_operation_rate() < at_once.counts.failed_operation_rate());
    // The budget ends what the number of attempts would not.
    let wait = Backoff::Exponential { base_ms: 1_000.0, factor: 1.0, cap_ms: 1_000.0, jitter: Jitter::None };
    let brief = RetryPolicy {
        attempts_max: 1_000,
        budget_ms: Some(2_500.0),
        after_catalog_conflict: wait.clone(),
        after_table_conflict: wait,
    };
    let brief = simulate(&cell(brief), 1).unwrap();
    assert!(brief.counts.aborted_budget > 0 && brief.counts.aborted_attempts == 0);
    // Two and a half seconds, and the attempt that was under way.
    assert!(brief.failure.all.p99_ms.unwrap() < 2_500.0 + 1_000.0, "{:?}", brief.failure.all);
}

/// What endive-2026 proposes waits after table conflicts only. With one table that is each conflict; with fifty it is
/// few, and waiting after all of them costs latency.
#[test]
fn the_split_policy_acts_on_table_conflicts_only() {
    let run = |tables, mean_ms, retry: &str| {
        let cell = Cell {
            tables,
            retry: RetryChoice::Named(retry.to_owned()),
            arrivals: Arrivals::Exponential { mean_ms },
            fast_append_ratio: 0.9,
            catalog: Catalog::Storage,
            ..Cell::default()
        };
        simulate(&cell, 1).unwrap().table.all
    };
    let success = |retry| run(1, 200.0, retry).success_rate.unwrap();
    assert!(success("split") > success("immediate"), "{} {}", success("split"), success("immediate"));
    let latency_ms = |retry| run(50, 100.0, retry).latency.mean_ms.unwrap();
    assert!(latency_ms("split") < 0.7 * latency_ms("full-jitter"));
}

#[test]
fn weights_choose_tables() {
    let selection = TableSelection::Weights { weights: vec![0.0, 1.0] };
    let cell =
        Cell { tables: 2, table_selection: selection, ..Cell::concurrent_writers("delta-log", "s3", 4, 60_000.0, 0.0) };
    let one = simulate(&Cell { tables: 1, table_selection: TableSelection::Uniform, ..cell.clone() }, 1).unwrap();
    let weighted = simulate(&cell, 1).unwrap();
    let rates = [&one, &weighted].map(|result| result.counts.failed_attempt_rate().unwrap());
    assert!((rates[0] - rates[1]).abs() < 0.05, "{rates:?}");
}

/// Ten times the transactions need no more memory: what is kept does not grow with them.
#[test]
fn a_result_is_as_large_for_ten_times_the_transactions() {
    let cell = |duration_ms| Cell { duration_ms, ..drained(Arrivals::Exponential { mean_ms: 500.0 }) };
    let size = |duration_ms| simulate(&cell(duration_ms), 1).unwrap().histograms.all.iter().count();
    let (short, long) = (size(3_600_000.0), size(36_000_000.0));
    assert!(long < 3 * short, "{short} {long}");
}

#[test]
fn refusals_name_field_value_and_what_is_allowed() {
    let refused = |cell: Cell| cell.validate().unwrap_err().to_string();
    let base = Cell::default;
    for (cell, message) in [
        (Cell { tables: 0, ..base() }, "tables is 0; allowed: 1 to 1000000"),
        (Cell { fast_append_ratio: 1.5, ..base() }, "fast_append_ratio is 1.5; allowed: 0 to 1"),
        (Cell { duration_ms: f64::NAN, ..base() }, "duration_ms is NaN; allowed: 1 to 2678400000"),
        (
            Cell { arrivals: Arrivals::Exponential { mean_ms: -3.0 }, ..base() },
            "arrivals.mean_ms is -3; allowed: 0.001 ms or more",
        ),
        (
            Cell { retry: RetryChoice::Named("often".into()), ..base() },
            "retry is \"often\"; allowed: immediate, full-jitter, split, iceberg, delta, lance",
        ),
    ] {
        assert_eq!(refused(cell), message);
    }
    let provider = refused(Cell { provider: "s4".into(), ..base() });
    assert!(provider.starts_with("provider is \"s4\"; allowed: s3, s3-2025, s3-express,"), "{provider}");
    let protocol = refused(Cell { protocol: ProtocolChoice::Named("hudi".into()), ..base() });
    assert!(protocol.starts_with("protocol is \"hudi\"; allowed: iceberg-file, iceberg-table,"), "{protocol}");
    let unknown = toml::from_str::<Cell>("tabels = 3").unwrap_err();
    assert!(unknown.message().contains("unknown field `tabels`"), "{unknown}");
}

#[test]
fn built_in_protocols_parse() {
    for name in Protocol::builtin_names() {
        let protocol = Protocol::builtin(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(protocol.name, name);
    }
    let error = Protocol::parse("name = \"x\"\nabout = 3\n", "mine.toml").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:2: "), "{error}");
}
