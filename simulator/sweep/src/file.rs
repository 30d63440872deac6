//! How do rows lie in a Parquet file?

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::error::SweepError;
use crate::grid::GridSpec;
use crate::row::{Field, KEY, Scalar};

/// Version of the columns, in the file's metadata under `lakemark.sweep`.
const SCHEMA: &str = "1";

/// Rows of a group. A row with its histograms is some kilobytes, and a group is held in memory as it is written.
const GROUP_ROWS: usize = 500;

/// Names of columns, and where each is in a row.
#[derive(Debug, Default)]
pub struct Header {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Header {
    fn new(names: Vec<String>) -> Self {
        let places = names.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        Self { names, places }
    }

    /// Names of the columns, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// One row as it was read.
#[derive(Clone, Debug)]
pub struct RowRead {
    header: Arc<Header>,
    values: Vec<Scalar>,
}

impl RowRead {
    /// A row of fields.
    pub fn new(fields: Vec<Field>) -> Self {
        let (names, values) = fields.into_iter().map(|field| (field.name, field.value)).unzip();
        Self { header: Arc::new(Header::new(names)), values }
    }

    /// Index of the cell, and seed.
    pub fn key(&self) -> (u64, u64) {
        let count = |name| if let Some(Scalar::Count(Some(count))) = self.get(name) { *count } else { 0 };
        (count(KEY[0]), count(KEY[1]))
    }

    /// The value of a column; none if the file has no such column.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.header.places.get(name).map(|place| &self.values[*place])
    }

    /// A number; none if there is none.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.number()
    }

    /// A word; none if there is none.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    /// Names and values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.header.names.iter().map(String::as_str).zip(&self.values)
    }

    pub(crate) fn values(&self) -> &[Scalar] {
        &self.values
    }
}

/// Writes rows to a file that has its name only once it is whole.
#[derive(Debug)]
pub(crate) struct FileWriter {
    path: PathBuf,
    unfinished: PathBuf,
    writer: Option<ArrowWriter<File>>,
    grid: String,
    rows: Vec<RowRead>,
}

impl FileWriter {
    pub(crate) fn new(path: &Path, grid: &GridSpec) -> Result<Self, SweepError> {
        let grid = toml::to_string(grid).map_err(|error| SweepError::parquet(path, error))?;
        let unfinished = path.with_extension("unfinished");
        Ok(Self { path: path.to_owned(), unfinished, writer: None, grid, rows: Vec::new() })
    }

    pub(crate) fn push(&mut self, row: RowRead) -> Result<(), SweepError> {
        self.rows.push(row);
        if self.rows.len() >= GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// Ends the file. Without rows there is none.
    pub(crate) fn finish(mut self) -> Result<(), SweepError> {
        self.flush()?;
        let Some(writer) = self.writer else { return Ok(()) };
        let file = writer.into_inner().map_err(|error| SweepError::parquet(&self.path, error))?;
        file.sync_all().map_err(|error| SweepError::io("write", &self.path, error))?;
        std::fs::rename(&self.unfinished, &self.path).map_err(|error| SweepError::io("write", &self.path, error))
    }

    fn flush(&mut self) -> Result<(), SweepError> {
        let Some(first) = self.rows.first() else { return Ok(()) };
        let broken = |error: &dyn std::fmt::Display| SweepError::parquet(&self.path, error);
        let columns = first.header.names.iter().enumerate().map(|(place, name)| {
            let values = self.rows.iter().map(|row| &row.values[place]);
            (name.as_str(), column(&first.values[place], values), true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(|error| broken(&error))?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let metadata = [("lakemark.sweep", SCHEMA), ("lakemark.grid", &self.grid)];
                let metadata = metadata.map(|(name, value)| KeyValue::new(name.to_owned(), value.to_owned()));
                let mut properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_created_by(concat!("lakemark ", env!("CARGO_PKG_VERSION")).to_owned())
                    .set_key_value_metadata(Some(metadata.to_vec()));
                // No two are alike.
                for field in batch.schema().fields().iter().filter(|field| *field.data_type() == DataType::Binary) {
                    let column = vec![field.name().clone()].into();
                    properties = properties.set_column_dictionary_enabled(column, false);
                }
                let file =
                    File::create(&self.unfinished).map_err(|error| SweepError::io("write", &self.unfinished, error))?;
                let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build()));
                self.writer.insert(writer.map_err(|error| broken(&error))?)
            }
        };
        writer.write(&batch).and_then(|()| writer.flush()).map_err(|error| SweepError::parquet(&self.path, error))?;
        self.rows.clear();
        Ok(())
    }
}

