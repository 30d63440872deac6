//! What does a phase of an attempt cost? Steps made ready: their waits summed, since nothing shared is touched in
//! between.

use std::cell::RefCell;

use super::sampler::Sampler;
use super::streams::Stream;
use crate::cell::{Catalog, Cell};
use crate::protocol::{Operation, Step};
use crate::provider::{MIB_BYTES, OperationLaw, StoreLaws};
use crate::rules::{CasLaw, Transfer};

/// A phase made ready.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    fixed_ns: f64,
    fixed_ns_per_version: f64,
    draws: Vec<(Sampler, u32)>,
    /// Listings: one page, and the versions that fill one more.
    listings: Vec<(Sampler, f64)>,
    requests: u32,
    bytes: u64,
    bytes_per_version: f64,
    /// Nothing is done.
    empty: bool,
    /// Something depends on the version.
    grows: bool,
}

/// Requests and bytes of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) requests: u32,
    pub(super) bytes: u64,
}

impl Plan {
    pub(super) fn nothing() -> Self {
        Self {
            fixed_ns: 0.0,
            fixed_ns_per_version: 0.0,
            draws: Vec::new(),
            listings: Vec::new(),
            requests: 0,
            bytes: 0,
            bytes_per_version: 0.0,
            empty: true,
            grows: false,
        }
    }

    /// The duration of the phase at a version of the table, in nanoseconds, and what it asks of the store.
    #[inline(always)]
    pub(super) fn run(&self, version: u32, stream: &mut Stream) -> (f64, Load) {
        if self.empty { (0.0, Load::default()) } else { self.draw(version, stream) }
    }

    fn draw(&self, version: u32, stream: &mut Stream) -> (f64, Load) {
        let mut ns = self.fixed_ns;
        // A copy stays in registers.
        let mut local = *stream;
        for (sampler, times) in &self.draws {
            ns += sampler.few(*times, &mut local);
        }
        *stream = local;
        let mut load = Load { requests: self.requests, bytes: self.bytes };
        if self.grows {
            self.grow(version, stream, &mut ns, &mut load);
        }
        (ns, load)
    }

    /// The duration of the phase `n` times over, and what it asks of the store.
    #[inline]
    pub(super) fn repeat(&self, n: u32, exact_below: u32, stream: &mut Stream) -> (f64, Load) {
        let mut ns = self.fixed_ns * f64::from(n);
        for (sampler, times) in &self.draws {
            ns += sampler.sum(n.saturating_mul(*times), exact_below, stream);
        }
        (ns, Load { requests: self.requests.saturating_mul(n), bytes: self.bytes * u64::from(n) })
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    fn grow(&self, version: u32, stream: &mut Stream, ns: &mut f64, load: &mut Load) {
        let version = f64::from(version);
        *ns += self.fixed_ns_per_version * version;
        load.bytes += (self.bytes_per_version * version) as u64;
        for (page, versions_per_page) in &self.listings {
            let pages = 1 + (version / versions_per_page) as u32;
            *ns += page.sum(pages, u32::MAX, stream);
            load.requests += pages;
        }
    }
}

/// What decides a request's law: operation, bytes and keys.
type Request = (Operation, u64, f64);

/// Makes steps ready for a cell's store and catalog.
pub(super) struct Planner<'a> {
    pub(super) cell: &'a Cell,
    pub(super) laws: StoreLaws,
    known: RefCell<Vec<(Request, Sampler)>>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(cell: &'a Cell, laws: StoreLaws) -> Self {
        Self { cell, laws, known: RefCell::default() }
    }

