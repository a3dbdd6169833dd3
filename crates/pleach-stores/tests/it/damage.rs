use pleach_contract::{Contract, ContractId};
use pleach_engine::{CommitError, Engine, EngineError, ErrorKind};
use pleach_stores::{AuthorityError, GRACE, PlanOptions, SYSTEM_BUCKET};

use crate::Given;
use crate::given::{NOTES, contract, contract_of, lineage, name, note, notes, short_note};

const TOKEN: &str = "acme/notes=v1";

fn is_damaged(error: &AuthorityError, key: &str, revision: pleach_engine::Revision) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    let text = error.to_string();
    assert!(text.contains(key) && text.contains(&revision.to_string()), "{text}");
}

pub(crate) async fn a_damaged_owner_stops_writes_to_its_bucket_only(mut given: Given) {
    given.accept(&notes(note())).await;
    given.accept(&mails(note())).await;
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

fn mails(schema: serde_json::Value) -> Contract {
    let kv = serde_json::json!({"mails": {"purpose": "Mails", "schema": {"schema": "Note"}}});
    contract_of("acme.mail@v1", serde_json::json!({"Note": schema}), kv)
}

fn mail() -> ContractId {
    ContractId::parse("acme.mail@v1").unwrap()
}

/// The record of one bucket is damaged: whoever has nothing to do with that bucket goes on.
pub(crate) async fn a_damaged_owner_concerns_nobody_else(mut given: Given) {
    given.accept(&notes(note())).await;
    given.accept(&mails(note())).await;
    given.put("svc_mail_mails", "one", r#"{"text": "tiny"}"#).await.unwrap();
    given.plant(SYSTEM_BUCKET, &format!("bucket.{NOTES}"), "{damaged").await;
    for restarts in [false, true] {
        if restarts {
            given.restart();
        }
        given.contracts.status(&mail()).await.unwrap().unwrap();
        given.contracts.resume(&mail()).await.unwrap();
        assert_eq!(given.contracts.lineages().await.unwrap().len(), 2);
        let schema = if restarts { short_note() } else { note() };
        let plan = given.plan(&mails(schema)).await;
        if restarts {
            given.apply(&plan).await.unwrap();
        }
    }
    given.insist(&contract_of("acme.mail@v1", serde_json::json!({}), serde_json::json!({}))).await;
    given.clock.advance(GRACE);
    assert_eq!(given.contracts.sweep().await.unwrap(), [name("svc_mail_mails")]);
    // A bucket of the lineage itself: to leave it, one must know what it is.
    let error = given
        .contracts
        .plan(&contract(serde_json::json!({}), serde_json::json!({})), PlanOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    assert!(error.help().contains("pleach contract status"), "{}", error.help());
}

/// So it is with the authority of one lineage, and with plans.
pub(crate) async fn a_damaged_authority_or_plan_concerns_nobody_else(given: Given) {
    given.accept(&notes(note())).await;
    given.accept(&mails(note())).await;
    let plan = given.plan(&notes(short_note())).await;
    given.plant(SYSTEM_BUCKET, &format!("plan.{TOKEN}.{}", plan.id), "{}").await;
    // Another plan of the same lineage.
    let next = given.plan(&notes(serde_json::json!({"type": "object"}))).await;
    assert_eq!(given.contracts.status(&lineage()).await.unwrap().unwrap().plans.len(), 1);
    assert_eq!(given.contracts.pending("").await.unwrap(), std::slice::from_ref(&next));
    given.apply(&next).await.unwrap();
    given.plant(SYSTEM_BUCKET, &format!("authority.{TOKEN}"), "{}").await;
    let all = given.contracts.lineages().await.unwrap();
    assert_eq!(
        all.iter().map(|status| status.authority.lineage.as_str()).collect::<Vec<_>>(),
        ["acme.mail@v1"]
    );
    given.contracts.pending("").await.unwrap();
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

/// One list of all that cannot be read, each with its key and revision.
pub(crate) async fn every_damage_is_told(given: Given) {
    let applied = given.accept(&notes(note())).await;
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(given.contracts.damages().await.unwrap(), []);
    let contract = format!("contract.{TOKEN}.{}", applied.digest);
    let mut wanted = vec![
        (format!("authority.{TOKEN}"), "{}"),
        (format!("bucket.{NOTES}"), "{damaged"),
        (contract.clone(), "{}"),
        (format!("decision.{TOKEN}.0000000002"), "[]"),
        ("glass.000000000000000001.000".to_owned(), "7"),
        (format!("plan.{TOKEN}.{}", plan.id), "{}"),
    ];
    wanted.sort();
    for (key, value) in &wanted {
        given.plant(SYSTEM_BUCKET, key, value).await;
    }
    let damages = given.contracts.damages().await.unwrap();
    assert_eq!(
        damages.iter().map(|damage| damage.key.as_str()).collect::<Vec<_>>(),
        wanted.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>()
    );
    assert!(damages.iter().all(|damage| damage.revision > pleach_engine::Revision::ZERO));
    // What was accepted and is not there any more is as bad.
    let key = pleach_engine::Key::parse(&contract).unwrap();
    given.below.commit(&name(SYSTEM_BUCKET), pleach_engine::Batch::new().delete(key)).await.unwrap();
    let damages = given.contracts.damages().await.unwrap();
    let lost = damages.iter().find(|damage| damage.key.as_str() == contract).unwrap();
    assert!(lost.what.contains("missing"), "{lost:?}");
}

/// A decision that names no contract is one damage among others.
pub(crate) async fn a_decision_that_leads_nowhere_is_damaged(given: Given) {
    given.accept(&notes(note())).await;
    let mut wanted = Vec::new();
    for (version, digest) in [(2, ""), (3, "a b")] {
        let decision = serde_json::json!({
            "version": version, "digest": digest, "plan": "p", "who": "ann", "time": "2026-01-01T12:00:00Z",
        });
        let key = format!("decision.{TOKEN}.{version:010}");
        let revision = given.plant(SYSTEM_BUCKET, &key, &decision.to_string()).await;
        wanted.push((key, revision));
    }
    let damages = given.contracts.damages().await.unwrap();
    let found = damages.iter().map(|damage| (damage.key.to_string(), damage.revision));
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    assert!(damages.iter().all(|damage| damage.what.contains("digest")), "{damages:?}");
}

/// JSON that can be read and means nothing stops writes to its bucket, and to no other.
pub(crate) async fn a_record_that_says_what_cannot_be_is_damaged(mut given: Given) {
    given.accept(&notes(note())).await;
    given.accept(&mails(note())).await;
    let owner = |lineage: &str, digest: &str| {
        serde_json::json!({"lineage": lineage, "alias": "notes", "digest": digest, "state": {"is": "owned"}})
            .to_string()
    };
    for record in
        [owner("no lineage at all\n", "x"), owner("acme.notes@v1", "a b"), owner("acme.notes@v1", "x")]
    {
        given.plant(SYSTEM_BUCKET, &format!("bucket.{NOTES}"), &record).await;
        given.restart();
        let error = given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap_err();
        assert!(
            matches!(&error, CommitError::Engine(EngineError::DamagedRecord { .. })),
            "{record}: {error:?}"
        );
        given.put("svc_mail_mails", "one", r#"{"text": ""}"#).await.unwrap();
    }
}
