//! What the clock needs of a system where it cannot skip: real time, and no CPU clocks.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

static EPOCH: OnceLock<Instant> = OnceLock::new();

pub(super) fn monotonic_ns() -> u64 {
    u64::try_from(EPOCH.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn kernel_clock_ns(_: libc::clockid_t) -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since_1970.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn process_cpu_ns() -> u64 {
    0
}

pub(super) fn thread_cpu_ns() -> u64 {
    0
}

pub(super) fn own_cpu_clock() -> Option<libc::clockid_t> {
    None
}

pub(super) fn ring(_: i32) {}

pub(super) fn wake_futex(_: usize, _: bool) -> u64 {
    0
}

pub(super) fn count_woken(_: u64) {}

#[expect(dead_code, reason = "the skipping clock's, which does not run here")]
pub(super) fn real_sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Threads move between CPUs as the system likes.
pub(super) fn keep_to_cpu(_place: usize) -> bool {
    false
}
