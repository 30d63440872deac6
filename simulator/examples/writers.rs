//! Concurrent writers to one table, protocol by protocol, in closed loop: what the concurrent-writers scenario measures
//! with the real libraries.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example writers -- [PROVIDER]
//! ```
#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use lakemark_simulator::{Catalog, Cell, simulate};

fn main() {
    let provider = std::env::args().nth(1).unwrap_or_else(|| "s3".to_owned());
    println!("{provider}, emulated, 600 s after 60 s of warm-up");
    println!(
        "protocol             writers  commits/s  attempts/commit  failed attempts  failed operations  mean ms   p50 ms   p99 ms"
    );
    for protocol in
        ["delta-log", "lance-manifest", "iceberg-rust-sql", "iceberg-table", "iceberg-single-file", "batch-service"]
    {
        for writers in [1, 10, 50, 100, 200] {
            let cell = Cell {
                catalog: if protocol == "batch-service" {
                    Catalog::Storage
                } else {
                    Catalog::Service { latency_ms: 1.0 }
                },
                ..Cell::concurrent_writers(protocol, &provider, writers, 660_000.0, 60_000.0)
            };
            let result = simulate(&cell, 1).expect("a valid cell");
            let (drain, counts) = (result.drain.expect("drained"), &result.counts);
            println!(
                "{protocol:20} {writers:7}  {:9.3}  {:15.2}  {:13.1} %  {:15.1} %  {:7.0}  {:7.0}  {:7.0}",
                drain.all.throughput_per_s.unwrap_or(0.0),
                counts.attempts as f64 / counts.committed.max(1) as f64,
                counts.failed_attempt_rate().unwrap_or(0.0) * 100.0,
                counts.failed_operation_rate().unwrap_or(0.0) * 100.0,
                drain.all.latency.mean_ms.unwrap_or(0.0),
                drain.all.latency.p50_ms.unwrap_or(0.0),
                drain.all.latency.p99_ms.unwrap_or(0.0),
            );
        }
    }
}
