//! Who wins? The publish, its answer, and the service that batches.

use super::{Kind, Outcome, Refresh, Run, SERVICE, Sampler, whole_ns};

impl Run<'_> {
    /// Sends the publish.
    #[inline(always)]
    pub(super) fn send(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        let transaction = &mut self.transactions[index as usize];
        transaction.requests += 1;
        transaction.bytes += model.publish_bytes;
        if let Some((_, half_ns)) = model.batch {
            transaction.rest_ns = whole_ns(half_ns);
            return self.push(index, now_ns + whole_ns(half_ns), Kind::Publish);
        }
        let mut ns = model.publish.draw(&mut transaction.stream);
        if model.publish_ns_per_version > 0.0 {
            ns += model.publish_ns_per_version * f64::from(self.shared.table(transaction).version);
        }
        let check_ns = whole_ns(ns * model.instant);
        transaction.rest_ns = whole_ns(ns) - check_ns;
        self.push(index, now_ns + check_ns, Kind::Publish);
    }

    /// The publish reaches the object, or the service.
    #[inline]
    pub(super) fn publish(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        self.counts.attempts += 1;
        if model.batch.is_some() {
            self.waiting.push_back(index);
            if !self.busy {
                self.begin_batch(now_ns);
            }
            return;
        }
        if let Some(bucket) = &mut self.bucket
            && !bucket.take(now_ns)
        {
            self.counts.failed_throttled += 1;
            return self.answer_lost(index, now_ns);
        }
        if self.shared.lost(&self.transactions[index as usize], model.scope) {
            self.count_conflict(index);
            return self.answer_lost(index, now_ns);
        }
        self.won(index, now_ns);
    }

    fn won(&mut self, index: u32, now_ns: u64) {
        let transaction = &mut self.transactions[index as usize];
        self.shared.commit(transaction, now_ns);
        self.counts.published += 1;
        let version = self.shared.table(transaction).version;
        let (ns, load) = self.model.after_success.run(version, &mut transaction.stream);
        let end_ns = now_ns + transaction.rest_ns + whole_ns(ns);
        self.counts.requests += u64::from(transaction.requests + load.requests);
        self.counts.bytes += transaction.bytes + load.bytes;
        self.finish(index, end_ns, Outcome::Committed);
    }

    fn count_conflict(&mut self, index: u32) {
        let transaction = &self.transactions[index as usize];
        match self.shared.table(transaction).changed_ns > transaction.snapshot_ns {
            true => self.counts.failed_table_conflict += 1,
            false => self.counts.failed_catalog_conflict += 1,
        }
    }

    /// The answer of a lost publish is under way.
    #[inline(always)]
    fn answer_lost(&mut self, index: u32, now_ns: u64) {
        let transaction = &mut self.transactions[index as usize];
        let answer_ns = match &self.model.failed_publish {
            None => transaction.rest_ns,
            Some(law) => whole_ns(law.draw(&mut transaction.stream) / 2.0),
        };
        self.lost(index, now_ns + answer_ns);
    }

    /// An attempt is lost, and the client knows.
    #[inline(always)]
    pub(super) fn lost(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        let transaction = &mut self.transactions[index as usize];
        transaction.failures += 1;
        if transaction.failures == 1 {
            transaction.first_attempt_ns = now_ns - transaction.first_attempt_ns;
        }
        transaction.table_conflict = false;
        let version = self.shared.table(transaction).version;
        let (ns, load) = model.after_failure.run(version, &mut transaction.stream);
        self.charge(index, load);
        self.waste(index);
        let mut then_ns = now_ns + whole_ns(ns);
        let failures = self.transactions[index as usize].failures;
        if failures >= model.retry.attempts_max && !model.cell.rules.abort_pays_refresh {
            return self.finish(index, then_ns, Outcome::AttemptsSpent);
        }
        if model.same_backoff && !model.at_once && failures < model.retry.attempts_max {
            let wait_ns = self.backoff_ns(index, true);
            if !self.budget_allows(index, then_ns + wait_ns) {
                return self.finish(index, then_ns, Outcome::BudgetSpent);
            }
            then_ns += wait_ns;
        }
        self.refresh(index, then_ns, Refresh::Lost);
    }

    /// The requests of the attempt at hand were in vain.
    #[inline]
    pub(super) fn waste(&mut self, index: u32) {
        let transaction = &mut self.transactions[index as usize];
        let (requests, bytes) = (u64::from(transaction.requests), transaction.bytes);
        (transaction.requests, transaction.bytes) = (0, 0);
        self.counts.requests += requests;
        self.counts.requests_wasted += requests;
        self.counts.bytes += bytes;
        self.counts.bytes_wasted += bytes;
    }

    /// The service swaps for all that wait.
    fn begin_batch(&mut self, now_ns: u64) {
        let Some((batch_max, _)) = self.model.batch else { return };
        let n = self.waiting.len().min(batch_max);
        self.batch.extend(self.waiting.drain(..n));
        self.busy = true;
        let begin_ns = self.bucket.as_mut().map_or(now_ns, |bucket| bucket.wait(now_ns));
        let swap: &Sampler = &self.model.publish;
        let done_ns = begin_ns + whole_ns(swap.draw(&mut self.service));
        self.queue.push(&mut self.transactions, done_ns, Kind::BatchDone, SERVICE);
    }

    /// A batch is committed: appends always, an overwrite if nobody was faster.
    pub(super) fn batch_done(&mut self, now_ns: u64) {
        let batch = std::mem::take(&mut self.batch);
        self.batches += 1;
        for &index in &batch {
            let transaction = &self.transactions[index as usize];
            let overtaken = self.shared.table(transaction).changed_ns > transaction.snapshot_ns;
            if transaction.validated_overwrite && overtaken {
                self.count_conflict(index);
                self.answer_lost(index, now_ns);
            } else {
                self.batched += 1;
                self.won(index, now_ns);
            }
        }
        self.batch = batch;
        self.batch.clear();
        self.busy = false;
        if !self.waiting.is_empty() {
            self.begin_batch(now_ns);
        }
    }
}
