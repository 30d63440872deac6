//! Which data files an append describes: the same for every format.

use std::collections::BTreeMap;

use lakemark_core::table::DataFile;
use serde_json::Value;

use crate::parameters::{self, Kind, Parameter};

/// Parameter `files`.
pub(crate) const FILES: Parameter = Parameter {
    name: "files",
    default: "1",
    kind: Kind::Count { min: 1, max: 100_000 },
    help: "data files that each append adds",
};

/// Parameter `rows`.
pub(crate) const ROWS: Parameter = Parameter {
    name: "rows",
    default: "1000",
    kind: Kind::Count { min: 1, max: 1 << 40 },
    help: "rows that each data file is said to hold",
};

/// Parameter `file-bytes`.
pub(crate) const FILE_BYTES: Parameter = Parameter {
    name: "file-bytes",
    default: "8192",
    kind: Kind::Count { min: 1, max: 1 << 50 },
    help: "size in bytes that each data file is said to have",
};

/// Describes the data files of appends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileMaker {
    files: u64,
    rows: u64,
    size_bytes: u64,
}

impl FileMaker {
    pub(crate) fn new(parameters: &BTreeMap<String, Value>) -> Self {
        Self {
            files: parameters::count(parameters, FILES.name),
            rows: parameters::count(parameters, ROWS.name),
            size_bytes: parameters::count(parameters, FILE_BYTES.name),
        }
    }

    /// Files of each append.
    pub(crate) fn per_append(&self) -> u64 {
        self.files
    }

    /// The files of an append, counted from 1.
    pub(crate) fn of_append(&self, append: u64) -> Vec<DataFile> {
        (0..self.files)
            .map(|file| {
                let number = (append - 1) * self.files + file;
                let first_row = number * self.rows;
                DataFile {
                    // As long as a name with a UUID in it, as real writers give: 36 characters and the extension.
                    path: format!("data/{:08x}-0000-4000-8000-{number:012x}.parquet", scramble(number)),
                    size_bytes: self.size_bytes,
                    rows: self.rows,
                    bounds: Some((to_value(first_row), to_value(first_row + self.rows - 1))),
                }
            })
            .collect()
    }
}

/// Spreads numbers over 32 bits, so that names share no long prefix, as those with random numbers do not.
fn scramble(number: u64) -> u32 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn to_value(row: u64) -> i64 {
    i64::try_from(row).unwrap_or(i64::MAX)
}
