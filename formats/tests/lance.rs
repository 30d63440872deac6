//! What Lance sends for an append and a load, on stores with and without ordered listings.
#![cfg(feature = "lance")]
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // Helpers of tests panic as tests do.

mod support;

use lakemark_core::record::Outcome;
use lakemark_core::store::StoreError;
use lakemark_core::table::{Change, DataFile, Format, Table};
use lakemark_formats::lance::Lance;
use support::{MemoryStore, TABLE};

fn name(key: &str) -> String {
    Lance.classify(key).to_owned()
}

fn new_store(ordered_list: bool) -> MemoryStore {
    MemoryStore::new(ordered_list, name)
}

async fn created_with(ordered_list: bool, settings: &[(&str, &str)]) -> MemoryStore {
    let store = new_store(ordered_list);
    Lance.create(&store.site(settings)).await.unwrap();
    store.requests();
    store
}

async fn created(ordered_list: bool) -> MemoryStore {
    created_with(ordered_list, &[]).await
}

async fn open_with(store: &MemoryStore, settings: &[(&str, &str)]) -> Box<dyn Table> {
    let table = Lance.open(&store.site(settings)).await.unwrap();
    store.requests();
    table
}

async fn open(store: &MemoryStore) -> Box<dyn Table> {
    open_with(store, &[]).await
}

fn file(number: u64) -> DataFile {
    support::file(number, "lance")
}

async fn active(table: &mut dyn Table) -> Vec<String> {
    let mut paths = table.files().await.unwrap().paths;
    paths.sort();
    paths
}

#[tokio::test]
async fn an_append_on_an_ordered_store_lists_and_writes_twice() {
    let store = created(true).await;
    let mut table = open(&store).await;
    for version in 2..5 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    }
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);

    let reader = store.another_client();
    let active = Lance.open(&reader.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.version, 4);
    assert_eq!(active.paths, ["data/2.lance", "data/3.lance", "data/4.lance"]);
    assert_eq!(reader.requests(), ["LIST listing", "GET manifest"]);
}

#[tokio::test]
async fn an_append_on_an_unordered_store_goes_by_the_version_hint() {
    let store = created(false).await;
    let mut table = open(&store).await;
    for version in 2..5 {
        assert_eq!(table.append(&[file(version)]).await.unwrap(), version);
        let expected = [
            "GET version_hint",
            // The next version, in both naming schemes: neither is there.
            "HEAD manifest ×2",
            "PUT transaction",
            "PUT-if-absent manifest",
            "PUT version_hint",
        ];
        assert_eq!(store.requests(), expected);
    }
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4]);

    let reader = store.another_client();
    let active = Lance.open(&reader.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.paths.len(), 3);
    assert_eq!(reader.requests(), ["GET version_hint", "HEAD manifest ×2", "GET manifest"]);
}

#[tokio::test]
async fn a_manifest_beyond_64_kib_is_read_in_three_parts() {
    let store = created(true).await;
    let files: Vec<_> = (0..5_000).map(file).collect();
    open(&store).await.append(&files).await.unwrap();
    store.requests();
    let active = Lance.open(&store.site(&[])).await.unwrap().files().await.unwrap();
    assert_eq!(active.paths.len(), files.len());
    assert_eq!(store.requests(), ["LIST listing", "GET manifest ×3"]);
}

#[tokio::test]
async fn a_writer_that_is_behind_reads_what_others_published() {
    let store = created(true).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open(&store).await, open(&other).await);
    ahead.append(&[file(1)]).await.unwrap();
    ahead.append(&[file(2)]).await.unwrap();
    assert_eq!(behind.append(&[file(3)]).await.unwrap(), 4);
    let expected = ["LIST listing", "GET manifest ×2", "PUT transaction", "PUT-if-absent manifest"];
    assert_eq!(store.requests(), expected);
    assert_eq!(behind.files().await.unwrap().paths, ["data/1.lance", "data/2.lance", "data/3.lance"]);
}

