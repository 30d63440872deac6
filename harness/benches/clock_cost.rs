//! What the clock and the emulated store cost: a run on emulated S3 with the skipping clock beside the same run on the
//! instant store with the clock off. The ratio of the two is the promise: 1.5 at most for each format.
//!
//! `LAKEMARK_BENCH_APPENDS` sets the appends of a run (100 unless set).

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

fn run(format: &str, store: &str, clock: &str, appends: &str) {
    let out = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new(env!("CARGO_BIN_EXE_lakemark"))
        .args(["run", "--formats", format, "--stores", store, "--clock", clock, "--appends", appends])
        // One sample, at the end: what it costs is in both.
        .args(["--param", &format!("sample-at={appends}"), "--out"])
        .arg(out.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the command starts");
    assert!(status.success(), "{format} on {store}");
}

fn cells(criterion: &mut Criterion) {
    let appends = std::env::var("LAKEMARK_BENCH_APPENDS").unwrap_or_else(|_| "100".to_owned());
    let formats = [
        cfg!(feature = "lance").then_some("lance"),
        cfg!(feature = "delta").then_some("delta"),
        cfg!(feature = "iceberg").then_some("iceberg"),
    ];
    for format in formats.into_iter().flatten() {
        let mut group = criterion.benchmark_group(format!("{format}/{appends}-appends"));
        group.sample_size(10);
        group.bench_function("s3-skip", |bench| bench.iter(|| run(format, "s3", "skip", &appends)));
        group.bench_function("instant-real", |bench| bench.iter(|| run(format, "instant", "real", &appends)));
        group.finish();
    }
}

criterion_group!(benches, cells);
criterion_main!(benches);
