use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pleach_contract::evolution::Verdict;
use pleach_engine::{BucketConfig, Engine};
use pleach_stores::{Applied, AuthorityError, Plan, PlanOptions, Step};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract_of, lineage, name, note, notes, notes_with, short_note};

pub(crate) async fn a_plan_changes_nothing_for_writers(given: Given) {
    given.accept(&notes(note())).await;
    let before = given.engine.bucket(&name(NOTES)).await.unwrap();
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    given.plan(&notes_with(short_note(), json!({"history": 5}))).await;
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
    assert_eq!(given.engine.bucket(&name(NOTES)).await.unwrap().config, before.config);
    let after = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((after.authority, after.buckets), (status.authority, status.buckets));
    assert_eq!(after.plans.len(), 1);
}

pub(crate) async fn an_identical_presentation_reuses_the_plan(given: Given) {
    let first = given.plan(&notes(note())).await;
    given.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(given.plan(&notes(note())).await, first);
    assert_ne!(given.plan(&notes(short_note())).await.id, first.id);
    // What is over is planned anew.
    given.contracts.reject(&lineage(), &first.id).await.unwrap();
    assert_ne!(given.plan(&notes(note())).await.id, first.id);
}

pub(crate) async fn a_contract_in_force_leaves_nothing_to_do(given: Given) {
    let applied = given.accept(&notes(note())).await;
    let plan = given.plan(&notes(note())).await;
    assert!(plan.is_nothing());
    assert_eq!(given.apply(&plan).await.unwrap(), Applied { was_in_force: true, ..applied });
    assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 1);
}

pub(crate) async fn a_bucket_in_the_way_is_named(given: Given) {
    given.engine.create_bucket(&name(NOTES), BucketConfig::default()).await.unwrap();
    let error = given.contracts.plan(&notes(note()), PlanOptions::default()).await.unwrap_err();
    assert!(matches!(&error, AuthorityError::InTheWay { bucket } if bucket.as_str() == NOTES), "{error:?}");
}

pub(crate) async fn two_lineages_never_share_a_bucket(given: Given) {
    given.accept(&notes(note())).await;
    let kv = json!({"notes": {"purpose": "Notes", "schema": {"schema": "Note"}}});
    let other = contract_of("globex.notes@v1", json!({"Note": note()}), kv);
    let error = given.contracts.plan(&other, PlanOptions::default()).await.unwrap_err();
    assert!(
        matches!(&error, AuthorityError::Taken { owner, .. } if owner.contains("acme.notes@v1")),
        "{error:?}"
    );
    let adopt = [("notes".to_owned(), name(NOTES))].into();
    let error =
        given.contracts.plan(&other, PlanOptions { adopt, ..PlanOptions::default() }).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Taken { .. }), "{error:?}");
    let options = PlanOptions { service: Some("globex-notes".into()), ..PlanOptions::default() };
    let plan = given.contracts.plan(&other, options).await.unwrap();
    let applied = given.apply(&plan).await.unwrap();
    assert_eq!(applied.bindings["notes"].bucket, "svc_globex_notes_notes");
}

pub(crate) async fn a_service_is_chosen_once(given: Given) {
    let with = |service: &str| PlanOptions { service: Some(service.into()), ..PlanOptions::default() };
    let plan = given.contracts.plan(&notes(note()), with("desk")).await.unwrap();
    let applied = given.apply(&plan).await.unwrap();
    assert_eq!(applied.bindings["notes"].bucket, "svc_desk_notes");
    let error = given.contracts.plan(&notes(short_note()), with("other")).await.unwrap_err();
    assert!(matches!(error, AuthorityError::OtherService { .. }), "{error:?}");
    assert_eq!(given.plan(&notes(short_note())).await.service, "desk");
}

pub(crate) async fn a_plan_can_be_cancelled_and_tells_its_progress(given: Given) {
    given.engine.create_bucket(&name("old"), BucketConfig::default()).await.unwrap();
    for number in 0..300 {
        given.put("old", &format!("n{number}"), r#"{"text": ""}"#).await.unwrap();
    }
    let adopt = || [("notes".to_owned(), name("old"))].into();
    let cancel = Arc::new(AtomicBool::new(true));
    let options = PlanOptions { adopt: adopt(), cancel: Some(Arc::clone(&cancel)), ..PlanOptions::default() };
    let error = given.contracts.plan(&notes(note()), options.clone()).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Cancelled), "{error:?}");
    cancel.store(false, Ordering::SeqCst);
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let progress = move |progress: &pleach_stores::ScanProgress| hears.lock().unwrap().push(progress.clone());
    let options = PlanOptions { progress: Some(Arc::new(progress)), ..options };
    given.contracts.plan(&notes(note()), options).await.unwrap();
    let last = told.lock().unwrap().last().cloned().unwrap();
    assert_eq!((last.alias.as_str(), last.entries, last.is_done), ("notes", 300, true));
}

pub(crate) async fn a_plan_survives_its_text(given: Given) {
    given.accept(&notes(note())).await;
    let plan = given.plan(&notes_with(note(), json!({"history": 3}))).await;
    assert!(
        matches!(&plan.steps[..], [Step::Configure { changes, .. }] if changes == &["history"]),
        "{:?}",
        plan.steps
    );
    assert_eq!(plan.verdict(), Verdict::Safe);
    let text = serde_json::to_string_pretty(&plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read, plan);
    given.apply(&read).await.unwrap();
    assert_eq!(given.engine.bucket(&name(NOTES)).await.unwrap().config.history.get(), 3);
}

#[test]
fn what_the_engine_cannot_keep_is_said_and_refused() {
    pollster::block_on(async {
        let given = Given::able(|can| {
            can.history_max = 4;
            can.expired_history = false;
            can.ttl_resolution = std::time::Duration::from_secs(1);
        });
        let more = json!({
            "history": 5, "ttlMs": 500,
            "keyspaces": {"a": {"key": "a.{id}", "ttlMs": 200}},
        });
        let plan = given.plan(&notes_with(note(), more)).await;
        let paths: Vec<_> = plan.shortfalls.iter().map(|short| short.path.as_str()).collect();
        let resource = "/resources/kv/notes";
        assert_eq!(
            paths,
            [
                format!("{resource}/history"),
                format!("{resource}/ttlMs"),
                format!("{resource}/keyspaces/a/ttlMs"),
                format!("{resource}/keyspaces/a/ttlMs"),
            ]
        );
        let error = given.apply(&plan).await.unwrap_err();
        assert!(matches!(error, AuthorityError::Incapable { .. }), "{error:?}");
    });
}