#[tokio::test]
async fn a_lost_race_is_verified_cleaned_up_and_repeated() {
    let store = created(true).await;
    let other = store.another_client();
    let (mut first, mut second) = (open(&store).await, open(&other).await);
    let (files, other_files) = ([file(1)], [file(2)]);
    let (one, two) = tokio::join!(first.append(&files), second.append(&other_files));
    assert_eq!((one.unwrap(), two.unwrap()), (2, 3));
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    let expected = [
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
        // Whose is the version? Its manifest, then the transaction in it.
        "HEAD manifest",
        "GET manifest ×2",
        "DELETE transaction",
        "LIST listing",
        "GET manifest",
        "PUT transaction",
        "PUT-if-absent manifest",
    ];
    assert_eq!(other.requests(), expected);
    assert_eq!(second.files().await.unwrap().paths, ["data/1.lance", "data/2.lance"]);
    assert_eq!(second.commits().await.unwrap(), [2, 3]);
}

#[tokio::test]
async fn a_conflict_without_a_winner_is_repeated() {
    let store = created(true).await;
    let mut table = open(&store).await;
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 409 }, 1);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    let expected = [
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
        "HEAD manifest ×2",
        "DELETE transaction",
        "LIST listing",
        "PUT transaction",
        "PUT-if-absent manifest",
    ];
    assert_eq!(store.requests(), expected);
}

#[tokio::test]
async fn the_last_lost_try_is_a_conflict() {
    let store = created(true).await;
    let mut table = Lance.open(&store.site(&[("max-retries", "2")])).await.unwrap();
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 412 }, 2);
    let error = table.append(&[file(1)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Conflict, "{error}");
    assert_eq!(store.requests().iter().filter(|request| *request == "PUT-if-absent manifest").count(), 2);
}

