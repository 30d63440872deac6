//! The clock that skips waiting.
//!
//! Process time is real time plus what was skipped. [`switch_on`] makes it the time of the whole process: the standard
//! library's `Instant` and `SystemTime`, tokio's timers, sleeping threads. When every thread sleeps and the earliest
//! thing that anyone waits for is a moment of process time, the clock moves there. While the process computes, process
//! time passes as [`Cpu`] says; while the harness itself works (the emulated store, the recorder) it stands still.
//!
//! What is not covered: C libraries that wait with libc's own condition variables wait in real time.

#[cfg(target_os = "linux")]
mod idle;
mod skipper;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod sys;
mod time;
mod waits;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub use waits::Sleep;

/// How waiting is done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// When nothing else can happen, the clock moves to the next moment that something waits for.
    #[default]
    Skip,
    /// Waits take real time.
    Real,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skip => "skip",
            Self::Real => "real",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(Self::Skip),
            "real" => Ok(Self::Real),
            _ => Err(format!("clock {text:?}: allowed are skip and real")),
        }
    }
}

/// How much process time computing takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cpu {
    /// As much as on this machine.
    #[default]
    Measured,
    /// None: the clock stands still while the process computes, as if every writer had a fast machine of its own.
    Free,
    /// This share of what it takes on this machine, to stand for a faster (below 1) or slower one.
    Scale(f64),
}

impl Cpu {
    /// Process seconds for each second of computing.
    pub fn rate(self) -> f64 {
        match self {
            Self::Measured => 1.0,
            Self::Free => 0.0,
            Self::Scale(factor) => factor,
        }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => f.write_str("measured"),
            Self::Free => f.write_str("free"),
            Self::Scale(factor) => write!(f, "scale={factor}"),
        }
    }
}

impl FromStr for Cpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("cpu {text:?}: allowed are measured, free and scale=F with F above 0 and at most 1000");
        match text {
            "measured" => Ok(Self::Measured),
            "free" => Ok(Self::Free),
            _ => {
                let factor: f64 = text.strip_prefix("scale=").and_then(|f| f.parse().ok()).ok_or_else(refused)?;
                if factor > 0.0 && factor <= 1000.0 { Ok(Self::Scale(factor)) } else { Err(refused()) }
            }
        }
    }
}

/// What was switched on.
#[derive(Clone, Debug)]
pub struct Switched {
    /// How waiting is done.
    pub mode: Mode,
    /// Why that is not what was asked for, if it is not.
    pub note: Option<&'static str>,
}

static PARALLELISM: OnceLock<usize> = OnceLock::new();

/// CPUs that a library finds in a process of its own on this machine, whether or not this one is kept to one of them.
pub fn parallelism() -> usize {
    *PARALLELISM.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Keeps this process to one CPU, the one at `place` among those that it may use. To be called before it starts threads.
/// Threads that hand work to each other then need no interrupt of another CPU, which costs more than what they hand
/// over. Says whether the system could.
pub fn keep_to_cpu(place: usize) -> bool {
    parallelism();
    sys::keep_to_cpu(place)
}

static SWITCHED: OnceLock<Switched> = OnceLock::new();

/// Moment of process time that records count from.
static START_NS: AtomicU64 = AtomicU64::new(0);

/// Makes process time the time of this process, once and for all: a second call changes nothing and answers as the
/// first.
///
/// `catalog_outside` says that catalog calls wait for another process: the clock is held during them, and time passes
/// whatever `cpu` says. A catalog in this process takes CPU time like everything else, and its sleeps are known to the
/// clock: if it were held for one of those while computing is free, time would never pass.
///
/// # Errors
/// If the clock's thread cannot be started.
pub fn switch_on(mode: Mode, cpu: Cpu, catalog_outside: bool) -> std::io::Result<Switched> {
    if let Some(switched) = SWITCHED.get() {
        return Ok(switched.clone());
    }
    let note = if mode == Mode::Skip { why_not_skip() } else { None };
    let mode = if note.is_some() { Mode::Real } else { mode };
    match mode {
        Mode::Skip => skip(cpu, catalog_outside)?,
        Mode::Real => skipper::start_waiting()?,
    }
    START_NS.store(now_ns(), Ordering::Relaxed);
    Ok(SWITCHED.get_or_init(|| Switched { mode, note }).clone())
}

#[cfg(target_os = "linux")]
fn why_not_skip() -> Option<&'static str> {
    if !cfg!(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        Some("the clock can skip with glibc on x86_64 and aarch64 only")
    } else if !idle::Watch::is_possible() {
        Some("the clock can skip only where /proc shows schedstat and wchan, which this kernel does not")
    } else {
        None
    }
}

