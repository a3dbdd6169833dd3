use pleach_engine::{CommitError, EngineError, ErrorKind};
use pleach_stores::{AuthorityError, PlanOptions, SYSTEM_BUCKET};

use crate::Given;
use crate::given::{NOTES, contract_of, lineage, note, notes, short_note};

const TOKEN: &str = "acme/notes=v1";

fn is_damaged(error: &AuthorityError, key: &str, revision: pleach_engine::Revision) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    let text = error.to_string();
    assert!(text.contains(key) && text.contains(&revision.to_string()), "{text}");
}

pub(crate) async fn a_damaged_owner_stops_writes_to_its_bucket_only(mut given: Given) {
    given.accept(&notes(note())).await;
    let kv = serde_json::json!({"mails": {"purpose": "Mails", "schema": {"schema": "Note"}}});
    given.accept(&contract_of("acme.mail@v1", serde_json::json!({"Note": note()}), kv)).await;
    let damaged = given.plant(SYSTEM_BUCKET, &format!("bucket.{NOTES}"), "{damaged").await;
    given.restart();
    let error = given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Engine(EngineError::DamagedRecord { revision, .. }) if *revision == damaged),
        "{error:?}"
    );
    given.put("svc_mail_mails", "one", r#"{"text": ""}"#).await.unwrap();
    let error = given.contracts.plan(&notes(short_note()), PlanOptions::default()).await.unwrap_err();
    is_damaged(&error, &format!("bucket.{NOTES}"), damaged);
}

pub(crate) async fn a_damaged_authority_is_named(given: Given) {
    given.accept(&notes(note())).await;
    for bad in ["", "[]", r#"{"lineage": 7}"#, r#"{"lineage": "x", "unknown": 1}"#] {
        let damaged = given.plant(SYSTEM_BUCKET, &format!("authority.{TOKEN}"), bad).await;
        let error = given.contracts.status(&lineage()).await.unwrap_err();
        is_damaged(&error, "authority.", damaged);
        let error = given.contracts.plan(&notes(short_note()), PlanOptions::default()).await.unwrap_err();
        is_damaged(&error, "authority.", damaged);
        // It is as it was left.
        assert_eq!(
            &given.get(SYSTEM_BUCKET, &format!("authority.{TOKEN}")).await.unwrap().value[..],
            bad.as_bytes()
        );
    }
    // What is written goes on by the guards there are.
    given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
}

pub(crate) async fn a_damaged_contract_is_named(mut given: Given) {
    let applied = given.accept(&notes(note())).await;
    let key = format!("contract.{TOKEN}.{}", applied.digest);
    // Another contract than the digest says is as bad as none.
    let damaged = given.plant(SYSTEM_BUCKET, &key, &notes(short_note()).to_value().to_string()).await;
    let error = given.contracts.desired(&lineage()).await.unwrap_err();
    is_damaged(&error, &key, damaged);
    given.restart();
    let error = given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap_err();
    assert!(matches!(error, CommitError::Engine(EngineError::DamagedRecord { .. })), "{error:?}");
}

pub(crate) async fn a_damaged_plan_is_named(given: Given) {
    let plan = given.plan(&notes(note())).await;
    let key = format!("plan.{TOKEN}.{}", plan.id);
    let damaged = given.plant(SYSTEM_BUCKET, &key, "{}").await;
    let error = given.apply(&plan).await.unwrap_err();
    is_damaged(&error, &key, damaged);
}
