//! Single objects: written, read, asked about, copied, deleted.

use bytes::Bytes;
use lakemark_core::clock;
use lakemark_core::store::{Precondition, Span};

use crate::bench::Bench;
use crate::subject::{Ability, Failure};

const DIGITS: Bytes = Bytes::from_static(b"0123456789");

/// Bytes that do not repeat.
fn varied(size: usize) -> Bytes {
    (0..size as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub(super) async fn what_was_put_is_got(bench: Bench) {
    let subject = bench.subject();
    // Empty, small, kept whole, cut into chunks, larger than a chunk's memory.
    for size in [0, 1, 1_024, 1_025, 100_000, 5 << 20] {
        let (key, body) = (format!("t/{size}"), varied(size));
        subject.put(&key, body.clone(), Precondition::None).await.unwrap();
        assert!(subject.get(&key, Span::Full).await.unwrap() == body, "{size} bytes came back as others");
    }
}

pub(super) async fn a_write_replaces_the_object(bench: Bench) {
    let subject = bench.subject();
    for body in ["the first", "second", ""] {
        subject.put("t/a", body.into(), Precondition::None).await.unwrap();
        assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), body);
        assert_eq!(subject.head("t/a").await.unwrap().size_bytes, body.len() as u64);
    }
    assert_eq!(bench.keys(), ["t/a"]);
}

pub(super) async fn nothing_is_not_found(bench: Bench) {
    bench.fill(["t/a/b"]).await;
    let subject = bench.subject();
    // A folder, the start of a name, and something behind a name are no objects.
    for key in ["t", "t/a", "t/a/", "t/a/bc", "t/a/b/c", "z"].map(|key| key.trim_end_matches('/')) {
        assert_eq!(subject.get(key, Span::Full).await, Err(Failure::NotFound), "{key}");
        assert_eq!(subject.get(key, Span::Range(0..1)).await, Err(Failure::NotFound), "{key}");
        assert_eq!(subject.head(key).await, Err(Failure::NotFound), "{key}");
    }
}

pub(super) async fn a_head_tells_size_tag_and_time(bench: Bench) {
    let subject = bench.subject();
    let before_ms = clock::wall_ms();
    let etag = subject.put("t/a", DIGITS, Precondition::None).await.unwrap();
    let after_ms = clock::wall_ms();
    let known = subject.head("t/a").await.unwrap();
    assert_eq!(known.size_bytes, 10);
    assert_eq!(known.etag, etag);
    if let Some(modified_ms) = known.modified_ms {
        assert!((before_ms..=after_ms).contains(&modified_ms), "{modified_ms} in {before_ms} to {after_ms}");
    }
}

pub(super) async fn a_range_is_cut_to_the_object(bench: Bench) {
    let subject = bench.subject();
    subject.put("t/a", DIGITS, Precondition::None).await.unwrap();
    subject.put("t/empty", Bytes::new(), Precondition::None).await.unwrap();
    for (range, expected) in [(0..1, "0"), (2..5, "234"), (0..10, "0123456789"), (9..10, "9"), (8..100, "89")] {
        assert_eq!(subject.get("t/a", Span::Range(range.clone())).await.unwrap(), expected, "{range:?}");
    }
    for (key, range) in [("t/a", 10..11), ("t/a", 50..60), ("t/empty", 0..1)] {
        let answer = subject.get(key, Span::Range(range.clone())).await;
        assert!(matches!(answer, Err(Failure::Refused(_))), "{key} {range:?}: {answer:?}");
    }
}

pub(super) async fn an_open_span_is_cut_to_the_object(bench: Bench) {
    let subject = bench.subject();
    subject.put("t/a", DIGITS, Precondition::None).await.unwrap();
    subject.put("t/empty", Bytes::new(), Precondition::None).await.unwrap();
    let answered = [
        ("t/a", Span::From(0), "0123456789"),
        ("t/a", Span::From(9), "9"),
        ("t/a", Span::Last(1), "9"),
        ("t/a", Span::Last(10), "0123456789"),
        ("t/a", Span::Last(11), "0123456789"),
        ("t/empty", Span::Last(1), ""),
    ];
    for (key, span, expected) in answered {
        assert_eq!(subject.get(key, span.clone()).await.unwrap(), expected, "{key} {span:?}");
    }
    // RFC 9110, 14.1.2: satisfiable are a first position within the object, and a suffix that is not of length 0.
    for (key, span) in [("t/a", Span::From(10)), ("t/empty", Span::From(0)), ("t/a", Span::Last(0))] {
        let answer = subject.get(key, span.clone()).await;
        assert!(matches!(answer, Err(Failure::Refused(_))), "{key} {span:?}: {answer:?}");
    }
}