    pub(super) fn plan(&self, steps: &[Step]) -> Plan {
        let mut plan = Plan::nothing();
        for step in steps {
            if self.cell.rules.table_metadata_inlined && step.object == "metadata.json" {
                continue;
            }
            let times = f64::from(step.times);
            plan.fixed_ns += step.work_ms * 1e6 * times;
            if step.operation == Operation::Work {
                continue;
            }
            if step.keys_per_version > 0.0 {
                let page_keys = self.laws.page_keys;
                let page = self.request(step.operation, step.bytes, page_keys.min(1_000.0) / 2.0);
                (0..step.times).for_each(|_| plan.listings.push((page.clone(), page_keys / step.keys_per_version)));
                continue;
            }
            plan.requests += step.times;
            plan.bytes += step.bytes * u64::from(step.times);
            plan.bytes_per_version += step.bytes_per_version * times;
            plan.fixed_ns_per_version += self.ns_per_byte(step.operation) * step.bytes_per_version * times;
            let sampler = self.request(step.operation, step.bytes, 0.0);
            match sampler.fixed_ns() {
                Some(ns) => plan.fixed_ns += ns * times,
                None => match plan.draws.iter_mut().find(|drawn| drawn.0.is_same(&sampler)) {
                    Some(drawn) => drawn.1 += step.times,
                    None => plan.draws.push((sampler, step.times)),
                },
            }
        }
        plan.grows = plan.fixed_ns_per_version > 0.0 || plan.bytes_per_version > 0.0 || !plan.listings.is_empty();
        plan.empty = plan.requests == 0 && plan.fixed_ns == 0.0 && !plan.grows;
        plan
    }

    /// One request. Requests that are alike share their table, and so its place in the processor's cache.
    pub(super) fn request(&self, operation: Operation, bytes: u64, keys: f64) -> Sampler {
        let known =
            self.known.borrow().iter().find(|known| known.0 == (operation, bytes, keys)).map(|known| known.1.clone());
        known.unwrap_or_else(|| {
            let sampler = self.new_request(operation, bytes, keys);
            self.known.borrow_mut().push(((operation, bytes, keys), sampler.clone()));
            sampler
        })
    }

    fn new_request(&self, operation: Operation, bytes: u64, keys: f64) -> Sampler {
        let transfer = self.cell.rules.transfer;
        match (operation, &self.cell.catalog) {
            (Operation::Work, _) => Sampler::constant(0.0),
            (Operation::CatalogRead, Catalog::Service { latency_ms }) => Sampler::constant(latency_ms * 1e6),
            (Operation::CatalogRead, Catalog::ServiceLaws { read, .. }) => Sampler::law(read),
            _ => {
                let write = matches!(operation, Operation::Write | Operation::PutIfAbsent);
                Sampler::operation(self.law(operation), write, bytes as f64, keys, transfer)
            }
        }
    }

    /// A compare-and-swap at the catalog.
    pub(super) fn swap(&self, bytes: u64) -> Sampler {
        let rules = &self.cell.rules;
        match &self.cell.catalog {
            Catalog::Service { latency_ms } => Sampler::constant(latency_ms * 1e6),
            Catalog::ServiceLaws { swap, .. } => Sampler::law(swap),
            // The study's own law of the conditional put has no term for bytes.
            Catalog::Storage => {
                let bytes_of_swap = if rules.transfer == Transfer::Study { 0.0 } else { bytes as f64 };
                let swap = Sampler::operation(&self.laws.swap, true, bytes_of_swap, 0.0, rules.transfer);
                match rules.cas_law {
                    CasLaw::Cas => swap,
                    CasLaw::MaxOfCasAndWrite => Sampler::larger(swap, self.request(Operation::Write, bytes, 0.0)),
                }
            }
        }
    }

    pub(super) fn put_if_absent(&self, bytes: u64) -> Sampler {
        self.request(Operation::PutIfAbsent, bytes, 0.0)
    }

    /// What one more byte of body adds, in nanoseconds.
    pub(super) fn ns_per_byte(&self, operation: Operation) -> f64 {
        let write = matches!(operation, Operation::Write | Operation::PutIfAbsent);
        if operation == Operation::CatalogRead || (self.cell.rules.transfer == Transfer::Study && !write) {
            return 0.0;
        }
        self.law(operation).per_mib_ms * 1e6 / MIB_BYTES
    }

    fn law(&self, operation: Operation) -> &OperationLaw {
        match operation {
            Operation::Read | Operation::CatalogRead | Operation::Work => &self.laws.read,
            Operation::Head => &self.laws.head,
            Operation::Write => &self.laws.write,
            Operation::List => &self.laws.list,
            Operation::PutIfAbsent => &self.laws.put_if_absent,
        }
    }
}
