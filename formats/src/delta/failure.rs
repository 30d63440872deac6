//! Of which class a failure of the library is.

use std::fmt::Display;

use deltalake::DeltaTableError;
use deltalake::kernel::transaction::TransactionError;
use lakemark_core::record::Outcome;
use lakemark_core::store::StoreError;
use lakemark_core::table::OperationError;

/// The library's error as the harness reports it.
pub(super) fn failed(error: DeltaTableError) -> OperationError {
    OperationError { outcome: outcome_of(&error), message: one_line(&error) }
}

/// What failed after a version was published.
pub(super) fn failed_after(version: u64, error: &DeltaTableError) -> OperationError {
    OperationError {
        outcome: Outcome::Unknown,
        message: format!("version {version} was published, then a post-commit step failed: {}", one_line(error)),
    }
}

fn one_line(error: &impl Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn outcome_of(error: &DeltaTableError) -> Outcome {
    use TransactionError::{CommitConflict, MaxCommitAttempts, VersionAlreadyExists};
    match error {
        DeltaTableError::VersionAlreadyExists(_)
        | DeltaTableError::Transaction { source: CommitConflict(_) | MaxCommitAttempts(_) | VersionAlreadyExists(_) } =>
        {
            return Outcome::Conflict;
        }
        _ => {}
    }
    if let Some(error) = StoreError::among_causes(error) {
        return error.operation_outcome();
    }
    // Looking for the newest version, the library keeps only the text of what went wrong. A listing that got no answer
    // had no effect, so that throttling is all there is to find.
    if error.to_string().contains("throttled on ") { Outcome::Throttled } else { Outcome::Error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_their_classes() {
        let source = StoreError::Unknown { key: "a".into(), reason: "time-out".into() };
        let throttled = StoreError::Throttled { key: "a".into(), status: 503 };
        let stored = |source: StoreError| DeltaTableError::ObjectStore {
            source: object_store_013::Error::Generic { store: "s", source: Box::new(source) },
        };
        let lost = DeltaTableError::Transaction { source: TransactionError::MaxCommitAttempts(15) };
        assert_eq!(outcome_of(&lost), Outcome::Conflict);
        assert_eq!(outcome_of(&DeltaTableError::VersionAlreadyExists(3)), Outcome::Conflict);
        assert_eq!(outcome_of(&stored(source)), Outcome::Unknown);
        assert_eq!(outcome_of(&stored(throttled.clone())), Outcome::Throttled);
        assert_eq!(outcome_of(&DeltaTableError::Generic(throttled.to_string())), Outcome::Throttled);
        assert_eq!(outcome_of(&DeltaTableError::NotInitialized), Outcome::Error);
    }
}
