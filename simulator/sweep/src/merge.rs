//! How do sorted files become one sorted file, in little memory?

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::error::SweepError;
use crate::file::{FileReader, FileWriter, RowRead};
use crate::grid::GridSpec;

/// Files that are merged at a time.
const FILES_MAX: usize = 64;

/// What a merge found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Merged {
    /// Rows written.
    pub rows: u64,
    /// Rows that more than one file held, alike.
    pub repeated: u64,
}

/// Merges files, each sorted by cell and seed, into one that is sorted so; a row that several hold is kept once.
/// Whatever files the rows came in, the bytes written are the same.
///
/// # Errors
/// If a file is not of a sweep, they are of different grids, or two hold different rows for one cell and seed.
pub fn merge(parts: &[PathBuf], out: &Path) -> Result<Merged, SweepError> {
    merge_by(parts, out, FILES_MAX)
}

fn merge_by(parts: &[PathBuf], out: &Path, files_max: usize) -> Result<Merged, SweepError> {
    let Some(first) = parts.first() else { return Err(SweepError::Rows("there are no rows to merge".to_owned())) };
    let grid = FileReader::open(first, Some(&|_| false))?.grid().clone();
    let mut level = 0;
    let mut parts = parts.to_vec();
    let mut made: Vec<PathBuf> = Vec::new();
    let mut repeated = 0;
    while parts.len() > files_max {
        let mut merged = Vec::new();
        for (place, group) in parts.chunks(files_max).enumerate() {
            let path = out.with_extension(format!("merged-{level}-{place}"));
            repeated += merge_few(group, &path, &grid)?.repeated;
            merged.push(path);
        }
        remove(&made)?;
        made.clone_from(&merged);
        parts = merged;
        level += 1;
    }
    let mut merged = merge_few(&parts, out, &grid)?;
    merged.repeated += repeated;
    remove(&made)?;
    Ok(merged)
}

fn remove(paths: &[PathBuf]) -> Result<(), SweepError> {
    paths.iter().try_for_each(|path| std::fs::remove_file(path).map_err(|error| SweepError::io("remove", path, error)))
}

fn merge_few(parts: &[PathBuf], out: &Path, grid: &GridSpec) -> Result<Merged, SweepError> {
    let mut readers = Vec::with_capacity(parts.len());
    let mut heads: Vec<Option<RowRead>> = Vec::with_capacity(parts.len());
    let mut queue = BinaryHeap::with_capacity(parts.len());
    for (place, path) in parts.iter().enumerate() {
        let mut reader = FileReader::open(path, None)?;
        if reader.grid() != grid {
            let message = format!("{} is of another grid than {}", path.display(), parts[0].display());
            return Err(SweepError::Rows(message));
        }
        let head = reader.next().transpose()?;
        queue.extend(head.as_ref().map(|row| Reverse((row.key(), place))));
        heads.push(head);
        readers.push(reader);
    }
    let mut writer = FileWriter::new(out, grid)?;
    let mut merged = Merged::default();
    let mut last: Option<RowRead> = None;
    while let Some(Reverse((key, place))) = queue.pop() {
        let next = readers[place].next().transpose()?;
        if let Some(next) = &next {
            if next.key() < key {
                return Err(SweepError::Rows(format!("{} is not sorted by cell and seed", parts[place].display())));
            }
            queue.push(Reverse((next.key(), place)));
        }
        let Some(row) = std::mem::replace(&mut heads[place], next) else { continue };
        match &last {
            Some(before) if before.key() == key && before.values() == row.values() => merged.repeated += 1,
            Some(before) if before.key() == key => {
                let message = format!(
                    "cell {} with seed {} has two different rows, one in {}: they are of different versions",
                    key.0,
                    key.1,
                    parts[place].display()
                );
                return Err(SweepError::Rows(message));
            }
            _ => {
                merged.rows += 1;
                writer.push(row.clone())?;
                last = Some(row);
            }
        }
    }
    writer.finish()?;
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Field, Scalar};

    #[test]
    fn more_files_than_can_be_open_merge_in_levels() {
        let scratch = tempfile::tempdir().unwrap();
        let grid = GridSpec::new("parts");
        let row = |cell: u64| {
            let field = |name: &str| Field { name: name.to_owned(), value: Scalar::Count(Some(cell)) };
            RowRead::new(vec![field("cell"), field("seed")])
        };
        let parts: Vec<PathBuf> = (0..11)
            .map(|part| {
                let path = scratch.path().join(format!("{part}.parquet"));
                let mut writer = FileWriter::new(&path, &grid).unwrap();
                // Each row is in two files.
                (0..110).filter(|cell| [part, (part + 1) % 11].contains(&(cell % 11))).for_each(|cell| {
                    writer.push(row(cell)).unwrap();
                });
                writer.finish().unwrap();
                path
            })
            .collect();
        let (levels, once) = (scratch.path().join("levels.parquet"), scratch.path().join("once.parquet"));
        let expected = Merged { rows: 110, repeated: 110 };
        assert_eq!(merge_by(&parts, &levels, 2).unwrap(), expected);
        assert_eq!(merge_by(&parts, &once, 64).unwrap(), expected);
        assert_eq!(std::fs::read(&levels).unwrap(), std::fs::read(&once).unwrap());
        let keys = FileReader::open(&levels, None).unwrap().map(|row| row.unwrap().key());
        assert!(keys.eq((0..110).map(|cell| (cell, cell))));
        // Nothing in between is left.
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 13);
    }
}
