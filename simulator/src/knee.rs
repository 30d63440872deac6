//! How much can a catalog take? The study's knee.

/// Success rate that a sustainable load reaches.
pub const KNEE_SUCCESS_RATE: f64 = 0.95;

/// endive-2026's knee: of loads from the heaviest to the lightest, the index of the first whose success rate reaches 95
/// %. Success is that of FastAppends where there are no others, and else of ValidatedOverwrites, by the knee
/// definition, in the mean over seeds. There is no interpolation, so the answer is one of the loads given; None if none
/// passes.
pub fn knee(success_rates: impl IntoIterator<Item = Option<f64>>) -> Option<usize> {
    success_rates.into_iter().position(|rate| rate.is_some_and(|rate| rate >= KNEE_SUCCESS_RATE))
}
