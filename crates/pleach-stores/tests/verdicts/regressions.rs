//! Small cases that once went wrong, and cases that show that the checker can fail.

use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::judge::Judge;
use crate::play::{How, play};
use crate::story::{Act, Story};
use crate::tally::Tally;

impl Story {
    /// Plans a contract, and applies it if it is safe.
    fn safely(self, document: Value) -> Self {
        self.evolving(document, false)
    }

    /// Plans a contract, and applies it whatever the plan says.
    fn anyway(self, document: Value) -> Self {
        self.evolving(document, true)
    }

    fn evolving(mut self, document: Value, insists: bool) -> Self {
        self.documents.push(document);
        let document = self.documents.len() - 1;
        self.acts.push(Act::Evolve { document, insists, meanwhile: Vec::new() });
        self
    }

    fn put(mut self, key: &str, value: Value) -> Self {
        let (alias, key) = ("notes".into(), key.into());
        self.acts.push(Act::Put { alias, key, version: None, value, past_guard: false });
        self
    }

    fn put_past_guard(mut self, key: &str, value: Value) -> Self {
        let (alias, key) = ("notes".into(), key.into());
        self.acts.push(Act::Put { alias, key, version: None, value, past_guard: true });
        self
    }

    fn draft(mut self, document: Value, value: Value) -> Self {
        self.documents.push(document);
        let document = self.documents.len() - 1;
        let (store, key) = ("drafts".into(), Some("a".into()));
        self.acts.push(Act::State { document, who: 0, store, key, value });
        self
    }

    fn configured(mut self, history: u8) -> Self {
        self.acts.push(Act::Configure { alias: "notes".into(), history, ttl_ms: 0 });
        self
    }

    fn played(&self, how: How) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        play(self, &Judge::default(), how, &mut tally).map(|()| tally)
    }

    /// That no plan of it is wrongly called safe.
    fn is_sound(&self) {
        if let Err(Failure { kind, text }) = self.played(How::default()) {
            panic!("{kind:?}: {text}\n{self}");
        }
    }
}

/// A contract with these schemas and resources.
fn contract(schemas: Value, resource: Value) -> Value {
    json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app",
        "displayName": "Notes", "description": "Notes", "schemas": schemas,
        "resources": {"kv": {"notes": resource}},
    })
}

/// A contract with one resource, whose values have this schema.
fn notes(schema: Value) -> Value {
    contract(json!({"S": schema}), json!({"purpose": "Notes", "schema": {"schema": "S"}}))
}

/// The same with these fields of the resource.
fn notes_with(schema: Value, more: Value) -> Value {
    let mut document = notes(schema);
    for (field, value) in more.as_object().unwrap() {
        document["resources"]["kv"]["notes"][field] = value.clone();
    }
    document
}

/// A contract with one state store.
fn drafts(schema: Value) -> Value {
    let mut document = notes(schema);
    document.as_object_mut().unwrap().remove("resources");
    document["state"] = json!({"drafts": {"kind": "map", "schema": {"schema": "S"}}});
    document
}

fn address(names: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": fields, "additionalProperties": false})
}

fn order(address: Value) -> Value {
    let place = json!({"$ref": "#/$defs/Address"});
    json!({
        "type": "object", "properties": {"billing": place, "shipping": place}, "$defs": {"Address": address},
    })
}

#[test]
fn a_definition_that_two_places_share_is_asked_about_in_both() {
    Story::default()
        .safely(notes(order(address(&["line1", "line2"]))))
        .put("a", json!({"billing": {"line2": "back door"}}))
        .safely(notes(order(address(&["line1"]))))
        .is_sound();
}

#[test]
fn a_recursive_definition_is_asked_about_at_every_depth() {
    let list = |value: Value| json!({"type": "object", "properties": {"next": {"$ref": "#"}, "value": value}, "additionalProperties": false});
    Story::default()
        .safely(notes(list(json!({}))))
        .put("a", json!({"next": {"next": {"value": "x"}}}))
        .safely(notes(list(json!({"type": "integer"}))))
        .is_sound();
}

#[test]
fn state_that_is_older_than_the_first_plan_is_looked_at() {
    Story::default().draft(drafts(json!({})), json!(1)).safely(drafts(json!({"oneOf": [{}, {}]}))).is_sound();
}

