//! Every unsafe line of the clock: the C functions that this process answers itself, and the system calls behind them.
//!
//! The executable defines `clock_gettime`, `epoll_wait`, `nanosleep`, `clock_nanosleep` and `syscall`. The dynamic
//! linker resolves a symbol to the executable before it looks into libc, so the Rust standard library, tokio and every
//! crate call these definitions. Until [`activate`] each passes straight through to libc's own, found once with
//! `dlsym(RTLD_NEXT, …)`; from then on time is process time and a timed wait ends when process time reaches its end.
//!
//! Why each unsafe operation is sound is said where it stands; what they share:
//! - the definitions have the C prototypes of the functions they stand for, so a caller's contract (valid pointers) is
//!   the one that libc documents, and pointers are handed on unchanged or read once where libc would read them;
//! - `syscall` is variadic in C. On x86_64 and aarch64 Linux a variadic call passes integer arguments exactly as a call
//!   of fixed arity does, so a definition with seven integers sees them in place; those that the caller did not pass
//!   hold garbage, which is handed on and ignored by the kernel, as with libc's own;
//! - calls made from here to find the time or to wait never allocate in the async-signal sense: they take no lock that
//!   a caller of these functions could hold.

#![allow(unsafe_code)]
// libc's names and argument orders.
#![allow(clippy::similar_names)]

mod blocked;
mod symbols;

use std::cell::Cell;
use std::ffi::CStr;
use std::os::raw::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use libc::{clockid_t, epoll_event, timespec};

use self::blocked::Blocking;
pub(super) use self::blocked::{
    Place, Wakes, await_idle, await_told, be_the_clock, count_woken, others_may_be_blocked, rest, rest_of_the_clock,
    times_told,
};
use super::{skipper, time, waits};

/// Whether time is process time in this process.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Switches the definitions on. There is no way back: instants already handed out would run backwards.
pub(super) fn activate() {
    ACTIVE.store(true, Ordering::SeqCst);
}

fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// A libc function that this executable shadows.
struct Shadowed {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Shadowed {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a valid C string; RTLD_NEXT asks for the definition after this executable's.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // Without libc's function there is no time and no waiting: nothing can go on.
            std::process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

static CLOCK_GETTIME: Shadowed = Shadowed::new(c"clock_gettime");
static EPOLL_WAIT: Shadowed = Shadowed::new(c"epoll_wait");
static NANOSLEEP: Shadowed = Shadowed::new(c"nanosleep");
static CLOCK_NANOSLEEP: Shadowed = Shadowed::new(c"clock_nanosleep");
static SYSCALL: Shadowed = Shadowed::new(c"syscall");

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;
type EpollWait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;
type Nanosleep = unsafe extern "C" fn(*const timespec, *mut timespec) -> c_int;
type ClockNanosleep = unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int;
type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;

fn real_clock_gettime(clock: clockid_t, out: *mut timespec) -> c_int {
    // SAFETY: the address is libc's clock_gettime, which has this type; `out` is the caller's.
    unsafe { std::mem::transmute::<*mut c_void, ClockGettime>(CLOCK_GETTIME.address())(clock, out) }
}

/// Time of one of the kernel's clocks in nanoseconds, untouched.
pub(super) fn kernel_clock_ns(clock: clockid_t) -> u64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // A clock that does not exist leaves zero: no such clock is asked for.
    real_clock_gettime(clock, &raw mut now);
    to_ns(&now)
}

/// Real monotonic time in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    kernel_clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of the process in nanoseconds.
pub(super) fn process_cpu_ns() -> u64 {
    kernel_clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread in nanoseconds.
pub(super) fn thread_cpu_ns() -> u64 {
    kernel_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The clock that shows the calling thread's CPU time to other threads; none if the system has no such clock.
pub(super) fn own_cpu_clock() -> Option<clockid_t> {
    let mut clock: clockid_t = 0;
    // SAFETY: `pthread_self` is the calling thread, and `clock` outlives the call.
    let status = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    (status == 0).then_some(clock)
}

/// Kernel's number of the calling thread, as in `/proc/self/task`.
pub(super) fn own_thread_id() -> i32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Keeps the calling thread, and those that it starts from now on, to one of the CPUs that it may run on: the one at
/// `place` among them, counted round. Says whether it could.
pub(super) fn keep_to_cpu(place: usize) -> bool {
    // SAFETY: an all-zero set is an empty one.
    let (mut allowed, mut kept) = unsafe { (std::mem::zeroed::<libc::cpu_set_t>(), std::mem::zeroed()) };
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: the set outlives the call and has the size given; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
        return false;
    }
    let is_allowed = |cpu: &usize| {
        // SAFETY: the number is below the capacity of a set.
        unsafe { libc::CPU_ISSET(*cpu, &allowed) }
    };
    let cpus: Vec<usize> = (0..8 * size).filter(is_allowed).collect();
    let Some(cpu) = cpus.get(place % cpus.len().max(1)) else { return false };
    // SAFETY: as above; both calls touch the given set alone.
    unsafe {
        libc::CPU_SET(*cpu, &mut kept);
        libc::sched_setaffinity(0, size, &raw const kept) == 0
    }
}

/// Lets the calling thread sleep as briefly as it asks for, instead of up to 50 µs longer.
pub(super) fn set_fine_sleep() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and changes the calling thread alone. Failure costs time only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as c_long, 0, 0, 0) };
}