#[tokio::test]
async fn throttled_writes_are_sent_again_by_the_librarys_rate_limiter() {
    let store = created(true).await;
    let mut table = open(&store).await;
    let throttled = StoreError::Throttled { key: "k".to_owned(), status: 503 };
    store.refuse(throttled.clone(), 3);
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest ×4"]);

    store.refuse(throttled, 4);
    let error = table.append(&[file(2)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Throttled, "{error}");
}

#[tokio::test]
async fn a_failed_append_leaves_the_handle_usable() {
    let store = created(true).await;
    let mut table = open(&store).await;
    store.refuse(StoreError::Unknown { key: "k".to_owned(), reason: "timed out".to_owned() }, 1);
    let error = table.append(&[file(1)]).await.unwrap_err();
    // The library looked for its manifest and found none, but the write may still be on its way.
    assert_eq!(error.outcome, Outcome::Unknown, "{error}");
    assert_eq!(table.append(&[file(2)]).await.unwrap(), 2);
    assert_eq!(table.files().await.unwrap().paths, ["data/2.lance"]);
}

#[tokio::test]
async fn stable_row_ids_are_set_when_the_table_is_created() {
    let store = new_store(true);
    Lance.create(&store.site(&[("stable-row-ids", "true")])).await.unwrap();
    let mut table = open(&store).await;
    assert_eq!(table.append(&[file(1)]).await.unwrap(), 2);
    assert_eq!(table.append(&[file(2)]).await.unwrap(), 3);
    let with_ids: usize = store.objects.lock().unwrap().values().map(|stored| stored.body.len()).sum();

    let store = created(true).await;
    let mut table = open(&store).await;
    table.append(&[file(1)]).await.unwrap();
    table.append(&[file(2)]).await.unwrap();
    let without: usize = store.objects.lock().unwrap().values().map(|stored| stored.body.len()).sum();
    assert!(with_ids > without, "{with_ids} {without}");
}

#[tokio::test]
async fn a_table_is_created_once() {
    let store = new_store(true);
    Lance.create(&store.site(&[])).await.unwrap();
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    Lance.create(&store.site(&[])).await.unwrap_err();
    assert_eq!(open(&store).await.files().await.unwrap().version, 1);
}

#[tokio::test]
async fn what_cannot_be_done_is_said_on_one_line() {
    let error = Lance.open(&new_store(true).site(&[])).await.err().unwrap();
    assert_eq!(error.outcome, Outcome::Error);
    assert!(error.message.contains(TABLE) && error.message.lines().count() == 1, "{error}");

    let mut table = open(&created(true).await).await;
    let elsewhere = DataFile { path: "part-0.lance".to_owned(), ..file(1) };
    let error = table.append(&[elsewhere]).await.unwrap_err();
    assert_eq!(error.message, "data file part-0.lance: a Lance table keeps them in data/");
}

#[tokio::test]
async fn handles_of_a_process_share_what_they_read() {
    let store = created(true).await;
    let other = store.another_client();
    let (mut ours, mut theirs) = (open(&store).await, open(&other).await);
    assert_eq!(ours.refresh().await.unwrap(), 1);
    assert_eq!(store.requests(), ["LIST listing"]);
    ours.append(&[file(1)]).await.unwrap();
    store.requests();
    // The manifest that a handle of the session wrote is in the session's cache.
    let mut fresh = ours.fresh().await.unwrap();
    assert_eq!(store.requests(), ["LIST listing"]);
    assert_eq!(active(&mut *fresh).await, ["data/1.lance"]);

    theirs.append(&[file(2)]).await.unwrap();
    assert_eq!(ours.refresh().await.unwrap(), 3);
    assert_eq!(store.requests(), ["LIST listing", "GET manifest"]);
    assert_eq!(active(&mut *ours).await, ["data/1.lance", "data/2.lance"]);
    assert_eq!(fresh.refresh().await.unwrap(), 3);
    assert_eq!(store.requests(), ["LIST listing"]);
}

#[tokio::test]
async fn no_open_is_shallow() {
    let store = created(true).await;
    let error = Lance.open_shallow(&store.site(&[])).await.unwrap_err();
    let unsupported = Lance.info().unsupported.iter().find(|unsupported| unsupported.what == "shallow_open").unwrap();
    assert_eq!(error.message, unsupported.why);
    assert_eq!(store.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn without_retries_one_try_follows_catching_up() {
    let settings = [("max-retries", "0")];
    let store = created(true).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open_with(&store, &settings).await, open(&other).await);
    ahead.append(&[file(1)]).await.unwrap();
    store.refuse(StoreError::Precondition { key: "k".to_owned(), status: 412 }, 1);
    let error = behind.append(&[file(2)]).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Conflict, "{error}");
    let expected = [
        "LIST listing",
        "GET manifest",
        "PUT transaction",
        "PUT-if-absent manifest",
        "HEAD manifest ×2",
        "DELETE transaction",
    ];
    assert_eq!(store.requests(), expected);

    // Behind alone is no reason to fail, and the handle needs no refresh.
    assert_eq!(behind.append(&[file(2)]).await.unwrap(), 3);
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    ahead.append(&[file(3)]).await.unwrap();
    assert_eq!(behind.refresh().await.unwrap(), 4);
    assert_eq!(active(&mut *behind).await, ["data/1.lance", "data/2.lance", "data/3.lance"]);
}

#[tokio::test]
async fn the_version_hint_can_be_had_on_an_ordered_store() {
    let settings = [("version-hint", "on")];
    let store = created_with(true, &settings).await;
    let mut table = open_with(&store, &settings).await;
    table.append(&[file(1)]).await.unwrap();
    let expected =
        ["GET version_hint", "HEAD manifest ×2", "PUT transaction", "PUT-if-absent manifest", "PUT version_hint"];
    assert_eq!(store.requests(), expected);

    let settings = [("version-hint", "off")];
    let store = created_with(true, &settings).await;
    open_with(&store, &settings).await.append(&[file(1)]).await.unwrap();
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    let store = new_store(false);
    let error = Lance.create(&store.site(&settings)).await.unwrap_err();
    assert!(error.message.contains("LANCE_USE_VERSION_HINT=0"), "{error}");
    assert_eq!(store.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn cleanup_removes_old_versions_and_their_commits_still_count() {
    let settings = [("cleanup", "3")];
    let store = created_with(true, &settings).await;
    let mut table = open_with(&store, &settings).await;
    let manifests =
        |store: &MemoryStore| store.objects.lock().unwrap().keys().filter(|key| key.ends_with(".manifest")).count();
    table.append(&[file(2)]).await.unwrap();
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    table.append(&[file(3)]).await.unwrap();
    // The cleanup reads every manifest, and lists all that a table may hold while it deletes.
    let expected = [
        "DELETE manifest",
        "DELETE transaction",
        "GET manifest ×3",
        "LIST data",
        "LIST listing ×3",
        "LIST other ×7",
        "PUT transaction",
        "PUT-if-absent manifest",
    ];
    assert_eq!(store.requests_in_any_order(), expected);
    // The newest, and the one that the commit was made from.
    assert_eq!(manifests(&store), 2);
    for number in 4..=7 {
        table.append(&[file(number)]).await.unwrap();
    }
    assert_eq!(manifests(&store), 3);
    assert_eq!(table.commits().await.unwrap(), [2, 3, 4, 5, 6, 7]);
    assert_eq!(active(&mut *open_with(&store, &settings).await).await.len(), 6);
}

#[tokio::test]
async fn changes_remove_what_they_name() {
    let store = created(true).await;
    let mut table = open(&store).await;
    table.append(&[file(1), file(2), file(3)]).await.unwrap();
    store.requests();
    assert_eq!(table.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap(), 3);
    assert_eq!(store.requests(), ["LIST listing", "PUT transaction", "PUT-if-absent manifest"]);
    assert_eq!(active(&mut *table).await, ["data/2.lance", "data/3.lance"]);
    let compact = Change::Compact { remove: vec![file(2), file(3)], add: vec![DataFile { rows: 20, ..file(4) }] };
    assert_eq!(table.change(&compact).await.unwrap(), 4);
    assert_eq!(active(&mut *table).await, ["data/4.lance"]);
    assert_eq!(table.change(&Change::Overwrite { add: vec![file(5), file(6)] }).await.unwrap(), 5);
    assert_eq!(active(&mut *table).await, ["data/5.lance", "data/6.lance"]);
    let error = table.change(&Change::Delete { remove: vec![file(1)] }).await.unwrap_err();
    assert_eq!(error.message, "data file data/1.lance is not active in the handle's version");
    assert_eq!(active(&mut *open(&store).await).await, ["data/5.lance", "data/6.lance"]);
}

#[tokio::test]
async fn changes_at_once_conflict_where_they_touch_the_same_files() {
    let delete = Change::Delete { remove: vec![file(1)] };
    let compact = Change::Compact { remove: vec![file(1), file(2)], add: vec![DataFile { rows: 20, ..file(8) }] };
    let overwrite = Change::Overwrite { add: vec![file(9)] };
    for (first, second, passes) in [
        (&delete, &delete, false),
        (&delete, &compact, false),
        (&compact, &delete, false),
        (&compact, &compact, false),
        (&overwrite, &overwrite, false),
        (&delete, &overwrite, true),
    ] {
        let store = created(true).await;
        let other = store.another_client();
        let mut ahead = open(&other).await;
        ahead.append(&[file(1), file(2)]).await.unwrap();
        let (mut behind, mut writer) = (open(&store).await, open(&store).await);
        ahead.change(first).await.unwrap();
        let result = behind.change(second).await;
        assert_eq!(result.is_ok(), passes, "{} then {}: {result:?}", first.name(), second.name());
        if let Err(error) = result {
            assert_eq!(error.outcome, Outcome::Conflict, "{error}");
        }
        // An append passes all but an overwrite.
        let result = writer.append(&[file(3)]).await;
        let overwritten = [first, second].contains(&&overwrite);
        assert_eq!(result.is_err(), overwritten, "{}, {} then append: {result:?}", first.name(), second.name());
    }
}

#[tokio::test]
async fn an_overwrite_replaces_what_others_appended_since() {
    let store = created(true).await;
    let other = store.another_client();
    let (mut behind, mut ahead) = (open(&store).await, open(&other).await);
    let mut strict = open_with(&store, &[("max-retries", "0")]).await;
    ahead.append(&[file(1)]).await.unwrap();
    let overwrite = Change::Overwrite { add: vec![file(2)] };
    // Without retries it is made for the version after the handle's own, and lost.
    assert_eq!(strict.change(&overwrite).await.unwrap_err().outcome, Outcome::Conflict);
    assert_eq!(behind.change(&overwrite).await.unwrap(), 3);
    assert_eq!(active(&mut *behind).await, ["data/2.lance"]);
}
