//! What does each disputed rule move? One is switched at a time, on three cells of endive-2026.
//!
//! ```sh
//! cargo run --release -p lakemark-simulator --example rules
//! ```
#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use lakemark_simulator::{Arrivals, CasLaw, Catalog, Cell, History, Instant, Model, Rules, RuntimeScale, Transfer};

const SEEDS: u64 = 5;

/// Success in percent, commits a second and mean latency in ms: the table metric, in the mean over seeds.
fn values(cell: &Cell) -> [f64; 3] {
    let model = Model::new(cell).expect("a valid cell");
    let mut sums = [0.0; 3];
    for seed in 1..=SEEDS {
        let all = model.run(seed).table.all;
        let values = [all.success_rate.unwrap_or(0.0) * 100.0, all.throughput_per_s.unwrap_or(0.0)];
        let values = [values[0], values[1], all.latency.mean_ms.unwrap_or(0.0)];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / SEEDS as f64);
    }
    sums
}

fn main() {
    let scale = |scale_ms| Arrivals::LogNormal { scale_ms, sigma: 0.5 };
    let cells = [
        Cell { arrivals: scale(200.0), ..Cell::default() },
        Cell { arrivals: scale(500.0), fast_append_ratio: 0.5, ..Cell::default() },
        Cell {
            arrivals: scale(100.0),
            tables: 50,
            catalog: Catalog::Storage,
            fast_append_ratio: 0.9,
            ..Cell::default()
        },
    ];
    let rules = |change: fn(&mut Rules)| {
        move |cell: &Cell| {
            let mut cell = cell.clone();
            change(&mut cell.rules);
            cell
        }
    };
    type Change = Box<dyn Fn(&Cell) -> Cell>;
    let changes: Vec<(&str, Change)> = vec![
        ("as the code", Box::new(Cell::clone)),
        (
            "arrivals = exponential",
            Box::new(|cell: &Cell| {
                let Arrivals::LogNormal { scale_ms, .. } = cell.arrivals else { return cell.clone() };
                Cell { arrivals: Arrivals::Exponential { mean_ms: scale_ms }, ..cell.clone() }
            }),
        ),
        ("runtime_scale = mean", Box::new(rules(|rules| rules.runtime_scale = RuntimeScale::Mean))),
        ("extra_table_metadata_read = false", Box::new(rules(|rules| rules.extra_table_metadata_read = false))),
        ("cas_law = cas", Box::new(rules(|rules| rules.cas_law = CasLaw::Cas))),
        ("refresh_before_first_attempt = true", Box::new(rules(|rules| rules.refresh_before_first_attempt = true))),
        ("history = V, not V - 1", Box::new(rules(|rules| rules.history = History::SincePreviousAttemptAll))),
        ("history = since submission", Box::new(rules(|rules| rules.history = History::SinceSubmission))),
        ("history = any table", Box::new(rules(|rules| rules.history = History::AnyTable))),
        ("history_parallelism = 4", Box::new(rules(|rules| rules.history_parallelism = 4))),
        ("table_metadata_inlined = true", Box::new(rules(|rules| rules.table_metadata_inlined = true))),
        ("instant = end", Box::new(rules(|rules| rules.instant = Instant::End))),
        ("abort_pays_refresh = false", Box::new(rules(|rules| rules.abort_pays_refresh = false))),
        ("transfer = profile", Box::new(rules(|rules| rules.transfer = Transfer::Profile))),
    ];
    println!("| rule | FA, 1 table, 200 ms | 50/50, 1 table, 500 ms | 90/10, 50 tables, S3 catalog, 100 ms |");
    println!("| --- | --- | --- | --- |");
    for (name, change) in changes {
        let columns = cells.iter().map(|cell| {
            let [success, per_s, mean_ms] = values(&change(cell));
            format!("{success:.1} %, {per_s:.2} c/s, {:.2} s", mean_ms / 1_000.0)
        });
        println!("| {name} | {} |", columns.collect::<Vec<_>>().join(" | "));
    }
}
