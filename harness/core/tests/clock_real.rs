//! The clock that waits: the same waits, in real time.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]
// What these tests are about.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, SystemTime};

use lakemark_core::clock::{self, Cpu, Mode};

#[test]
fn waits_take_real_time_and_wall_time_is_the_systems() {
    clock::switch_on(Mode::Real, Cpu::Measured, true).expect("the clock's thread starts");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (process_ns, real_ns) = (clock::now_ns(), clock::real_ns());
    runtime.block_on(async {
        // The later deadline first: the clock's thread must take note of an earlier one that comes in.
        let long = tokio::spawn(clock::sleep(Duration::from_millis(120)));
        clock::sleep(Duration::from_millis(30)).await;
        assert!(!long.is_finished());
        long.await.expect("the wait ends");
    });
    let (process_ns, real_ns) = (clock::now_ns() - process_ns, clock::real_ns() - real_ns);
    assert!(
        process_ns >= 120_000_000 && real_ns >= 120_000_000,
        "{process_ns} ns of process time, {real_ns} ns of real time"
    );
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(wall.abs_diff(u128::try_from(clock::wall_ms()).expect("after 1970")) < 1_000);
    assert_eq!(clock::skipped(), (0, 0));
}
