//! Protocols are read off records that follow one.

use lakemark_results::record::{self, Attempt, Layer, Method, OperationKind, Outcome, Request};
use lakemark_results::run::RunError;
use lakemark_simulator::{Cell, simulate};

use super::*;

/// Records of commits, each request 10 ms long after the one before.
#[derive(Default)]
struct Script {
    operations: Vec<record::Operation>,
    attempts: Vec<Attempt>,
    requests: Vec<Request>,
    now_us: u64,
    version: u64,
}

const LENGTH_US: u64 = 10_000;

impl Script {
    fn operation(&mut self, run: impl FnOnce(&mut Self) -> bool) {
        let start_us = self.now_us;
        let is_ok = run(self);
        self.operations.push(record::Operation {
            writer: 0,
            operation: self.operations.len() as u64,
            kind: OperationKind::Append,
            intended_us: None,
            table: 0,
            excluded: false,
            start_us,
            latency_us: self.now_us - start_us,
            wait_us: 0,
            catalog_us: 4_000,
            cpu_us: 0,
            outcome: if is_ok { Outcome::Ok } else { Outcome::Conflict },
            version: None,
            attempts: 1,
            requests: 1,
            read_bytes: 0,
            written_bytes: 0,
            error: None,
        });
    }

    fn request(&mut self, method: Method, class: &str, bytes: u64, keys: Option<u32>) {
        self.requests.push(Request {
            writer: 0,
            operation: self.operations.len() as u64,
            request: self.requests.len() as u64,
            method,
            key: String::new(),
            class: class.to_owned(),
            start_us: self.now_us,
            latency_us: LENGTH_US,
            read_bytes: if method == Method::Get { bytes } else { 0 },
            written_bytes: if method == Method::Get { 0 } else { bytes },
            keys,
            status: 200,
            outcome: Outcome::Ok,
        });
        self.now_us += LENGTH_US;
    }

    fn attempt(&mut self, layer: Layer, start_us: u64, is_won: bool) {
        self.version += u64::from(is_won);
        self.attempts.push(Attempt {
            writer: 0,
            operation: self.operations.len() as u64,
            attempt: 0,
            layer,
            start_us,
            latency_us: self.now_us - start_us,
            outcome: if is_won { Outcome::Ok } else { Outcome::Conflict },
            behind: 0,
            requests: 0,
            read_bytes: 0,
            written_bytes: 0,
        });
    }

    /// A put of the next manifest, of 1,000 bytes and 68 more a version.
    fn put(&mut self, is_won: bool) {
        let start_us = self.now_us;
        self.request(Method::PutIfAbsent, "manifest", 1_000 + 68 * self.version, None);
        self.attempt(Layer::Store, start_us, is_won);
    }

    /// Somebody else publishes, in no time.
    fn others_publish(&mut self, versions: u64) {
        for _ in 0..versions {
            self.now_us += 1;
            let start_us = self.now_us;
            self.operation(|script| {
                script.attempt(Layer::Store, start_us, true);
                true
            });
            // They are there to be lost to.
            self.operations.iter_mut().last().unwrap().excluded = true;
        }
    }

    fn trace(self) -> Result<Trace, FitError> {
        Trace::from_records(
            "c",
            self.operations.into_iter().map(Ok::<_, RunError>),
            self.attempts.into_iter().map(Ok),
            self.requests.into_iter().map(Ok),
        )
    }
}

fn steps(steps: &[Step]) -> Vec<(Operation, &str, u64)> {
    steps.iter().map(|step| (step.operation, step.object.as_str(), step.bytes)).collect()
}

/// Twenty commits as Lance makes them, each of which loses once to `winners`.
fn like_lance(winners: impl Fn(u64) -> u64) -> Script {
    let mut script = Script::default();
    for round in 0..20 {
        let start_us = script.now_us;
        // The operation is written at its end: those of others come first.
        let list = |script: &mut Script| script.request(Method::List, "listing", 0, Some(1));
        let number = script.operations.len() as u64 + winners(round);
        let mut mine = Script { now_us: start_us, version: script.version, ..Script::default() };
        list(&mut mine);
        mine.request(Method::Put, "transaction", 500, None);
        script.now_us = mine.now_us;
        script.others_publish(winners(round));
        (mine.now_us, mine.version) = (script.now_us, script.version);
        mine.put(false);
        list(&mut mine);
        for _ in 0..winners(round) {
            mine.request(Method::Get, "manifest", 900, None);
        }
        mine.request(Method::Put, "transaction", 500, None);
        mine.put(true);
        mine.request(Method::Get, "hint", 40, None);
        mine.attempts.iter_mut().for_each(|attempt| attempt.operation = number);
        mine.requests.iter_mut().for_each(|request| request.operation = number);
        script.attempts.append(&mut mine.attempts);
        script.requests.append(&mut mine.requests);
        script.version = mine.version;
        script.now_us = start_us;
        let end_us = mine.now_us;
        script.operation(|script| {
            script.now_us = end_us;
            true
        });
    }
    script
}

