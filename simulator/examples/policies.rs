//! What does a retry policy gain? The study's proposal beside its own policy, by load and tables.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example policies
//! ```
#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use lakemark_simulator::{Arrivals, Catalog, Cell, Model, RetryChoice, RetryPolicy};

const SEEDS: u64 = 3;

fn main() {
    println!(
        "S3, catalog in the store, 90 % FastAppends, Poisson arrivals for an hour, followed to the end; {SEEDS} seeds"
    );
    println!("tables  offered/s  policy        success  commits/s  requests/commit  wasted  mean ms   p99 ms");
    for tables in [1, 10, 50] {
        for mean_ms in [400.0, 200.0, 100.0] {
            for policy in RetryPolicy::NAMES {
                let cell = Cell {
                    arrivals: Arrivals::Exponential { mean_ms },
                    tables,
                    fast_append_ratio: 0.9,
                    catalog: Catalog::Storage,
                    retry: RetryChoice::Named(policy.to_owned()),
                    drain: true,
                    ..Cell::default()
                };
                let model = Model::new(&cell).expect("a valid cell");
                let mut sums = [0.0; 6];
                for seed in 1..=SEEDS {
                    let result = model.run(seed);
                    let (all, counts) = (&result.drain.as_ref().expect("drained").all, &result.counts);
                    let values = [
                        all.success_rate.unwrap_or(0.0) * 100.0,
                        all.throughput_per_s.unwrap_or(0.0),
                        counts.requests as f64 / counts.committed as f64,
                        counts.requests_wasted as f64 / counts.requests as f64 * 100.0,
                        all.latency.mean_ms.unwrap_or(0.0),
                        all.latency.p99_ms.unwrap_or(0.0),
                    ];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / SEEDS as f64);
                }
                let [success, per_s, requests, wasted, mean, p99] = sums;
                println!(
                    "{tables:6}  {:9.1}  {policy:12}  {success:5.1} %  {per_s:9.2}  {requests:15.1}  {wasted:4.1} %  \
                     {mean:7.0}  {p99:7.0}",
                    1_000.0 / mean_ms,
                );
            }
        }
    }
}
