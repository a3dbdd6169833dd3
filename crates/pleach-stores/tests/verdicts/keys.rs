//! Keys as `docs/keys.md` describes them: a matcher of its own for the types that the generator draws.

use crate::random::Random;

/// The forms of keys that contracts are drawn from.
pub(crate) const GRAMMARS: [&str; 18] = [
    "n.{id}",
    "n.{id}",
    "n.{name}",
    "n.{id:slug(2)}",
    "n.{id:x|y}",
    "n.{id:y|z|zz}",
    "n.{id:z|zz|long}",
    "n.{id:token}",
    "n.{number:uint(2)}",
    "n.{day:date}",
    "n.{id}.{part}",
    "n.{id}.k",
    "n.{rest...}",
    "m.{id}",
    "m.{id:x|y}",
    "m.{number:uint(2)}",
    "m.{id}.{number:uint(2)}",
    "m.x",
];

/// Keys that are written whatever grammar there is, so that contracts meet keys of each other.
pub(crate) const KEYS: [&str; 17] = [
    "n.x",
    "n.x",
    "n.y",
    "n.y",
    "n.z",
    "n.zz",
    "n.long",
    "n.07",
    "n.20260102",
    "n.a-b",
    "n.x.k",
    "n.y.z",
    "m.x",
    "m.y",
    "m.07",
    "m.x.07",
    "other",
];

/// Whether `key` has the form of `grammar`.
pub(crate) fn matches(grammar: &str, key: &str) -> bool {
    let mut tokens = key.split('.');
    for segment in segments(grammar) {
        if segment.ends_with("...}") {
            return tokens.all(|token| !token.is_empty());
        }
        if !tokens.next().is_some_and(|token| fits(segment, token)) {
            return false;
        }
    }
    tokens.next().is_none()
}

/// A key of the form of `grammar`.
pub(crate) fn sample(grammar: &str, random: &mut Random) -> String {
    let mut tokens: Vec<String> = Vec::new();
    for segment in segments(grammar) {
        let candidates = ["x", "y", "z", "zz", "long", "07", "12", "20260102", "a-b", "k"];
        if segment.ends_with("...}") {
            let count = random.below(3);
            tokens.extend((0..count).map(|_| (*random.pick(&candidates[..6])).to_owned()));
            continue;
        }
        let fitting: Vec<&str> = candidates.into_iter().filter(|token| fits(segment, token)).collect();
        tokens.push(random.any(&fitting).map_or_else(|| segment.to_owned(), |token| (*token).to_owned()));
    }
    tokens.join(".")
}

/// The segments of a grammar: dots inside of braces separate none.
fn segments(grammar: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begin, mut is_open) = (0, false);
    for (at, character) in grammar.char_indices() {
        match character {
            '{' => is_open = true,
            '}' => is_open = false,
            '.' if !is_open => {
                found.push(&grammar[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&grammar[begin..]);
    found
}

/// Whether a token is a value of a segment that stands for one token.
fn fits(segment: &str, token: &str) -> bool {
    let Some(inner) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return segment == token;
    };
    let kind = inner.split_once(':').map_or("slug", |(_, kind)| kind);
    let (name, limit) = match kind.strip_suffix(')').and_then(|kind| kind.split_once('(')) {
        Some((name, limit)) => (name, limit.parse().unwrap_or(0)),
        None => (kind, 64),
    };
    let has =
        |allowed: fn(char) -> bool| !token.is_empty() && token.len() <= limit && token.chars().all(allowed);
    match name {
        "slug" => has(|c| c.is_ascii_alphanumeric() || c == '_'),
        "token" => has(|c| c.is_ascii_alphanumeric() || "-/_=".contains(c)),
        "uint" => token.len() == limit && token.chars().all(|c| c.is_ascii_digit()),
        "date" => is_date(token),
        choices => choices.split('|').any(|choice| choice == token),
    }
}

fn is_date(token: &str) -> bool {
    if token.len() != 8 || !token.chars().all(|c| c.is_ascii_digit()) {
        return false;
    }
    let number = |range: std::ops::Range<usize>| token[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(4..6), number(6..8));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

#[test]
fn keys_have_the_form_that_the_reference_describes() {
    let fits = [
        ("n.{id}", "n.x"),
        ("n.{id:slug(2)}", "n.zz"),
        ("n.{id:x|y}", "n.y"),
        ("n.{id:token}", "n.a-b"),
        ("n.{number:uint(2)}", "n.07"),
        ("n.{day:date}", "n.20240229"),
        ("n.{rest...}", "n.x.k"),
        ("m.x", "m.x"),
    ];
    let others = [
        ("n.{id}", "n.a-b"),
        ("n.{id}", "n.x.k"),
        ("n.{id}", "n"),
        ("n.{id:slug(2)}", "n.long"),
        ("n.{id:x|y}", "n.z"),
        ("n.{number:uint(2)}", "n.7"),
        ("n.{day:date}", "n.20230229"),
        ("n.{rest...}", "m.x"),
    ];
    fits.iter().for_each(|(grammar, key)| assert!(matches(grammar, key), "{grammar} {key}"));
    others.iter().for_each(|(grammar, key)| assert!(!matches(grammar, key), "{grammar} {key}"));
    let mut random = Random::new(1);
    for grammar in GRAMMARS {
        let key = sample(grammar, &mut random);
        assert!(matches(grammar, &key), "{grammar} {key}");
    }
}
