use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Engine, EngineError};
use pleach_stores::{ApplyOptions, AuthorityError, GRACE, OwnerState, PlanOptions, Step};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract, lineage, name, note, notes, refusal, short_note};
use crate::watched::Failing;

/// Without the alias `notes`.
fn without() -> Contract {
    contract(json!({"Note": note()}), json!({"other": {"purpose": "Others", "schema": {"schema": "Note"}}}))
}

async fn removed(given: &Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "hello"}"#).await.unwrap();
    let plan = given.plan(&without()).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
    assert!(
        matches!(&plan.steps[..], [Step::Create { .. }, Step::SetAside { alias, .. }] if alias == "notes")
    );
    given.insist(&without()).await;
}

pub(crate) async fn a_removed_alias_is_set_aside_and_restored(given: Given) {
    removed(&given).await;
    assert!(given.get(NOTES, "one").await.is_some());
    refusal(given.put(NOTES, "one", r#"{"text": "hello"}"#).await);
    assert!(given.engine.delete_bucket(&name(NOTES)).await.is_err());
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert!(!status.authority.bindings.contains_key("notes"));
    let OwnerState::SetAside { since, until } = status.buckets[NOTES].state else { panic!("{status:?}") };
    assert_eq!(until.since(since), GRACE);
    assert_eq!(given.contracts.restore(&lineage(), "notes").await.unwrap(), name(NOTES));
    given.put(NOTES, "one", r#"{"text": "again"}"#).await.unwrap();
    refusal(given.put(NOTES, "one", "{}").await);
    given.clock.advance(GRACE * 2);
    assert!(given.contracts.sweep().await.unwrap().is_empty());
    let error = given.contracts.restore(&lineage(), "notes").await.unwrap_err();
    assert!(matches!(error, AuthorityError::NotSetAside { .. }), "{error:?}");
}

pub(crate) async fn a_bucket_that_was_set_aside_goes_after_its_time(given: Given) {
    removed(&given).await;
    given.clock.advance(GRACE / 2);
    assert!(given.contracts.sweep().await.unwrap().is_empty());
    given.clock.advance(GRACE / 2);
    assert_eq!(given.contracts.sweep().await.unwrap(), [name(NOTES)]);
    assert!(matches!(given.engine.bucket(&name(NOTES)).await, Err(EngineError::BucketNotFound { .. })));
    assert!(given.contracts.owner(&name(NOTES)).await.unwrap().is_none());
    assert!(given.contracts.sweep().await.unwrap().is_empty());
    // The name is free again.
    given.accept(&notes_and_other()).await;
    assert!(given.get(NOTES, "one").await.is_none());
}

fn notes_and_other() -> Contract {
    let resource = || json!({"purpose": "Notes", "schema": {"schema": "Note"}});
    contract(json!({"Note": note()}), json!({"notes": resource(), "other": resource()}))
}

pub(crate) async fn an_alias_that_returns_takes_its_bucket_back(given: Given) {
    removed(&given).await;
    let plan = given.plan(&notes_and_other()).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    assert!(plan.steps.iter().any(|step| matches!(step, Step::TakeBack { bucket, .. } if bucket == NOTES)));
    given.apply(&plan).await.unwrap();
    assert!(given.get(NOTES, "one").await.is_some());
    given.put(NOTES, "two", r#"{"text": ""}"#).await.unwrap();
    given.clock.advance(GRACE * 2);
    assert!(given.contracts.sweep().await.unwrap().is_empty());
}

pub(crate) async fn values_that_no_longer_fit_are_found_on_return(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
    given.insist(&contract(json!({}), json!({}))).await;
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
    let danger = plan.dangers().find(|danger| danger.code == "bucket.returned").unwrap();
    assert_eq!(danger.answer.as_ref().unwrap().count, 1);
}

/// A store in which an apply was interrupted, at the first of its calls that leaves `wanted` behind.
async fn interrupted(
    prepared: impl AsyncFn(&Given) -> pleach_stores::Plan,
    wanted: impl AsyncFn(&Given) -> bool,
) -> (Given, pleach_stores::Plan) {
    for calls in 0..200 {
        let given = Given::in_memory();
        let plan = prepared(&given).await;
        given.below.fail_after(calls, Failing::Before);
        let applied = given.contracts.apply(&plan, ApplyOptions::by("ann").acknowledging("a test")).await;
        if given.below.mend() && applied.is_err() && wanted(&given).await {
            return (given, plan);
        }
    }
    panic!("no call leaves that behind");
}

pub(crate) async fn a_bucket_that_is_being_taken_back_is_not_swept(_: Given) {
    let prepared = async |given: &Given| {
        removed(given).await;
        given.clock.advance(GRACE * 2);
        given.plan(&notes_and_other()).await
    };
    let is_accepted = async |given: &Given| {
        let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
        status.authority.version == 3 && matches!(status.buckets[NOTES].state, OwnerState::SetAside { .. })
    };
    let (given, plan) = interrupted(prepared, is_accepted).await;
    assert!(given.contracts.sweep().await.unwrap().is_empty());
    given.apply(&plan).await.unwrap();
    assert!(given.get(NOTES, "one").await.is_some());
}

pub(crate) async fn what_is_left_of_an_apply_takes_over_nothing(_: Given) {
    let prepared = async |given: &Given| given.plan(&notes(note())).await;
    let is_claimed = async |given: &Given| {
        let is_accepted = given.contracts.status(&lineage()).await.unwrap().is_some();
        !is_accepted && given.contracts.owner(&name(NOTES)).await.unwrap().is_some()
    };
    let (mut given, _) = interrupted(prepared, is_claimed).await;
    given.clock.advance(GRACE);
    given.restart();
    given.engine.create_bucket(&name(NOTES), Default::default()).await.unwrap();
    given.put(NOTES, "one", "by hand").await.unwrap();
    let error = given.contracts.plan(&notes(note()), PlanOptions::default()).await.unwrap_err();
    assert!(matches!(error, AuthorityError::InTheWay { .. }), "{error:?}");
}
