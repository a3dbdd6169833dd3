use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::problem::Code;
use crate::text::{DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, format_text};
use crate::{ContractBuilder, canonical, format_schema};

mod sets;

const CASES: &str = include_str!("../../testdata/cases.yaml");

fn yaml(text: &str) -> Result<Parsed, Problems> {
    Contract::parse(text.as_bytes(), Notation::Yaml)
}

fn cases() -> Contract {
    yaml(CASES).unwrap().contract
}

/// The smallest contract, with these fields besides.
fn with(more: Value) -> Value {
    let mut value = json!({
        "format": FORMAT, "id": "acme.notes@v1", "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Note": {"type": "object"}},
        "state": {"notes": {"kind": "map", "schema": {"schema": "Note"}}},
    });
    merge(&mut value, more);
    value
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn kv(resource: Value) -> Value {
    let mut whole = json!({"purpose": "notes", "schema": {"schema": "Note"}});
    merge(&mut whole, resource);
    with(json!({"resources": {"kv": {"notes": whole}}}))
}

fn codes(value: &Value) -> Vec<(Code, String)> {
    let text = serde_json::to_string_pretty(value).unwrap();
    let problems = match Contract::parse(text.as_bytes(), Notation::Json) {
        Ok(parsed) => parsed.warnings,
        Err(problems) => problems,
    };
    problems.list().iter().map(|problem| (problem.code, problem.path.clone())).collect()
}

fn check(value: Value, code: Code, path: &str) {
    let found = codes(&value);
    assert_eq!(found, [(code, path.to_owned())], "{value:#}");
}

#[test]
fn a_whole_contract_is_read_with_its_defaults() {
    let contract = cases();
    let cases = &contract.resources.kv["cases"];
    assert_eq!(
        (cases.history, cases.required, cases.ttl_ms, cases.max_value_bytes),
        (5, true, 0, Some(65_536))
    );
    assert_eq!(cases.keyspaces["current"].schema.schema, "Case");
    assert_eq!(cases.keyspaces["event"].role, Role::Source);
    assert_eq!(cases.keyspaces["event"].access["timeline"].limit, 200);
    assert_eq!(cases.relationships["parties"].on_delete, OnDelete::Restrict);
    assert_eq!(contract.resources.kv["sessions"].ttl_ms, 12 * 60 * 60 * 1000);
    assert_eq!(contract.state["preferences"].state_version, "v2");
}

#[test]
fn every_field_that_is_wrong_is_told_with_its_place() {
    check(with(json!({"id": "Notes"})), Code::IdForm, "/id");
    check(with(json!({"kind": "servce"})), Code::FieldChoice, "/kind");
    check(with(json!({"description": " "})), Code::FieldEmpty, "/description");
    check(with(json!({"displayName": 7})), Code::FieldType, "/displayName");
    check(with(json!({"stat": {}})), Code::FieldUnknown, "/stat");
    check(with(json!({"format": "pleach.contract.v2"})), Code::FormatUnknown, "/format");
    check(with(json!({"schemas": {"Extra": true}})), Code::SchemaUnused, "/schemas/Extra");
    check(
        with(json!({"state": {"a/b": {"kind": "map", "schema": {"schema": "Note"}}}})),
        Code::NameForm,
        "/state/a~1b",
    );
    check(
        with(json!({"state": {"notes": {"stateVersion": "a b"}}})),
        Code::NameForm,
        "/state/notes/stateVersion",
    );
    check(
        with(json!({"state": {"notes": {"acceptedVersions": {"v0": {"schema": "Old"}}}}})),
        Code::SchemaUnknown,
        "/state/notes/acceptedVersions/v0/schema",
    );
    check(
        with(json!({"state": {"notes": {"acceptedVersions": {"v1": {"schema": "Note"}}}}})),
        Code::VersionCurrent,
        "/state/notes/acceptedVersions/v1",
    );
    check(kv(json!({"history": 65})), Code::FieldRange, "/resources/kv/notes/history");
    check(kv(json!({"history": 1.5})), Code::FieldRange, "/resources/kv/notes/history");
    check(kv(json!({"ttlMs": -1})), Code::FieldRange, "/resources/kv/notes/ttlMs");
    check(kv(json!({"purpose": ""})), Code::FieldEmpty, "/resources/kv/notes/purpose");
    check(kv(json!({"schema": {"schema": "Nte"}})), Code::SchemaUnknown, "/resources/kv/notes/schema/schema");
    check(kv(json!({"tier": "permanent", "ttlMs": 5})), Code::TtlTier, "/resources/kv/notes/ttlMs");
}

