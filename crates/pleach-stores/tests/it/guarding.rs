use std::time::Duration;

use pleach_engine::{
    Batch, BucketConfig, Clock, CommitError, Engine, EngineError, ErrorKind, Expiry, Headers, Key, Operation,
};
use pleach_stores::state::{STATE_BUCKET, STATE_LOG_BUCKET};
use pleach_stores::{AuthorityError, Envelope, Guarded, PlanOptions, SYSTEM_BUCKET};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract, name, note, notes, put, refusal, short_note};

pub(crate) async fn an_owned_bucket_takes_what_its_contract_allows(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "hello"}"#).await.unwrap();
    let reason = refusal(given.put(NOTES, "two", r#"{"text": 5}"#).await);
    assert!(reason.contains("acme.notes@v1") && reason.contains("/text: this must be string"), "{reason}");
    let reason = refusal(given.put(NOTES, "two", "hello").await);
    assert!(reason.contains("not JSON"), "{reason}");
    assert!(given.get(NOTES, "two").await.is_none());
    // Deleting is free.
    let key = Key::parse("one").unwrap();
    given.engine.commit(&name(NOTES), Batch::new().delete(key)).await.unwrap();
}

pub(crate) async fn a_refused_batch_writes_nothing(given: Given) {
    given.accept(&notes(note())).await;
    let key = |text: &str| Key::parse(text).unwrap();
    let batch = Batch::new().put(key("good"), r#"{"text": ""}"#).put(key("bad"), "{}");
    let error = given.engine.commit(&name(NOTES), batch).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Engine(EngineError::BrokenContract { key, .. }) if key.as_str() == "bad")
    );
    assert!(given.get(NOTES, "good").await.is_none());
}

pub(crate) async fn raw_writes_are_stamped_with_the_version_in_force(given: Given) {
    let applied = given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "hello"}"#).await.unwrap();
    let envelope = Envelope::read(&given.get(NOTES, "one").await.unwrap().headers).unwrap();
    assert_eq!((envelope.version.as_str(), envelope.writer), ("v1", applied.digest));
    // A version that nobody knows is refused.
    let mut headers = Headers::new();
    headers.set(Envelope::VERSION, "v7").unwrap();
    let operation = Operation::put(Key::parse("two").unwrap(), r#"{"text": ""}"#).with_headers(headers);
    let refused = given.engine.commit(&name(NOTES), operation.into()).await.map(|committed| committed.last);
    assert!(refusal(refused).contains("version `v7`"));
}

