//! What does the model remember of a transaction in flight?

use super::streams::Stream;

/// A transaction in flight. Its memory is reused when it ends: two cache lines, of which the first holds what each
/// event touches.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Transaction {
    /// Time and kind of its event, and the next transaction of the same slot of the queue.
    pub(super) event_ns: u64,
    pub(super) next: u32,
    pub(super) event: u8,
    pub(super) validated_overwrite: bool,
    /// The attempt at hand follows a table conflict.
    pub(super) table_conflict: bool,
    pub(super) refresh: Refresh,
    pub(super) stream: Stream,
    /// Instant of the snapshot that the attempt at hand is based on.
    pub(super) snapshot_ns: u64,
    /// What is left of the round trip after its instant.
    pub(super) rest_ns: u64,
    pub(super) table: u32,
    /// Failed attempts.
    pub(super) failures: u32,
    /// Bytes and requests of the attempt at hand.
    pub(super) bytes: u64,
    pub(super) requests: u32,
    pub(super) partition: u32,
    pub(super) submit_ns: u64,
    /// Start of the commit: end of the runtime.
    pub(super) commit_ns: u64,
    /// When the first attempt began, after its refresh; once it has failed, how long it took.
    pub(super) first_attempt_ns: u64,
    /// Own table's version at the snapshot, at submission, and the catalog's sequence number at the snapshot. Kept only
    /// for transactions whose work depends on them.
    pub(super) snapshot_version: u32,
    pub(super) submit_version: u32,
    pub(super) snapshot_sequence: u32,
    pub(super) snapshot_partition_version: u32,
    /// Client of a closed loop, and how many transactions it has begun.
    pub(super) client: u32,
    pub(super) nth: u32,
}

/// Why a snapshot is taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Refresh {
    /// At submission, before the runtime.
    #[default]
    Submission,
    /// At the start of the commit.
    First,
    /// After a lost attempt.
    Lost,
    /// After the backoff that followed what the refresh of a lost attempt found.
    Slept,
}
