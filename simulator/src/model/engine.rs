//! What happens in a run? The events of transactions, from submission to their end.

use super::Model;
use super::arrivals::Process;
use super::plan::Load;
use super::queue::{Kind, Queue};
use super::recorder::Recorder;
use super::sampler::{Sampler, whole_ns};
use super::state::{Bucket, Shared};
use super::streams::{Purpose, Stream};
use super::transaction::{Refresh, Transaction};
use crate::arrivals::Arrivals;
use crate::result::{CellResult, Counts, Ended, Outcome};
use crate::retry::{Backoff, Jitter};
use crate::rules::History;

mod attempt;
mod publish;

/// Runs a model under a seed. None if `margin`, the share of the run near whose ends a window may begin or end, was too
/// narrow. `told` hears of each transaction that has ended.
pub(super) fn run<'a>(
    model: &'a Model,
    seed: u64,
    margin: f64,
    told: Option<&'a mut dyn FnMut(&Ended)>,
) -> Option<CellResult> {
    let mut run = Run::new(model, seed, margin);
    run.told = told;
    run.start_clients();
    run.events();
    let mut counts = run.counts;
    counts.in_flight = counts.arrivals - counts.committed - counts.aborted();
    counts.mean_batch = (run.batches > 0).then(|| run.batched as f64 / run.batches as f64);
    run.recorder.finish(model, seed, counts)
}

/// A run under way.
struct Run<'a> {
    model: &'a Model,
    seed: u64,
    process: Process,
    queue: Queue,
    /// Transactions in flight, and which of their places are free.
    transactions: Vec<Transaction>,
    free: Vec<u32>,
    shared: Shared,
    bucket: Option<Bucket>,
    /// The batching service: its draws, who waits, who is in the batch at hand, and the place whose event ends it.
    service: Stream,
    waiting: std::collections::VecDeque<u32>,
    batch: Vec<u32>,
    busy: bool,
    batches: u64,
    batched: u64,
    counts: Counts,
    recorder: Recorder,
    told: Option<&'a mut dyn FnMut(&Ended)>,
}

/// Place of the batching service among the transactions, for its event.
const SERVICE: u32 = 0;

impl<'a> Run<'a> {
    fn new(model: &'a Model, seed: u64, margin: f64) -> Self {
        let cell = &model.cell;
        Self {
            model,
            seed,
            process: Process::new(&cell.arrivals, seed),
            queue: Queue::new(),
            transactions: vec![Transaction::default()],
            free: Vec::new(),
            shared: Shared::new(cell.tables, cell.partitions),
            bucket: cell.rate_limit.map(Bucket::new),
            service: Stream::new(seed, Purpose::Service, 0),
            waiting: std::collections::VecDeque::new(),
            batch: Vec::new(),
            busy: false,
            batches: 0,
            batched: 0,
            counts: Counts::default(),
            recorder: Recorder::new(model, margin),
            told: None,
        }
    }

    /// Clients of a closed loop all begin at time 0.
    fn start_clients(&mut self) {
        if let Arrivals::ClosedLoop { clients, .. } = self.model.cell.arrivals {
            for client in 0..clients {
                let index = self.place();
                self.transactions[index as usize] = Transaction { client, ..Transaction::default() };
                self.queue.push(&mut self.transactions, 0, Kind::Start, index);
            }
        }
    }

    /// Takes events in order of time until none is left.
    fn events(&mut self) {
        let end_ns = self.model.end_ns;
        let mut arrival_ns = self.process.next_ns(end_ns);
        let mut nth = 0;
        while arrival_ns != u64::MAX || !self.queue.is_empty() {
            let slot_end_ns = self.queue.slot_end_ns();
            loop {
                let next_ns = self.queue.next_ns();
                if arrival_ns < slot_end_ns && arrival_ns < next_ns {
                    let index = self.place();
                    let stream = Stream::new(self.seed, Purpose::Transaction, nth);
                    self.transactions[index as usize] = Transaction { stream, ..Transaction::default() };
                    self.submit(index, arrival_ns);
                    nth += 1;
                    arrival_ns = self.process.next_ns(end_ns);
                    continue;
                }
                let Some((now_ns, kind, index)) = self.queue.pop() else { break };
                self.counts.events += 1;
                match kind {
                    Kind::Publish => self.publish(index, now_ns),
                    Kind::Snapshot => self.snapshot(index, now_ns),
                    Kind::EarlyCheck => self.early_check(index, now_ns),
                    Kind::BatchDone => self.batch_done(now_ns),
                    Kind::Start => self.start(index, now_ns),
                }
            }
            self.queue.advance(&mut self.transactions);
        }
    }

