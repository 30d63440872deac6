use std::convert::Infallible;

use super::*;
use crate::record::{Audit, Check, Extent, Hello, Operation, Outcome};
use crate::summary::Operations;
use crate::table::{OutputFormat, Table};

struct Cell {
    plan: CellPlan,
    status: CellStatus,
    summary: CellSummary,
}

impl Cell {
    /// A verified cell whose commits all take `latency_ms`, with a metadata sample at its end.
    fn new(format: &str, catalog: &str, appends: u64, latency_ms: u64) -> Self {
        let mut plan = crate::run::tests::plan("cell-1");
        (plan.format, plan.catalog) = (format.into(), catalog.into());
        let mut status = CellStatus::started("cell-1");
        (status.state, status.reason) = (CellState::Ok, None);
        status.audit = Some(Audit {
            checks: vec![Check { name: "commits".into(), passed: true, detail: String::new() }],
            ..Audit::default()
        });
        let operations = (0..appends).map(|number| {
            let mut operation: Operation = serde_json::from_str(crate::run::tests::OPERATION).unwrap();
            operation.operation = number;
            operation.latency_us = latency_ms * 1_000;
            assert_eq!(operation.outcome, Outcome::Ok);
            Ok::<_, Infallible>(operation)
        });
        let active = Extent { objects: 1, bytes: 1_048_576 };
        let metadata = MetadataSample {
            appends,
            active,
            active_by_class: Default::default(),
            retained: active,
            retained_by_class: Default::default(),
            written_bytes: 0,
            load_latency_us: 0,
        };
        let Ok(summary) = CellSummary::from_records(operations, [], [], [Ok(metadata)]);
        Self { plan, status, summary }
    }

    fn rows(&self) -> Vec<ComparisonRow> {
        sequential_commit(&study(), &[self.measured()])
    }

    fn measured(&self) -> Measured<'_> {
        Measured { plan: &self.plan, status: &self.status, summary: &self.summary }
    }
}

fn study() -> Study {
    Study::load("lance-2026").unwrap()
}

#[test]
fn rows_of_a_full_run() {
    let rows = Cell::new("lance", "none", 10_000, 147).rows();
    let figures: Vec<_> = rows.iter().map(|row| (row.metric.as_str(), row.published, row.reproduced)).collect();
    assert_eq!(
        figures,
        [
            ("commit_latency_mean", Some(140.0), Some(147.0)),
            ("commit_latency_last100_mean", Some(168.0), Some(147.0)),
            ("active_metadata", Some(0.78), Some(1.0)),
        ]
    );
    assert_eq!(rows[0].ratio, Some(1.05));
    assert_eq!((rows[0].wait_ms, rows[0].catalog_ms), (Some(139.0), Some(0.0)));
    assert!((rows[0].cpu_ms.unwrap() - 0.9).abs() < 1e-9);
    assert_eq!(rows[2].wait_ms, None);
    assert!(rows.iter().all(|row| row.verified && row.emulated));
    assert_eq!(rows[0].notes, Vec::<String>::new());
    assert_eq!(rows[2].notes, ["study: about 82 bytes per active fragment"]);
}

#[test]
fn another_number_of_appends_is_said_and_still_shown() {
    let rows = Cell::new("lance", "none", 1_000, 149).rows();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.notes[0] == "1,000 appends against 10,000" && row.ratio.is_some()));
}

#[test]
fn active_metadata_is_taken_at_the_published_number_of_appends() {
    let mut cell = Cell::new("lance", "none", 20_000, 149);
    let mut earlier = cell.summary.metadata[0].clone();
    (earlier.appends, earlier.active.bytes) = (10_000, 524_288);
    cell.summary.metadata.insert(0, earlier);
    let row = &cell.rows()[2];
    assert_eq!(row.reproduced, Some(0.5));
    assert!(!row.notes.iter().any(|note| note.contains("against")), "{:?}", row.notes);
}