/// A column of values that are all of the first one's type.
fn column<'a>(first: &Scalar, values: impl Iterator<Item = &'a Scalar>) -> ArrayRef {
    macro_rules! array {
        ($array:ty, $kind:path, $inner:ty) => {{
            let values: Vec<Option<$inner>> =
                values.map(|value| if let $kind(value) = value { value.clone() } else { None }).collect();
            Arc::new(<$array>::from_iter(values)) as ArrayRef
        }};
    }
    match first {
        Scalar::Count(_) => array!(UInt64Array, Scalar::Count, u64),
        Scalar::Number(_) => array!(Float64Array, Scalar::Number, f64),
        Scalar::Text(_) => array!(StringArray, Scalar::Text, String),
        Scalar::Flag(_) => array!(BooleanArray, Scalar::Flag, bool),
        Scalar::Bytes(_) => array!(BinaryArray, Scalar::Bytes, Vec<u8>),
    }
}

/// Reads the rows of a file, a few at a time.
pub struct FileReader {
    path: PathBuf,
    header: Arc<Header>,
    grid: GridSpec,
    rows: usize,
    reader: ParquetRecordBatchReader,
    batch: Option<(RecordBatch, usize)>,
}

impl std::fmt::Debug for FileReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileReader").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl FileReader {
    /// Opens a file. `wanted` chooses columns by name; all are read without it.
    ///
    /// # Errors
    /// If it is not a file that a sweep wrote.
    pub fn open(path: &Path, wanted: Option<&dyn Fn(&str) -> bool>) -> Result<Self, SweepError> {
        // A row is some kilobytes, and a merge has many files open.
        const BATCH_ROWS: usize = 64;
        let file = File::open(path).map_err(|error| SweepError::io("read", path, error))?;
        let broken = |error: &dyn std::fmt::Display| SweepError::parquet(path, error);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| broken(&error))?;
        let grid = grid(&builder).map_err(|error| broken(&error))?;
        let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or_default();
        let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let kept: Vec<usize> =
            (0..names.len()).filter(|place| wanted.is_none_or(|wants| wants(&names[*place]))).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), kept.iter().copied());
        let header = Arc::new(Header::new(kept.into_iter().map(|place| names[place].clone()).collect()));
        let reader =
            builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| broken(&error))?;
        Ok(Self { path: path.to_owned(), header, grid, rows, reader, batch: None })
    }

    /// The grid that the rows are of.
    pub fn grid(&self) -> &GridSpec {
        &self.grid
    }

    /// Number of rows in the file.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn row(&self, batch: &RecordBatch, place: usize) -> Result<RowRead, SweepError> {
        let values = batch.columns().iter().map(|column| scalar(column, place)).collect::<Option<Vec<_>>>();
        let values =
            values.ok_or_else(|| SweepError::parquet(&self.path, "a column has a type that no sweep writes"))?;
        Ok(RowRead { header: Arc::clone(&self.header), values })
    }
}

impl Iterator for FileReader {
    type Item = Result<RowRead, SweepError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((batch, place)) = self.batch.take_if(|(batch, place)| *place < batch.num_rows()) {
                let row = self.row(&batch, place);
                self.batch = Some((batch, place + 1));
                return Some(row);
            }
            match self.reader.next()? {
                Ok(batch) => self.batch = Some((batch, 0)),
                Err(error) => return Some(Err(SweepError::parquet(&self.path, error))),
            }
        }
    }
}

/// The grid that a file's metadata holds.
fn grid(builder: &ParquetRecordBatchReaderBuilder<File>) -> Result<GridSpec, String> {
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let value = |name: &str| metadata?.iter().find(|pair| pair.key == name)?.value.as_deref();
    match value("lakemark.sweep") {
        Some(SCHEMA) => {}
        Some(version) => return Err(format!("its rows are of version {version}, and this tool reads {SCHEMA}")),
        None => return Err("it does not hold the rows of a sweep".to_owned()),
    }
    toml::from_str(value("lakemark.grid").unwrap_or_default()).map_err(|error| format!("its grid: {}", error.message()))
}

/// The value at a place of a column; none if the type is not one that rows have.
fn scalar(column: &ArrayRef, place: usize) -> Option<Scalar> {
    let is_there = column.is_valid(place);
    Some(match column.data_type() {
        DataType::UInt64 => Scalar::Count(is_there.then(|| column.as_primitive::<UInt64Type>().value(place))),
        DataType::Float64 => Scalar::Number(is_there.then(|| column.as_primitive::<Float64Type>().value(place))),
        DataType::Utf8 => Scalar::Text(is_there.then(|| column.as_string::<i32>().value(place).to_owned())),
        DataType::Boolean => Scalar::Flag(is_there.then(|| column.as_boolean().value(place))),
        DataType::Binary => Scalar::Bytes(is_there.then(|| column.as_binary::<i32>().value(place).to_owned())),
        _ => return None,
    })
}
