//! Sweeps of the commit-contention simulator: grids of cells, run on all threads, split over machines, kept as Parquet and
//! drawn.
//!
//! A [`GridSpec`] from a file or from options becomes a checked [`Grid`]; [`run`](run::run) simulates its cells into a
//! [`SweepFolder`]; [`merge`](merge::merge) puts the rows of several together. `docs/SWEEPS.md` describes files and columns.

pub mod endive;
mod error;
pub mod estimate;
pub mod file;
mod folder;
mod grid;
pub mod merge;
mod node;
pub mod plot;
pub mod row;
pub mod run;
mod settings;
pub mod sketch;
pub mod summary;
mod transactions;

pub use error::SweepError;
pub use folder::{Manifest, Shard, SweepFolder, row_files};
pub use grid::{Grid, GridSpec, PlannedCell, SEEDS, STUDIES};
pub use settings::{LOAD, MIX};
