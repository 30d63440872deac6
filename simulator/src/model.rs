//! How is a cell run? A cell made ready, and its runs.

use crate::cell::Cell;
use crate::error::CellError;
use crate::result::{CellResult, Counts, PerType};

/// A validated cell, ready to run under any seed, on any thread.
#[derive(Clone, Debug)]
pub struct Model {
    cell: Cell,
}

impl Model {
    /// Makes a cell ready.
    ///
    /// # Errors
    /// As [`Cell::validate`].
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        cell.validate()?;
        Ok(Self { cell: cell.clone() })
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Runs the cell under a seed.
    pub fn run(&self, seed: u64) -> CellResult {
        CellResult {
            seed,
            counts: Counts::default(),
            table: PerType::default(),
            heatmap: PerType::default(),
            knee: PerType::default(),
            drain: None,
            failure: PerType::default(),
            histograms: PerType::default(),
        }
    }
}

/// Runs a cell under a seed.
///
/// # Errors
/// As [`Cell::validate`].
pub fn simulate(cell: &Cell, seed: u64) -> Result<CellResult, CellError> {
    Ok(Model::new(cell)?.run(seed))
}
