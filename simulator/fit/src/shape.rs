//! What many phases have in common: the requests that most of them send, and those that each winner costs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lakemark_results::record::Method;
use lakemark_simulator::{Operation, Step};

use crate::attempt::Phase;
use crate::line::Line;
use crate::step;
use crate::trace::Sent;

/// What is asked, of what kind of object.
type Asked = (Operation, Arc<str>);

/// The requests that most phases of a kind send.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) steps: Vec<Step>,
    /// Phases looked at.
    pub(crate) recorded: usize,
    /// Share of them that are exactly these steps.
    pub(crate) alike: f64,
}

impl Shape {
    /// What the steps ask, without their sizes.
    pub(crate) fn objects(&self) -> Vec<(Operation, &str, u32)> {
        self.steps.iter().map(|step| (step.operation, step.object.as_str(), step.times)).collect()
    }
}

fn asked(sent: &Sent) -> Asked {
    let operation = match sent.method {
        Method::Get => Operation::Read,
        Method::Head => Operation::Head,
        Method::List => Operation::List,
        Method::PutIfAbsent | Method::PutIfMatch => Operation::PutIfAbsent,
        // The model has no other request that changes the store; a delete and a copy carry no body.
        Method::Put | Method::Delete | Method::Copy => Operation::Write,
    };
    (operation, sent.class.clone())
}

/// Share of phases of which something is true; 0 of none.
pub(crate) fn share(phases: &[&Phase], is_true: impl Fn(&Phase) -> bool) -> f64 {
    let count = phases.iter().filter(|phase| is_true(phase)).count();
    count as f64 / phases.len().max(1) as f64
}

/// The most common sequence of requests, with their sizes over the version.
///
/// Requests that overlap are one step, the one that ends last: their waiting is not summed. Pages of one listing are one
/// step that grows in keys.
pub(crate) fn common(phases: impl Iterator<Item = (f64, Vec<Sent>)>) -> Shape {
    let mut by_sequence: BTreeMap<Vec<Asked>, Vec<(f64, Vec<Sent>)>> = BTreeMap::new();
    let mut recorded = 0;
    for (version, requests) in phases {
        recorded += 1;
        let steps = one_after_the_other(requests);
        by_sequence.entry(steps.iter().map(asked).collect()).or_default().push((version, steps));
    }
    let most = by_sequence.into_iter().max_by_key(|(_, phases)| phases.len());
    let Some((sequence, alike)) = most else { return Shape::default() };
    let mut steps: Vec<Step> = Vec::new();
    for (place, (operation, object)) in sequence.iter().enumerate() {
        let line = |of: &dyn Fn(&Sent) -> f64| {
            Line::through(&alike.iter().map(|(version, sent)| (*version, of(&sent[place]))).collect::<Vec<_>>())
        };
        let (bytes, keys) = match operation {
            Operation::List => (Line::default(), line(&|sent| f64::from(sent.keys.unwrap_or(0)))),
            _ => (line(&|sent| sent.bytes as f64), Line::default()),
        };
        steps.push(step(*operation, object, 1, bytes, keys));
    }
    Shape { steps, recorded, alike: alike.len() as f64 / recorded as f64 }
}

fn one_after_the_other(requests: Vec<Sent>) -> Vec<Sent> {
    let mut steps: Vec<Sent> = Vec::new();
    for request in requests {
        match steps.last_mut() {
            Some(last) if request.start_us < last.end_us => {
                if request.end_us > last.end_us {
                    *last = Sent { start_us: last.start_us, ..request };
                }
            }
            Some(last) if is_next_page(last, &request) => {
                last.end_us = request.end_us;
                last.keys = Some(last.keys.unwrap_or(0) + request.keys.unwrap_or(0));
            }
            _ => steps.push(request),
        }
    }
    steps
}

/// A listing that follows a full page of one is the rest of it.
fn is_next_page(last: &Sent, next: &Sent) -> bool {
    const PAGE: u32 = 1_000;
    let both_list = last.method == Method::List && next.method == Method::List;
    both_list && last.class == next.class && last.keys.is_some_and(|keys| keys > 0 && keys % PAGE == 0)
}

/// Requests whose number grows with that of the commits that a retry finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PerWinner {
    pub(crate) steps: Vec<Step>,
    /// Winners that cost nothing.
    pub(crate) skip: u32,
    /// How many run at a time, in the mean.
    pub(crate) parallelism: f64,
    asked: Vec<Asked>,
}

impl PerWinner {
    /// The requests of a phase after its snapshot, without those that its winners cost.
    pub(crate) fn without(&self, phase: &Phase) -> Vec<Sent> {
        phase.after.iter().filter(|sent| phase.is_first || !self.asked.contains(&asked(sent))).cloned().collect()
    }
}

/// Which requests of a retry are paid for each winner: reads whose number has a slope of at least a half over winners.
pub(crate) fn winners(retries: &[&Phase]) -> PerWinner {
    let reads = |sent: &&Sent| matches!(sent.method, Method::Get | Method::Head);
    let kinds: BTreeSet<Asked> = retries.iter().flat_map(|phase| &phase.after).filter(reads).map(asked).collect();
    let mut found = PerWinner { parallelism: 1.0, ..PerWinner::default() };
    let mut skips = Vec::new();
    for kind in kinds {
        let of_kind = |phase: &Phase| phase.after.iter().filter(|sent| asked(sent) == kind).count() as f64;
        let counts: Vec<(f64, f64)> = retries.iter().map(|phase| (phase.winners as f64, of_kind(phase))).collect();
        let line = Line::through(&counts);
        let times = line.slope.round();
        if times < 1.0 {
            continue;
        }
        skips.push((-line.at_zero / times).round().max(0.0));
        let sizes: Vec<(f64, f64)> = retries
            .iter()
            .flat_map(|phase| phase.after.iter().filter(|sent| asked(sent) == kind).map(|sent| (phase.version, sent)))
            .map(|(version, sent)| (version, sent.bytes as f64))
            .collect();
        found.steps.push(step(kind.0, &kind.1, times as u32, Line::through(&sizes), Line::default()));
        found.asked.push(kind);
    }
    found.skip = skips.into_iter().reduce(f64::min).unwrap_or(0.0) as u32;
    found.parallelism = parallelism(retries, &found.asked);
    found
}

/// Time of all winners' requests by the time in which at least one of them runs.
fn parallelism(retries: &[&Phase], kinds: &[Asked]) -> f64 {
    let (mut total_us, mut busy_us) = (0, 0);
    for phase in retries {
        let mut until_us = 0;
        for sent in phase.after.iter().filter(|sent| kinds.contains(&asked(sent))) {
            total_us += sent.end_us - sent.start_us;
            busy_us += sent.end_us.saturating_sub(until_us.max(sent.start_us));
            until_us = until_us.max(sent.end_us);
        }
    }
    if busy_us == 0 { 1.0 } else { total_us as f64 / busy_us as f64 }
}
