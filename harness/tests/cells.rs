//! What a cell measures: the same under both clocks, the same again under the same seed, and checked.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use common::{formats, only_cell, operations, requests, run, scratch};
use lakemark_results::record::{Operation, OperationKind, Request};
use lakemark_results::run::RunFolder;
use lakemark_results::summary::CellSummary;

/// What a request is, whatever its names and times.
fn shape(request: &Request) -> (u64, String, String) {
    (request.operation, format!("{:?}", request.method), request.class.clone())
}

fn shapes(folder: &RunFolder) -> Vec<(u64, String, String)> {
    let mut shapes: Vec<_> = requests(folder, &only_cell(folder)).iter().map(shape).collect();
    // Requests under way together end in either order.
    shapes.sort();
    shapes
}

fn appends(folder: &RunFolder) -> Vec<Operation> {
    operations(folder, &only_cell(folder), OperationKind::Append)
}

fn mean_wait_ms(folder: &RunFolder) -> f64 {
    let appends = appends(folder);
    appends.iter().map(|append| append.wait_us as f64 / 1e3).sum::<f64>() / appends.len() as f64
}

#[test]
fn both_clocks_give_the_same_requests_and_latencies() {
    let out = scratch();
    for format in formats() {
        let cell = ["--formats", format, "--stores", "s3", "--appends", "12"];
        let real = run(out.path(), &format!("{format}-real"), &[&cell[..], &["--clock", "real"]].concat());
        let skip = run(out.path(), &format!("{format}-skip"), &[&cell[..], &["--clock", "skip"]].concat());
        assert_eq!(shapes(&real), shapes(&skip), "{format}");
        let (real, skip) = (mean_wait_ms(&real), mean_wait_ms(&skip));
        // A wait in real time ends when the system gets to it: later than due, never before.
        assert!(skip <= real * 1.01 && real <= skip * 1.15, "{format}: {real} ms in real time, {skip} ms skipped");
    }
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let out = scratch();
    for format in formats() {
        let cell = ["--formats", format, "--stores", "s3-express", "--appends", "25", "--cpu", "free", "--seed", "7"];
        let one = run(out.path(), &format!("{format}-one"), &cell);
        let two = run(out.path(), &format!("{format}-two"), &cell);
        assert_eq!(shapes(&one), shapes(&two), "{format}");
        for (a, b) in appends(&one).iter().zip(appends(&two)) {
            assert_eq!((a.version, a.attempts, a.requests, a.outcome), (b.version, b.attempts, b.requests, b.outcome));
            // Random identifiers differ in their digits, so sizes differ by some bytes, and latencies by what these take.
            assert!(a.latency_us.abs_diff(b.latency_us) <= 50, "{format}: {} and {} µs", a.latency_us, b.latency_us);
            assert!(a.written_bytes.abs_diff(b.written_bytes) <= 1_024, "{format}: {a:?} {b:?}");
        }
        let other = [&cell[..9], &["8"]].concat();
        let other = run(out.path(), &format!("{format}-other"), &other);
        let latencies = |folder: &RunFolder| appends(folder).iter().map(|a| a.latency_us).collect::<Vec<_>>();
        assert_ne!(latencies(&one), latencies(&other), "{format}: another seed gives other latencies");
    }
}

#[test]
fn free_computing_takes_no_process_time() {
    let out = scratch();
    for format in formats() {
        let folder = run(out.path(), format, &["--formats", format, "--appends", "10", "--cpu", "free"]);
        for append in appends(&folder) {
            assert_eq!(append.latency_us, append.wait_us, "{format}: {append:?}");
            assert!(append.cpu_us > 0, "{format}: its CPU time is recorded all the same");
        }
    }
}

#[test]
fn metadata_is_sampled_without_disturbing_the_series() {
    let out = scratch();
    for format in formats() {
        let cell = ["--formats", format, "--appends", "12", "--cpu", "free"];
        let often =
            run(out.path(), &format!("{format}-often"), &[&cell[..], &["--param", "sample-at=1,4,8,12"]].concat());
        let seldom = run(out.path(), &format!("{format}-seldom"), &[&cell[..], &["--param", "sample-at=12"]].concat());
        let wait_us = |folder: &RunFolder| appends(folder).iter().map(|append| append.wait_us).collect::<Vec<_>>();
        for (a, b) in wait_us(&often).iter().zip(wait_us(&seldom)) {
            assert!(a.abs_diff(b) <= 50, "{format}: {a} and {b} µs");
        }
        let summary = CellSummary::read(&often, &only_cell(&often)).expect("a summary");
        assert_eq!(summary.metadata.iter().map(|sample| sample.appends).collect::<Vec<_>>(), [1, 4, 8, 12], "{format}");
        for pair in summary.metadata.windows(2) {
            assert!(pair[0].retained.bytes < pair[1].retained.bytes, "{format}: {pair:?}");
            assert!(pair[0].active.bytes < pair[1].active.bytes, "{format}: {pair:?}");
        }
        let last = summary.metadata.last().expect("a sample");
        assert!(
            last.active.bytes <= last.retained.bytes && last.retained.bytes <= last.written_bytes,
            "{format}: {last:?}"
        );
    }
}

#[test]
fn several_files_in_an_append_are_all_active() {
    let out = scratch();
    for format in formats() {
        let folder = run(
            out.path(),
            format,
            &["--formats", format, "--appends", "5", "--param", "files=7", "--stores", "instant"],
        );
        let status = folder.status(&only_cell(&folder)).expect("a status").expect("an ended cell");
        let audit = status.audit.expect("an audit");
        assert!(audit.is_valid());
        assert!(audit.checks.iter().any(|check| check.detail.contains("35 acknowledged, 35 active")), "{audit:?}");
    }
}
