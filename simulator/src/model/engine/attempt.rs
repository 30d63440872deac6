//! What does an attempt do before it publishes? Backoff, refresh, and the work between snapshot and publish.

use super::{Backoff, History, Jitter, Kind, Outcome, Refresh, Run, Transaction, whole_ns};

impl Run<'_> {
    /// The client reads the state that its next attempt is to be based on.
    #[inline]
    pub(super) fn refresh(&mut self, index: u32, now_ns: u64, refresh: Refresh) {
        let model = self.model;
        let transaction = &mut self.transactions[index as usize];
        transaction.refresh = refresh;
        let version = self.shared.table(transaction).version;
        let (before_ns, load) = model.before_refresh.run(version, &mut transaction.stream);
        transaction.requests += load.requests + 1;
        transaction.bytes += load.bytes;
        let read_ns = model.refresh.draw(&mut transaction.stream);
        let snapshot_ns = now_ns + whole_ns(before_ns + read_ns * model.instant);
        let done_ns = now_ns + whole_ns(before_ns + read_ns);
        // What the snapshot will see is known already, as far as it matters: there is no need to look then.
        let known = refresh == Refresh::First || self.lost_to_table(index);
        if known && !model.counts_versions[usize::from(self.transactions[index as usize].validated_overwrite)] {
            let transaction = &mut self.transactions[index as usize];
            transaction.table_conflict = refresh != Refresh::First;
            transaction.snapshot_ns = snapshot_ns;
            return self.refreshed(index, done_ns, 0);
        }
        // The rest of the round trip is drawn already, so it has to be remembered.
        self.transactions[index as usize].rest_ns = done_ns - snapshot_ns;
        self.push(index, snapshot_ns, Kind::Snapshot);
    }

    fn lost_to_table(&self, index: u32) -> bool {
        let transaction = &self.transactions[index as usize];
        transaction.table_conflict || self.shared.table(transaction).changed_ns > transaction.snapshot_ns
    }

    /// A snapshot sees the state.
    pub(super) fn snapshot(&mut self, index: u32, now_ns: u64) {
        let transaction = &mut self.transactions[index as usize];
        if transaction.refresh == Refresh::Submission {
            let commit_ns = transaction.commit_ns;
            self.remember(index);
            return self.begin_commit(index, commit_ns);
        }
        let done_ns = now_ns + transaction.rest_ns;
        let table = self.shared.table(transaction);
        let conflict = table.changed_ns > transaction.snapshot_ns;
        transaction.table_conflict |= conflict && transaction.refresh != Refresh::First;
        transaction.snapshot_ns = now_ns;
        if !self.model.counts_versions[usize::from(transaction.validated_overwrite)] {
            return self.refreshed(index, done_ns, 0);
        }
        let since_submission = self.shared.table(transaction).version - transaction.submit_version;
        let winners = match self.model.cell.rules.history {
            _ if table.version == transaction.snapshot_version => 0,
            History::SincePreviousAttempt | History::SincePreviousAttemptAll => {
                table.version - transaction.snapshot_version
            }
            History::SinceSubmission => since_submission,
            History::AnyTable => self.shared.catalog.version - transaction.snapshot_sequence,
        };
        let overlap = self.shared.partition(transaction).version != transaction.snapshot_partition_version;
        self.remember(index);
        let probability = self.model.cell.real_conflict_probability;
        let transaction = &mut self.transactions[index as usize];
        let real =
            transaction.validated_overwrite && probability > 0.0 && overlap && transaction.stream.unit() <= probability;
        if real {
            let done_ns = self.check_winners(index, done_ns, winners);
            self.waste(index);
            return self.finish(index, done_ns, Outcome::RealConflict);
        }
        self.refreshed(index, done_ns, winners);
    }

    /// Reads up on the winners that a refresh found.
    #[inline]
    fn check_winners(&mut self, index: u32, now_ns: u64, winners: u32) -> u64 {
        let model = self.model;
        let transaction = &mut self.transactions[index as usize];
        let paid = winners.saturating_sub(model.winners_skip);
        if paid == 0 || (!transaction.validated_overwrite && !model.counts_versions[0]) {
            return now_ns;
        }
        let (ns, load) = model.winners.repeat(paid, model.cell.sums_exact_below, &mut transaction.stream);
        self.charge(index, load);
        now_ns + whole_ns(ns / f64::from(model.cell.rules.history_parallelism))
    }

    /// The refresh has its answer, and found this many commits to the own table.
    #[inline]
    fn refreshed(&mut self, index: u32, now_ns: u64, winners: u32) {
        let model = self.model;
        let mut now_ns = now_ns;
        if self.transactions[index as usize].refresh != Refresh::First && !model.after_failed_refresh.is_empty() {
            let transaction = &mut self.transactions[index as usize];
            let version = self.shared.table(transaction).version;
            let (ns, load) = model.after_failed_refresh.run(version, &mut transaction.stream);
            self.charge(index, load);
            now_ns += whole_ns(ns);
        }
        now_ns = self.check_winners(index, now_ns, winners);
        let transaction = &mut self.transactions[index as usize];
        if transaction.failures >= model.retry.attempts_max {
            self.waste(index);
            return self.finish(index, now_ns, Outcome::AttemptsSpent);
        }
        if transaction.refresh == Refresh::Lost && !model.same_backoff {
            let wait_ns = self.backoff_ns(index, self.transactions[index as usize].table_conflict);
            if wait_ns > 0 {
                let then_ns = now_ns + wait_ns;
                match self.budget_allows(index, then_ns) {
                    true => self.refresh(index, then_ns, Refresh::Slept),
                    false => {
                        self.waste(index);
                        self.finish(index, now_ns, Outcome::BudgetSpent);
                    }
                }
                return;
            }
        }
        self.attempt(index, now_ns);
    }

    /// Works from the snapshot towards the publish.
    #[inline]
    pub(super) fn attempt(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        let transaction = &mut self.transactions[index as usize];
        if transaction.failures == 0 {
            transaction.first_attempt_ns = now_ns;
        }
        let plans = &model.attempts[match (transaction.failures, transaction.table_conflict) {
            (0, _) => 0,
            (_, false) => 1,
            (_, true) => 2,
        }];
        let version = self.shared.table(transaction).version;
        let (ns, load) = plans.0.run(version, &mut transaction.stream);
        self.charge(index, load);
        let then_ns = now_ns + whole_ns(ns);
        match model.early_check {
            true => self.push(index, then_ns, Kind::EarlyCheck),
            false => self.send(index, then_ns),
        }
    }

    /// The client compares versions by itself.
    pub(super) fn early_check(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        if self.shared.lost(&self.transactions[index as usize], model.scope) {
            self.counts.given_up_early += 1;
            return self.lost(index, now_ns);
        }
        let transaction = &mut self.transactions[index as usize];
        let plans = &model.attempts[match (transaction.failures, transaction.table_conflict) {
            (0, _) => 0,
            (_, false) => 1,
            (_, true) => 2,
        }];
        let version = self.shared.table(transaction).version;
        let (ns, load) = plans.1.run(version, &mut transaction.stream);
        self.charge(index, load);
        self.send(index, now_ns + whole_ns(ns));
    }

    /// How long the client waits after its latest failure.
    pub(super) fn backoff_ns(&mut self, index: u32, table_conflict: bool) -> u64 {
        let retry = &self.model.retry;
        let transaction = &mut self.transactions[index as usize];
        let failure = transaction.failures - 1;
        match if table_conflict { &retry.after_table_conflict } else { &retry.after_catalog_conflict } {
            Backoff::Immediate => 0,
            Backoff::Exponential { base_ms, factor, cap_ms, jitter } => {
                let wait_ns = (base_ms * factor.powi(failure.min(1_000) as i32)).min(*cap_ms) * 1e6;
                match jitter {
                    Jitter::None => whole_ns(wait_ns),
                    Jitter::Full => whole_ns(wait_ns * transaction.stream.unit()),
                }
            }
            Backoff::Slots { slots_first, slots_max, unit_factor } => {
                let slots = slots_first.saturating_mul(1 << failure.min(20)).min(*slots_max);
                let slot = transaction.stream.below(slots);
                whole_ns(f64::from(slot) * unit_factor * transaction.first_attempt_ns as f64)
            }
        }
    }

    /// The policy's budget allows an attempt that starts then.
    pub(super) fn budget_allows(&self, index: u32, then_ns: u64) -> bool {
        let Some(budget_ms) = self.model.retry.budget_ms else { return true };
        let transaction: &Transaction = &self.transactions[index as usize];
        (then_ns - transaction.commit_ns) as f64 <= budget_ms * 1e6
    }
}
