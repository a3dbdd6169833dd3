//! Documents, schemas and values that mean harm: each is refused with its code, soon, and without taking all memory.
#![allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]

use std::time::{Duration, Instant};

use pleach_contract::{
    Code, CompiledSchema, Contract, DOCUMENT_NODES_MAX, Notation, PROBLEMS_MAX, Problems, Refused,
    VIOLATIONS_MAX, Validators,
};
use serde_json::{Map, Value, json};

/// Far more than any of it takes, and far less than what has no bounds would.
const SOON: Duration = Duration::from_secs(120);

fn soon<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    let took = began.elapsed();
    assert!(took < SOON, "it took {took:?}");
    result
}

fn codes(problems: &Problems) -> Vec<Code> {
    problems.list().iter().map(|problem| problem.code).collect()
}

/// Checks that a text is refused in both notations, as JSON is YAML.
fn refused(text: &str, code: Code) {
    refused_as(text, Notation::Json, code);
    refused_as(text, Notation::Yaml, code);
}

fn refused_as(text: &str, notation: Notation, code: Code) {
    let problems = soon(|| Contract::parse(text.as_bytes(), notation)).unwrap_err();
    let found = codes(&problems);
    assert!(found.contains(&code), "{notation:?}: {found:?}");
    assert!(found.len() <= PROBLEMS_MAX + 1);
    let told: usize = problems.list().iter().map(|problem| problem.path.len() + problem.message.len()).sum();
    assert!(told < 256 * 1024 * 1024, "{told} bytes of problems");
}

fn refused_value(value: &Value, code: Code) -> Problems {
    let problems = soon(|| Contract::from_value(value)).unwrap_err();
    assert!(codes(&problems).contains(&code), "{problems}");
    problems
}

/// A contract with this schema.
fn with_schema(schema: Value) -> Value {
    json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "N", "description": "N",
        "schemas": {"Note": schema},
        "state": {"notes": {"kind": "map", "schema": {"schema": "Note"}}},
    })
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}))
}

/// What is nested too deep to be dropped like anything else.
struct Deep(Value);

impl Drop for Deep {
    fn drop(&mut self) {
        let mut rest = vec![self.0.take()];
        while let Some(value) = rest.pop() {
            match value {
                Value::Array(items) => rest.extend(items),
                Value::Object(map) => rest.extend(map.into_iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    refused(&with_schema(nested(100)).to_string(), Code::TextDepth);
    refused_as(&"[".repeat(1_000_000), Notation::Json, Code::TextDepth);
    refused_as(&"[".repeat(1_000_000), Notation::Yaml, Code::TextSyntax);
    refused_as(&"{\"a\":".repeat(500_000), Notation::Json, Code::TextDepth);
    refused_as(&"- ".repeat(100_000), Notation::Yaml, Code::TextDepth);
    refused_as(&"? ".repeat(100_000), Notation::Yaml, Code::TextSyntax);
}

#[test]
fn values_have_the_limits_of_texts() {
    let problems = refused_value(&with_schema(nested(100)), Code::TextDepth);
    let path = &problems.list()[0].path;
    assert!(path.starts_with("/schemas/Note/properties/a/properties/a/"), "{path}");
    assert_eq!(problems.list()[0].position, None);
    refused_value(&with_schema(json!({"enum": vec![0; DOCUMENT_NODES_MAX]})), Code::TextNodes);
    let deep = Deep((0..1_000_000).fold(Value::Null, |inner, _| Value::Array(vec![inner])));
    refused_value(&deep.0, Code::TextDepth);
    let problems = soon(|| CompiledSchema::compile(&deep.0)).unwrap_err();
    assert_eq!(codes(&problems), [Code::TextDepth]);
    let problems = soon(|| Validators::default().get(&deep.0)).unwrap_err();
    assert_eq!(codes(&problems), [Code::TextDepth]);
}

#[test]
fn long_names_that_hold_much_are_refused() {
    let name = "n".repeat(2_000_000);
    let many: Map<String, Value> =
        (0..20_000).map(|number| (format!("k{number}"), json!({"key": "k"}))).collect();
    let properties = with_schema(json!({"properties": {&name: {"properties": many}}}));
    let keyspaces =
        json!({"format": "pleach.contract.v1", "resources": {"kv": {&name: {"keyspaces": many}}}});
    for document in [properties, keyspaces] {
        refused_value(&document, Code::TextPaths);
        refused(&document.to_string(), Code::TextPaths);
    }
    let again = format!("{{\"{name}\": {{{}\"a\": 1}}}}", "\"a\": 1, ".repeat(100_000));
    refused(&again, Code::TextPaths);
}

#[test]
fn references_that_fan_out_are_refused() {
    let mut defs = Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"anyOf": [next, next, next]}));
    }
    defs.insert("d60".into(), json!({"type": "string"}));
    let document = with_schema(json!({"$defs": defs, "$ref": "#/$defs/d0"}));
    refused(&document.to_string(), Code::SchemaBudget);
    let problems = refused_value(&document, Code::SchemaBudget);
    assert_eq!(problems.list()[0].path, "/schemas/Note");
    let many: Vec<Value> = (0..5000).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let document = with_schema(json!({"$defs": {"a": true}, "prefixItems": many}));
    refused_value(&document, Code::SchemaBudget);
    let circle =
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    refused_value(&with_schema(circle), Code::SchemaLoop);
}

