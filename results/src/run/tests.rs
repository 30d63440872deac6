use tempfile::TempDir;

use super::*;
use crate::manifest::CellState;
use crate::record::{Operation, OperationKind, Outcome};

pub(crate) fn plan(id: &str) -> CellPlan {
    CellPlan {
        id: id.into(),
        format: "lance".into(),
        catalog: "none".into(),
        store: "s3".into(),
        scenario: "sequential-commit".into(),
        parameters: [("appends".to_owned(), 10_000.into())].into(),
        settings: [("retries".to_owned(), "library".to_owned())].into(),
        seed: 7,
        clock: "skip".into(),
        cpu: "measured".into(),
        worker: None,
    }
}

pub(crate) fn manifest(cells: &[&str]) -> Manifest {
    Manifest {
        schema: SCHEMA,
        run: "run-1".into(),
        created: "2026-01-02T03:04:05Z".into(),
        command: vec!["lakemark".into(), "run".into()],
        seed: 7,
        tool_version: "0.1.0".into(),
        commit: Some("0123abc".into()),
        libraries: [("lance".to_owned(), "14.0.2".to_owned())].into(),
        cpu_model: "a CPU".into(),
        cpus: 2,
        memory_bytes: 1 << 33,
        kernel: "Linux 6.1".into(),
        os: "Debian 13".into(),
        profiles: [("s3".to_owned(), "abcd".to_owned())].into(),
        cells: cells.iter().map(|id| plan(id)).collect(),
    }
}

pub(crate) const OPERATION: &str = r#"{"type":"operation","writer":0,"operation":1,"kind":"append","start_us":5,"latency_us":140000,"wait_us":139000,"catalog_us":0,"cpu_us":900,"outcome":"ok","version":2,"attempts":1,"requests":3,"read_bytes":10,"written_bytes":20}"#;
const REQUEST: &str = r#"{"type":"request","writer":0,"operation":1,"request":2,"method":"put_if_absent","key":"t/_versions/2.manifest","class":"manifest","start_us":6,"latency_us":55000,"read_bytes":0,"written_bytes":20,"status":200,"outcome":"ok"}"#;
const ATTEMPT: &str = r#"{"type":"attempt","writer":0,"operation":1,"attempt":0,"layer":"store","start_us":6,"latency_us":55000,"outcome":"ok"}"#;
const METADATA: &str = r#"{"type":"metadata","appends":1,"active":{"objects":1,"bytes":99},"active_by_class":{},"retained":{"objects":2,"bytes":150},"retained_by_class":{},"written_bytes":150,"load_latency_us":27000}"#;
const HELLO: &str =
    r#"{"type":"hello","protocol":1,"format":"lance","library":"lance 14.0.2","clock":"skip","settings":{}}"#;
const AUDIT: &str = r#"{"type":"audit","checks":[{"name":"commits","passed":true,"detail":"1 = 1"}]}"#;
const DONE: &str = r#"{"type":"done","real_s":1.5,"process_s":149.0,"cpu_s":1.2,"clock_cpu_s":0.1,"store_cpu_s":0.1,"peak_memory_bytes":1,"store_logical_bytes":2,"store_held_bytes":1}"#;

fn folder(cells: &[&str]) -> (TempDir, RunFolder) {
    let out = TempDir::new().unwrap();
    let folder = RunFolder::create(&out.path().join("results"), manifest(cells)).unwrap();
    (out, folder)
}

fn run_cell(folder: &RunFolder, cell: &str, lines: &[&str]) -> CellStatus {
    let mut writer = folder.writer(cell).unwrap();
    let mut status = CellStatus::started(cell);
    for line in lines {
        if let Some(line) = writer.line(line).unwrap() {
            status.absorb(line);
        }
    }
    writer.finish(&status).unwrap();
    status
}

#[test]
fn manifest_survives_a_round_trip() {
    let (_out, folder) = folder(&["a", "b"]);
    let opened = RunFolder::open(folder.path()).unwrap();
    assert_eq!(opened.manifest(), &manifest(&["a", "b"]));
}

