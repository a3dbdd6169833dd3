use super::names::{Names, pascal, snake};
use super::shape::Shape;
use super::{RustOptions, raw, rust_module};
use crate::{Contract, Notation};
use serde_json::json;

#[test]
fn names_are_spelled_as_the_language_does() {
    for (text, typed, field) in [
        ("case", "Case", "case"),
        ("UNDER_REVIEW", "UnderReview", "under_review"),
        ("dueAt", "DueAt", "due_at"),
        ("HTTPServer", "HttpServer", "http_server"),
        ("a-b c", "ABC", "a_b_c"),
        ("2nd", "N2nd", "n2nd"),
        ("", "Unnamed", "unnamed"),
        ("ж", "Unnamed", "unnamed"),
        ("Self", "SelfValue", "self"),
    ] {
        assert_eq!((pascal(text).as_str(), snake(text).as_str()), (typed, field), "{text:?}");
    }
}

#[test]
fn names_that_are_taken_or_keywords_are_changed() {
    let mut names = Names::with(&["Option"]);
    let taken = ["Option", "x", "x", "type", "self", "type"].map(|name| names.take(name.into()));
    assert_eq!(taken, ["Option2", "x", "x2", "r#type", "self_value", "type2"]);
}

#[test]
fn a_shape_takes_all_that_its_schema_takes() {
    let shape = |schema: serde_json::Value| format!("{:?}", Shape::of(&schema));
    for (schema, expected) in [
        (json!(true), "Any"),
        (json!({}), "Any"),
        (json!({"properties": {"a": {}}}), "Any"),
        (json!({"type": ["string", "integer"]}), "Any"),
        (json!({"type": ["null", "string"]}), "Nullable(Text)"),
        (json!({"type": "integer", "minimum": 0}), "Integer { signed: false }"),
        (json!({"type": "integer", "minimum": -1}), "Integer { signed: true }"),
        (json!({"enum": ["a", "b", "a"]}), r#"Choice(["a", "b"])"#),
        (json!({"enum": ["a", null]}), r#"Nullable(Choice(["a"]))"#),
        (json!({"enum": ["a", 1]}), "Any"),
        (json!({"enum": [1, 2], "type": "integer"}), "Integer { signed: true }"),
        (json!({"type": "object"}), "Object"),
        (json!({"type": "array", "items": [{}]}), "List(Bool(true))"),
        (json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}), "Nullable(Bool)"),
        (json!({"oneOf": [{"type": "string"}, {"type": "boolean"}]}), "Any"),
        (json!({"$ref": "#/$defs/a%20b"}), r#"Reference("/$defs/a b")"#),
        (json!({"$ref": "other.json"}), "Any"),
    ] {
        assert_eq!(shape(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn raw_strings_hold_any_text() {
    assert_eq!(raw("plain"), "r\"plain\"");
    assert_eq!(raw(r#"a "b" c"#), r##"r#"a "b" c"#"##);
    assert_eq!(raw("\"##"), "r###\"\"##\"###");
}

#[test]
fn the_same_contract_gives_the_same_code() {
    let text = include_bytes!("../../testdata/awkward.yaml");
    let contract = Contract::parse(text, Notation::Yaml).unwrap().contract;
    let code = rust_module(&contract, &RustOptions::default());
    assert_eq!(code, rust_module(&contract, &RustOptions::default()));
    assert!(code.contains("use pleach::stores as stores;"));
    for line in
        ["pub struct Option2 {", "pub r#type: String,", "pub struct Tree {", "left: Option<Box<Tree>>,"]
    {
        assert!(code.contains(line), "{line} is not in\n{code}");
    }
}

#[test]
fn prose_cannot_get_out_of_its_comment() {
    let text = include_str!("../../testdata/awkward.yaml");
    let text = text.replace("Named like a keyword", "\"*/ }\\nfn evil() {}\\r// \"");
    let contract = Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract;
    let code = rust_module(&contract, &RustOptions::default());
    let evil = |line: &&str| line.contains("evil") && !line.trim_start().starts_with("///");
    assert_eq!(code.lines().filter(evil).filter(|line| !line.contains("CONTRACT")).count(), 0, "{code}");
}
