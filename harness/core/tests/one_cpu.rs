//! A process that keeps to one CPU.

#![cfg(target_os = "linux")]

use std::thread::{self, available_parallelism};

use lakemark_core::clock;

#[test]
fn threads_started_afterwards_keep_to_it_and_the_machine_is_still_known() {
    // A thread of its own: the rest of this process stays where it may be.
    let (before, kept, after, known) = thread::spawn(|| {
        let before = available_parallelism().unwrap().get();
        let kept = clock::keep_to_cpu(1);
        let after = thread::spawn(|| available_parallelism().unwrap().get()).join().unwrap();
        (before, kept, after, clock::parallelism())
    })
    .join()
    .unwrap();
    assert!(kept);
    assert_eq!(after, 1);
    assert_eq!(known, before);
}
