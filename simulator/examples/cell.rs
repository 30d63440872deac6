//! Runs one cell of endive-2026 and prints its metrics and its speed.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example cell -- exp1 20 [SEEDS [NTH [HOURS]]]
//! ```
//!
//! `NTH`, from 0, is which of the experiment's cells of that scale; `HOURS` how long it runs instead of one.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example cell -- exp4c 20 5 51
//! ```
#![allow(clippy::print_stdout, clippy::expect_used, clippy::disallowed_methods, missing_docs)]

use lakemark_simulator::{Model, studies};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = args.get(2).map_or(1, |seeds| seeds.parse().expect("a number of seeds"));
    let mut study = studies::endive_2026()
        .into_iter()
        .filter(|cell| cell.experiment == args[0] && cell.scale_ms == args[1].parse::<f64>().expect("a scale"))
        .nth(args.get(3).map_or(0, |nth| nth.parse().expect("a number")))
        .expect("a cell of the study");
    if let Some(hours) = args.get(4) {
        study.cell.duration_ms = 3_600_000.0 * hours.parse::<f64>().expect("hours");
    }
    println!("{study:?}");
    let model = Model::new(&study.cell).expect("a valid cell");
    for seed in 1..=seeds {
        let begin = std::time::Instant::now();
        let result = model.run(seed);
        let s = begin.elapsed().as_secs_f64();
        let table = &result.table.all;
        println!(
            "seed {seed}: {:.4} s, {} events, {:.1} M events/s; success {:.3} %, {:.4} c/s, mean {:.1} ms, p50 {:.1}, p95 {:.1}, \
             p99 {:.1}, retries {:.3}; heat success {:.3} %",
            s,
            result.counts.events,
            result.counts.events as f64 / s / 1e6,
            table.success_rate.unwrap_or(0.0) * 100.0,
            table.throughput_per_s.unwrap_or(0.0),
            table.latency.mean_ms.unwrap_or(0.0),
            table.latency.p50_ms.unwrap_or(0.0),
            table.latency.p95_ms.unwrap_or(0.0),
            table.latency.p99_ms.unwrap_or(0.0),
            table.mean_retries.unwrap_or(0.0),
            result.heatmap.all.success_rate.unwrap_or(0.0) * 100.0,
        );
        println!("{:?}", result.counts);
    }
    // Linux keeps the largest resident set here.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
}
