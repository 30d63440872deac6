//! A discrete-event model of commit contention: transactions that race to publish to a catalog over an object store.
//!
//! A [`Cell`] says what is simulated: arrivals, tables, mix, provider, catalog, commit protocol, retry policy. One run
//! of it under a seed yields a [`CellResult`]. The same cell and seed yield the same result on any thread and in every
//! order of runs (on another platform, as far as its `exp` and `ln` agree); cells and seeds are independent, so that a
//! sweep may run them on as many threads as it likes.
//!
//! The model begins with that of endive-2026, whose published grid is [`studies::endive_2026`], and goes beyond it.
//! `docs/SIMULATOR.md` describes the model, what it was validated against, and how fast it is.

mod arrivals;
mod cell;
mod error;
mod histogram;
mod knee;
mod law;
mod model;
mod protocol;
mod provider;
mod result;
mod retry;
mod rules;
pub mod studies;

pub use arrivals::{Arrivals, rates_from_csv};
pub use cell::{Catalog, Cell, ProtocolChoice, RetryChoice, TableSelection};
pub use error::CellError;
pub use histogram::Histogram;
pub use knee::{KNEE_SUCCESS_RATE, knee};
pub use law::Law;
pub use model::{Model, simulate};
pub use protocol::{Operation, Protocol, Publish, Scope, Step, Winners};
pub use provider::{LawOverrides, OperationLaw, RateLimit};
pub use result::{CellResult, Counts, Ended, Latency, Outcome, PerType, Summary};
pub use retry::{Backoff, Jitter, RetryPolicy};
pub use rules::{CasLaw, History, Instant, Rules, RuntimeScale, Transfer};
