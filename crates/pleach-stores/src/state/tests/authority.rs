use pleach_engine::{
    At, ConsumerName, ConsumerStart, Engine, EngineError, ErrorKind, ScanQuery, Selection, WatchQuery,
};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;
use crate::{AuthorityError, Contracts, Materialised};

fn refused(outcome: Result<StateContract, StateError>) -> AuthorityError {
    match outcome {
        Err(StateError::Authority(error)) => *error,
        other => panic!("{other:?}"),
    }
}

/// A contract whose drafts have this schema, in the version `v1`.
fn drafts_of(schema: &str) -> pleach_contract::Contract {
    contract("acme.notes@v1", json!({"drafts": {"kind": "map", "schema": {"schema": schema}}}))
}

pub(super) async fn a_contract_that_was_never_accepted_has_no_session(given: Given) {
    let error = given.state.contract(&first()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.help().contains("`pleach contract plan FILE`") && error.help().contains("`apply`"));
    assert!(
        matches!(refused(Err(error)), AuthorityError::UnknownLineage { lineage } if lineage == "acme.notes@v1")
    );
    // A plan alone accepts nothing.
    let contracts = Contracts::of(&given.guarded);
    contracts.plan(&first(), crate::PlanOptions::default()).await.unwrap();
    assert!(given.state.contract(&first()).await.is_err());
    given.accept(&first()).await;
    given.state.contract(&first()).await.unwrap();
    let error = refused(given.state.contract(&second()).await);
    assert!(matches!(&error, AuthorityError::NotAccepted { .. }), "{error}");
    assert!(error.help().contains("`pleach contract plan FILE`"));
}

/// As while a new version is rolled out.
pub(super) async fn a_program_of_the_previous_contract_goes_on(given: Given) {
    let old = given.ann();
    given.accept(&second()).await;
    for session in [
        &old,
        &given.state.session("user:ann".parse().unwrap(), &given.state.contract(&first()).await.unwrap()),
    ] {
        let _ = applied(session.value::<Value>("preferences").unwrap().put(&json!({"theme": "dark"})).await);
        let _ = applied(session.map::<Value>("drafts").unwrap().put("a", &draft("x")).await);
    }
    let new = given.session("user:ann", &second());
    let seen = new.value::<Value>("preferences").unwrap().get().await.unwrap();
    assert!(matches!(seen, GetOutcome::MigrationRequired(old) if old.state_version == "preferences.v1"));
    let _ = applied(
        new.value::<Value>("preferences").unwrap().put(&json!({"theme": "x", "compact": true})).await,
    );
}