#[test]
fn parts_of_a_resource_that_contradict_each_other_are_told() {
    let at = |path: &str| format!("/resources/kv/notes{path}");
    let a = json!({"key": "n.{id:ulid}"});
    let keyspaces = |b: Value| kv(json!({"keyspaces": {"a": a.clone(), "b": b}}));
    check(keyspaces(json!({"key": "m.{id"})), Code::KeyGrammar, &at("/keyspaces/b/key"));
    check(keyspaces(json!({"key": "m", "role": "derived"})), Code::RoleSource, &at("/keyspaces/b"));
    check(keyspaces(json!({"key": "m", "from": ["a"]})), Code::RoleSource, &at("/keyspaces/b/from"));
    check(
        keyspaces(json!({"key": "m", "role": "derived", "from": ["b"]})),
        Code::RoleLoop,
        &at("/keyspaces/b/from"),
    );
    check(
        keyspaces(json!({"key": "m.{at:slug}", "retention": {"segment": "at", "bucket": "day", "keep": 3}})),
        Code::KeySegment,
        &at("/keyspaces/b/retention/segment"),
    );
    check(
        kv(json!({"ttlMs": 5, "keyspaces": {"a": {"key": "n", "ttlMs": 0}}})),
        Code::TtlBucket,
        &at("/keyspaces/a/ttlMs"),
    );
    let more = |part: Value| {
        let mut value = keyspaces(json!({"key": "m.{other}"}));
        merge(&mut value["resources"]["kv"]["notes"], part);
        value
    };
    check(
        more(json!({"indexes": {"i": {"of": "c", "key": "i.{id}"}}})),
        Code::MemberUnknown,
        &at("/indexes/i/of"),
    );
    check(
        more(json!({"indexes": {"i": {"of": "a", "key": "i.{x}"}}})),
        Code::KeySegment,
        &at("/indexes/i/key"),
    );
    check(
        more(json!({"indexes": {"i": {"of": "a", "key": "i.{x}", "values": {"x": "x"}}}})),
        Code::PointerForm,
        &at("/indexes/i/values/x"),
    );
    check(more(json!({"counters": {"a": {"of": "a", "key": "i"}}})), Code::NameClash, &at("/counters/a"));
    check(
        more(json!({"counters": {"n": {"of": "a", "key": "i.{z}"}}})),
        Code::KeySegment,
        &at("/counters/n/key"),
    );
    check(more(json!({"atomic": {"g": {"members": ["a"]}}})), Code::FieldRange, &at("/atomic/g/members"));
    check(
        more(json!({"atomic": {"g": {"members": ["a", "z"]}}})),
        Code::MemberUnknown,
        &at("/atomic/g/members/1"),
    );
    check(
        more(
            json!({"relationships": {"r": {"from": "a", "to": "b", "forward": "f.{id}", "reverse": "r.{other}"}}}),
        ),
        Code::KeySegment,
        &at("/relationships/r/reverse"),
    );
}