pub(super) async fn a_range_of_a_large_object(bench: Bench) {
    let subject = bench.subject();
    let body = varied(300_000);
    subject.put("t/a", body.clone(), Precondition::None).await.unwrap();
    for (start, end) in [(0, 1), (1_023, 1_026), (100_000, 200_001), (299_999, 300_000)] {
        let part = subject.get("t/a", Span::Range(start as u64..end as u64)).await.unwrap();
        assert!(part == body[start..end], "{start}..{end}");
    }
}

pub(super) async fn a_delete_can_be_repeated(bench: Bench) {
    bench.fill(["t/a", "t/ab"]).await;
    let subject = bench.subject();
    for _ in 0..2 {
        subject.delete("t/a").await.unwrap();
        assert_eq!(subject.get("t/a", Span::Full).await, Err(Failure::NotFound));
    }
    subject.delete("t/never").await.unwrap();
    assert_eq!(bench.keys(), ["t/ab"]);
    subject.put("t/a", DIGITS, Precondition::None).await.unwrap();
    assert_eq!(subject.get("t/a", Span::Full).await.unwrap(), DIGITS);
}

pub(super) async fn parts_are_one_object(bench: Bench) {
    let subject = bench.subject();
    let body = varied(10_000);
    for cuts in [vec![0, 10_000], vec![0, 1, 5_000, 10_000], vec![0, 0, 10_000]] {
        let key = format!("t/{}", cuts.len());
        let parts: Vec<Bytes> = cuts.windows(2).map(|cut| body.slice(cut[0]..cut[1])).collect();
        subject.put_parts(&key, &parts).await.unwrap();
        assert!(subject.get(&key, Span::Full).await.unwrap() == body, "{cuts:?}");
    }
}

pub(super) async fn keys_are_taken_as_they_are(bench: Bench) {
    let subject = bench.subject();
    let mut keys = ["a b/c=1/d.e_f-g", "a%20b", "a%2Fb", "a+b", "b:c@d,e;f&g$h(i)'!", "ä/漢字", "…"];
    keys.sort_unstable();
    for key in keys {
        subject.put(key, key.into(), Precondition::None).await.unwrap();
    }
    assert_eq!(bench.keys(), keys);
    for key in keys {
        assert_eq!(subject.get(key, Span::Full).await.unwrap(), key);
    }
    if subject.abilities().contains(&Ability::List) {
        let mut listed = subject.list("", None).await.unwrap();
        listed.sort_unstable();
        assert_eq!(listed, keys);
    }
}

pub(super) async fn a_copy_is_an_object_of_its_own(bench: Bench) {
    let subject = bench.subject();
    let (small, large) = (DIGITS, varied(100_000));
    for body in [small, large] {
        let etag = subject.put("t/from", body.clone(), Precondition::None).await.unwrap();
        subject.put("t/to", "replaced".into(), Precondition::None).await.unwrap();
        subject.copy("t/from", "t/to", Precondition::None).await.unwrap();
        assert!(subject.get("t/to", Span::Full).await.unwrap() == body);
        assert_eq!(subject.head("t/from").await.unwrap().etag, etag);
        // Neither follows the other.
        subject.put("t/from", "other".into(), Precondition::None).await.unwrap();
        subject.delete("t/from").await.unwrap();
        assert!(subject.get("t/to", Span::Full).await.unwrap() == body);
    }
}

pub(super) async fn a_copy_of_nothing_is_not_found(bench: Bench) {
    bench.fill(["t/there"]).await;
    let subject = bench.subject();
    for to in ["t/new", "t/there"] {
        assert_eq!(subject.copy("t/never", to, Precondition::None).await, Err(Failure::NotFound));
    }
    assert_eq!(bench.keys(), ["t/there"]);
    assert_eq!(subject.get("t/there", Span::Full).await.unwrap(), "t/there");
}

pub(super) async fn a_folder_is_deleted_and_nothing_beside_it(bench: Bench) {
    let bench = bench.with_pages(3);
    let inside: Vec<String> = (0..10).map(|n| format!("t/a/{n}")).chain(["t/a/b/c".to_owned()]).collect();
    bench.fill(inside.iter().map(String::as_str).chain(["t/a", "t/ab/c", "t/b"])).await;
    bench.subject().delete_folder("t/a").await.unwrap();
    assert_eq!(bench.keys(), ["t/a", "t/ab/c", "t/b"]);
}
