use serde_json::{Map, Value};

use super::one_of_many;

/// What comparing an item with others costs: up to fifteen items are compared in pairs, more are hashed.
const UNIQUE_COST: u64 = 16;

/// What a format costs for each byte, next to reading the byte once.
const FORMAT_COST: u64 = 8;

/// What one position of a pattern costs for each byte, next to reading the byte once: a pattern may be in all its positions
/// at the same time.
const POSITION_COST: u64 = 8;

/// What the keywords of one subschema cost, without those of the subschemas in it.
///
/// Comparing a whole value with another one costs as much as that value has places, so it is counted as one evaluation of each
/// of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// For each place.
    pub(super) place: u64,
    /// For each byte of texts and names, in parts of [`super::work::BYTES_PER_UNIT`].
    pub(super) byte: u64,
    /// How many violations there can be at one place.
    pub(super) violations: u64,
}

impl Weight {
    pub(super) fn of(schema: &Map<String, Value>) -> Self {
        let mut weight = Self { place: 1, byte: 1, violations: 1 };
        for (keyword, value) in schema {
            weight.add(keyword, value);
        }
        weight.violations = weight.violations.saturating_add(weight.place);
        weight
    }

    fn add(&mut self, keyword: &str, value: &Value) {
        let (place, byte, violations) = match (keyword, value) {
            ("enum", Value::Array(choices)) => (one_of_many::comparisons(choices), 1, 0),
            ("const", _) => (1, 1, 0),
            ("uniqueItems", Value::Bool(true)) => (UNIQUE_COST, UNIQUE_COST, 0),
            ("required", Value::Array(names)) => (0, 0, count(names.len())),
            ("dependentRequired", Value::Object(lists)) => {
                let names = lists.values().filter_map(Value::as_array).map(Vec::len).sum::<usize>();
                (count(lists.len() + names), 0, count(names))
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => (count(schemas.len()), 0, 0),
            ("format", _) => (0, FORMAT_COST, 0),
            ("pattern", Value::String(pattern)) => (0, matching(pattern), 0),
            // Names are matched again to find those that no pattern has matched.
            ("patternProperties", Value::Object(schemas)) => {
                let bytes = schemas.keys().map(|pattern| matching(pattern));
                (0, bytes.fold(0_u64, u64::saturating_add).saturating_mul(2), 0)
            }
            _ => return,
        };
        self.place = self.place.saturating_add(place);
        self.byte = self.byte.saturating_add(byte);
        self.violations = self.violations.saturating_add(violations);
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What matching a pattern costs for each byte at most.
fn matching(pattern: &str) -> u64 {
    positions(pattern).saturating_mul(POSITION_COST)
}

/// How many positions a pattern has at most: its characters, with those that are repeated a number of times counted as often.
pub(super) fn positions(pattern: &str) -> u64 {
    // The sum of each group that is open, and what the last character or group of each was.
    let mut open = vec![(1_u64, 0_u64)];
    let mut rest = pattern.chars().peekable();
    let add = |open: &mut Vec<(u64, u64)>, atom: u64| {
        if let Some((sum, last)) = open.last_mut() {
            *sum = sum.saturating_add(atom);
            *last = atom;
        }
    };
    while let Some(letter) = rest.next() {
        match letter {
            '(' => open.push((1, 0)),
            ')' if open.len() > 1 => {
                let (sum, _) = open.pop().unwrap_or_default();
                add(&mut open, sum);
            }
            '{' => {
                let bounds: String = std::iter::from_fn(|| rest.next_if(|letter| *letter != '}')).collect();
                rest.next_if_eq(&'}');
                let times = bounds.split(',').filter_map(|bound| bound.trim().parse::<u64>().ok()).max();
                // A brace that repeats nothing is a character as any other.
                let Some((sum, last)) = open.last_mut() else { continue };
                let more = times.map_or(count(bounds.len()), |times| last.saturating_mul(times));
                *sum = sum.saturating_add(more);
                *last = last.saturating_add(more);
            }
            '[' => {
                let mut escaped = false;
                // A class is one position, however many characters it has.
                for inner in rest.by_ref() {
                    match inner {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        ']' => break,
                        _ => {}
                    }
                }
                add(&mut open, 1);
            }
            '\\' => {
                rest.next();
                add(&mut open, 1);
            }
            _ => add(&mut open, 1),
        }
    }
    open.into_iter().fold(0, |all, (sum, _)| all.saturating_add(sum))
}
