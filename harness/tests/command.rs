//! The command line, end to end: what is refused and how, what is kept, and exit statuses.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod common;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use common::{changed_profile, code, command, formats, lakemark, only_cell, scratch, stderr, stdout};
use lakemark_results::manifest::CellState;
use lakemark_results::run::RunFolder;

/// Asserts that the command is refused as misused, in one line that holds all of some words.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = lakemark(arguments);
    assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
    assert!(stdout(&output).is_empty(), "{arguments:?} printed data");
    let message = stderr(&output);
    let first = message.lines().next().unwrap_or_default();
    for word in words {
        assert!(first.contains(word), "{arguments:?}: {first:?} does not say {word:?}");
    }
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    let out = scratch();
    let format = formats()[0];
    refused(&["run", "--formats", "hudi"], &["hudi", format]);
    refused(&["run", "--stores", "s4"], &["s4", "s3-express"]);
    refused(&["run", "--appends", "-5"], &["appends", "-5", "whole number"]);
    refused(&["run", "--appends", "many"], &["appends", "many"]);
    refused(&["run", "--scenario", "commits"], &["commits", "sequential-commit"]);
    refused(&["run", "--param", "files"], &["files", "NAME=VALUE"]);
    refused(&["run", "--set", "lance=1"], &["lance=1", "FORMAT.NAME=VALUE"]);
    refused(&["run", "--formats", format, "--set", &format!("{format}.colour=red")], &["colour", "has no setting"]);
    refused(&["run", "--cpu", "scale=-1"], &["scale=-1"]);
    refused(&["run", "--clock", "fast"], &["fast"]);
    refused(&["run", "--stores", "s3://bucket/prefix"], &["s3://bucket/prefix"]);
    refused(&["run", "nothing"], &["nothing", "lance-2026"]);
    refused(&["run", "nothing.toml"], &["nothing.toml"]);
    refused(&["reproduce", "lance-2027"], &["lance-2027", "lance-2026"]);
    refused(&["reproduce", "lance-2026", "--stores", "gcs"], &["gcs", "s3-express"]);
    refused(&["reproduce", "lance-2026", "--scenario", "reads"], &["reads", "sequential-commit"]);
    refused(&["trace", "hudi"], &["hudi"]);
    refused(&["trace", format, "--at", "0"], &["0"]);

    let profile = changed_profile(out.path(), "s3", "sigma = 0.62", "sigma = -0.62");
    refused(&["run", "--stores", profile.to_str().unwrap()], &["changed.toml", "sigma", "-0.62"]);
    let definition = out.path().join("grid.toml");
    std::fs::write(&definition, "name = \"x\"\ntitel = 1\n").unwrap();
    refused(&["run", definition.to_str().unwrap()], &["grid.toml:2", "titel"]);
}

#[cfg(feature = "iceberg")]
#[test]
fn a_catalog_that_is_none_is_refused_without_its_password() {
    refused(&["run", "--formats", "iceberg", "--catalog", "localhost/db"], &["catalog", "postgres://"]);
    let output = lakemark(&["run", "--formats", "iceberg", "--catalog", "oracle://me:sesame@localhost/db"]);
    assert_eq!(code(&output), 2);
    assert!(!stderr(&output).contains("sesame"), "{}", stderr(&output));
}

#[test]
fn an_unwritable_folder_is_named() {
    let out = scratch();
    let file = out.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = file.join("runs");
    let output = lakemark(&["run", "--appends", "1", "--formats", formats()[0], "--out", inside.to_str().unwrap()]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains(inside.to_str().unwrap()), "{}", stderr(&output));
}

#[test]
fn a_dry_run_shows_the_cells_and_runs_none() {
    let out = scratch();
    let folder = out.path().join("runs");
    let output =
        lakemark(&["reproduce", "lance-2026", "--dry-run", "--format", "json", "--out", folder.to_str().unwrap()]);
    assert_eq!(code(&output), 0);
    let rows: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let text = rows.to_string();
    for format in formats() {
        assert!(text.contains(&format!("\"{format}\"")), "{text}");
    }
    assert!(!folder.exists());
}

