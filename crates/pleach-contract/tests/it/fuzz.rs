//! Random bytes, documents with random damage and random schemas: whatever comes, it is an answer.
#![allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pleach_contract::key::{AccessPath, Grammar};
use pleach_contract::{CompiledSchema, Contract, Notation, Parsed, Problems, Refused, format_text};
use proptest::prelude::*;
use serde_json::{Value, json};

const CASES: &str = include_str!("../../testdata/cases.yaml");

const NOTATIONS: [Notation; 2] = [Notation::Json, Notation::Yaml];

/// The contract of the tests in both notations.
fn documents() -> &'static [(Vec<u8>, Notation); 2] {
    static DOCUMENTS: OnceLock<[(Vec<u8>, Notation); 2]> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let contract = Contract::parse(CASES.as_bytes(), Notation::Yaml).unwrap().contract;
        let json = format_text(contract.to_value().to_string().as_bytes(), Notation::Json).unwrap();
        [(CASES.into(), Notation::Yaml), (json.into(), Notation::Json)]
    })
}

/// Reads a document, and checks what must be true of every answer.
fn answer(bytes: &[u8], notation: Notation) -> Result<(), TestCaseError> {
    let problems = match Contract::parse(bytes, notation) {
        Ok(Parsed { contract, warnings }) => {
            // What is a contract can be written down, read again, and is the same one.
            let again = Contract::from_value(&contract.to_value()).unwrap().contract;
            prop_assert_eq!(again.digest(), contract.digest());
            prop_assert!(!warnings.has_errors());
            warnings
        }
        Err(problems) => {
            prop_assert!(problems.has_errors(), "{}", problems);
            problems
        }
    };
    are_placed(&problems, bytes)?;
    if let Ok(text) = format_text(bytes, notation) {
        let once = Contract::parse(bytes, notation).map(|parsed| parsed.contract);
        let laid_out = Contract::parse(text.as_bytes(), notation).map(|parsed| parsed.contract);
        prop_assert_eq!(laid_out.ok(), once.ok(), "{}", text);
    }
    Ok(())
}

fn are_placed(problems: &Problems, bytes: &[u8]) -> Result<(), TestCaseError> {
    let lines = bytes.iter().filter(|byte| b"\r\n".contains(byte)).count() + 2;
    for problem in problems.list() {
        prop_assert!(problem.path.is_empty() || problem.path.starts_with('/'), "{:?}", problem);
        prop_assert!(!problem.message.is_empty() && !problem.fix.is_empty(), "{:?}", problem);
        if let Some(position) = problem.position {
            prop_assert!(position.line <= lines && position.column > 0, "{:?}", problem);
        }
    }
    Ok(())
}

/// A change to bytes: where, how many go, and what comes.
type Damage = (prop::sample::Index, usize, Vec<u8>);

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let tokens = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "\n",
        "\n  ",
        "- ",
        "#",
        "&a",
        "*a",
        "!!x",
        "|",
        ">",
        "\\u",
        "null",
        "1e999",
        "-0",
        "true",
        "{schema: Case}",
        "\u{feff}",
        "é",
        "\0",
        "$ref",
        "#/$defs/x",
        "\t",
        "---",
        "...",
        "? ",
    ]);
    let comes = prop_oneof![
        tokens.prop_map(|token| token.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, comes), 1..6)
}

fn damaged(bytes: &[u8], changes: &[Damage]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, length, with) in changes {
        let from = place.index(bytes.len() + 1);
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, with.iter().copied());
    }
    bytes
}

/// Schemas of known keywords with values that mostly belong there.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#/properties/a/items"})),
        Just(json!({"type": "strng"})),
        prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
            .prop_map(|word| json!({"type": word})),
        (any::<i32>(), any::<u8>()).prop_map(|(least, most)| json!({"minimum": least, "maxLength": most})),
        "[a-c(){}0-9*+?|\\\\^$.\\[\\]]{0,8}".prop_map(|pattern| json!({"pattern": pattern})),
        "\\PC{0,6}".prop_map(|format| json!({"format": format, "const": format})),
        any::<f64>().prop_map(|multiple| json!({"multipleOf": multiple})),
    ];
    let one = prop::sample::select(vec![
        "not",
        "items",
        "contains",
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "propertyNames",
        "if",
        "then",
        "else",
        "contentSchema",
        "unknown",
    ]);
    let list = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
    let named = prop::sample::select(vec!["properties", "patternProperties", "$defs", "dependentSchemas"]);
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let schemas = prop::collection::vec(inner.clone(), 1..4);
        let by_name = prop::collection::btree_map("[a-c]{1,2}", inner.clone(), 0..4);
        let by_name = by_name.prop_map(|map| Value::Object(map.into_iter().collect()));
        prop_oneof![
            (one.clone(), inner.clone()).prop_map(|(keyword, schema)| json!({keyword: schema})),
            (list.clone(), schemas).prop_map(|(keyword, schemas)| json!({keyword: schemas})),
            (named.clone(), by_name).prop_map(|(keyword, schemas)| json!({keyword: schemas})),
            (inner.clone(), inner).prop_map(|(one, other)| match (one, other) {
                (Value::Object(mut one), Value::Object(other)) => {
                    one.extend(other);
                    Value::Object(one)
                }
                (one, _) => one,
            }),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for notation in NOTATIONS {
            answer(&bytes, notation)?;
        }
    }

    #[test]
    fn a_damaged_document_has_an_answer(changes in damage()) {
        for (document, notation) in documents() {
            answer(&damaged(document, &changes), *notation)?;
        }
    }

    #[test]
    fn a_document_that_ends_early_has_an_answer(place in any::<prop::sample::Index>()) {
        for (document, notation) in documents() {
            answer(&document[..place.index(document.len())], *notation)?;
        }
    }

    #[test]
    fn any_schema_is_compiled_or_refused_and_any_value_judged_soon(schema in schemas(), value in values()) {
        let began = Instant::now();
        match CompiledSchema::compile(&schema) {
            Ok(compiled) => match compiled.validate(&value) {
                Ok(()) | Err(Refused::TooDeep { .. } | Refused::TooMuchWork { .. }) => {}
                Err(Refused::Violations { violations, .. }) => prop_assert!(!violations.is_empty()),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            },
            Err(problems) => prop_assert!(problems.has_errors()),
        }
        prop_assert!(began.elapsed() < Duration::from_secs(120), "{}", schema);
    }

    #[test]
    fn any_json_is_a_schema_or_refused(value in values()) {
        if let Err(problems) = CompiledSchema::compile(&value) {
            prop_assert!(problems.has_errors());
        }
    }

    #[test]
    fn a_damaged_grammar_or_access_path_has_an_answer(changes in damage()) {
        for text in ["t.{tenant}.case.{case:ulid}.event.{at:time(3)}.{n:a|b}.{rest...}", "tenant,case,at..", "*"] {
            let bytes = damaged(text.as_bytes(), &changes);
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(grammar) = Grammar::parse(&text) {
                prop_assert_eq!(&Grammar::parse(grammar.as_str()).unwrap(), &grammar);
                let _ = grammar.explain(&text);
            }
            if let Ok(path) = AccessPath::parse(&text) {
                let grammar = Grammar::parse("t.{tenant}.case.{case:ulid}.event.{at:time}").unwrap();
                let _ = grammar.access(&path);
            }
        }
    }
}
