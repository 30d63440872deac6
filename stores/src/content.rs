//! What the emulated store holds: objects as lists of chunks, each distinct chunk kept once.
//!
//! Formats write the same metadata again with every version. How it repeats decides how it must be cut:
//! - Lance's manifests and Delta's checkpoints keep their order, so content-defined chunks (FastCDC) find the repeats;
//! - Iceberg's `metadata.json` holds one JSON object per snapshot, in a new random order in each version (the library
//!   writes them from a hash map), so a chunk must be exactly one array element. Cutting between `},` and `{` gives
//!   those. The summary inside each is a hash map, too: its fields are sorted for the chunk, and their order in this
//!   object is kept beside it as the number of a permutation;
//! - Iceberg's manifest lists are Avro: they keep their order, but every block ends in a marker of 16 random bytes that
//!   is new in each file. The marker is made a chunk of its own, and does not spoil its neighbours.
//!
//! A chunk is known by its 128-bit XXH3 hash: with 10⁸ chunks the chance of one collision is about 10⁻²³.

mod fields;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fastcdc::v2020::FastCDC;
use memchr::memmem;
use xxhash_rust::xxh3::xxh3_128;

/// Objects up to this size are kept whole: cutting them saves nothing.
const WHOLE_BYTES_MAX: usize = 1_024;

/// Shortest array element that becomes a chunk of its own. Shorter ones (Iceberg's snapshot log) keep their order and
/// go together, at less than half the bookkeeping.
const ELEMENT_BYTES_MIN: usize = 200;

/// Longest array element that becomes a chunk of its own; what is longer is cut by content.
const ELEMENT_BYTES_MAX: usize = 2_048;

/// Smallest, average and largest chunk of content-defined cutting.
const CUT_BYTES: (usize, usize, usize) = (128, 512, 2_048);

/// First bytes of an Avro file, and length of the marker that ends it and each of its blocks.
const AVRO_MAGIC: &[u8] = b"Obj\x01";
const AVRO_MARKER_BYTES: usize = 16;

/// Size of the pieces of memory that chunks are kept in.
const SLAB_BYTES: usize = 4 << 20;

/// Whole objects kept beside their chunks, so that reading what was just written copies nothing.
const RECENT_BYTES_MAX: usize = 48 << 20;

/// Passes a hash on unchanged: the keys are hashes already.
#[derive(Default)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // u128 keys come through `write_u128`; this is here for the trait alone.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        // The lower half is as good a hash as the whole.
        self.0 = hash as u64;
    }
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    slab: u32,
    start: u32,
    length: u32,
    /// Whether its fields are sorted: each use of the chunk then has an order of its own.
    sorted: bool,
}

/// An object's content.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    size: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Whole(Bytes),
    /// Numbers of its chunks, the orders of the fields of those that are sorted, and a number by which it is known among
    /// the recent objects.
    Chunks {
        chunks: Arc<[u32]>,
        orders: Arc<[u32]>,
        recent: u64,
    },
}

impl Content {
    /// Size of the object in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

/// All chunks.
#[derive(Default)]
pub(crate) struct Chunks {
    slabs: Vec<Vec<u8>>,
    places: Vec<Place>,
    numbers: HashMap<u128, u32, BuildHasherDefault<Unchanged>>,
    recent: HashMap<u64, Bytes>,
    /// Numbers of the recent objects, oldest first.
    recent_order: VecDeque<u64>,
    recent_bytes: usize,
    next_recent: u64,
    /// Chunk numbers in all contents made so far, and bytes of those kept whole.
    listed: u64,
    whole_bytes: u64,
}

impl Chunks {
    /// Keeps an object.
    pub(crate) fn keep(&mut self, body: Bytes) -> Content {
        let size = body.len();
        if size <= WHOLE_BYTES_MAX {
            self.whole_bytes += size as u64;
            // A copy of its own: the body may be a slice of something large.
            return Content { size, form: Form::Whole(Bytes::copy_from_slice(&body)) };
        }
        let mut chunks = Vec::with_capacity(size / ELEMENT_BYTES_MIN);
        let mut orders = Vec::new();
        let mut sorted = Vec::with_capacity(ELEMENT_BYTES_MAX);
        cut(&body, |piece| match piece {
            Piece::Plain(bytes) => chunks.push(self.number(bytes, false)),
            Piece::Element(bytes) => match fields::sort(bytes, &mut sorted) {
                Some(order) => {
                    chunks.push(self.number(&sorted, true));
                    orders.push(order);
                }
                None => chunks.push(self.number(bytes, false)),
            },
        });
        self.listed += (chunks.len() + orders.len()) as u64;
        let recent = self.next_recent;
        self.next_recent += 1;
        self.remember(recent, body);
        Content { size, form: Form::Chunks { chunks: chunks.into(), orders: orders.into(), recent } }
    }

