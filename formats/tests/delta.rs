//! What Delta sends for a commit and a load.
#![cfg(feature = "delta")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // Helpers of tests panic as tests do.

mod support;

use lakemark_core::record::Outcome;
use lakemark_core::store::StoreError;
use lakemark_core::table::{Change, DataFile, Format, Table};
use lakemark_formats::delta::Delta;
use support::MemoryStore;

/// Checkpoints at versions 3 and 7.
const OFTEN: &[(&str, &str)] = &[("checkpoint-interval", "4")];

/// A key without what all keys of a log share: `3.json`, `9.checkpoint`. A listing is named by the version after which
/// it starts, or `log`.
fn name(key: &str) -> String {
    match key.strip_prefix("_delta_log/") {
        Some("") => "log".to_owned(),
        Some(name) => {
            let name = name.trim_end_matches(".parquet").trim_start_matches('0');
            if name.is_empty() || name.starts_with('.') { format!("0{name}") } else { name.to_owned() }
        }
        None => key.to_owned(),
    }
}

fn file(number: u64) -> DataFile {
    support::file(number, "parquet")
}

fn paths(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(|number| file(number).path).collect()
}

async fn created(settings: &[(&str, &str)]) -> MemoryStore {
    let store = MemoryStore::new(true, name);
    Delta.create(&store.site(settings)).await.unwrap();
    store.requests();
    store
}

async fn open(store: &MemoryStore, settings: &[(&str, &str)]) -> Box<dyn Table> {
    let table = Delta.open(&store.site(settings)).await.unwrap();
    store.requests();
    table
}

/// A table at version 5 with a checkpoint at version 3, and the writer's handle.
async fn grown() -> (MemoryStore, Box<dyn Table>) {
    let store = created(OFTEN).await;
    let mut writer = open(&store, OFTEN).await;
    for number in 1..=5 {
        writer.append(&[file(number)]).await.unwrap();
    }
    store.requests();
    (store, writer)
}

