use std::time::Duration;

use futures_util::future::join_all;
use pleach_engine::{BucketConfig, Engine};
use pleach_stores::{
    ApplyOptions, AuthorityError, Materialised, OWNER_METADATA, PLAN_LIFETIME, Plan, PlanStatus, Step,
};
use serde_json::json;

use crate::Given;
use crate::given::{LINEAGE, NOTES, lineage, name, note, notes, notes_with, short_note};

pub(crate) async fn a_contract_comes_into_force(given: Given) {
    let contract = notes_with(note(), json!({"history": 3, "ttlMs": 3_600_000, "maxValueBytes": 1000}));
    let plan = given.plan(&contract).await;
    assert!(matches!(&plan.steps[..], [Step::Create { bucket, .. }] if bucket == NOTES));
    let applied = given.apply(&plan).await.unwrap();
    assert_eq!(
        (applied.lineage.as_str(), applied.version, applied.digest),
        (LINEAGE, 1, contract.digest().to_string())
    );
    let config = given.engine.bucket(&name(NOTES)).await.unwrap().config;
    assert_eq!(
        (config.history.get(), config.ttl, config.value_bytes_max),
        (3, Some(Duration::from_secs(3600)), 1000)
    );
    assert_eq!(config.metadata[OWNER_METADATA], LINEAGE);
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.status, status.is_unfinished), (Materialised::Current, false));
    assert_eq!(given.contracts.desired(&lineage()).await.unwrap().unwrap(), contract);
    let (_, became) = given.contracts.planned(&lineage(), &plan.id).await.unwrap();
    assert_eq!(became, PlanStatus::Accepted);
}

pub(crate) async fn a_plan_whose_base_moved_is_refused(given: Given) {
    let first = given.plan(&notes(note())).await;
    let second = given.plan(&notes(short_note())).await;
    given.apply(&second).await.unwrap();
    let error = given.apply(&first).await.unwrap_err();
    assert!(matches!(&error, AuthorityError::Moved { lineage, .. } if lineage == LINEAGE), "{error:?}");
    // Nor is it shown as one that could be.
    assert!(given.contracts.status(&lineage()).await.unwrap().unwrap().plans.is_empty());
    assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 1);
}

pub(crate) async fn a_plan_of_another_store_is_refused(given: Given) {
    let elsewhere = Given::in_memory();
    let plan = elsewhere.plan(&notes(note())).await;
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::OtherStore { .. }), "{error:?}");
    // Nor does it help to say that it is of this one.
    let ours = given.plan(&notes(short_note())).await;
    let error = given.apply(&Plan { store: ours.store, ..plan }).await.unwrap_err();
    assert!(matches!(error, AuthorityError::EditedPlan { .. }), "{error:?}");
    assert!(given.contracts.status(&lineage()).await.unwrap().is_none());
}

pub(crate) async fn an_edited_plan_is_refused(given: Given) {
    let plan = given.plan(&notes(note())).await;
    let edits = [
        Plan { steps: Vec::new(), ..plan.clone() },
        Plan { service: "other".into(), ..plan.clone() },
        Plan { expires: plan.expires.saturating_add(Duration::from_secs(1)), ..plan.clone() },
        Plan { contract: notes(short_note()).to_value(), ..plan.clone() },
        Plan { format: "pleach.plan.v1".into(), ..plan.clone() },
        Plan { format: "pleach.plan.v3".into(), ..plan.clone() },
        Plan { lineage: "acme.other@v1".into(), ..plan.clone() },
        Plan { lineage: "no lineage\n.>".into(), ..plan.clone() },
    ];
    for edited in edits {
        let error = given.apply(&edited).await.unwrap_err();
        assert!(matches!(error, AuthorityError::EditedPlan { .. }), "{error:?}");
    }
    // One with an id that this store has never given.
    let error = given.contracts.planned(&lineage(), "../x y").await.unwrap_err();
    assert!(matches!(error, AuthorityError::UnknownPlan { .. }), "{error:?}");
    given.apply(&plan).await.unwrap();
}

pub(crate) async fn an_expired_plan_is_refused(given: Given) {
    let plan = given.plan(&notes(note())).await;
    given.clock.advance(PLAN_LIFETIME);
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::PlanOver { status: "expired", .. }), "{error:?}");
}

pub(crate) async fn a_rejected_plan_is_refused(given: Given) {
    let plan = given.plan(&notes(note())).await;
    given.contracts.reject(&lineage(), &plan.id).await.unwrap();
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::PlanOver { status: "rejected", .. }), "{error:?}");
    let error = given.contracts.reject(&lineage(), &plan.id).await.unwrap_err();
    assert!(matches!(error, AuthorityError::PlanOver { .. }), "{error:?}");
}

