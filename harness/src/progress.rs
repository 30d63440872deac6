//! How far the cells are, on a terminal.

use std::io::{self, IsTerminal};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lakemark_results::manifest::CellPlan;
use serde_json::Value;

/// Bars for the cells that run. Draws nothing unless standard error is a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Progress(MultiProgress);

/// The bar of one cell.
#[derive(Debug)]
pub(crate) struct CellProgress {
    bar: ProgressBar,
    counts: Counts,
}

/// What a cell's bar counts.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// Appends, of as many as the cell makes.
    Appends,
    /// Seconds of process time, of those that the cell lasts.
    Seconds,
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
        let number = |name: &str| plan.parameters.get(name).and_then(Value::as_f64);
        let (counts, steps, unit) = match number("duration-s") {
            Some(duration_s) => (Counts::Seconds, duration_s + number("warm-up-s").unwrap_or_default(), " s"),
            None => (Counts::Appends, number("appends").unwrap_or_default(), ""),
        };
        let bar = self.0.add(ProgressBar::new(steps.ceil() as u64));
        let template = format!("{{prefix:42}} {{bar:30}} {{pos:>6}}/{{len}}{unit} {{elapsed:>4}} (left {{eta}})");
        // If the template ever stopped being one, the default style would do.
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_prefix(plan.id.clone());
        CellProgress { bar, counts }
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
        if self.bar.is_hidden() || !raw.starts_with("{\"type\":\"operation\"") {
            return;
        }
        match self.counts {
            Counts::Appends if raw.contains("\"kind\":\"append\"") => self.bar.inc(1),
            Counts::Appends => {}
            Counts::Seconds => {
                self.bar.set_position(self.bar.position().max(end_us(raw).unwrap_or_default() / 1_000_000))
            }
        }
    }
}

/// When the operation of a line ended.
fn end_us(raw: &str) -> Option<u64> {
    let number = |name: &str| {
        let (_, rest) = raw.split_once(name)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    Some(number("\"start_us\":")? + number("\"latency_us\":")?)
}

impl Drop for CellProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operations_end_is_read_off_its_line() {
        let line = r#"{"type":"operation","writer":3,"start_us":1500000,"latency_us":250000,"wait_us":7}"#;
        assert_eq!(end_us(line), Some(1_750_000));
        assert_eq!(end_us(r#"{"type":"operation"}"#), None);
    }
}