#[test]
fn keys_that_cannot_serve_what_is_declared_are_told() {
    let at = |path: &str| format!("/resources/kv/notes{path}");
    let keyspaces = |b: Value| kv(json!({"keyspaces": {"a": {"key": "n.{id:ulid}"}, "b": b}}));
    check(keyspaces(json!({"key": "m.{id:"})), Code::KeyGrammar, &at("/keyspaces/b/key"));
    check(keyspaces(json!({"key": "n.{any}"})), Code::KeyOverlap, &at("/keyspaces/b/key"));
    let access = |access: Value| keyspaces(json!({"key": "m.{a}.{b:time}", "access": {"x": access}}));
    assert_eq!(codes(&access(json!({"given": ["a"], "range": "b"}))), []);
    check(access(json!({"given": ["b"]})), Code::KeyAccess, &at("/keyspaces/b/access/x"));
    check(access(json!({"range": "c"})), Code::KeySegment, &at("/keyspaces/b/access/x/range"));
}

#[test]
fn versions_of_keyspaces_are_those_of_their_schema() {
    let mut value = kv(json!({"version": "v2", "acceptedVersions": {"v1": {"schema": "Old"}}, "keyspaces": {
        "same": {"key": "a.{id}"},
        "own": {"key": "b.{id}", "schema": {"schema": "Own"}},
        "kept": {"key": "c.{id}", "version": "v3", "acceptedVersions": {}},
    }}));
    merge(&mut value, json!({"schemas": {"Old": true, "Own": true}}));
    let contract = Contract::from_value(&value).unwrap().contract;
    let keyspaces = &contract.resources.kv["notes"].keyspaces;
    let versions = |name: &str| {
        let keyspace: &Keyspace = &keyspaces[name];
        (keyspace.version.clone(), keyspace.accepted_versions.len())
    };
    assert_eq!(versions("same"), ("v2".into(), 1));
    assert_eq!(versions("own"), ("v1".into(), 0));
    assert_eq!(versions("kept"), ("v3".into(), 0));
    let own = json!({"resources": {"kv": {"notes": {"keyspaces": {"own": {"acceptedVersions": {"v1": {"schema": "Old"}}}}}}}});
    merge(&mut value, own);
    check(value, Code::VersionCurrent, "/resources/kv/notes/keyspaces/own/acceptedVersions/v1");
}

