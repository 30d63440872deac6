use std::convert::Infallible;

use proptest::prelude::*;

use super::*;
use crate::record::{Layer, Method};

const WINDOW: Window = Window {
    start_us: 1_000_000,
    end_us: 11_000_000,
    writers: 2,
    library_cpu_s: 0.0,
    cpus: 2,
    cpu_saturation: None,
    backlog: 0,
};

fn operation(writer: u32, number: u64, end_us: u64, outcome: Outcome) -> Operation {
    let mut operation: Operation = serde_json::from_str(crate::run::tests::OPERATION).unwrap();
    (operation.writer, operation.operation, operation.outcome) = (writer, number, outcome);
    (operation.kind, operation.latency_us) = (OperationKind::Append, 500_000);
    operation.start_us = end_us - operation.latency_us;
    operation
}

fn attempt(writer: u32, operation: u64, outcome: Outcome, requests: u32) -> Attempt {
    Attempt {
        writer,
        operation,
        attempt: 0,
        layer: Layer::Store,
        start_us: 0,
        latency_us: 1_000,
        outcome,
        behind: 3,
        requests,
        read_bytes: 0,
        written_bytes: 0,
    }
}

fn request(writer: u32, operation: u64, method: Method) -> Request {
    Request {
        writer,
        operation,
        request: 0,
        method,
        key: "k".into(),
        class: "log".into(),
        start_us: 0,
        latency_us: 2_000,
        read_bytes: 5,
        written_bytes: 7,
        keys: None,
        status: 200,
        outcome: Outcome::Ok,
    }
}

fn read(operations: Vec<Operation>, attempts: Vec<Attempt>, requests: Vec<Request>) -> Concurrency {
    let prices = Prices { usd_per_1000_class_a: 5.0, usd_per_1000_class_b: 1.0, ..Prices::default() };
    let Ok(found) = Concurrency::from_records(
        WINDOW,
        Some(&prices),
        operations.into_iter().map(Ok::<_, Infallible>),
        attempts.into_iter().map(Ok),
        requests.into_iter().map(Ok),
    );
    found
}

#[test]
fn both_layers_are_counted_apart_and_what_lies_outside_is_left_out() {
    use Outcome::{Conflict, Ok};
    let mut early = operation(0, 0, 900_000, Ok);
    early.excluded = true;
    let found = read(
        vec![
            early,
            operation(0, 1, 3_000_000, Ok),
            operation(0, 2, 8_000_000, Ok),
            operation(1, 0, 9_000_000, Conflict),
        ],
        vec![
            attempt(0, 0, Ok, 1),
            attempt(0, 1, Conflict, 2),
            attempt(0, 1, Ok, 1),
            attempt(0, 2, Ok, 1),
            attempt(1, 0, Conflict, 1),
        ],
        vec![
            request(0, 0, Method::Put),
            request(0, 1, Method::List),
            request(0, 1, Method::Put),
            request(0, 1, Method::Put),
            // After the commit.
            request(0, 1, Method::Get),
            request(0, 2, Method::Put),
            request(1, 0, Method::Put),
            request(1, 0, Method::Get),
        ],
    );
    assert_eq!((found.commits, found.failed), (Operations(2), Operations(1)));
    assert_eq!((found.failed_operation_rate, found.failed_attempt_rate), (Some(1.0 / 3.0), Some(0.5)));
    assert_eq!((found.commits_per_s, found.attempts_per_commit), (Some(0.2), Some(2.0)));
    assert_eq!((found.time_per_commit_s(), found.time_per_attempt_s()), (Some(10.0), Some(5.0)));
    assert_eq!((found.behind_mean, found.behind_max), (Some(3.0), 3));
    // The lost attempt's two requests, and both of the failed operation.
    assert_eq!((found.spent.requests, found.wasted.requests), (7, 4));
    assert!((found.wasted.usd - 0.016).abs() < 1e-9 && (found.spent.usd - 0.027).abs() < 1e-9, "{found:?}");
    let fairness = found.fairness;
    assert_eq!((fairness.commits_min, fairness.commits_max, fairness.writers_without_commit), (0, 2, 1));
    // Writer 1 went without a commit all the time.
    assert_eq!(fairness.starvation_s_max, 10.0);
    let latency = found.commit_latency.unwrap();
    assert_eq!((latency.count, latency.mean_ms), (2, 500.0));
    assert!((latency.p50_ms - 500.0).abs() < 1.0 && (latency.max_ms - 500.0).abs() < 1.0, "{latency:?}");
    assert_eq!(found.failed_latency.unwrap().count, 1);
}

