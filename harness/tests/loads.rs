//! Loads: what each kind reads, that they leave the commits alone, and how they are shown.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use std::path::Path;

use common::{code, formats, lakemark, only_cell, operations, requests, run, scratch, stderr, stdout};
use lakemark_results::loads::LoadSummary;
use lakemark_results::record::{Operation, OperationKind};
use lakemark_results::run::RunFolder;
use lakemark_results::summary::CellSummary;

/// What a format does not offer, by the name of the operation.
fn unsupported(format: &str) -> Vec<String> {
    let output = lakemark(&["list", "unsupported", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let rows: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let rows = rows.as_array().expect("rows").iter().filter(|row| row["format"] == format);
    rows.map(|row| row["operation"].as_str().expect("a name").to_owned()).collect()
}

fn loaded(out: &Path, name: &str, format: &str, more: &[&str]) -> RunFolder {
    let cell = ["--formats", format, "--scenario", "metadata-load", "--appends", "12", "--cpu", "free"];
    run(out, name, &[&cell[..], more].concat())
}

fn summary(folder: &RunFolder) -> CellSummary {
    CellSummary::read(folder, &only_cell(folder)).expect("a summary")
}

fn find(loads: &[LoadSummary], kind: OperationKind, appends: u64) -> Option<&LoadSummary> {
    loads.iter().find(|load| load.kind == kind && load.appends == appends && !load.is_beside)
}

#[test]
fn each_format_is_loaded_in_each_way_that_it_has() {
    let out = scratch();
    for format in formats() {
        let folder = loaded(out.path(), format, format, &["--param", "load-at=4,12", "--param", "loads=3"]);
        let loads = summary(&folder).loads;
        let missing = unsupported(format);
        for (kind, name) in [
            (OperationKind::ColdOpen, "cold_open"),
            (OperationKind::FreshHandle, "fresh_handle"),
            (OperationKind::Refresh, "refresh"),
            (OperationKind::ShallowOpen, "shallow_open"),
        ] {
            for appends in [4, 12] {
                let load = find(&loads, kind, appends);
                assert_eq!(load.is_none(), missing.contains(&name.to_owned()), "{format} {name} {appends}");
                let Some(load) = load else { continue };
                assert_eq!((load.loads_ok, load.loads_failed), (3, 0), "{format} {name}");
                assert!(load.latency_half_width_ms.is_some() && load.latency_ms == load.wait_ms, "{format} {load:?}");
                assert!(load.cpu_ms > 0.0 && load.requests >= 1.0, "{format} {load:?}");
                assert!(load.in_flight_mean >= 1.0 && load.in_flight_mean <= load.in_flight_max as f64, "{load:?}");
                if kind == OperationKind::Refresh {
                    assert_eq!(load.behind, Some(appends.min(10)), "{format}");
                }
            }
        }
        let cold = find(&loads, OperationKind::ColdOpen, 12).expect("cold opens");
        assert!(cold.objects >= 1.0 && cold.read_bytes > 0.0, "{format}: {cold:?}");
        for kind in [OperationKind::FreshHandle, OperationKind::Refresh, OperationKind::ShallowOpen] {
            let Some(load) = find(&loads, kind, 12) else { continue };
            assert!(load.objects <= cold.objects, "{format}: {kind:?} reads more than a cold open: {load:?}, {cold:?}");
        }
    }
}

#[test]
fn loading_leaves_the_commits_as_they_are() {
    let out = scratch();
    // A request as the store sees it; the names hold random identifiers.
    let shapes = |folder: &RunFolder| {
        let of_writer = requests(folder, &only_cell(folder)).into_iter().filter(|request| request.writer == 0);
        let mut shapes: Vec<_> =
            of_writer.map(|r| (r.operation, format!("{:?}", r.method), r.class, r.keys, r.outcome)).collect();
        shapes.sort();
        shapes
    };
    let appends =
        |folder: &RunFolder| -> Vec<Operation> { operations(folder, &only_cell(folder), OperationKind::Append) };
    for format in formats() {
        let loads = ["--param", "load-at=1,4,5,12", "--param", "loads=2", "--param", "behind=3"];
        let with = loaded(out.path(), &format!("{format}-with"), format, &loads);
        let cell = ["--formats", format, "--appends", "12", "--cpu", "free", "--param", "sample-at=12"];
        let without = run(out.path(), &format!("{format}-without"), &cell);
        assert_eq!(shapes(&with), shapes(&without), "{format}");
        let (with, without) = (appends(&with), appends(&without));
        assert_eq!(with.len(), 12);
        for (a, b) in with.iter().zip(&without) {
            assert_eq!((a.version, a.attempts, a.requests), (b.version, b.attempts, b.requests), "{format}");
            // Random identifiers differ in their digits, and latencies by what these take.
            assert!(a.latency_us.abs_diff(b.latency_us) <= 50, "{format}: {} and {} µs", a.latency_us, b.latency_us);
        }
    }
}

#[test]
fn readers_beside_the_writer_find_what_was_acknowledged() {
    let out = scratch();
    for format in formats() {
        let folder = loaded(out.path(), format, format, &["--param", "readers-beside=2", "--param", "load-at=12"]);
        let loads = summary(&folder).loads;
        let beside = loads.iter().find(|load| load.is_beside).expect("loads beside the writer");
        assert!(beside.loads_ok > 2 && beside.loads_failed == 0, "{format}: {beside:?}");
        let status = folder.status(&only_cell(&folder)).unwrap().unwrap();
        let checks = status.audit.expect("an audit").checks;
        assert!(checks.iter().any(|check| check.name.contains("beside the writer") && check.passed), "{checks:?}");
    }
}

#[test]
fn a_run_shows_its_loads_and_names_those_not_offered() {
    let out = scratch();
    let format = formats()[0];
    let base = ["run", "--formats", format, "--scenario", "metadata-load", "--appends", "3", "--out"];
    let base = [&base[..], &[out.path().to_str().unwrap()]].concat();
    let text = stdout(&lakemark(&base));
    assert!(text.contains("cold open") && text.contains("most at"), "{text}");
    for name in unsupported(format).iter().filter(|name| name.contains("open")) {
        assert!(text.contains(&name.replace('_', " ")) && text.contains("not offered"), "{text}");
    }
    let json = stdout(&lakemark(&[&base[..], &["--format", "json"]].concat()));
    let document: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(document["cells"].as_array().expect("cells").len(), 1);
    assert!(document["loads"][0]["latency_ms"].is_number(), "{document}");
    assert!(document["projection"][0]["bytes_per_file"].is_number(), "{document}");
}

#[test]
fn a_study_is_reproduced_with_loads_and_a_projection() {
    let out = scratch();
    let format = formats()[0];
    let base = ["reproduce", "lance-2026", "--appends", "12", "--formats", format, "--stores", "s3", "--out"];
    let base = [&base[..], &[out.path().to_str().unwrap()]].concat();
    let output = lakemark(&[&base[..], &["--scenario", "metadata-load"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for word in ["cold open, ms", "commit mean, ms", "upper bound", "published\n", "our arithmetic"] {
        assert!(text.contains(word.trim_end()), "no {word:?} in {text}");
    }
    let alone = lakemark(&[&base[..], &["--scenario", "sequential-commit"]].concat());
    assert_eq!(code(&alone), 0, "{}", stderr(&alone));
    assert!(!stdout(&alone).contains("cold open, ms"), "{}", stdout(&alone));
}

#[test]
fn a_trace_shows_each_kind_of_load_or_says_why_not() {
    for format in formats() {
        let missing = unsupported(format);
        for (operation, name) in
            [("load", "cold_open"), ("fresh", "fresh_handle"), ("refresh", "refresh"), ("shallow", "shallow_open")]
        {
            let output = lakemark(&["trace", format, "--at", "5", "--operation", operation]);
            if missing.contains(&name.to_owned()) {
                assert_eq!(code(&output), 2, "{format} {operation}");
                assert!(stderr(&output).contains(&name.replace('_', " ")), "{}", stderr(&output));
            } else {
                assert_eq!(code(&output), 0, "{format} {operation}: {}", stderr(&output));
                let text = stdout(&output);
                assert!(text.contains(&name.replace('_', " ")) && text.contains("at once"), "{text}");
            }
        }
    }
}
