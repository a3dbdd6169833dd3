use serde_json::{Value, json};

use crate::evolution::{Diff, Finding, diff};
use crate::{Contract, Notation};

/// A contract with one resource and nothing else.
pub(super) fn contract(schemas: Value, resource: Value) -> Contract {
    whole(json!({"schemas": schemas, "resources": {"kv": {"things": with(json!({
        "purpose": "Things", "schema": {"schema": "Thing"}}), resource)}}}))
}

/// A contract with these fields beside those that must be there.
pub(super) fn whole(fields: Value) -> Contract {
    let head = json!({
        "format": "pleach.contract.v1", "id": "acme.things@v1", "kind": "service",
        "displayName": "Things", "description": "Things of all kinds"});
    let value = with(head, fields);
    match Contract::from_value(&value) {
        Ok(parsed) => parsed.contract,
        Err(problems) => panic!("{value} is no contract: {:?}", problems.list()),
    }
}

/// The contract of cases that the documentation shows, with one text in place of another.
pub(super) fn cases(from: &str, to: &str) -> Contract {
    let text = include_str!("../../../testdata/cases.yaml");
    assert!(text.contains(from), "{from} is not in the contract any more");
    match Contract::parse(text.replace(from, to).as_bytes(), Notation::Yaml) {
        Ok(parsed) => parsed.contract,
        Err(problems) => panic!("{to} makes no contract: {:?}", problems.list()),
    }
}

/// One object with the fields of another.
fn with(mut value: Value, more: Value) -> Value {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

/// What comes of one schema in place of another.
pub(super) fn schemas(old: Value, new: Value) -> Diff {
    let of = |schema: Value| contract(json!({"Thing": schema}), json!({}));
    diff(&of(old), &of(new))
}

/// Each finding as its code, both effects and its verdict, such as `type.widened ok/breaks safe`.
pub(super) fn shown(diff: &Diff) -> Vec<String> {
    diff.findings.iter().map(line).collect()
}

fn line(finding: &Finding) -> String {
    let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let of = |effect| word(serde_json::to_value(effect).unwrap());
    let verdict = word(serde_json::to_value(finding.verdict).unwrap());
    format!("{} {}/{} {verdict}", finding.code, of(finding.backward), of(finding.forward))
}

/// Checks what comes of one schema in place of another.
#[track_caller]
pub(super) fn check(old: Value, new: Value, expected: &[&str]) {
    let found = schemas(old.clone(), new.clone());
    let mut lines = shown(&found);
    lines.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(lines, expected, "{old} → {new}: {:#?}", found.findings);
}

/// Checks a change of a resource.
#[track_caller]
pub(super) fn check_resource(old: Value, new: Value, expected: &[&str]) {
    let of = |resource: Value| contract(json!({"Thing": {"type": "object"}}), resource);
    check_contracts(&of(old), &of(new), expected);
}

#[track_caller]
pub(super) fn check_contracts(old: &Contract, new: &Contract, expected: &[&str]) {
    let found = diff(old, new);
    let mut lines = shown(&found);
    lines.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(lines, expected, "{:#?}", found.findings);
}
