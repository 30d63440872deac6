//! How long will a sweep take? A probe of a few of its cells.

use lakemark_core::clock::real_ns;
use lakemark_simulator::{Arrivals, Cell, Model};

use crate::error::SweepError;
use crate::grid::Grid;

/// Runs above which a sweep wants to be confirmed.
pub const RUNS_MAX: u64 = 100_000;

/// Estimated seconds above which a sweep wants to be confirmed.
pub const SECONDS_MAX: f64 = 3_600.0;

/// Cells that are looked at.
const SAMPLE: u64 = 64;

/// Real time that a probe may take, in nanoseconds.
const PROBE_NS: u64 = 1_000_000_000;

/// What a transaction takes where nothing was measured, in nanoseconds: some two attempts at a few million a second.
const NOMINAL_NS: f64 = 1_000.0;

/// Seconds that runs of a grid take on some threads. Some of its cells are run for a second, fewest transactions
/// first, unless `is_measured` is off; the rest goes by the transactions that are expected. Cells whose commits read
/// long histories take longer than that.
///
/// # Errors
/// If a cell is refused.
pub fn seconds(grid: &Grid, runs: u64, threads: usize, is_measured: bool) -> Result<f64, SweepError> {
    let mut cells =
        grid.sample(SAMPLE).map(|index| Ok(grid.cell(index)?.cell)).collect::<Result<Vec<_>, SweepError>>()?;
    cells.sort_by(|a, b| transactions(a).total_cmp(&transactions(b)));
    let mean = cells.iter().map(transactions).sum::<f64>() / cells.len().max(1) as f64;
    let (mut probed_ns, mut probed) = (0, 0.0);
    for cell in cells.iter().filter(|_| is_measured) {
        let expected_ns = if probed > 0.0 { probed_ns as f64 / probed * transactions(cell) } else { 0.0 };
        if probed_ns as f64 + expected_ns > PROBE_NS as f64 {
            break;
        }
        let model = Model::new(cell).map_err(|reason| SweepError::Cell { origin: "grid".to_owned(), reason })?;
        let start_ns = real_ns();
        model.run(1);
        probed_ns += real_ns() - start_ns;
        probed += transactions(cell);
    }
    let transaction_ns = if probed > 0.0 { probed_ns as f64 / probed } else { NOMINAL_NS };
    Ok(runs as f64 * mean * transaction_ns / 1e9 / threads.max(1) as f64)
}

/// Transactions that a cell is expected to start, at least one.
fn transactions(cell: &Cell) -> f64 {
    let expected = cell.expected_arrivals().unwrap_or_else(|| match &cell.arrivals {
        // A client that waits for its commits makes about one a second.
        Arrivals::ClosedLoop { clients, .. } => f64::from(*clients) * cell.duration_ms / 1_000.0,
        _ => 1.0,
    });
    expected.max(1.0)
}

/// Seconds, as a person would say them.
pub fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 1.5 => "a second".to_owned(),
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5_400.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} hours", s / 3_600.0),
        s if s < 730.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        s => format!("{:.0} years", s / (365.25 * 86_400.0)),
    }
}
