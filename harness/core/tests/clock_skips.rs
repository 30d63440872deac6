//! The skipping clock: what waits is skipped, what works is not, and nothing that waits is overrun.
//!
//! The clock is one per process, so these tests share it and run one after another. They bound real time only where
//! hours of process time stand against it.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]
// What these tests are about.
#![allow(clippy::disallowed_methods)]

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use lakemark_core::clock::{self, Cpu, Mode};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn switched_on() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let switched = clock::switch_on(Mode::Skip, Cpu::Measured, true).expect("the clock's thread starts");
    assert_eq!((switched.mode, switched.note), (Mode::Skip, None), "this machine can skip");
    guard
}

/// Process and real time that something takes.
fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration, Duration) {
    let (process_ns, real_ns) = (clock::now_ns(), clock::real_ns());
    let result = work();
    (result, Duration::from_nanos(clock::now_ns() - process_ns), Duration::from_nanos(clock::real_ns() - real_ns))
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime")
}

const HOUR: Duration = Duration::from_secs(3_600);
const MOMENT: Duration = Duration::from_secs(5);

fn assert_skipped(process: Duration, real: Duration, waited: Duration) {
    assert!(process >= waited, "{process:?} of process time for a wait of {waited:?}");
    assert!(process < waited + MOMENT, "{process:?} of process time for a wait of {waited:?}");
    assert!(real < MOMENT, "{real:?} of real time");
}

#[test]
fn a_store_wait_is_skipped() {
    let _guard = switched_on();
    let (_, process, real) = timed(|| runtime(2).block_on(clock::sleep(HOUR)));
    assert_skipped(process, real, HOUR);
}

#[test]
fn a_timer_of_a_library_is_skipped_and_not_overrun() {
    let _guard = switched_on();
    let runtime = runtime(2);
    let (overrun, process, real) = timed(|| {
        runtime.block_on(async {
            let library = tokio::spawn(async {
                let mut worst = Duration::ZERO;
                for _ in 0..60 {
                    let before = Instant::now();
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    worst = worst.max(before.elapsed() - Duration::from_secs(60));
                }
                worst
            });
            // A store wait far behind each of the library's timers.
            clock::sleep(HOUR).await;
            library.await.expect("the library's task ends")
        })
    });
    assert!(overrun < Duration::from_secs(1), "a timer of 60 s was overrun by {overrun:?}");
    assert_skipped(process, real, HOUR);
}

#[test]
fn a_sleeping_thread_is_skipped_and_not_overrun() {
    let _guard = switched_on();
    let (overrun, process, real) = timed(|| {
        let sleeper = std::thread::spawn(|| {
            let before = Instant::now();
            std::thread::sleep(Duration::from_secs(600));
            before.elapsed() - Duration::from_secs(600)
        });
        runtime(2).block_on(clock::sleep(HOUR));
        sleeper.join().expect("the sleeper ends")
    });
    assert!(overrun < Duration::from_secs(1), "a sleep of 600 s was overrun by {overrun:?}");
    assert_skipped(process, real, HOUR);
}

#[test]
fn a_channel_with_a_time_out_is_skipped_and_not_overrun() {
    let _guard = switched_on();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (overrun, process, real) = timed(|| {
        let before = Instant::now();
        assert!(receiver.recv_timeout(HOUR).is_err());
        before.elapsed() - HOUR
    });
    drop(sender);
    assert!(overrun < Duration::from_secs(1), "a time-out of an hour was overrun by {overrun:?}");
    assert_skipped(process, real, HOUR);
}

#[test]
fn two_runtimes_and_blocking_threads_wait_together() {
    let _guard = switched_on();
    let (one, other) = (runtime(2), runtime(1));
    let (order, process, real) = timed(|| {
        let order = std::sync::Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let order = order.clone();
            move || order.lock().expect("no test thread panics").push(name)
        };
        let (first, second, third) = (note("first"), note("second"), note("third"));
        let a = one.spawn(async move {
            clock::sleep(Duration::from_secs(1_200)).await;
            second();
        });
        let b = other.spawn(async move {
            tokio::time::sleep(Duration::from_secs(600)).await;
            first();
        });
        let c = one.spawn_blocking(move || {
            std::thread::sleep(Duration::from_secs(1_800));
            third();
        });
        one.block_on(async {
            for task in [a, b, c] {
                task.await.expect("the task ends");
            }
        });
        order.lock().expect("no test thread panics").clone()
    });
    assert_eq!(order, ["first", "second", "third"]);
    assert_skipped(process, real, Duration::from_secs(1_800));
}

