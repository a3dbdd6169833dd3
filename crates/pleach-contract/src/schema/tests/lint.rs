//! What is surely a mistake is told, and nothing else is.

use serde_json::{Value, json};

use super::super::{Code, warnings};
use super::code;

/// The codes, places and fixes of the warnings about a schema that compiles.
fn found(schema: &Value) -> Vec<(Code, String, String)> {
    super::compiled(schema.clone());
    warnings(schema).into_iter().map(|problem| (problem.code, problem.path, problem.fix)).collect()
}

#[track_caller]
fn check(schema: Value, code: Code, path: &str, fix: &str) {
    let found = found(&schema);
    let told: Vec<_> = found.iter().map(|(code, path, fix)| (*code, path.as_str(), fix.as_str())).collect();
    let is_told =
        matches!(told.as_slice(), [(one, at, what)] if *one == code && *at == path && what.contains(fix));
    assert!(is_told, "{schema}: {told:?}");
}

#[test]
fn a_misspelt_keyword_is_told_at_any_depth() {
    for (word, meant) in [
        ("requierd", "required"),
        ("propertes", "properties"),
        ("additionalproperties", "additionalProperties"),
        ("Type", "type"),
        ("itmes", "items"),
        ("minLenght", "minLength"),
        ("patern", "pattern"),
    ] {
        let fix = format!("`{meant}`");
        check(json!({word: true}), Code::SchemaKeyword, &format!("/{word}"), &fix);
        let path = format!("/$defs/a/items/anyOf/1/{word}");
        check(
            json!({"$defs": {"a": {"items": {"anyOf": [true, {word: 1}]}}}}),
            Code::SchemaKeyword,
            &path,
            &fix,
        );
    }
}

#[test]
fn words_that_are_no_keywords_by_intent_are_not_told() {
    let names = json!({"requierd": {"type": "string"}, "typ": true, "format": {"const": {"propertes": 1}}});
    for schema in [
        json!({"properties": names, "required": ["requierd"]}),
        json!({"x-required": 1, "id": 1, "note": "", "unit": "m", "label": "", "order": 2, "tags": [], "widget": {}}),
        json!({"default": {"requierd": 1}, "examples": [{"propertes": 1}], "enum": [{"itmes": 1}, 2]}),
        json!({"dependentSchemas": {"itmes": true}, "patternProperties": {"patern": true}}),
    ] {
        assert_eq!(found(&schema), [], "{schema}");
    }
}

#[test]
fn an_unknown_format_is_told_with_the_one_that_was_meant() {
    check(json!({"format": "emial"}), Code::SchemaFormat, "/format", "`email`");
    check(json!({"items": {"format": "datetime"}}), Code::SchemaFormat, "/items/format", "`date-time`");
    check(json!({"format": "telephone number"}), Code::SchemaFormat, "/format", "`pattern`");
    for format in ["date-time", "uuid", "int64", "uint32", "double", "password"] {
        assert_eq!(found(&json!({"format": format})), []);
    }
}

#[test]
fn bounds_that_nothing_lies_between_are_told() {
    for (schema, path) in [
        (json!({"minimum": 5, "maximum": 4}), "/minimum"),
        (json!({"minimum": 5, "exclusiveMaximum": 5}), "/minimum"),
        (json!({"exclusiveMinimum": 5, "maximum": 5}), "/exclusiveMinimum"),
        (json!({"exclusiveMinimum": 0.5, "exclusiveMaximum": 0.5}), "/exclusiveMinimum"),
        (json!({"minimum": 9_007_199_254_740_993_u64, "maximum": 9_007_199_254_740_992_u64}), "/minimum"),
        (json!({"minLength": 2, "maxLength": 1}), "/minLength"),
        (json!({"minItems": 2, "maxItems": 1}), "/minItems"),
        (json!({"minProperties": 2, "maxProperties": 1}), "/minProperties"),
        (json!({"contains": true, "minContains": 2, "maxContains": 1}), "/minContains"),
        (json!({"required": ["a", "b"], "maxProperties": 1}), "/maxProperties"),
    ] {
        check(schema, Code::SchemaImpossible, path, "");
    }
    for schema in [
        json!({"minimum": 5, "maximum": 5, "minLength": 0, "maxLength": 0, "minItems": 1, "maxItems": 1}),
        json!({"exclusiveMinimum": 5, "exclusiveMaximum": 5.5, "required": ["a"], "maxProperties": 1}),
    ] {
        assert_eq!(found(&schema), [], "{schema}");
    }
}

#[test]
fn choices_that_nothing_can_be_are_told() {
    check(json!({"enum": []}), Code::SchemaImpossible, "/enum", "");
    check(json!({"const": 1, "enum": [2, 3]}), Code::SchemaImpossible, "/const", "");
    check(json!({"const": "1", "type": "integer"}), Code::SchemaImpossible, "/const", "");
    check(json!({"enum": ["a", null], "type": "string"}), Code::SchemaImpossible, "/enum/1", "`type`");
    for schema in [
        json!({"const": 1.0, "enum": [1, 2], "type": "integer"}),
        json!({"enum": ["a", null], "type": ["string", "null"]}),
        json!({"enum": [1.5], "type": "number"}),
    ] {
        assert_eq!(found(&schema), [], "{schema}");
    }
}

#[test]
fn a_required_field_that_is_not_allowed_is_told() {
    let closed =
        json!({"properties": {"name": true}, "required": ["name", "nmae"], "additionalProperties": false});
    check(closed, Code::SchemaImpossible, "/required/1", "`name`");
    check(json!({"properties": {"a": false}, "required": ["a"]}), Code::SchemaImpossible, "/required/0", "");
    for schema in [
        json!({"properties": {"name": true}, "required": ["other"]}),
        json!({"patternProperties": {"^x": true}, "required": ["xa"], "additionalProperties": false}),
    ] {
        assert_eq!(found(&schema), [], "{schema}");
    }
}

#[test]
fn a_syntax_error_in_a_pattern_is_called_that_with_its_place() {
    let told = |schema: Value| {
        let problems = crate::CompiledSchema::compile(&schema).unwrap_err();
        let first = problems.list()[0].clone();
        (first.code, first.path, first.message)
    };
    let (code_, path, message) = told(json!({"properties": {"a": {"pattern": "^[a-z$"}}}));
    assert_eq!((code_, path.as_str()), (Code::PatternSyntax, "/properties/a/pattern"));
    assert_eq!(message, "the pattern has a syntax error at character 2: unclosed character class");
    let (code_, path, message) = told(json!({"patternProperties": {"a(b": true}}));
    assert_eq!((code_, path.as_str()), (Code::PatternSyntax, "/patternProperties/a(b"));
    assert_eq!(message, "the pattern has a syntax error at character 2: unclosed group");
    assert_eq!(code(&json!({"pattern": "*a"})).0, Code::PatternSyntax);
    // These are in order, and cannot be matched in linear time.
    for pattern in ["(?=a)b", "(a)\\1"] {
        assert_eq!(code(&json!({"pattern": pattern})).0, Code::SchemaPattern, "{pattern}");
    }
}
