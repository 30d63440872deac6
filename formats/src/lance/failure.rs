//! Of which class a failure of the library is.

use lakemark_core::record::Outcome;
use lakemark_core::store::StoreError;
use lakemark_core::table::OperationError;
use lance_core::Error as LanceError;

/// The library's error as the harness reports it.
pub(super) fn failure(error: LanceError) -> OperationError {
    OperationError { outcome: outcome(&error), message: one_line(&error.to_string()) }
}

fn outcome(error: &LanceError) -> Outcome {
    // Asked first: such an error may carry the request's own error as its source.
    if error.is_commit_status_unknown() {
        return Outcome::Unknown;
    }
    match error.find_root() {
        LanceError::CommitConflict { .. }
        | LanceError::RetryableCommitConflict { .. }
        | LanceError::IncompatibleTransaction { .. }
        | LanceError::TooMuchWriteContention { .. } => Outcome::Conflict,
        // Only the whole commit has a time limit, and a request may have been on its way.
        LanceError::Timeout { .. } => Outcome::Unknown,
        root => StoreError::among_causes(root).map_or(Outcome::Error, StoreError::operation_outcome),
    }
}

/// The message on one line. The library ends messages with the place in its source; what is before the crate's name
/// in it belongs to the machine that built the binary.
fn one_line(message: &str) -> String {
    let words = message.split_whitespace().map(|word| match word.split_once("/registry/src/") {
        Some((_, path)) => path.split_once('/').map_or(path, |(_, path)| path),
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_classed_by_their_cause() {
        let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
        let wrapped = object_store_014::Error::Generic { store: "s", source: Box::new(throttled) };
        assert_eq!(outcome(&LanceError::from(wrapped)), Outcome::Throttled);

        let unknown = StoreError::Unknown { key: "k".to_owned(), reason: "timed out".to_owned() };
        let wrapped = object_store_014::Error::Generic { store: "s", source: Box::new(unknown) };
        assert_eq!(outcome(&LanceError::from(wrapped)), Outcome::Unknown);

        let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
        let unknown = LanceError::commit_status_unknown_source(2, Box::new(throttled));
        assert_eq!(outcome(&unknown), Outcome::Unknown);

        assert_eq!(outcome(&LanceError::too_much_write_contention("20 times")), Outcome::Conflict);
        assert_eq!(outcome(&LanceError::invalid_input("no")), Outcome::Error);
    }

    #[test]
    fn messages_are_one_line_without_the_build_machine() {
        let message = "Commit conflict:\n lost, /home/a/.cargo/registry/src/index-1/lance-14.0.2/src/io/commit.rs:5:9";
        assert_eq!(one_line(message), "Commit conflict: lost, lance-14.0.2/src/io/commit.rs:5:9");
    }
}
