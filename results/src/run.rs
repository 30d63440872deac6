//! The run folder: where a run's manifest, its cells' records and their status rows are kept, so that what was measured
//! survives a crash.
//!
//! ```text
//! <out>/<run>/run.json
//! <out>/<run>/cells/<cell>/{operations,requests,attempts,metadata}.jsonl
//! <out>/<run>/cells/<cell>/cell.json
//! ```
//!
//! Records are appended; `run.json` and `cell.json` appear whole or not at all.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::manifest::{CellPlan, CellStatus, Manifest, SCHEMA};
use crate::record::Line;

const RUN_FILE: &str = "run.json";
const CELLS_FOLDER: &str = "cells";
const CELL_FILE: &str = "cell.json";

/// Why a run folder cannot be written or read. Each message is one whole line, the system's reason included.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system refused.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A run of that name is there already.
    #[error("{} exists already: name another run, or resume this one", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// `run.json` or `cell.json` is not what it should be.
    #[error("{}: {reason}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A line of records is not what it should be.
    #[error("{}:{line}: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: serde_json::Error,
    },
    /// A line of a worker is not what it should be.
    #[error("cell {cell}: the worker's line {}: {reason}", shorten(line))]
    WorkerLine {
        /// The cell.
        cell: String,
        /// The line.
        line: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that cannot be a folder on every system.
    #[error("{what} name {name:?}: use letters, digits and any of - _ . = + @ ,, not starting with a dot")]
    Name {
        /// What is named: `run` or `cell`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A cell that the run does not plan.
    #[error("run {run} has no cell {cell}")]
    UnknownCell {
        /// The run.
        run: String,
        /// The cell.
        cell: String,
    },
    /// A cell that ran to its end, and would be written again.
    #[error("cell {cell} has ended already, as {state}")]
    CellEnded {
        /// The cell.
        cell: String,
        /// How it ended.
        state: &'static str,
    },
}

/// A worker's line in an error message: enough of it to recognize, whatever its length.
fn shorten(line: &str) -> String {
    const SHOWN: usize = 120;
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &line[..end]),
        None => format!("{line:?}"),
    }
}

pub(crate) fn io_error<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> RunError + 'a {
    move |reason| RunError::Io { action, path: path.to_owned(), reason }
}

/// A stream of records, each in a file of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// `operations.jsonl`
    Operations,
    /// `requests.jsonl`
    Requests,
    /// `attempts.jsonl`
    Attempts,
    /// `metadata.jsonl`
    Metadata,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Operations, Self::Requests, Self::Attempts, Self::Metadata];

    /// Name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Operations => "operations.jsonl",
            Self::Requests => "requests.jsonl",
            Self::Attempts => "attempts.jsonl",
            Self::Metadata => "metadata.jsonl",
        }
    }
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    manifest: Manifest,
}

impl RunFolder {
    /// Creates `<out_dir>/<run>` with its manifest, and `out_dir` if need be.
    pub fn create(out_dir: &Path, manifest: Manifest) -> Result<Self, RunError> {
        check_name("run", &manifest.run)?;
        for cell in &manifest.cells {
            check_name("cell", &cell.id)?;
        }
        fs::create_dir_all(out_dir).map_err(io_error("create", out_dir))?;
        let path = out_dir.join(&manifest.run);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(RunError::Exists { path }),
            result => result.map_err(io_error("create", &path))?,
        }
        let cells = path.join(CELLS_FOLDER);
        fs::create_dir(&cells).map_err(io_error("create", &cells))?;
        write_document(&path, RUN_FILE, &manifest)?;
        Ok(Self { path, manifest })
    }

    /// Opens a run's folder.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let file = path.join(RUN_FILE);
        let text = fs::read_to_string(&file).map_err(io_error("read", &file))?;
        let fail = |reason| RunError::Document { path: file.clone(), reason };
        // The schema first: a newer manifest may well not parse, and that would hide why.
        let schema = serde_json::from_str::<SchemaOf>(&text).map_err(|error| fail(error.to_string()))?.schema;
        if schema != SCHEMA {
            return Err(fail(format!("schema {schema}, of which this version of the tool knows only {SCHEMA}")));
        }
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        for cell in &manifest.cells {
            check_name("cell", &cell.id)?;
        }
        Ok(Self { path: path.to_owned(), manifest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run set out to do.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Folder of a cell, whether there or not.
    pub fn cell_path(&self, cell: &str) -> PathBuf {
        self.path.join(CELLS_FOLDER).join(cell)
    }

    /// Starts to write a cell. What an earlier, unfinished try left is moved to `earlier-1`, `earlier-2`, … in the
    /// cell's folder: never lost, never mixed with what comes now.
    pub fn writer(&self, cell: &str) -> Result<CellWriter, RunError> {
        self.planned(cell)?;
        if let Some(status) = self.status(cell)?
            && status.state.is_final()
        {
            return Err(RunError::CellEnded { cell: status.cell, state: status.state.as_str() });
        }
        let path = self.cell_path(cell);
        fs::create_dir_all(&path).map_err(io_error("create", &path))?;
        set_aside(&path)?;
        CellWriter::create(path, cell)
    }

    /// Status row of a cell; none while it is pending.
    pub fn status(&self, cell: &str) -> Result<Option<CellStatus>, RunError> {
        self.planned(cell)?;
        let path = self.cell_path(cell).join(CELL_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| RunError::Document { path: path.clone(), reason: error.to_string() })
    }

    /// Every planned cell with its status row, in the order of the plan.
    pub fn statuses(&self) -> Result<Vec<(&CellPlan, Option<CellStatus>)>, RunError> {
        self.manifest.cells.iter().map(|plan| Ok((plan, self.status(&plan.id)?))).collect()
    }

    /// The cells that `resume` runs: pending, interrupted, or ended by an error.
    pub fn unfinished(&self) -> Result<Vec<&CellPlan>, RunError> {
        let statuses = self.statuses()?;
        let open = |status: &Option<CellStatus>| !status.as_ref().is_some_and(|status| status.state.is_final());
        Ok(statuses.into_iter().filter(|(_, status)| open(status)).map(|(plan, _)| plan).collect())
    }

    pub(crate) fn planned(&self, cell: &str) -> Result<&CellPlan, RunError> {
        let unknown = || RunError::UnknownCell { run: self.manifest.run.clone(), cell: cell.to_owned() };
        self.manifest.cell(cell).ok_or_else(unknown)
    }
}

#[derive(Deserialize)]
struct SchemaOf {
    schema: u32,
}

fn check_name(what: &'static str, name: &str) -> Result<(), RunError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.=+@,".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
        return Err(RunError::Name { what, name: name.to_owned() });
    }
    Ok(())
}

