use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Engine, EngineError};
use pleach_stores::{AuthorityError, GRACE, OwnerState, PlanOptions, Step};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract, interrupted, lineage, name, note, notes, refusal, short_note};
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

pub(crate) async fn a_bucket_that_is_being_taken_back_is_not_swept(given: Given) {
    let prepared = async |given: &Given| {
        removed(given).await;
        given.clock.advance(GRACE * 2);
        given.plan(&notes_and_other()).await
    };
    let is_accepted = async |given: &Given| {
        let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
        status.authority.version == 3 && matches!(status.buckets[NOTES].state, OwnerState::SetAside { .. })
    };
    let (given, plan) = interrupted(&given, prepared, is_accepted).await;
    assert!(given.contracts.sweep().await.unwrap().is_empty());
    given.apply(&plan).await.unwrap();
    assert!(given.get(NOTES, "one").await.is_some());
}

/// Every call of the engine, before and after it has done its work: whenever a sweep is interrupted, the next one ends
/// it. What is half gone takes no writes, and is not taken back.
pub(crate) async fn a_sweep_goes_on_wherever_it_was_interrupted(given: Given) {
    let mut interrupted = 0;
    for how in [Failing::Before, Failing::After] {
        for calls in 0.. {
            let mut given = given.anew();
            given.engine.create_bucket(&name("old"), Default::default()).await.unwrap();
            given.put("old", "one", r#"{"text": "kept"}"#).await.unwrap();
            let adopt = [("olds".to_owned(), name("old"))].into();
            let options = PlanOptions { adopt, ..PlanOptions::default() };
            let plan = given.contracts.plan(&with_olds(), options).await.unwrap();
            given.apply(&plan).await.unwrap();
            given.put(NOTES, "one", r#"{"text": "hello"}"#).await.unwrap();
            given.insist(&without()).await;
            given.clock.advance(GRACE);
            given.below.fail_after(calls, how);
            let swept = given.contracts.sweep().await;
            let has_failed = given.below.mend();
            if calls % 2 == 0 {
                given.restart();
            }
            if has_failed {
                interrupted += 1;
                check_half_gone(&given).await;
                given.contracts.sweep().await.unwrap();
            } else {
                assert_eq!(swept.unwrap().len(), 2);
            }
            // The one is gone with its record, and the other is nobody's again.
            let found = given.engine.bucket(&name(NOTES)).await;
            assert!(matches!(found, Err(EngineError::BucketNotFound { .. })), "{calls} {how:?}: {found:?}");
            for bucket in [NOTES, "old"] {
                assert!(given.contracts.owner(&name(bucket)).await.unwrap().is_none(), "{calls} {how:?}");
            }
            assert!(given.get("old", "one").await.is_some());
            given.put("old", "one", "nobody's").await.unwrap();
            assert!(given.contracts.sweep().await.unwrap().is_empty());
            if !has_failed {
                break;
            }
        }
    }
    assert!(interrupted > 10, "{interrupted}");
}

/// Whatever has a record takes no writes and is not taken back while it goes; without one it is really gone, or free.
async fn check_half_gone(given: &Given) {
    for bucket in [NOTES, "old"] {
        let owner = given.contracts.owner(&name(bucket)).await.unwrap();
        let written = given.put(bucket, "two", r#"{"text": ""}"#).await;
        match owner.map(|owner| owner.state) {
            None if bucket == NOTES => assert!(written.is_err(), "{written:?}"),
            None => assert!(written.is_ok(), "{written:?}"),
            Some(OwnerState::Going) => {
                refusal(written);
                let alias = if bucket == NOTES { "notes" } else { "olds" };
                let error = given.contracts.restore(&lineage(), alias).await.unwrap_err();
                assert!(matches!(error, AuthorityError::NotSetAside { .. }), "{error:?}");
            }
            Some(OwnerState::SetAside { .. }) => drop(refusal(written)),
            Some(other) => panic!("{other:?}"),
        }
    }
}

fn with_olds() -> Contract {
    let resource = || json!({"purpose": "Notes", "schema": {"schema": "Note"}});
    contract(json!({"Note": note()}), json!({"notes": resource(), "olds": resource()}))
}

pub(crate) async fn what_is_left_of_an_apply_takes_over_nothing(given: Given) {
    let prepared = async |given: &Given| given.plan(&notes(note())).await;
    let is_claimed = async |given: &Given| {
        let is_accepted = given.contracts.status(&lineage()).await.unwrap().is_some();
        !is_accepted && given.contracts.owner(&name(NOTES)).await.unwrap().is_some()
    };
    let (mut given, _) = interrupted(&given, prepared, is_claimed).await;
    given.clock.advance(GRACE);
    given.restart();
    given.engine.create_bucket(&name(NOTES), Default::default()).await.unwrap();
    given.put(NOTES, "one", "by hand").await.unwrap();
    let error = given.contracts.plan(&notes(note()), PlanOptions::default()).await.unwrap_err();
    assert!(matches!(error, AuthorityError::InTheWay { .. }), "{error:?}");
}
