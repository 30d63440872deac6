//! `lakemark fit`: a protocol read off each format's real commits, and the model beside them.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use common::{code, formats, lakemark, only_cell, run, scratch, stderr, stdout};
use lakemark_simulator::{Operation, Protocol, Publish};

const CELL: [&str; 12] = [
    "--scenario",
    "concurrent-writers",
    "--stores",
    "s3-express",
    "--cpu",
    "free",
    "--param",
    "writers=4",
    "--param",
    "duration-s=10",
    "--param",
    "warm-up-s=1",
];

#[test]
fn every_formats_commit_becomes_a_protocol_that_simulates_like_it() {
    let out = scratch();
    for format in formats() {
        let folder = run(out.path(), format, &[&CELL[..], &["--formats", format]].concat());
        let path = folder.path().to_str().unwrap();
        let output = lakemark(&["fit", path, "--seeds", "2", "--duration-s", "60", "--format", "json"]);
        assert_eq!(code(&output), 0, "{format}: {}", stderr(&output));
        let rows: Vec<serde_json::Value> = serde_json::from_str(&stdout(&output)).unwrap();
        let number = |name: &str| rows[0][name].as_f64().unwrap_or_else(|| panic!("{format}: {name}: {rows:?}"));
        assert_eq!(number("writers"), 4.0);
        assert!((0.5..2.0).contains(&number("commits_ratio")), "{format}: {rows:?}");
        assert!(number("alike_pct") > 50.0, "{format}: {rows:?}");
        assert!(number("model_failed_attempts_pct") > 0.0, "{format}: {rows:?}");
        let file = folder.path().join("protocols").join(format!("{}.toml", only_cell(&folder)));
        let protocol = Protocol::named(file.to_str().unwrap()).unwrap();
        match format {
            "iceberg" => {
                assert_eq!(protocol.refresh, Operation::CatalogRead);
                assert!(matches!(protocol.publish, Publish::CatalogSwap { .. }), "{protocol:?}");
                assert!(protocol.first.iter().any(|step| step.bytes_per_version > 0.0), "{protocol:?}");
            }
            _ => {
                assert_eq!(protocol.refresh, Operation::List);
                assert!(matches!(protocol.publish, Publish::PutIfAbsent { .. }), "{protocol:?}");
            }
        }
    }
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let out = scratch();
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = lakemark(&[&["fit"], arguments].concat());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        let message = stderr(&output);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{arguments:?}: {message}");
    };
    refused(&[out.path().to_str().unwrap()], &["run.json"]);
    let Some(format) = formats().first().copied() else { return };
    let folder = run(out.path(), "one", &["--formats", format, "--stores", "instant", "--appends", "3"]);
    let path = folder.path().to_str().unwrap();
    refused(&[path, "--cell", "other"], &["--cell other", &only_cell(&folder)]);
    refused(&[path, "--protocol", "hudi"], &["--protocol", "hudi", "delta-log"]);
    // One writer loses to nobody: there is a protocol, and nothing to compare.
    let output = lakemark(&["fit", path, "--format", "csv"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).lines().nth(1).unwrap().ends_with(",,,,,,"), "{}", stdout(&output));
}