    /// An object's bytes.
    pub(crate) fn read(&mut self, content: &Content) -> Bytes {
        match &content.form {
            Form::Whole(body) => body.clone(),
            Form::Chunks { chunks, orders, recent } => {
                if let Some(body) = self.recent.get(recent) {
                    return body.clone();
                }
                let mut body = BytesMut::with_capacity(content.size);
                let mut orders = orders.iter();
                for chunk in chunks.iter() {
                    let place = self.places[*chunk as usize];
                    let start = place.start as usize;
                    let bytes = &self.slabs[place.slab as usize][start..start + place.length as usize];
                    match place.sorted.then(|| orders.next()).flatten() {
                        Some(order) => fields::unsort(bytes, *order, &mut body),
                        None => body.extend_from_slice(bytes),
                    }
                }
                let body = body.freeze();
                self.remember(*recent, body.clone());
                body
            }
        }
    }

    /// Memory that the chunks and the lists of them take.
    pub(crate) fn held_bytes(&self) -> u64 {
        let slabs: usize = self.slabs.iter().map(Vec::capacity).sum();
        let index = self.numbers.capacity() * (size_of::<(u128, u32)>() + 1);
        let places = self.places.capacity() * size_of::<Place>();
        (slabs + index + places + self.recent_bytes) as u64 + self.listed * 4 + self.whole_bytes
    }

    fn remember(&mut self, recent: u64, body: Bytes) {
        if body.len() > RECENT_BYTES_MAX {
            return;
        }
        self.recent_bytes += body.len();
        self.recent.insert(recent, body);
        self.recent_order.push_back(recent);
        while self.recent_bytes > RECENT_BYTES_MAX
            && let Some(oldest) = self.recent_order.pop_front()
        {
            self.recent_bytes -= self.recent.remove(&oldest).map_or(0, |body| body.len());
        }
    }

