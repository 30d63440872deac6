//! Does the model reproduce what endive-2026 published of its corrected model?
//!
//! Published figures are means over five seeds that cannot be recovered. A row agrees if it lies within three standard
//! errors of the difference between a mean over its five seeds and one over ours, and half a unit of its last digit.

use std::collections::BTreeMap;

use lakemark_simulator::{knee, studies};

mod common;

const SEEDS: u64 = 5;

/// Half a unit of the last printed digit. A trailing `.0` is the file's, not the study's.
fn half_unit(value: &str) -> f64 {
    let decimals = value.trim_end_matches(".0").split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10f64.powi(-(decimals as i32))
}

/// Rows that may lie outside of three standard errors. Chance puts about two of 183 there, with errors estimated from
/// ten seeds. One is outside with any seeds, in the reference program as well: FastAppends at 50 tables and 20 ms,
/// where the study prints 87.6 % and both have 88.3; for the same cell without overwrites, which is no easier, it
/// prints 88 % itself.
const OUTSIDE_MAX: usize = 5;

#[test]
fn every_published_row_is_within_the_interval_of_seeds() {
    let mut cells: BTreeMap<common::Key, _> = BTreeMap::new();
    for (nth, study) in studies::endive_2026().into_iter().enumerate() {
        cells.insert(common::key(&study), (nth, study));
    }
    // The heatmaps and the tables print some of the same cells' values: one run serves both.
    let mut by_cell: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (key, columns) in common::lines(include_str!("../reference/published.csv")) {
        by_cell.entry(key).or_default().push(columns);
    }
    let (mut rows, mut outside) = (0, Vec::new());
    for (key, lines) in by_cell {
        let (nth, study) = &cells[&key];
        let runs = common::run(study, *nth, SEEDS);
        for columns in lines {
            let (definition, metric) = (&columns["metric_definition"], &columns["metric"]);
            let column = match metric.as_str() {
                "knee_throughput" => "knee.throughput".to_owned(),
                metric => format!("{definition}.{metric}"),
            };
            let unit = if columns["unit"] == "s" { 1_000.0 } else { 1.0 };
            let values: Vec<f64> =
                runs.iter().filter_map(|run| common::column(run, &column)).map(|v| v / unit).collect();
            let (mean, sd) = common::mean_sd(&values).unwrap();
            let published: f64 = columns["published_value"].parse().unwrap();
            // A deviation estimated from five seeds is off by a third: taken together with that of the reference
            // program.
            let check_sd = columns["check_sd_5_seeds"].parse::<f64>().unwrap();
            let sd = ((sd * sd + check_sd * check_sd) / 2.0).sqrt();
            let error = sd * (1.0 / 5.0 + 1.0 / SEEDS as f64).sqrt();
            let allowed = 3.0 * error + half_unit(&columns["published_value"]);
            rows += 1;
            if (mean - published).abs() > allowed {
                // Seed scatter or not, no row is further off than this: points of success, or a share of anything else.
                let far = match metric.as_str() {
                    "success_rate" => (mean - published).abs() > 1.0,
                    _ => (mean / published - 1.0).abs() > 0.15,
                };
                assert!(!far, "{key:?} {column}: published {published}, ours {mean:.4}");
                outside.push(format!("{key:?} {column}: published {published}, ours {mean:.4} ± {allowed:.4}"));
            }
        }
    }
    assert_eq!(rows, 183);
    assert!(outside.len() <= OUTSIDE_MAX, "{} of {rows} rows outside: {outside:#?}", outside.len());
}

/// S3, 50 tables, 90/10. At 100 ms its overwrites succeed in 95.0 % (the reference program: 94.97 ± 0.32), so that the
/// seeds decide whether the knee is there or, as published, at 200 ms.
const ON_THE_LINE: (&str, u32, &str) = ("s3", 50, "0.9");

#[test]
fn published_knees_are_equal() {
    let mut published = BTreeMap::new();
    for (key, columns) in common::lines(include_str!("../reference/published.csv")) {
        if columns["metric"] == "knee_throughput" {
            let (experiment, scale_ms, _, tables, mix, provider) = key;
            assert_eq!(experiment, "exp4c");
            published.insert((provider, tables, mix), scale_ms);
        }
    }
    assert_eq!(published.len(), 29);
    let mut sweeps: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (nth, study) in studies::endive_2026().into_iter().enumerate() {
        if study.experiment == "exp4c" {
            let (_, _, _, tables, mix, provider) = common::key(&study);
            sweeps.entry((provider, tables, mix)).or_default().push((nth, study));
        }
    }
    for (sweep, scale_ms) in published {
        let cells = &sweeps[&sweep];
        // Heaviest load first, and no further than the knee.
        let rates = cells.iter().map(|(nth, study)| {
            // Loads far above the knee fail by tens of points: one seed tells.
            let near = study.scale_ms * 2.0 >= f64::from(scale_ms);
            let runs = common::run(study, *nth, if near { SEEDS } else { 1 });
            let of = |run: &lakemark_simulator::CellResult| match study.cell.fast_append_ratio < 1.0 {
                true => run.knee.validated_overwrite.success_rate,
                false => run.knee.fast_append.success_rate,
            };
            common::mean_sd(&runs.iter().filter_map(of).collect::<Vec<_>>()).map(|(mean, _)| mean)
        });
        let found = knee(rates).map(|index| cells[index].1.scale_ms as u32);
        if (sweep.0.as_str(), sweep.1, sweep.2.as_str()) == ON_THE_LINE {
            assert!(found == Some(100) || found == Some(200), "{sweep:?}: {found:?}");
        } else {
            assert_eq!(found, Some(scale_ms), "{sweep:?}");
        }
    }
}