/// In two processes, as far as memory is concerned.
pub(crate) async fn of_two_applies_at_once_one_wins(given: Given) {
    let mut contracts = vec![given.contracts.clone()];
    for _ in 0..3 {
        let clock = std::sync::Arc::clone(&given.clock) as std::sync::Arc<dyn pleach_engine::Clock>;
        let engine = pleach_stores::Guarded::new(
            std::sync::Arc::clone(&given.below) as std::sync::Arc<dyn Engine>,
            clock,
        );
        contracts.push(pleach_stores::Contracts::of(&engine));
    }
    for round in 1..=8_u64 {
        let mut plans = Vec::new();
        for history in 0..4 {
            let more = json!({"history": 1 + (round * 4 + history) % 60});
            plans.push(given.plan(&notes_with(note(), more)).await);
        }
        let options = || ApplyOptions::by("ann").acknowledging("a race");
        let results =
            join_all(contracts.iter().zip(&plans).map(|(contracts, plan)| contracts.apply(plan, options())))
                .await;
        let won: Vec<_> = results.iter().flatten().collect();
        assert_eq!(won.len(), 1, "{results:?}");
        for lost in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(lost, AuthorityError::Moved { .. }), "{lost:?}");
        }
        let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
        assert_eq!((status.authority.version, &status.authority.digest), (round, &won[0].digest));
        assert!(!status.is_unfinished, "{status:?}");
        let plan = plans.iter().find(|plan| plan.target == won[0].digest).unwrap();
        let history = plan.contract["resources"]["kv"]["notes"]["history"].as_u64().unwrap();
        let config = given.engine.bucket(&name(NOTES)).await.unwrap().config;
        assert_eq!(u64::from(config.history.get()), history);
    }
}

pub(crate) async fn a_drifted_bucket_is_configured_again(given: Given) {
    given.accept(&notes_with(note(), json!({"history": 3}))).await;
    let glass = given.engine.break_glass("ann", "a test").unwrap();
    let config = glass.bucket(&name(NOTES)).await.unwrap().config;
    glass
        .update_bucket(&name(NOTES), BucketConfig { history: 1.try_into().unwrap(), ..config })
        .await
        .unwrap();
    let plan = given.plan(&notes_with(note(), json!({"history": 3}))).await;
    assert!(!plan.is_nothing());
    given.apply(&plan).await.unwrap();
    assert_eq!(given.engine.bucket(&name(NOTES)).await.unwrap().config.history.get(), 3);
    glass.delete_bucket(&name(NOTES)).await.unwrap();
    let plan = given.plan(&notes_with(note(), json!({"history": 3}))).await;
    assert!(matches!(&plan.steps[..], [Step::Create { .. }]));
    given.apply(&plan).await.unwrap();
    given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
}

pub(crate) async fn what_was_decided_is_kept(given: Given) {
    given.accept(&notes(note())).await;
    let error = {
        let plan = given.plan(&notes_with(note(), json!({"history": 2}))).await;
        given.contracts.apply(&plan, ApplyOptions::by(" ")).await.unwrap_err()
    };
    assert!(matches!(error, AuthorityError::Missing { .. }), "{error:?}");
    given.clock.advance(Duration::from_secs(60));
    given.insist(&notes_with(note(), json!({"history": 2}))).await;
    let history = given.contracts.history(&lineage()).await.unwrap();
    let shown: Vec<_> =
        history.iter().map(|one| (one.version, one.who.as_str(), one.acknowledgement.as_deref())).collect();
    assert_eq!(shown, [(1, "ann", None), (2, "ann", Some("it is a test"))]);
    assert_eq!(history[1].time.since(history[0].time), Duration::from_secs(60));
    let first = given.contracts.contract(&lineage(), &history[0].digest).await.unwrap();
    assert_eq!(first, notes(note()));
}

pub(crate) async fn code_is_bound_to_what_was_accepted(given: Given) {
    let error = given.contracts.bind(&notes(note())).await.unwrap_err();
    assert!(matches!(error, AuthorityError::UnknownLineage { .. }), "{error:?}");
    given.accept(&notes(note())).await;
    assert_eq!(given.contracts.bind(&notes(note())).await.unwrap()["notes"].bucket, NOTES);
    let error = given.contracts.bind(&notes(short_note())).await.unwrap_err();
    assert!(matches!(error, AuthorityError::NotAccepted { .. }), "{error:?}");
    // While the next version is rolled out, the old one goes on.
    let next = |accepted: serde_json::Value| {
        notes_with(short_note(), json!({"version": "v2", "acceptedVersions": accepted}))
    };
    given.insist(&next(json!({"v1": {"schema": "Note"}}))).await;
    assert_eq!(given.contracts.bind(&notes(note())).await.unwrap()["notes"].bucket, NOTES);
    given.insist(&next(json!({}))).await;
    let error = given.contracts.bind(&notes(note())).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Outdated { .. }), "{error:?}");
}
