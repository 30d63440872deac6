//! The skipping clock with free CPU: time stands still while the process computes.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]
// What these tests are about.
#![allow(clippy::disallowed_methods)]

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lakemark_core::clock::{self, Cpu, Mode};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The clock is one per process: another test's waits would move it.
fn switched_on() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    clock::switch_on(Mode::Skip, Cpu::Free, false).expect("the clock's thread starts");
    guard
}

#[test]
fn computing_takes_no_process_time_and_waits_are_exact() {
    let _guard = switched_on();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let begun_ns = clock::now_ns();
    let waits_ms = [5_u64, 250, 1, 86_400_000];
    runtime.block_on(async {
        for wait_ms in waits_ms {
            clock::sleep(Duration::from_millis(wait_ms)).await;
            let busy_ns = clock::real_ns();
            while clock::real_ns() - busy_ns < 2_000_000 {
                std::hint::spin_loop();
            }
        }
    });
    assert_eq!(clock::now_ns() - begun_ns, waits_ms.iter().sum::<u64>() * 1_000_000);
}

#[test]
fn concurrent_waits_end_in_the_order_of_their_deadlines() {
    let _guard = switched_on();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let ends = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    runtime.block_on(async {
        let begun_ns = clock::now_ns();
        let tasks: Vec<_> = (0..200_u64)
            .map(|n| {
                let ends = ends.clone();
                let offset_ns = (n * 7_919 % 200) * 1_000;
                tokio::spawn(async move {
                    clock::sleep_until(begun_ns + 1_000_000 + offset_ns).await;
                    let end_ns = clock::now_ns() - begun_ns;
                    ends.lock().expect("no task panics").push((offset_ns, end_ns));
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("the task ends");
        }
    });
    let ends = ends.lock().expect("no task panics").clone();
    let expected: Vec<(u64, u64)> = (0..200).map(|n| (n * 1_000, 1_000_000 + n * 1_000)).collect();
    assert_eq!(ends, expected);
}

#[test]
fn a_catalog_in_the_process_that_sleeps_does_not_stop_the_clock() {
    let _guard = switched_on();
    let begun_ns = clock::now_ns();
    let hold = clock::hold();
    // As SQLite does when a lock is taken: on a thread of its own, in C's nanosleep.
    std::thread::spawn(|| std::thread::sleep(Duration::from_millis(10))).join().expect("the sleeper ends");
    drop(hold);
    assert!(clock::now_ns() - begun_ns >= 10_000_000);
}

/// Threads hand a token round, each asleep but the one that has it, while another wait is outstanding: at no moment may the
/// clock take the process for idle, however briefly a woken thread has not run yet.
#[test]
fn a_token_handed_round_among_sleeping_threads_takes_no_process_time() {
    const THREADS: usize = 60;
    const ROUNDS: usize = 60;
    let _guard = switched_on();
    let begun_ns = clock::now_ns();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let other = runtime.spawn(clock::sleep(Duration::from_secs(1)));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| std::sync::mpsc::channel::<usize>()).unzip();
    let (done, is_done) = std::sync::mpsc::channel();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(number, receiver)| {
            let next = senders[(number + 1) % THREADS].clone();
            let done = done.clone();
            std::thread::spawn(move || {
                while let Ok(hops) = receiver.recv() {
                    if hops == 0 {
                        let _ = done.send(clock::now_ns());
                    } else if next.send(hops - 1).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    // One after the other, so that all sleep when the token comes, and the clock has seen them asleep.
    for _ in 0..ROUNDS {
        senders[0].send(THREADS * 3).expect("the first thread lives");
        assert_eq!(is_done.recv().expect("the token comes back"), begun_ns, "the clock moved while a thread was awake");
        std::thread::yield_now();
    }
    runtime.block_on(other).expect("the wait ends");
    assert_eq!(clock::now_ns(), begun_ns + 1_000_000_000);
    // Every sender is gone once the threads that hold the others end: the first to fail ends the chain.
    drop(senders);
    drop(threads);
}

/// Tasks of two runtimes wait, and tell a task of the other runtime: it hears of it at that moment, although each
/// runtime's own thread moves the clock when it has nothing left to do.
#[test]
fn what_runtimes_tell_each_other_takes_no_process_time() {
    const TASKS: u64 = 50;
    const WAITS: u64 = 40;
    let _guard = switched_on();
    let runtimes: Vec<_> = [1, 2]
        .map(|threads| {
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime")
        })
        .into_iter()
        .collect();
    let mut heard = Vec::new();
    for task in 0..TASKS {
        for (here, there) in [(0, 1), (1, 0)] {
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel::<u64>();
            runtimes[here].spawn(async move {
                for wait in 0..WAITS {
                    let us = (task * 7_919 + wait * 104_729) % 1_000;
                    clock::sleep(Duration::from_micros(us)).await;
                    tell.send(clock::now_ns()).expect("the other listens");
                }
            });
            heard.push(runtimes[there].spawn(async move {
                let mut late_ns = 0;
                while let Some(sent_ns) = told.recv().await {
                    late_ns += clock::now_ns() - sent_ns;
                }
                late_ns
            }));
        }
    }
    let late_ns = runtimes[0].block_on(async {
        let mut late_ns = 0;
        for heard in heard {
            late_ns += heard.await.expect("it heard all");
        }
        late_ns
    });
    assert_eq!(late_ns, 0, "the clock moved while somebody had something to do");
}
