//! Whether the process is idle: every thread but the one that asks sleeps, and none was scheduled while that was found
//! out.
//!
//! One look at the threads is no proof, since one thread can wake another behind the look. The proof takes three, and
//! each is over all threads before the next begins:
//! 1. how often the kernel has put each thread on a CPU (third field of `schedstat`);
//! 2. that each is off the CPUs and off their queues: `wchan` names where it sleeps. The state letter alone does not
//!    tell: a thread that is about to sleep shows `S` while it still runs, or waits for a CPU, and may yet find that it
//!    need not sleep;
//! 3. that each still sleeps (not woken, and not waiting for a disk), and that no count changed.
//!
//! Suppose that a thread ran after the second look. It slept at the second look, so it was put on a CPU after the first
//! and its count changed, or it waits for a CPU: the third look tells. A thread that ran *during* the
//! second look, before it was looked at, may have woken one that was looked at earlier: that one, too, has run or is
//! about to at the third look.
//!
//! With hundreds of threads that wait for work, the looks cost more than what they decide. A thread that a proof has
//! found asleep in a wait for a futex, and that has not left that wait since, is passed over as long as every thread
//! that a futex woke has returned from its wait: nothing else could have woken it. The counts of both are compared
//! before the first look and after the last. A thread counts the wakes it makes before it can sleep, and its return
//! after it has left its wait, so that a thread that was woken and has not run yet, or has run and sleeps again, is
//! never passed over: the counts differ, or the wait is another. Where the counts do not balance every thread is looked
//! at, and what is left over then, with all asleep, is the new balance.
//!
//! All of this holds for the clock's own thread as well, when another asks: it may be about to return from a wait, or
//! hold a lock that others wait for. While it rests, as it says itself, it does neither.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use super::sys;

const THREADS: &str = "/proc/self/task";

/// Looks at the threads of this process.
#[derive(Debug)]
pub(super) struct Watch {
    clock_thread: i32,
    threads: BTreeMap<i32, Thread>,
    /// Links of the folder of threads when it was last read: two more than there are threads.
    links: u64,
    /// Thread that was busy at the last look: the one to ask first.
    last_busy: Option<i32>,
    /// Wakes that stay outstanding while all threads sleep.
    balance: u64,
}

#[derive(Debug)]
struct Thread {
    stat: File,
    schedstat: File,
    wchan: File,
    /// Times that it was put on a CPU, at the first look.
    scheduled: Option<u64>,
    /// Its place in the register of waits, once it has one.
    place: Option<&'static sys::Place>,
    /// Wait for a futex that it was in before the first look.
    wait: Option<u64>,
    /// Wait in which a proof has found it asleep.
    asleep_in: Option<u64>,
    /// Whether it is passed over.
    is_passed_over: bool,
}

impl Thread {
    fn open(thread: i32) -> Option<Self> {
        let folder = format!("{THREADS}/{thread}");
        let stat = File::open(format!("{folder}/stat")).ok()?;
        let schedstat = File::open(format!("{folder}/schedstat")).ok()?;
        let wchan = File::open(format!("{folder}/wchan")).ok()?;
        Some(Self {
            stat,
            schedstat,
            wchan,
            scheduled: None,
            place: None,
            wait: None,
            asleep_in: None,
            is_passed_over: false,
        })
    }

    /// Which wait for a futex it is in, by the register.
    fn wait(&mut self, number: i32) -> Option<u64> {
        self.place = self.place.or_else(|| sys::Place::of(number));
        self.place?.wait_of(number)
    }

    /// Where it sleeps; none if it is on a CPU or in a queue for one.
    fn place(&self) -> Place {
        let mut buffer = [0_u8; 64];
        match self.wchan.read_at(&mut buffer, 0) {
            Ok(length) => Place::of(&buffer[..length]),
            Err(_) => Place::Ended,
        }
    }

    /// Whether it is on no CPU and in no queue for one.
    fn is_off_cpu(&self) -> bool {
        self.place() != Place::Nowhere
    }

    /// Whether it sleeps until something happens in this process, and not because of a disk.
    fn sleeps(&self) -> bool {
        match self.place() {
            Place::Nowhere => false,
            Place::Known | Place::Ended => true,
            Place::Other => {
                let mut buffer = [0_u8; 128];
                match self.stat.read_at(&mut buffer, 0) {
                    Ok(length) => state(&buffer[..length]) == Some(b'S'),
                    Err(_) => true,
                }
            }
        }
    }

    fn scheduled(&self) -> Option<u64> {
        let mut buffer = [0_u8; 80];
        let length = self.schedstat.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        text.split_ascii_whitespace().nth(2)?.parse().ok()
    }
}

/// The state letter in a `stat` line: after the name, which stands in parentheses and may itself contain any.
fn state(stat: &[u8]) -> Option<u8> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

/// Where a thread sleeps, as far as it matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// It does not.
    Nowhere,
    /// In a wait of the kernel that is always interruptible: state `S` without asking for it, which costs more.
    Known,
    /// Somewhere else.
    Other,
    /// It has ended since, and does not count.
    Ended,
}

