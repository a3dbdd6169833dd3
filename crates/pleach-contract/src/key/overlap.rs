use std::fmt;

use pleach_engine::Key;

use super::problem::{Code, Problem};
use super::{Date, Grammar, Kind, Segment, Time};

/// Two keyspaces that could hold the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The name of the one.
    pub first: String,
    /// The name of the other.
    pub second: String,
    /// A key that both would take.
    pub key: Key,
}

impl Overlap {
    /// As a problem: what is wrong and what to do.
    pub fn problem(&self) -> Problem {
        let help = "give one of them a literal that the other has not in that place, such as a word for what it holds";
        Problem::new(Code::KeyspaceOverlap, 0, self.to_string(), help)
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keyspaces {} and {} could both hold the key {}", self.first, self.second, self.key)
    }
}

/// Every pair of these keyspaces, each with its name, that could hold the same key.
pub fn overlaps<'a>(keyspaces: impl IntoIterator<Item = (&'a str, &'a Grammar)>) -> Vec<Overlap> {
    let keyspaces: Vec<(&str, &Grammar)> = keyspaces.into_iter().collect();
    let mut found = Vec::new();
    for (index, (first, grammar)) in keyspaces.iter().enumerate() {
        for (second, other) in &keyspaces[index + 1..] {
            if let Some(key) = grammar.overlap(other) {
                found.push(Overlap { first: (*first).to_owned(), second: (*second).to_owned(), key });
            }
        }
    }
    found
}

impl Grammar {
    /// A key that both grammars have, or None if there is none. The answer is exact.
    ///
    /// Segments are compared in pairs: keys are equal if all their tokens are. What one has more, the rest of the
    /// other must take.
    pub fn overlap(&self, other: &Self) -> Option<Key> {
        let (mine, my_rest) = fixed(self);
        let (theirs, their_rest) = fixed(other);
        let common = mine.len().min(theirs.len());
        let mut tokens = Vec::new();
        for (one, two) in mine.iter().zip(theirs) {
            tokens.push(shared(one.kind(), two.kind())?);
        }
        let (surplus, rest) =
            if mine.len() > common { (&mine[common..], their_rest) } else { (&theirs[common..], my_rest) };
        if !surplus.is_empty() {
            // The shortest tokens: if the rest does not take those, it takes none.
            let shortest: Vec<String> = surplus
                .iter()
                .filter_map(|segment| examples(segment.kind()).into_iter().min_by_key(String::len))
                .collect();
            rest?.read(&shortest.join("."))?;
            tokens.extend(shortest);
        }
        Key::parse(tokens.join(".")).ok()
    }
}

/// The segments but the rest, and the rest.
fn fixed(grammar: &Grammar) -> (&[Segment], Option<&Kind>) {
    match grammar.segments().split_last() {
        Some((last, before)) if matches!(last.kind(), Kind::Rest { .. }) => (before, Some(last.kind())),
        _ => (grammar.segments(), None),
    }
}

/// A token that both take.
///
/// It is enough to try the examples of both. Literals and enums are all among them. Types of one width only differ
/// in which digits they take in which place, and all that share a token share the smallest of one of them. Of those
/// of several widths, `00` is in all that have two bytes, and whether a token of one width is a slug, a token or bytes
/// depends on its width, its alphabet and its last digit, of which the smallest has the most welcome.
///
/// None of them is reserved: a grammar cannot begin with a literal or an enum that is.
fn shared(one: &Kind, two: &Kind) -> Option<String> {
    let fits = |token: &String| one.read(token).is_some() && two.read(token).is_some();
    examples(one).into_iter().chain(examples(two)).find(fits)
}

/// Tokens of this type, the shortest among them.
fn examples(kind: &Kind) -> Vec<String> {
    let zeros = |count: usize| vec!["0".repeat(count)];
    let mut text = String::new();
    match kind {
        Kind::Literal(literal) => vec![literal.to_string()],
        Kind::Enum(variants) => variants.iter().map(ToString::to_string).collect(),
        Kind::Slug { .. } | Kind::Token { .. } => vec!["a".into()],
        Kind::Bytes { .. } => zeros(2),
        Kind::Ulid | Kind::Uint { .. } | Kind::Int { .. } | Kind::Hash { .. } => zeros(kind.key_bytes_max()),
        Kind::Uuid => vec!["00000000-0000-0000-0000-000000000000".into()],
        Kind::Date => {
            Date::MIN.push(&mut text);
            vec![text]
        }
        Kind::Time { fraction_digits } => {
            let first = Date::MIN.first_second();
            first.into_iter().for_each(|time: Time| time.push(&mut text, *fraction_digits));
            vec![text]
        }
        Kind::Rest { .. } => Vec::new(),
    }
}
