//! Every cell of the rules about contracts and their resources.

use serde_json::{Value, json};

use super::given::{cases, check_contracts, check_resource, contract, shown, whole};
use crate::evolution::{Question, Subject, Verdict, diff};

fn kv(resources: Value) -> crate::Contract {
    whole(
        json!({"schemas": {"Thing": {"type": "object"}, "Other": {"type": "string"}}, "resources": {"kv": resources}}),
    )
}

fn resource(schema: &str) -> Value {
    json!({"purpose": "Things", "schema": {"schema": schema}})
}

fn state(store: Value) -> crate::Contract {
    whole(json!({
        "schemas": {"One": {"type": "object"}, "Two": {"type": "object", "required": ["a"]}},
        "state": {"drafts": store}}))
}

#[test]
fn the_same_contract_has_no_findings() {
    let found = diff(&cases("Cases", "Cases"), &cases("Cases", "Cases"));
    assert_eq!((found.findings.len(), found.more, found.verdict()), (0, false, None));
}

#[test]
fn another_id_is_another_lineage_and_nothing_else_is_compared() {
    let found = diff(&cases("Cases", "Cases"), &cases("acme.cases@v1", "acme.cases@v2"));
    assert_eq!(shown(&found), ["contract.id breaks/breaks dangerous"]);
}

#[test]
fn texts_for_people_are_safe() {
    check_contracts(
        &cases("Cases", "Cases"),
        &cases("displayName: Cases", "displayName: Files"),
        &["contract.prose ok/ok safe"],
    );
    check_resource(json!({}), json!({"purpose": "Something else"}), &["contract.prose ok/ok safe"]);
}

#[test]
fn the_kind_of_program_decides_whose_state_it_is() {
    let of = |kind: &str, state: Value| {
        whole(json!({"kind": kind, "schemas": {"One": {"type": "object"}}, "state": state}))
    };
    check_contracts(&of("app", json!({})), &of("device", json!({})), &["contract.kind ok/ok safe"]);
    let store = json!({"drafts": {"kind": "value", "schema": {"schema": "One"}}});
    check_contracts(&of("app", store.clone()), &of("device", store), &["contract.kind breaks/ok dangerous"]);
}

#[test]
fn an_alias_that_is_added_is_safe() {
    check_contracts(
        &kv(json!({"a": resource("Thing")})),
        &kv(json!({"a": resource("Thing"), "b": resource("Other")})),
        &["resource.added ok/ok safe"],
    );
}

#[test]
fn an_alias_that_is_removed_or_renamed_is_dangerous() {
    let old = kv(json!({"a": resource("Thing"), "b": resource("Other")}));
    let found = diff(&old, &kv(json!({"a": resource("Thing")})));
    assert_eq!(shown(&found), ["resource.removed breaks/breaks dangerous"]);
    assert_eq!(found.findings[0].question, Some(Question::Present));
    let found = diff(&old, &kv(json!({"a": resource("Thing"), "c": resource("Other")})));
    assert_eq!(shown(&found), ["resource.renamed breaks/breaks dangerous"]);
    assert!(found.findings[0].message.contains("`c` looks renamed from `b`"), "{found:?}");
    // Another schema is another thing.
    check_contracts(
        &old,
        &kv(json!({"a": resource("Thing"), "c": resource("Thing")})),
        &["resource.added ok/ok safe", "resource.removed breaks/breaks dangerous"],
    );
}

#[test]
fn more_room_is_safe() {
    check_resource(json!({"history": 2}), json!({"history": 3}), &["history.raised ok/ok safe"]);
    check_resource(json!({"maxValueBytes": 5}), json!({"maxValueBytes": 6}), &["size.raised ok/ok safe"]);
    check_resource(json!({"maxValueBytes": 5}), json!({}), &["size.raised ok/ok safe"]);
    check_resource(json!({"ttlMs": 5}), json!({"ttlMs": 6}), &["ttl.raised ok/ok safe"]);
    check_resource(json!({"ttlMs": 5}), json!({}), &["ttl.raised ok/ok safe"]);
    check_resource(json!({"required": true}), json!({"required": false}), &["resource.required ok/ok safe"]);
    check_resource(json!({"required": false}), json!({"required": true}), &["resource.required ok/ok safe"]);
}

