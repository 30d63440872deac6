//! Does a cell with several writers obey the laws that any honest run must show?
//!
//! Little's law, the conservation of commits and the serial floor hold of every run: a cell that breaks one was recorded
//! wrongly and is invalid. That one writer of N wins, and that the goodput is one commit for each round trip of the
//! publish primitive, holds of writers that try again at once: a run that departs tells of waiting or of work between the
//! attempts, and says so.

use hdrhistogram::Histogram;
use lakemark_results::record::{Attempt, Check, Method, Operation, Outcome, Request, Window};

use crate::audit::check;

/// Share by which the writers' time may differ from the time inside their operations: what a scenario does between two
/// operations takes no process time, but with the real clock, or where computing takes time, it takes some.
const LITTLE_TOLERANCE: f64 = 0.05;

/// Share by which a mean commit may be below the sum of its requests' medians: medians of a sample have an error.
const FLOOR_TOLERANCE: f64 = 0.05;

/// Factor beyond which a success ratio departs from one in N.
const DEPARTURE: f64 = 1.5;

/// What the laws need of an operation.
#[derive(Clone, Copy, Debug)]
struct Ended {
    start_us: u64,
    end_us: u64,
    is_ok: bool,
    attempts: u32,
    attempts_ok: u32,
}

/// One kind of request: how long it takes, and how often a commit needs it at the least.
#[derive(Clone, Debug)]
struct Kind {
    method: Method,
    class: String,
    latency_us: Histogram<u32>,
    /// Fewest in a chain of one commit, over the commits so far.
    fewest: u32,
    /// In the chain of the commit that is looked at.
    now: u32,
}

/// Takes in operations and says how they stand to the laws.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laws {
    ended: Vec<Ended>,
    kinds: Vec<Kind>,
    commits: u64,
}

