//! How is a latency histogram kept in one value of a row?

use lakemark_simulator::Histogram;

/// Writes a histogram: for each duration that occurred, ascending, the milliseconds since the one before (the first: since
/// 0) and how often it occurred, both as unsigned LEB128. Nothing is lost.
pub fn encode(histogram: &Histogram) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before_ms = 0;
    for (ms, count) in histogram.iter() {
        push(&mut bytes, ms - before_ms);
        push(&mut bytes, count);
        before_ms = ms;
    }
    bytes
}

/// Reads a histogram; none if the bytes are not one.
pub fn decode(bytes: &[u8]) -> Option<Histogram> {
    let mut histogram = Histogram::default();
    let mut rest = bytes.iter();
    let mut ms: u32 = 0;
    while !rest.as_slice().is_empty() {
        ms = ms.checked_add(pull(&mut rest)?)?;
        histogram.record_n(ms, pull(&mut rest)?);
    }
    Some(histogram)
}

fn push(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn pull(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut value: u64 = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(value).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_whole() {
        let mut histogram = Histogram::default();
        for (ms, count) in [(0, 3), (1, 1), (127, 128), (128, 70_000), (300_000, 1), (100_000_000, u32::MAX)] {
            histogram.record_n(ms, count);
        }
        let bytes = encode(&histogram);
        let decoded = decode(&bytes).unwrap();
        assert!(decoded.iter().eq(histogram.iter()));
        assert_eq!(decoded.percentiles_ms([50.0, 99.0]), histogram.percentiles_ms([50.0, 99.0]));
        assert!(decode(&[]).unwrap().iter().next().is_none());
    }

    #[test]
    fn torn_bytes_are_no_histogram() {
        assert!(decode(&[5]).is_none());
        assert!(decode(&[0x80]).is_none());
        assert!(decode(&[0xff, 0xff, 0xff, 0xff, 0xff, 1]).is_none());
    }
}
