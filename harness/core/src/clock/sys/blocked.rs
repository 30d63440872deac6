//! Which threads block? The count that tells the clock's thread when to look whether the process is idle, and what spares
//! it to look at threads that cannot have run since it last looked.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::{own_thread_id, real_sleep, wait_futex, wake_futex};

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

/// Threads that can have a place in the register. Those beyond are looked at each time.
const PLACES: usize = 4_096;

/// A thread's place in the register: how often it began and ended to wait for a futex. While the count is odd it is in
/// such a wait, or about to be.
#[derive(Debug)]
#[repr(align(64))]
pub(in crate::clock) struct Place {
    /// Kernel's number of the thread; 0 for none.
    thread: AtomicI32,
    episode: AtomicU64,
}

/// The register. Without a lock: threads take their place in it while they are about to wait for one.
static REGISTER: [Place; PLACES] = [const { Place { thread: AtomicI32::new(0), episode: AtomicU64::new(0) } }; PLACES];

/// Places that were ever taken, from the first.
static PLACES_USED: AtomicU32 = AtomicU32::new(0);

impl Place {
    fn take() -> Option<&'static Self> {
        let thread = own_thread_id();
        let free =
            |place: &&Self| place.thread.compare_exchange(0, thread, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let number = REGISTER.iter().position(|place| free(&place))?;
        PLACES_USED.fetch_max(u32::try_from(number + 1).unwrap_or(u32::MAX), Ordering::SeqCst);
        Some(&REGISTER[number])
    }

    /// The place of a thread, if it has one.
    pub(in crate::clock) fn of(thread: i32) -> Option<&'static Self> {
        let used = PLACES_USED.load(Ordering::SeqCst) as usize;
        REGISTER[..used.min(PLACES)].iter().find(|place| place.thread.load(Ordering::SeqCst) == thread)
    }

    /// Which wait for a futex a thread is in; none if it is in none, or the place is another's by now.
    pub(in crate::clock) fn wait_of(&self, thread: i32) -> Option<u64> {
        let episode = self.episode.load(Ordering::SeqCst);
        (episode % 2 == 1 && self.thread.load(Ordering::SeqCst) == thread).then_some(episode)
    }
}

/// Wakes of futexes so far: threads that a wake ended the wait of, as the kernel counted them, and waits that such a wake
/// ended, as those threads found on their return. Between the two a thread was woken and may not have run yet.
static WOKEN: AtomicU64 = AtomicU64::new(0);
static RETURNED: AtomicU64 = AtomicU64::new(0);

/// The two counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::clock) struct Wakes {
    woken: u64,
    returned: u64,
}

impl Wakes {
    /// As they stand.
    pub(in crate::clock) fn now() -> Self {
        // In this order, a thread that returns between the two makes them unequal, never equal.
        let returned = RETURNED.load(Ordering::SeqCst);
        Self { woken: WOKEN.load(Ordering::SeqCst), returned }
    }

    /// Threads woken that have not returned, and some constant: waits from before the clock was switched on are woken
    /// and never counted as returned.
    pub(in crate::clock) fn outstanding(self) -> u64 {
        self.woken.wrapping_sub(self.returned)
    }
}

/// Counts threads that a wake has woken. Its caller runs until it has counted.
pub(in crate::clock) fn count_woken(threads: u64) {
    WOKEN.fetch_add(threads, Ordering::SeqCst);
}

/// Counts a wait that a wake ended, after its thread has said that it blocks no more.
pub(super) fn count_returned() {
    RETURNED.fetch_add(1, Ordering::SeqCst);
}

/// A thread's membership in [`KNOWN`].
struct Membership {
    place: Option<&'static Place>,
}

impl Membership {
    fn new() -> Self {
        KNOWN.fetch_add(1, Ordering::SeqCst);
        Self { place: Place::take() }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.thread.store(0, Ordering::SeqCst);
        }
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
    /// Where its wait for a futex is entered.
    place: Option<&'static Place>,
}

impl Blocking {
    pub(super) fn new() -> Self {
        Self::count().0
    }

    /// In a wait for a futex, without an end of its own.
    pub(super) fn in_futex() -> Self {
        let (mut blocking, place) = Self::count();
        blocking.place = place;
        if let Some(place) = place {
            place.episode.fetch_add(1, Ordering::SeqCst);
        }
        blocking
    }

    fn count() -> (Self, Option<&'static Place>) {
        if IS_CLOCK.try_with(Cell::get).unwrap_or(false) {
            return (Self { is_counted: false, place: None }, None);
        }
        // A thread whose destructors run is counted no more: it is about to end.
        let place = MEMBERSHIP.try_with(|membership| membership.place).ok().flatten();
        if BLOCKED.fetch_add(1, Ordering::SeqCst) + 1 >= KNOWN.load(Ordering::SeqCst) {
            tell_clock();
        }
        (Self { is_counted: true, place: None }, place)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.episode.fetch_add(1, Ordering::SeqCst);
        }
        if self.is_counted {
            BLOCKED.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether every known thread but the calling one may be blocked.
pub(in crate::clock) fn others_may_be_blocked() -> bool {
    BLOCKED.load(Ordering::SeqCst) + 1 >= KNOWN.load(Ordering::SeqCst)
}

fn tell_clock() {
    MAY_BE_IDLE.fetch_add(1, Ordering::SeqCst);
    if IS_AWAITED.load(Ordering::SeqCst) {
        wake_futex(MAY_BE_IDLE.as_ptr() as usize, true);
    }
}

/// What [`await_told`] compares.
pub(in crate::clock) fn times_told() -> u32 {
    MAY_BE_IDLE.load(Ordering::SeqCst)
}

/// Rests of the clock's thread that began, and that ended: odd while it rests.
static RESTS: AtomicU64 = AtomicU64::new(0);

/// A stretch in which the clock's thread only sleeps, in real time: it holds no lock, wakes nobody and has counted what it
/// has to count.
struct Rest;

impl Rest {
    fn begin() -> Self {
        RESTS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        RESTS.fetch_add(1, Ordering::SeqCst);
    }
}

/// Which rest the clock's thread is in; none if it is awake, or may be.
pub(in crate::clock) fn rest_of_the_clock() -> Option<u64> {
    let rests = RESTS.load(Ordering::SeqCst);
    (rests % 2 == 1).then_some(rests)
}

/// Lets the clock's thread sleep in real time.
pub(in crate::clock) fn rest(duration: Duration) {
    let _rest = Rest::begin();
    real_sleep(duration);
}

/// Sleeps in real time until a thread says, after that many times, that every known thread may be blocked, for `duration`
/// at most.
pub(in crate::clock) fn await_told(times: u32, duration: Duration) {
    let _rest = Rest::begin();
    IS_AWAITED.store(true, Ordering::SeqCst);
    wait_futex(&MAY_BE_IDLE, times, duration);
    IS_AWAITED.store(false, Ordering::SeqCst);
}

/// Sleeps in real time until every known thread may be blocked, for `duration` at most. Says whether it slept.
pub(in crate::clock) fn await_idle(duration: Duration) -> bool {
    let _rest = Rest::begin();
    let seen = MAY_BE_IDLE.load(Ordering::SeqCst);
    IS_AWAITED.store(true, Ordering::SeqCst);
    let is_busy = BLOCKED.load(Ordering::SeqCst) < KNOWN.load(Ordering::SeqCst);
    if is_busy {
        wait_futex(&MAY_BE_IDLE, seen, duration);
    }
    IS_AWAITED.store(false, Ordering::SeqCst);
    is_busy
}
