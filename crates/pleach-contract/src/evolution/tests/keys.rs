//! Every cell of the rules about keyspaces and their keys.

use serde_json::{Value, json};

use super::given::{check_contracts, check_resource, contract, shown};
use crate::evolution::{Question, diff};

fn keyspace(fields: Value) -> Value {
    json!({"keyspaces": {"event": fields}})
}

fn key(key: &str) -> Value {
    keyspace(json!({"key": key}))
}

#[test]
fn keys_with_other_segments_are_dangerous() {
    for (old, new) in [
        ("e.{id:ulid}", "e.{day:date}.{id:ulid}"),      // added
        ("e.{day:date}.{id:ulid}", "e.{id:ulid}"),      // removed
        ("e.{a:ulid}.{b:ulid}", "e.{b:ulid}.{a:ulid}"), // reordered
        ("e.{id:ulid}", "e.{id:uuid}"),                 // another type
        ("e.{n:uint(6)}", "e.{n:uint(8)}"),             // other digits
        ("e.{at:time(3)}", "e.{at:time(6)}"),           // other digits
        ("e.{h:hash(16)}", "e.{h:hash(32)}"),           // another length
        ("e.{id:ulid}", "event.{id:ulid}"),             // another literal
    ] {
        let found =
            diff(&contract(json!({"Thing": true}), key(old)), &contract(json!({"Thing": true}), key(new)));
        assert_eq!(shown(&found), ["key.changed breaks/breaks dangerous"], "{old} → {new}");
        assert_eq!(found.findings[0].question, Some(Question::Present));
    }
}

#[test]
fn a_segment_that_takes_less_is_scanned_for() {
    for (old, new) in [
        ("e.{id}", "e.{id:slug(8)}"),
        ("e.{id:token}", "e.{id}"),
        ("e.{kind:a|b|c}", "e.{kind:a|b}"),
        ("e.{kind}", "e.{kind:a|b}"),
        ("{kind}.{id:ulid}", "e.{id:ulid}"),
        ("e.{kind:a|b}", "e.a"),
        ("e.{b:bytes}", "e.{b:bytes(8)}"),
        ("e.{id}.{path...}", "e.{id}"),
        ("e.{id}.{path...}", "e.{id}.{path...(9)}"),
    ] {
        let found =
            diff(&contract(json!({"Thing": true}), key(old)), &contract(json!({"Thing": true}), key(new)));
        assert_eq!(shown(&found), ["key.narrowed scan/ok scan"], "{old} → {new}");
        assert_eq!(found.findings[0].question, Some(Question::KeyRefused));
        check_resource(key(new), key(old), &["key.widened ok/breaks safe"]);
    }
    check_resource(
        key("e.{kind:a|b}"),
        key("e.{kind:b|c}"),
        &["key.narrowed scan/ok scan", "key.widened ok/breaks safe"],
    );
}

#[test]
fn a_segment_may_have_another_name() {
    check_resource(key("e.{id:ulid}"), key("e.{event:ulid}"), &["key.named ok/ok safe"]);
}

#[test]
fn keyspaces_are_added_removed_and_renamed() {
    let one = json!({"keyspaces": {"a": {"key": "a.{id}"}}});
    let two = json!({"keyspaces": {"a": {"key": "a.{id}"}, "b": {"key": "b.{id}"}}});
    check_resource(one.clone(), two.clone(), &["keyspace.added ok/ok safe"]);
    check_resource(two.clone(), one.clone(), &["keyspace.removed breaks/breaks dangerous"]);
    check_resource(
        one.clone(),
        json!({"keyspaces": {"c": {"key": "a.{id}"}}}),
        &["keyspace.renamed ok/breaks safe"],
    );
    check_resource(json!({}), one.clone(), &["keyspaces.declared scan/ok scan"]);
    check_resource(one, json!({}), &["keyspaces.dropped ok/breaks safe"]);
}

