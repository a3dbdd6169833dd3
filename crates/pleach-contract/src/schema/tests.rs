#![allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::*;

mod lint;
mod work;

fn compiled(schema: Value) -> CompiledSchema {
    CompiledSchema::compile(&schema).unwrap()
}

fn code(schema: &Value) -> (Code, String) {
    let problems = CompiledSchema::compile(schema).unwrap_err();
    let first = &problems.list()[0];
    (first.code, first.path.clone())
}

fn violations(schema: Value, value: &Value) -> Vec<Violation> {
    match compiled(schema).validate(value) {
        Err(Refused::Violations { violations, .. }) => violations,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_violation_names_both_places_and_says_what_is_wrong() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["name"]});
    let found = violations(schema, &json!({"age": -1}));
    let told: Vec<_> = found.iter().map(|v| (&*v.instance_path, &*v.schema_path, &*v.message)).collect();
    assert_eq!(
        told,
        [
            ("", "/required", "the field `name` is missing"),
            ("/age", "/properties/age/minimum", "this must be at least 0"),
        ]
    );
}

#[test]
fn values_are_not_coerced() {
    assert!(compiled(json!({"type": "string"})).validate(&json!(123)).is_err());
}

#[test]
fn nothing_is_fetched_or_opened() {
    for reference in ["https://example.com/schema.json", "file:///etc/hosts", "other.json", "#anchor", "//x"]
    {
        let schema = json!({"properties": {"a": {"$ref": reference}}});
        assert_eq!(code(&schema), (Code::SchemaReference, "/properties/a/$ref".into()));
    }
    assert_eq!(code(&json!({"$id": "https://example.com/x"})).0, Code::SchemaReference);
    assert_eq!(code(&json!({"$dynamicRef": "#x"})).0, Code::SchemaReference);
    assert_eq!(code(&json!({"$ref": "#/$defs/gone"})).0, Code::SchemaReference);
    // A keyword of older drafts that the validator still follows.
    assert_eq!(code(&json!({"dependencies": {"a": {"$ref": "#/$defs/gone"}}})).0, Code::SchemaReference);
    assert_eq!(code(&json!({"dependencies": {"a": {"$ref": "#"}}})).0, Code::SchemaLoop);
}

#[test]
fn local_references_are_followed() {
    let schema = json!({"$defs": {"a/b": {"type": "string"}}, "items": {"$ref": "#/$defs/a~1b"}});
    let schema = compiled(schema);
    assert!(schema.validate(&json!(["x"])).is_ok());
    assert!(schema.validate(&json!([1])).is_err());
}

#[test]
fn schemas_that_are_none_are_told_with_their_place() {
    assert_eq!(
        code(&json!({"properties": {"a": {"type": "strng"}}})),
        (Code::SchemaInvalid, "/properties/a/type".into())
    );
    assert_eq!(code(&json!({"minLength": -1})), (Code::SchemaInvalid, "/minLength".into()));
    assert_eq!(code(&json!({"$schema": "http://json-schema.org/draft-07/schema#"})).0, Code::SchemaDraft);
    assert!(
        CompiledSchema::compile(&json!({"$schema": "https://json-schema.org/draft/2019-09/schema"})).is_ok()
    );
}

#[test]
fn what_is_wrong_with_a_schema_comes_at_once_and_only_once() {
    let schema = json!({"type": "objct", "minLength": -1, "properties": {"a": {"$ref": "other.json"}}});
    let problems = CompiledSchema::compile(&schema).unwrap_err();
    let mut found: Vec<_> = problems.list().iter().map(|problem| (&*problem.path, &*problem.fix)).collect();
    found.sort_unstable();
    assert_eq!(
        found.iter().map(|(path, _)| *path).collect::<Vec<_>>(),
        ["/minLength", "/properties/a/$ref", "/type"]
    );
    assert_eq!(found[2].1, "did you mean `object`?");
}

