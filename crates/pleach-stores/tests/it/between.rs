//! What holds between the acceptance of a contract and its coming into force, when an apply was interrupted there.

use std::sync::Arc;
use std::time::Duration;

use pleach_contract::Contract;
use pleach_engine::{Clock, Engine};
use pleach_stores::{
    ApplyOptions, AuthorityError, Contracts, Envelope, Guarded, Materialised, PlanOptions, Read, Service,
    Step,
};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{
    NOTES, contract, contract_of, interrupted, lineage, name, note, notes, refusal, short_note,
};
use crate::watched::Failing;

/// Notes, and brief ones that live for a minute.
fn brief() -> Contract {
    let resource = json!({
        "purpose": "Notes", "schema": {"schema": "Note"}, "version": "v3",
        "keyspaces": {"long": {"key": "long.{id}"}, "brief": {"key": "brief.{id}", "ttlMs": 60_000}},
    });
    contract(json!({"Note": note()}), json!({"notes": resource}))
}

/// The bucket is made, and the contract that it was made for is not in force in it.
async fn is_made_only(given: &Given) -> bool {
    let is_made = given.engine.bucket(&name(NOTES)).await.is_ok();
    let owner = given.contracts.owner(&name(NOTES)).await.unwrap();
    is_made && owner.is_some_and(|owner| owner.digest.is_none())
}