impl Laws {
    /// Takes in an operation on a table that ended, whether in the measured time or not.
    pub(crate) fn add(&mut self, operation: &Operation, requests: &[Request], attempts: &[Attempt]) {
        let is_ok = operation.outcome == Outcome::Ok;
        self.ended.push(Ended {
            start_us: operation.start_us,
            end_us: operation.start_us + operation.latency_us,
            is_ok,
            attempts: operation.attempts,
            attempts_ok: attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok).count() as u32,
        });
        if is_ok {
            self.add_chain(requests);
        }
    }

    /// Takes in the requests of a commit that followed one on the other.
    fn add_chain(&mut self, requests: &[Request]) {
        self.kinds.iter_mut().for_each(|kind| kind.now = 0);
        let mut end_us = 0;
        // They stand in the order of their ends: each that starts after the last one taken has ended is the next link.
        for request in requests.iter().filter(|request| request.outcome != Outcome::Throttled) {
            let of_kind = |kind: &&mut Kind| kind.method == request.method && kind.class == request.class;
            let kind = match self.kinds.iter_mut().find(of_kind) {
                Some(kind) => kind,
                None => {
                    // A kind that an earlier commit did without is not needed. Three digits are enough of a median.
                    let fewest = if self.commits == 0 { u32::MAX } else { 0 };
                    let Ok(latency_us) = Histogram::new(3) else { return };
                    self.kinds.push(Kind {
                        method: request.method,
                        class: request.class.clone(),
                        latency_us,
                        fewest,
                        now: 0,
                    });
                    let Some(kind) = self.kinds.last_mut() else { return };
                    kind
                }
            };
            // Only a latency of more than 2^63 µs is refused.
            let _ = kind.latency_us.record(request.latency_us);
            if request.start_us >= end_us {
                kind.now += 1;
                end_us = request.start_us + request.latency_us;
            }
        }
        self.kinds.iter_mut().for_each(|kind| kind.fewest = kind.fewest.min(kind.now));
        self.commits += 1;
    }

    /// The laws that must hold.
    pub(crate) fn checks(&self, window: &Window, is_closed: bool) -> Vec<Check> {
        vec![self.little(window, is_closed), self.floor(), self.conserved()]
    }

    /// Writers × time is the time inside operations: exactly in a closed loop, at most where writers wait for arrivals.
    /// In a closed loop therefore N by the goodput is the mean time per commit, whatever the failure ratio.
    fn little(&self, window: &Window, is_closed: bool) -> Check {
        let within = |ended: &Ended| {
            ended.end_us.min(window.end_us).saturating_sub(ended.start_us.max(window.start_us)) as f64 / 1e6
        };
        let inside_s: f64 = self.ended.iter().map(within).sum();
        let writers_s = f64::from(window.writers) * window.seconds();
        let lowest = if is_closed { 1.0 - LITTLE_TOLERANCE } else { 0.0 };
        let share = if writers_s > 0.0 { inside_s / writers_s } else { 1.0 };
        // Each operation's ends are whole microseconds.
        let highest = 1.001;
        check(
            "the writers' time is the time inside their operations (Little)",
            (lowest..=highest).contains(&share),
            format!("{writers_s:.1} s of {} writers, {inside_s:.1} s inside operations", window.writers),
        )
    }

    fn floor(&self) -> Check {
        let floor_ms: f64 = self
            .kinds
            .iter()
            .filter(|kind| kind.fewest > 0)
            .map(|kind| f64::from(kind.fewest) * kind.latency_us.value_at_quantile(0.5) as f64 / 1e3)
            .sum();
        let commits: Vec<&Ended> = self.ended.iter().filter(|ended| ended.is_ok).collect();
        let total_ms: f64 = commits.iter().map(|ended| (ended.end_us - ended.start_us) as f64 / 1e3).sum();
        let mean_ms = total_ms / commits.len().max(1) as f64;
        let requests: Vec<String> = self
            .kinds
            .iter()
            .filter(|kind| kind.fewest > 0)
            .map(|kind| format!("{} {:?} {}", kind.fewest, kind.method, kind.class))
            .collect();
        check(
            "a mean commit takes at least the medians of its dependent requests",
            commits.is_empty() || mean_ms >= floor_ms * (1.0 - FLOOR_TOLERANCE),
            format!("{mean_ms:.1} ms, {floor_ms:.1} ms for {}", requests.join(", ")),
        )
    }

    /// A commit needs an attempt, and an operation that failed has none that succeeded.
    fn conserved(&self) -> Check {
        let too_few = self.ended.iter().filter(|ended| ended.is_ok && ended.attempts == 0).count();
        let too_many = self.ended.iter().filter(|ended| ended.attempts_ok > 1).count();
        check(
            "every commit has an attempt, and no operation publishes twice",
            too_few == 0 && too_many == 0,
            format!("{too_few} commits without an attempt, {too_many} operations with several that succeeded"),
        )
    }

    /// Where the cell departs from what writers would show that try again at once.
    pub(crate) fn notes(&self, window: &Window, is_closed: bool, tables: u64) -> Vec<String> {
        let measured = self.ended.iter().filter(|ended| (window.start_us..=window.end_us).contains(&ended.end_us));
        let (mut attempts, mut ok) = (0, 0);
        for ended in measured {
            attempts += u64::from(ended.attempts);
            ok += u64::from(ended.attempts_ok);
        }
        let mut notes = Vec::new();
        let writers = f64::from(window.writers) / tables as f64;
        if is_closed && writers > 1.0 && attempts > 0 && ok > 0 {
            let ratio = ok as f64 / attempts as f64 * writers;
            if !(1.0 / DEPARTURE..=DEPARTURE).contains(&ratio) {
                let why = if ratio > 1.0 {
                    "writers wait or work between their attempts"
                } else {
                    "more attempts are lost than one round of N writers loses"
                };
                notes.push(format!(
                    "departs: 1/N: {:.3} of the attempts succeed, {ratio:.1} times one in {writers:.0}: {why}",
                    ok as f64 / attempts as f64,
                ));
            }
        }
        if window.backlog > 0 {
            notes.push(format!("{} operations were due and had not started at the end", window.backlog));
        }
        notes
    }
}

/// The worst departure from a saturated CPU that is still worth a figure.
pub(crate) const SATURATED: f64 = 0.8;

/// Says that the CPU was saturated, if it was.
pub(crate) fn saturation_note(window: &Window) -> Option<String> {
    let share = window.cpu_saturation.filter(|share| *share > SATURATED)?;
    Some(format!("CPU saturated: the library used {:.0} % of {} CPUs", share * 100.0, window.cpus))
}

#[cfg(test)]
mod tests;
