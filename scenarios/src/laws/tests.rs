#![allow(clippy::unwrap_used, clippy::expect_used)]

use lakemark_results::record::{Layer, OperationKind};

use super::*;

/// One second, of some writers.
fn window(writers: u32) -> Window {
    Window { start_us: 1_000_000, end_us: 2_000_000, writers, cpus: 2, ..Window::default() }
}

fn operation(start_us: u64, latency_us: u64, outcome: Outcome, attempts: u32) -> Operation {
    Operation {
        writer: 0,
        operation: 0,
        kind: OperationKind::Append,
        intended_us: None,
        table: 0,
        excluded: false,
        start_us,
        latency_us,
        wait_us: 0,
        catalog_us: 0,
        cpu_us: 0,
        outcome,
        version: None,
        attempts,
        requests: 0,
        read_bytes: 0,
        written_bytes: 0,
        error: None,
    }
}

fn attempts(count: u32, ok: u32) -> Vec<Attempt> {
    (0..count)
        .map(|attempt| Attempt {
            writer: 0,
            operation: 0,
            attempt,
            layer: Layer::Store,
            start_us: 0,
            latency_us: 0,
            outcome: if attempt < ok { Outcome::Ok } else { Outcome::Conflict },
            behind: 0,
            requests: 1,
            read_bytes: 0,
            written_bytes: 0,
        })
        .collect()
}

fn request(class: &str, start_us: u64, latency_us: u64) -> Request {
    Request {
        writer: 0,
        operation: 0,
        request: 0,
        method: Method::Put,
        key: "k".to_owned(),
        class: class.to_owned(),
        start_us,
        latency_us,
        read_bytes: 0,
        written_bytes: 0,
        keys: None,
        status: 200,
        outcome: Outcome::Ok,
    }
}

fn failed(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect()
}

/// Two writers that commit every 100 ms, from before the window until after it.
fn busy() -> Laws {
    let mut laws = Laws::default();
    for _writer in 0..2 {
        for start in (900_000..2_100_000).step_by(100_000) {
            let commit = operation(start, 100_000, Outcome::Ok, 1);
            let requests = [request("log", start, 60_000), request("manifest", start + 60_000, 40_000)];
            laws.add(&commit, &requests, &attempts(1, 1));
        }
    }
    laws
}

#[test]
fn a_closed_loop_fills_the_writers_time() {
    assert_eq!(failed(&busy().checks(&window(2), true)), Vec::<&str>::new());
    // Operations of a third writer were not recorded, or those of one writer twice.
    let little = ["the writers' time is the time inside their operations (Little)"];
    assert_eq!(failed(&busy().checks(&window(3), true)), little);
    assert_eq!(failed(&busy().checks(&window(1), true)), little);
    // Where writers wait for arrivals, there may be less, never more.
    assert_eq!(failed(&busy().checks(&window(3), false)), Vec::<&str>::new());
    assert_eq!(failed(&busy().checks(&window(1), false)), little);
}

#[test]
fn commits_below_the_sum_of_their_requests_are_found() {
    let mut laws = Laws::default();
    for start in (900_000..2_100_000).step_by(100_000) {
        // Both requests are said to follow one on the other, and to take longer than the commit.
        let requests = [request("log", start, 60_000), request("manifest", start + 60_000, 60_000)];
        laws.add(&operation(start, 100_000, Outcome::Ok, 1), &requests, &attempts(1, 1));
    }
    let floor = ["a mean commit takes at least the medians of its dependent requests"];
    assert_eq!(failed(&laws.checks(&window(1), true)), floor);
}

#[test]
fn requests_side_by_side_are_no_chain() {
    let mut laws = Laws::default();
    for start in (900_000..2_100_000).step_by(100_000) {
        let requests = [request("log", start, 90_000), request("manifest", start + 5_000, 90_000)];
        laws.add(&operation(start, 100_000, Outcome::Ok, 1), &requests, &attempts(1, 1));
    }
    assert_eq!(failed(&laws.checks(&window(1), true)), Vec::<&str>::new());
}

#[test]
fn a_commit_without_an_attempt_and_one_published_twice_are_found() {
    let conserved = ["every commit has an attempt, and no operation publishes twice"];
    let mut laws = busy();
    laws.add(&operation(900_000, 1, Outcome::Ok, 0), &[], &[]);
    assert_eq!(failed(&laws.checks(&window(2), true)), conserved);
    let mut laws = busy();
    laws.add(&operation(900_000, 1, Outcome::Ok, 2), &[], &attempts(2, 2));
    assert_eq!(failed(&laws.checks(&window(2), true)), conserved);
}

#[test]
fn a_departure_from_one_in_n_is_a_note() {
    // Two writers, each attempt succeeds: twice what one winner a round leaves.
    let notes = busy().notes(&window(2), true, 1);
    assert!(notes[0].starts_with("departs: 1/N: 1.000 of the attempts succeed, 2.0 times one in 2"), "{notes:?}");
    // Two tables for two writers: each is alone.
    assert!(busy().notes(&window(2), true, 2).is_empty());
    let mut laws = busy();
    for start in (1_000_000..2_000_000).step_by(100_000) {
        laws.add(&operation(start, 100_000, Outcome::Conflict, 2), &[], &attempts(2, 0));
    }
    assert_eq!(laws.notes(&window(2), true, 1), Vec::<String>::new());
}

#[test]
fn only_a_saturated_cpu_is_said_to_be() {
    let at = |share| saturation_note(&Window { cpu_saturation: Some(share), ..window(2) });
    assert_eq!(at(0.8), None);
    assert_eq!(at(0.91).as_deref(), Some("CPU saturated: the library used 91 % of 2 CPUs"));
    assert_eq!(saturation_note(&window(2)), None);
}
