//! Does replacing a sum of many draws by one draw move any value?

use lakemark_simulator::{CellResult, Model, studies};

mod common;

const SEEDS: u64 = 12;

/// Cells whose ValidatedOverwrites sum thousands of draws, run both ways.
#[test]
fn no_metric_moves() {
    let cells = studies::endive_2026();
    let find = |experiment: &str, provider: &str, scale_ms: f64, tables: u32, ratio: f64| {
        cells
            .iter()
            .find(|study| {
                study.experiment == experiment
                    && study.provider == provider
                    && study.scale_ms == scale_ms
                    && study.cell.tables == tables
                    && study.cell.fast_append_ratio == ratio
            })
            .unwrap()
    };
    let mut zs = Vec::new();
    for (study, base) in [
        (find("exp2", "s3", 300.0, 1, 0.5), 1_000u64),
        (find("exp2", "s3", 500.0, 1, 0.0), 2_000),
        (find("exp4b", "s3", 100.0, 10, 0.9), 3_000),
        (find("exp4c", "azure", 200.0, 2, 0.5), 4_000),
        (find("exp4c", "s3x", 200.0, 1, 0.9), 5_000),
    ] {
        let run = |exact_below: u32, first: u64| -> Vec<CellResult> {
            let cell = lakemark_simulator::Cell { sums_exact_below: exact_below, ..study.cell.clone() };
            let model = Model::new(&cell).unwrap();
            (first..first + SEEDS).map(|seed| model.run(seed)).collect()
        };
        // Other seeds, so that the two are independent samples.
        let (exact, approximate) = (run(u32::MAX, base), run(32, base + 500));
        for column in [
            "table.success_rate",
            "table.throughput",
            "heat_vo.mean",
            "heat_vo.p99",
            "heat_vo.success_rate",
            "knee_fa.mean",
        ] {
            let values = |runs: &[CellResult]| -> Vec<f64> {
                runs.iter().filter_map(|run| common::column(run, column)).collect()
            };
            let (Some(a), Some(b)) = (common::mean_sd(&values(&exact)), common::mean_sd(&values(&approximate))) else {
                continue;
            };
            let error = ((a.1 * a.1 + b.1 * b.1) / SEEDS as f64).sqrt();
            if error > 0.0 {
                let z = (a.0 - b.0) / error;
                assert!(z.abs() < 4.0, "{study:?} {column}: exact {:.4}, approximate {:.4}, z {z:.2}", a.0, b.0);
                zs.push(z);
            }
        }
    }
    let mean = zs.iter().sum::<f64>() / zs.len() as f64;
    assert!(zs.len() >= 24 && mean.abs() < 0.8, "{mean} over {}", zs.len());
}
