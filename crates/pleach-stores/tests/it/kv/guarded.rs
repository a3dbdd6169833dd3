use pleach_contract::{Contract, Notation};
use pleach_engine::EngineError;
use pleach_stores::{AuthorityError, Keyspace, KvError, PlanOptions, Read, Service};
use serde_json::{Value, json};

use crate::given::{Given, NOTES};

/// Notes with a schema and versions.
fn contract(version: &str, schema: &str, accepted: &str) -> Contract {
    let text = format!(
        r#"{{"format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes",
        "description": "Notes", "schemas": {{"Note": {schema}, "Old": {{"type": "object"}}}},
        "resources": {{"kv": {{"notes": {{"purpose": "All notes", "schema": {{"schema": "Note"}},
            "version": "{version}", "acceptedVersions": {accepted},
            "keyspaces": {{"note": {{"key": "u.{{user}}.{{number:uint(4)}}"}}}}}}}}}}}}"#
    );
    Contract::parse(text.as_bytes(), Notation::Json).unwrap().contract
}

fn first() -> Contract {
    contract("v1", r#"{"type": "object"}"#, "{}")
}

fn second() -> Contract {
    let titled = r#"{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}"#;
    contract("v2", titled, r#"{"v1": {"schema": "Old"}}"#)
}

/// Runs a test on every engine.
fn on_every_engine(test: impl AsyncFn(Given)) {
    pollster::block_on(async {
        test(Given::in_memory()).await;
        test(Given::embedded()).await;
    });
}

async fn notes(given: &Given, contract: &Contract) -> Result<Keyspace<Value>, KvError> {
    Service::bind(&given.engine, contract).await?.kv("notes")?.keyspace("note")
}

fn key(number: u64) -> [pleach_stores::key::Value<'static>; 2] {
    ["ann".into(), number.into()]
}

#[test]
fn code_is_bound_to_the_buckets_of_its_contract() {
    on_every_engine(async |given| {
        let unknown = notes(&given, &first()).await.unwrap_err();
        assert!(
            matches!(&unknown, KvError::Authority(error)
            if matches!(**error, AuthorityError::UnknownLineage { .. })),
            "{unknown:?}"
        );
        given.insist(&first()).await;
        let ours = notes(&given, &first()).await.unwrap();
        ours.create(&key(1), &json!({"text": "milk"})).await.unwrap();
        assert!(matches!(ours.get(&key(1)).await.unwrap(), Some(Read::Current(_))));
        let refused = ours.put(&key(1), &json!("milk")).await.unwrap_err();
        assert!(matches!(refused, KvError::Refused { .. }), "{refused:?}");
        let other = notes(&given, &second()).await.unwrap_err();
        assert!(
            matches!(&other, KvError::Authority(error)
            if matches!(**error, AuthorityError::NotAccepted { .. })),
            "{other:?}"
        );
    });
}

#[test]
fn old_and_new_code_share_a_bucket_while_a_version_is_rolled_out() {
    on_every_engine(async |given| {
        given.insist(&first()).await;
        let old = notes(&given, &first()).await.unwrap();
        old.put(&key(1), &json!({})).await.unwrap();
        given.insist(&second()).await;
        // Code that was there before, and code of the old version that starts now.
        old.put(&key(2), &json!({})).await.unwrap();
        notes(&given, &first()).await.unwrap().put(&key(3), &json!({})).await.unwrap();
        let new = notes(&given, &second()).await.unwrap();
        new.put(&key(4), &json!({"title": "four"})).await.unwrap();
        for number in 1..=3 {
            let read = new.get(&key(number)).await.unwrap();
            assert!(matches!(read, Some(Read::MigrationRequired(_))), "{number}: {read:?}");
        }
        let lazily = new.migrate_lazily(|_, _| Ok(json!({"title": "untitled"})));
        assert!(matches!(lazily.get(&key(1)).await.unwrap(), Some(Read::Current(_))));
        // What the old code cannot read, it says so about.
        assert!(matches!(old.get(&key(4)).await, Err(KvError::Stored { .. })));
    });
}

#[test]
fn a_typed_write_keeps_the_contract_that_is_about_to_be_in_force() {
    on_every_engine(async |given| {
        given.insist(&first()).await;
        let ours = notes(&given, &first()).await.unwrap();
        let strict = r#"{"type": "object", "properties": {"text": {"type": "string", "maxLength": 3}}}"#;
        let options = PlanOptions { guard: true, ..PlanOptions::default() };
        given.contracts.plan(&contract("v1", strict, "{}"), options).await.unwrap();
        ours.put(&key(1), &json!({"text": "tea"})).await.unwrap();
        let refused = ours.put(&key(1), &json!({"text": "coffee"})).await.unwrap_err();
        assert!(matches!(&refused, KvError::Engine(EngineError::BrokenContract { .. })), "{refused:?}");
        assert_eq!(given.get(NOTES, "u.ann.0001").await.unwrap().value, r#"{"text":"tea"}"#);
    });
}

/// The first contract, with a time to live of its only keyspace and another version.
fn living(version: &str, milliseconds: u64) -> Contract {
    let accepted = if version == "v1" { json!({}) } else { json!({"v1": {"schema": "Note"}}) };
    let resource = json!({
        "purpose": "All notes", "schema": {"schema": "Note"}, "version": version, "acceptedVersions": accepted,
        "keyspaces": {"note": {"key": "u.{user}.{number:uint(4)}", "ttlMs": milliseconds}},
    });
    crate::given::contract(json!({"Note": {"type": "object"}}), json!({"notes": resource}))
}

/// To upgrade a value is not to use it, so it lives no longer for that; nor longer than the contract grants now.
#[test]
fn an_upgraded_value_lives_no_longer_than_its_keyspace_grants() {
    const MINUTE: u64 = 60_000;
    on_every_engine(async |given| {
        for (before, wanted) in
            [(0, Some(MINUTE)), (60 * MINUTE, Some(MINUTE)), (MINUTE / 2, Some(MINUTE / 2))]
        {
            let given = given.anew();
            given.insist(&living("v1", before)).await;
            notes(&given, &living("v1", before)).await.unwrap().put(&key(1), &json!({})).await.unwrap();
            given.insist(&living("v2", MINUTE)).await;
            let new = notes(&given, &living("v2", MINUTE)).await.unwrap();
            let Some(Read::Current(upgraded)) =
                new.migrate_lazily(|value, _| Ok(value)).get(&key(1)).await.unwrap()
            else {
                panic!("it was upgraded")
            };
            let now = pleach_engine::Clock::now(&*given.clock);
            let wanted = wanted.map(|wanted| now.saturating_add(std::time::Duration::from_millis(wanted)));
            assert_eq!(given.get(NOTES, "u.ann.0001").await.unwrap().expires, wanted, "{before}");
            assert_eq!(upgraded.expires, wanted, "{before}");
        }
    });
}