pub(crate) async fn writes_to_a_bucket_that_was_just_made_keep_its_contract(given: Given) {
    let prepared = async |given: &Given| given.plan(&brief()).await;
    for restarts in [false, true] {
        let (mut given, plan) = interrupted(&given, prepared, is_made_only).await;
        if restarts {
            given.restart();
        }
        refusal(given.put(NOTES, "long.a", r#"{"text": 5}"#).await);
        refusal(given.put(NOTES, "other.a", r#"{"text": ""}"#).await);
        for key in ["long.a", "brief.a"] {
            given.put(NOTES, key, r#"{"text": "hello"}"#).await.unwrap();
        }
        let stored = given.get(NOTES, "long.a").await.unwrap();
        let envelope = Envelope::read(&stored.headers).expect("it is stamped");
        assert_eq!((envelope.version.as_str(), &envelope.writer), ("v3", &plan.target));
        given.contracts.resume(&lineage()).await.unwrap();
        // Whoever reads with types finds what was written meanwhile.
        let notes = Service::bind(&given.engine, &brief()).await.unwrap().kv("notes").unwrap();
        let read = notes.keyspace::<Value>("long").unwrap().get("long.a").await.unwrap();
        assert!(matches!(read, Some(Read::Current(_))), "{read:?}");
        given.clock.advance(Duration::from_secs(61));
        assert!(given.get(NOTES, "brief.a").await.is_none());
    }
}

/// Past the guards nothing is checked, but it is stamped, so that readers know what they find.
pub(crate) async fn writes_past_the_guards_of_a_bucket_that_was_just_made_are_stamped(given: Given) {
    let prepared = async |given: &Given| given.plan(&brief()).await;
    let (given, _) = interrupted(&given, prepared, is_made_only).await;
    let glass = given.engine.break_glass("ann", "a repair").unwrap();
    crate::given::put(&glass, NOTES, "long.a", r#"{"text": 5}"#).await.unwrap();
    let stored = given.get(NOTES, "long.a").await.unwrap();
    assert_eq!(Envelope::read(&stored.headers).expect("it is stamped").version, "v3");
}

/// A bucket that is about to be adopted is still nobody's until that is accepted: nothing is stamped in it.
pub(crate) async fn writes_to_a_bucket_that_is_not_yet_adopted_are_not_stamped(given: Given) {
    let prepared = async |given: &Given| {
        given.engine.create_bucket(&name("old"), Default::default()).await.unwrap();
        let adopt = [("notes".to_owned(), name("old"))].into();
        given.contracts.plan(&notes(note()), PlanOptions { adopt, ..PlanOptions::default() }).await.unwrap()
    };
    let is_claimed = async |given: &Given| {
        let owner = given.contracts.owner(&name("old")).await.unwrap();
        owner.is_some_and(|owner| owner.claim.is_some_and(|claim| claim.until.is_some()))
    };
    let (given, _) = interrupted(&given, prepared, is_claimed).await;
    refusal(given.put("old", "one", "no note").await);
    given.put("old", "one", r#"{"text": "hello"}"#).await.unwrap();
    assert!(given.get("old", "one").await.unwrap().headers.is_empty());
}

/// Whichever call of it fails: a plan that was rejected has no guard, and one that was not is pending with its guard on.
pub(crate) async fn a_rejection_is_whole_or_not_at_all(given: Given) {
    let (mut interrupted, mut rejected) = (0, 0);
    for how in [Failing::Before, Failing::After] {
        for calls in 0.. {
            let mut given = given.anew();
            given.accept(&notes(note())).await;
            let options = PlanOptions { guard: true, ..PlanOptions::default() };
            let plan = given.contracts.plan(&notes(short_note()), options).await.unwrap();
            given.below.fail_after(calls, how);
            let result = given.contracts.reject(&lineage(), &plan.id).await;
            let has_failed = given.below.mend();
            if calls % 2 == 0 {
                given.restart();
            }
            let (_, status) = given.contracts.planned(&lineage(), &plan.id).await.unwrap();
            let written = given.put(NOTES, "one", r#"{"text": "much too long"}"#).await;
            match status.as_str() {
                "rejected" => {
                    written.unwrap_or_else(|error| panic!("{calls} {how:?}: {error}"));
                    rejected += 1;
                }
                "pending" => {
                    refusal(written);
                    given.contracts.reject(&lineage(), &plan.id).await.unwrap();
                    given.put(NOTES, "one", r#"{"text": "much too long"}"#).await.unwrap();
                }
                other => panic!("{other}"),
            }
            if !has_failed {
                result.unwrap();
                break;
            }
            interrupted += 1;
        }
    }
    assert!(interrupted > 5 && rejected > 2, "{interrupted} {rejected}");
}

fn with_mails(schema: Value) -> Contract {
    let resource = |schema: &str| json!({"purpose": "Notes", "schema": {"schema": schema}, "history": 3});
    let kv = json!({"notes": resource("Note"), "mails": resource("Mail")});
    contract(json!({"Note": note(), "Mail": schema}), kv)
}

/// A contract that was accepted and failed: its mails are made, its notes are gone.
async fn failed(given: &Given) {
    given.accept(&notes(note())).await;
    let plan = given.plan(&with_mails(short_note())).await;
    given.engine.break_glass("bob", "a mistake").unwrap().delete_bucket(&name(NOTES)).await.unwrap();
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unfinished { .. }), "{error:?}");
    assert!(given.engine.bucket(&name("svc_notes_mails")).await.is_ok());
}

/// Guards of an apply hold for an hour in case it dies; once it is accepted, for as long as it takes.
pub(crate) async fn the_guards_of_what_was_accepted_do_not_run_out(given: Given) {
    failed(&given).await;
    given.clock.advance(Duration::from_secs(2 * 60 * 60));
    refusal(given.put("svc_notes_mails", "one", r#"{"text": "much too long"}"#).await);
    given.put("svc_notes_mails", "one", r#"{"text": "tiny"}"#).await.unwrap();
}

/// A bucket that only a failed plan has made is set aside as any other, with what was accepted for it.
pub(crate) async fn what_a_failed_plan_made_is_set_aside_with_its_contract(mut given: Given) {
    failed(&given).await;
    recreate(&given).await;
    given.put("svc_notes_mails", "one", r#"{"text": "tiny"}"#).await.unwrap();
    given.insist(&notes(note())).await;
    given.restart();
    refusal(given.put("svc_notes_mails", "one", r#"{"text": "tiny"}"#).await);
    let resource = json!({"purpose": "Mails", "schema": {"schema": "Note"}});
    let other = contract_of("acme.other@v1", json!({"Note": note()}), json!({"mails": resource}));
    let adopt = [("mails".to_owned(), name("svc_notes_mails"))].into();
    let error =
        given.contracts.plan(&other, PlanOptions { adopt, ..PlanOptions::default() }).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Taken { .. }), "{error:?}");
    let back = given.plan(&with_mails(short_note())).await;
    assert!(back.steps.iter().any(|step| matches!(step, Step::TakeBack { .. })), "{:?}", back.steps);
    given.contracts.restore(&lineage(), "mails").await.unwrap();
    refusal(given.put("svc_notes_mails", "two", r#"{"text": "much too long"}"#).await);
    given.put("svc_notes_mails", "two", r#"{"text": "tiny"}"#).await.unwrap();
}

/// A new plan is the way out of one that failed. Wherever it is interrupted before it is accepted, the failed one stands
/// as it did: its guards are on, and it can still be brought to its end.
pub(crate) async fn a_plan_that_follows_a_failed_one_takes_nothing_from_it(given: Given) {
    let mut interrupted = 0;
    for calls in 0.. {
        let mut given = given.anew();
        failed(&given).await;
        let next = given.plan(&with_mails(note())).await;
        given.below.fail_after(calls, Failing::Before);
        let result = given.contracts.apply(&next, ApplyOptions::by("ann").acknowledging("a test")).await;
        let has_failed = given.below.mend();
        if !has_failed {
            result.unwrap();
            break;
        }
        interrupted += 1;
        if calls % 2 == 0 {
            given.restart();
        }
        // Long after its own guards have run out.
        if calls % 3 == 0 {
            given.clock.advance(Duration::from_secs(2 * 60 * 60));
        }
        if given.contracts.status(&lineage()).await.unwrap().unwrap().authority.version == 2 {
            refusal(given.put("svc_notes_mails", "one", r#"{"text": "much too long"}"#).await);
            given.put("svc_notes_mails", "one", r#"{"text": "tiny"}"#).await.unwrap();
            assert!(given.engine.delete_bucket(&name("svc_notes_mails")).await.is_err());
            given.engine.break_glass("bob", "mended").unwrap();
            recreate(&given).await;
        }
        given.contracts.resume(&lineage()).await.unwrap();
        let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
        assert_eq!(status.authority.status, Materialised::Current, "{calls}");
        assert!(
            status.buckets.values().all(|owner| owner.claim.is_none() && owner.digest.is_some()),
            "{status:?}"
        );
        assert_eq!(status.buckets.len(), 2);
    }
    assert!(interrupted > 10, "{interrupted}");
}

/// Makes the bucket of the notes anew, as it was.
async fn recreate(given: &Given) {
    given.below.create_bucket(&name(NOTES), Default::default()).await.unwrap();
}

/// An apply that is interrupted after its acceptance is brought to its end by the apply of the plan that was made on it.
pub(crate) async fn an_apply_first_ends_what_was_interrupted_before_it(given: Given) {
    let prepared = async |given: &Given| {
        given.accept(&notes(note())).await;
        given.plan(&with_mails(short_note())).await
    };
    let is_accepted = async |given: &Given| {
        given.contracts.status(&lineage()).await.unwrap().unwrap().authority.version == 2
    };
    let (given, first) = interrupted(&given, prepared, is_accepted).await;
    let next = given.plan(&with_mails(note())).await;
    let applied = given.apply(&next).await.unwrap();
    assert_eq!((applied.version, applied.digest.as_str()), (3, next.target.as_str()));
    assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 3);
    let error = given.apply(&first).await.unwrap_err();
    assert!(matches!(error, AuthorityError::PlanOver { .. }), "{error:?}");
}

/// Two that apply plans of which the second was made on the first: the second ends the first, and who had begun with it
/// is told that it is no longer the one in force.
pub(crate) async fn whoever_is_overtaken_is_told(given: Given) {
    given.accept(&notes(note())).await;
    let plan = given.plan(&with_mails(short_note())).await;
    let clock = Arc::clone(&given.clock) as Arc<dyn Clock>;
    let other = Guarded::new(Arc::clone(&given.below) as Arc<dyn Engine>, clock);
    given.below.before_create(&name("svc_notes_mails"), move || {
        pollster::block_on(async {
            let contracts = Contracts::of(&other);
            let next = contracts.plan(&with_mails(note()), PlanOptions::default()).await.unwrap();
            contracts.apply(&next, ApplyOptions::by("bob")).await.unwrap();
        });
    });
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(&error, AuthorityError::Moved { what, .. } if what.contains("version 3")), "{error:?}");
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, &status.authority.status), (3, &Materialised::Current));
    given.put("svc_notes_mails", "one", r#"{"text": "much too long"}"#).await.unwrap();
}
