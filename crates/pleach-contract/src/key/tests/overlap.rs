use proptest::prelude::*;

use super::given::{grammar, values_of};
use crate::key::{Grammar, Kind, overlaps};

#[test]
fn keyspaces_that_could_hold_one_key_are_found_with_that_key() {
    for (one, two, key) in [
        ("t.{tenant}.x", "t.{who:ulid}.x", Some("t.00000000000000000000000000.x")),
        ("t.{tenant}.case.{n:uint}", "t.{tenant}.task.{n:uint}", None),
        ("{n:uint(8)}", "{day:date}", Some("00000101")),
        ("{n:int(7)}", "{day:date}", Some("00000101")),
        ("{h:hash(4)}", "{day:date}", Some("00000101")),
        ("{h:hash(13)}", "{u:ulid}", Some("00000000000000000000000000")),
        ("{n:uint(8)}", "{n:uint(7)}", None),
        ("{a:time(3)}", "{a:time(6)}", None),
        ("{a:slug}", "{a:uuid}", None),
        ("{a:token}", "{a:uuid}", Some("00000000-0000-0000-0000-000000000000")),
        ("{a:bytes}", "{a:time(0)}", Some("00000101T000000Z")),
        ("{a:bytes}", "{a:time(9)}", None),
        ("{a:bytes}", "{a:slug(1)}", None),
        ("{s:open|closed}", "{s:shut|open}", Some("open")),
        ("{s:open|closed}", "{s:slug(3)}", None),
        ("x.{rest...}", "x", Some("x")),
        ("x.{rest...}", "x.{n:uuid}.y", Some("x.00000000-0000-0000-0000-000000000000.y")),
        ("x.{rest...(5)}", "x.{n:uuid}.y", None),
        ("x.{rest...(3)}", "x.{a}.{b}.{rest...}", Some("x.a.a")),
        ("x.{rest...(2)}", "x.{a}.{b}.{rest...}", None),
        ("x.{rest...}", "y.{rest...}", None),
        ("{a:token}", "{a:_|_k}", Some("_")),
    ] {
        let (one, two) = (grammar(one), grammar(two));
        assert_eq!(one.overlap(&two).map(|key| key.to_string()).as_deref(), key, "{one} {two}");
        assert_eq!(two.overlap(&one).is_some(), key.is_some(), "{one} {two}");
    }
}

#[test]
fn every_pair_of_keyspaces_is_compared() {
    let (a, b, c) = (grammar("x.{a}"), grammar("y.{a}"), grammar("{a}.z"));
    let found = overlaps([("a", &a), ("b", &b), ("c", &c)]);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "the keyspaces a and c could both hold the key x.z",
            "the keyspaces b and c could both hold the key y.z"
        ]
    );
}

/// Types whose tokens are so short that all of them can be tried.
const SMALL: [&str; 16] = [
    "slug(1)", "slug(2)", "slug(3)", "token(1)", "token(2)", "token(3)", "bytes(1)", "bytes(2)", "uint(1)",
    "uint(2)", "uint(3)", "int(1)", "int(2)", "hash(1)", "a|00|_kv", "b|-1|0",
];

/// All tokens of one to three bytes, of which types of this size take some.
fn tokens() -> Vec<String> {
    let bytes: Vec<char> = (' '..='~').filter(|c| c.is_ascii_alphanumeric() || "-/_=".contains(*c)).collect();
    let mut all: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    for length in 1..3 {
        let shorter: Vec<String> = all.iter().filter(|token| token.len() == length).cloned().collect();
        all.extend(shorter.iter().flat_map(|token| bytes.iter().map(move |byte| format!("{token}{byte}"))));
    }
    all
}

#[test]
fn small_segments_overlap_exactly_if_some_token_is_in_both() {
    let tokens = tokens();
    let sets: Vec<(Grammar, Vec<bool>)> = SMALL
        .iter()
        .map(|kind| {
            let grammar = grammar(&format!("x.{{v:{kind}}}"));
            let kind = grammar.segments()[1].kind();
            let taken = tokens.iter().map(|token| kind.read(token).is_some()).collect();
            (grammar, taken)
        })
        .collect();
    for (one, ones) in &sets {
        for (two, twos) in &sets {
            let meet = ones.iter().zip(twos).any(|(one, two)| *one && *two);
            assert_eq!(one.overlap(two).is_some(), meet, "{one} {two}");
        }
    }
}

/// Whole small grammars against all their keys of up to four tokens of a small alphabet.
const PIECES: [&str; 8] =
    ["a", "b", "{X:slug(1)}", "{X:token(1)}", "{X:a|c|-}", "{X:uint(1)}", "{X:bytes(1)}", "{X:b|00}"];

fn small_grammars() -> impl Strategy<Value = Grammar> {
    let piece = prop::sample::select(PIECES.to_vec());
    let end = prop::sample::select(vec!["", "", ".{rest...(1)}", ".{rest...(3)}", ".{rest...(9)}"]);
    (prop::collection::vec(piece, 1..4), end).prop_filter_map("not a grammar", |(pieces, end)| {
        let named: Vec<String> = pieces
            .iter()
            .enumerate()
            .map(|(index, piece)| piece.replace('X', &format!("s{index}")))
            .collect();
        Grammar::parse(format!("{}{end}", named.join("."))).ok()
    })
}

/// Whether some key of up to four of these tokens is in both. One of each class that the pieces tell apart is enough.
fn meet(one: &Grammar, two: &Grammar) -> bool {
    let alphabet = ["a", "b", "c", "-", "0", "00", "d", "/"];
    let mut keys: Vec<String> = alphabet.iter().map(ToString::to_string).collect();
    for _ in 0..4 {
        if keys.iter().any(|key| one.has(key) && two.has(key)) {
            return true;
        }
        keys =
            keys.iter().flat_map(|key| alphabet.iter().map(move |token| format!("{key}.{token}"))).collect();
    }
    false
}

/// Values of types that are too long to try all of.
const LONG: [&str; 12] = [
    "ulid", "uuid", "date", "time(0)", "time(3)", "time", "hash(13)", "hash(4)", "uint(8)", "uint", "int(7)",
    "bytes",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn small_grammars_overlap_exactly_if_some_key_is_in_both(one in small_grammars(), two in small_grammars()) {
        let found = one.overlap(&two);
        prop_assert_eq!(found.is_some(), meet(&one, &two), "{} {} {:?}", one, two, found);
        if let Some(key) = found {
            prop_assert!(one.has(key.as_str()) && two.has(key.as_str()), "{}", key);
        }
    }

    #[test]
    fn a_value_of_both_of_two_long_types_is_not_missed(
        (one, two, value) in (prop::sample::select(LONG.to_vec()), prop::sample::select(LONG.to_vec()))
            .prop_flat_map(|(one, two)| {
                let kind: Kind = grammar(&format!("{{v:{one}}}")).segments()[0].kind().clone();
                (Just(one), Just(two), values_of(&kind))
            })
    ) {
        let (one, two) = (grammar(&format!("{{v:{one}}}")), grammar(&format!("{{v:{two}}}")));
        let key = one.build(&[value]).unwrap();
        if two.has(key.as_str()) {
            prop_assert!(one.overlap(&two).is_some(), "{} {} {}", one, two, key);
        }
    }
}