    /// A free place for a transaction.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.transactions.push(Transaction::default());
            (self.transactions.len() - 1) as u32
        })
    }

    /// The event of a transaction, unless the run ends before it.
    #[inline]
    fn push(&mut self, index: u32, time_ns: u64, kind: Kind) {
        if time_ns > self.model.end_ns && !self.model.cell.drain {
            self.free.push(index);
            return;
        }
        self.queue.push(&mut self.transactions, time_ns, kind, index);
    }

    /// A client begins its next transaction.
    fn start(&mut self, index: u32, now_ns: u64) {
        let transaction = &mut self.transactions[index as usize];
        let (client, nth) = (transaction.client, transaction.nth);
        let stream = Stream::new(self.seed, Purpose::Transaction, u64::from(client) << 32 | u64::from(nth));
        *transaction = Transaction { stream, client, nth: nth + 1, ..Transaction::default() };
        self.submit(index, now_ns);
    }

    /// A transaction is submitted: it draws what it will do, reads the catalog, and runs.
    fn submit(&mut self, index: u32, now_ns: u64) {
        let model = self.model;
        let cell = &model.cell;
        self.counts.arrivals += 1;
        let transaction = &mut self.transactions[index as usize];
        let stream = &mut transaction.stream;
        let runtime_ns = model.runtime.draw(stream);
        transaction.table = match &cell.arrivals {
            Arrivals::ClosedLoop { pinned: true, .. } => transaction.client % cell.tables,
            _ if cell.tables == 1 => 0,
            _ if model.table_shares.is_empty() => stream.below(cell.tables),
            _ => {
                let share = stream.unit();
                (model.table_shares.partition_point(|end| *end < share) as u32).min(cell.tables - 1)
            }
        };
        transaction.validated_overwrite = cell.fast_append_ratio < 1.0 && stream.unit() > cell.fast_append_ratio;
        if cell.partitions > 1 {
            transaction.partition = transaction.table * cell.partitions + stream.below(cell.partitions);
        }
        let read_ns = model.submission.as_ref().map(|read| read.draw(stream));
        transaction.submit_ns = now_ns;
        transaction.snapshot_ns = now_ns + whole_ns(read_ns.unwrap_or(0.0) * model.instant);
        transaction.commit_ns = now_ns + whole_ns(read_ns.unwrap_or(0.0) + runtime_ns);
        self.counts.requests += u64::from(read_ns.is_some());
        let (snapshot_ns, commit_ns) = (transaction.snapshot_ns, transaction.commit_ns);
        // Only transactions whose work depends on how many commits there were look at the state that they read.
        if !model.counts_versions[usize::from(transaction.validated_overwrite)] {
            self.begin_commit(index, commit_ns);
        } else if snapshot_ns == now_ns {
            self.remember(index);
            self.begin_commit(index, commit_ns);
        } else {
            transaction.refresh = Refresh::Submission;
            self.push(index, snapshot_ns, Kind::Snapshot);
        }
    }

    /// The commit starts, after the runtime.
    fn begin_commit(&mut self, index: u32, commit_ns: u64) {
        match self.model.refresh_first {
            true => self.refresh(index, commit_ns, Refresh::First),
            false => self.attempt(index, commit_ns),
        }
    }

    /// Notes the versions that a snapshot sees.
    fn remember(&mut self, index: u32) {
        let transaction = &mut self.transactions[index as usize];
        transaction.snapshot_version = self.shared.table(transaction).version;
        transaction.snapshot_partition_version = self.shared.partition(transaction).version;
        transaction.snapshot_sequence = self.shared.catalog.version;
        if transaction.refresh == Refresh::Submission {
            transaction.submit_version = transaction.snapshot_version;
        }
    }

    /// Counts the requests of a phase to the attempt at hand.
    #[inline(always)]
    fn charge(&mut self, index: u32, load: Load) {
        let transaction = &mut self.transactions[index as usize];
        transaction.requests += load.requests;
        transaction.bytes += load.bytes;
    }

    /// Ends a transaction; its client, if it has one, goes on to the next.
    fn finish(&mut self, index: u32, end_ns: u64, outcome: Outcome) {
        let transaction = &mut self.transactions[index as usize];
        if end_ns <= self.model.end_ns || self.model.cell.drain {
            let counts = &mut self.counts;
            match outcome {
                Outcome::Committed => counts.committed += 1,
                Outcome::AttemptsSpent => counts.aborted_attempts += 1,
                Outcome::BudgetSpent => counts.aborted_budget += 1,
                Outcome::RealConflict => counts.aborted_conflict += 1,
            }
            self.recorder.add(transaction, end_ns, outcome == Outcome::Committed);
            if let Some(told) = &mut self.told {
                told(&ended(transaction, end_ns, outcome));
            }
        }
        if self.model.think.is_some() {
            return self.think(index, end_ns);
        }
        self.free.push(index);
    }

    fn think(&mut self, index: u32, end_ns: u64) {
        let think = self.model.think.as_ref();
        let think_ns = think.map_or(0.0, |think| think.draw(&mut self.transactions[index as usize].stream));
        let start_ns = end_ns + whole_ns(think_ns);
        match start_ns < self.model.end_ns {
            true => self.queue.push(&mut self.transactions, start_ns, Kind::Start, index),
            false => self.free.push(index),
        }
    }
}

fn ended(transaction: &Transaction, end_ns: u64, outcome: Outcome) -> Ended {
    Ended {
        submit_ns: transaction.submit_ns,
        commit_ns: transaction.commit_ns,
        end_ns,
        table: transaction.table,
        is_validated_overwrite: transaction.validated_overwrite,
        failed_attempts: transaction.failures,
        outcome,
    }
}