#[test]
fn catastrophic_patterns_are_refused_or_harmless() {
    for pattern in ["(?=a)b", "(a)\\1", "(a{1000}){1000}", "((a{100}){100}){100}", "(?:a?){100000}"] {
        refused_value(&with_schema(json!({"properties": {"x": {"pattern": pattern}}})), Code::SchemaPattern);
    }
    refused_value(&with_schema(json!({"properties": {"x": {"pattern": "("}}})), Code::PatternSyntax);
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(.*)*x$", "(a*)*b"] {
        let schema = soon(|| CompiledSchema::compile(&json!({"pattern": pattern}))).unwrap();
        let text = json!(format!("{}!", "a".repeat(1_000_000)));
        assert!(soon(|| schema.validate(&text)).is_err(), "{pattern}");
    }
}

#[test]
fn huge_numbers_are_refused() {
    for number in ["1e999", "-1e999", "1e-999", "18446744073709551616", "-0", "-0.0", &"9".repeat(1_000_000)]
    {
        refused(&format!("{{\"format\": {number}}}"), Code::TextNumber);
    }
    refused(&format!("{{\"a\": 1{}}}", "0".repeat(3_000_000)), Code::TextNumber);
    refused_as("a: .inf", Notation::Yaml, Code::TextNumber);
    refused_as("a: 0xfffffffffffffffff", Notation::Yaml, Code::TextNumber);
}

#[test]
fn duplicate_keys_are_refused() {
    refused(&format!("{{{}\"a\": 1}}", "\"a\": 1, ".repeat(100_000)), Code::TextDuplicate);
    refused("{\"format\": \"pleach.contract.v1\", \"format\": \"pleach.contract.v1\"}", Code::TextDuplicate);
    // The same name in another spelling.
    refused("{\"a\": 1, \"\\u0061\": 2}", Code::TextDuplicate);
}

#[test]
fn a_hundred_thousand_violations_and_problems_are_bounded() {
    let schema = CompiledSchema::compile(&json!({"items": {"type": "object", "required": ["a"]}})).unwrap();
    let value = Value::Array(vec![json!({}); 100_000]);
    let Err(Refused::Violations { violations, more }) = soon(|| schema.validate(&value)) else {
        panic!("it is refused")
    };
    assert_eq!((violations.len(), more), (VIOLATIONS_MAX, true));
    let stores: Map<String, Value> = (0..100_000).map(|number| (format!("s{number}"), json!(1))).collect();
    let document = json!({"format": "pleach.contract.v1", "state": stores});
    refused(&document.to_string(), Code::ProblemsMore);
    let types: Map<String, Value> =
        (0..15_000).map(|n| (format!("p{n}"), json!({"type": "strng"}))).collect();
    refused_value(&with_schema(json!({"properties": types})), Code::ProblemsMore);
}

#[test]
fn ten_megabytes_are_refused() {
    const SIZE: usize = 10 * 1024 * 1024;
    refused(&format!("{{\"docs\": \"{}\"}}", "x".repeat(SIZE)), Code::TextSize);
    refused(&" ".repeat(SIZE), Code::TextSize);
    refused_as(&"#\n".repeat(SIZE / 2), Notation::Yaml, Code::TextSize);
    // As large as a document may be, and still no contract.
    let most = 4 * 1024 * 1024 - 100;
    refused(&format!("{{\"docs\": \"{}\"}}", "x".repeat(most)), Code::FieldMissing);
    refused_as(&"#\n".repeat(most / 2), Notation::Yaml, Code::TextSyntax);
    refused_as(&"\"".repeat(most), Notation::Json, Code::TextSyntax);
    refused_as(&"\\".repeat(most), Notation::Json, Code::TextSyntax);
    refused_as(&"a:\n".repeat(most / 3), Notation::Yaml, Code::TextNodes);
}

#[test]
fn an_unknown_format_and_a_newer_one_are_told_apart() {
    for (format, says) in [
        ("pleach.contract.v2", "newer than this version of Pleach"),
        ("pleach.contract.v0", "unknown"),
        ("pleach.contract.v99999999999999999999", "unknown"),
        ("acme.contract.v1", "unknown"),
        ("", "empty"),
    ] {
        // Everything else about it may be anything: only the format is told.
        let document = json!({"format": format, "id": 5, "more": [1, 2, 3]});
        let problems = soon(|| Contract::from_value(&document)).unwrap_err();
        let [only] = problems.list() else { panic!("{problems:?}") };
        assert!(only.message.contains(says), "{only}");
        assert_eq!(only.path, "/format");
    }
    refused("{\"format\": \"pleach.contract.v2\"}", Code::FormatUnknown);
    refused("{}", Code::FieldMissing);
}