    fn number(&mut self, chunk: &[u8], sorted: bool) -> u32 {
        // A sorted chunk and a plain one of the same bytes are two: only one of them has orders.
        let hash = xxh3_128(chunk) ^ u128::from(sorted);
        if let Some(number) = self.numbers.get(&hash) {
            return *number;
        }
        if self.slabs.last().is_none_or(|slab| slab.capacity() - slab.len() < chunk.len()) {
            self.slabs.push(Vec::with_capacity(SLAB_BYTES.max(chunk.len())));
        }
        let slab = self.slabs.len() - 1;
        let start = self.slabs[slab].len();
        self.slabs[slab].extend_from_slice(chunk);
        // 2³² chunks of 128 bytes at least, or slabs of 4 MiB, are far beyond any machine's memory.
        let place = Place { slab: slab as u32, start: start as u32, length: chunk.len() as u32, sorted };
        let number = self.places.len() as u32;
        self.places.push(place);
        self.numbers.insert(hash, number);
        number
    }
}

/// A part of an object.
enum Piece<'a> {
    /// Any bytes.
    Plain(&'a [u8]),
    /// Bytes that are probably one element of a JSON array.
    Element(&'a [u8]),
}

/// Cuts an object into pieces, in order.
fn cut(body: &[u8], mut piece: impl FnMut(Piece<'_>)) {
    if body.starts_with(AVRO_MAGIC) && body.len() > AVRO_MAGIC.len() + AVRO_MARKER_BYTES {
        let marker = &body[body.len() - AVRO_MARKER_BYTES..];
        let mut start = 0;
        for found in memmem::find_iter(body, marker) {
            cut_by_content(&body[start..found], &mut piece);
            piece(Piece::Plain(marker));
            start = found + AVRO_MARKER_BYTES;
        }
        return;
    }
    let mut start = 0;
    for found in memmem::find_iter(body, b"},{") {
        let end = found + 2;
        if end - start >= ELEMENT_BYTES_MIN {
            if end - start <= ELEMENT_BYTES_MAX {
                piece(Piece::Element(&body[start..end]));
            } else {
                cut_by_content(&body[start..end], &mut piece);
            }
            start = end;
        }
    }
    cut_by_content(&body[start..], &mut piece);
}

fn cut_by_content(bytes: &[u8], piece: &mut impl FnMut(Piece<'_>)) {
    let (smallest, average, largest) = CUT_BYTES;
    if bytes.len() > largest {
        for part in FastCDC::new(bytes, smallest, average, largest) {
            piece(Piece::Plain(&bytes[part.offset..part.offset + part.length]));
        }
    } else if !bytes.is_empty() {
        piece(Piece::Plain(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots(order: impl Iterator<Item = u64>) -> Bytes {
        let entries: Vec<String> = order
            .enumerate()
            .map(|(place, n)| {
                // The fields of the summary, in an order that depends on the place as well.
                let mut fields: Vec<String> = (0..10).map(|field| format!("\"total-{field}\":\"{n}\"")).collect();
                fields.rotate_left(place % 10);
                fields.swap(0, (place / 10) % 10);
                let list = "x".repeat(300);
                format!(
                    "{{\"snapshot-id\":{n},\"manifest-list\":\"{list}-{n}\",\"summary\":{{{}}},\"schema-id\":0}}",
                    fields.join(",")
                )
            })
            .collect();
        Bytes::from(format!("{{\"snapshots\":[{}]}}", entries.join(",")))
    }

    /// Something like an Avro file: entries in blocks, each with the file's marker behind it.
    fn avro(marker: u8, entries: u32) -> Bytes {
        let marker = [marker.wrapping_mul(37); AVRO_MARKER_BYTES];
        let mut body = [AVRO_MAGIC, b"the schema", &marker].concat();
        for entry in 0..entries {
            body.extend(format!("manifest-{:x}-{entry}", entry.wrapping_mul(2_654_435_761)).as_bytes());
            if entry % 100 == 99 {
                body.extend(marker);
            }
        }
        body.extend(marker);
        body.into()
    }

    #[test]
    fn avro_blocks_with_another_marker_are_kept_once() {
        let mut chunks = Chunks::default();
        chunks.keep(avro(1, 10_000));
        let before = chunks.places.len();
        chunks.keep(avro(2, 10_050));
        assert!(chunks.places.len() - before <= 6, "{} new chunks", chunks.places.len() - before);
    }

    #[test]
    fn every_object_reads_back_as_written() {
        let mut chunks = Chunks::default();
        let bodies: Vec<Bytes> = [0_usize, 1, 1_024, 1_025, 70_000, 5_000_000]
            .iter()
            .map(|size| (0..*size).map(|n| (n.wrapping_mul(2_654_435_761) >> 7) as u8).collect::<Vec<u8>>().into())
            .chain([snapshots(0..3_000), snapshots((0..3_000).rev()), avro(1, 9_000), avro(2, 10_000)])
            .collect();
        let contents: Vec<Content> = bodies.iter().map(|body| chunks.keep(body.clone())).collect();
        chunks.recent.clear();
        for (body, content) in bodies.iter().zip(&contents) {
            assert_eq!(content.size(), body.len());
            assert_eq!(chunks.read(content), body);
        }
    }

    #[test]
    fn array_elements_in_another_order_are_kept_once() {
        let mut chunks = Chunks::default();
        chunks.keep(snapshots(0..5_000));
        let before = chunks.places.len();
        chunks.keep(snapshots((0..5_000).rev()));
        // The first and last elements carry the brackets around the array.
        assert!(chunks.places.len() - before <= 4, "{} new chunks", chunks.places.len() - before);
    }

    #[test]
    fn a_growing_binary_object_costs_what_was_added() {
        let mut chunks = Chunks::default();
        let whole: Vec<u8> = (0..2_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for size in (1_000_000..2_000_000).step_by(20_000) {
            chunks.keep(Bytes::copy_from_slice(&whole[..size]));
        }
        let kept: usize = chunks.slabs.iter().map(Vec::len).sum();
        assert!(kept < 2_300_000, "{kept} bytes kept for 2 MB of distinct content");
    }
}
