//! `Contracts::verify`: every stored value that breaks the contract in force is found.

use pleach_engine::{Batch, Engine, Key, Operation};
use pleach_stores::state::{Principal, State};
use pleach_stores::{BREACH_SAMPLES_MAX, Breach, Contracts, Envelope};
use serde_json::json;

use crate::Given;
use crate::given::{
    LINEAGE, NOTES, contract_of, lineage, name, note, notes, notes_with, put, refusal, short_note,
};

/// All breaches, as `KEY at REVISION`, with `kept` if that is not the newest value.
async fn verified(contracts: &Contracts) -> Vec<Breach> {
    let mut verification = contracts.verify(&lineage(), None).await.unwrap().unwrap();
    let mut found = Vec::new();
    while let Some(breach) = verification.next().await.unwrap() {
        found.push(breach);
    }
    assert_eq!(verification.found().breaches, found.len() as u64);
    found
}

fn shown(breaches: &[Breach]) -> Vec<(&str, bool)> {
    let mut shown: Vec<_> = breaches.iter().map(|breach| (breach.key.as_str(), breach.live)).collect();
    shown.sort_unstable();
    shown
}

pub(crate) async fn every_value_that_breaks_the_contract_is_found(given: Given) {
    assert!(given.contracts.verify(&lineage(), None).await.unwrap().is_none());
    given.accept(&notes_with(note(), json!({"history": 3}))).await;
    for key in ["good", "once-bad", "gone"] {
        given.put(NOTES, key, r#"{"text": "fine"}"#).await.unwrap();
    }
    assert_eq!(verified(&given.contracts).await, []);
    // Past the guards; the second is mended again, and the third deleted.
    let glass = given.engine.break_glass("ann", "a test").unwrap();
    for key in ["bad", "once-bad", "gone"] {
        put(&glass, NOTES, key, r#"{"text": 5}"#).await.unwrap();
    }
    given.put(NOTES, "once-bad", r#"{"text": "mended"}"#).await.unwrap();
    given.engine.commit(&name(NOTES), Batch::new().delete(Key::parse("gone").unwrap())).await.unwrap();
    // A client that knows nothing of contracts.
    given.plant(NOTES, "native", r#"{"text": "unstamped"}"#).await;
    given.plant(NOTES, "rubbish", "no JSON").await;
    let found = verified(&given.contracts).await;
    let expected = [("bad", true), ("gone", false), ("native", true), ("once-bad", false), ("rubbish", true)];
    assert_eq!(shown(&found), expected, "{found:#?}");
    let bad = found.iter().find(|breach| breach.key == "bad").unwrap();
    assert_eq!(
        (bad.place.as_str(), bad.bucket.as_str(), bad.version.as_deref()),
        ("notes", NOTES, Some("v1"))
    );
    assert!(bad.why.contains("/text"), "{}", bad.why);
    let native = found.iter().find(|breach| breach.key == "native").unwrap();
    assert!(native.why.contains("it carries no version"), "{}", native.why);
}

pub(crate) async fn an_acknowledged_apply_leaves_what_verify_finds(given: Given) {
    given.accept(&notes(note())).await;
    for number in 0..20 {
        given.put(NOTES, &format!("long.{number}"), r#"{"text": "too long for it"}"#).await.unwrap();
    }
    given.put(NOTES, "short", r#"{"text": "ok"}"#).await.unwrap();
    given.insist(&notes(short_note())).await;
    let found = verified(&given.contracts).await;
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|breach| breach.live && breach.key.starts_with("long.")));
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    let kept = status.verified.unwrap();
    assert_eq!((kept.records, kept.breaches, kept.samples.len()), (21, 20, BREACH_SAMPLES_MAX));
    assert_eq!(kept.digest, notes(short_note()).digest().to_string());
}

pub(crate) async fn overrides_are_told_until_the_next_verification(given: Given) {
    given.accept(&notes(note())).await;
    given
        .accept(&contract_of(
            "acme.other@v1",
            json!({"Note": note()}),
            json!({
                "logs": {"purpose": "Logs", "schema": {"schema": "Note"}},
            }),
        ))
        .await;
    let overrides = async || given.contracts.status(&lineage()).await.unwrap().unwrap().overrides_since;
    assert_eq!(overrides().await, 0);
    let glass = given.engine.break_glass("ann", "a test").unwrap();
    given.clock.advance(std::time::Duration::from_secs(1));
    put(&glass, "svc_other_logs", "one", r#"{"text": 5}"#).await.unwrap();
    assert_eq!(overrides().await, 0, "it was another contract's");
    put(&glass, NOTES, "one", r#"{"text": 5}"#).await.unwrap();
    assert_eq!(overrides().await, 1);
    let acts = given.contracts.overrides(&lineage()).await.unwrap();
    assert_eq!(
        acts.iter().map(|act| (&*act.who, &*act.why, &*act.bucket)).collect::<Vec<_>>(),
        [("ann", "a test", NOTES)]
    );
    given.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(verified(&given.contracts).await.len(), 1);
    assert_eq!(overrides().await, 0);
    refusal(given.put(NOTES, "two", r#"{"text": 5}"#).await);
}

pub(crate) async fn the_records_of_the_store_itself_are_no_values(given: Given) {
    given.accept(&notes(note())).await;
    let position = Key::parse_reserved("_kv.projection.x").unwrap();
    given.below.commit(&name(NOTES), Batch::from(Operation::put(position, "{}"))).await.unwrap();
    assert_eq!(verified(&given.contracts).await, []);
}

/// What users and devices have stored is under the contract, too.
pub(crate) async fn state_that_breaks_the_contract_is_found(given: Given) {
    let document = |schema: serde_json::Value| {
        let document = json!({
            "format": "pleach.contract.v1", "id": LINEAGE, "kind": "app", "displayName": "Notes",
            "description": "Notes", "schemas": {"Theme": schema},
            "state": {"theme": {"kind": "value", "schema": {"schema": "Theme"}}},
        });
        pleach_contract::Contract::from_value(&document).unwrap().contract
    };
    let contract = document(json!({"type": "string"}));
    given.accept(&contract).await;
    let state = State::open(&given.engine).await.unwrap();
    let ann: Principal = "user:ann".parse().unwrap();
    let session = state.session(ann, &state.contract(&contract).await.unwrap());
    let _ = session.value::<String>("theme").unwrap().put(&"dark".to_owned()).await.unwrap();
    assert_eq!(verified(&given.contracts).await, []);
    given.insist(&document(json!({"enum": ["light"]}))).await;
    let found = verified(&given.contracts).await;
    assert_eq!(
        found.iter().map(|breach| (&*breach.place, breach.live)).collect::<Vec<_>>(),
        [("state.theme", true)]
    );
    assert_eq!(found[0].version.as_deref(), Some("v1"));
    assert_eq!(Envelope::VERSION, "Pleach-Version");
}

pub(crate) async fn an_engine_without_room_for_all_records_is_verified_by_its_live_keys(given: Given) {
    given.accept(&notes_with(note(), json!({"history": 3}))).await;
    let glass = given.engine.break_glass("ann", "a test").unwrap();
    put(&glass, NOTES, "once-bad", "5").await.unwrap();
    given.put(NOTES, "once-bad", r#"{"text": "mended"}"#).await.unwrap();
    put(&glass, NOTES, "bad", "5").await.unwrap();
    given.below.cramp();
    assert_eq!(shown(&verified(&given.contracts).await), [("bad", true), ("once-bad", false)]);
}