#[test]
fn aliases_that_would_be_one_bucket_are_told() {
    let resource = json!({"purpose": "p", "schema": {"schema": "Note"}});
    let value = with(json!({"resources": {"kv": {"job-cache": resource, "job_cache": resource}}}));
    check(value, Code::NameClash, "/resources/kv/job_cache");
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_text() {
    let text = "format: pleach.contract.v1\nid: Notes\nkind: app\ndisplayName: Notes\n\
                state:\n  a: {kind: lst, schema: {schema: X}}\n  b: {kind: map, schema: {schema: X}}\n";
    let problems = yaml(text).unwrap_err();
    let found: Vec<_> = problems
        .list()
        .iter()
        .map(|problem| {
            (problem.position.unwrap().line, problem.position.unwrap().column, problem.code.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [(1, 1, "field.missing"), (2, 1, "id.form"), (6, 7, "field.choice"), (7, 27, "schema.unknown")]
    );
}

#[test]
fn what_cannot_be_read_is_told_with_line_and_column() {
    let told = |text: &str, notation| {
        let problems = Contract::parse(text.as_bytes(), notation).unwrap_err();
        let is_text = |problem: &&crate::Problem| problem.code.as_str().starts_with("text.");
        let first = problems.list().iter().find(is_text).unwrap().clone();
        (first.code, first.position.map(|position| (position.line, position.column)))
    };
    assert_eq!(told("{\n  \"a\": 1,\n}", Notation::Json), (Code::TextSyntax, Some((3, 1))));
    assert_eq!(told("{\"a\": 1, \"a\": 2}", Notation::Json), (Code::TextDuplicate, Some((1, 10))));
    assert_eq!(told("a: 1\na: 2\n", Notation::Yaml), (Code::TextDuplicate, Some((2, 1))));
    assert_eq!(told("{\"a\": 1e999}", Notation::Json), (Code::TextNumber, Some((1, 7))));
    assert_eq!(
        told("{\"a\": 123456789012345678901234567890}", Notation::Json),
        (Code::TextNumber, Some((1, 7)))
    );
    assert_eq!(told("{\"a\": -0}", Notation::Json), (Code::TextNumber, Some((1, 7))));
    assert_eq!(told("a: .nan\n", Notation::Yaml), (Code::TextNumber, Some((1, 4))));
    assert_eq!(told("a: &x 1\nb: *x\n", Notation::Yaml).0, Code::TextAlias);
    assert_eq!(told("a: !!str 1\n", Notation::Yaml).0, Code::TextAlias);
    assert_eq!(told("", Notation::Yaml).0, Code::TextSyntax);
    let deep = "[".repeat(100_000);
    assert_eq!(told(&deep, Notation::Json), (Code::TextDepth, Some((1, DOCUMENT_DEPTH_MAX + 2))));
    // The scanner gives up before anything could be nested that deep.
    assert_eq!(told(&deep, Notation::Yaml).0, Code::TextSyntax);
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(told(&nested, Notation::Yaml).0, Code::TextDepth);
    let nested: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(told(&nested, Notation::Yaml).0, Code::TextDepth);
    assert_eq!(told(&" ".repeat(10_000_000), Notation::Yaml).0, Code::TextSize);
    let many = format!("[{}0]", "0,".repeat(DOCUMENT_BYTES_MAX / 4));
    assert_eq!(told(&many, Notation::Json).0, Code::TextNodes);
    let bytes = Contract::parse(b"\xff\xfe", Notation::Json).unwrap_err();
    assert_eq!(bytes.list()[0].code, Code::TextEncoding);
}

#[test]
fn what_cannot_be_read_is_told_with_its_path_as_far_as_it_is_known() {
    let told = |text: &str, notation| {
        let problems = Contract::parse(text.as_bytes(), notation).unwrap_err();
        let is_text = |problem: &&crate::Problem| problem.code.as_str().starts_with("text.");
        let first = problems.list().iter().find(is_text).unwrap().clone();
        (first.code, first.path, first.position.map(|position| (position.line, position.column)))
    };
    let at = |code, path: &str, line, column| (code, path.to_owned(), Some((line, column)));
    let json = Notation::Json;
    assert_eq!(told("{\"a\": [1, {\"b/c\": x}]}", json), at(Code::TextSyntax, "/a/1/b~1c", 1, 19));
    assert_eq!(told("{\"a\": {\"b\": 1 2}}", json), at(Code::TextSyntax, "/a", 1, 15));
    assert_eq!(told("{\"a\": {\"b\": 1, \"b\": 2}}", json), at(Code::TextDuplicate, "/a/b", 1, 16));
    assert_eq!(told("{\"a\": [0, 1e999], \"b\": 1}", json), at(Code::TextNumber, "/a/1", 1, 11));
    let yaml = Notation::Yaml;
    assert_eq!(told("a:\n  b: 1\n  b: 2\n", yaml), at(Code::TextDuplicate, "/a/b", 3, 3));
    assert_eq!(told("a:\n  - 0\n  - .nan\n", yaml), at(Code::TextNumber, "/a/1", 3, 5));
    assert_eq!(told("a:\n  b: *c\n", yaml), at(Code::TextSyntax, "/a/b", 2, 6));
    assert_eq!(told("a:\n  b: !!str 1\n", yaml).1, "/a/b");
    let deep = format!("{{\"a\": {}", "[".repeat(100));
    let path = format!("/a{}", "/0".repeat(DOCUMENT_DEPTH_MAX));
    assert_eq!(told(&deep, json), at(Code::TextDepth, &path, 1, 7 + DOCUMENT_DEPTH_MAX));
}

#[test]
fn a_contract_that_was_just_read_has_its_schemas_compiled() {
    let validators = Validators::default();
    let contract = Contract::parse_with(CASES.as_bytes(), Notation::Yaml, &validators).unwrap().contract;
    // `Party` and the preferences are equal, so they are one.
    assert_eq!(validators.count(), 3);
    let case = validators.get(&contract.schemas["Case"]).unwrap();
    let again = Contract::from_value_with(&contract.to_value(), &validators).unwrap().contract;
    assert!(std::sync::Arc::ptr_eq(&validators.of(&again).unwrap()["Case"], &case));
    assert_eq!(validators.count(), 3);
}

#[test]
fn problems_are_bounded() {
    let stores: String = (0..1000).map(|number| format!("  s{number}: 1\n")).collect();
    let text = format!("format: pleach.contract.v1\nstate:\n{stores}");
    let problems = yaml(&text).unwrap_err();
    assert_eq!(problems.list().len(), crate::PROBLEMS_MAX + 1);
    assert_eq!(problems.list().last().unwrap().code, Code::ProblemsMore);
}

#[test]
fn a_wrong_word_is_told_with_the_right_one() {
    let problems = Contract::from_value(&kv(json!({"histroy": 3}))).unwrap_err();
    assert_eq!(problems.list()[0].fix, "did you mean `history`?");
}

#[test]
fn the_digest_does_not_see_how_a_contract_is_written() {
    let contract = cases();
    let digest = contract.digest();
    let json = serde_json::to_string_pretty(&contract.to_value()).unwrap();
    assert_eq!(Contract::parse(json.as_bytes(), Notation::Json).unwrap().contract.digest(), digest);
    let other = CASES
        .replace("displayName: Cases", "displayName: Other")
        .replace("      history: 5\n", "      history: 5\n      required: true\n");
    assert_eq!(yaml(&other).unwrap().contract.digest(), digest);
    let tier = CASES.replace("tier: presence", "ttlMs: 43200000");
    assert_eq!(yaml(&tier).unwrap().contract.digest(), digest);
    let unused = CASES.replace("  Party: {type: object}", "  Party: {type: object}\n  Extra: {}");
    assert_eq!(yaml(&unused).unwrap().contract.digest(), digest);
    let changed = CASES.replace("history: 5", "history: 6");
    assert_ne!(yaml(&changed).unwrap().contract.digest(), digest);
    let schema = CASES.replace("required: [what]", "required: []");
    assert_ne!(yaml(&schema).unwrap().contract.digest(), digest);
}

#[test]
fn the_digest_of_a_known_contract_stays_what_it_was() {
    // Digests are stored beside data: a new way to compute them would be a new format.
    assert_eq!(Contract::from_value(&with(json!({}))).unwrap().contract.canonical(), SMALLEST);
}

const SMALLEST: &str = r#"{"format":"pleach.contract.v1","id":"acme.notes@v1","kind":"app","schemas":{"Note":{"type":"object"}},"state":{"notes":{"kind":"map","schema":{"schema":"Note"},"stateVersion":"v1"}}}"#;

#[test]
fn types_and_text_give_one_digest() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Note {
        title: String,
        stars: Option<u8>,
    }
    let built = ContractBuilder::new("acme.notes@v1", ContractKind::App)
        .describe("Notes", "Notes")
        .schema::<Note>()
        .state("notes", StoreKind::Map, "Note", json!({}))
        .kv("notes", "Notes by id", "Note", json!({"keyspaces": {"note": {"key": "n.{id:ulid}"}}}))
        .build()
        .unwrap();
    let text = r"
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: The same
description: Written by hand
schemas:
  Note:
    type: object
    properties:
      title: {type: string}
      stars: {type: [integer, 'null'], format: uint8, minimum: 0, maximum: 255}
    required: [title]
state:
  notes: {kind: map, schema: {schema: Note}, stateVersion: v1}
resources:
  kv:
    notes:
      purpose: Notes by id
      schema: {schema: Note}
      history: 1
      keyspaces:
        note: {key: 'n.{id:ulid}', role: source}
";
    assert_eq!(yaml(text).unwrap().contract.canonical(), built.contract.canonical());
    assert_eq!(yaml(text).unwrap().contract.digest(), built.contract.digest());
}

#[test]
fn the_schema_of_the_format_accepts_contracts_and_refuses_others() {
    let schema = format_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let contract = cases();
    let errors: Vec<String> =
        validator.iter_errors(&contract.to_value()).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(validator.is_valid(&with(json!({}))));
    for wrong in [
        with(json!({"id": "Notes"})),
        with(json!({"stat": {}})),
        with(json!({"format": "pleach.contract.v2"})),
        with(json!({"kind": "servce"})),
        with(json!({"docs": null})),
        kv(json!({"history": 65})),
        kv(json!({"tier": "long"})),
        kv(json!({"keyspaces": {"a": {}}})),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong:#}");
    }
    assert!(validator.is_valid(&kv(json!({"keyspaces": {"a": {"key": "a"}}}))));
}

#[test]
fn laying_out_keeps_what_it_says_and_every_comment() {
    let once = format_text(CASES.as_bytes(), Notation::Yaml).unwrap();
    assert_eq!(yaml(&once).unwrap().contract, cases());
    assert_eq!(format_text(once.as_bytes(), Notation::Yaml).unwrap(), once);
    for comment in ["# Cases of an enforcement team", "role: derived # rebuilt from the events"] {
        assert!(once.contains(comment), "{once}");
    }
    let json = cases().to_value().to_string();
    let once = format_text(json.as_bytes(), Notation::Json).unwrap();
    assert_eq!(Contract::parse(once.as_bytes(), Notation::Json).unwrap().contract, cases());
    assert_eq!(format_text(once.as_bytes(), Notation::Json).unwrap(), once);
    assert!(once.starts_with("{\n  \"format\": \"pleach.contract.v1\",\n  \"id\""), "{once}");
}

#[test]
fn the_reference_lists_every_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts.md");
    let text = fs::read_to_string(&path).unwrap();
    let mut table = String::from("| code | | meaning |\n|---|---|---|\n");
    for code in Code::ALL {
        let severity = if code.severity() == crate::Severity::Error { "error" } else { "warning" };
        table += &format!("| `{code}` | {severity} | {} |\n", code.meaning());
    }
    if std::env::var_os("PLEACH_GOLDEN").is_some_and(|mode| mode == "write") {
        let (before, rest) = text.split_once("| code | | meaning |").unwrap();
        let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
        fs::write(&path, format!("{before}{table}\n{after}")).unwrap();
        return;
    }
    assert!(
        text.contains(&table),
        "docs/contracts.md is behind: PLEACH_GOLDEN=write cargo test -p pleach-contract"
    );
}

#[test]
fn the_example_of_the_reference_is_a_contract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts.md");
    let text = fs::read_to_string(path).unwrap();
    let mut examples = 0;
    for example in text.split("```yaml\n").skip(1) {
        let example = example.split("```").next().unwrap();
        let parsed = yaml(example).unwrap();
        assert_eq!(parsed.warnings.list(), [], "{example}");
        examples += 1;
    }
    assert!(examples > 0);
}

