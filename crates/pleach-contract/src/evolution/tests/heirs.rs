//! Keyspaces that are split, merged or renamed lose nothing by that, and programs with the old contract cannot bind them.

use serde_json::{Value, json};

use super::given::{contract, shown};
use crate::evolution::{Effect, Finding, Question, Verdict, diff};

fn keyspaces(keys: &[(&str, &str)]) -> Value {
    let each = keys.iter().map(|(name, key)| ((*name).to_owned(), json!({"key": key})));
    json!({"keyspaces": Value::Object(each.collect())})
}

fn found(old: Value, new: Value) -> Vec<Finding> {
    let of = |resource: Value| {
        contract(json!({"Thing": {"type": "object"}, "Text": {"type": "string"}}), resource)
    };
    diff(&of(old), &of(new)).findings
}

#[track_caller]
fn check(old: &[(&str, &str)], new: &[(&str, &str)], expected: &[(&str, &str)]) {
    let found = found(keyspaces(old), keyspaces(new));
    let told: Vec<(&str, &str)> =
        found.iter().map(|finding| (finding.code.as_str(), finding.message.as_str())).collect();
    assert_eq!(told, expected, "{old:?} → {new:?}");
    for finding in found.iter().filter(|finding| finding.verdict == Verdict::Scan) {
        assert_eq!((finding.backward, finding.forward), (Effect::Scan, Effect::Breaks));
        assert_eq!(finding.question, Some(Question::Refused));
        assert!(finding.reason.contains("cannot bind"), "{}", finding.reason);
    }
}

#[test]
fn a_keyspace_that_is_split_is_checked_by_its_heirs() {
    check(
        &[("all", "x.{kind:a|b}.{id}")],
        &[("ones", "x.a.{id}"), ("others", "x.b.{id}")],
        &[("keyspace.split", "`all` is split into `ones`, `others`")],
    );
    // One of the heirs may keep the name.
    check(
        &[("all", "x.{kind}.{id}")],
        &[("all", "x.a.{id}"), ("others", "x.b.{id}")],
        &[("keyspace.split", "`all` is split into `all`, `others`")],
    );
}

#[test]
fn keyspaces_that_are_merged_are_checked_by_their_heir() {
    check(
        &[("ones", "x.a.{id}"), ("others", "x.b.{id}")],
        &[("all", "x.{kind:a|b}.{id}")],
        &[
            ("keyspace.merged", "`ones` is merged into `all`, together with `others`"),
            ("keyspace.merged", "`others` is merged into `all`, together with `ones`"),
        ],
    );
    // One of them may keep its name, and takes more keys from now on.
    let found = found(
        keyspaces(&[("ones", "x.a.{id}"), ("others", "x.b.{id}")]),
        keyspaces(&[("ones", "x.{kind}.{id}")]),
    );
    let told: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(told, ["keyspace.merged", "key.widened"]);
}

#[test]
fn a_renamed_keyspace_cannot_be_bound_by_its_old_name() {
    let told = found(keyspaces(&[("old", "x.{id}")]), keyspaces(&[("new", "x.{id}")]));
    assert_eq!(told.len(), 1);
    let finding = &told[0];
    assert_eq!((finding.code.as_str(), finding.verdict), ("keyspace.renamed", Verdict::Safe));
    assert_eq!((finding.backward, finding.forward), (Effect::Ok, Effect::Breaks));
    assert!(finding.reason.contains("programs with the old contract cannot bind"), "{}", finding.reason);
    // Other names of segments and wider segments are part of the same rename.
    let told = found(keyspaces(&[("old", "x.{id:slug(8)}")]), keyspaces(&[("new", "x.{name}")]));
    let codes: Vec<&str> = told.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["keyspace.renamed", "key.widened"]);
    // One that takes fewer keys is scanned for those that are left over.
    check(
        &[("old", "x.{id}")],
        &[("new", "x.{id:a|b}")],
        &[("keyspace.renamed", "`new` takes keys of `old`, which is gone")],
    );
}

#[test]
fn the_values_of_a_renamed_keyspace_are_compared() {
    let of = |name: &str, schema: &str| json!({"keyspaces": {name: {"key": "x.{id}", "schema": {"schema": schema}}}});
    let schemas = json!({"Thing": {"type": "object"}, "Text": {"type": "string"}});
    let found = diff(&contract(schemas.clone(), of("k1", "Thing")), &contract(schemas, of("k2", "Text")));
    assert_eq!(shown(&found), ["type.changed breaks/breaks dangerous", "keyspace.renamed ok/breaks safe"]);
}

#[test]
fn heirs_that_keep_entries_for_a_shorter_time_are_told() {
    let old = json!({"keyspaces": {"all": {"key": "x.{kind:a|b}.{day:date}"}}});
    let new = json!({"keyspaces": {
        "ones": {"key": "x.a.{day:date}", "ttlMs": 1000},
        "others": {"key": "x.b.{day:date}", "retention": {"segment": "day", "bucket": "month", "keep": 2}}}});
    let found = found(old, new);
    let mut codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["keyspace.split", "retention.added", "ttl.lowered"]);
}

#[test]
fn keys_that_mean_something_else_have_no_heir() {
    let told =
        found(keyspaces(&[("old", "x.{a:ulid}.{b:ulid}")]), keyspaces(&[("new", "x.{b:ulid}.{a:ulid}")]));
    let mut codes: Vec<&str> = told.iter().map(|finding| finding.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["keyspace.added", "keyspace.removed"]);
}

#[test]
fn no_fix_asks_for_a_scan_that_the_plan_has_done() {
    let kept = |more: Value| contract(json!({"Thing": {"type": "object"}}), more);
    let (old, new) = (
        kept(
            json!({"history": 5, "ttlMs": 9000, "keyspaces": {"a": {"key": "a.{id}"}, "b": {"key": "b.{id}"}}}),
        ),
        kept(
            json!({"history": 2, "ttlMs": 1000, "maxValueBytes": 9, "keyspaces": {"a": {"key": "a.{id:x|y}"}},
            "indexes": {"i": {"of": "a", "key": "i.{id}", "unique": true}}}),
        ),
    );
    let found = diff(&old, &new);
    assert!(found.findings.len() > 5);
    for finding in found.findings {
        assert!(!finding.fix.contains("scan"), "{}: {}", finding.code, finding.fix);
    }
}
