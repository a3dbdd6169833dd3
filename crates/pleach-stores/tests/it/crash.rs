use pleach_contract::Contract;
use pleach_engine::{Batch, Engine, Key};
use pleach_stores::{ApplyOptions, AuthorityError, Materialised, OwnerState, PlanOptions};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract, lineage, name, note, refusal, short_note};
use crate::watched::Failing;

/// Notes that are kept, drafts that come to go.
fn before() -> Contract {
    let resource = |schema: &str| json!({"purpose": "Notes", "schema": {"schema": schema}, "history": 2});
    let kv = json!({"notes": resource("Note"), "drafts": resource("Note")});
    contract(json!({"Note": note()}), kv)
}

/// Shorter notes, no drafts, and mails that are new and old.
fn after() -> Contract {
    let resource = |schema: &str| json!({"purpose": "Notes", "schema": {"schema": schema}, "history": 3});
    let kv = json!({"notes": resource("Short"), "mails": resource("Note"), "olds": resource("Note")});
    contract(json!({"Note": note(), "Short": short_note()}), kv)
}

fn options() -> ApplyOptions {
    ApplyOptions::by("ann").acknowledging("drafts go")
}

async fn prepared(given: &Given) -> pleach_stores::Plan {
    given.accept(&before()).await;
    given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
    given.put("svc_notes_drafts", "one", r#"{"text": "a draft"}"#).await.unwrap();
    given.engine.create_bucket(&name("old"), Default::default()).await.unwrap();
    given.put("old", "one", r#"{"text": "an old one"}"#).await.unwrap();
    let adopt = [("olds".to_owned(), name("old"))].into();
    given.contracts.plan(&after(), PlanOptions { adopt, ..PlanOptions::default() }).await.unwrap()
}

/// Everything is as the first contract has it, and nothing is left of the second but a plan.
async fn check_before(given: &Given) {
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, &status.authority.status), (1, &Materialised::Current));
    assert_eq!(status.authority.bindings.keys().collect::<Vec<_>>(), ["drafts", "notes"]);
    assert!(!status.is_unfinished, "{status:?}");
    assert!(status.buckets.values().all(|owner| owner.state == OwnerState::Owned && owner.claim.is_none()));
    assert_eq!(status.buckets.len(), 2);
    assert_eq!(given.engine.bucket(&name(NOTES)).await.unwrap().config.history.get(), 2);
    assert!(given.engine.bucket(&name("svc_notes_mails")).await.is_err());
    given.put(NOTES, "two", r#"{"text": "as long as ever"}"#).await.unwrap();
    given.put("old", "one", r#"nobody's"#).await.unwrap();
}

/// Everything is as the second contract has it.
async fn check_after(given: &Given) {
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, &status.authority.status), (2, &Materialised::Current));
    assert_eq!(status.authority.bindings.keys().collect::<Vec<_>>(), ["mails", "notes", "olds"]);
    assert!(!status.is_unfinished, "{status:?}");
    assert!(status.buckets.values().all(|owner| owner.claim.is_none()));
    assert!(matches!(status.buckets["svc_notes_drafts"].state, OwnerState::SetAside { .. }));
    assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 2);
    for (bucket, history) in [(NOTES, 3), ("svc_notes_mails", 3), ("old", 3), ("svc_notes_drafts", 2)] {
        assert_eq!(
            given.engine.bucket(&name(bucket)).await.unwrap().config.history.get(),
            history,
            "{bucket}"
        );
    }
    assert!(given.get("svc_notes_drafts", "one").await.is_some());
    given.put("svc_notes_mails", "one", r#"{"text": "a mail"}"#).await.unwrap();
    refusal(given.put("svc_notes_drafts", "one", r#"{"text": ""}"#).await);
    refusal(given.put(NOTES, "two", r#"{"text": "as long as ever"}"#).await);
    refusal(given.put("old", "one", r#"nobody's"#).await);
}

async fn in_force(given: &Given) -> u64 {
    given.contracts.status(&lineage()).await.unwrap().unwrap().authority.version
}

/// Every call of the engine, before and after it has done its work, with and without a restart.
pub(crate) async fn an_apply_goes_on_wherever_it_was_interrupted(given: Given) {
    let is_embedded = given.engine.capabilities().persistent;
    drop(given);
    let (mut interrupted, mut accepted) = (0, 0);
    for how in [Failing::Before, Failing::After] {
        // A directory for each takes its time, so on the embedded engine only every third call.
        for calls in (0..).step_by(if is_embedded { 3 } else { 1 }) {
            let mut given = if is_embedded { Given::embedded() } else { Given::in_memory() };
            let plan = prepared(&given).await;
            given.below.fail_after(calls, how);
            let result = given.contracts.apply(&plan, options()).await;
            let failed = given.below.mend();
            if calls % 2 == 0 {
                given.restart();
            }
            if !failed {
                result.unwrap();
                check_after(&given).await;
                break;
            }
            interrupted += 1;
            // What is acknowledged is there; what is not may be.
            if result.is_ok() {
                assert_eq!(in_force(&given).await, 2);
            }
            if in_force(&given).await == 2 && calls % 3 == 0 {
                // The same apply goes on with what was accepted, if anything is left to do.
                let again = given.contracts.apply(&plan, options()).await;
                assert!(again.is_ok(), "{again:?}");
            } else {
                given.contracts.resume(&lineage()).await.unwrap();
            }
            if in_force(&given).await == 2 {
                accepted += 1;
                check_after(&given).await;
            } else {
                check_before(&given).await;
                // What was written since is gone, with its history, before the plan fits again.
                for (bucket, key) in [(NOTES, "two"), ("old", "one")] {
                    let purge = Batch::new().purge(Key::parse(key).unwrap());
                    given.engine.commit(&name(bucket), purge).await.unwrap();
                    given.put(bucket, key, r#"{"text": "tiny"}"#).await.unwrap();
                }
                given.contracts.apply(&plan, options()).await.unwrap();
                check_after(&given).await;
            }
        }
    }
    assert!(interrupted > if is_embedded { 15 } else { 50 } && accepted > 5, "{interrupted} {accepted}");
}

pub(crate) async fn a_failed_step_keeps_the_old_bindings(given: Given) {
    given.accept(&before()).await;
    let plan = given.plan(&after_without_olds()).await;
    // Someone past the guards has taken the configuration away from under the plan.
    let glass = given.engine.break_glass("bob", "a mistake").unwrap();
    glass.delete_bucket(&name(NOTES)).await.unwrap();
    let error = given.contracts.apply(&plan, options()).await.unwrap_err();
    let AuthorityError::Unfinished { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains(NOTES), "{source}");
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert!(matches!(&status.authority.status, Materialised::Failed { why, .. } if why.contains(NOTES)));
    assert_eq!(status.authority.bindings.keys().collect::<Vec<_>>(), ["drafts", "notes"]);
    assert!(status.is_unfinished);
    // Nothing that it did is undone, and it goes on once the cause is mended.
    let error = given.contracts.resume(&lineage()).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unfinished { .. }), "{error:?}");
    let plan = given.plan(&after_without_olds()).await;
    given.contracts.apply(&plan, options()).await.unwrap();
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, &status.authority.status), (3, &Materialised::Current));
    assert_eq!(status.authority.bindings.keys().collect::<Vec<_>>(), ["mails", "notes"]);
}

fn after_without_olds() -> Contract {
    let resource = |schema: &str| json!({"purpose": "Notes", "schema": {"schema": schema}, "history": 3});
    contract(json!({"Note": note()}), json!({"notes": resource("Note"), "mails": resource("Note")}))
}