#[test]
fn any_sql_catalog_stands_for_postgres_and_says_so() {
    for (catalog, note) in [
        ("sqlite", Some("catalog sqlite against postgres")),
        ("mysql", Some("catalog mysql against postgres")),
        ("postgres", None),
        ("postgresql://user:secret@host/db", None),
    ] {
        let row = Cell::new("iceberg", catalog, 10_000, 457).rows().remove(0);
        assert_eq!((row.published, row.ratio), (Some(457.0), Some(1.0)), "{catalog}");
        assert_eq!(row.notes.first().map(String::as_str), note, "{catalog}");
        assert!(!format!("{row:?}").contains("secret"));
    }
}

#[test]
fn the_log_only_figure_is_not_the_full_path() {
    let row = Cell::new("delta", "none", 10_000, 534).rows().remove(0);
    assert_eq!(row.published, Some(534.0));
}

#[test]
fn missing_figures_on_either_side() {
    // No catalog of that class, and no store of that name, in the study: the run's figures stand alone.
    let mut cell = Cell::new("lance", "none", 1_000, 149);
    cell.plan.store = "gcs".into();
    let rows = cell.rows();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.published.is_none() && row.ratio.is_none() && row.reproduced.is_some()));

    // Too few commits for the last 100.
    let row = &Cell::new("lance", "none", 50, 149).rows()[1];
    assert_eq!((row.published, row.reproduced, row.ratio), (Some(168.0), None, None));
    assert!(row.notes.contains(&"fewer than 100 commits".to_owned()));

    // Nothing at all: no active metadata published for that pair, none measured.
    let mut cell = Cell::new("iceberg", "polaris", 10_000, 583);
    cell.summary.metadata.clear();
    assert_eq!(cell.rows().len(), 2);
}

#[test]
fn invalid_and_failed_cells_are_marked() {
    let mut cell = Cell::new("lance", "none", 10_000, 147);
    (cell.status.state, cell.status.reason) = (CellState::Invalid, Some("audit failed: commits".into()));
    assert!(cell.rows().iter().all(|row| !row.verified && row.notes[0] == "invalid: audit failed: commits"));

    (cell.status.state, cell.status.reason, cell.status.audit) = (CellState::Error, Some("no memory".into()), None);
    cell.summary.appends_ok = Operations(0);
    cell.summary.latency = None;
    let row = cell.rows().remove(0);
    assert_eq!((row.published, row.reproduced), (Some(140.0), None));
    assert_eq!(row.notes[0], "error: no memory");
}

#[test]
fn real_stores_and_other_cpu_modes_are_told() {
    let mut cell = Cell::new("lance", "none", 10_000, 147);
    cell.plan.store = "s3://bucket/prefix".into();
    cell.plan.cpu = "scale=0.5".into();
    let rows = cell.rows();
    assert!(!rows[0].emulated);
    assert_eq!(rows[0].published, Some(140.0));
    assert_eq!(rows[0].notes, ["CPU time in the latency: scale=0.5"]);
    assert_eq!(rows[2].notes, ["study: about 82 bytes per active fragment"]);
}

const COMPUTING_ADDED: &str = "computing added from CPU time, scale 1";

#[test]
fn computing_is_added_where_process_time_stood_still() {
    let mut cell = Cell::new("lance", "none", 10_000, 139);
    cell.plan.cpu = "free".into();
    let rows = cell.rows();
    for (row, published) in rows[..2].iter().zip([140.0, 168.0]) {
        assert_eq!(row.published, Some(published));
        assert!((row.reproduced.unwrap() - 139.9).abs() < 1e-9);
        assert!((row.ratio.unwrap() - 139.9 / published).abs() < 1e-9);
        assert!(row.half_width.unwrap() < 1e-9);
        // The parts are what they are under any mode: CPU is the CPU time, not what is left of the latency.
        assert_eq!((row.wait_ms, row.catalog_ms), (Some(139.0), Some(0.0)));
        assert!((row.cpu_ms.unwrap() - 0.9).abs() < 1e-9);
        assert_eq!(row.notes, [COMPUTING_ADDED]);
    }
    assert_eq!((rows[2].reproduced, rows[2].cpu_ms), (Some(1.0), None));
    assert_eq!(rows[2].notes, ["study: about 82 bytes per active fragment"]);
    let text = Table::of(&rows).to_text(None);
    assert_eq!(text.matches(COMPUTING_ADDED).count(), 1, "{text}");
}

