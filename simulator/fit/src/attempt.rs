//! What each attempt did, cut at its snapshot and at its publish.

use lakemark_results::record::Method;

use crate::trace::{Commit, Sent, Trace};

/// One attempt: from the start of its commit, or the end of the attempt before it, to its own end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    pub(crate) is_first: bool,
    pub(crate) is_won: bool,
    /// Versions of the table at its snapshot.
    pub(crate) version: f64,
    /// Commits of others between the snapshot before and this one.
    pub(crate) winners: usize,
    /// When the snapshot was taken; none where the attempt took none.
    pub(crate) snapshot_us: Option<u64>,
    /// Requests before the snapshot.
    pub(crate) before: Vec<Sent>,
    /// Requests after it, the publish left out.
    pub(crate) after: Vec<Sent>,
    /// The conditional put; none where a catalog decides.
    pub(crate) publish: Option<Sent>,
}

/// Every attempt of the measured commits.
pub(crate) fn attempts(trace: &Trace) -> Vec<Phase> {
    trace.commits.iter().filter(|commit| commit.is_measured).flat_map(|commit| of_commit(trace, commit)).collect()
}

fn of_commit(trace: &Trace, commit: &Commit) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut begin_us = commit.start_us;
    let mut seen = None;
    for attempt in &commit.tries {
        let of_attempt: Vec<&Sent> =
            commit.requests.iter().filter(|sent| (begin_us..attempt.end_us).contains(&sent.start_us)).collect();
        let (mut before, mut after, mut publish, mut snapshot_us) = (Vec::new(), Vec::new(), None, None);
        if trace.is_catalog {
            // The library reads the catalog after its wait, before anything else.
            snapshot_us = Some(of_attempt.first().map_or(begin_us, |sent| sent.start_us));
        }
        let mut is_listing = false;
        for sent in of_attempt {
            let is_publish =
                !trace.is_catalog && sent.method == Method::PutIfAbsent && sent.start_us >= attempt.start_us;
            let is_list = !trace.is_catalog && sent.method == Method::List;
            if is_publish {
                publish = Some(sent.clone());
            } else if is_list && (snapshot_us.is_none() || is_listing) {
                // The newest version is on the last page.
                snapshot_us = Some(sent.start_us.midpoint(sent.end_us));
                is_listing = true;
                continue;
            } else if snapshot_us.is_none() {
                before.push(sent.clone());
            } else {
                after.push(sent.clone());
            }
            is_listing = false;
        }
        if snapshot_us.is_none() {
            // All of it is between an older snapshot and the publish.
            after = std::mem::take(&mut before);
        }
        let version = trace.version_at(snapshot_us.unwrap_or(begin_us));
        phases.push(Phase {
            is_first: phases.is_empty(),
            is_won: attempt.is_won,
            version: version as f64,
            winners: version.saturating_sub(seen.unwrap_or(version)),
            snapshot_us,
            before,
            after,
            publish,
        });
        seen = Some(version);
        begin_us = attempt.end_us;
    }
    phases
}