async fn active(table: &mut dyn Table) -> Vec<String> {
    let mut paths = table.files().await.unwrap().paths;
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_a_table_loads_it_twice() {
    let store = MemoryStore::new(true, name);
    Delta.create(&store.site(&[])).await.unwrap();
    let load = ["GET _last_checkpoint", "LIST 0", "GET 0.json ×2"];
    let expected: Vec<_> = ["LIST log", "PUT-if-absent 0.json"].into_iter().chain(load).chain(load).collect();
    assert_eq!(store.requests(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_lists_three_times_and_reads_its_own_commit_twice() {
    let store = created(OFTEN).await;
    let mut table = open(&store, OFTEN).await;
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 1);
    let expected = ["LIST 0", "PUT-if-absent 1.json", "LIST 1", "GET 1.json ×2", "LIST log"];
    assert_eq!(store.requests(), expected);
    assert_eq!(table.append(&[file(2)]).await.unwrap(), 2);
    let expected = ["LIST 1", "PUT-if-absent 2.json", "LIST 1", "GET 2.json ×2", "LIST log"];
    assert_eq!(store.requests(), expected);
    assert_eq!(active(&mut *table).await, paths(1..=2));
    assert_eq!(store.requests(), Vec::<String>::new());
    assert_eq!(table.commits().await.unwrap(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_log_cleanup_the_last_listing_is_not_made() {
    let settings = [("cleanup-expired-logs", "false")];
    let store = created(&settings).await;
    open(&store, &settings).await.append(&[file(1)]).await.unwrap();
    assert_eq!(store.requests(), ["LIST 0", "PUT-if-absent 1.json", "LIST 1", "GET 1.json ×2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpointing_append_reads_the_log_again() {
    let store = created(OFTEN).await;
    let mut table = open(&store, OFTEN).await;
    for number in 1..=2 {
        table.append(&[file(number)]).await.unwrap();
    }
    store.requests();
    table.append(&[file(3)]).await.unwrap();
    let expected = [
        "LIST 2",
        "PUT-if-absent 3.json",
        "LIST 1",
        "GET 3.json ×2",
        // The checkpoint is made from a snapshot of its own.
        "GET _last_checkpoint",
        "LIST 0",
        "GET 0.json ×2",
        "GET 1.json ×2",
        "GET 2.json ×2",
        "GET 3.json ×2",
        "PUT 3.checkpoint",
        "HEAD 3.checkpoint",
        "PUT _last_checkpoint",
        "LIST log",
    ];
    assert_eq!(store.requests(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_reads_the_checkpoint_in_parts_and_each_commit_twice() {
    let (store, _) = grown().await;
    let reader = store.another_client();
    let mut cold = Delta.open(&reader.site(OFTEN)).await.unwrap();
    let expected = ["GET _last_checkpoint", "LIST 3", "GET 3.checkpoint ×11", "GET 4.json ×2", "GET 5.json ×2"];
    assert_eq!(reader.requests(), expected);
    let cold_bytes = reader.read_bytes();
    assert_eq!(active(&mut *cold).await, paths(1..=5));
    assert_eq!(reader.requests(), Vec::<String>::new());

    cold.fresh().await.unwrap();
    assert_eq!(reader.requests(), expected);
    reader.read_bytes();

    // No file's columns in the checkpoint, no second look at the commits.
    assert_eq!(Delta.open_shallow(&reader.site(OFTEN)).await.unwrap(), 5);
    let expected = ["GET _last_checkpoint", "LIST 3", "GET 3.checkpoint ×3", "GET 4.json", "GET 5.json"];
    assert_eq!(reader.requests(), expected);
    let shallow_bytes = reader.read_bytes();
    assert!(shallow_bytes * 2 < cold_bytes, "{shallow_bytes} of {cold_bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_reads_what_is_new() {
    let (store, mut writer) = grown().await;
    let reader = store.another_client();
    let mut handle = open(&reader, OFTEN).await;
    assert_eq!(handle.refresh().await.unwrap(), 5);
    assert_eq!(reader.requests(), ["LIST 4", "GET _last_checkpoint"]);
    writer.append(&[file(6)]).await.unwrap();
    assert_eq!(handle.refresh().await.unwrap(), 6);
    assert_eq!(reader.requests(), ["LIST 4", "GET 6.json ×2"]);
    assert_eq!(active(&mut *handle).await, paths(1..=6));
    // A new checkpoint is read instead of the commit that it was made of.
    writer.append(&[file(7)]).await.unwrap();
    assert_eq!(handle.refresh().await.unwrap(), 7);
    assert_eq!(reader.requests(), ["LIST 4", "GET 7.checkpoint ×11"]);
    assert_eq!(active(&mut *handle).await, paths(1..=7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_commit_is_tried_again_at_once() {
    let store = created(&[]).await;
    let mut table = open(&store, &[]).await;
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 412 }, 1);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 1);
    let expected =
        ["LIST 0", "PUT-if-absent 1.json", "LIST 0", "PUT-if-absent 1.json", "LIST 1", "GET 1.json ×2", "LIST log"];
    assert_eq!(store.requests(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_behind_reads_each_winner_three_times() {
    let store = created(&[]).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open(&store, &[]).await, open(&other, &[]).await);
    ahead.append(&[file(1)]).await.unwrap();
    ahead.append(&[file(2)]).await.unwrap();
    assert_eq!(behind.append(&[file(3)]).await.unwrap(), 3);
    let expected = [
        "LIST 0",
        // Do they conflict?
        "GET 1.json",
        "GET 2.json",
        "LIST 1",
        "GET 1.json ×2",
        "GET 2.json ×2",
        "PUT-if-absent 3.json",
        "LIST 1",
        "GET 3.json ×2",
        "LIST log",
    ];
    assert_eq!(store.requests(), expected);
    assert_eq!(active(&mut *behind).await, paths(1..=3));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_retries_a_lost_commit_is_a_conflict_and_a_refresh_mends_the_handle() {
    let settings = [("max-retries", "0")];
    let store = created(&settings).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open(&store, &settings).await, open(&other, &settings).await);
    // Lost in the race for a version: one attempt.
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 412 }, 1);
    assert_eq!(behind.append(&[file(1)]).await.unwrap_err().outcome, Outcome::Conflict);
    assert_eq!(store.requests(), ["LIST 0", "PUT-if-absent 1.json"]);
    // Behind: none, and as often as it is tried.
    ahead.append(&[file(1)]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(behind.append(&[file(2)]).await.unwrap_err().outcome, Outcome::Conflict);
        assert_eq!(store.requests(), ["LIST 0"]);
    }
    assert_eq!(behind.refresh().await.unwrap(), 1);
    store.requests();
    assert_eq!(behind.append(&[file(2)]).await.unwrap(), 2);
    assert_eq!(store.requests()[..2], ["LIST 1", "PUT-if-absent 2.json"]);
    assert_eq!(active(&mut *behind).await, paths(1..=2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_alone_is_one_write() {
    let settings = [("path", "log-only"), ("checkpoint-interval", "4")];
    let store = created(&settings).await;
    let other = store.another_client();
    let (mut table, mut behind) = (open(&store, &settings).await, open(&other, &settings).await);
    for version in 1..=5 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        assert_eq!(store.requests(), [format!("PUT-if-absent {version}.json")]);
    }
    assert_eq!(active(&mut *table).await, paths(1..=5));
    assert_eq!(table.commits().await.unwrap(), [1, 2, 3, 4, 5]);

    assert_eq!(behind.append(&[file(6)]).await.unwrap_err().outcome, Outcome::Conflict);
    assert_eq!(other.requests(), ["PUT-if-absent 1.json"]);
    assert_eq!(behind.refresh().await.unwrap(), 5);
    assert_eq!(behind.append(&[file(6)]).await.unwrap(), 6);
    assert_eq!(behind.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap(), 7);
    // What another process finds.
    assert_eq!(active(&mut *open(&store, &[]).await).await, paths(2..=6));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_and_checkpoints_read_at_checkpoints_only() {
    let settings = [("path", "log-and-checkpoint"), ("checkpoint-interval", "4")];
    let store = created(&settings).await;
    let mut table = open(&store, &settings).await;
    for number in 1..=2 {
        table.append(&[file(number)]).await.unwrap();
    }
    assert_eq!(store.requests(), ["PUT-if-absent 1.json", "PUT-if-absent 2.json"]);
    table.append(&[file(3)]).await.unwrap();
    let requests = store.requests();
    assert_eq!(requests[..2], ["PUT-if-absent 3.json", "LIST 1"]);
    assert_eq!(requests[requests.len() - 3..], ["PUT 3.checkpoint", "HEAD 3.checkpoint", "PUT _last_checkpoint"]);
    table.append(&[file(4)]).await.unwrap();
    assert_eq!(store.requests(), ["PUT-if-absent 4.json"]);
    assert_eq!(active(&mut *open(&store, &[]).await).await, paths(1..=4));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_blind_table_opens_anew_after_each_append() {
    let settings = [("append-table", "blind"), ("checkpoint-interval", "4")];
    let store = created(&settings).await;
    let other = store.another_client();
    let mut table = Delta.open(&store.site(&settings)).await.unwrap();
    assert_eq!(store.requests(), ["GET _last_checkpoint", "LIST 0", "GET 0.json"]);
    let mut behind = open(&other, &settings).await;
    for version in 1..=4 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        let mut expected =
            vec![format!("PUT-if-absent {version}.json"), "GET _last_checkpoint".to_owned(), "LIST 0".to_owned()];
        // No checkpoint shortens the log.
        expected.extend((0..=version).map(|version| format!("GET {version}.json")));
        assert_eq!(store.requests(), expected);
    }
    assert_eq!(active(&mut *table).await, paths(1..=4));
    assert_eq!(table.commits().await.unwrap(), [1, 2, 3, 4]);

    // One try, whatever `max-retries` says.
    assert_eq!(behind.append(&[file(5)]).await.unwrap_err().outcome, Outcome::Conflict);
    assert_eq!(other.requests(), ["PUT-if-absent 1.json"]);
    assert_eq!(behind.refresh().await.unwrap(), 4);
    assert_eq!(behind.append(&[file(5)]).await.unwrap(), 5);
    assert_eq!(active(&mut *behind.fresh().await.unwrap()).await, paths(1..=5));
    let error = behind.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap_err();
    assert_eq!(error.message, "delete: the library's blind table only appends");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_remove_what_they_name() {
    for settings in [&[][..], &[("path", "log-only")][..]] {
        let store = created(settings).await;
        let mut table = open(&store, settings).await;
        table.append(&[file(1), file(2), file(3)]).await.unwrap();
        assert_eq!(table.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap(), 2);
        assert_eq!(active(&mut *table).await, paths(2..=3));
        let compact = Change::Compact { remove: vec![file(2), file(3)], add: vec![file(4)] };
        assert_eq!(table.change(&compact).await.unwrap(), 3);
        assert_eq!(active(&mut *table).await, paths(4..=4));
        assert_eq!(table.change(&Change::Overwrite { add: vec![file(5), file(6)] }).await.unwrap(), 4);
        assert_eq!(active(&mut *table).await, paths(5..=6));
        let error = table.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap_err();
        assert_eq!(error.message, "data file data/1.parquet is not active in the handle's version");
        assert_eq!(active(&mut *open(&store, settings).await).await, paths(5..=6));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_rows_conflict_with_every_commit_that_is_behind() {
    for change in [Change::Delete { remove: vec![file(1)] }, Change::Overwrite { add: vec![file(9)] }] {
        let store = created(&[]).await;
        let other = store.another_client();
        let mut ahead = open(&other, &[]).await;
        ahead.append(&[file(1), file(2)]).await.unwrap();
        let mut behind = open(&store, &[]).await;
        ahead.change(&change).await.unwrap();
        let error = behind.append(&[file(3)]).await.unwrap_err();
        assert_eq!(error.outcome, Outcome::Conflict, "{error}");
        // A conflict of contents is not tried again.
        assert_eq!(store.requests(), ["LIST 1", "GET 2.json"]);
        behind.refresh().await.unwrap();
        behind.append(&[file(3)]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_leaves_what_others_appended_since() {
    let store = created(&[]).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open(&store, &[]).await, open(&other, &[]).await);
    ahead.append(&[file(1)]).await.unwrap();
    behind.refresh().await.unwrap();
    ahead.append(&[file(2)]).await.unwrap();
    assert_eq!(behind.change(&Change::Overwrite { add: vec![file(3)] }).await.unwrap(), 3);
    assert_eq!(active(&mut *behind).await, paths(2..=3));
}

/// The library compares what both removed only where rows were removed with it, and a compaction removes none: of two
/// compactions of the same files both are published, and the rows are in the table twice.
#[tokio::test(flavor = "multi_thread")]
async fn compactions_let_appends_pass_and_each_other() {
    let store = created(&[]).await;
    let other = store.another_client();
    let mut first = open(&store, &[]).await;
    first.append(&[file(1), file(2)]).await.unwrap();
    let (mut second, mut writer) = (open(&other, &[]).await, open(&other, &[]).await);
    let compact = |add| Change::Compact { remove: vec![file(1), file(2)], add: vec![file(add)] };
    first.change(&compact(3)).await.unwrap();
    assert_eq!(writer.append(&[file(4)]).await.unwrap(), 3);
    assert_eq!(second.change(&compact(5)).await.unwrap(), 4);
    assert_eq!(active(&mut *second).await, paths(3..=5));
}