#[cfg(not(target_os = "linux"))]
fn why_not_skip() -> Option<&'static str> {
    Some("the clock can skip on Linux only")
}

#[cfg(target_os = "linux")]
fn skip(cpu: Cpu, catalog_outside: bool) -> std::io::Result<()> {
    time::configure(cpu.rate(), catalog_outside);
    sys::activate();
    skipper::start_skipping()
}

#[cfg(not(target_os = "linux"))]
fn skip(_: Cpu, _: bool) -> std::io::Result<()> {
    skipper::start_waiting()
}

/// Process time in nanoseconds since some moment before the process started.
pub fn now_ns() -> u64 {
    time::now_ns()
}

/// Unix time in milliseconds on the process clock.
pub fn wall_ms() -> i64 {
    i64::try_from(time::wall_ns() / 1_000_000).unwrap_or(i64::MAX)
}

/// Real monotonic time in nanoseconds.
pub fn real_ns() -> u64 {
    sys::monotonic_ns()
}

/// Makes this the moment that records count from.
pub fn start_records() {
    START_NS.store(now_ns(), Ordering::Relaxed);
}

/// A moment of process time as whole microseconds since the records' start.
pub fn since_start_us(ns: u64) -> u64 {
    ns.saturating_sub(START_NS.load(Ordering::Relaxed)) / 1_000
}

/// Waits until process time reaches a moment, in any runtime.
pub fn sleep_until(deadline_ns: u64) -> Sleep {
    Sleep::until(deadline_ns)
}

/// Waits for some process time, in any runtime.
pub fn sleep(duration: std::time::Duration) -> Sleep {
    Sleep::until(now_ns().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
}

/// Keeps the clock from skipping, while something is waited for that happens outside this process.
#[derive(Debug)]
#[must_use = "the clock is held until this is dropped"]
pub struct Hold(());

/// Holds the clock.
pub fn hold() -> Hold {
    time::change(1, 0);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        time::change(-1, 0);
    }
}

/// CPU time that threads spent in [`frozen`] sections.
static FROZEN_CPU_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static FROZEN_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Stands for the harness' own work: process time stands still until it is dropped.
///
/// It belongs to its thread and must not live across an await.
#[derive(Debug)]
struct Freeze {
    cpu_ns: u64,
    /// Not Send: the CPU time is the thread's.
    _thread: PhantomData<*const ()>,
}

impl Freeze {
    fn new() -> Self {
        let depth = FROZEN_DEPTH.get();
        FROZEN_DEPTH.set(depth + 1);
        if depth == 0 {
            time::change(0, 1);
        }
        Self { cpu_ns: sys::thread_cpu_ns(), _thread: PhantomData }
    }
}

impl Drop for Freeze {
    fn drop(&mut self) {
        let depth = FROZEN_DEPTH.get() - 1;
        FROZEN_DEPTH.set(depth);
        if depth == 0 {
            FROZEN_CPU_NS.fetch_add(sys::thread_cpu_ns().saturating_sub(self.cpu_ns), Ordering::Relaxed);
            time::change(0, -1);
        }
    }
}

/// Runs the harness' own work outside process time, and counts its CPU time apart from the library's.
pub fn frozen<R>(work: impl FnOnce() -> R) -> R {
    let _freeze = Freeze::new();
    work()
}

/// CPU time in seconds and what it was for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// All of the process.
    pub process_s: f64,
    /// The clock's own thread.
    pub clock_s: f64,
    /// Sections run by [`frozen`].
    pub frozen_s: f64,
}

/// CPU time used so far.
pub fn cpu_time() -> CpuTime {
    CpuTime {
        process_s: seconds(sys::process_cpu_ns()),
        clock_s: seconds(skipper::cpu_ns()),
        frozen_s: seconds(FROZEN_CPU_NS.load(Ordering::Relaxed)),
    }
}

/// CPU time of the process without the harness' own, in nanoseconds.
pub fn library_cpu_ns() -> u64 {
    sys::process_cpu_ns().saturating_sub(skipper::cpu_ns()).saturating_sub(FROZEN_CPU_NS.load(Ordering::Relaxed))
}

/// Process time that was skipped so far, in nanoseconds, and in how many steps.
pub fn skipped() -> (u64, u64) {
    (time::skipped_ns(), skipper::skips())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
