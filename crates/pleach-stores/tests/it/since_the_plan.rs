//! What changes between a plan, its acceptance and its steps: nothing that the plan did not show is lost.

use std::sync::Arc;
use std::time::Duration;

use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Batch, BucketConfig, CommitError, Engine, EngineError, Key, Operation, ScanQuery};
use pleach_stores::state::{Principal, PutOptions, STATE_BUCKET, State};
use pleach_stores::{AuthorityError, Extent, PlanOptions, Step};
use serde_json::json;

use crate::Given;
use crate::given::{LINEAGE, NOTES, contract, lineage, name, note, notes_with};

fn on_both(test: impl AsyncFn(Given)) {
    pollster::block_on(test(Given::in_memory()));
    pollster::block_on(test(Given::embedded()));
}

fn is_violated(error: &AuthorityError) -> bool {
    match error {
        AuthorityError::Violators { .. } => true,
        AuthorityError::Unfinished { source, .. } => is_violated(source),
        _ => false,
    }
}

async fn put_often(engine: &dyn Engine, bucket: &str, times: usize) {
    for _ in 0..times {
        let put = Batch::new().put(Key::parse("one").unwrap(), r#"{"text": ""}"#);
        engine.commit(&name(bucket), put).await.unwrap();
    }
}

#[test]
fn records_that_history_keeps_count_for_a_shorter_time_to_live() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 5}))).await;
        put_often(&given.engine, NOTES, 1).await;
        given.engine.commit(&name(NOTES), Batch::new().delete(Key::parse("one").unwrap())).await.unwrap();
        let plan = given.plan(&notes_with(note(), json!({"history": 5, "ttlMs": 2000}))).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
    });
}

#[test]
fn a_configuration_that_changed_since_the_plan_is_not_put_back_unseen() {
    on_both(async |given| {
        let config = BucketConfig { history: 2.try_into().unwrap(), ..BucketConfig::default() };
        given.engine.create_bucket(&name("old"), config.clone()).await.unwrap();
        let adopted = notes_with(note(), json!({"history": 2}));
        let adopt = [("notes".to_owned(), name("old"))].into();
        let plan = given.contracts.plan(&adopted, PlanOptions { adopt, ..PlanOptions::default() });
        let plan = plan.await.unwrap();
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        let deeper = BucketConfig { history: 9.try_into().unwrap(), ..config };
        given.engine.update_bucket(&name("old"), deeper).await.unwrap();
        put_often(&given.engine, "old", 6).await;
        let error = given.apply(&plan).await.unwrap_err();
        assert!(is_violated(&error), "{error:?}");
        let history = given.engine.history(&name("old"), &Key::parse("one").unwrap()).await.unwrap();
        assert_eq!(history.len(), 6);
    });
}

#[test]
fn a_bucket_that_stays_as_it_is_has_the_configuration_of_the_plan() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({}))).await;
        let next = notes_with(json!({"type": "object"}), json!({}));
        let plan = given.plan(&next).await;
        assert!(matches!(plan.steps[0], Step::Keep { .. }), "{:?}", plan.steps);
        let config = given.below.bucket(&name(NOTES)).await.unwrap().config;
        let changed = BucketConfig { ttl: Some(Duration::from_secs(3600)), ..config };
        given.below.update_bucket(&name(NOTES), changed).await.unwrap();
        let error = given.apply(&plan).await.unwrap_err();
        assert!(matches!(error, AuthorityError::Moved { .. }), "{error:?}");
    });
}

#[test]
fn an_apply_that_goes_on_looks_again_before_it_trims_a_history() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 5}))).await;
        let mut next = notes_with(note(), json!({"history": 2})).to_value();
        next["resources"]["kv"]["mails"] = json!({"purpose": "Mails", "schema": {"schema": "Note"}});
        let next = Contract::from_value(&next).unwrap().contract;
        let plan = given.plan(&next).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        // After the acceptance, and before the step that trims: the alias `mails` comes first.
        let below = Arc::clone(&given.below);
        given.below.before_create(&name("svc_notes_mails"), move || {
            pollster::block_on(put_often(&*below, NOTES, 5));
        });
        let error = given.apply(&plan).await.unwrap_err();
        assert!(is_violated(&error), "{error:?}");
        let history = given.engine.history(&name(NOTES), &Key::parse("one").unwrap()).await.unwrap();
        assert_eq!(history.len(), 5);
    });
}

#[test]
fn an_adopted_bucket_comes_back_to_its_alias() {
    on_both(async |given| {
        given.engine.create_bucket(&name("old"), BucketConfig::default()).await.unwrap();
        put_often(&given.engine, "old", 1).await;
        let both = contract(
            json!({"Note": note()}),
            json!({
                "notes": {"purpose": "Notes", "schema": {"schema": "Note"}},
                "mails": {"purpose": "Mails", "schema": {"schema": "Note"}},
            }),
        );
        let mails = contract(
            json!({"Note": note()}),
            json!({
                "mails": {"purpose": "Mails", "schema": {"schema": "Note"}},
            }),
        );
        let adopt = [("notes".to_owned(), name("old"))].into();
        let plan =
            given.contracts.plan(&both, PlanOptions { adopt, ..PlanOptions::default() }).await.unwrap();
        given.apply(&plan).await.unwrap();
        given.insist(&mails).await;
        let plan = given.plan(&both).await;
        assert!(
            plan.steps.iter().any(|step| matches!(step, Step::TakeBack { bucket, .. } if bucket == "old")),
            "{:?}",
            plan.steps
        );
        let applied = given.insist(&both).await;
        assert_eq!(applied.bindings["notes"].bucket, "old");
    });
}

#[test]
fn a_store_that_was_verified_can_be_moved() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({}))).await;
        let mut verification = given.contracts.verify(&lineage(), None).await.unwrap().unwrap();
        while verification.next().await.unwrap().is_some() {}
        let records = given.contracts.records(&Extent::Store).await.unwrap();
        assert_eq!(records.lineages.len(), 1, "{LINEAGE}");
    });
}

#[test]
fn a_copy_keeps_the_contract_in_force_for_state() {
    on_both(async |given| {
        let document = json!({
            "format": "pleach.contract.v1", "id": "acme.drafts@v1", "kind": "app", "displayName": "Drafts",
            "description": "Drafts", "schemas": {"Draft": {"type": "object"}},
            "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
        });
        let contract = Contract::from_value(&document).unwrap().contract;
        given.accept(&contract).await;
        let state = State::open(&given.engine).await.unwrap();
        let session =
            state.session(Principal::user("ann").unwrap(), &state.contract(&contract).await.unwrap());
        let drafts = session.store("drafts").unwrap();
        let _ = drafts.put(Some("one"), json!({}), PutOptions::default()).await.unwrap();
        let bucket = name(STATE_BUCKET);
        let entry = given.below.scan(&bucket, ScanQuery::default()).await.unwrap().entries.remove(0);
        let copies = given.engine.for_copies();
        let copy = async |value: &'static str| {
            let put = Operation::put(entry.key.clone(), value).with_headers(entry.headers.clone());
            copies.commit(&bucket, Batch::from(put)).await
        };
        let error = copy("7").await.unwrap_err();
        let is_broken = matches!(error, CommitError::Engine(EngineError::BrokenContract { .. }));
        assert!(is_broken, "{error:?}");
        copy("{}").await.unwrap();
    });
}