pub(crate) async fn a_key_must_be_of_a_keyspace(given: Given) {
    let resource = json!({
        "purpose": "Notes", "schema": {"schema": "Note"},
        "keyspaces": {"note": {"key": "note.{id:uint}"}},
        "indexes": {"by_text": {"of": "note", "key": "text.{text}.{id:uint}", "values": {"text": "/text"}}},
    });
    given.accept(&contract(json!({"Note": note()}), json!({"notes": resource}))).await;
    let key = pleach_contract::key::Grammar::parse("note.{id:uint}").unwrap().build(&[7_u64.into()]).unwrap();
    given.put(NOTES, key.as_str(), r#"{"text": ""}"#).await.unwrap();
    let reason = refusal(given.put(NOTES, "other.7", r#"{"text": ""}"#).await);
    assert!(reason.contains("no keyspace"), "{reason}");
    let index = key.as_str().replace("note.", "text.a.");
    let reason = refusal(given.put(NOTES, &index, r#"{"text": ""}"#).await);
    assert!(reason.contains("`by_text`"), "{reason}");
}

pub(crate) async fn an_owned_bucket_is_not_managed_by_hand(given: Given) {
    given.accept(&notes(note())).await;
    let bucket = name(NOTES);
    let info = given.engine.bucket(&bucket).await.unwrap();
    let config = BucketConfig { history: 9.try_into().unwrap(), ..info.config.clone() };
    let error = given.engine.update_bucket(&bucket, config).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::ContractOwned { owner, .. } if owner == "acme.notes@v1"),
        "{error:?}"
    );
    assert!(error.help().contains("pleach contract plan"));
    assert!(matches!(given.engine.delete_bucket(&bucket).await, Err(EngineError::ContractOwned { .. })));
    // Whoever asks for what is there finds it.
    given.engine.create_bucket(&bucket, info.config.clone()).await.unwrap();
    assert_eq!(given.engine.bucket(&bucket).await.unwrap().config, info.config);
}

pub(crate) async fn buckets_that_nobody_owns_are_as_they_were(given: Given) {
    given.accept(&notes(note())).await;
    let bucket = name("carts");
    given.engine.create_bucket(&bucket, BucketConfig::default()).await.unwrap();
    given.put("carts", "one", "no json").await.unwrap();
    assert!(given.get("carts", "one").await.unwrap().headers.is_empty());
    let config = BucketConfig { history: 9.try_into().unwrap(), ..BucketConfig::default() };
    given.engine.update_bucket(&bucket, config).await.unwrap();
    given.engine.delete_bucket(&bucket).await.unwrap();
}

pub(crate) async fn breaking_the_glass_passes_and_is_recorded(given: Given) {
    given.accept(&notes(note())).await;
    let glass = given.engine.break_glass("ann", "repairing case 7").unwrap();
    put(&glass, NOTES, "one", "broken").await.unwrap();
    assert_eq!(&given.get(NOTES, "one").await.unwrap().value[..], b"broken");
    put(&glass, NOTES, "two", "broken").await.unwrap();
    glass.delete_bucket(&name(NOTES)).await.unwrap();
    let acts = given.contracts.broken_glass().await.unwrap();
    let shown: Vec<_> = acts.iter().map(|act| (act.act.as_str(), act.keys.join(" "), act.count)).collect();
    let expected =
        [("written to", "one".into(), 1), ("written to", "two".into(), 1), ("deleted", String::new(), 0)];
    assert_eq!(shown, expected);
    assert!(acts.iter().all(|act| act.who == "ann" && act.why == "repairing case 7" && act.bucket == NOTES));
    // What nobody owns is not recorded.
    glass.create_bucket(&name("carts"), BucketConfig::default()).await.unwrap();
    put(&glass, "carts", "one", "x").await.unwrap();
    assert_eq!(given.contracts.broken_glass().await.unwrap().len(), 3);
}

pub(crate) async fn the_glass_is_broken_by_someone_for_a_reason(given: Given) {
    assert!(given.engine.break_glass("", "a reason").is_err());
    assert!(given.engine.break_glass("ann", "  ").is_err());
}

pub(crate) async fn a_keyspace_has_its_own_time_to_live(given: Given) {
    let resource = json!({
        "purpose": "Notes", "schema": {"schema": "Note"},
        "keyspaces": {"long": {"key": "long.{id}"}, "brief": {"key": "brief.{id}", "ttlMs": 60_000}},
    });
    given.accept(&contract(json!({"Note": note()}), json!({"notes": resource}))).await;
    for key in ["long.a", "brief.a"] {
        given.put(NOTES, key, r#"{"text": ""}"#).await.unwrap();
    }
    given.clock.advance(Duration::from_secs(61));
    assert!(given.get(NOTES, "long.a").await.is_some());
    assert!(given.get(NOTES, "brief.a").await.is_none());
}

/// A write may ask for a shorter life than its keyspace grants, and never gets a longer one.
pub(crate) async fn no_value_outlives_the_time_to_live_of_its_keyspace(given: Given) {
    let resource = json!({
        "purpose": "Notes", "schema": {"schema": "Note"},
        "keyspaces": {"long": {"key": "long.{id}"}, "brief": {"key": "brief.{id}", "ttlMs": 60_000}},
    });
    given.accept(&contract(json!({"Note": note()}), json!({"notes": resource}))).await;
    let now = given.clock.now();
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
    let asked = [
        ("brief.bucket", Expiry::Bucket, 60),
        ("brief.after", Expiry::After(hour), 60),
        ("brief.at", Expiry::At(now.saturating_add(hour)), 60),
        ("brief.soon", Expiry::After(second), 1),
        ("brief.then", Expiry::At(now.saturating_add(second)), 1),
        ("long.after", Expiry::After(hour), 3600),
        ("long.at", Expiry::At(now.saturating_add(hour)), 3600),
    ];
    for (key, expiry, seconds) in asked {
        let put = Operation::put(Key::parse(key).unwrap(), r#"{"text": ""}"#).expiring(expiry);
        given.engine.commit(&name(NOTES), put.into()).await.unwrap();
        let expires = given.get(NOTES, key).await.unwrap().expires;
        assert_eq!(expires, Some(now.saturating_add(Duration::from_secs(seconds))), "{key}");
    }
}

pub(crate) async fn guards_are_there_after_a_restart(mut given: Given) {
    given.accept(&notes(short_note())).await;
    given.restart();
    refusal(given.put(NOTES, "one", r#"{"text": "much too long"}"#).await);
    given.put(NOTES, "one", r#"{"text": "short"}"#).await.unwrap();
}

/// On engines that others write to, guards are looked up again when they are older than a second.
#[test]
fn guards_of_another_process_are_noticed_within_a_second() {
    pollster::block_on(async {
        let given = Given::able(|can| can.sole_writer = false);
        let clock = std::sync::Arc::clone(&given.clock);
        let other = Guarded::new(
            std::sync::Arc::clone(&given.below) as std::sync::Arc<dyn Engine>,
            clock as std::sync::Arc<dyn Clock>,
        );
        other.create_bucket(&name("carts"), BucketConfig::default()).await.unwrap();
        put(&other, "carts", "one", "anything").await.unwrap();
        given.accept(&notes(note())).await;
        given.clock.advance(pleach_stores::GUARD_AGE_MAX);
        refusal(put(&other, NOTES, "one", "anything").await);
    });
}

pub(crate) async fn what_the_store_keeps_itself_is_not_touched_by_hand(given: Given) {
    for bucket in [STATE_BUCKET, STATE_LOG_BUCKET] {
        given.engine.for_state().create_bucket(&name(bucket), Default::default()).await.unwrap();
        let key = Key::parse("u.x.y.z").unwrap();
        let refused = |error: EngineError| {
            assert!(matches!(error, EngineError::StoreOwned { .. }), "{error:?}");
            assert_eq!(error.kind(), ErrorKind::NotAllowed);
            assert!(error.help().contains("pleach state admin"), "{}", error.help());
        };
        let commit = async |engine: &Guarded, batch: Batch| match engine.commit(&name(bucket), batch).await {
            Err(CommitError::Engine(error)) => Some(error),
            other => other.map(|_| None).unwrap(),
        };
        let put = || Batch::new().put(key.clone(), "{}");
        refused(commit(&given.engine, put()).await.unwrap());
        refused(commit(&given.engine, Batch::new().delete(key.clone())).await.unwrap());
        refused(commit(&given.engine, Batch::new().purge(key.clone())).await.unwrap());
        refused(given.engine.compact_key(&name(bucket), &key, 1.try_into().unwrap()).await.unwrap_err());
        refused(given.engine.delete_bucket(&name(bucket)).await.unwrap_err());
        refused(given.engine.update_bucket(&name(bucket), Default::default()).await.unwrap_err());
        let adopt = [("notes".to_owned(), name(bucket))].into();
        let planned =
            given.contracts.plan(&notes(note()), PlanOptions { adopt, ..PlanOptions::default() }).await;
        assert!(matches!(planned, Err(AuthorityError::NotAdopted { .. })), "{planned:?}");
        // Those whose it is write to it what accepted contracts allow, and manage nothing.
        let state = given.engine.for_state();
        assert!(commit(&state, Batch::new().delete(key.clone())).await.is_none());
        let unaccepted = commit(&state, put()).await;
        assert_eq!(
            matches!(unaccepted, Some(EngineError::BrokenContract { .. })),
            bucket == STATE_BUCKET,
            "{unaccepted:?}"
        );
        refused(state.delete_bucket(&name(bucket)).await.unwrap_err());
        refused(state.update_bucket(&name(bucket), Default::default()).await.unwrap_err());
        let copies = given.engine.for_copies();
        assert!(commit(&copies, put()).await.is_none());
        copies.update_bucket(&name(bucket), Default::default()).await.unwrap();
        copies.compact_key(&name(bucket), &key, 1.try_into().unwrap()).await.unwrap();
        refused(copies.delete_bucket(&name(bucket)).await.unwrap_err());
        // In an emergency, on record.
        let before = given.contracts.broken_glass().await.unwrap().len();
        let glass = given.engine.break_glass("ann", "a repair").unwrap();
        assert!(commit(&glass.for_copies(), put()).await.is_none());
        glass.delete_bucket(&name(bucket)).await.unwrap();
        let acts = given.contracts.broken_glass().await.unwrap().split_off(before);
        let acts: Vec<_> =
            acts.iter().map(|act| (act.bucket.as_str(), act.act.as_str(), act.count)).collect();
        assert_eq!(acts, [(bucket, "written to", 1), (bucket, "deleted", 0)]);
    }
}

/// Whoever made them would say how long their values live.
pub(crate) async fn what_the_store_keeps_itself_is_not_made_by_hand(given: Given) {
    let config = || BucketConfig { ttl: Some(Duration::from_secs(1)), ..BucketConfig::default() };
    for bucket in [STATE_BUCKET, STATE_LOG_BUCKET].map(name) {
        let error = given.engine.create_bucket(&bucket, config()).await.unwrap_err();
        assert!(matches!(error, EngineError::StoreOwned { .. }), "{error:?}");
        assert!(matches!(given.engine.bucket(&bucket).await, Err(EngineError::BucketNotFound { .. })));
        for engine in [given.engine.for_copies(), given.engine.for_state()] {
            engine.create_bucket(&bucket, config()).await.unwrap();
            given.below.delete_bucket(&bucket).await.unwrap();
        }
    }
    let glass = given.engine.break_glass("ann", "a repair").unwrap();
    glass.create_bucket(&name(STATE_BUCKET), config()).await.unwrap();
    let acts = given.contracts.broken_glass().await.unwrap();
    assert_eq!(acts.last().map(|act| act.act.as_str()), Some("created"));
}

/// No way in leads to the records of the authority.
pub(crate) async fn no_way_leads_to_the_system_bucket(given: Given) {
    given.accept(&notes(note())).await;
    let glass = given.engine.break_glass("ann", "a test").unwrap();
    for engine in [given.engine.clone(), given.engine.for_state(), given.engine.for_copies(), glass] {
        assert!(refusal(put(&engine, SYSTEM_BUCKET, "store", "{}").await).contains("the store itself"));
        let system = name(SYSTEM_BUCKET);
        let key = Key::parse("store").unwrap();
        for error in [
            engine.delete_bucket(&system).await.unwrap_err(),
            engine.update_bucket(&system, Default::default()).await.map(drop).unwrap_err(),
            engine.compact_key(&system, &key, 1.try_into().unwrap()).await.unwrap_err(),
        ] {
            assert!(matches!(&error, EngineError::StoreOwned { .. }), "{error:?}");
            assert!(error.help().contains("pleach contract"), "{}", error.help());
        }
    }
    assert!(given.contracts.broken_glass().await.unwrap().is_empty());
}
