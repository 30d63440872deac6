//! Sweeps from grid to file: shards, resuming, merging, what comes back.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lakemark_simulator::simulate;
use lakemark_sweep::file::{FileReader, RowRead};
use lakemark_sweep::merge::merge;
use lakemark_sweep::plot::{self, Plot};
use lakemark_sweep::row::Scalar;
use lakemark_sweep::run::{How, run, shard_runs};
use lakemark_sweep::summary::summarize;
use lakemark_sweep::{Grid, GridSpec, Manifest, Shard, SweepFolder, sketch};

const GRID: &str = r#"
name = "small"
seeds = 3
[cell]
duration_ms = 120_000
runtime = {kind = "constant", ms = 100}
arrivals = {kind = ["log-normal", "exponential"]}
load_per_s = [1, 2.5, 4]
tables = [1, 10]
mix = ["100/0", "90/10"]
"#;

fn grid(text: &str) -> Grid {
    Grid::new(GridSpec::parse(text, "grid.toml").unwrap(), "grid.toml").unwrap()
}

fn folder(path: &Path, grid: &Grid, shard: Shard) -> SweepFolder {
    let manifest = Manifest { tool_version: "0".to_owned(), command: Vec::new(), grid: grid.spec().clone(), shard };
    SweepFolder::create(path, manifest).unwrap()
}

fn complete(folder: &SweepFolder, grid: &Grid, threads: usize) -> u64 {
    let stop = AtomicBool::new(false);
    run(folder, grid, &folder.done().unwrap(), How { threads, stop: &stop, transactions: false }, &mut || {}).unwrap()
}

fn whole(path: &Path, grid: &Grid, threads: usize) -> PathBuf {
    let folder = folder(path, grid, Shard::WHOLE);
    complete(&folder, grid, threads);
    folder.finish().unwrap();
    folder.rows()
}

#[test]
fn shards_on_any_number_of_threads_are_one_run_byte_for_byte() {
    let scratch = tempfile::tempdir().unwrap();
    let grid = grid(GRID);
    assert_eq!((grid.cells(), grid.runs()), (24, 72));
    let one = whole(&scratch.path().join("one"), &grid, 2);
    let mut parts = Vec::new();
    let mut runs = 0;
    for index in (0..4).rev() {
        let shard = Shard { index, of: 4 };
        let part = folder(&scratch.path().join(format!("shard-{index}")), &grid, shard);
        let kept = complete(&part, &grid, 1);
        assert_eq!(kept, shard_runs(&grid, shard));
        assert!(kept < grid.runs(), "a shard has everything");
        runs += kept;
        part.finish().unwrap();
        parts.push(part.rows());
    }
    assert_eq!(runs, grid.runs());
    let merged = scratch.path().join("merged.parquet");
    assert_eq!(merge(&parts, &merged).unwrap().rows, grid.runs());
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&merged).unwrap());
}

#[test]
fn resuming_runs_what_is_left_and_ends_in_the_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let grid = grid(GRID);
    let stopped = folder(&scratch.path().join("stopped"), &grid, Shard::WHOLE);
    let stop = AtomicBool::new(false);
    let told = AtomicUsize::new(0);
    let mut tell = || {
        if told.fetch_add(1, Ordering::Relaxed) == 5 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let kept =
        run(&stopped, &grid, &stopped.done().unwrap(), How { threads: 1, stop: &stop, transactions: false }, &mut tell)
            .unwrap();
    assert!((6..grid.runs()).contains(&kept), "{kept} rows of a run that was stopped");
    // What a crash leaves of a part is in nobody's way.
    std::fs::write(stopped.path().join("parts/000009.unfinished"), "torn").unwrap();
    let reopened = SweepFolder::open(stopped.path()).unwrap();
    assert_eq!(reopened.manifest(), stopped.manifest());
    let same = Grid::new(reopened.manifest().grid.clone(), "sweep.toml").unwrap();
    assert_eq!(complete(&reopened, &same, 2), grid.runs() - kept);
    assert_eq!(complete(&reopened, &same, 2), 0);
    assert_eq!(reopened.finish().unwrap().rows, grid.runs());
    let one = whole(&scratch.path().join("one"), &grid, 2);
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(reopened.rows()).unwrap());
    // Nor does a sweep that is done run again, and its file stays.
    assert_eq!(complete(&reopened, &same, 2), 0);
    assert_eq!(reopened.finish().unwrap().rows, grid.runs());
}

