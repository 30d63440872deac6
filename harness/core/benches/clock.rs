//! What one skipped wait costs in real time, with as many sleeping threads beside it as a format's library brings.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use lakemark_core::clock::{self, Cpu, Mode};

fn waits(criterion: &mut Criterion) {
    // Criterion's own timing is process time from here on, so time each iteration on the real clock.
    clock::switch_on(Mode::Skip, Cpu::Measured, true).expect("the clock's thread starts");
    for threads in [0_usize, 8, 32] {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let (stop, _) = tokio::sync::broadcast::channel::<()>(1);
        for _ in 0..threads {
            let mut stopped = stop.subscribe();
            runtime.spawn_blocking(move || stopped.blocking_recv());
        }
        criterion.bench_function(&format!("wait/{threads}-other-threads"), |bench| {
            bench.iter_custom(|iterations| {
                let begun_ns = clock::real_ns();
                runtime.block_on(async {
                    for _ in 0..iterations {
                        clock::sleep(Duration::from_millis(50)).await;
                    }
                });
                Duration::from_nanos(clock::real_ns() - begun_ns)
            });
        });
        drop(stop);
    }
}

fn looking(criterion: &mut Criterion) {
    criterion.bench_function("now", |bench| bench.iter(clock::now_ns));
    criterion.bench_function("frozen", |bench| bench.iter(|| clock::frozen(|| 1)));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = looking, waits
}
criterion_main!(benches);
