//! Laws that hold across the writer counts of one run: one winner of N, and a goodput that does not rise with N.

use super::Concurrency;
use crate::manifest::CellPlan;

/// Factor beyond which figures of two writer counts depart from each other.
const DEPARTURE: f64 = 1.5;

/// A cell of several writers.
#[derive(Clone, Copy, Debug)]
pub struct CellOf<'a> {
    /// What it set out to do.
    pub plan: &'a CellPlan,
    /// What it came to.
    pub found: &'a Concurrency,
}

impl CellOf<'_> {
    /// What it has in common with the cells that differ in nothing but the writers.
    fn series(&self) -> String {
        let parameters: Vec<String> = self
            .plan
            .parameters
            .iter()
            .filter(|(name, _)| name.as_str() != "writers")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let settings: Vec<String> = self.plan.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let CellPlan { format, catalog, store, seed, cpu, .. } = self.plan;
        format!("{format} {catalog} {store} {seed} {cpu} {} {}", parameters.join(" "), settings.join(" "))
    }
}

/// Says of each series of writer counts how it stands to the two laws, a line each.
pub fn laws(cells: &[CellOf<'_>]) -> Vec<String> {
    let mut series: Vec<(String, Vec<CellOf<'_>>)> = Vec::new();
    for cell in cells.iter().filter(|cell| is_closed(cell.plan)) {
        let name = cell.series();
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(*cell),
            None => series.push((name, vec![*cell])),
        }
    }
    let of_series = series.into_iter().filter(|(_, members)| members.len() > 1);
    of_series.flat_map(|(_, members)| of_series_lines(members)).collect()
}

/// Whether its writers start again at once and share one table.
fn is_closed(plan: &CellPlan) -> bool {
    let is = |name: &str, value: &str| plan.parameters.get(name).is_none_or(|given| given == value);
    is("arrivals", "closed") && plan.parameters.get("tables").is_none_or(|tables| tables == 1)
}

fn of_series_lines(mut cells: Vec<CellOf<'_>>) -> Vec<String> {
    cells.sort_by_key(|cell| cell.found.window.writers);
    let plan = cells[0].plan;
    let name = if plan.catalog == "none" {
        format!("{} on {}", plan.format, plan.store)
    } else {
        format!("{} with {} on {}", plan.format, plan.catalog, plan.store)
    };
    let writers: Vec<String> = cells.iter().map(|cell| cell.found.window.writers.to_string()).collect();
    let ratios: Vec<f64> = cells
        .iter()
        .filter_map(|cell| Some((1.0 - cell.found.failed_attempt_rate?) * f64::from(cell.found.window.writers)))
        .collect();
    let goodputs: Vec<f64> = cells.iter().filter_map(|cell| cell.found.commits_per_s).collect();
    let list = |values: &[f64]| values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if ratios.len() == cells.len() {
        let holds = ratios.iter().all(|ratio| (1.0 / DEPARTURE..=DEPARTURE).contains(ratio));
        lines.push(format!(
            "{}{name}: success ratio of attempts × writers is {} at {} writers (1/N says 1)",
            departs(holds),
            list(&ratios),
            writers.join(", "),
        ));
    }
    if goodputs.len() == cells.len() {
        let (least, most) = goodputs.iter().fold((f64::MAX, 0f64), |(least, most), g| (least.min(*g), most.max(*g)));
        lines.push(format!(
            "{}{name}: {} commits/s at {} writers (flat goodput says they are alike)",
            departs(most <= least * DEPARTURE),
            list(&goodputs),
            writers.join(", "),
        ));
    }
    lines
}

fn departs(holds: bool) -> &'static str {
    if holds { "" } else { "departs: " }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::record::Window;

    fn cell(writers: u32, rate: f64, goodput: f64) -> (CellPlan, Concurrency) {
        let mut plan = crate::run::tests::plan("c");
        plan.parameters = [("writers", Value::from(writers)), ("arrivals", "closed".into()), ("tables", 1.into())]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let found = Concurrency {
            window: Window { writers, ..Window::default() },
            failed_attempt_rate: Some(rate),
            commits_per_s: Some(goodput),
            ..Concurrency::default()
        };
        (plan, found)
    }

    fn lines(cells: &[(CellPlan, Concurrency)]) -> Vec<String> {
        laws(&cells.iter().map(|(plan, found)| CellOf { plan, found }).collect::<Vec<_>>())
    }

    #[test]
    fn a_series_is_held_to_both_laws() {
        let lines = lines(&[cell(100, 0.99, 8.1), cell(10, 0.9, 8.0)]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("is 1.00, 1.00 at 10, 100 writers") && !lines[0].starts_with("departs"), "{lines:?}");
        assert!(lines[1].contains("8.00, 8.10 commits/s at 10, 100") && !lines[1].starts_with("departs"), "{lines:?}");
    }

    #[test]
    fn a_series_that_waits_between_attempts_departs() {
        let lines = lines(&[cell(10, 0.9, 8.0), cell(100, 0.64, 3.0)]);
        assert!(lines.iter().all(|line| line.starts_with("departs: ")), "{lines:?}");
    }

    #[test]
    fn cells_that_differ_in_more_than_the_writers_are_no_series() {
        let (mut other, found) = cell(100, 0.9, 8.0);
        other.parameters.insert("retry".to_owned(), "none".into());
        assert_eq!(lines(&[cell(10, 0.9, 8.0), (other, found)]), Vec::<String>::new());
        let (mut paced, found) = cell(100, 0.9, 8.0);
        paced.parameters.insert("arrivals".to_owned(), "poisson".into());
        assert_eq!(lines(&[(paced.clone(), found.clone()), (paced, found)]), Vec::<String>::new());
    }
}
