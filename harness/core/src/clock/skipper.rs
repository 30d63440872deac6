//! The clock's own thread: wakes what is due, and moves the clock when nothing else can happen.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use super::{sys, time, waits};

/// Shortest and longest pause between two looks at a busy process, in real time. A look costs a few microseconds; in
/// between the pause is a sixteenth of the time that the process has been busy, so that finding out that it is idle
/// adds little to any stretch of work.
const PAUSE_NS_MIN: u64 = 15_000;
const PAUSE_NS_MAX: u64 = 400_000;

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
        sys::set_fine_sleep();
        let mut watch = super::idle::Watch::new(sys::own_thread_id());
        let mut busy_since_ns = sys::monotonic_ns();
        loop {
            waits::until_any();
            if waits::wake_due(time::now_ns()) {
                busy_since_ns = sys::monotonic_ns();
            } else if let Some(deadline_ns) = waits::first_deadline_ns() {
                // The order matters. The deadline to skip to is asked for after the process was found idle: a thread
                // that ran until then may have registered an earlier one. Only a running thread can hold the clock or
                // register anything, so what holds at that moment holds until the skip.
                if time::is_free()
                    && watch.is_idle()
                    && let Some(deadline_ns) = waits::first_deadline_ns()
                    && time::skip_to(deadline_ns)
                {
                    SKIPS.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let busy_ns = sys::monotonic_ns().saturating_sub(busy_since_ns);
                let pause_ns = (busy_ns / 16).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX);
                let left_ns = time::real_ns_until(deadline_ns).unwrap_or(u64::MAX);
                sys::real_sleep(Duration::from_nanos(pause_ns.min(left_ns)));
                continue;
            }
            sys::real_sleep(Duration::from_nanos(PAUSE_NS_MIN));
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
