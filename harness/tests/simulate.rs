//! `lakemark simulate` and the simulated study, end to end. They need no formats.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use std::path::Path;

use common::{code, lakemark, scratch, stderr, stdout};

/// Runs `simulate` into a folder; fails the test unless it ends well.
fn simulate(out: &Path, arguments: &[&str]) -> String {
    let mut all = vec!["simulate", "--out", out.to_str().unwrap(), "--threads", "2"];
    all.extend(arguments);
    let output = lakemark(&all);
    assert_eq!(code(&output), 0, "{all:?}: {}", stderr(&output));
    stdout(&output)
}

/// A small grid.
const SMALL: [&str; 10] = [
    "--load",
    "1,4",
    "--tables",
    "1,10",
    "--retry",
    "immediate,split",
    "--set",
    "duration_ms=60000",
    "--set",
    "runtime.median_ms=1000",
];

#[test]
fn bad_input_is_refused_in_one_line_before_anything_runs() {
    let out = scratch();
    let refused = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["simulate", "--out", out.path().to_str().unwrap()];
        all.extend(arguments);
        let output = lakemark(&all);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        let message = stderr(&output);
        let first = message.lines().next().unwrap_or_default();
        assert!(words.iter().all(|word| first.contains(word)), "{arguments:?}: {first}");
    };
    refused(&["--load", "-1"], &["load_per_s is -1", "more than 0"]);
    refused(&["--load", "1,-1"], &["load_per_s is -1"]);
    refused(&["--tables", "0"], &["tables is 0", "1 to"]);
    refused(&["--mix", "90/20"], &["90/20", "sum to 100"]);
    refused(&["--provider", "s4"], &["s4", "s3-express"]);
    refused(&["--protocol", "hudi"], &["hudi", "delta-log"]);
    refused(&["--retry", "never"], &["never", "full-jitter"]);
    refused(&["--catalog", "fast"], &["--catalog", "fast", "storage"]);
    refused(&["--set", "tabels=1"], &["tabels", "tables"]);
    refused(&["--set", "tables"], &["--set", "SETTING=VALUE"]);
    refused(&["--shard", "4/4"], &["4/4", "0/8"]);
    refused(&["nothing"], &["nothing", "endive-2026"]);
    refused(&["nothing.toml"], &["nothing.toml"]);
    refused(&["--resume"], &["--resume", "--name"]);
    let grid = out.path().join("grid.toml");
    std::fs::write(&grid, "[cell]\nload_per_s = [1, -5]\n").unwrap();
    refused(&[grid.to_str().unwrap()], &["grid.toml", "-5"]);
    let thousand: Vec<String> = (1..=1_000).map(|n| n.to_string()).collect();
    let axis = |name: &str| format!("{name}={}", thousand.join(","));
    let [tables, latencies, warm_up] = ["tables", "catalog.latency_ms", "warm_up_ms"].map(axis);
    let billion = ["--set", &tables, "--set", &latencies, "--set", &warm_up];
    refused(&billion, &["1,000,000,000 cells × 5 seeds", "about", "--yes"]);
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1, "something ran");
    let output = lakemark(&["reproduce", "endive-2026", "--stores", "s3"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--stores does not apply"), "{}", stderr(&output));
    let output = lakemark(&["reproduce", "lance-2026", "--seeds", "3"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn shards_merge_into_the_file_of_one_run() {
    let out = scratch();
    let with = |more: &[&'static str]| SMALL.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    simulate(out.path(), &with(&["--name", "one"]));
    for (name, shard) in [("shard-0", "0/3"), ("shard-1", "1/3"), ("shard-2", "2/3")] {
        simulate(out.path(), &with(&["--name", name, "--shard", shard]));
    }
    let merged = out.path().join("merged.parquet");
    let pattern = out.path().join("shard-*");
    let output = lakemark(&["simulate", "merge", merged.to_str().unwrap(), pattern.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let one = std::fs::read(out.path().join("one/rows.parquet")).unwrap();
    assert!(one == std::fs::read(&merged).unwrap(), "the bytes differ");
    // A shard that is missing is told, and is a failure.
    let parts = ["shard-0", "shard-2"].map(|name| out.path().join(name).to_str().unwrap().to_owned());
    let output = lakemark(&["simulate", "merge", merged.to_str().unwrap(), &parts[0], &parts[1]]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("are missing"), "{}", stderr(&output));
}

#[test]
fn a_sweep_goes_on_where_it_was_and_is_printed_and_drawn() {
    let out = scratch();
    let with = |more: &[&'static str]| SMALL.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    simulate(out.path(), &with(&["--name", "one"]));
    let folder = out.path().join("one");
    // As a sweep that was stopped: its rows are parts.
    std::fs::create_dir(folder.join("parts")).unwrap();
    std::fs::rename(folder.join("rows.parquet"), folder.join("parts/000000.parquet")).unwrap();
    let output = lakemark(&["simulate", folder.to_str().unwrap(), "--resume", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("40 runs are done, 0 are left"), "{}", stderr(&output));
    let cells: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(cells.as_array().map(Vec::len), Some(8));
    assert!(cells[0]["success_rate"].as_f64().is_some_and(|rate| rate > 0.9), "{}", cells[0]);
    assert!(folder.join("rows.parquet").exists());
    // The same command again is refused, and with other settings too.
    let mut again = vec!["simulate", "--out", out.path().to_str().unwrap(), "--name", "one"];
    assert_eq!(code(&lakemark(&again)), 1);
    again.extend(["--resume", "--tables", "3"]);
    let output = lakemark(&again);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("another grid"), "{}", stderr(&output));
    let output = lakemark(&["simulate", "plot", folder.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(std::fs::read_to_string(folder.join("plots.html")).unwrap().contains("retry split"));
    let output = lakemark(&["simulate", "plot", folder.to_str().unwrap(), "--definition", "mean"]);
    assert_eq!(code(&output), 2);
}

#[test]
fn a_dry_run_counts_and_runs_nothing() {
    let out = scratch();
    let printed = simulate(out.path(), &["endive-2026", "--retry", "immediate,split", "--dry-run", "--format", "csv"]);
    assert!(printed.contains("cells,4180") && printed.contains("runs,20900"), "{printed}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_signal_keeps_the_rows() {
    let out = scratch();
    let folder = out.path().join("long");
    let mut child = common::command(&["simulate", "endive-2026", "--threads", "1", "--name", "long", "--out"])
        .arg(out.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Rows are on their way once a part is there, which a sweep writes every ten seconds.
    for _ in 0..600 {
        if std::fs::read_dir(folder.join("parts")).is_ok_and(|mut parts| parts.next().is_some()) {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let parts = std::fs::read_dir(folder.join("parts")).unwrap().count();
    assert!(parts >= 2, "{parts} parts: what ran since the last is lost");
    assert!(!folder.join("rows.parquet").exists());
}