/// Moves every file of a cell's folder into the first free `earlier-N`.
fn set_aside(path: &Path) -> Result<(), RunError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io_error("read", path))? {
        let entry = entry.map_err(io_error("read", path))?.path();
        if entry.is_file() {
            files.push(entry);
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    let mut number = 1;
    let aside = loop {
        let aside = path.join(format!("earlier-{number}"));
        match fs::create_dir(&aside) {
            Ok(()) => break aside,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(io_error("create", &aside)(error)),
        }
    };
    for file in files {
        if let Some(name) = file.file_name() {
            fs::rename(&file, aside.join(name)).map_err(io_error("move", &file))?;
        }
    }
    Ok(())
}

/// Writes a JSON document so that a reader, or a crash, sees the whole of it or nothing.
fn write_document(folder: &Path, name: &str, document: &impl Serialize) -> Result<(), RunError> {
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.new"));
    let text = serde_json::to_vec_pretty(document)
        .map_err(|error| RunError::Document { path: path.clone(), reason: error.to_string() })?;
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(&text)?;
        file.write_all(b"\n")?;
        // Without it, a power cut after the rename may leave the name with no content.
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().map_err(io_error("write", &path))
}

/// Writes the records of one cell, as its worker sends them.
#[derive(Debug)]
pub struct CellWriter {
    path: PathBuf,
    cell: String,
    files: [BufWriter<File>; 4],
}

/// The tag of a worker's line. The rest is checked to be JSON, and kept as it is.
#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

impl CellWriter {
    fn create(path: PathBuf, cell: &str) -> Result<Self, RunError> {
        let open = |stream: Stream| {
            let file = path.join(stream.file_name());
            // `create_new`: a second process resuming the same run fails here instead of interleaving its lines.
            let opened = OpenOptions::new().append(true).create_new(true).open(&file);
            opened.map(BufWriter::new).map_err(io_error("create", &file))
        };
        let [operations, requests, attempts, metadata] = Stream::ALL.map(open);
        let files = [operations?, requests?, attempts?, metadata?];
        Ok(Self { path, cell: cell.to_owned(), files })
    }

    /// Takes one line of the worker. A record goes to its file, byte for byte; a line that speaks of the cell as a
    /// whole (`hello`, `audit`, `done`, `error`) is returned, for [`CellStatus::absorb`].
    pub fn line(&mut self, raw: &str) -> Result<Option<Line>, RunError> {
        let raw = raw.trim_end_matches(['\r', '\n']);
        let fail = |reason: String| RunError::WorkerLine { cell: self.cell.clone(), line: raw.to_owned(), reason };
        if raw.contains('\n') {
            return Err(fail("more than one line".to_owned()));
        }
        let tag: Tag<'_> = serde_json::from_str(raw).map_err(|error| fail(error.to_string()))?;
        let stream = match tag.kind.as_ref() {
            "operation" => Stream::Operations,
            "request" => Stream::Requests,
            "attempt" => Stream::Attempts,
            "metadata" => Stream::Metadata,
            _ => return serde_json::from_str(raw).map(Some).map_err(|error| fail(error.to_string())),
        };
        let file = &mut self.files[stream as usize];
        let written = file.write_all(raw.as_bytes()).and_then(|()| file.write_all(b"\n"));
        written.map_err(io_error("write", &self.path.join(stream.file_name())))?;
        Ok(None)
    }

    /// Hands what was taken so far to the system, so that a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<(), RunError> {
        for (file, stream) in self.files.iter_mut().zip(Stream::ALL) {
            file.flush().map_err(io_error("write", &self.path.join(stream.file_name())))?;
        }
        Ok(())
    }

    /// Ends the cell: brings the records to the disk, then writes the status row, which therefore never speaks of
    /// records that are not there.
    pub fn finish(mut self, status: &CellStatus) -> Result<(), RunError> {
        self.flush()?;
        for (file, stream) in self.files.iter().zip(Stream::ALL) {
            file.get_ref().sync_all().map_err(io_error("write", &self.path.join(stream.file_name())))?;
        }
        write_document(&self.path, CELL_FILE, status)
    }
}

#[cfg(test)]
pub(crate) mod tests;
