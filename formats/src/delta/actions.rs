//! What a commit says of data files: the actions of the protocol.

use std::collections::HashSet;

use deltalake::DeltaTable;
use deltalake::kernel::{Action, Add, LogicalFileView};
use deltalake::protocol::{DeltaOperation, SaveMode};
use futures::TryStreamExt;
use lakemark_core::clock;
use lakemark_core::table::{Change, DataFile, OperationError, OperationResult};

use super::failure::failed;
use super::settings::Options;

/// File size that a compaction aims at, unless told otherwise: the library's own default.
const COMPACTION_TARGET_BYTES: i64 = 100 * 1024 * 1024;

/// The operation that an append says it is.
pub(super) fn append_operation() -> DeltaOperation {
    DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None }
}

/// An action that adds a file. `data_change` is false where other files held the same rows.
pub(super) fn add(file: &DataFile, data_change: bool, options: &Options) -> Add {
    Add {
        path: file.path.clone(),
        size: i64::try_from(file.size_bytes).unwrap_or(i64::MAX),
        modification_time: clock::wall_ms(),
        data_change,
        stats: options.statistics.then(|| statistics(file)),
        ..Add::default()
    }
}

/// The actions of a change, as the library's own writers make them, and the operation that they say they are.
pub(super) async fn of_change(
    change: &Change,
    table: &DeltaTable,
    options: &Options,
) -> OperationResult<(Vec<Action>, DeltaOperation)> {
    let active: Vec<LogicalFileView> =
        table.get_active_add_actions_by_partitions(&[]).try_collect().await.map_err(failed)?;
    let (removed, added, data_change, operation) = match change {
        Change::Overwrite { add } => {
            let operation = DeltaOperation::Write { mode: SaveMode::Overwrite, partition_by: None, predicate: None };
            (active, add.as_slice(), true, operation)
        }
        Change::Delete { remove } => {
            (among(active, remove)?, [].as_slice(), true, DeltaOperation::Delete { predicate: None })
        }
        Change::Compact { remove, add } => {
            let operation = DeltaOperation::Optimize { predicate: None, target_size: COMPACTION_TARGET_BYTES };
            (among(active, remove)?, add.as_slice(), false, operation)
        }
    };
    let removed = removed.iter().map(|file| Action::Remove(file.remove_action(data_change)));
    let added = added.iter().map(|file| Action::Add(add(file, data_change, options)));
    Ok((removed.chain(added).collect(), operation))
}

/// The active files that are to be removed.
fn among(active: Vec<LogicalFileView>, remove: &[DataFile]) -> OperationResult<Vec<LogicalFileView>> {
    let paths: HashSet<&str> = remove.iter().map(|file| file.path.as_str()).collect();
    let found: Vec<_> = active.into_iter().filter(|file| paths.contains(&*file.path())).collect();
    if found.len() < paths.len() {
        let found: HashSet<_> = found.iter().map(LogicalFileView::path).collect();
        let missing = paths.iter().find(|path| !found.contains(**path)).unwrap_or(&"");
        return Err(OperationError::other(format!("data file {missing} is not active in the handle's version")));
    }
    Ok(found)
}

/// Statistics of a file, as the protocol's "Per-file Statistics" section has them.
fn statistics(file: &DataFile) -> String {
    match file.bounds {
        Some((min, max)) => serde_json::json!({
            "numRecords": file.rows,
            "minValues": { "id": min },
            "maxValues": { "id": max },
            "nullCount": { "id": 0 },
        }),
        None => serde_json::json!({ "numRecords": file.rows }),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_follow_the_protocol() {
        let mut file = DataFile { path: "a".into(), size_bytes: 1, rows: 5, bounds: Some((-1, 3)) };
        let all = r#"{"maxValues":{"id":3},"minValues":{"id":-1},"nullCount":{"id":0},"numRecords":5}"#;
        assert_eq!(statistics(&file), all);
        file.bounds = None;
        assert_eq!(statistics(&file), r#"{"numRecords":5}"#);
    }
}