#[test]
fn records_are_kept_byte_for_byte_and_read_back_typed() {
    let (_out, folder) = folder(&["a"]);
    let status = run_cell(&folder, "a", &[HELLO, REQUEST, ATTEMPT, OPERATION, METADATA, AUDIT, DONE]);
    assert_eq!(status.state, CellState::Ok);
    assert_eq!(folder.status("a").unwrap(), Some(status));
    for (file, line) in [
        ("operations.jsonl", OPERATION),
        ("requests.jsonl", REQUEST),
        ("attempts.jsonl", ATTEMPT),
        ("metadata.jsonl", METADATA),
    ] {
        assert_eq!(fs::read_to_string(folder.cell_path("a").join(file)).unwrap(), format!("{line}\n"));
    }
    let operations: Vec<Operation> = folder.read_operations("a").unwrap().map(Result::unwrap).collect();
    assert_eq!(operations.len(), 1);
    assert_eq!((operations[0].kind, operations[0].outcome), (OperationKind::Append, Outcome::Ok));
    assert_eq!(folder.read_requests("a").unwrap().next().unwrap().unwrap().class, "manifest");
    assert_eq!(folder.read_attempts("a").unwrap().count(), 1);
    assert_eq!(folder.read_metadata("a").unwrap().next().unwrap().unwrap().active.bytes, 99);
}

#[test]
fn flushed_lines_are_there_without_a_finish() {
    let (_out, folder) = folder(&["a"]);
    let mut writer = folder.writer("a").unwrap();
    writer.line(OPERATION).unwrap();
    writer.flush().unwrap();
    assert_eq!(folder.read_operations("a").unwrap().count(), 1);
    assert_eq!(folder.status("a").unwrap(), None);
}

#[test]
fn a_torn_last_line_is_reported_and_a_torn_middle_is_an_error() {
    let (_out, folder) = folder(&["a"]);
    run_cell(&folder, "a", &[OPERATION, OPERATION]);
    let file = folder.cell_path("a").join("operations.jsonl");
    let torn = format!("{OPERATION}\n{}", &OPERATION[..40]);

    fs::write(&file, &torn).unwrap();
    let mut records = folder.read_operations("a").unwrap();
    assert!(records.by_ref().all(|record| record.is_ok()));
    assert_eq!(records.torn(), Some(2));

    // Whole, and only its line feed missing: nothing is lost.
    fs::write(&file, OPERATION).unwrap();
    let mut records = folder.read_operations("a").unwrap();
    assert_eq!((records.by_ref().count(), records.torn()), (1, None));

    fs::write(&file, format!("{torn}\n{OPERATION}\n")).unwrap();
    let mut records = folder.read_operations("a").unwrap();
    assert!(records.next().unwrap().is_ok());
    let message = records.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("operations.jsonl:2: "), "{message}");
    assert!(records.next().is_none());
}

#[test]
fn a_status_row_replaces_nothing_until_it_is_whole() {
    let (_out, folder) = folder(&["a"]);
    // What a crash in the middle of the write leaves behind.
    fs::create_dir(folder.cell_path("a")).unwrap();
    fs::write(folder.cell_path("a").join(".cell.json.new"), "{\"cell\":").unwrap();
    assert_eq!(folder.status("a").unwrap(), None);
    assert_eq!(folder.unfinished().unwrap().len(), 1);
    run_cell(&folder, "a", &[AUDIT, DONE]);
    let files: Vec<_> = fs::read_dir(folder.cell_path("a")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!files.iter().any(|name| name == ".cell.json.new"), "{files:?}");
}

