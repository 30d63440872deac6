//! What one client sees of what another did: everything, as soon as that one knows.

use bytes::Bytes;
use futures::future::join;
use lakemark_core::store::{Precondition, Span};

use crate::bench::Bench;
use crate::subject::Failure;

pub(super) async fn a_write_is_seen_by_all_at_once(bench: Bench) {
    let (one, other) = (bench.subject(), bench.subject());
    for n in 0..5 {
        let body = format!("write {n}");
        one.put("t/a", body.clone().into(), Precondition::None).await.unwrap();
        for client in [&one, &other, &bench.subject()] {
            assert_eq!(client.get("t/a", Span::Full).await.unwrap(), body);
            assert_eq!(client.head("t/a").await.unwrap().size_bytes, 7);
        }
    }
    other.delete("t/a").await.unwrap();
    assert_eq!(one.get("t/a", Span::Full).await, Err(Failure::NotFound));
}

pub(super) async fn a_reader_sees_one_write_whole(bench: Bench) {
    const WRITES: u8 = 6;
    let (writer, reader) = (bench.subject(), bench.subject());
    // Each body is one byte over and over, as often as its number says.
    let body = |n: u8| Bytes::from(vec![n; usize::from(n) * 1_000]);
    writer.put("t/a", body(1), Precondition::None).await.unwrap();
    let writes = async {
        for n in 2..=WRITES {
            writer.put("t/a", body(n), Precondition::None).await.unwrap();
        }
    };
    let reads = async {
        let mut seen = Vec::new();
        // More than enough for every write on any of the providers, of which the slowest takes one write a second.
        for _ in 0..1_000 {
            let read = reader.get("t/a", Span::Full).await.unwrap();
            assert!(read == body(read[0]), "{} bytes of write {}", read.len(), read[0]);
            seen.push(read[0]);
            if read[0] == WRITES {
                break;
            }
        }
        seen
    };
    let ((), seen) = join(writes, reads).await;
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&WRITES));
}

pub(super) async fn a_listing_shows_every_write_and_delete(bench: Bench) {
    let (one, other) = (bench.subject(), bench.subject());
    let check = async |folders: &[String]| {
        for client in [&one, &other] {
            let mut keys = client.list("t", None).await.unwrap();
            keys.sort_unstable();
            let expected = folders.iter().flat_map(|folder| ["a", "b"].map(|name| format!("{folder}/{name}")));
            assert_eq!(keys, expected.collect::<Vec<_>>());
            let found = client.list_folder("t").await.unwrap();
            assert_eq!((found.keys.as_slice(), found.folders.as_slice()), ([].as_slice(), folders));
        }
    };
    let mut folders = Vec::new();
    for n in 0..4 {
        let folder = format!("t/{n}");
        for name in ["a", "b"] {
            one.put(&format!("{folder}/{name}"), name.into(), Precondition::None).await.unwrap();
        }
        folders.push(folder);
        check(&folders).await;
    }
    while let Some(folder) = folders.pop() {
        for name in ["a", "b"] {
            one.delete(&format!("{folder}/{name}")).await.unwrap();
        }
        // A folder is gone with the last of its keys.
        check(&folders).await;
    }
}
