//! Contracts through a store, on every engine. What they do in detail is tested in `pleach-stores`.

use std::time::Duration;

use pleach::contract::evolution::Verdict;
use pleach::contract::{Contract, ContractId, Notation};
use pleach::state::STATE_BUCKET;
use pleach::stores::{
    Applied, ApplyOptions, AuthorityError, KvError, KvEvent, KvWriteError, PlanOptions, QueryOptions, Read,
    SYSTEM_BUCKET,
};
use pleach::{EngineError, Error, ErrorKind, Expiry, GetOptions, Origin, PutOptions, Reads};
use serde::{Deserialize, Serialize};

use crate::given::Given;

/// Notes whose texts have up to so many characters.
fn notes(length: u64) -> Contract {
    let text = format!(
        r#"
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes of people
schemas:
  Note: {{type: object, properties: {{text: {{type: string, maxLength: {length}}}}}, required: [text]}}
resources:
  kv:
    notes: {{purpose: All notes, schema: {{schema: Note}}, history: 2}}
"#
    );
    Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract
}

async fn accepted(given: &Given, contract: &Contract) -> Applied {
    let contracts = given.store.contracts();
    let plan = contracts.plan(contract, PlanOptions::default()).await.unwrap();
    contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap()
}

pub(crate) async fn a_contract_guards_its_buckets(given: Given) {
    let applied = accepted(&given, &notes(100)).await;
    let notes = given.store.bucket(&applied.bindings["notes"].bucket).await.unwrap();
    notes.put("one", r#"{"text": "hello"}"#).await.unwrap();
    let error = notes.put("one", "hello").await.unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::BrokenContract { .. })), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let system = given.store.bucket(SYSTEM_BUCKET).await.unwrap();
    assert!(system.put("store", "{}").await.is_err());
    assert!(given.store.delete_bucket(notes.name()).await.is_err());
    // Past the guards, on record.
    let glass = given.store.break_glass("ann", "a test").unwrap();
    glass.bucket(notes.name()).await.unwrap().put("one", "hello").await.unwrap();
    assert_eq!(given.store.contracts().broken_glass().await.unwrap().len(), 1);
}