#[test]
fn less_room_is_dangerous_and_asks_what_would_go() {
    let cells = [
        (json!({"history": 3}), json!({"history": 2}), "history.lowered", Question::Deeper { history: 2 }),
        (json!({"ttlMs": 6}), json!({"ttlMs": 5}), "ttl.lowered", Question::Older { ms: 5 }),
        (json!({}), json!({"ttlMs": 5}), "ttl.lowered", Question::Older { ms: 5 }),
        (
            json!({"maxValueBytes": 6}),
            json!({"maxValueBytes": 5}),
            "size.lowered",
            Question::Larger { bytes: 5 },
        ),
        (json!({}), json!({"maxValueBytes": 5}), "size.lowered", Question::Larger { bytes: 5 }),
    ];
    for (old, new, code, question) in cells {
        let of = |resource: &Value| contract(json!({"Thing": {"type": "object"}}), resource.clone());
        let found = diff(&of(&old), &of(&new));
        assert_eq!(shown(&found), [format!("{code} breaks/ok dangerous")]);
        assert_eq!(found.findings[0].question, Some(question));
        assert_eq!(found.verdict(), Some(Verdict::Dangerous));
    }
}

#[test]
fn a_schema_whose_content_changed_under_its_name_is_noticed() {
    let of = |kind: &str| contract(json!({"Thing": {"type": kind}}), json!({}));
    check_contracts(&of("integer"), &of("number"), &["type.widened ok/breaks safe"]);
    check_contracts(&of("integer"), &of("string"), &["type.changed breaks/breaks dangerous"]);
}

#[test]
fn a_schema_that_only_has_another_name_is_nothing() {
    let of = |name: &str| {
        whole(json!({"schemas": {name: {"type": "object"}}, "resources": {"kv": {"a": resource(name)}}}))
    };
    check_contracts(&of("Thing"), &of("Item"), &[]);
}

#[test]
fn stores_are_added_removed_and_renamed() {
    let empty = whole(json!({}));
    let one = state(json!({"kind": "map", "schema": {"schema": "One"}}));
    check_contracts(&empty, &one, &["state.added ok/ok safe"]);
    check_contracts(&one, &empty, &["state.removed breaks/ok dangerous"]);
    let renamed = whole(json!({"schemas": {"One": {"type": "object"}},
        "state": {"notes": {"kind": "map", "schema": {"schema": "One"}}}}));
    check_contracts(&one, &renamed, &["state.renamed breaks/breaks dangerous"]);
}

#[test]
fn one_value_is_not_many() {
    let of = |kind: &str| state(json!({"kind": kind, "schema": {"schema": "One"}}));
    check_contracts(&of("value"), &of("map"), &["state.kind breaks/breaks dangerous"]);
    check_contracts(&of("map"), &of("value"), &["state.kind breaks/breaks dangerous"]);
}

#[test]
fn a_version_that_is_raised_and_accepts_the_old_one_is_safe() {
    let one = state(json!({"kind": "map", "schema": {"schema": "One"}}));
    let both = state(json!({"kind": "map", "schema": {"schema": "Two"}, "stateVersion": "v2",
        "acceptedVersions": {"v1": {"schema": "One"}}}));
    check_contracts(&one, &both, &["version.raised ok/breaks safe"]);
    let alone = state(json!({"kind": "map", "schema": {"schema": "Two"}, "stateVersion": "v2"}));
    let found = diff(&one, &alone);
    assert_eq!(shown(&found), ["version.unaccepted breaks/breaks dangerous"]);
    assert_eq!(found.findings[0].path, "/state/drafts/stateVersion");
    let found = diff(&both, &alone);
    assert_eq!(shown(&found), ["version.dropped scan/ok scan"]);
    let subject = Subject::State { store: "drafts".into(), version: Some("v1".into()) };
    assert_eq!(
        (&found.findings[0].subject, &found.findings[0].question),
        (&subject, &Some(Question::Present))
    );
    check_contracts(&alone, &both, &["version.accepted ok/ok safe"]);
}