impl Place {
    /// From what `wchan` says.
    fn of(wchan: &[u8]) -> Self {
        match wchan {
            b"" | b"0" => Self::Nowhere,
            name if name.starts_with(b"futex_") || name.starts_with(b"ep_poll") || name.starts_with(b"poll_") => {
                Self::Known
            }
            _ => Self::Other,
        }
    }
}

impl Watch {
    pub(super) const fn new(clock_thread: i32) -> Self {
        Self { clock_thread, threads: BTreeMap::new(), links: 0, last_busy: None, balance: 0 }
    }

    /// Whether this system tells what is needed.
    pub(super) fn is_possible() -> bool {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        // A thread that surely sleeps soon: what does the system say of it?
        let sleeper = std::thread::spawn(move || {
            let _ = ready.send(super::sys::own_thread_id());
            let _ = stopped.recv();
        });
        let thread = is_ready.recv().ok().and_then(Thread::open);
        let is_seen = thread.is_some_and(|thread| {
            thread.scheduled().is_some()
                && (0..1_000).any(|_| {
                    super::sys::real_sleep(std::time::Duration::from_millis(1));
                    thread.sleeps() && thread.is_off_cpu()
                })
        });
        drop(stop);
        sleeper.join().is_ok() && is_seen
    }

    /// Whether every thread but `asking`, which is the calling one, sleeps and none ran during the looks.
    pub(super) fn is_idle(&mut self, asking: i32) -> bool {
        // While one thread computes for long, asking it first saves asking all.
        if let Some(busy) = self.last_busy.take()
            && busy != asking
            && self.threads.get(&busy).is_some_and(|thread| !thread.is_off_cpu())
        {
            self.last_busy = Some(busy);
            return false;
        }
        let rest = sys::rest_of_the_clock();
        let wakes = sys::Wakes::now();
        let is_balanced = wakes.outstanding() == self.balance;
        let is_idle = self.count(asking, is_balanced, rest.is_some())
            && self.all(Thread::is_off_cpu)
            && self.all(|thread| thread.scheduled() == thread.scheduled && thread.sleeps())
            && self.knows_all()
            && sys::Wakes::now() == wakes
            && (rest.is_none() || sys::rest_of_the_clock() == rest);
        if is_idle {
            self.balance = wakes.outstanding();
            for (number, thread) in self.threads.iter_mut().filter(|(_, thread)| !thread.is_passed_over) {
                let wait = thread.wait;
                thread.asleep_in = thread.wait(*number).filter(|now| Some(*now) == wait);
            }
        }
        is_idle
    }

    /// First look: which threads there are, and how often each was put on a CPU.
    fn count(&mut self, asking: i32, is_balanced: bool, clock_rests: bool) -> bool {
        let Some(links) = links() else { return false };
        if links != self.links && !self.find_threads(links) {
            return false;
        }
        for (number, thread) in &mut self.threads {
            thread.wait = thread.wait(*number);
            let is_known_asleep = is_balanced && thread.wait.is_some() && thread.wait == thread.asleep_in;
            let rests = clock_rests && *number == self.clock_thread;
            thread.is_passed_over = *number == asking || is_known_asleep || rests;
            if thread.is_passed_over {
                continue;
            }
            thread.scheduled = thread.scheduled();
            if thread.scheduled.is_none() {
                // It has ended. Another may have been born in its place.
                self.links = 0;
                return false;
            }
        }
        true
    }

    fn find_threads(&mut self, links: u64) -> bool {
        let Some(present) = present_threads() else { return false };
        self.threads.retain(|thread, _| present.contains(thread));
        for number in present {
            if !self.threads.contains_key(&number)
                && let Some(thread) = Thread::open(number)
            {
                self.threads.insert(number, thread);
            }
        }
        self.links = links;
        true
    }

    fn all(&mut self, holds: impl Fn(&Thread) -> bool) -> bool {
        let busy = self.threads.iter().find(|(_, thread)| !thread.is_passed_over && !holds(thread));
        self.last_busy = busy.map(|(number, _)| *number);
        self.last_busy.is_none()
    }

    /// Whether no thread was born since the first look. One that took the place of another is known by its parent, which
    /// ran, unless that has ended as well; then the count of the ended one is missing.
    fn knows_all(&self) -> bool {
        links() == Some(self.links)
    }
}

fn links() -> Option<u64> {
    Some(fs::metadata(THREADS).ok()?.nlink())
}

fn present_threads() -> Option<Vec<i32>> {
    let entries = fs::read_dir(THREADS).ok()?;
    Some(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::{Place, state};

    #[test]
    fn state_stands_after_the_last_parenthesis() {
        assert_eq!(state(b"12 (a) R (b) S 1 2"), Some(b'S'));
        assert_eq!(state(b"12 (tokio) R 1 2"), Some(b'R'));
        assert_eq!(state(b"garbage"), None);
    }

    #[test]
    fn a_thread_on_a_cpu_sleeps_nowhere() {
        assert_eq!(Place::of(b"futex_wait_queue"), Place::Known);
        assert_eq!(Place::of(b"folio_wait_bit"), Place::Other);
        assert_eq!(Place::of(b"0"), Place::Nowhere);
        assert_eq!(Place::of(b""), Place::Nowhere);
    }
}