pub(crate) async fn a_dangerous_contract_is_stopped_by_its_plan(given: Given) {
    let applied = accepted(&given, &notes(100)).await;
    let bucket = given.store.bucket(&applied.bindings["notes"].bucket).await.unwrap();
    for number in 0..20 {
        let text = "x".repeat(number);
        bucket.put(format!("n{number}"), format!(r#"{{"text": "{text}"}}"#)).await.unwrap();
    }
    let contracts = given.store.contracts();
    let plan = contracts.plan(&notes(9), PlanOptions::default()).await.unwrap();
    assert_eq!(plan.verdict(), Verdict::Dangerous);
    assert_eq!(plan.dangers().next().unwrap().answer.as_ref().unwrap().count, 10);
    let error = contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unacknowledged { .. }), "{error:?}");
    for number in 10..20 {
        // What the history keeps stands against the contract, too.
        bucket.purge(format!("n{number}")).await.unwrap();
        bucket.put(format!("n{number}"), r#"{"text": "cut"}"#).await.unwrap();
    }
    assert_eq!(accepted(&given, &notes(9)).await.version, 2);
    assert!(bucket.put("n0", r#"{"text": "much too long"}"#).await.is_err());
}

pub(crate) async fn of_two_plans_the_second_to_be_applied_has_moved(given: Given) {
    let contracts = given.store.contracts();
    let mut plans = Vec::new();
    for length in [5, 6] {
        plans.push(contracts.plan(&notes(length), PlanOptions::default()).await.unwrap());
    }
    contracts.apply(&plans[0], ApplyOptions::by("ann")).await.unwrap();
    let error = contracts.apply(&plans[1], ApplyOptions::by("bob")).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Moved { .. }), "{error:?}");
    let lineage = ContractId::parse("acme.notes@v1").unwrap();
    let status = contracts.status(&lineage).await.unwrap().unwrap();
    assert_eq!((status.authority.version, status.is_unfinished), (1, false));
}

pub(crate) async fn a_service_reads_and_writes_with_types(given: Given) {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        text: String,
    }
    let error = given.store.service(&notes(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    accepted(&given, &notes(10)).await;
    let store = given.store.service(&notes(10)).await.unwrap().kv("notes").unwrap();
    let notes = store.traced("test").unwrap().entries::<Note>().unwrap();
    let mut watch = notes.watch().await.unwrap();
    let first = notes.create("one", &Note { text: "hello".into() }).await.unwrap();
    let Some(Read::Current(note)) = notes.get("one").await.unwrap() else { panic!("it is current") };
    assert_eq!((note.value.text.as_str(), note.revision), ("hello", first));
    let envelope = note.envelope().unwrap();
    assert_eq!((envelope.version.as_str(), envelope.trace.as_deref()), ("v1", Some("test")));
    assert_eq!(envelope.writer, store.digest().to_string());
    let Some(KvEvent::Value { read, .. }) = watch.next().await.unwrap() else { panic!("a value was put") };
    assert_eq!(read.revision(), first);
    let refused = notes.update("one", &Note { text: "much too long".into() }, first).await.unwrap_err();
    assert!(matches!(refused, KvWriteError::Failed(KvError::Refused { .. })), "{refused:?}");
    notes.update("one", &Note { text: "hi".into() }, first).await.unwrap();
    let lost = notes.delete_seen("one", first).await.unwrap_err();
    assert!(matches!(lost, KvWriteError::Conflict(_)), "{lost:?}");
    let page = notes.scan(QueryOptions::default()).await.unwrap();
    assert_eq!(page.entries.len(), 1);
}

/// Typed writes say who wrote, as raw ones do.
pub(crate) async fn typed_writes_carry_the_origin_of_their_store(given: Given) {
    accepted(&given, &notes(100)).await;
    let origin = Origin { address: Some("10.0.0.7".into()), server: Some("n1".into()), cluster: None };
    let store = given.store.with_origin(&origin).unwrap().service(&notes(100)).await.unwrap();
    let store = store.kv("notes").unwrap();
    let entries = store.entries::<serde_json::Value>().unwrap();
    let note = serde_json::json!({"text": "hello"});
    entries.put("one", &note).await.unwrap();
    store.batch().put(&entries, "two", &note).delete(&entries, "three").commit().await.unwrap();
    let bucket = given.store.bucket(store.bucket()).await.unwrap();
    for key in ["one", "two"] {
        let stored = bucket.get(key).await.unwrap().unwrap();
        assert_eq!(Origin::of(&stored.headers), origin, "{key}");
        assert!(stored.headers.get("Pleach-Version").is_some());
    }
    assert_eq!(Origin::of(&bucket.history("three").await.unwrap()[0].headers), origin);
    // A store without one says nothing.
    let plain = given.store.service(&notes(100)).await.unwrap().kv("notes").unwrap();
    plain.entries().unwrap().put("one", &note).await.unwrap();
    assert_eq!(Origin::of(&bucket.get("one").await.unwrap().unwrap().headers), Origin::default());
}

/// What users and devices have stored is read and written by their sessions, by copies of whole buckets, and past a broken
/// glass.
pub(crate) async fn state_is_not_read_or_written_by_hand(given: Given) {
    given.store.state().await.unwrap();
    // A handle that was asked for by creating what is there is as good as none.
    let config =
        given.store.buckets().await.unwrap().into_iter().find(|info| info.name.as_str() == STATE_BUCKET);
    let state = given.store.create_bucket_with(STATE_BUCKET, config.unwrap().config).await.unwrap();
    let promised = GetOptions { reads: Some(Reads::Any) };
    for error in [
        given.store.bucket(STATE_BUCKET).await.map(drop).unwrap_err(),
        state.get("u.x.y.z").await.map(drop).unwrap_err(),
        state.get_with("u.x.y.z", promised).await.map(drop).unwrap_err(),
        state.history("u.x.y.z").await.map(drop).unwrap_err(),
        state.watch(">").await.map(drop).unwrap_err(),
        state.put("u.x.y.z", "{}").await.map(drop).unwrap_err(),
        state.delete("u.x.y.z").await.map(drop).unwrap_err(),
        given.store.delete_bucket(STATE_BUCKET).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotAllowed, "{error:?}");
        assert!(error.help().contains("pleach state admin"), "{}", error.help());
    }
    let copies = given.store.for_copies();
    copies.bucket(STATE_BUCKET).await.unwrap().put("u.x.y.z", "{}").await.unwrap();
    let glass = given.store.break_glass("ann", "a repair").unwrap();
    glass.bucket(STATE_BUCKET).await.unwrap().delete("u.x.y.z").await.unwrap();
    let acts = given.store.contracts().broken_glass().await.unwrap();
    assert_eq!(acts.iter().map(|act| act.bucket.as_str()).collect::<Vec<_>>(), [STATE_BUCKET]);
    // Copies keep contracts, and the records of the store itself stay its own.
    assert!(copies.bucket(SYSTEM_BUCKET).await.unwrap().put("store", "{}").await.is_err());
    let applied = accepted(&given, &notes(100)).await;
    assert!(
        copies.bucket(&applied.bindings["notes"].bucket).await.unwrap().put("one", "no note").await.is_err()
    );
}

fn contract_with(keyspaces: &str) -> Contract {
    let text = format!(
        r#"
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes of people
schemas:
  Note: {{type: object}}
resources:
  kv:
    notes: {{purpose: All notes, schema: {{schema: Note}}, keyspaces: {keyspaces}}}
"#
    );
    Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract
}

/// Whoever writes, and whatever expiry they ask for.
pub(crate) async fn no_value_outlives_the_time_to_live_of_its_keyspace(given: Given) {
    let contract = contract_with("{brief: {key: 'brief.{id}', ttlMs: 60000}}");
    let applied = accepted(&given, &contract).await;
    let bucket = given.store.bucket(&applied.bindings["notes"].bucket).await.unwrap();
    let hour = Duration::from_secs(3600);
    let asked = [
        ("brief.a", Expiry::Bucket),
        ("brief.b", Expiry::After(hour)),
        ("brief.c", Expiry::At(given.store.now().saturating_add(hour))),
    ];
    for (key, expiry) in asked {
        bucket.put_with(key, "{}", PutOptions { expiry, ..PutOptions::default() }).await.unwrap();
        let entry = bucket.get(key).await.unwrap().unwrap();
        let lives = entry.expires.unwrap().since(entry.time);
        assert!((59..=61).contains(&lives.as_secs()), "{key} lives for {lives:?}");
    }
}

/// Values that were there before the contract have the version that their keyspace had when the bucket was adopted.
pub(crate) async fn adopted_values_have_the_version_of_their_keyspace(given: Given) {
    let old = given.store.create_bucket("old").await.unwrap();
    old.put("note.a", "{}").await.unwrap();
    old.put("lock.a", "{}").await.unwrap();
    let contract = contract_with(
        "{note: {key: 'note.{id}'}, lock: {key: 'lock.{id}', schema: {schema: Note}, version: k7}}",
    );
    let adopt = [("notes".to_owned(), old.name().clone())].into();
    let options = PlanOptions { adopt, ..PlanOptions::default() };
    let plan = given.store.contracts().plan(&contract, options).await.unwrap();
    given.store.contracts().apply(&plan, ApplyOptions::by("ann")).await.unwrap();
    let notes = given.store.service(&contract).await.unwrap().kv("notes").unwrap();
    for key in ["note.a", "lock.a"] {
        let read = notes.get(&pleach::Key::parse(key).unwrap()).await.unwrap();
        assert!(matches!(read, Some(Read::Current(_))), "{read:?}");
    }
}
