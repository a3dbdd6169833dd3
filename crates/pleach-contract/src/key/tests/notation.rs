use proptest::prelude::*;

use super::given::{grammar, grammars};
use crate::key::{Code, Grammar, NAME_BYTES_MAX, SEGMENTS_MAX, VARIANTS_MAX};

/// The codes and places of everything wrong with a text.
fn wrong(text: &str) -> Vec<(Code, usize)> {
    let error = Grammar::parse(text).unwrap_err();
    error.problems.iter().map(|problem| (problem.code, problem.at)).collect()
}

#[test]
fn a_grammar_is_written_in_one_way() {
    for (text, canonical) in [
        ("t.{tenant:slug}.case.{case:ulid}", "t.{tenant}.case.{case:ulid}"),
        ("{a:slug(64)}.{b:token(64)}.{c:bytes(64)}", "{a}.{b:token}.{c:bytes}"),
        ("{a:uint(20)}.{b:int(19)}.{c:time(9)}.{d:hash(32)}", "{a:uint}.{b:int}.{c:time}.{d:hash}"),
        ("x.{status:open|closed}.{rest...(256)}", "x.{status:open|closed}.{rest...}"),
        ("a-b/c=_.{x:slug(3)}.{rest...(9)}", "a-b/c=_.{x:slug(3)}.{rest...(9)}"),
    ] {
        assert_eq!(grammar(text).as_str(), canonical);
        assert_eq!(grammar(canonical), grammar(text));
    }
}

#[test]
fn every_problem_is_found_at_once() {
    assert_eq!(
        wrong("t*.{tenant}..{tenant:ulid}.{x:string}.a{b}.{n:int(99)}.{s:a||b}.{rest...}.end."),
        [
            (Code::GrammarCharacter, 1),
            (Code::GrammarToken, 12),
            (Code::GrammarNameTwice, 14),
            (Code::GrammarType, 30),
            (Code::GrammarMixed, 38),
            (Code::GrammarLimit, 49),
            (Code::GrammarEnum, 60),
            (Code::GrammarRest, 64),
            (Code::GrammarToken, 78),
        ]
    );
}

#[test]
fn each_mistake_has_its_code_and_place() {
    let (long_name, many) = ("n".repeat(NAME_BYTES_MAX + 1), "a.".repeat(SEGMENTS_MAX) + "a");
    let variants: Vec<String> = (0..=VARIANTS_MAX).map(|index| format!("v{index}")).collect();
    for (text, code, at) in [
        ("", Code::GrammarEmpty, 0),
        (&*"x".repeat(4097), Code::GrammarLong, 4096),
        (&*many, Code::GrammarSegments, 64),
        (".a", Code::GrammarToken, 0),
        ("a b", Code::GrammarCharacter, 1),
        ("a.é", Code::GrammarCharacter, 2),
        ("a.{b", Code::GrammarBrace, 2),
        ("a.b}", Code::GrammarBrace, 3),
        ("a.{{b}}", Code::GrammarBrace, 2),
        ("a.}{", Code::GrammarBrace, 2),
        ("a.{b}{c}", Code::GrammarMixed, 2),
        ("a.x-{c}", Code::GrammarMixed, 2),
        ("a.{}", Code::GrammarName, 3),
        ("a.{:ulid}", Code::GrammarName, 3),
        ("a.{9x}", Code::GrammarName, 3),
        ("a.{x y}", Code::GrammarName, 4),
        ("a.{x(9)}", Code::GrammarName, 4),
        (&*format!("{{{long_name}}}"), Code::GrammarName, 1),
        ("{a}.{a}", Code::GrammarNameTwice, 5),
        ("{a:}", Code::GrammarType, 3),
        ("{a:text}", Code::GrammarType, 3),
        ("{a:slug(0)}", Code::GrammarLimit, 7),
        ("{a:slug(03)}", Code::GrammarLimit, 7),
        ("{a:slug(}", Code::GrammarLimit, 7),
        ("{a:slug(1025)}", Code::GrammarLimit, 7),
        ("{a:slug(99999999999999999999)}", Code::GrammarLimit, 7),
        ("{a:time(10)}", Code::GrammarLimit, 7),
        ("{a:ulid(26)}", Code::GrammarLimit, 7),
        ("x.{a...(0)}", Code::GrammarLimit, 7),
        ("{a:x|y|x}", Code::GrammarEnum, 7),
        ("{a:x|y z}", Code::GrammarEnum, 5),
        (
            &*format!("{{a:{}}}", variants.join("|")),
            Code::GrammarEnum,
            3 + variants[..64].join("|").len() + 1,
        ),
        ("{a:open|open-late}", Code::GrammarEnumOrder, 8),
        ("{a:open-late|open}", Code::GrammarEnumOrder, 13),
        ("{a...}", Code::GrammarRest, 0),
        ("x.{a...}.y", Code::GrammarRest, 2),
        ("x.{a...:slug}", Code::GrammarRest, 7),
        ("x.{t:token}.{a...}", Code::GrammarRest, 12),
        ("_kv.{a}", Code::GrammarReserved, 0),
        ("{a:x|_kvx}.y", Code::GrammarReserved, 0),
        ("x.{a:slug(1000)}.{b:slug(30)}", Code::GrammarKeyLong, 2),
    ] {
        assert_eq!(wrong(text), [(code, at)], "{text}");
    }
    assert!(Grammar::parse("x._kv.{a:_kv|b}").is_ok());
}

#[test]
fn a_key_that_could_be_too_long_is_refused_with_the_arithmetic() {
    let error = Grammar::parse("x.{a:slug(1000)}.{b:slug(30)}").unwrap_err();
    assert_eq!(
        error.problems[0].message,
        "the longest key would have 1033 bytes, more than 1024: 1 for x + 1000 for {a:slug(1000)} + 30 for \
         {b:slug(30)}, and 2 for the dots"
    );
    assert_eq!(grammar("x.{a:slug(991)}.{b:slug(30)}").key_bytes_max(), 1024);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reading_any_text_as_a_grammar_never_panics(text in "\\PC{0,60}") {
        if let Err(error) = Grammar::parse(&text) {
            prop_assert!(!error.problems.is_empty());
            for problem in error.problems {
                prop_assert!(text.is_char_boundary(problem.at), "{}", problem);
            }
        }
    }

    /// Texts that look like grammars come further than any text does.
    #[test]
    fn reading_what_looks_like_a_grammar_never_panics(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", ".", "...", ":", "|", "(", ")", "9", "a", "tenant", "slug", "ulid", "int", "_kv", "-", "é",
        ]), 0..20)
    ) {
        let text = parts.concat();
        match Grammar::parse(&text) {
            Ok(grammar) => prop_assert_eq!(Grammar::parse(grammar.as_str()).unwrap(), grammar),
            Err(error) => {
                for problem in error.problems {
                    prop_assert!(text.is_char_boundary(problem.at), "{} of {}", problem, text);
                }
            }
        }
    }

    #[test]
    fn a_grammar_is_read_back_from_its_text(grammar in grammars()) {
        prop_assert_eq!(Grammar::parse(grammar.as_str()).unwrap(), grammar);
    }
}