#[test]
fn keys_that_come_back_under_another_name_are_looked_at() {
    let keyspaces = |names: Value| {
        contract(
            json!({"A": {"properties": {"n": {"type": "integer"}}}, "B": {"properties": {"n": {"type": "string"}}}}),
            json!({"purpose": "Notes", "schema": {"schema": "A"}, "keyspaces": names}),
        )
    };
    let other = json!({"key": "m.{id}"});
    Story::default()
        .safely(keyspaces(json!({"k1": {"key": "n.{id}"}, "other": other})))
        .put("n.x", json!({"n": 5}))
        .anyway(keyspaces(json!({"other": other})))
        .safely(keyspaces(json!({"k2": {"key": "n.{id}", "schema": {"schema": "B"}}, "other": other})))
        .is_sound();
}

#[test]
fn versions_that_only_older_records_have_are_looked_at() {
    let versions = |version: &str, accepted: Value| {
        let more = json!({"history": 3, "version": version, "acceptedVersions": accepted});
        notes_with(json!({}), more)
    };
    Story::default()
        .safely(versions("v1", json!({})))
        .put("a", json!(1))
        .safely(versions("v2", json!({"v1": {"schema": "S"}})))
        .put("a", json!(2))
        .safely(versions("v2", json!({})))
        .is_sound();
}

#[test]
fn older_records_are_looked_at_when_a_schema_changes() {
    let history = json!({"history": 3});
    Story::default()
        .safely(notes_with(json!({}), history.clone()))
        .put("a", json!("long"))
        .put("a", json!("x"))
        .safely(notes_with(json!({"maxLength": 1}), history))
        .is_sound();
}

#[test]
fn a_bucket_that_was_changed_past_its_contract_loses_nothing_to_a_safe_plan() {
    Story::default()
        .safely(notes(json!({})))
        .configured(3)
        .put("a", json!(1))
        .put("a", json!(2))
        .safely(notes(json!({})))
        .is_sound();
}

#[test]
fn a_value_without_a_version_does_not_come_into_reach_by_a_safe_plan() {
    let keyspaces = json!({"keyspaces": {"k": {"key": "n.{id:x|y}"}}});
    Story::default()
        .safely(notes_with(json!({}), keyspaces))
        .put_past_guard("n.zz", json!([]))
        .safely(notes(json!({})))
        .is_sound();
}

#[test]
fn the_checker_reports_a_value_that_a_plan_lost() {
    let lossy = Story::default()
        .safely(notes(json!({})))
        .put("a", json!("long"))
        .safely(notes(json!({"maxLength": 1})));
    let seen = lossy.played(How::default()).unwrap();
    assert_eq!((seen.safe, seen.dangerous, seen.justified), (0, 1, 1));
    let found = lossy.played(How { believes_everything: true }).unwrap_err();
    assert_eq!(found.kind, Kind::Unreadable, "{}", found.text);
    let state = Story::default()
        .safely(drafts(json!({})))
        .draft(drafts(json!({})), json!("long"))
        .safely(drafts(json!({"maxLength": 1})));
    assert_eq!(state.played(How { believes_everything: true }).unwrap_err().kind, Kind::Unreadable);
}

#[test]
fn the_checker_reports_a_record_that_a_plan_trimmed() {
    let lossy = Story::default()
        .safely(notes_with(json!({}), json!({"history": 2})))
        .put("a", json!(1))
        .put("a", json!(2))
        .safely(notes(json!({})));
    assert_eq!(lossy.played(How { believes_everything: true }).unwrap_err().kind, Kind::Lost);
}

#[test]
fn the_checker_counts_what_is_dangerous_for_no_reason() {
    let quiet =
        Story::default().safely(notes(json!({}))).put("a", json!("x")).safely(notes(json!({"maxLength": 1})));
    assert_eq!(quiet.played(How::default()).unwrap().false_alarms, 0);
}

#[test]
fn a_story_that_fails_is_made_smaller() {
    let how = How { believes_everything: true };
    let long = Story::default()
        .safely(notes(json!({"title": "a"})))
        .put("a", json!("x"))
        .put("b", json!({"a": [1, 2]}))
        .anyway(notes(json!({"title": "b"})))
        .put("c", json!("long"))
        .safely(notes(json!({"title": "c", "maxLength": 1})));
    let failure = long.played(how).unwrap_err();
    let (story, failure) = crate::shrink::shrunk(long, failure, how);
    assert_eq!((failure.kind, story.acts.len()), (Kind::Unreadable, 3), "{story}");
}
