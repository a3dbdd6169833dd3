//! Lists that are sets, and what a stored contract may still be that a new one may not.

use serde_json::{Value, json};

use crate::evolution::diff;
use crate::{Code, Contract};

fn document(from: Value, members: Value) -> Value {
    json!({
        "format": "pleach.contract.v1", "id": "acme.things@v1", "kind": "service",
        "displayName": "Things", "description": "Things of all kinds",
        "schemas": {"Thing": {"type": "object"}},
        "resources": {"kv": {"things": {"purpose": "Things", "schema": {"schema": "Thing"},
            "keyspaces": {
                "a": {"key": "a.{id}"}, "b": {"key": "b.{id}"},
                "c": {"key": "c.{id}", "role": "derived", "from": from}},
            "atomic": {"both": {"members": members}}}}}})
}

fn contract(from: Value, members: Value) -> Contract {
    Contract::from_value(&document(from, members)).unwrap().contract
}

#[track_caller]
fn problem(value: &Value) -> (Code, String) {
    let problems = Contract::from_value(value).unwrap_err();
    assert_eq!(problems.list().len(), 1, "{problems:?}");
    (problems.list()[0].code, problems.list()[0].path.clone())
}

#[test]
fn the_order_of_a_set_changes_neither_the_digest_nor_anything_else() {
    let sorted = contract(json!(["a", "b"]), json!(["a", "b", "c"]));
    for (from, members) in
        [(json!(["b", "a"]), json!(["a", "b", "c"])), (json!(["a", "b"]), json!(["c", "a", "b"]))]
    {
        let other = contract(from, members);
        assert_eq!(other.digest(), sorted.digest());
        assert_eq!(other.canonical(), sorted.canonical());
        assert_eq!(diff(&sorted, &other).findings, []);
        assert_eq!(diff(&other, &sorted).findings, []);
    }
    let fewer = contract(json!(["a"]), json!(["a", "b", "c"]));
    assert_ne!(fewer.digest(), sorted.digest());
}

#[test]
fn a_contract_is_known_by_the_digest_that_earlier_versions_gave_it() {
    // Written by version 0.1.0, which digested `from` and `members` as they stood.
    let sorted = contract(json!(["a", "b"]), json!(["a", "b", "c"]));
    assert_eq!(sorted.digest(), sorted.digest_as_written());
    let unsorted = contract(json!(["b", "a"]), json!(["c", "a", "b"]));
    let old = unsorted.digest_as_written();
    assert_ne!(old, unsorted.digest());
    assert!(unsorted.is_called(old.as_str()) && unsorted.is_called(unsorted.digest().as_str()));
    assert!(!sorted.is_called(old.as_str()) && !sorted.is_called("other"));
}

#[test]
fn a_set_that_names_something_twice_is_refused() {
    let twice = document(json!(["a", "b", "a"]), json!(["a", "b"]));
    assert_eq!(problem(&twice), (Code::MemberRepeated, "/resources/kv/things/keyspaces/c/from/2".into()));
    let twice = document(json!(["a"]), json!(["a", "b", "b"]));
    assert_eq!(problem(&twice), (Code::MemberRepeated, "/resources/kv/things/atomic/both/members/2".into()));
}

#[test]
fn a_device_has_no_buckets() {
    let mut device = document(json!(["a"]), json!(["a", "b"]));
    device["kind"] = json!("device");
    assert_eq!(problem(&device), (Code::KindResources, "/resources/kv".into()));
    device["resources"] = json!({});
    device["state"] = json!({"things": {"kind": "map", "schema": {"schema": "Thing"}}});
    assert!(Contract::from_value(&device).is_ok());
}

#[test]
fn what_a_store_accepted_once_it_can_still_read() {
    let mut stored = document(json!(["a", "a"]), json!(["b", "b"]));
    stored["kind"] = json!("device");
    assert!(Contract::from_value(&stored).is_err());
    let read = Contract::from_stored(&stored).unwrap();
    assert_eq!(read.resources.kv["things"].keyspaces["c"].from, ["a", "a"]);
    stored["resources"]["kv"]["things"]["keyspaces"]["c"]["from"] = json!(["gone"]);
    assert!(Contract::from_stored(&stored).is_err(), "everything else is still an error");
}
