//! JSON objects whose fields come in any order: the same bytes for each order, and the order as a number.

/// Most fields that are sorted: 12! is the largest factorial within 32 bits.
const FIELDS_MAX: usize = 12;

/// The fields of the innermost object of an element: where they start and end, and the commas between them.
#[derive(Eq, PartialEq)]
struct Fields {
    /// Ends of the fields, each but the last followed by a comma; the first entry is where the first field starts.
    bounds: [usize; FIELDS_MAX + 1],
    count: usize,
}

impl Fields {
    /// Finds them: between the last `{` and the next `}`, parted by commas in front of a quote. What is found need not
    /// be JSON: whatever the bytes are, putting them back gives the same bytes.
    fn find(element: &[u8]) -> Option<Self> {
        let start = memchr::memrchr(b'{', element)? + 1;
        let end = start + memchr::memchr(b'}', &element[start..])?;
        let mut fields = Self { bounds: [start; FIELDS_MAX + 1], count: 0 };
        for found in memchr::memmem::find_iter(&element[start..end], b",\"") {
            if fields.count + 1 == FIELDS_MAX {
                return None;
            }
            fields.count += 1;
            fields.bounds[fields.count] = start + found;
        }
        fields.count += 1;
        fields.bounds[fields.count] = end;
        (fields.count > 1).then_some(fields)
    }

    fn field<'a>(&self, element: &'a [u8], number: usize) -> &'a [u8] {
        let start = self.bounds[number] + usize::from(number > 0);
        &element[start..self.bounds[number + 1]]
    }
}

/// Writes an element with its fields sorted, and gives the number of the permutation that they were in; none if it has
/// no fields to sort.
pub(super) fn sort(element: &[u8], sorted: &mut Vec<u8>) -> Option<u32> {
    let fields = Fields::find(element)?;
    let mut places = [0_usize; FIELDS_MAX];
    let places = &mut places[..fields.count];
    for (number, place) in places.iter_mut().enumerate() {
        *place = number;
    }
    places.sort_by(|a, b| fields.field(element, *a).cmp(fields.field(element, *b)));
    sorted.clear();
    sorted.extend_from_slice(&element[..fields.bounds[0]]);
    let mut expected = Fields { bounds: [fields.bounds[0]; FIELDS_MAX + 1], count: fields.count };
    for (number, place) in places.iter().enumerate() {
        if number > 0 {
            sorted.push(b',');
        }
        sorted.extend_from_slice(fields.field(element, *place));
        expected.bounds[number + 1] = sorted.len();
    }
    sorted.extend_from_slice(&element[fields.bounds[fields.count]..]);
    // Only what is found again where it was put can be put back: a first field without a quote, say, is not.
    (Fields::find(sorted)? == expected).then(|| number_of(places))
}

/// Appends an element that [`sort`] wrote, with its fields in the order of a permutation's number.
pub(super) fn unsort(sorted: &[u8], order: u32, element: &mut bytes::BytesMut) {
    let Some(fields) = Fields::find(sorted) else {
        element.extend_from_slice(sorted);
        return;
    };
    let mut places = [0_usize; FIELDS_MAX];
    let places = &mut places[..fields.count];
    permutation_of(order, places);
    // `places[i]` is where the i-th of the sorted fields stood.
    let mut fields_by_place = [0_usize; FIELDS_MAX];
    for (number, place) in places.iter().enumerate() {
        fields_by_place[*place] = number;
    }
    element.extend_from_slice(&sorted[..fields.bounds[0]]);
    for (place, number) in fields_by_place[..fields.count].iter().enumerate() {
        if place > 0 {
            element.extend_from_slice(b",");
        }
        element.extend_from_slice(fields.field(sorted, *number));
    }
    element.extend_from_slice(&sorted[fields.bounds[fields.count]..]);
}

/// Number of a permutation: its Lehmer code, read in the factorial number system.
fn number_of(permutation: &[usize]) -> u32 {
    let mut number = 0;
    for (position, value) in permutation.iter().enumerate() {
        let smaller_behind = permutation[position + 1..].iter().filter(|behind| *behind < value).count();
        number = number * (permutation.len() - position) as u32 + smaller_behind as u32;
    }
    number
}

/// The permutation with a number.
fn permutation_of(mut number: u32, permutation: &mut [usize]) {
    let length = permutation.len();
    for position in (0..length).rev() {
        let base = (length - position) as u32;
        permutation[position] = (number % base) as usize;
        number /= base;
    }
    // From the count of smaller values behind each to the values themselves.
    for position in (0..length).rev() {
        for behind in position + 1..length {
            if permutation[behind] >= permutation[position] {
                permutation[behind] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permutation_has_its_own_number() {
        let mut seen = std::collections::HashSet::new();
        for number in 0..120 {
            let mut permutation = [0; 5];
            permutation_of(number, &mut permutation);
            assert_eq!(number_of(&permutation), number, "{permutation:?}");
            assert!(seen.insert(permutation));
        }
        let mut last = [0; FIELDS_MAX];
        permutation_of(479_001_599, &mut last);
        assert_eq!(last, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }

    fn there_and_back(element: &[u8]) -> Option<Vec<u8>> {
        let mut sorted = Vec::new();
        let order = sort(element, &mut sorted)?;
        let mut back = bytes::BytesMut::new();
        unsort(&sorted, order, &mut back);
        assert_eq!(back, element, "{}", String::from_utf8_lossy(element));
        Some(sorted)
    }

    #[test]
    fn fields_in_any_order_sort_to_the_same_bytes() {
        let one = there_and_back(br#"{"id":1,"summary":{"op":"a","x":"1","y":"2"},"s":0},"#);
        let other = there_and_back(br#"{"id":1,"summary":{"y":"2","op":"a","x":"1"},"s":0},"#);
        assert!(one.is_some());
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_no_such_object_comes_back_too() {
        for element in [
            &br#"{,"},"#[..],
            br#"{"a":",",",","b"},"#,
            br#"x{"a,"b":1,"},"#,
            br#"{,",","},{"#,
            br#"{"a":1},"#,
            br#"{1,"a"}"#,
            b"",
            b"{",
        ] {
            there_and_back(element);
        }
        let many: Vec<String> = (0..13).map(|n| format!("\"f{n}\":{n}")).collect();
        assert_eq!(there_and_back(format!("{{{}}},", many.join(",")).as_bytes()), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_come_back(element in proptest::collection::vec(proptest::sample::select(&b"{},\"a1"[..]), 0..60)) {
            there_and_back(&element);
        }
    }
}