#[test]
fn nothing_is_added_to_a_latency_that_holds_computing() {
    for cpu in ["measured", "scale=0.5"] {
        let mut cell = Cell::new("lance", "none", 10_000, 147);
        cell.plan.cpu = cpu.into();
        let rows = cell.rows();
        assert_eq!((rows[0].reproduced, rows[1].reproduced), (Some(147.0), Some(147.0)), "{cpu}");
        assert!(rows.iter().all(|row| !row.notes.iter().any(|note| note == COMPUTING_ADDED)), "{cpu}");
    }
}

#[test]
fn nothing_is_added_on_the_real_clock() {
    let note = ["the clock was real: CPU free had no effect"];
    let mut asked_for = Cell::new("lance", "none", 10_000, 147);
    (asked_for.plan.cpu, asked_for.plan.clock) = ("free".into(), "real".into());
    let mut fell_back = Cell::new("lance", "none", 10_000, 147);
    fell_back.plan.cpu = "free".into();
    fell_back.status.hello = Some(Hello {
        protocol: 1,
        format: "lance".into(),
        library: "lance 1".into(),
        clock: "real".into(),
        clock_note: Some("no schedstat".into()),
        one_cpu: false,
        settings: Default::default(),
    });
    for cell in [asked_for, fell_back] {
        let row = cell.rows().remove(0);
        assert_eq!(row.reproduced, Some(147.0));
        assert_eq!(row.notes, note);
    }
}

#[test]
fn nothing_is_said_of_computing_where_there_is_no_latency() {
    let mut cell = Cell::new("lance", "none", 50, 139);
    cell.plan.cpu = "free".into();
    let rows = cell.rows();
    assert!(rows[0].notes.iter().any(|note| note == COMPUTING_ADDED));
    assert_eq!(rows[1].reproduced, None);
    assert!(!rows[1].notes.iter().any(|note| note == COMPUTING_ADDED), "{:?}", rows[1].notes);
}

#[test]
fn figures_that_no_cell_stands_against_are_listed() {
    let (lance, delta) = (Cell::new("lance", "none", 1_000, 149), Cell::new("delta", "none", 1_000, 264));
    let cells = [lance.measured(), delta.measured()];
    let missing = not_reproduced(&study(), &cells).len();
    let published = study().figures.iter().filter(|figure| figure.scenario == SEQUENTIAL_COMMIT).count();
    assert_eq!(missing, published - 6);
}

#[test]
fn the_table_fits_a_page_and_keeps_programs_names() {
    let mut cells = [Cell::new("lance", "none", 1_000, 149), Cell::new("iceberg", "postgres", 1_000, 1_314)];
    cells[1].plan.store = "s3-express".into();
    let rows = sequential_commit(&study(), &cells.each_ref().map(Cell::measured));
    let text = Table::of(&rows).to_text(None);
    let table: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.contains("1.06"), "{text}");
    let mut out = Vec::new();
    Table::of(&rows).write(&mut out, OutputFormat::Json, None).unwrap();
    // serde_json reads a number back to within its last bit, so that whole rows need not be equal.
    let read: Vec<ComparisonRow> = serde_json::from_slice(&out).unwrap();
    let key = |row: &ComparisonRow| (row.metric.clone(), row.published, row.verified, row.emulated, row.notes.clone());
    assert_eq!(read.iter().map(key).collect::<Vec<_>>(), rows.iter().map(key).collect::<Vec<_>>());
}
