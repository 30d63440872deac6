//! What the tests of a store share: the clock, on which they run one after another.

use std::sync::{Mutex, PoisonError};

use lakemark_core::clock::{self, Cpu, Mode, Switched};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test on the skipping clock, alone: the clock is one per process, and a test that computes would keep another
/// from skipping.
///
/// Computing takes no process time, so that every moment is exact. During a catalog call real time passes.
pub(crate) fn on_the_clock<T>(test: impl AsyncFnOnce(Switched) -> T) -> T {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let switched = clock::switch_on(Mode::Skip, Cpu::Free, true).expect("the clock's thread starts");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    runtime.block_on(test(switched))
}