#[test]
fn a_store_that_decides_yields_its_steps_sizes_and_winners() {
    let trace = like_lance(|round| 1 + round % 4).trace().unwrap();
    let mut fit = fit(&trace, "mine", "as scripted").unwrap();
    let protocol = &mut fit.protocol;
    assert_eq!((protocol.refresh, protocol.refresh_first_attempt), (Operation::List, true));
    assert_eq!(steps(&protocol.after_table_conflict), [(Operation::Write, "transaction", 500)]);
    assert_eq!(steps(&protocol.after_success), [(Operation::Read, "hint", 40)]);
    assert_eq!((protocol.before_refresh.len(), protocol.after_failure.len()), (0, 0));
    let winners = protocol.winners.as_ref().unwrap();
    assert_eq!(
        (steps(&winners.steps), winners.skip, winners.steps[0].times),
        (vec![(Operation::Read, "manifest", 900)], 0, 1)
    );
    // The version is that of the snapshot; some are published before the put.
    let Publish::PutIfAbsent { bytes, bytes_per_version } = &protocol.publish else { panic!("{protocol:?}") };
    assert!(
        (1_000..1_200).contains(bytes) && (bytes_per_version - 68.0).abs() < 1.0,
        "{bytes} + {bytes_per_version} × v"
    );
    assert_eq!((protocol.early_check_after, fit.catalog_ms, fit.winners_parallelism), (None, None, 1.0));
    // What was read off runs.
    let cell =
        Cell { protocol: lakemark_simulator::ProtocolChoice::Full(Box::new(protocol.clone())), ..Cell::default() };
    assert!(simulate(&cell, 1).unwrap().counts.committed > 0);
    assert_eq!(Protocol::parse(&protocol.to_toml(), "written").unwrap(), *protocol);
}

#[test]
fn a_catalog_that_decides_yields_the_early_check() {
    let mut script = Script::default();
    for round in 0..20 {
        script.operation(|script| {
            let tries: &[(bool, bool)] = if round % 2 == 0 { &[(true, true)] } else { &[(false, false), (true, true)] };
            for (writes, is_won) in tries {
                script.request(Method::Get, "metadata", 700, None);
                script.request(Method::Put, "manifest", 6_000, None);
                let start_us = script.now_us;
                script.request(Method::Get, "metadata", 700, None);
                if *writes {
                    script.request(Method::Put, "metadata", 700, None);
                }
                script.attempt(Layer::Catalog, start_us, *is_won);
            }
            true
        });
    }
    let fit = fit(&script.trace().unwrap(), "mine", "as scripted").unwrap();
    let whole = [
        (Operation::Read, "metadata", 700),
        (Operation::Write, "manifest", 6_000),
        (Operation::Read, "metadata", 700),
        (Operation::Write, "metadata", 700),
    ];
    assert_eq!(steps(&fit.protocol.first), whole);
    assert_eq!(steps(&fit.protocol.after_table_conflict), whole);
    assert_eq!(fit.protocol.early_check_after, Some(3));
    assert_eq!(fit.protocol.refresh, Operation::CatalogRead);
    // 20 operations of 4 ms in the catalog, with 30 attempts of two calls.
    assert_eq!(fit.catalog_ms, Some(80.0 / 60.0));
}

#[test]
fn what_a_fit_has_no_words_for_is_refused() {
    let mut script = like_lance(|_| 1);
    script.operations[0].kind = OperationKind::Delete;
    let error = script.trace().unwrap_err();
    assert_eq!(error.to_string(), "cell c: it mixes operations, and a fit is of appends");
    let error = fit(&Script::default().trace().unwrap(), "mine", "nothing").unwrap_err();
    assert_eq!(error.to_string(), "cell c: it has no commit to learn from");
}
