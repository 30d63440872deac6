//! Data files as scenarios describe them: the same for every format, and never written.

use std::collections::BTreeMap;

use lakemark_core::table::DataFile;
use serde_json::Value;

use crate::parameters::{self, Kind, Parameter};

/// Files that an append adds.
pub(crate) const FILES: Parameter = Parameter {
    name: "files",
    default: "1",
    kind: Kind::Count { min: 1, max: 100_000 },
    help: "data files that each append adds",
};

/// Rows of a file.
pub(crate) const ROWS: Parameter = Parameter {
    name: "rows",
    default: "1000",
    kind: Kind::Count { min: 1, max: 1 << 40 },
    help: "rows that each data file is said to hold",
};

/// Size of a file.
pub(crate) const FILE_BYTES: Parameter = Parameter {
    name: "file-bytes",
    default: "8192",
    kind: Kind::Count { min: 1, max: 1 << 50 },
    help: "size in bytes that each data file is said to have",
};

/// Describes data files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileMaker {
    files: u64,
    rows: u64,
    size_bytes: u64,
}

impl FileMaker {
    /// From the parameters above.
    pub(crate) fn new(parameters: &BTreeMap<String, Value>) -> Self {
        Self {
            files: parameters::count(parameters, FILES.name),
            rows: parameters::count(parameters, ROWS.name),
            size_bytes: parameters::count(parameters, FILE_BYTES.name),
        }
    }

    /// Files of one append.
    pub(crate) fn per_append(&self) -> u64 {
        self.files
    }

    /// The files of the nth append of a table with one writer, from 1.
    pub(crate) fn of_append(&self, append: u64) -> Vec<DataFile> {
        self.numbered((append - 1) * self.files)
    }

    /// The files of one append, from a number on. A number must be below 2^48, and used once in a table.
    pub(crate) fn numbered(&self, first: u64) -> Vec<DataFile> {
        (first..first + self.files)
            .map(|number| {
                let first_row = number.saturating_mul(self.rows);
                let last_row = first_row.saturating_add(self.rows - 1);
                DataFile {
                    path: path(number),
                    size_bytes: self.size_bytes,
                    rows: self.rows,
                    bounds: Some((to_value(first_row), to_value(last_row))),
                }
            })
            .collect()
    }
}

/// The file of some number that holds what others held.
pub(crate) fn compacted(number: u64, files: &[DataFile]) -> DataFile {
    let bounds = files.iter().filter_map(|file| file.bounds);
    let lowest = bounds.clone().map(|(low, _)| low).min();
    DataFile {
        path: path(number),
        size_bytes: files.iter().map(|file| file.size_bytes).fold(0, u64::saturating_add),
        rows: files.iter().map(|file| file.rows).fold(0, u64::saturating_add),
        bounds: lowest.zip(bounds.map(|(_, high)| high).max()),
    }
}

/// As long as a name with a UUID in it, as real writers give: 36 characters and the extension.
fn path(number: u64) -> String {
    format!("data/{:08x}-0000-4000-8000-{number:012x}.parquet", scramble(number))
}

/// Spreads numbers over 32 bits, so that names share no long prefix, as those with random numbers do not.
fn scramble(number: u64) -> u32 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn to_value(row: u64) -> i64 {
    i64::try_from(row).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compacted_file_holds_what_the_others_held() {
        let files = FileMaker { files: 3, rows: 10, size_bytes: 5 }.numbered(7);
        assert_eq!(files[0].bounds, Some((70, 79)));
        let one = compacted(99, &files);
        assert_eq!((one.rows, one.size_bytes, one.bounds), (30, 15, Some((70, 99))));
        assert!(files.iter().all(|file| file.path.len() == one.path.len() && file.path != one.path));
    }
}