#[test]
fn every_version_that_may_be_stored_is_compared_with_its_own_schema() {
    let of = |old: &str| {
        state(json!({"kind": "map", "schema": {"schema": "One"}, "stateVersion": "v2",
        "acceptedVersions": {"v1": {"schema": old}}}))
    };
    let found = diff(&of("One"), &of("Two"));
    assert_eq!(shown(&found), ["required.added scan/ok scan"]);
    let subject = Subject::State { store: "drafts".into(), version: Some("v1".into()) };
    assert_eq!(found.findings[0].subject, subject);
}

#[test]
fn versions_of_resources_and_keyspaces_are_versions_too() {
    let of = |version: Value| {
        let schemas = json!({"Thing": {"type": "object"}, "Old": {"type": "object"}});
        contract(schemas, version)
    };
    let raised = json!({"version": "v2", "acceptedVersions": {"v1": {"schema": "Old"}}});
    check_contracts(&of(json!({})), &of(raised), &["version.raised ok/breaks safe"]);
    check_contracts(
        &of(json!({})),
        &of(json!({"version": "v2"})),
        &["version.unaccepted breaks/breaks dangerous"],
    );
    let spaces = |version: &str| of(json!({"keyspaces": {"a": {"key": "a.{id}", "version": version}}}));
    let found = diff(&spaces("v1"), &spaces("v2"));
    assert_eq!(shown(&found), ["version.unaccepted breaks/breaks dangerous"]);
    assert_eq!(found.findings[0].path, "/resources/kv/things/keyspaces/a/version");
}

/// A resource of two keyspaces, with more.
fn members(more: Value) -> crate::Contract {
    let mut resource = json!({"keyspaces": {
        "note": {"key": "note.{id:ulid}"}, "tag": {"key": "tag.{tag}"}, "copy": {"key": "copy.{id:ulid}"}}});
    if let (Some(resource), Value::Object(more)) = (resource.as_object_mut(), more) {
        resource.extend(more);
    }
    let schema = json!({"type": "object", "properties": {"due": {"type": "string"}}});
    contract(json!({"Thing": schema}), resource)
}

#[test]
fn indexes_are_added_made_unique_changed_and_removed() {
    let index = |more: Value| {
        let mut index = json!({"of": "note", "key": "due.{due:date}.{id:ulid}", "values": {"due": "/due"}});
        if let (Some(index), Value::Object(more)) = (index.as_object_mut(), more) {
            index.extend(more);
        }
        members(json!({"indexes": {"due": index}}))
    };
    let plain = index(json!({}));
    check_contracts(&members(json!({})), &plain, &["index.added ok/ok safe"]);
    check_contracts(&plain, &members(json!({})), &["index.removed ok/breaks dangerous"]);
    check_contracts(
        &members(json!({})),
        &index(json!({"unique": true})),
        &["index.added ok/ok safe", "index.unique scan/ok scan"],
    );
    let found = diff(&plain, &index(json!({"unique": true})));
    assert_eq!(shown(&found), ["index.unique scan/ok scan"]);
    assert_eq!(found.findings[0].question, Some(Question::Twice { index: "due".into() }));
    check_contracts(&index(json!({"unique": true})), &plain, &["index.relaxed ok/breaks safe"]);
    check_contracts(&plain, &index(json!({"maxLagMs": 100})), &["index.lag ok/ok safe"]);
    for change in [
        json!({"of": "copy"}),
        json!({"key": "due.{id:ulid}.{due:date}"}),
        json!({"values": {"due": "/until"}}),
    ] {
        check_contracts(&plain, &index(change), &["index.changed breaks/breaks dangerous"]);
    }
}

