//! The definitions that take the place of libc's.

use std::os::raw::{c_int, c_long, c_void};

use libc::{clockid_t, epoll_event, timespec};

use super::blocked::{Blocking, count_returned, count_woken};
use super::{
    CLOCK_NANOSLEEP, ClockNanosleep, EPOLL_WAIT, EpollWait, NANOSLEEP, Nanosleep, active, block, block_until,
    real_clock_gettime, real_syscall, set_errno, skipper, time, to_ns, to_timespec, waits, with_alarm,
};

/// Process time for clocks that count seconds passing; other clocks (CPU time) are the kernel's.
///
/// # Safety
/// As libc's `clock_gettime`: `out` is null or valid for writes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn clock_gettime(clock: clockid_t, out: *mut timespec) -> c_int {
    if !active() || out.is_null() {
        return real_clock_gettime(clock, out);
    }
    let ns = match clock {
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_BOOTTIME => {
            time::now_ns()
        }
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => time::wall_ns(),
        _ => return real_clock_gettime(clock, out),
    };
    // SAFETY: not null, and valid by this function's contract.
    unsafe { *out = to_timespec(ns) };
    0
}

/// Waits for events until process time has passed by `timeout` milliseconds.
///
/// # Safety
/// As libc's `epoll_wait`: `events` is valid for `capacity` entries.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    capacity: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the address is libc's epoll_wait; the arguments are the caller's.
    let real = |timeout: c_int| unsafe {
        std::mem::transmute::<*mut c_void, EpollWait>(EPOLL_WAIT.address())(epoll, events, capacity, timeout)
    };
    if !active() || timeout == 0 {
        return real(timeout);
    }
    // If nothing else can happen, what this thread waits for is a moment, or what another does then. Having moved the
    // clock there, it returns without an event, as such a wait may: what was woken may be its own to run.
    let move_clock = || {
        let mut ready = 0;
        let has_moved = skipper::skip_here(&mut || {
            ready = real(0);
            ready == 0
        });
        (has_moved || ready != 0).then_some(ready)
    };
    // Without an end there is no timer to note: such a wait ends by an event, which another thread must cause.
    if timeout < 0 {
        if let Some(ready) = move_clock() {
            return ready;
        }
        let _blocking = Blocking::new();
        return real(timeout);
    }
    let deadline_ns = time::now_ns().saturating_add(u64::from(timeout.unsigned_abs()) * 1_000_000);
    with_alarm(|alarm| {
        let wait = waits::Blocked::alarm(deadline_ns, alarm.0);
        let ready = loop {
            let ready = real(0);
            if ready != 0 || time::now_ns() >= deadline_ns {
                break ready;
            }
            if let Some(ready) = move_clock() {
                break ready;
            }
            if block(alarm, Some(epoll)) {
                break -1;
            }
        };
        drop(wait);
        ready
    })
    .unwrap_or_else(|| real(timeout))
}

/// Sleeps until process time has passed by `duration`.
///
/// # Safety
/// As libc's `nanosleep`: `duration` is valid for reads, `remainder` null or valid for writes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn nanosleep(duration: *const timespec, remainder: *mut timespec) -> c_int {
    if !active() || duration.is_null() {
        // SAFETY: the address is libc's nanosleep; the arguments are the caller's.
        return unsafe { std::mem::transmute::<*mut c_void, Nanosleep>(NANOSLEEP.address())(duration, remainder) };
    }
    // SAFETY: not null, and valid by this function's contract.
    let duration_ns = to_ns(unsafe { &*duration });
    let deadline_ns = time::now_ns().saturating_add(duration_ns);
    if block_until(deadline_ns) {
        if !remainder.is_null() {
            // SAFETY: not null, and valid by this function's contract.
            unsafe { *remainder = to_timespec(deadline_ns.saturating_sub(time::now_ns())) };
        }
        set_errno(libc::EINTR);
        return -1;
    }
    0
}

/// Sleeps until process time has passed by, or reached, `time`.
///
/// # Safety
/// As libc's `clock_nanosleep`: `time` is valid for reads, `remainder` null or valid for writes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    remainder: *mut timespec,
) -> c_int {
    let follows = matches!(clock, libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME | libc::CLOCK_REALTIME);
    if !active() || !follows || time.is_null() {
        // SAFETY: the address is libc's clock_nanosleep; the arguments are the caller's.
        return unsafe {
            std::mem::transmute::<*mut c_void, ClockNanosleep>(CLOCK_NANOSLEEP.address())(clock, flags, time, remainder)
        };
    }
    // SAFETY: not null, and valid by this function's contract.
    let asked_ns = to_ns(unsafe { &*time });
    let deadline_ns = if flags & libc::TIMER_ABSTIME == 0 {
        time::now_ns().saturating_add(asked_ns)
    } else if clock == libc::CLOCK_REALTIME {
        time::from_wall_ns(asked_ns)
    } else {
        asked_ns
    };
    if block_until(deadline_ns) {
        if flags & libc::TIMER_ABSTIME == 0 && !remainder.is_null() {
            // SAFETY: not null, and valid by this function's contract.
            unsafe { *remainder = to_timespec(deadline_ns.saturating_sub(time::now_ns())) };
        }
        return libc::EINTR;
    }
    0
}

/// System calls; of these a futex wait with an end is a timed wait (condition variables, `park_timeout`, channels with
/// a time-out), and ends when process time reaches it.
///
/// # Safety
/// As libc's `syscall`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: hands the caller's arguments on; see the module's argument on variadic calls.
    let real = |d: c_long| unsafe { real_syscall()(number, a, b, c, d, e, f) };
    if number != libc::SYS_futex || !active() {
        return real(d);
    }
    // The operation is a 32-bit argument: the upper half of the register is not defined.
    let operation = b as c_int;
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    if matches!(command, libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET) {
        let woken = real(d);
        count_woken(u64::try_from(woken).unwrap_or(0));
        return woken;
    }
    if !matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) {
        return real(d);
    }
    if d == 0 {
        let blocking = Blocking::in_futex();
        let result = real(d);
        drop(blocking);
        if result == 0 {
            count_returned();
        }
        return result;
    }
    // SAFETY: for a wait the fourth argument is a pointer to a timespec, and it is not null.
    let asked = || to_ns(unsafe { &*(d as *const timespec) });
    let deadline_ns = match command {
        libc::FUTEX_WAIT => time::now_ns().saturating_add(asked()),
        libc::FUTEX_WAIT_BITSET if operation & libc::FUTEX_CLOCK_REALTIME != 0 => time::from_wall_ns(asked()),
        _ => asked(),
    };
    if time::now_ns() >= deadline_ns {
        set_errno(libc::ETIMEDOUT);
        return -1;
    }
    let wait = waits::Blocked::futex(deadline_ns, a as usize, operation & libc::FUTEX_PRIVATE_FLAG != 0);
    // Without an end in real time: the clock's thread wakes the futex at the deadline, again and again until this
    // thread has noted it, so that a wake before the kernel's wait began is not lost.
    let blocking = Blocking::in_futex();
    let result = real(0);
    drop(blocking);
    if result == 0 {
        count_returned();
    }
    // Whatever the clock's thread does to end the wait, errno is the system call's.
    // SAFETY: the pointer is to the calling thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    drop(wait);
    if result == 0 && time::now_ns() >= deadline_ns {
        set_errno(libc::ETIMEDOUT);
        return -1;
    }
    set_errno(errno);
    result
}
