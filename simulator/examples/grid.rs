//! Runs the published grid of endive-2026 and sets it beside the reference values, one thread, CPU time measured.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example grid -- [EVERY [SEEDS [EXACT_BELOW]]]
//! ```
//!
//! `EVERY` takes each so-manieth cell only; `EXACT_BELOW` is the cells' `sums_exact_below`.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used, missing_docs, dead_code, unreachable_pub)]

use std::collections::BTreeMap;

use lakemark_simulator::studies;

#[path = "../tests/common/mod.rs"]
mod common;

/// CPU seconds of this process: user and system time, 100 ticks a second.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[11..=12].iter().map(|ticks| ticks.parse::<f64>().expect("ticks") / 100.0).sum()
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|arg| arg.parse().expect("a number")).collect();
    let every = args.first().copied().unwrap_or(1) as usize;
    let seeds = args.get(1).copied().unwrap_or(5);
    let reference: BTreeMap<_, _> = common::lines(include_str!("../reference/grid.csv")).into_iter().collect();
    let mut by_column: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut by_experiment: BTreeMap<&str, f64> = BTreeMap::new();
    let mut worst = Vec::new();
    let (mut cells, mut compared, mut events) = (0, 0, 0);
    let begin = cpu_s();
    for (nth, study) in studies::endive_2026().into_iter().enumerate().step_by(every) {
        let mut study = study;
        if let Some(exact) = args.get(2) {
            study.cell.sums_exact_below = u32::try_from(*exact).expect("32 bits");
        }
        let start = cpu_s();
        let results = common::run(&study, nth, seeds);
        *by_experiment.entry(study.experiment).or_default() += cpu_s() - start;
        events += results.iter().map(|result| result.counts.events).sum::<u64>();
        cells += 1;
        let key = common::key(&study);
        let Some(columns) = reference.get(&key) else { continue };
        compared += 1;
        for comparison in common::compare(&results, columns) {
            by_column.entry(comparison.column.clone()).or_default().push(comparison.z);
            if comparison.z.abs() > 4.0 {
                worst.push((key.clone(), comparison));
            }
        }
    }
    let s = cpu_s() - begin;
    println!("{cells} cells × {seeds} seeds in {s:.1} CPU s, {events} events; {compared} compared");
    println!("{by_experiment:?}");
    let (mut all, mut beyond) = (0, 0);
    for (column, z) in &by_column {
        let n = z.len();
        let over = z.iter().filter(|z| z.abs() > 3.0).count();
        (all, beyond) = (all + n, beyond + over);
        let (mean, sd) = common::mean_sd(z).unwrap();
        println!(
            "{column:24} n {n:5}  |z| > 3: {over:4} ({:.2} %)  z mean {mean:+.3} sd {sd:.3}",
            over as f64 / n as f64 * 100.0
        );
    }
    println!("all: {all} values, {beyond} beyond 3 standard errors ({:.2} %)", beyond as f64 / all as f64 * 100.0);
    worst.sort_by(|a, b| b.1.z.abs().total_cmp(&a.1.z.abs()));
    for (key, comparison) in worst.iter().take(25) {
        println!("{key:?} {comparison:?}");
    }
}
