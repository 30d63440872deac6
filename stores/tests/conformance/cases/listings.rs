//! Listings: every key once, in order where the provider has one, over pages, folded into folders.

use std::collections::BTreeSet;

use lakemark_core::record::{Method, Outcome, Request};
use lakemark_core::store::{ListQuery, StoreError};
use lakemark_core::writer::Writer;

use crate::bench::Bench;
use crate::raw;
use crate::subject::Folder;

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort_unstable();
    keys
}

/// The listings that a writer's client has sent since it was last asked.
fn listings(writer: &Writer) -> Vec<Request> {
    let mut requests = writer.finish_operation().requests;
    requests.retain(|request| request.method == Method::List);
    requests
}

/// What a delimited listing of a folder must answer, in key order.
fn folded(keys: &[String], folder: &str) -> Folder {
    let prefix = raw::prefix_of(folder);
    let mut expected = Folder::default();
    let mut folders = BTreeSet::new();
    for key in keys {
        match key.strip_prefix(&prefix).map(|name| name.split_once('/')) {
            Some(Some((name, _))) => _ = folders.insert(format!("{prefix}{name}")),
            Some(None) => expected.keys.push(key.clone()),
            None => {}
        }
    }
    // `a/` sorts with its slash: before `a0`, behind `a-`.
    expected.folders = folders.into_iter().collect();
    expected.folders.sort_by_key(|folder| format!("{folder}/"));
    expected.keys.sort_unstable();
    expected
}

pub(super) async fn nothing_lists_as_nothing(bench: Bench) {
    let subject = bench.subject();
    for folder in ["", "t", "t/a"] {
        assert!(subject.list(folder, None).await.unwrap().is_empty());
        assert_eq!(subject.list_folder(folder).await.unwrap(), Folder::default());
    }
    bench.fill(["u/a", "s"]).await;
    assert!(subject.list("t", None).await.unwrap().is_empty());
    assert_eq!(subject.list_folder("t").await.unwrap(), Folder::default());
}

pub(super) async fn every_key_is_listed_once_over_pages(bench: Bench) {
    let page_keys = bench.profile.list.page_keys;
    let bench = bench.with_pages(page_keys);
    // Two pages and a half, and what lies on both sides.
    let keys: Vec<String> = (0..page_keys * 5 / 2).map(|n| format!("t/{n:06}")).collect();
    bench.fill(keys.iter().map(String::as_str).chain(["s", "t", "t-", "t0", "u/a"])).await;
    let (writer, subject) = bench.recorded();
    let listed = subject.list("t", None).await.unwrap();
    assert_eq!(listed.is_sorted(), bench.profile.list.ordered);
    assert!(sorted(listed) == keys, "the listing has other keys, or some twice");
    let pages: Vec<Option<u32>> = listings(&writer).iter().map(|request| request.keys).collect();
    assert_eq!(pages, [Some(page_keys), Some(page_keys), Some(page_keys / 2)]);
}

pub(super) async fn a_folder_is_no_prefix_of_a_name(bench: Bench) {
    bench.fill(["a/b", "a/b/1", "a/b/2/3", "a/bc", "a/bc/4", "a/b-/5", "a/b0/6", "ab/7"]).await;
    let subject = bench.subject();
    assert_eq!(sorted(subject.list("a/b", None).await.unwrap()), ["a/b/1", "a/b/2/3"]);
    assert_eq!(sorted(subject.list("a/b/2", None).await.unwrap()), ["a/b/2/3"]);
    let found = subject.list_folder("a/b").await.unwrap();
    assert_eq!((found.keys, found.folders), (vec!["a/b/1".to_owned()], vec!["a/b/2".to_owned()]));
    assert_eq!(subject.list("", None).await.unwrap().len(), 8);
}

pub(super) async fn an_offset_is_exclusive(bench: Bench) {
    let bench = bench.with_pages(10);
    let keys: Vec<String> = (0..40).map(|n| format!("t/{n:02}")).collect();
    bench.fill(keys.iter().map(String::as_str).chain(["s/99", "u/00"])).await;
    let subject = bench.subject();
    let cases = [("t/19", 20), ("t/19x", 20), ("t/18/x", 19), ("t/39", 40), ("a", 0), ("s/99", 0), ("t", 0), ("z", 40)];
    for (offset, first) in cases {
        let listed = subject.list("t", Some(offset)).await.unwrap();
        if bench.profile.list.ordered {
            assert!(listed.is_sorted(), "{listed:?}");
        }
        assert_eq!(sorted(listed), keys[first..], "after {offset}");
    }
}

pub(super) async fn only_an_ordered_provider_lists_from_an_offset(bench: Bench) {
    bench.fill((0..40).map(|n| format!("t/{n:02}"))).await;
    let (writer, subject) = bench.recorded();
    assert_eq!(subject.list("t", Some("t/29")).await.unwrap().len(), 10);
    let requests = listings(&writer);
    // Without an order all comes over the wire, and the client drops most of it.
    let keys = if bench.profile.list.ordered { 10 } else { 40 };
    assert_eq!(requests.iter().map(|request| request.keys).collect::<Vec<_>>(), [Some(keys)]);
}

/// Objects and folders whose names meet at every kind of border: `-` and `.` sort before the slash, `0` behind it.
fn mixed() -> Vec<String> {
    let names =
        ["a", "a-", "a-/1", "a.", "a./1", "a/1", "a/2", "a/b/3", "a0", "a0/4", "aa/5", "b/6", "c", "d/7", "d/8"];
    let deep = (0..6).flat_map(|n| [format!("e{n}/x/y"), format!("e{n}/x/z"), format!("f{n}"), format!("f{n}/{n}")]);
    sorted(names.into_iter().map(str::to_owned).chain(deep).map(|name| format!("t/{name}")).collect())
}

