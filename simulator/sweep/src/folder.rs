//! Where does a sweep keep its rows? A folder of part files while it runs, one file when it is done.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::file::{FileReader, FileWriter, RowRead};
use crate::grid::GridSpec;
use crate::merge::{Merged, merge};
use crate::row::KEY;

/// What a sweep set out to do: `sweep.toml`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the tool.
    pub tool_version: String,
    /// Command line that made it.
    pub command: Vec<String>,
    /// The part of the grid that this folder is for.
    pub shard: Shard,
    /// The grid.
    pub grid: GridSpec,
}

/// One of several parts of a grid.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Shard {
    /// Which, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Whether a cell belongs to it. A hash decides, so that no axis of the grid falls to one shard.
    pub fn has(self, cell: u64) -> bool {
        xxhash_rust::xxh3::xxh3_64(&cell.to_le_bytes()) % u64::from(self.of.max(1)) == u64::from(self.index)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("shard is {text:?}; allowed: I/N with I from 0 to N-1, as in 0/8");
        let (index, of) = text.split_once('/').ok_or_else(refuse)?;
        let shard = Self { index: index.parse().map_err(|_| refuse())?, of: of.parse().map_err(|_| refuse())? };
        if shard.index < shard.of { Ok(shard) } else { Err(refuse()) }
    }
}

/// The folder of a sweep.
#[derive(Clone, Debug)]
pub struct SweepFolder {
    path: PathBuf,
    manifest: Manifest,
}

impl SweepFolder {
    /// Name of the file that holds all rows.
    pub const ROWS: &'static str = "rows.parquet";

    /// Makes the folder of a new sweep.
    ///
    /// # Errors
    /// If there is one of the name already, or it cannot be made.
    pub fn create(path: &Path, manifest: Manifest) -> Result<Self, SweepError> {
        if path.join("sweep.toml").exists() {
            let message = format!("{} holds a sweep already: choose another --name, or --resume it", path.display());
            return Err(SweepError::Rows(message));
        }
        std::fs::create_dir_all(path).map_err(|error| SweepError::io("create", path, error))?;
        let file = path.join("sweep.toml");
        let text =
            toml::to_string(&manifest).map_err(|error| SweepError::io("write", &file, std::io::Error::other(error)))?;
        let unfinished = path.join("sweep.toml.unfinished");
        std::fs::write(&unfinished, text).map_err(|error| SweepError::io("write", &unfinished, error))?;
        std::fs::rename(&unfinished, &file).map_err(|error| SweepError::io("write", &file, error))?;
        Ok(Self { path: path.to_owned(), manifest })
    }

    /// Opens the folder of a sweep.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let file = path.join("sweep.toml");
        let text = std::fs::read_to_string(&file).map_err(|error| SweepError::io("read", &file, error))?;
        let manifest = toml::from_str(&text)
            .map_err(|error| SweepError::grid(&file.display().to_string(), error.message().replace('\n', "; ")))?;
        Ok(Self { path: path.to_owned(), manifest })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the sweep set out to do.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The file of all rows, once the sweep is done.
    pub fn rows(&self) -> PathBuf {
        self.path.join(Self::ROWS)
    }

    /// The folder of the files that hold a row for each transaction, one for each cell and seed.
    pub fn transactions(&self) -> PathBuf {
        self.path.join("transactions")
    }

    /// Files with rows: the one of all, and parts that are not in it yet.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, SweepError> {
        let mut files: Vec<PathBuf> = Some(self.rows()).filter(|path| path.exists()).into_iter().collect();
        files.extend(self.parts()?);
        Ok(files)
    }

    /// Cells and seeds that have a row.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn done(&self) -> Result<HashSet<(u64, u64)>, SweepError> {
        let mut done = HashSet::new();
        for path in self.files()? {
            for row in FileReader::open(&path, Some(&|name| KEY.contains(&name)))? {
                done.insert(row?.key());
            }
        }
        Ok(done)
    }

    /// Keeps rows as one more part. They are safe once this returns.
    ///
    /// # Errors
    /// If the part cannot be written.
    pub(crate) fn keep(&self, mut rows: Vec<RowRead>) -> Result<(), SweepError> {
        rows.sort_by_key(RowRead::key);
        let next = self.parts()?.last().and_then(|path| number(path)).map_or(0, |last| last + 1);
        let folder = self.path.join("parts");
        std::fs::create_dir_all(&folder).map_err(|error| SweepError::io("create", &folder, error))?;
        let mut writer = FileWriter::new(&folder.join(format!("{next:06}.parquet")), &self.manifest.grid)?;
        rows.into_iter().try_for_each(|row| writer.push(row))?;
        writer.finish()
    }

    /// Puts all rows into one file, and removes the parts.
    ///
    /// # Errors
    /// If a file cannot be read or written. The parts are then still there.
    pub fn finish(&self) -> Result<Merged, SweepError> {
        let parts = self.parts()?;
        let merged = merge(&self.files()?, &self.rows())?;
        for part in parts {
            std::fs::remove_file(&part).map_err(|error| SweepError::io("remove", &part, error))?;
        }
        // What a crash left unfinished keeps the folder.
        let _ = std::fs::remove_dir(self.path.join("parts"));
        Ok(merged)
    }

    fn parts(&self) -> Result<Vec<PathBuf>, SweepError> {
        let folder = self.path.join("parts");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SweepError::io("read", &folder, error)),
        };
        let mut parts = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| SweepError::io("read", &folder, error))?.path();
            // What a crash left unfinished has another ending.
            if path.extension().is_some_and(|ending| ending == "parquet") && number(&path).is_some() {
                parts.push(path);
            }
        }
        parts.sort_by_key(|path| number(path));
        Ok(parts)
    }
}

fn number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// The files with rows that some paths name: files, folders of sweeps, and patterns with `*`.
///
/// # Errors
/// If one names nothing.
pub fn row_files(named: &[String]) -> Result<Vec<PathBuf>, SweepError> {
    let mut files = Vec::new();
    for name in named {
        let path = Path::new(name);
        let matched: Vec<PathBuf> = if path.exists() {
            vec![path.to_owned()]
        } else {
            let paths = glob::glob(name).map_err(|error| SweepError::Rows(format!("{name}: {error}")))?;
            paths.filter_map(Result::ok).collect()
        };
        if matched.is_empty() {
            return Err(SweepError::Rows(format!("{name} names no file and no folder of a sweep")));
        }
        for path in matched {
            match path.is_dir() {
                true => files.extend(SweepFolder::open(&path)?.files()?),
                false => files.push(path),
            }
        }
    }
    Ok(files)
}