#[test]
fn what_refers_to_a_renamed_keyspace_is_not_changed() {
    let of = |name: &str| {
        json!({
        "keyspaces": {name: {"key": "a.{id}"}, "b": {"key": "b.{id}", "role": "derived", "from": [name]}},
        "indexes": {"i": {"of": name, "key": "i.{id}"}},
        "counters": {"n": {"of": name, "key": "count"}},
        "atomic": {"g": {"members": [name, "b"]}}})
    };
    check_resource(of("a"), of("c"), &["keyspace.renamed ok/breaks safe"]);
}

#[test]
fn values_are_compared_when_keyspaces_are_declared_and_dropped() {
    let schemas = json!({"Thing": {"type": "object"}, "Text": {"type": "string"}});
    let free = contract(schemas.clone(), json!({}));
    let declared =
        contract(schemas, json!({"keyspaces": {"a": {"key": "a.{id}", "schema": {"schema": "Text"}}}}));
    check_contracts(
        &free,
        &declared,
        &["keyspaces.declared scan/ok scan", "type.changed breaks/breaks dangerous"],
    );
    check_contracts(
        &declared,
        &free,
        &["keyspaces.dropped ok/breaks safe", "type.changed breaks/breaks dangerous"],
    );
}

#[test]
fn the_truth_and_what_is_built_from_it_do_not_change_places() {
    let of = |role: Value| {
        json!({"keyspaces": {
        "a": {"key": "a.{id}"}, "b": {"key": "b.{id}"}, "c": role}})
    };
    let source = of(json!({"key": "c.{id}"}));
    let derived = |from: &str| of(json!({"key": "c.{id}", "role": "derived", "from": [from]}));
    check_resource(source.clone(), derived("a"), &["role.changed breaks/breaks dangerous"]);
    check_resource(derived("a"), source, &["role.changed breaks/breaks dangerous"]);
    check_resource(derived("a"), derived("b"), &["role.sources breaks/ok dangerous"]);
}

#[test]
fn keeping_less_is_dangerous() {
    let kept = |retention: Value| keyspace(json!({"key": "e.{at:time}.{day:date}", "retention": retention}));
    let months = |keep: u64| kept(json!({"segment": "at", "bucket": "month", "keep": keep}));
    let all = key("e.{at:time}.{day:date}");
    for (old, new, code) in [
        (all.clone(), months(3), "retention.added"),
        (months(3), months(2), "retention.lowered"),
        (months(3), kept(json!({"segment": "at", "bucket": "day", "keep": 3})), "retention.changed"),
        (months(3), kept(json!({"segment": "day", "bucket": "month", "keep": 3})), "retention.changed"),
    ] {
        let of = |resource: Value| contract(json!({"Thing": true}), resource);
        let found = diff(&of(old), &of(new));
        assert_eq!(shown(&found), [format!("{code} breaks/ok dangerous")]);
        assert_eq!(found.findings[0].question, Some(Question::Retained));
    }
    check_resource(months(2), months(3), &["retention.raised ok/ok safe"]);
    check_resource(months(2), all, &["retention.raised ok/ok safe"]);
}

#[test]
fn a_keyspace_has_its_own_time_to_live() {
    let of = |ms: u64| keyspace(json!({"key": "e.{id}", "ttlMs": ms}));
    check_resource(of(5), of(6), &["ttl.raised ok/ok safe"]);
    check_resource(of(6), of(5), &["ttl.lowered ok/ok safe"]);
    // What it has from its resource is told once.
    let inherited = |ms: u64| json!({"ttlMs": ms, "keyspaces": {"event": {"key": "e.{id}"}}});
    check_resource(inherited(6), inherited(5), &["ttl.lowered breaks/ok dangerous"]);
}

#[test]
fn access_paths_do_nothing_to_what_is_stored() {
    let of = |access: Value| keyspace(json!({"key": "e.{day:date}.{id}", "access": access}));
    let day = |limit: u64| json!({"byDay": {"given": ["day"], "limit": limit}});
    check_resource(of(json!({})), of(day(5)), &["access.added ok/ok safe"]);
    check_resource(of(day(5)), of(day(6)), &["access.changed ok/ok safe"]);
    check_resource(of(day(5)), of(json!({})), &["access.removed ok/ok safe"]);
}
