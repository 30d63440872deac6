//! Running the command, and reading what it left.

// Each test binary uses a part of this.
#![allow(dead_code, clippy::expect_used, clippy::unwrap_used, unreachable_pub, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lakemark_results::record::{Operation, OperationKind, Request};
use lakemark_results::run::RunFolder;

/// A folder for the runs of one test.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The command with some arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakemark"));
    command.args(arguments);
    command
}

/// Runs the command to its end.
pub fn lakemark(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().expect("the command was not killed")
}

/// Formats of this build.
pub fn formats() -> Vec<&'static str> {
    [
        cfg!(feature = "lance").then_some("lance"),
        cfg!(feature = "delta").then_some("delta"),
        cfg!(feature = "iceberg").then_some("iceberg"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs cells under a name into a folder; fails the test unless every cell is verified.
pub fn run(out: &Path, name: &str, arguments: &[&str]) -> RunFolder {
    let folder = out.to_str().expect("a readable path");
    let mut all = vec!["run", "--out", folder, "--name", name];
    all.extend(arguments);
    let output = lakemark(&all);
    assert_eq!(code(&output), 0, "{}\n{}", stdout(&output), stderr(&output));
    RunFolder::open(&out.join(name)).expect("a run folder")
}

/// The only cell of a run.
pub fn only_cell(folder: &RunFolder) -> String {
    assert_eq!(folder.manifest().cells.len(), 1);
    folder.manifest().cells[0].id.clone()
}

pub fn operations(folder: &RunFolder, cell: &str, kind: OperationKind) -> Vec<Operation> {
    let all = folder.read_operations(cell).expect("operations");
    all.map(|operation| operation.expect("an operation")).filter(|operation| operation.kind == kind).collect()
}

pub fn requests(folder: &RunFolder, cell: &str) -> Vec<Request> {
    folder.read_requests(cell).expect("requests").map(|request| request.expect("a request")).collect()
}

/// A profile file like a built-in one, with some text replaced.
pub fn changed_profile(folder: &Path, name: &str, from: &str, to: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stores/profiles").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(source).expect("a built-in profile");
    assert!(text.contains(from), "the profile {name} has no {from:?}");
    let path = folder.join("changed.toml");
    std::fs::write(&path, text.replacen(from, to, 1)).expect("a written profile");
    path
}
