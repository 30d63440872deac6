//! Reading a cell's records back, one at a time, with the line number of anything that does not parse.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::record::{Attempt, MetadataSample, Operation, Request};
use crate::run::{RunError, RunFolder, Stream, io_error};

impl RunFolder {
    /// The operations of a cell, in the order in which they ended.
    pub fn read_operations(&self, cell: &str) -> Result<Records<Operation>, RunError> {
        self.read(cell, Stream::Operations)
    }

    /// The requests of a cell.
    pub fn read_requests(&self, cell: &str) -> Result<Records<Request>, RunError> {
        self.read(cell, Stream::Requests)
    }

    /// The attempts of a cell.
    pub fn read_attempts(&self, cell: &str) -> Result<Records<Attempt>, RunError> {
        self.read(cell, Stream::Attempts)
    }

    /// The metadata samples of a cell.
    pub fn read_metadata(&self, cell: &str) -> Result<Records<MetadataSample>, RunError> {
        self.read(cell, Stream::Metadata)
    }

    fn read<T>(&self, cell: &str, stream: Stream) -> Result<Records<T>, RunError> {
        self.planned(cell)?;
        Records::open(&self.cell_path(cell).join(stream.file_name()))
    }
}

/// The records of one file.
///
/// A last line that a crash tore apart (it does not parse and has no line feed) ends the records without an error;
/// [`Records::torn`] tells of it. Any other line that does not parse is an error, after which nothing follows.
#[derive(Debug)]
pub struct Records<T> {
    path: PathBuf,
    file: BufReader<File>,
    buffer: Vec<u8>,
    line: u64,
    ended: bool,
    torn: Option<u64>,
    record: PhantomData<T>,
}

impl<T> Records<T> {
    fn open(path: &Path) -> Result<Self, RunError> {
        let file = File::open(path).map_err(io_error("read", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            buffer: Vec::new(),
            line: 0,
            ended: false,
            torn: None,
            record: PhantomData,
        })
    }

    /// Number of the torn last line, once it was reached.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }
}

impl<T: DeserializeOwned> Iterator for Records<T> {
    type Item = Result<T, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.buffer.clear();
        match self.file.read_until(b'\n', &mut self.buffer) {
            Err(error) => {
                self.ended = true;
                return Some(Err(io_error("read", &self.path)(error)));
            }
            Ok(0) => {
                self.ended = true;
                return None;
            }
            Ok(_) => self.line += 1,
        }
        match serde_json::from_slice(&self.buffer) {
            Ok(record) => Some(Ok(record)),
            Err(_) if self.buffer.last() != Some(&b'\n') => {
                self.ended = true;
                self.torn = Some(self.line);
                None
            }
            Err(reason) => {
                self.ended = true;
                Some(Err(RunError::Record { path: self.path.clone(), line: self.line, reason }))
            }
        }
    }
}
