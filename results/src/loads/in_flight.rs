//! How many requests were under way at once: from when each was sent and answered.

/// Requests under way during one operation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InFlight {
    /// Most at once.
    pub max: u64,
    /// Time with at least one, in µs.
    pub busy_us: u64,
    /// Time of all requests added up, in µs.
    pub sum_us: u64,
}

impl InFlight {
    /// From the start and the end of each request, in µs. A request that ends when another starts is not beside it.
    pub fn of(spans_us: &[(u64, u64)]) -> Self {
        // An end sorts before a start at the same moment.
        let mut moments: Vec<(u64, bool)> = Vec::with_capacity(2 * spans_us.len());
        for (start_us, end_us) in spans_us.iter().filter(|(start_us, end_us)| start_us < end_us) {
            moments.extend([(*start_us, true), (*end_us, false)]);
        }
        moments.sort_unstable();
        // A request whose time rounds to nothing was under way all the same.
        let mut all = Self { max: u64::from(!spans_us.is_empty()), ..Self::default() };
        let (mut now, mut since_us) = (0, 0);
        for (moment_us, is_start) in moments {
            let passed_us = moment_us - since_us;
            all.sum_us += passed_us * now;
            all.busy_us += if now > 0 { passed_us } else { 0 };
            now = if is_start { now + 1 } else { now - 1 };
            all.max = all.max.max(now);
            since_us = moment_us;
        }
        all
    }

    /// Requests under way on average over the time with at least one, in all of some operations; 0 if none was timed.
    pub fn mean_of(operations: &[Self]) -> f64 {
        let busy_us: u64 = operations.iter().map(|operation| operation.busy_us).sum();
        let sum_us: u64 = operations.iter().map(|operation| operation.sum_us).sum();
        if busy_us == 0 { 0.0 } else { sum_us as f64 / busy_us as f64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_one_after_another_are_never_beside_each_other() {
        let all = InFlight::of(&[(0, 10), (10, 30), (40, 50)]);
        assert_eq!(all, InFlight { max: 1, busy_us: 40, sum_us: 40 });
        assert_eq!(InFlight::mean_of(&[all]), 1.0);
    }

    #[test]
    fn overlaps_are_counted_and_weighted_by_their_time() {
        // Two from 5 to 10, three from 10 to 20.
        let all = InFlight::of(&[(0, 20), (5, 25), (10, 20)]);
        assert_eq!(all, InFlight { max: 3, busy_us: 25, sum_us: 50 });
        assert_eq!(InFlight::mean_of(&[all]), 2.0);
        // Operations weigh by their time, too.
        assert_eq!(InFlight::mean_of(&[all, InFlight::of(&[(0, 25)])]), 1.5);
    }

    #[test]
    fn nothing_and_requests_without_a_length() {
        assert_eq!(InFlight::of(&[]), InFlight::default());
        assert_eq!(InFlight::of(&[(7, 7), (7, 7)]), InFlight { max: 1, ..InFlight::default() });
        assert_eq!(InFlight::mean_of(&[]), 0.0);
    }

    proptest! {
        #[test]
        fn time_is_conserved_whatever_the_order(
            spans in proptest::collection::vec((0_u64..1_000, 0_u64..500), 1..40),
            turn in 0_usize..40,
        ) {
            let mut spans: Vec<(u64, u64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let all = InFlight::of(&spans);
            prop_assert_eq!(all.sum_us, spans.iter().map(|(start, end)| end - start).sum::<u64>());
            // Brute force, microsecond by microsecond.
            let at = |us: u64| spans.iter().filter(|(start, end)| (*start..*end).contains(&us)).count() as u64;
            prop_assert_eq!(all.busy_us, (0..1_500).filter(|us| at(*us) > 0).count() as u64);
            prop_assert_eq!(all.max, (0..1_500).map(at).max().unwrap_or_default().max(1));
            let mean = InFlight::mean_of(&[all]);
            prop_assert!(all.busy_us == 0 || (1.0 - 1e-9..=all.max as f64 + 1e-9).contains(&mean));
            let places = spans.len();
            spans.rotate_left(turn % places);
            prop_assert_eq!(InFlight::of(&spans), all);
        }
    }
}
