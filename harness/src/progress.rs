//! How far the cells are, on a terminal.

use std::io::{self, IsTerminal};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lakemark_results::manifest::CellPlan;

/// Bars for the cells that run. Draws nothing unless standard error is a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Progress(MultiProgress);

/// The bar of one cell.
#[derive(Debug)]
pub(crate) struct CellProgress {
    bar: ProgressBar,
    /// What a line holds that counts as one step.
    step: &'static str,
}

impl Progress {
    /// Bars on standard error.
    pub(crate) fn new() -> Self {
        let target =
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(MultiProgress::with_draw_target(target))
    }

    /// A bar for a cell that starts.
    pub(crate) fn cell(&self, plan: &CellPlan) -> CellProgress {
        let steps = plan.parameters.get("appends").and_then(serde_json::Value::as_u64).unwrap_or_default();
        let bar = self.0.add(ProgressBar::new(steps));
        // The template is a constant: if it ever stopped being one, the default style would do.
        if let Ok(style) = ProgressStyle::with_template("{prefix:42} {bar:30} {pos:>6}/{len} {elapsed:>4} (left {eta})")
        {
            bar.set_style(style);
        }
        bar.set_prefix(plan.id.clone());
        CellProgress { bar, step: "\"kind\":\"append\"" }
    }
}

/// The bar of a sweep: runs done, how many a second, time left. Draws nothing unless standard error is a terminal.
#[derive(Debug)]
pub(crate) struct SweepProgress(ProgressBar);

impl SweepProgress {
    /// A bar for a sweep of so many runs.
    pub(crate) fn new(runs: u64) -> Self {
        let target =
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        let template = "{bar:40} {human_pos}/{human_len} runs, {per_sec} {elapsed:>5} (left {eta})";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// One more run is done.
    pub(crate) fn run(&self) {
        self.0.inc(1);
    }
}

impl Drop for SweepProgress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl CellProgress {
    /// Takes note of a line of the worker.
    pub(crate) fn line(&self, raw: &str) {
        if !self.bar.is_hidden() && raw.starts_with("{\"type\":\"operation\"") && raw.contains(self.step) {
            self.bar.inc(1);
        }
    }
}

impl Drop for CellProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