#[test]
fn a_row_holds_what_the_model_found() {
    let scratch = tempfile::tempdir().unwrap();
    let grid = grid(GRID);
    let path = whole(&scratch.path().join("one"), &grid, 2);
    let rows: Vec<RowRead> = FileReader::open(&path, None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len() as u64, grid.runs());
    for row in [&rows[0], &rows[37], &rows[71]] {
        let (cell, seed) = row.key();
        let planned = grid.cell(cell).unwrap();
        let result = simulate(&planned.cell, seed).unwrap();
        assert_eq!(row.number("arrivals_count"), Some(result.counts.arrivals as f64));
        assert_eq!(row.number("table_all_success_rate"), result.table.all.success_rate);
        assert_eq!(row.number("heatmap_fast_append_latency_p99_ms"), result.heatmap.fast_append.latency.p99_ms);
        assert_eq!(row.number("knee_all_throughput_per_s"), result.knee.all.throughput_per_s);
        assert_eq!(row.number("tables"), Some(planned.cell.tables.into()));
        assert_eq!(row.text("provider"), Some("s3-2025"));
        let Some(Scalar::Bytes(Some(bytes))) = row.get("histogram_all") else { panic!("no histogram") };
        assert_eq!(sketch::decode(bytes).unwrap(), result.histograms.all);
    }
    let few = FileReader::open(&path, Some(&|name| name == "tables")).unwrap().next().unwrap().unwrap();
    assert_eq!(few.fields().count(), 1);
}

#[test]
fn plots_hold_every_cell_axis_and_value_and_need_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let grid = grid(GRID);
    let path = whole(&scratch.path().join("one"), &grid, 2);
    let files = [path];
    let definition = plot::definition_for(&summarize(&files, &[]).unwrap());
    assert_eq!(definition, "drain");
    let cells = summarize(&files, &plot::metrics(definition)).unwrap();
    assert_eq!(cells.len(), 24);
    let page = plot::page(&cells, &Plot { title: "a < b", definition, y: None, grid: &grid.spec().to_toml() });
    for text in ["a &lt; b", "offered load, transactions/s", "tables ↓", "Success rate, %", "99th percentile", "Knees"]
    {
        assert!(page.contains(text), "no {text:?}");
    }
    // Arrivals and mix are the panels; loads and tables the axes of each.
    assert_eq!(page.matches("<summary>fast_append_ratio").count() + page.matches("<summary>arrivals").count(), 4);
    assert_eq!(page.matches("aria-label=\"Success rate, %\"").count(), 4);
    for load in ["1", "2.5", "4"] {
        assert!(page.matches(&format!(">{load}</text>")).count() >= 4 * 6, "load {load}");
    }
    for cell in &cells {
        let mean = cell.mean("drain_all_latency_p99_ms").unwrap();
        assert!(page.contains(&format!("cell {}: {mean} ±", cell.settings.key().0)), "cell {}", cell.settings.key().0);
    }
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="), "it needs something else");
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    let by_mix = plot::page(&cells, &Plot { title: "", definition, y: Some("fast_append_ratio"), grid: "" });
    assert!(by_mix.contains("share of FastAppends ↓"));
}

#[test]
fn rows_of_other_grids_or_of_other_files_do_not_merge() {
    let scratch = tempfile::tempdir().unwrap();
    let small = "seeds = 1\n[cell]\nduration_ms = 60_000\n";
    let one = whole(&scratch.path().join("one"), &grid(small), 1);
    let other = whole(&scratch.path().join("other"), &grid(&format!("{small}tables = 2\n")), 1);
    let out = scratch.path().join("out.parquet");
    let message = merge(&[one.clone(), other], &out).unwrap_err().to_string();
    assert!(message.contains("another grid"), "{message}");
    assert_eq!(merge(&[one.clone(), one], &out).unwrap().repeated, 1);
    let text = scratch.path().join("text.parquet");
    std::fs::write(&text, "no parquet").unwrap();
    let message = merge(&[text], &out).unwrap_err().to_string();
    assert!(message.contains("text.parquet") && !message.contains('\n'), "{message}");
}
