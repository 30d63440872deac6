//! How are single transactions kept? A Parquet file for each cell and seed, a row a transaction.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use lakemark_simulator::{CellResult, Ended, Model, Outcome};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::error::SweepError;

/// Rows of a group; more are never held in memory.
const GROUP_ROWS: usize = 65_536;

/// Runs a cell under a seed, and keeps its transactions in a file that has its name only once it is whole.
pub(crate) fn keep(folder: &Path, model: &Model, cell: u64, seed: u64) -> Result<CellResult, SweepError> {
    std::fs::create_dir_all(folder).map_err(|error| SweepError::io("create", folder, error))?;
    let path = folder.join(format!("{cell:06}-{seed:03}.parquet"));
    let unfinished = path.with_extension("unfinished");
    let mut rows = Vec::with_capacity(GROUP_ROWS);
    let mut writer = None;
    let mut failure = None;
    let result = model.run_told(seed, &mut |ended| {
        rows.push(*ended);
        if rows.len() == GROUP_ROWS && failure.is_none() {
            failure = write(&unfinished, &mut writer, &rows).err();
            rows.clear();
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    write(&unfinished, &mut writer, &rows)?;
    let Some(writer) = writer else { return Ok(result) };
    let file = writer.into_inner().map_err(|error| SweepError::parquet(&path, error))?;
    file.sync_all().map_err(|error| SweepError::io("write", &path, error))?;
    std::fs::rename(&unfinished, &path).map_err(|error| SweepError::io("write", &path, error))?;
    Ok(result)
}

fn write(path: &Path, writer: &mut Option<ArrowWriter<File>>, rows: &[Ended]) -> Result<(), SweepError> {
    let broken = |error: &dyn std::fmt::Display| SweepError::parquet(path, error);
    let batch = batch(rows).map_err(|error| broken(&error))?;
    let writer = match writer {
        Some(writer) => writer,
        None => {
            let file = File::create(path).map_err(|error| SweepError::io("write", path, error))?;
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            let new = ArrowWriter::try_new(file, batch.schema(), Some(properties)).map_err(|error| broken(&error))?;
            writer.insert(new)
        }
    };
    writer.write(&batch).and_then(|()| writer.flush()).map_err(|error| broken(&error))
}

fn batch(rows: &[Ended]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let times = |of: fn(&Ended) -> u64| Arc::new(rows.iter().map(of).collect::<UInt64Array>()) as ArrayRef;
    let counts = |of: fn(&Ended) -> u32| Arc::new(rows.iter().map(of).collect::<UInt32Array>()) as ArrayRef;
    let words = |of: fn(&Ended) -> &'static str| {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>()) as ArrayRef
    };
    RecordBatch::try_from_iter([
        ("submit_ns", times(|row| row.submit_ns)),
        ("commit_ns", times(|row| row.commit_ns)),
        ("end_ns", times(|row| row.end_ns)),
        ("table", counts(|row| row.table)),
        ("kind", words(|row| if row.is_validated_overwrite { "validated_overwrite" } else { "fast_append" })),
        ("failed_attempts", counts(|row| row.failed_attempts)),
        ("outcome", words(|row| outcome(row.outcome))),
    ])
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Committed => "committed",
        Outcome::AttemptsSpent => "attempts_spent",
        Outcome::BudgetSpent => "budget_spent",
        Outcome::RealConflict => "real_conflict",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt64Type;
    use lakemark_simulator::{Arrivals, Cell};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn every_transaction_that_is_counted_has_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let cell = Cell {
            arrivals: Arrivals::LogNormal { scale_ms: 40.0, sigma: 0.5 },
            fast_append_ratio: 0.5,
            ..Cell::default()
        };
        let model = Model::new(&cell).unwrap();
        let result = keep(folder.path(), &model, 7, 3).unwrap();
        assert_eq!(result, model.run(3));
        let file = File::open(folder.path().join("000007-003.parquet")).unwrap();
        let (mut rows, mut committed, mut latency_ns) = (0, 0, 0);
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let time = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().clone();
            let (commit_ns, end_ns) = (time("commit_ns"), time("end_ns"));
            let outcomes = batch.column_by_name("outcome").unwrap().as_string::<i32>().clone();
            for row in 0..outcomes.len() {
                rows += 1;
                if outcomes.value(row) == "committed" {
                    committed += 1;
                    latency_ns += end_ns[row] - commit_ns[row];
                }
            }
        }
        assert!(rows > GROUP_ROWS as u64, "{rows} rows do not fill a group");
        assert_eq!((rows, committed), (result.counts.committed + result.counts.aborted(), result.counts.committed));
        assert!(latency_ns > 0);
    }
}