#[test]
fn a_loop_without_descent_is_refused_and_recursion_is_not() {
    let schema = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert_eq!(code(&schema).0, Code::SchemaLoop);
    let list = compiled(json!({"properties": {"next": {"$ref": "#"}, "value": {"type": "integer"}}}));
    let mut value = json!({"value": 1});
    for _ in 0..100 {
        value = json!({"value": 1, "next": value});
    }
    assert!(list.validate(&value).is_ok());
    for _ in 0..100 {
        value = json!({"value": 1, "next": value});
    }
    assert_eq!(list.validate(&value), Err(Refused::TooDeep { path: "/next".repeat(VALUE_DEPTH_MAX) }));
}

#[test]
fn references_that_fan_out_are_refused_at_once() {
    let began = Instant::now();
    let mut defs = Map::new();
    for level in 0..64 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    defs.insert("d64".into(), json!({"type": "string"}));
    assert_eq!(code(&json!({"$defs": defs, "$ref": "#/$defs/d0"})).0, Code::SchemaBudget);
    assert!(began.elapsed().as_secs() < 120);
}

#[test]
fn a_value_that_would_take_too_long_is_refused_before_it_is_looked_at() {
    let branch = |kind: &str| json!({"properties": {"kind": {"const": kind}, "next": {"$ref": "#"}}, "required": ["kind"]});
    let schema = compiled(json!({"anyOf": [branch("a"), branch("b"), branch("c")]}));
    let nested =
        |depth: usize| (0..depth).fold(json!({"kind": "c"}), |inner, _| json!({"kind": "c", "next": inner}));
    assert!(schema.validate(&nested(5)).is_ok());
    assert!(matches!(schema.validate(&nested(40)), Err(Refused::TooMuchWork { .. })));
}

#[test]
fn a_deep_chain_of_references_compiles_on_a_small_stack() {
    let mut defs = Map::new();
    for level in 0..SCHEMA_REFERENCES_MAX - 1 {
        defs.insert(
            format!("d{level}"),
            json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", level + 1)}}}),
        );
    }
    defs.insert(format!("d{}", SCHEMA_REFERENCES_MAX - 1), json!({"type": "string"}));
    let schema = json!({"$defs": defs, "$ref": "#/$defs/d0"});
    assert!(CompiledSchema::compile(&schema).is_ok());
    let fan: Map<String, Value> = (0..400)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/d{}", (level + 1) % 400)});
            (format!("d{level}"), json!({"properties": {"a": next, "b": next}}))
        })
        .collect();
    assert!(CompiledSchema::compile(&json!({"$defs": fan, "$ref": "#/$defs/d0"})).is_ok());
}

#[test]
fn catastrophic_patterns_are_harmless_or_refused() {
    let schema = compiled(json!({"pattern": "^(a+)+$"}));
    let began = Instant::now();
    assert!(schema.validate(&json!(format!("{}!", "a".repeat(100_000)))).is_err());
    assert!(began.elapsed().as_secs() < 120);
    assert_eq!(
        code(&json!({"properties": {"a": {"pattern": "(?=a)b"}}})),
        (Code::SchemaPattern, "/properties/a/pattern".into())
    );
    assert_eq!(code(&json!({"pattern": "(a)\\1"})).0, Code::SchemaPattern);
    assert_eq!(code(&json!({"pattern": "((a{1000}){1000}){1000}"})).0, Code::SchemaPattern);
    assert_eq!(code(&json!({"patternProperties": {"(?=a)": true}})).0, Code::SchemaPattern);
}

#[test]
fn a_hundred_thousand_violations_are_bounded() {
    let schema = compiled(json!({"items": {"type": "string"}}));
    let value = Value::from(vec![1; 100_000]);
    let Err(Refused::Violations { violations, more }) = schema.validate(&value) else {
        panic!("it is refused")
    };
    assert_eq!((violations.len(), more), (VIOLATIONS_MAX, true));
    let value = Value::from(vec![1; 2_000_000]);
    let Err(Refused::Violations { violations, more }) = schema.validate(&value) else {
        panic!("it is refused")
    };
    assert_eq!((violations.len(), more), (1, true));
}

#[test]
fn equal_schemas_are_compiled_once_and_shared() {
    let validators = Validators::default();
    let first = validators.get(&json!({"type": "string", "minLength": 1})).unwrap();
    let second = validators.get(&json!({"minLength": 1.0, "type": "string"})).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    let other = validators.get(&json!({"type": "string"})).unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &other));
}