/// Whatever the contract of the session itself would take.
pub(super) async fn what_breaks_the_contract_in_force_is_not_written(given: Given) {
    let old = given.session("user:ann", &drafts_of("Any")).map::<Value>("drafts").unwrap();
    let kept = applied(old.put("a", &draft("kept")).await);
    given.accept(&drafts_of("Draft")).await;
    let puts = [PutOptions::default(), expecting(Expect::Revision(kept.revision)), living(60_000)];
    for options in puts {
        let error = old.put_with("a", &json!(7), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(matches!(&error, StateError::NotInForce { place, .. } if place == "drafts/a"), "{error}");
        assert!(error.help().contains("contract in force"));
    }
    assert_eq!(found(old.get("a").await), kept, "nothing was written");
    // What keeps both is written, and deletes are free.
    let _ = applied(old.put("a", &draft("new")).await);
    assert_eq!(old.delete("a").await.unwrap(), DeleteOutcome::Deleted);
}

pub(super) async fn a_store_that_the_contract_in_force_dropped_takes_nothing(given: Given) {
    let old = given.ann();
    let anything = old.map::<Value>("anything").unwrap();
    let kept = applied(anything.put("a", &json!(1)).await);
    given.accept(&drafts_of("Draft")).await;
    let error = anything.put("a", &json!(2)).await.unwrap_err();
    assert!(matches!(&error, StateError::NotInForce { .. }), "{error}");
    assert_eq!(found(anything.get("a").await), kept);
    let _ = applied(old.map::<Value>("drafts").unwrap().put("a", &draft("x")).await);
    assert_eq!(anything.delete("a").await.unwrap(), DeleteOutcome::Deleted);
    // A program that starts now learns it at once.
    let error = refused(given.state.contract(&first()).await);
    assert!(matches!(&error, AuthorityError::Outdated { alias, .. } if alias == "anything"), "{error}");
    // So does one whose store has another kind now.
    let changed = json!({"drafts": {"kind": "value", "schema": {"schema": "Draft"}}});
    given.accept(&contract("acme.notes@v1", changed)).await;
    let error = old.map::<Value>("drafts").unwrap().put("a", &draft("x")).await.unwrap_err();
    assert!(error.to_string().contains("changed its kind"), "{error}");
    assert!(matches!(
        refused(given.state.contract(&drafts_of("Draft")).await),
        AuthorityError::Outdated { .. }
    ));
}

pub(super) async fn a_contract_that_is_not_in_force_yet_has_no_session(given: Given) {
    let old = given.session("user:ann", &drafts_of("Any")).map::<Value>("drafts").unwrap();
    given.accept(&drafts_of("Draft")).await;
    // As an apply leaves it whose steps could not all be taken.
    let shared = given.guarded.shared();
    let kept = shared.system.authority("acme.notes@v1").await.unwrap().unwrap();
    let status = Materialised::Failed { plan: "p".into(), done: 0, why: "a test".into() };
    let failed = crate::Authority { status, ..kept.value.clone() };
    let put = shared.system.put_authority(&failed, crate::system::unchanged(Some(&kept))).unwrap();
    shared.system.commit(put.into()).await.unwrap();
    shared.reload().await.unwrap();
    let error = refused(given.state.contract(&drafts_of("Draft")).await);
    assert!(matches!(&error, AuthorityError::NotInForce { .. }), "{error}");
    given.state.contract(&drafts_of("Any")).await.unwrap();
    // What is written meanwhile can be read once it is.
    assert!(matches!(old.put("a", &json!(7)).await, Err(StateError::NotInForce { .. })));
    let _ = applied(old.put("a", &draft("x")).await);
}

pub(super) async fn ordinary_handles_do_not_show_state(given: Given) {
    let _ = applied(given.drafts().put("a", &draft("secret")).await);
    let _ = given.state.admin("olga", "a test").await.unwrap();
    let key = stored_key("user:ann", "drafts", Some("a"));
    let consumer = ConsumerName::parse("c").unwrap();
    for bucket in [STATE_BUCKET, STATE_LOG_BUCKET] {
        let bucket = pleach_engine::BucketName::parse(bucket).unwrap();
        let guarded = &given.guarded;
        let refusals = [
            guarded.read(&bucket, &key, At::Latest).await.err(),
            guarded.history(&bucket, &key).await.err(),
            guarded.scan(&bucket, ScanQuery::default()).await.err(),
            guarded.count(&bucket, Selection::all()).await.err(),
            guarded.watch(&bucket, WatchQuery::default()).await.err(),
            guarded.create_consumer(&bucket, &consumer, ConsumerStart::default()).await.err(),
            guarded.reset_consumer(&bucket, &consumer, ConsumerStart::default()).await.err(),
        ];
        for (number, error) in refusals.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("{bucket}: call {number} was not refused"));
            assert!(matches!(&error, EngineError::StoreOwned { action: "read", .. }), "{error}");
            assert_eq!(error.kind(), ErrorKind::NotAllowed);
            assert!(error.help().contains("`pleach state admin`"), "{}", error.help());
        }
        // That it is there is no secret.
        assert_eq!(guarded.bucket(&bucket).await.unwrap().name, bucket);
        assert!(guarded.buckets().await.unwrap().iter().any(|info| info.name == bucket));
    }
    let bucket = given.bucket();
    for way in [given.guarded.for_copies(), given.guarded.for_state()] {
        assert!(way.read(&bucket, &key, At::Latest).await.unwrap().is_some());
    }
    // In an emergency, on record.
    let glass = given.guarded.break_glass("ann", "a repair").unwrap();
    assert!(glass.read(&bucket, &key, At::Latest).await.unwrap().is_some());
    let acts = Contracts::of(&given.guarded).broken_glass().await.unwrap();
    assert_eq!(
        acts.iter().map(|act| (act.bucket.as_str(), act.act.as_str())).collect::<Vec<_>>(),
        [(STATE_BUCKET, "read")]
    );
}
