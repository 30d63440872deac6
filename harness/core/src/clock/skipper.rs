//! The clock's own thread: wakes what is due, and moves the clock when nothing else can happen.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
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

/// CPU time of the clock's thread in nanoseconds.
pub(super) fn cpu_ns() -> u64 {
    match CPU_CLOCK.load(Ordering::Relaxed) {
        -1 => 0,
        clock => sys::kernel_clock_ns(clock),
    }
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

/// Starts the thread of a clock that skips.
#[cfg(target_os = "linux")]
pub(super) fn start_skipping() -> std::io::Result<()> {
    start("clock", || {
        sys::be_the_clock();
        sys::set_fine_sleep();
        let mut watch = super::idle::Watch::new(sys::own_thread_id());
        let mut pause_ns = PAUSE_NS_MIN;
        loop {
            waits::until_any();
            if waits::wake_due(time::now_ns()) {
                // Who was woken needs a moment to run; a futex is woken again until its waiter has.
                pause_ns = PAUSE_NS_MIN;
                sys::real_sleep(Duration::from_nanos(pause_ns));
                continue;
            }
            let Some(first_ns) = waits::first_deadline_ns() else { continue };
            let left_ns = time::real_ns_until(first_ns).unwrap_or(u64::MAX);
            if sys::await_idle(Duration::from_nanos(left_ns.min(SLEEP_NS_MAX))) {
                pause_ns = PAUSE_NS_MIN;
            }
            // The order matters. The deadline to skip to is asked for after the process was found idle: a thread that ran
            // until then may have registered an earlier one. Only a running thread can hold the clock or register
            // anything, so what holds at that moment holds until the skip.
            if time::is_free()
                && watch.is_idle()
                && let Some(deadline_ns) = waits::first_deadline_ns()
                && time::skip_to(deadline_ns)
            {
                SKIPS.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            sys::real_sleep(Duration::from_nanos(pause_ns.min(left_ns)));
            pause_ns = (pause_ns * 2).min(PAUSE_NS_MAX);
        }
    })
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