/// Any JSON, as small as a schema's example.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("not negative zero", |float| *float != 0.0).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[a-z \n#:'\"-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[\\PC]{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A contract with a few random parts.
fn any_contract() -> impl Strategy<Value = Value> {
    let resource = (1_u64..=64, 0_u64..100_000, any::<bool>(), prop::option::of(1_u64..1000), "[a-z]{1,8}");
    let schema =
        prop::collection::btree_map("[a-z]{1,5}", prop_oneof![Just("string"), Just("integer")], 0..4);
    (prop::collection::btree_map("[a-z]{1,6}", resource, 0..4), schema, "\\PC{1,12}").prop_map(
        |(resources, properties, name)| {
            let kv: serde_json::Map<String, Value> = resources
                .into_iter()
                .map(|(alias, (history, ttl, required, bytes, word))| {
                    let mut resource = json!({
                        "purpose": word, "schema": {"schema": "Note"}, "history": history, "ttlMs": ttl,
                        "required": required,
                        "keyspaces": {"all": {"key": format!("{word}.{{id}}"), "ttlMs": ttl}},
                    });
                    if let Some(bytes) = bytes {
                        resource["maxValueBytes"] = bytes.into();
                    }
                    (alias, resource)
                })
                .collect();
            let properties: Value = properties
                .into_iter()
                .map(|(name, word)| (name, json!({"type": word})))
                .collect::<serde_json::Map<_, _>>()
                .into();
            with(json!({
                "docs": format!("x{name}"),
                "schemas": {"Note": {"properties": properties}},
                "resources": {"kv": kv},
            }))
        },
    )
}