#[test]
fn data_goes_to_standard_output_in_the_form_asked_for() {
    let out = scratch();
    let base = ["reproduce", "lance-2026", "--scenario", "sequential-commit", "--appends", "3", "--stores", "s3"];
    let base = [&base[..], &["--formats", formats()[0], "--out"]].concat();
    for form in ["json", "csv", "text"] {
        let folder = out.path().join(form);
        let arguments = [&base[..], &[folder.to_str().unwrap(), "--format", form]].concat();
        let output = lakemark(&arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let data = stdout(&output);
        let metric = if form == "text" { "commit mean" } else { "commit_latency_mean" };
        assert!(data.contains(metric), "{data}");
        match form {
            "json" => _ = serde_json::from_str::<serde_json::Value>(&data).expect("one JSON document"),
            "csv" => assert!(data.lines().next().is_some_and(|header| header.contains("published")), "{data}"),
            _ => assert!(data.contains("emulated"), "{data}"),
        }
        // No progress where nobody watches.
        assert!(!stderr(&output).contains('\u{1b}'), "{:?}", stderr(&output));
    }
}

#[test]
fn a_trace_shows_each_request() {
    for format in formats() {
        for operation in ["commit", "load"] {
            let output = lakemark(&["trace", format, "--at", "5", "--operation", operation, "--format", "json"]);
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            let rows: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
            let rows = rows.as_array().expect("rows");
            assert!(!rows.is_empty(), "{format} {operation}");
            assert!(rows.iter().all(|row| row["length_ms"].as_f64().is_some_and(|ms| ms > 0.0)), "{rows:?}");
        }
    }
}

#[test]
fn what_there_is_is_listed() {
    let output = lakemark(&["list"]);
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    for word in formats().into_iter().chain(["s3-express", "sequential-commit", "postgres", "lance-2026"]) {
        assert!(text.contains(word), "{text}");
    }
}

fn status(folder: &RunFolder) -> lakemark_results::manifest::CellStatus {
    folder.status(&only_cell(folder)).expect("a status").expect("a cell that ended")
}

/// A program that stands for a worker.
#[cfg(unix)]
fn script(folder: &Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("worker.sh");
    let mut file = std::fs::File::create(&path).unwrap();
    write!(file, "#!/bin/sh\n{text}\n").unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn a_worker_that_crashes_is_an_error_row_and_can_be_resumed() {
    let out = scratch();
    let format = formats()[0];
    let worker = script(out.path(), "echo 'out of luck' >&2; exit 7");
    let base = ["run", "--appends", "2", "--formats", format, "--name", "crash", "--out", out.path().to_str().unwrap()];
    let output = lakemark(&[&base[..], &["--worker", &format!("{format}={worker}")]].concat());
    assert_eq!(code(&output), 1);
    let folder = RunFolder::open(&out.path().join("crash")).unwrap();
    let status = status(&folder);
    assert_eq!(status.state, CellState::Error);
    let reason = status.reason.expect("a reason");
    assert!(reason.contains("out of luck") && reason.contains('7'), "{reason}");
}

#[cfg(unix)]
#[test]
fn a_worker_built_elsewhere_takes_part() {
    let out = scratch();
    let format = formats()[0];
    // The built-in worker behind a script: another program, as far as the driver can tell.
    let worker = script(out.path(), &format!("exec {} worker", env!("CARGO_BIN_EXE_lakemark")));
    let base = ["run", "--appends", "3", "--formats", format, "--name", "other", "--out", out.path().to_str().unwrap()];
    let output = lakemark(&[&base[..], &["--worker", &format!("{format}={worker}")]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let folder = RunFolder::open(&out.path().join("other")).unwrap();
    assert_eq!(folder.manifest().cells[0].worker.as_deref(), Some(worker.as_str()));
}

#[cfg(unix)]
#[test]
fn a_cell_that_fails_its_audit_is_invalid() {
    let out = scratch();
    let format = formats()[0];
    let audit = r#"{"type":"audit","checks":[{"name":"every acknowledged file is active exactly once","passed":false,"detail":"1 lost"}]}"#;
    let done = r#"{"type":"done","real_s":1,"process_s":1,"cpu_s":1,"clock_cpu_s":0,"store_cpu_s":0,"peak_memory_bytes":1,"store_logical_bytes":1,"store_held_bytes":1}"#;
    let worker = script(out.path(), &format!("read order\necho '{audit}'\necho '{done}'"));
    let base = ["run", "--appends", "2", "--formats", format, "--name", "bad", "--out", out.path().to_str().unwrap()];
    let output = lakemark(&[&base[..], &["--worker", &format!("{format}={worker}")]].concat());
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stdout(&output).contains("invalid"), "{}", stdout(&output));
}

#[cfg(unix)]
#[test]
fn a_signal_keeps_what_was_measured_and_resume_goes_on() {
    let out = scratch();
    let format = formats()[0];
    let path = out.path().to_str().unwrap();
    let mut running = command(&[
        "run",
        "--appends",
        "100000",
        "--formats",
        format,
        "--stores",
        "instant,s3",
        "--jobs",
        "1",
        "--name",
        "stopped",
        "--out",
        path,
    ])
    .stderr(std::process::Stdio::piped())
    .stdout(std::process::Stdio::piped())
    .spawn()
    .expect("the command starts");
    let folder = out.path().join("stopped");
    let records = folder.join("cells").join(format!("{format}-instant-sequential-commit")).join("operations.jsonl");
    let records = if records.parent().is_some_and(Path::exists) { records } else { first_records(&folder) };
    for _ in 0..600 {
        if std::fs::metadata(&records).is_ok_and(|file| file.len() > 2_000) {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let id = running.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill starts");
    assert!(killed.success());
    assert_eq!(running.wait().expect("the command ends").code(), Some(130));

    let folder = RunFolder::open(&folder).unwrap();
    let first = folder.manifest().cells[0].id.clone();
    let status = folder.status(&first).unwrap().expect("the first cell has a status");
    assert_eq!(status.state, CellState::Interrupted);
    let kept = folder.read_operations(&first).unwrap().filter(Result::is_ok).count();
    assert!(kept > 3, "{kept} operations kept");
    assert_eq!(folder.unfinished().unwrap().len(), 2);
    let output = lakemark(&["resume", folder.path().to_str().unwrap(), "--dry-run"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains(&first));
}

/// The records of the first cell, once there is one.
#[cfg(unix)]
fn first_records(folder: &Path) -> std::path::PathBuf {
    for _ in 0..600 {
        if let Ok(mut cells) = std::fs::read_dir(folder.join("cells"))
            && let Some(Ok(cell)) = cells.next()
        {
            return cell.path().join("operations.jsonl");
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    panic!("no cell started in {}", folder.display());
}

#[cfg(unix)]
#[test]
fn resume_runs_the_cells_that_have_not_ended() {
    let out = scratch();
    let format = formats()[0];
    let path = out.path().to_str().unwrap();
    let marker = out.path().join("second-time");
    // Fails the first time, then does what the built-in worker does.
    let worker = script(
        out.path(),
        &format!("[ -e {0} ] && exec {1} worker\ntouch {0}; exit 1", marker.display(), env!("CARGO_BIN_EXE_lakemark")),
    );
    let base = ["run", "--appends", "4", "--formats", format, "--name", "again", "--out", path];
    assert_eq!(code(&lakemark(&[&base[..], &["--worker", &format!("{format}={worker}")]].concat())), 1);
    let folder = out.path().join("again");
    let output = lakemark(&["resume", folder.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}\n{}", stdout(&output), stderr(&output));
    let folder = RunFolder::open(&folder).unwrap();
    assert_eq!(status(&folder).state, CellState::Ok);
    assert!(folder.unfinished().unwrap().is_empty());
}
