//! What do transactions share? The catalog's sequence number, and versions of tables and partitions.

use super::transaction::Transaction;
use crate::protocol::Scope;
use crate::provider::RateLimit;

/// Something that commits change: how often, and when last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Versioned {
    pub(super) version: u32,
    pub(super) changed_ns: u64,
}

impl Versioned {
    fn change(&mut self, now_ns: u64) {
        self.version += 1;
        self.changed_ns = now_ns;
    }
}

/// The state that transactions share.
pub(super) struct Shared {
    pub(super) catalog: Versioned,
    pub(super) tables: Vec<Versioned>,
    /// Empty where tables have one partition.
    pub(super) partitions: Vec<Versioned>,
}

impl Shared {
    pub(super) fn new(tables: u32, partitions: u32) -> Self {
        Self {
            catalog: Versioned::default(),
            tables: vec![Versioned::default(); tables as usize],
            partitions: match partitions {
                1 => Vec::new(),
                n => vec![Versioned::default(); tables as usize * n as usize],
            },
        }
    }

    #[inline(always)]
    pub(super) fn table(&self, transaction: &Transaction) -> Versioned {
        self.tables[transaction.table as usize]
    }

    #[inline]
    pub(super) fn partition(&self, transaction: &Transaction) -> Versioned {
        match self.partitions.is_empty() {
            true => self.table(transaction),
            false => self.partitions[transaction.partition as usize],
        }
    }

    /// Somebody in the scope has committed since the transaction's snapshot.
    #[inline(always)]
    pub(super) fn lost(&self, transaction: &Transaction, scope: Scope) -> bool {
        let changed_ns = match scope {
            Scope::Catalog => self.catalog.changed_ns,
            Scope::Table => self.table(transaction).changed_ns,
            Scope::Partition => self.partition(transaction).changed_ns,
        };
        changed_ns > transaction.snapshot_ns
    }

    pub(super) fn commit(&mut self, transaction: &Transaction, now_ns: u64) {
        self.catalog.change(now_ns);
        self.tables[transaction.table as usize].change(now_ns);
        if !self.partitions.is_empty() {
            self.partitions[transaction.partition as usize].change(now_ns);
        }
    }
}

/// A token bucket for writes to one object.
pub(super) struct Bucket {
    limit: RateLimit,
    tokens: f64,
    filled_ns: u64,
}

impl Bucket {
    pub(super) fn new(limit: RateLimit) -> Self {
        Self { limit, tokens: limit.burst, filled_ns: 0 }
    }

    fn fill(&mut self, now_ns: u64) {
        let gained = now_ns.saturating_sub(self.filled_ns) as f64 / 1e9 * self.limit.per_s;
        self.tokens = (self.tokens + gained).min(self.limit.burst);
        self.filled_ns = self.filled_ns.max(now_ns);
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        self.fill(now_ns);
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }

    /// Takes the next token, and when there is one.
    pub(super) fn wait(&mut self, now_ns: u64) -> u64 {
        self.fill(now_ns);
        self.tokens -= 1.0;
        now_ns + ((-self.tokens).max(0.0) / self.limit.per_s * 1e9) as u64
    }
}