/// The same with the fields of every object the other way round.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .rev()
                .map(|(name, value)| format!("{} : {}", Value::from(name.as_str()), reversed(value)))
                .collect();
            format!("{{ {} }}", fields.join(" ,\n"))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn a_contract_reads_back_as_itself(value in any_contract()) {
        let contract = Contract::from_value(&value).unwrap().contract;
        let again = Contract::from_value(&contract.to_value()).unwrap().contract;
        prop_assert_eq!(&again, &contract);
        let canonical = contract.canonical();
        let value: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert_eq!(super::super::canonical(&value), canonical);
    }

    #[test]
    fn neither_order_nor_defaults_change_a_digest(value in any_contract()) {
        let contract = Contract::from_value(&value).unwrap().contract;
        let text = reversed(&value);
        let other = Contract::parse(text.as_bytes(), Notation::Json).unwrap().contract;
        prop_assert_eq!(other.digest(), contract.digest());
        let mut bare = value;
        if let Some(kv) = bare.pointer_mut("/resources/kv").and_then(Value::as_object_mut) {
            for resource in kv.values_mut().filter_map(Value::as_object_mut) {
                resource.retain(|name, value| {
                    !(name == "required" && *value == true || name == "history" && *value == 1 || name == "ttlMs" && *value == 0)
                });
            }
        }
        prop_assert_eq!(Contract::from_value(&bare).unwrap().contract.digest(), contract.digest());
    }

    #[test]
    fn any_json_is_laid_out_without_loss(value in any_json()) {
        let source = value.to_string();
        for notation in [Notation::Json, Notation::Yaml] {
            let value = text::read(source.as_bytes(), Notation::Json).0.unwrap().value();
            let Ok(mut laid_out) = format_text(source.as_bytes(), Notation::Json) else { continue };
            if notation == Notation::Yaml {
                // JSON is YAML, as far as this is true.
                let Ok(text) = format_text(laid_out.as_bytes(), Notation::Yaml) else { continue };
                laid_out = text;
            }
            let (node, problems) = text::read(laid_out.as_bytes(), notation);
            prop_assert!(problems.list().is_empty(), "{:?}\n{}", problems, laid_out);
            prop_assert_eq!(canonical(&node.unwrap().value()), canonical(&value), "{}", laid_out);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}|[-\\[\\]{}:,\"'#&*!|> \n\ta-c0-9.]{0,200}") {
        for notation in [Notation::Json, Notation::Yaml] {
            let _ = Contract::parse(text.as_bytes(), notation);
            let _ = format_text(text.as_bytes(), notation);
        }
    }

    #[test]
    fn no_change_to_a_contract_makes_the_parser_panic(at in 0..CASES.len(), length in 0..20_usize, with in "\\PC{0,6}|[{}\\[\\]:\n -]{0,6}") {
        let mut bytes = CASES.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, with.bytes());
        let _ = Contract::parse(&bytes, Notation::Yaml);
        let _ = format_text(&bytes, Notation::Yaml);
    }

    #[test]
    fn any_json_in_place_of_a_part_is_no_more_than_a_problem(value in any_json(), part in 0..8_usize) {
        let parts = ["/schemas/Case", "/state", "/resources/kv/cases", "/resources/kv/cases/keyspaces/event",
            "/resources/kv/cases/indexes/due", "/resources/kv/cases/counters/open/when", "/id", "/schemas"];
        let mut whole = cases().to_value();
        *whole.pointer_mut(parts[part]).unwrap() = value;
        let _ = Contract::from_value(&whole);
    }
}
