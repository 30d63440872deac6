//! Object stores: the emulated provider, and the adapters through which the formats' libraries see a store.

pub mod adapter;
mod client;
mod content;
mod emulated;
pub mod law;
mod limit;
pub mod profile;
mod seed;

pub use emulated::Emulated;