/// Sleeps in real time.
pub(super) fn real_sleep(duration: Duration) {
    let time = to_timespec(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    // SAFETY: the address is libc's nanosleep; `time` outlives the call and no remainder is asked for.
    unsafe {
        std::mem::transmute::<*mut c_void, Nanosleep>(NANOSLEEP.address())(&raw const time, std::ptr::null_mut())
    };
}

fn to_ns(time: &timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn to_timespec(ns: u64) -> timespec {
    timespec {
        tv_sec: libc::time_t::try_from(ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        // Less than 10⁹, so it fits on every target.
        tv_nsec: (ns % 1_000_000_000) as c_long,
    }
}

fn set_errno(value: c_int) {
    // SAFETY: the pointer is to the calling thread's errno, valid for as long as the thread runs.
    unsafe { *libc::__errno_location() = value };
}

/// A file descriptor that a thread blocks on until the clock's thread writes to it.
#[derive(Debug)]
pub(super) struct Alarm(c_int);

impl Alarm {
    fn new() -> Option<Self> {
        // SAFETY: eventfd takes two integers.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        (descriptor >= 0).then_some(Self(descriptor))
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: reads eight bytes into a u64; an empty, non-blocking eventfd answers EAGAIN, which is fine.
        unsafe { libc::read(self.0, (&raw mut count).cast(), 8) };
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open and owned by this value.
        unsafe { libc::close(self.0) };
    }
}

/// Sets an alarm off. The thread that waits on it may be gone, in which case the write fails or rings an alarm that
/// clears itself: a spurious end of a wait, after which the waiter looks at the time.
pub(super) fn ring(alarm: c_int) {
    let one = 1_u64;
    // SAFETY: writes eight bytes from a u64 that outlives the call.
    unsafe { libc::write(alarm, (&raw const one).cast(), 8) };
}

/// Wakes every thread that waits on a futex; gives how many there were. A thread woken for nothing looks at its condition again, as users of
/// futexes must.
pub(super) fn wake_futex(address: usize, private: bool) -> u64 {
    let operation = libc::FUTEX_WAKE | if private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    // SAFETY: FUTEX_WAKE does not touch the memory at the address; one that is no longer mapped gives EFAULT.
    let woken = unsafe { real_syscall()(libc::SYS_futex, address, c_long::from(operation), c_long::from(c_int::MAX)) };
    u64::try_from(woken).unwrap_or(0)
}

/// Waits in real time while the word holds `seen`, for `duration` at most. It may end early: its user looks again.
fn wait_futex(word: &'static AtomicU32, seen: u32, duration: Duration) {
    let time = to_timespec(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    let operation = c_long::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    // SAFETY: waits on a word that lives as long as the process, with a time that outlives the call.
    unsafe { real_syscall()(libc::SYS_futex, word.as_ptr(), operation, c_long::from(seen), &raw const time) };
}

fn real_syscall() -> Syscall {
    // SAFETY: the address is libc's syscall, which has this type.
    unsafe { std::mem::transmute::<*mut c_void, Syscall>(SYSCALL.address()) }
}

thread_local! {
    static ALARM: Alarms = const { Alarms(Cell::new(None)) };
}

/// A thread's alarm, made at its first timed wait.
struct Alarms(Cell<Option<Alarm>>);

/// Lends the calling thread's alarm. A wait within a wait (from a destructor, say) gets an alarm of its own.
fn with_alarm<R>(body: impl FnOnce(&Alarm) -> R) -> Option<R> {
    let taken = ALARM.try_with(|alarms| alarms.0.take()).ok().flatten();
    let alarm = taken.or_else(Alarm::new)?;
    let result = body(&alarm);
    let _ = ALARM.try_with(|alarms| alarms.0.set(Some(alarm)));
    Some(result)
}

/// Blocks the calling thread until the alarm rings, or a descriptor beside it is readable. Says whether it was
/// interrupted by a signal.
fn block(alarm: &Alarm, beside: Option<c_int>) -> bool {
    let mut descriptors = [
        libc::pollfd { fd: alarm.0, events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd: beside.unwrap_or(-1), events: libc::POLLIN, revents: 0 },
    ];
    let _blocking = Blocking::new();
    // SAFETY: the array outlives the call and its length is given; a negative descriptor is skipped by the kernel.
    let ready = unsafe { libc::poll(descriptors.as_mut_ptr(), 2, -1) };
    alarm.clear();
    ready < 0
}

/// Blocks the calling thread until process time reaches `deadline_ns`. Says whether it was interrupted by a signal.
fn block_until(deadline_ns: u64) -> bool {
    with_alarm(|alarm| {
        let wait = waits::Blocked::alarm(deadline_ns, alarm.0);
        let interrupted = loop {
            if time::now_ns() >= deadline_ns {
                break false;
            }
            if block(alarm, None) {
                break true;
            }
        };
        drop(wait);
        interrupted
    })
    .unwrap_or(false)
}
