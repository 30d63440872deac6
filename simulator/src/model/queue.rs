//! Which event is next? A timing wheel whose current slot is a small heap.
//!
//! Most waits of this model are of two kinds: minutes (runtimes, long validations) and tenths of a second (attempts). A
//! heap over all of them is large and cold. Here an event goes into the list of its slot of time, a link in the memory
//! of its own transaction, and only the events of the slot at hand are in order, in a 4-ary heap of one or two cache
//! lines. See `docs/SIMULATOR.md` for what else was measured.

use super::transaction::Transaction;

/// Nanoseconds of a slot as a power of two: 16.8 ms.
const SLOT_BITS: u32 = 24;
/// Slots of the wheel as a power of two: 17 s a turn.
const TURN_BITS: u32 = 10;
const SLOTS: usize = 1 << TURN_BITS;
/// Turns ahead, each with a list of its own: 73 minutes. Events further ahead wait in theirs for a later round.
const TURNS: usize = 256;
/// End of a list.
const NONE: u32 = u32::MAX;
const ARITY: usize = 4;

/// What happens at an event. At the same instant, checks come first: a snapshot sees the commits of its own instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Kind {
    Publish = 0,
    BatchDone = 1,
    EarlyCheck = 2,
    Snapshot = 3,
    Start = 4,
}

impl Kind {
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Publish,
            1 => Self::BatchDone,
            2 => Self::EarlyCheck,
            3 => Self::Snapshot,
            _ => Self::Start,
        }
    }
}

pub(super) struct Queue {
    /// Time, kind and transaction of the events of the current slot.
    heap: Vec<u128>,
    heads: Box<[u32]>,
    /// Lists of later turns.
    later: Box<[u32]>,
    /// Number of the current slot since the start.
    slot: u64,
    /// Events in the lists.
    listed: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            heap: Vec::with_capacity(256),
            heads: vec![NONE; SLOTS].into(),
            later: vec![NONE; TURNS].into(),
            slot: 0,
            listed: 0,
        }
    }

    /// Adds the event of a transaction, which has no other.
    #[inline]
    pub(super) fn push(&mut self, transactions: &mut [Transaction], time_ns: u64, kind: Kind, index: u32) {
        let slot = time_ns >> SLOT_BITS;
        if slot <= self.slot {
            return self.push_heap(key(time_ns, kind as u32, index));
        }
        let transaction = &mut transactions[index as usize];
        transaction.event_ns = time_ns;
        transaction.event = kind as u8;
        let head = match slot >> TURN_BITS == self.slot >> TURN_BITS {
            true => &mut self.heads[slot as usize % SLOTS],
            false => &mut self.later[(slot >> TURN_BITS) as usize % TURNS],
        };
        transaction.next = std::mem::replace(head, index);
        self.listed += 1;
    }

    /// Time of the next event of the current slot; `u64::MAX` if it has none left.
    #[inline(always)]
    pub(super) fn next_ns(&self) -> u64 {
        self.heap.first().map_or(u64::MAX, |key| (key >> 64) as u64)
    }

    /// End of the current slot.
    #[inline(always)]
    pub(super) fn slot_end_ns(&self) -> u64 {
        (self.slot + 1) << SLOT_BITS
    }

    /// No event is left in any slot.
    pub(super) fn is_empty(&self) -> bool {
        self.listed == 0 && self.heap.is_empty()
    }

    /// Goes on to the next slot.
    pub(super) fn advance(&mut self, transactions: &mut [Transaction]) {
        self.slot += 1;
        if self.slot.is_multiple_of(SLOTS as u64) {
            self.turn(transactions);
        }
        let mut index = std::mem::replace(&mut self.heads[self.slot as usize % SLOTS], NONE);
        while index != NONE {
            let transaction = &transactions[index as usize];
            let key = key(transaction.event_ns, u32::from(transaction.event), index);
            index = transaction.next;
            self.listed -= 1;
            self.push_heap(key);
        }
    }

    /// Spreads the events of the turn that begins over its slots.
    fn turn(&mut self, transactions: &mut [Transaction]) {
        let turn = self.slot >> TURN_BITS;
        let mut index = std::mem::replace(&mut self.later[turn as usize % TURNS], NONE);
        while index != NONE {
            let transaction = &mut transactions[index as usize];
            let slot = transaction.event_ns >> SLOT_BITS;
            let head = match slot >> TURN_BITS == turn {
                true => &mut self.heads[slot as usize % SLOTS],
                false => &mut self.later[turn as usize % TURNS],
            };
            let next = transaction.next;
            transaction.next = std::mem::replace(head, index);
            index = next;
        }
    }

    #[inline]
    fn push_heap(&mut self, key: u128) {
        let mut hole = self.heap.len();
        self.heap.push(key);
        let heap = self.heap.as_mut_slice();
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent] <= key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = key;
    }

    /// Takes the next event of the current slot.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Kind, u32)> {
        let last = self.heap.pop()?;
        let heap = self.heap.as_mut_slice();
        let len = heap.len();
        let mut taken = last;
        if len > 0 {
            taken = heap[0];
            let mut hole = 0;
            loop {
                let first = hole * ARITY + 1;
                if first >= len {
                    break;
                }
                let (mut least, mut least_key) = (first, heap[first]);
                for (child, key) in heap.iter().enumerate().take((first + ARITY).min(len)).skip(first + 1) {
                    if *key < least_key {
                        (least, least_key) = (child, *key);
                    }
                }
                if least_key >= last {
                    break;
                }
                heap[hole] = least_key;
                hole = least;
            }
            heap[hole] = last;
        }
        Some(((taken >> 64) as u64, Kind::from_bits((taken >> 32) as u32), taken as u32))
    }
}

#[inline(always)]
fn key(time_ns: u64, kind: u32, index: u32) -> u128 {
    u128::from(time_ns) << 64 | u128::from(kind) << 32 | u128::from(index)
}
