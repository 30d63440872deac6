//! How many events a second, and how long for the study's cells?
//!
//! `exp1_20ms` is the cell that the original takes 135 CPU seconds for. `overwrites_20ms` sums hundreds of reads in
//! each attempt.
#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lakemark_simulator::{Cell, Model, studies};

fn cells(criterion: &mut Criterion) {
    let find = |experiment: &str, provider: &str, scale_ms: f64, tables: u32, ratio: f64| {
        studies::endive_2026()
            .into_iter()
            .find(|study| {
                let cell = &study.cell;
                study.experiment == experiment
                    && study.provider == provider
                    && study.scale_ms == scale_ms
                    && cell.tables == tables
                    && cell.fast_append_ratio == ratio
            })
            .expect("a cell of the study")
            .cell
    };
    let cells: [(&str, Cell); 6] = [
        ("exp1_20ms", find("exp1", "s3", 20.0, 1, 1.0)),
        ("exp1_1000ms", find("exp1", "s3", 1_000.0, 1, 1.0)),
        ("overwrites_20ms", find("exp2", "s3", 20.0, 1, 0.0)),
        ("s3_express_50_tables_20ms", find("exp4c", "s3x", 20.0, 50, 1.0)),
        ("s3_express_50_tables_20ms_mixed", find("exp4c", "s3x", 20.0, 50, 0.9)),
        ("delta_200_writers_600s", Cell::concurrent_writers("delta-log", "s3", 200, 600_000.0, 0.0)),
    ];
    let mut group = criterion.benchmark_group("cell");
    group.sample_size(10);
    for (name, cell) in cells {
        let model = Model::new(&cell).expect("a valid cell");
        // Throughput is in events: elements a second.
        group.throughput(Throughput::Elements(model.run(1).counts.events));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(model.run(black_box(1)))));
    }
    group.finish();
}

fn models(criterion: &mut Criterion) {
    let cell = Cell::default();
    criterion.bench_function("model", |bencher| bencher.iter(|| Model::new(black_box(&cell)).expect("a valid cell")));
}

criterion_group!(benches, cells, models);
criterion_main!(benches);