#[test]
fn a_late_start_is_in_the_latency_of_a_scheduled_operation() {
    let mut late = operation(0, 0, 5_000_000, Outcome::Ok);
    late.intended_us = Some(late.start_us - 2_000_000);
    assert_eq!(read(vec![late], vec![], vec![]).commit_latency.unwrap().mean_ms, 2_500.0);
}

#[test]
fn an_empty_cell_has_no_figures_but_a_goodput_of_none() {
    let found = read(vec![], vec![], vec![]);
    assert_eq!((found.commits_per_s, found.failed_attempt_rate, found.time_per_commit_s()), (Some(0.0), None, None));
    assert_eq!((found.commit_latency, found.wasted_cost_share(), found.attempts_per_commit), (None, None, None));
}

/// An operation with its attempts: how it ended, when, and for each lost attempt its class and requests.
type Sketch = (u32, bool, u64, Vec<(u8, u32)>, u32);

fn sketches() -> impl Strategy<Value = Vec<Sketch>> {
    let lost = prop::collection::vec((0u8..4, 0u32..4), 0..6);
    prop::collection::vec((0u32..4, any::<bool>(), 1_500_000u64..11_000_000, lost, 0u32..4), 0..60)
}

proptest! {
    /// The identities that every account keeps, whatever happened.
    #[test]
    fn accounts_balance(sketches in sketches()) {
        let failures = [Outcome::Conflict, Outcome::Throttled, Outcome::Error, Outcome::Unknown];
        let (mut operations, mut attempts, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (writer, is_ok, end_us, lost, after)) in (0..).zip(&sketches) {
            let outcome = if *is_ok { Outcome::Ok } else { Outcome::Conflict };
            operations.push(operation(*writer, number, *end_us, outcome));
            for (class, sent) in lost {
                attempts.push(attempt(*writer, number, failures[usize::from(*class)], *sent));
            }
            if *is_ok {
                attempts.push(attempt(*writer, number, Outcome::Ok, 1));
            }
            let sent = lost.iter().map(|(_, sent)| sent).sum::<u32>() + u32::from(*is_ok) + after;
            requests.extend((0..sent).map(|_| request(*writer, number, Method::Put)));
        }
        // Writers' records are interleaved on the way: only each operation's own keep their order.
        operations.sort_by_key(|operation| operation.start_us + operation.latency_us);
        attempts.sort_by_key(|attempt| attempt.writer);
        requests.sort_by_key(|request| request.writer);
        let (tried, sent) = (attempts.len() as u64, requests.len() as u64);
        let found = read(operations, attempts, requests);

        let of = |class: Outcome| found.attempts.get(&class).copied().unwrap_or_default();
        let by_class: Attempts = failures.into_iter().chain([Outcome::Ok]).map(of).sum();
        prop_assert_eq!(found.tried(), by_class);
        prop_assert_eq!(found.tried(), Attempts(tried));
        prop_assert!(found.commits.0 <= found.tried().0);
        prop_assert_eq!(found.commits.0 + found.failed.0, sketches.len() as u64);
        prop_assert_eq!(found.failed_by_class.values().copied().sum::<Operations>(), found.failed);
        prop_assert_eq!(found.spent.requests, sent);
        prop_assert!(found.wasted.requests <= found.spent.requests);
        prop_assert!(found.wasted.written_bytes <= found.spent.written_bytes);
        prop_assert!(found.wasted.usd <= found.spent.usd);
        // Exactly: the requests of lost attempts, and whatever else a failed operation sent.
        let wasted: u64 = sketches
            .iter()
            .map(|(_, is_ok, _, lost, after)| {
                u64::from(lost.iter().map(|(_, sent)| sent).sum::<u32>() + if *is_ok { 0 } else { *after })
            })
            .sum();
        prop_assert_eq!(found.wasted.requests, wasted);
        prop_assert!(found.fairness.commits_min <= found.fairness.commits_max);
        prop_assert!(found.fairness.starvation_s_max <= WINDOW.seconds());
        // Little: whatever the ratio of failures, time per attempt × attempts per commit is time per commit.
        if let (Some(per_commit), Some(per_attempt), Some(tries)) =
            (found.time_per_commit_s(), found.time_per_attempt_s(), found.attempts_per_commit)
        {
            // Holds exactly where every commit has one attempt that succeeded.
            prop_assert!((per_attempt * tries / per_commit - 1.0).abs() < 1e-9);
        }
    }
}
