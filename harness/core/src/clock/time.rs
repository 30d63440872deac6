//! What time it is: process time as a line through the last change, read without a lock.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard};

use super::sys;

/// The line `process = process₀ + (monotonic - monotonic₀) × rate`, behind a sequence lock: a reader that meets a
/// change reads again.
///
/// A change makes the sequence odd *before* it looks at the monotonic clock, so a reader that finished under the old
/// line looked earlier than that: time never runs backwards for anyone.
struct Line {
    sequence: AtomicU64,
    monotonic_ns: AtomicU64,
    process_ns: AtomicU64,
    rate: AtomicU64,
    skipped_ns: AtomicU64,
}

static LINE: Line = Line {
    sequence: AtomicU64::new(0),
    monotonic_ns: AtomicU64::new(0),
    process_ns: AtomicU64::new(0),
    rate: AtomicU64::new(1.0_f64.to_bits()),
    skipped_ns: AtomicU64::new(0),
};

/// Wall time minus process time, fixed when process time parts from real time; 0 before.
static WALL_OFFSET_NS: AtomicU64 = AtomicU64::new(0);

/// What decides the rate at which real time becomes process time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Whether process time is real time, whatever else is said here.
    real: bool,
    /// Rate while the process computes.
    cpu: f64,
    /// Whether what the clock is held for happens in another process. Then a held clock runs at full rate and does not
    /// skip. What happens in this process takes CPU time, or sleeps until a moment that the clock knows.
    outside: bool,
    holds: u32,
    freezes: u32,
}

static PACE: Mutex<Pace> = Mutex::new(Pace { real: true, cpu: 1.0, outside: true, holds: 0, freezes: 0 });

impl Pace {
    fn is_held(&self) -> bool {
        self.holds > 0 && self.outside
    }

    /// Whether the clock may skip.
    fn is_free(&self) -> bool {
        self.freezes == 0 && !self.is_held()
    }

    fn rate(&self) -> f64 {
        if self.real {
            1.0
        } else if self.freezes > 0 {
            0.0
        } else if self.is_held() {
            1.0
        } else {
            self.cpu
        }
    }
}

fn pace() -> MutexGuard<'static, Pace> {
    // Every change is one assignment: a panic leaves a consistent value.
    PACE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn on_line(monotonic_ns: u64, from_monotonic_ns: u64, from_process_ns: u64, rate: f64) -> u64 {
    let elapsed_ns = monotonic_ns.saturating_sub(from_monotonic_ns);
    // The exact integer where it matters most: a plain clock adds no rounding.
    let passed_ns = if rate == 1.0 { elapsed_ns } else { (elapsed_ns as f64 * rate) as u64 };
    from_process_ns + passed_ns
}

/// Process time in nanoseconds.
pub(super) fn now_ns() -> u64 {
    loop {
        let before = LINE.sequence.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            let from_monotonic_ns = LINE.monotonic_ns.load(Ordering::Relaxed);
            let from_process_ns = LINE.process_ns.load(Ordering::Relaxed);
            let rate = f64::from_bits(LINE.rate.load(Ordering::Relaxed));
            let now = on_line(sys::monotonic_ns(), from_monotonic_ns, from_process_ns, rate);
            fence(Ordering::Acquire);
            if LINE.sequence.load(Ordering::Relaxed) == before {
                return now;
            }
        }
        std::hint::spin_loop();
    }
}

/// Starts a new line at the present moment, or at `at_least_ns` if that is later. The pace's lock is held by the caller,
/// so there is one change at a time.
fn turn(pace: &Pace, at_least_ns: u64) {
    LINE.sequence.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    let monotonic_ns = sys::monotonic_ns();
    let reached_ns = on_line(
        monotonic_ns,
        LINE.monotonic_ns.load(Ordering::Relaxed),
        LINE.process_ns.load(Ordering::Relaxed),
        f64::from_bits(LINE.rate.load(Ordering::Relaxed)),
    );
    let process_ns = reached_ns.max(at_least_ns);
    LINE.skipped_ns.fetch_add(process_ns - reached_ns, Ordering::Relaxed);
    LINE.monotonic_ns.store(monotonic_ns, Ordering::Relaxed);
    LINE.process_ns.store(process_ns, Ordering::Relaxed);
    LINE.rate.store(pace.rate().to_bits(), Ordering::Relaxed);
    LINE.sequence.fetch_add(1, Ordering::Release);
}

/// Lets process time part from real time. Called once, before the clock is switched on.
pub(super) fn configure(cpu: f64, outside: bool) {
    let wall_ns = sys::kernel_clock_ns(libc::CLOCK_REALTIME);
    let mut pace = pace();
    pace.real = false;
    pace.cpu = cpu;
    pace.outside = outside;
    turn(&pace, 0);
    WALL_OFFSET_NS.store(wall_ns.saturating_sub(now_ns()), Ordering::Relaxed);
}

/// Changes the number of holds and freezes.
pub(super) fn change(holds: i32, freezes: i32) {
    let mut pace = pace();
    pace.holds = pace.holds.saturating_add_signed(holds);
    pace.freezes = pace.freezes.saturating_add_signed(freezes);
    if pace.rate().to_bits() != LINE.rate.load(Ordering::Relaxed) {
        turn(&pace, 0);
    }
}

/// Moves process time to `deadline_ns`, unless something holds or freezes the clock. Says whether it moved.
pub(super) fn skip_to(deadline_ns: u64) -> bool {
    let pace = pace();
    let is_free = pace.is_free();
    if is_free {
        turn(&pace, deadline_ns);
    }
    is_free
}

/// Whether nothing holds or freezes the clock.
pub(super) fn is_free() -> bool {
    pace().is_free()
}

/// Whether process time stands still while the process computes.
pub(super) fn stands_still() -> bool {
    let pace = pace();
    !pace.real && pace.cpu == 0.0
}

/// Real nanoseconds until process time reaches `deadline_ns` if nothing changes; none if it stands still.
pub(super) fn real_ns_until(deadline_ns: u64) -> Option<u64> {
    let rate = f64::from_bits(LINE.rate.load(Ordering::Relaxed));
    let left_ns = deadline_ns.saturating_sub(now_ns());
    (rate > 0.0).then(|| (left_ns as f64 / rate) as u64)
}

/// Nanoseconds that were skipped so far.
pub(super) fn skipped_ns() -> u64 {
    LINE.skipped_ns.load(Ordering::Relaxed)
}

/// Unix time on the process clock in nanoseconds.
pub(super) fn wall_ns() -> u64 {
    match WALL_OFFSET_NS.load(Ordering::Relaxed) {
        0 => sys::kernel_clock_ns(libc::CLOCK_REALTIME),
        offset_ns => now_ns() + offset_ns,
    }
}

/// Process time at a Unix time in nanoseconds.
pub(super) fn from_wall_ns(wall_ns: u64) -> u64 {
    wall_ns.saturating_sub(WALL_OFFSET_NS.load(Ordering::Relaxed))
}
