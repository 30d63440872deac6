//! Who waits for which moment of process time: one heap for the emulated store's waits and for the timed waits of
//! runtimes and threads.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::{sys, time};

/// How to wake what waits.
#[derive(Debug)]
enum Wake {
    /// A task of whatever runtime polled it.
    Task(Waker),
    /// A thread blocked on its alarm.
    Alarm(i32),
    /// A thread in a futex wait. Woken again and again until it has removed its entry, since a wake that comes before
    /// the kernel's wait began has no effect.
    Futex { address: usize, private: bool },
}

/// Deadline, and a number that tells equal deadlines apart in the order of their making.
type Key = (u64, u64);

#[derive(Debug, Default)]
struct Heap {
    next: u64,
    entries: BTreeMap<Key, Wake>,
    /// Whether the clock's thread waits for a change: a condition variable is not told for nobody.
    is_awaited: bool,
}

static HEAP: Mutex<Heap> = Mutex::new(Heap { next: 0, entries: BTreeMap::new(), is_awaited: false });
static CHANGED: Condvar = Condvar::new();

fn heap() -> MutexGuard<'static, Heap> {
    // An insertion or removal either happened or did not: a panic leaves a consistent heap.
    HEAP.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Heap {
    fn insert(&mut self, deadline_ns: u64, wake: Wake) -> Key {
        let key = (deadline_ns, self.next);
        self.next += 1;
        let is_first = self.entries.first_key_value().is_none_or(|(first, _)| key < *first);
        self.entries.insert(key, wake);
        if is_first && self.is_awaited {
            CHANGED.notify_one();
        }
        key
    }
}

/// A future that is ready once process time has reached its deadline, in any runtime and thread.
#[derive(Debug)]
#[must_use = "a wait does nothing unless awaited"]
pub struct Sleep {
    deadline_ns: u64,
    key: Option<Key>,
}

impl Sleep {
    pub(super) fn until(deadline_ns: u64) -> Self {
        Self { deadline_ns, key: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if time::now_ns() >= self.deadline_ns {
            return Poll::Ready(());
        }
        let waker = context.waker();
        let mut heap = heap();
        let known = self.key.and_then(|key| heap.entries.get_mut(&key));
        match known {
            Some(Wake::Task(registered)) => registered.clone_from(waker),
            _ => self.key = Some(heap.insert(self.deadline_ns, Wake::Task(waker.clone()))),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            heap().entries.remove(&key);
        }
    }
}

/// A thread's timed wait, on the heap until dropped.
#[derive(Debug)]
pub(super) struct Blocked(Key);

impl Blocked {
    /// A thread that blocks on its alarm.
    pub(super) fn alarm(deadline_ns: u64, alarm: i32) -> Self {
        Self(heap().insert(deadline_ns, Wake::Alarm(alarm)))
    }

    /// A thread that blocks on a futex.
    pub(super) fn futex(deadline_ns: u64, address: usize, private: bool) -> Self {
        Self(heap().insert(deadline_ns, Wake::Futex { address, private }))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        heap().entries.remove(&self.0);
    }
}

/// Wakes everything whose deadline is reached. Says whether there was anything.
pub(super) fn wake_due(now_ns: u64) -> bool {
    let mut tasks = Vec::new();
    let mut any = false;
    {
        let mut heap = heap();
        let due: Vec<Key> = heap.entries.range(..=(now_ns, u64::MAX)).map(|(key, _)| *key).collect();
        for key in due {
            any = true;
            match heap.entries.get(&key) {
                Some(Wake::Futex { address, private }) => sys::count_woken(sys::wake_futex(*address, *private)),
                Some(Wake::Alarm(alarm)) => {
                    sys::ring(*alarm);
                    heap.entries.remove(&key);
                }
                Some(Wake::Task(_)) => {
                    if let Some(Wake::Task(waker)) = heap.entries.remove(&key) {
                        tasks.push(waker);
                    }
                }
                None => {}
            }
        }
    }
    // Outside the lock: a waker may run code that registers another wait.
    tasks.into_iter().for_each(Waker::wake);
    any
}

/// The earliest deadline, if anything waits.
pub(super) fn first_deadline_ns() -> Option<u64> {
    heap().entries.first_key_value().map(|((deadline_ns, _), _)| *deadline_ns)
}

/// Blocks until something waits.
pub(super) fn until_any() {
    let mut heap = heap();
    heap.is_awaited = true;
    while heap.entries.is_empty() {
        heap = CHANGED.wait(heap).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    heap.is_awaited = false;
}

/// Blocks for at most `duration` of real time, less if an earlier deadline comes in. For a clock that does not skip.
pub(super) fn until_earlier(first_ns: u64, duration: std::time::Duration) {
    let mut heap = heap();
    if heap.entries.first_key_value().is_some_and(|((deadline_ns, _), _)| *deadline_ns == first_ns) {
        heap.is_awaited = true;
        let (mut heap, _) = CHANGED.wait_timeout(heap, duration).unwrap_or_else(|poisoned| poisoned.into_inner());
        heap.is_awaited = false;
    }
}
