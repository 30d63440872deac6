//! Which values can a grid's settings take? A tree of choices, counted and indexed without being expanded.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Settings of a grid: one value, a table of settings, or a choice between several.
///
/// A table has as many variants as the product of its entries', a choice as many as the sum of its options'. Variant `i`
/// is found by division alone, so that a grid of any size costs what its text does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// One value.
    Leaf(Value),
    /// Settings by name. The last one varies fastest.
    Table(BTreeMap<String, Node>),
    /// One of several.
    Choice(Vec<Node>),
}

impl Node {
    /// Reads a tree from its values: a list is a choice, except where a single value is itself a list.
    pub(crate) fn read(value: Value) -> Self {
        Self::read_named(value, "", false)
    }

    fn read_named(value: Value, name: &str, in_protocol: bool) -> Self {
        match value {
            Value::Object(table) => {
                let in_protocol = in_protocol || name == "protocol";
                let read = |(name, value): (String, Value)| {
                    let node = Self::read_named(value, &name, in_protocol);
                    (name, node)
                };
                Self::Table(table.into_iter().map(read).collect())
            }
            Value::Array(options) if depth(&options) > own_depth(name, in_protocol) => {
                Self::Choice(options.into_iter().map(|option| Self::read_named(option, name, in_protocol)).collect())
            }
            value => Self::Leaf(value),
        }
    }

    /// Number of variants; none where it does not fit 64 bits.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::Leaf(_) => Some(1),
            Self::Table(table) => table.values().try_fold(1_u64, |count, node| count.checked_mul(node.count()?)),
            Self::Choice(options) => options.iter().try_fold(0_u64, |count, node| count.checked_add(node.count()?)),
        }
    }

    /// Variant `index`, from 0; none past the last.
    pub(crate) fn nth(&self, mut index: u64) -> Option<Value> {
        match self {
            Self::Leaf(value) => (index == 0).then(|| value.clone()),
            Self::Table(table) => {
                let mut chosen = Map::new();
                for (name, node) in table.iter().rev() {
                    let count = node.count()?;
                    chosen.insert(name.clone(), node.nth(index.checked_rem(count)?)?);
                    index /= count;
                }
                (index == 0).then_some(Value::Object(chosen))
            }
            Self::Choice(options) => {
                for option in options {
                    let count = option.count()?;
                    if index < count {
                        return option.nth(index);
                    }
                    index -= count;
                }
                None
            }
        }
    }

    /// The settings that have more than one variant, by their path, with the number of variants.
    pub(crate) fn axes(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        self.collect_axes("", &mut found);
        found
    }

    fn collect_axes(&self, path: &str, found: &mut Vec<(String, u64)>) {
        match self {
            Self::Leaf(_) => {}
            Self::Table(table) => {
                for (name, node) in table {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    node.collect_axes(&path, found);
                }
            }
            Self::Choice(_) => {
                let path = if path.is_empty() { "cell" } else { path };
                found.push((path.to_owned(), self.count().unwrap_or(u64::MAX)));
            }
        }
    }

    /// Whether a choice without options, which leaves no variant, is anywhere; its path.
    pub(crate) fn empty_choice(&self) -> Option<String> {
        match self {
            Self::Leaf(_) => None,
            Self::Table(table) => table.iter().find_map(|(name, node)| {
                let inner = node.empty_choice()?;
                Some(if inner.is_empty() { name.clone() } else { format!("{name}.{inner}") })
            }),
            Self::Choice(options) if options.is_empty() => Some(String::new()),
            Self::Choice(options) => options.iter().find_map(Self::empty_choice),
        }
    }
}

/// How deep the lists of one value are nested, by the name of the setting.
fn own_depth(name: &str, in_protocol: bool) -> usize {
    match name {
        "weights" | "rates_per_s" => 1,
        "points" => 2,
        // The lists in a protocol that is given in full are its steps.
        _ if in_protocol => 1,
        _ => 0,
    }
}

/// How deep lists are nested in a list. An empty list is as deep as it looks.
fn depth(options: &[Value]) -> usize {
    1 + options.iter().map(|option| option.as_array().map_or(0, |inner| depth(inner))).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(node: &Node) -> Vec<Value> {
        (0..node.count().unwrap()).map(|index| node.nth(index).unwrap()).collect()
    }

    #[test]
    fn lists_multiply_and_lists_of_tables_add() {
        let node = Node::read(json!({
            "arrivals": [{"kind": "exponential", "mean_ms": [1, 2]}, {"kind": "log-normal"}],
            "tables": [1, 5],
        }));
        assert_eq!(node.count(), Some(6));
        let variants = all(&node);
        assert_eq!(variants[0], json!({"arrivals": {"kind": "exponential", "mean_ms": 1}, "tables": 1}));
        assert_eq!(variants[1], json!({"arrivals": {"kind": "exponential", "mean_ms": 1}, "tables": 5}));
        assert_eq!(variants[5], json!({"arrivals": {"kind": "log-normal"}, "tables": 5}));
        assert_eq!(node.nth(6), None);
        assert_eq!(node.axes(), [("arrivals".to_owned(), 3), ("tables".to_owned(), 2)]);
    }

    #[test]
    fn a_value_that_is_a_list_is_no_choice_and_a_list_of_them_is() {
        assert_eq!(Node::read(json!({"weights": [1, 2]})).count(), Some(1));
        assert_eq!(Node::read(json!({"weights": [[1, 2], [3, 4]]})).count(), Some(2));
        assert_eq!(Node::read(json!({"points": [[0, 1], [1, 9]]})).count(), Some(1));
        assert_eq!(Node::read(json!({"points": [[[0, 1], [1, 9]], [[0, 1], [1, 8]]]})).count(), Some(2));
    }

    #[test]
    fn a_billion_is_counted_and_more_than_64_bits_is_none() {
        let values: Vec<u32> = (0..1_000).collect();
        let node = Node::read(json!({"a": values, "b": values, "c": values}));
        assert_eq!(node.count(), Some(1_000_000_000));
        assert_eq!(node.nth(999_999_999), Some(json!({"a": 999, "b": 999, "c": 999})));
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let table: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!(values))).collect();
        assert_eq!(Node::read(table.into()).count(), None);
    }

    #[test]
    fn an_empty_list_is_found() {
        assert_eq!(Node::read(json!({"a": {"b": []}})).empty_choice().as_deref(), Some("a.b"));
        assert_eq!(Node::read(json!({"a": [1]})).empty_choice(), None);
    }
}
