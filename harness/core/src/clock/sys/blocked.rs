//! Which threads block? The count that tells the clock's thread when to look whether the process is idle.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::{wait_futex, wake_futex};

/// The word that the clock's thread waits on; it changes when the process may have become idle.
static MAY_BE_IDLE: AtomicU32 = AtomicU32::new(0);

/// Whether the clock's thread waits on it, so that telling it is worth a system call.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// Threads that have blocked in one of the functions that the executable defines and still live, and those of them that block now.
///
/// When the two are equal the process *may* be idle: the clock's thread looks then, instead of all the time. Threads
/// that block in other ways are not counted, and the look itself takes nothing from these numbers.
static KNOWN: AtomicU32 = AtomicU32::new(0);
static BLOCKED: AtomicU32 = AtomicU32::new(0);

/// A thread's membership in [`KNOWN`].
struct Membership;

impl Membership {
    fn new() -> Self {
        KNOWN.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        KNOWN.fetch_sub(1, Ordering::SeqCst);
        // The others may all be blocked already.
        tell_clock();
    }
}

thread_local! {
    static MEMBERSHIP: Membership = Membership::new();
    static IS_CLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread the clock's, which is not counted: it waits for the others.
pub(in crate::clock) fn be_the_clock() {
    IS_CLOCK.set(true);
}

/// The calling thread's being blocked, until dropped.
pub(super) struct Blocking {
    is_counted: bool,
}

impl Blocking {
    pub(super) fn new() -> Self {
        if IS_CLOCK.try_with(Cell::get).unwrap_or(false) {
            return Self { is_counted: false };
        }
        // A thread whose destructors run is counted no more: it is about to end.
        let _ = MEMBERSHIP.try_with(|_| ());
        if BLOCKED.fetch_add(1, Ordering::SeqCst) + 1 >= KNOWN.load(Ordering::SeqCst) {
            tell_clock();
        }
        Self { is_counted: true }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if self.is_counted {
            BLOCKED.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn tell_clock() {
    MAY_BE_IDLE.fetch_add(1, Ordering::SeqCst);
    if IS_AWAITED.load(Ordering::SeqCst) {
        wake_futex(MAY_BE_IDLE.as_ptr() as usize, true);
    }
}

/// Sleeps in real time until every known thread may be blocked, for `duration` at most. Says whether it slept.
pub(in crate::clock) fn await_idle(duration: Duration) -> bool {
    let seen = MAY_BE_IDLE.load(Ordering::SeqCst);
    IS_AWAITED.store(true, Ordering::SeqCst);
    let is_busy = BLOCKED.load(Ordering::SeqCst) < KNOWN.load(Ordering::SeqCst);
    if is_busy {
        wait_futex(&MAY_BE_IDLE, seen, duration);
    }
    IS_AWAITED.store(false, Ordering::SeqCst);
    is_busy
}