#[test]
fn resume_runs_what_has_not_ended_and_mixes_nothing() {
    let (_out, folder) = folder(&["ok", "invalid", "error", "stopped", "crashed", "pending"]);
    run_cell(&folder, "ok", &[OPERATION, AUDIT, DONE]);
    run_cell(&folder, "invalid", &[OPERATION, DONE]);
    run_cell(&folder, "error", &[OPERATION, r#"{"type":"error","reason":"no memory"}"#]);
    run_cell(&folder, "stopped", &[OPERATION]);
    let mut crashed = folder.writer("crashed").unwrap();
    crashed.line(OPERATION).unwrap();
    drop(crashed);

    let folder = RunFolder::open(folder.path()).unwrap();
    let unfinished: Vec<&str> = folder.unfinished().unwrap().iter().map(|plan| plan.id.as_str()).collect();
    assert_eq!(unfinished, ["error", "stopped", "crashed", "pending"]);
    for cell in ["ok", "invalid"] {
        let message = folder.writer(cell).unwrap_err().to_string();
        assert_eq!(message, format!("cell {cell} has ended already, as {cell}"));
    }
    for cell in unfinished {
        run_cell(&folder, cell, &[OPERATION, OPERATION, AUDIT, DONE]);
        assert_eq!(folder.read_operations(cell).unwrap().count(), 2, "{cell}");
    }
    let earlier = folder.cell_path("error").join("earlier-1");
    assert_eq!(fs::read_to_string(earlier.join("operations.jsonl")).unwrap(), format!("{OPERATION}\n"));
    assert!(fs::read_to_string(earlier.join("cell.json")).unwrap().contains("no memory"));
    assert!(folder.unfinished().unwrap().is_empty());
}

#[test]
fn a_third_try_keeps_both_earlier_ones() {
    let (_out, folder) = folder(&["a"]);
    for _ in 0..3 {
        run_cell(&folder, "a", &[OPERATION]);
    }
    assert!(folder.cell_path("a").join("earlier-2").join("operations.jsonl").exists());
    assert!(!folder.cell_path("a").join("earlier-3").exists());
}

#[test]
fn worker_lines_that_are_no_records_name_themselves() {
    let (_out, folder) = folder(&["a"]);
    let mut writer = folder.writer("a").unwrap();
    for (line, expected) in [
        ("hello", "expected value"),
        (r#"{"type":"operation","writer":0"#, "EOF"),
        (r#"{"writer":0}"#, "missing field `type`"),
        (r#"{"type":"surprise"}"#, "unknown variant `surprise`"),
        (r#"{"type":"hello"}"#, "missing field"),
        ("{\"type\":\n\"operation\"}", "more than one line"),
    ] {
        let message = writer.line(line).unwrap_err().to_string();
        assert!(message.starts_with("cell a: the worker's line "), "{message}");
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
    let long = format!("x{}", "é".repeat(1_000));
    assert!(writer.line(&long).unwrap_err().to_string().len() < 400);
    writer.flush().unwrap();
    assert_eq!(folder.read_operations("a").unwrap().count(), 0);
}

#[test]
fn bad_folders_and_names_get_one_line_that_names_them() {
    let out = TempDir::new().unwrap();
    let file = out.path().join("file");
    fs::write(&file, "").unwrap();
    let message = RunFolder::create(&file, manifest(&[])).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot create {}: ", file.display())), "{message}");

    let message = RunFolder::open(out.path()).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot read {}", out.path().join("run.json").display())), "{message}");

    RunFolder::create(out.path(), manifest(&[])).unwrap();
    assert!(matches!(RunFolder::create(out.path(), manifest(&[])), Err(RunError::Exists { .. })));
    for id in ["", "..", "a/b", "a b", ".hidden"] {
        assert!(matches!(RunFolder::create(out.path(), manifest(&[id])), Err(RunError::Name { .. })), "{id:?}");
    }
    let folder = RunFolder::open(&out.path().join("run-1")).unwrap();
    assert_eq!(folder.writer("x").unwrap_err().to_string(), "run run-1 has no cell x");
}

#[test]
fn a_newer_schema_is_named_even_if_the_rest_does_not_parse() {
    let (_out, folder) = folder(&[]);
    fs::write(folder.path().join("run.json"), r#"{"schema": 2, "cells": 5}"#).unwrap();
    let message = RunFolder::open(folder.path()).unwrap_err().to_string();
    assert!(message.ends_with("schema 2, of which this version of the tool knows only 1"), "{message}");
}
