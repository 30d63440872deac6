//! Who moves the clock, and wakes what is due: the thread that is last to wait for events, on its way there, or the
//! clock's own.
//!
//! Most of the time one thread runs, and when it has nothing left to do nobody has. It then knows at once what the
//! clock's thread would have to find out by waking up and waiting until the other sleeps, which costs many times more.
//! Everything else is left to the clock's thread: threads that wait for a lock or a condition, which may hold locks that
//! a waker needs, threads that are still on their way to sleep, and moments that come while the process computes.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use super::{sys, time, waits};

/// Pause between two looks at a process that may be idle, in real time: the first time, and the longest. A thread that
/// says that it blocks needs some microseconds until it sleeps.
const PAUSE_NS_MIN: u64 = 8_000;
const PAUSE_NS_MAX: u64 = 200_000;

/// Longest sleep while a known thread is not blocked, in real time. A thread that is blocked in a way that the clock does
/// not know of is found out after this.
const SLEEP_NS_MAX: u64 = 1_000_000;

/// The kernel clock that shows this thread's CPU time; -1 before it runs.
static CPU_CLOCK: AtomicI32 = AtomicI32::new(-1);
static SKIPS: AtomicU64 = AtomicU64::new(0);

/// CPU time that other threads spent on the clock in [`skip_here`].
static CPU_HERE_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time of the clock in nanoseconds.
pub(super) fn cpu_ns() -> u64 {
    let own_ns = match CPU_CLOCK.load(Ordering::Relaxed) {
        -1 => 0,
        clock => sys::kernel_clock_ns(clock),
    };
    own_ns + CPU_HERE_NS.load(Ordering::Relaxed)
}

/// How often the clock was moved.
pub(super) fn skips() -> u64 {
    SKIPS.load(Ordering::Relaxed)
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Some(clock) = sys::own_cpu_clock() {
            CPU_CLOCK.store(clock, Ordering::Relaxed);
        }
        body();
    })?;
    Ok(())
}

/// Who holds it moves the clock and wakes what is due; nobody waits for it. Between the two, what was taken off the heap
/// and is not awake yet would look as if it were not there.
#[cfg(target_os = "linux")]
static WATCH: Mutex<Option<super::idle::Watch>> = Mutex::new(None);

/// What became of a try to move the clock.
#[cfg(target_os = "linux")]
enum Tried {
    /// Something was due, and was woken.
    Woken,
    /// The clock was moved, and what is due there was woken.
    Moved,
    /// Something else may happen first.
    Not,
}

/// Wakes what is due, or moves the clock if nothing else can happen. `has_no_events` is asked last, when every other
/// thread was found asleep: what they did before that is done.
#[cfg(target_os = "linux")]
fn go_on(has_no_events: &mut dyn FnMut() -> bool) -> Tried {
    let mut watch = match WATCH.try_lock() {
        Ok(watch) => watch,
        // A waker that panics leaves the watch as it was.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Tried::Not,
    };
    let Some(watch) = watch.as_mut() else { return Tried::Not };
    if waits::wake_due(time::now_ns()) {
        return Tried::Woken;
    }
    // The order matters. The deadline to skip to is asked for after the process was found idle: a thread that ran
    // until then may have registered an earlier one. Only a running thread can hold the clock or register
    // anything, so what holds at that moment holds until the skip.
    if time::is_free()
        && watch.is_idle(sys::own_thread_id())
        && has_no_events()
        && let Some(deadline_ns) = waits::first_deadline_ns()
        && time::skip_to(deadline_ns)
    {
        SKIPS.fetch_add(1, Ordering::Relaxed);
        waits::wake_due(deadline_ns);
        return Tried::Moved;
    }
    Tried::Not
}

/// For a thread that is about to wait for events and holds no lock: wakes what is due, or moves the clock, if nothing
/// else can happen. `has_no_events` says whether there is nothing for the thread to do. Says whether anything was woken,
/// which may be for the thread itself.
#[cfg(target_os = "linux")]
pub(super) fn skip_here(has_no_events: &mut dyn FnMut() -> bool) -> bool {
    if !sys::others_may_be_blocked() || !time::is_free() {
        return false;
    }
    let cpu_ns = sys::thread_cpu_ns();
    let tried = go_on(has_no_events);
    CPU_HERE_NS.fetch_add(sys::thread_cpu_ns().saturating_sub(cpu_ns), Ordering::Relaxed);
    !matches!(tried, Tried::Not)
}

/// Starts the thread of a clock that skips.
#[cfg(target_os = "linux")]
pub(super) fn start_skipping() -> std::io::Result<()> {
    start("clock", || {
        sys::be_the_clock();
        sys::set_fine_sleep();
        if let Ok(mut watch) = WATCH.lock() {
            *watch = Some(super::idle::Watch::new(sys::own_thread_id()));
        }
        let mut pause_ns = PAUSE_NS_MIN;
        loop {
            until_any();
            let Some(first_ns) = waits::first_deadline_ns() else { continue };
            let left_ns = time::real_ns_until(first_ns).unwrap_or(u64::MAX);
            if left_ns > 0 && sys::await_idle(Duration::from_nanos(left_ns.min(SLEEP_NS_MAX))) {
                pause_ns = PAUSE_NS_MIN;
            }
            match go_on(&mut || true) {
                // Who was woken needs a moment to run; a futex is woken again until its waiter has.
                Tried::Woken | Tried::Moved => {
                    pause_ns = PAUSE_NS_MIN;
                    sys::rest(Duration::from_nanos(pause_ns));
                }
                Tried::Not => {
                    sys::rest(Duration::from_nanos(pause_ns.min(left_ns)));
                    pause_ns = (pause_ns * 2).min(PAUSE_NS_MAX);
                }
            }
        }
    })
}

/// Blocks until something waits. Where time stands still while the process computes, nothing is due before a thread
/// that blocks says so, and nobody needs to tell the clock of each wait that begins.
#[cfg(target_os = "linux")]
fn until_any() {
    if !time::stands_still() {
        return waits::until_any();
    }
    loop {
        let times = sys::times_told();
        if waits::first_deadline_ns().is_some() {
            return;
        }
        sys::await_told(times, Duration::from_nanos(SLEEP_NS_MAX));
    }
}

/// Starts the thread of a clock that waits.
pub(super) fn start_waiting() -> std::io::Result<()> {
    start("clock", || {
        loop {
            waits::until_any();
            if !waits::wake_due(time::now_ns())
                && let Some(deadline_ns) = waits::first_deadline_ns()
            {
                let left_ns = deadline_ns.saturating_sub(time::now_ns());
                waits::until_earlier(deadline_ns, Duration::from_nanos(left_ns));
            }
        }
    })
}