#[test]
fn a_busy_thread_prevents_skipping() {
    let _guard = switched_on();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (skipped_ns, _) = clock::skipped();
    let waiter = std::thread::spawn(|| runtime(1).block_on(clock::sleep(HOUR)));
    let busy = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    };
    let begun = clock::real_ns();
    while clock::real_ns() - begun < 300_000_000 {
        std::thread::yield_now();
    }
    assert_eq!(clock::skipped().0, skipped_ns, "the clock skipped beside a busy thread");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    busy.join().expect("the busy thread ends");
    waiter.join().expect("the waiter ends");
    assert!(clock::skipped().0 > skipped_ns, "the clock skips once the thread has ended");
}

#[test]
fn a_held_clock_does_not_skip_and_runs_on() {
    let _guard = switched_on();
    let runtime = runtime(2);
    let (_, process, real) = timed(|| {
        let hold = clock::hold();
        let waiter = runtime.spawn(clock::sleep(HOUR));
        // Real time: what a catalog outside the process takes.
        let begun = clock::real_ns();
        while clock::real_ns() - begun < 200_000_000 {
            std::thread::yield_now();
        }
        assert!(!waiter.is_finished());
        drop(hold);
        runtime.block_on(waiter).expect("the waiter ends");
    });
    assert_skipped(process, real, HOUR);
    assert!(real >= Duration::from_millis(200));
}

#[test]
fn work_of_the_harness_takes_no_process_time() {
    let _guard = switched_on();
    let before = clock::cpu_time();
    let (_, process, real) = timed(|| {
        clock::frozen(|| {
            let begun = clock::real_ns();
            while clock::real_ns() - begun < 100_000_000 {
                std::hint::spin_loop();
            }
        });
    });
    // Whatever the machine does to this thread outside the frozen section counts on both clocks.
    assert!(process + Duration::from_millis(95) <= real, "{process:?} of process time, {real:?} of real time");
    // Less than the real time, if others use the CPU as well.
    assert!(clock::cpu_time().frozen_s > before.frozen_s + 0.001, "its CPU time is counted apart");
}

#[test]
fn time_never_runs_backwards() {
    let _guard = switched_on();
    let readers: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                let mut last = Instant::now();
                for _ in 0..200_000 {
                    let now = Instant::now();
                    // `Instant` subtraction saturates: compare instead.
                    assert!(now >= last, "{now:?} after {last:?}");
                    last = now;
                }
            })
        })
        .collect();
    for _ in 0..2_000 {
        clock::frozen(std::thread::yield_now);
        drop(clock::hold());
    }
    for reader in readers {
        reader.join().expect("time goes forward");
    }
}

#[test]
fn wall_time_moves_with_process_time() {
    let _guard = switched_on();
    let (wall, instant) = (SystemTime::now(), Instant::now());
    runtime(1).block_on(clock::sleep(HOUR));
    let (wall, instant) = (wall.elapsed().expect("wall time goes forward"), instant.elapsed());
    assert!(wall.abs_diff(instant) < Duration::from_millis(100), "{wall:?} of wall time, {instant:?} of process time");
}

/// A process that wakes up beside this one again and again, so that threads wait for a CPU between being woken and
/// running.
struct Neighbour(std::process::Child);

impl Neighbour {
    fn new() -> Self {
        let child = std::process::Command::new("sh").args(["-c", "while :; do sleep 0.0005; done"]).spawn();
        Self(child.expect("a shell starts"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As a catalog's client with a thread of its own does, on CPUs that others want as well: each call is a task that wakes
/// the thread, and each new wait wakes the clock's own. Whoever has been woken and has not run yet is not idle.
#[test]
fn a_thread_that_answers_calls_on_a_busy_machine_is_never_taken_for_idle() {
    const CALLS: u32 = 8_000;
    let _guard = switched_on();
    let neighbours = [Neighbour::new(), Neighbour::new()];
    let (calls, to_answer) = std::sync::mpsc::channel::<tokio::sync::oneshot::Sender<()>>();
    let answering = std::thread::spawn(move || {
        for call in to_answer {
            let _ = call.send(());
        }
    });
    let wait = Duration::from_millis(1);
    let ((), process, _) = timed(|| {
        runtime(2).block_on(async {
            for number in 0..CALLS {
                let calls = calls.clone();
                let call = async move {
                    let (answer, answered) = tokio::sync::oneshot::channel();
                    calls.send(answer).expect("the thread lives");
                    answered.await.expect("the thread answers");
                };
                let call = tokio::time::timeout(HOUR, tokio::spawn(call));
                assert!(call.await.is_ok(), "the clock passed call {number} by");
                clock::sleep(wait).await;
            }
        });
    });
    drop((calls, neighbours));
    answering.join().expect("the thread ends");
    assert!(process < wait * CALLS + 6 * MOMENT, "{process:?} of process time");
}
