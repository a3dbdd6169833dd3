//! What two readers could understand differently, and what only has another name.

use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Batch, Engine, Operation, ScanQuery};
use pleach_stores::SYSTEM_BUCKET;
use pleach_stores::state::{Principal, PutOptions, PutOutcome, State, StateError};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, contract, name, note, notes, notes_with, refusal, short_note};

pub(crate) async fn repeated_fields_are_refused_by_the_guards(given: Given) {
    given.accept(&notes(note())).await;
    for (value, path) in [
        (r#"{"text": "a", "text": "b"}"#, "/text"),
        (r#"{"text": "a", "t\u0065xt": "a"}"#, "/text"),
        (r#"{"text": "a", "more": [{"x": 1}, {"x": 1, "y": 2, "x": 1}]}"#, "/more/1/x"),
    ] {
        let reason = refusal(given.put(NOTES, "one", value).await);
        assert!(reason.contains(&format!("the field {path} is there twice")), "{value}: {reason}");
        assert!(given.get(NOTES, "one").await.is_none());
    }
    given.put(NOTES, "one", r#"{"text": "a", "more": [{"x": 1}, {"x": 1}]}"#).await.unwrap();
}

pub(crate) async fn stored_values_with_repeated_fields_count_as_refused(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "good", r#"{"text": "a"}"#).await.unwrap();
    given.plant(NOTES, "bad", r#"{"text": "a", "text": "b"}"#).await;
    // No reader takes it now either: it is told, and nothing is lost.
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Safe);
    let told = plan.findings.iter().find(|finding| finding.code == "data.unreadable").unwrap();
    let samples = &told.answer.as_ref().unwrap().samples;
    let keys: Vec<&str> = samples.iter().map(|sample| sample.key.as_str()).collect();
    assert_eq!(keys, ["bad"]);
}

pub(crate) async fn state_with_repeated_fields_is_refused(given: Given) {
    let document = json!({
        "format": "pleach.contract.v1", "id": "acme.drafts@v1", "kind": "app", "displayName": "Drafts",
        "description": "Drafts", "schemas": {"Draft": {"type": "object"}},
        "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    });
    let contract = Contract::from_value(&document).unwrap().contract;
    given.accept(&contract).await;
    let state = State::open(&given.engine).await.unwrap();
    let session = state.session(Principal::user("ann").unwrap(), &state.contract(&contract).await.unwrap());
    let drafts = session.store("drafts").unwrap();
    let text = br#"{"a": {"b": 1, "b": 2}}"#;
    let error = drafts.put_json(Some("one"), text, PutOptions::default()).await.unwrap_err();
    assert!(
        matches!(&error, StateError::NotJson { reason } if reason.contains("/a/b is there twice")),
        "{error:?}"
    );
    let outcome = drafts.put_json(Some("one"), br#"{"a": {"b": 1}}"#, PutOptions::default()).await.unwrap();
    assert!(matches!(outcome, PutOutcome::Applied(_)), "{outcome:?}");
}

fn keyspaces(list: &[(&str, &str)]) -> Contract {
    let each = list.iter().map(|(name, key)| ((*name).to_owned(), json!({"key": key})));
    notes_with(note(), json!({"keyspaces": Value::Object(each.collect())}))
}

pub(crate) async fn keyspaces_are_split_merged_and_renamed_without_a_loss(given: Given) {
    given.accept(&keyspaces(&[("all", "x.{kind}.{id}")])).await;
    for key in ["x.a.one", "x.b.two", "x.b.three"] {
        given.put(NOTES, key, r#"{"text": "a"}"#).await.unwrap();
    }
    for list in [
        vec![("ones", "x.a.{id}"), ("others", "x.b.{id}")],
        vec![("ones", "x.a.{id}"), ("rest", "x.b.{id}")],
        vec![("both", "x.{kind:a|b}.{id}")],
    ] {
        let plan = given.plan(&keyspaces(&list)).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{list:?}: {:#?}", plan.findings);
        given.apply(&plan).await.unwrap();
        given.put(NOTES, "x.a.one", r#"{"text": "b"}"#).await.unwrap();
    }
    // A key that no keyspace takes any more is found.
    let plan = given.plan(&keyspaces(&[("ones", "x.a.{id}")])).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous);
}

/// A contract with sets that are not in order, which earlier versions digested as they stand.
fn unsorted() -> Contract {
    let resource = json!({
        "purpose": "Notes", "schema": {"schema": "Note"},
        "keyspaces": {"a": {"key": "a.{id}"}, "b": {"key": "b.{id}"}},
        "atomic": {"both": {"members": ["b", "a"]}},
    });
    contract(json!({"Note": note()}), json!({"notes": resource}))
}

pub(crate) async fn a_contract_on_record_by_an_older_digest_stays_in_force(mut given: Given) {
    let contract = unsorted();
    given.accept(&contract).await;
    let (today, earlier) = (contract.digest().to_string(), contract.digest_as_written().to_string());
    assert_ne!(today, earlier);
    // The records as an earlier version has written them.
    let system = name(SYSTEM_BUCKET);
    let page = given.below.scan(&system, ScanQuery::default()).await.unwrap();
    for entry in page.entries {
        let text = String::from_utf8(entry.value.to_vec()).unwrap();
        let key = pleach_engine::Key::parse(entry.key.as_str().replace(&today, &earlier)).unwrap();
        if key != entry.key {
            given.below.commit(&system, Batch::new().delete(entry.key)).await.unwrap();
        }
        let operation = Operation::put(key, text.replace(&today, &earlier)).with_headers(entry.headers);
        given.below.commit(&system, operation.into()).await.unwrap();
    }
    given.restart();
    given.contracts.bind(&contract).await.unwrap();
    assert!(given.plan(&contract).await.is_nothing());
    given.put(NOTES, "a.one", r#"{"text": "a"}"#).await.unwrap();
    assert!(refusal(given.put(NOTES, "a.one", "{}").await).contains("`text` is missing"));
    assert_eq!(given.contracts.damages().await.unwrap().len(), 0);
}