pub(super) async fn folders_are_folded_over_pages(bench: Bench) {
    let keys = mixed();
    for page_keys in 1..=8 {
        let bench = bench.with_pages(page_keys);
        bench.fill(keys.iter().map(String::as_str).chain(["s/1", "t", "t-/1", "t0/1", "u"])).await;
        let subject = bench.subject();
        for folder in ["t", "t/a", "t/e0", "t/a0"] {
            let mut found = subject.list_folder(folder).await.unwrap();
            if bench.profile.list.ordered {
                assert!(found.keys.is_sorted(), "{found:?}");
            }
            found.keys.sort_unstable();
            found.folders.sort_by_key(|folder| format!("{folder}/"));
            assert_eq!(found, folded(&keys, folder), "{folder} in pages of {page_keys}");
        }
    }
}

pub(super) async fn many_keys_are_folded_into_one_folder(bench: Bench) {
    let bench = bench.with_pages(100);
    // The folder begins as the last entry of a page, as the first of one, and between.
    for before in [98, 99, 100, 101] {
        let names = (0..before).map(|n| format!("t{before}/{n:04}"));
        let inside = (0..250).map(|n| format!("t{before}/f/{n:04}"));
        let keys: Vec<String> = names.chain(inside).chain([format!("t{before}/g")]).collect();
        bench.fill(&keys).await;
        let (writer, subject) = bench.recorded();
        let mut found = subject.list_folder(&format!("t{before}")).await.unwrap();
        found.keys.sort_unstable();
        assert_eq!(found, folded(&keys, &format!("t{before}")));
        if bench.profile.list.ordered {
            // A folder is one entry, however many keys it holds: these entries, the folder, and `g`.
            let expected = [Some(100), Some(before + 2 - 100)];
            let pages: Vec<Option<u32>> = listings(&writer).iter().map(|request| request.keys).collect();
            assert_eq!(pages, expected[..if before == 98 { 1 } else { 2 }], "{before} keys before the folder");
        }
    }
}

pub(super) async fn pages_are_full_but_the_last(bench: Bench) {
    for (page_keys, count) in [(7, 20), (7, 21), (1, 3), (20, 20)] {
        let bench = bench.with_pages(page_keys);
        bench.fill((0..count).map(|n| format!("t/{n:02}"))).await;
        let (_, client) = bench.client();
        let query = ListQuery { prefix: "t/".to_owned(), ..ListQuery::default() };
        let pages = raw::pages(&*client, query).await.unwrap();
        let sizes: Vec<u32> = pages.iter().map(|page| page.objects.len() as u32).collect();
        let (last, full) = sizes.split_last().unwrap();
        assert!(full.iter().all(|size| *size == page_keys), "{sizes:?}");
        assert_eq!(full.len() as u32 * page_keys + last, count);
        assert!(*last > 0, "no page is empty: {sizes:?}");
        assert!(pages.iter().flat_map(|page| &page.objects).all(|info| info.size_bytes == info.key.len() as u64));
    }
}

pub(super) async fn a_folded_listing_starts_within_a_folder(bench: Bench) {
    let bench = bench.with_pages(1);
    bench.fill(["t/a/1", "t/b/1", "t/b/2", "t/b0", "t/c/1"]).await;
    let (_, client) = bench.client();
    let from = |start: &str| ListQuery {
        prefix: "t/".to_owned(),
        delimited: true,
        start_after: Some(start.to_owned()),
        token: None,
    };
    for (start, expected) in [
        // One more key of the folder comes after the start.
        ("t/b/1", ["t/b/", "t/b0", "t/c/"].as_slice()),
        ("t/b/2", ["t/b0", "t/c/"].as_slice()),
        ("t/b/", ["t/b/", "t/b0", "t/c/"].as_slice()),
        ("t/c/1", [].as_slice()),
    ] {
        let answer = raw::pages(&*client, from(start)).await;
        if !bench.profile.list.start_after {
            assert!(matches!(answer, Err(StoreError::Unsupported { .. })), "{answer:?}");
            continue;
        }
        let entries: Vec<String> = answer
            .unwrap()
            .into_iter()
            .flat_map(|page| page.objects.into_iter().map(|info| info.key).chain(page.common_prefixes))
            .collect();
        assert_eq!(entries, expected, "after {start}");
    }
}

pub(super) async fn an_empty_segment_is_a_folder(bench: Bench) {
    for page_keys in [1, 2, 10] {
        let bench = bench.with_pages(page_keys);
        bench.fill(["t//a", "t//b", "t/a", "t/b/c"]).await;
        let found = bench.subject().list_folder("t").await.unwrap();
        assert_eq!((found.keys, found.folders), (vec!["t/a".to_owned()], vec!["t/".to_owned(), "t/b".to_owned()]));
    }
}

pub(super) async fn a_prefix_may_end_within_a_name(bench: Bench) {
    bench.fill(["t/1", "t/10", "t/2"]).await;
    let (writer, client) = bench.client();
    let answer = client.list(&ListQuery { prefix: "t/1".to_owned(), ..ListQuery::default() }).await;
    let outcomes: Vec<Outcome> = listings(&writer).iter().map(|request| request.outcome).collect();
    if bench.profile.list.prefix_ends_in_slash {
        assert!(matches!(answer, Err(StoreError::Unsupported { .. })), "{answer:?}");
        assert_eq!(outcomes, [Outcome::Error]);
    } else {
        let keys: Vec<String> = answer.unwrap().objects.into_iter().map(|info| info.key).collect();
        assert_eq!(keys, ["t/1", "t/10"]);
        assert_eq!(outcomes, [Outcome::Ok]);
    }
}