#[test]
fn a_wider_type_of_what_keys_are_made_of_is_dangerous() {
    let of = |kind: Value, pointer: &str| {
        let schema = json!({"type": "object", "$defs": {"Day": {"type": kind}},
            "properties": {"due": {"$ref": "#/$defs/Day"}, "at": {"$ref": "#/$defs/Day"}}});
        contract(
            json!({"Thing": schema}),
            json!({
            "keyspaces": {"note": {"key": "note.{id:ulid}"}},
            "indexes": {"due": {"of": "note", "key": "due.{due:date}.{id:ulid}", "values": {"due": pointer}}}}),
        )
    };
    let (text, nullable) = (json!("string"), json!(["string", "null"]));
    for pointer in ["/due", "/at"] {
        check_contracts(
            &of(text.clone(), pointer),
            &of(nullable.clone(), pointer),
            &["type.widened ok/breaks dangerous", "type.widened ok/breaks safe"],
        );
    }
    check_contracts(&of(text, "/other"), &of(nullable, "/other"), &["type.widened ok/breaks safe"]);
}

#[test]
fn relationships_are_added_changed_and_removed() {
    let link = |more: Value| {
        let mut link = json!({"from": "note", "to": "tag", "forward": "nt.{id:ulid}.{tag}", "reverse": "tn.{tag}.{id:ulid}"});
        if let (Some(link), Value::Object(more)) = (link.as_object_mut(), more) {
            link.extend(more);
        }
        members(json!({"relationships": {"tags": link}}))
    };
    let plain = link(json!({}));
    check_contracts(&members(json!({})), &plain, &["relationship.added ok/ok safe"]);
    check_contracts(&plain, &members(json!({})), &["relationship.removed breaks/breaks dangerous"]);
    check_contracts(&plain, &link(json!({"onDelete": "unlink"})), &["relationship.delete ok/ok safe"]);
    for change in [
        json!({"from": "copy"}),
        json!({"to": "copy"}),
        json!({"forward": "links.{id:ulid}.{tag}"}),
        json!({"reverse": "links.{tag}.{id:ulid}"}),
    ] {
        check_contracts(&plain, &link(change), &["relationship.changed breaks/breaks dangerous"]);
    }
}

#[test]
fn counters_are_added_changed_and_removed() {
    let counter = |more: Value| {
        let mut counter = json!({"of": "note", "key": "count.notes", "shards": 4});
        if let (Some(counter), Value::Object(more)) = (counter.as_object_mut(), more) {
            counter.extend(more);
        }
        members(json!({"counters": {"notes": counter}}))
    };
    let plain = counter(json!({}));
    check_contracts(&members(json!({})), &plain, &["counter.added ok/ok safe"]);
    check_contracts(&plain, &members(json!({})), &["counter.removed ok/breaks dangerous"]);
    check_contracts(&plain, &counter(json!({"shards": 8})), &["counter.shards ok/ok safe"]);
    for change in [
        json!({"shards": 2}),
        json!({"of": "copy"}),
        json!({"key": "count.all"}),
        json!({"when": {"pointer": "/due", "equals": "today"}}),
    ] {
        check_contracts(&plain, &counter(change), &["counter.changed breaks/breaks dangerous"]);
    }
}

#[test]
fn groups_hold_together_more_or_less() {
    let group = |names: &[&str]| members(json!({"atomic": {"both": {"members": names}}}));
    check_contracts(&members(json!({})), &group(&["note", "tag"]), &["atomic.tightened ok/ok safe"]);
    check_contracts(
        &group(&["note", "tag"]),
        &group(&["note", "tag", "copy"]),
        &["atomic.tightened ok/ok safe"],
    );
    check_contracts(
        &group(&["note", "tag", "copy"]),
        &group(&["note", "tag"]),
        &["atomic.loosened ok/breaks safe"],
    );
    check_contracts(&group(&["note", "tag"]), &members(json!({})), &["atomic.loosened ok/breaks safe"]);
}

#[test]
fn the_most_serious_comes_first() {
    let old = kv(json!({"a": resource("Thing"), "b": resource("Other")}));
    let new =
        whole(json!({"schemas": {"Thing": {"type": "object", "required": ["x"]}}, "displayName": "Others",
        "resources": {"kv": {"a": resource("Thing")}}}));
    let found = diff(&old, &new);
    assert_eq!(
        shown(&found),
        [
            "resource.removed breaks/breaks dangerous",
            "required.added scan/ok scan",
            "contract.prose ok/ok safe",
        ]
    );
    for finding in &found.findings {
        assert!(!finding.reason.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    }
}
