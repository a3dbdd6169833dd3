use std::time::Duration;

use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{BucketConfig, Engine, Key};
use pleach_stores::{
    AuthorityError, GRACE, OWNER_METADATA, Plan, PlanOptions, Read, SYSTEM_BUCKET, Service, Step, Unstamped,
};
use serde_json::json;

use crate::Given;
use crate::given::{contract, lineage, name, note, notes, notes_with, refusal};

async fn adopt(given: &Given, contract: &Contract, bucket: &str) -> Result<Plan, AuthorityError> {
    let adopt = [("notes".to_owned(), name(bucket))].into();
    given.contracts.plan(contract, PlanOptions { adopt, ..PlanOptions::default() }).await
}

async fn old_bucket(given: &Given, config: BucketConfig) {
    given.engine.create_bucket(&name("old"), config).await.unwrap();
    for number in 0..5 {
        given.put("old", &format!("n{number}"), r#"{"text": "of old"}"#).await.unwrap();
    }
}

pub(crate) async fn an_adopted_bucket_keeps_its_values(given: Given) {
    old_bucket(&given, BucketConfig::default()).await;
    let plan = adopt(&given, &notes(note()), "old").await.unwrap();
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    assert!(matches!(&plan.steps[..], [Step::Adopt { bucket, .. }] if bucket == "old"));
    assert_eq!(plan.scans["notes"].versions, [(String::new(), 5)].into());
    let applied = given.apply(&plan).await.unwrap();
    let binding = &applied.bindings["notes"];
    assert_eq!((binding.bucket.as_str(), &binding.unstamped), ("old", &Some(Unstamped::all("v1"))));
    assert!(given.get("old", "n0").await.is_some());
    refusal(given.put("old", "n0", "anything").await);
    let config = given.engine.bucket(&name("old")).await.unwrap().config;
    assert_eq!(config.metadata[OWNER_METADATA], "acme.notes@v1");
    // What is without a version counts as the one that was current then.
    let new = json!({
        "purpose": "Notes", "schema": {"schema": "Other"}, "version": "v2", "acceptedVersions": {"v1": {"schema": "Note"}},
    });
    let other = json!({"type": "object", "required": ["other"]});
    let plan = given.plan(&contract(json!({"Note": note(), "Other": other}), json!({"notes": new}))).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
}

/// Records once had one text where there is now a version for each keyspace.
pub(crate) async fn what_was_adopted_long_ago_is_still_read(mut given: Given) {
    old_bucket(&given, BucketConfig::default()).await;
    let plan = adopt(&given, &notes(note()), "old").await.unwrap();
    let digest = given.apply(&plan).await.unwrap().digest;
    let authority = format!(
        r#"{{"lineage":"acme.notes@v1","service":"notes","version":1,"digest":"{digest}","status":{{"is":"current"}},"bindings":{{"notes":{{"bucket":"old","unstampedVersion":"v0"}}}}}}"#
    );
    let owner = format!(
        r#"{{"lineage":"acme.notes@v1","alias":"notes","digest":"{digest}","state":{{"is":"owned"}},"adopted":true,"unstampedVersion":"v0"}}"#
    );
    given.plant(SYSTEM_BUCKET, "authority.acme/notes=v1", &authority).await;
    given.plant(SYSTEM_BUCKET, "bucket.old", &owner).await;
    given.restart();
    assert_eq!(given.contracts.damages().await.unwrap(), []);
    let of_old = Some(Unstamped::all("v0"));
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!(status.authority.bindings["notes"].unstamped, of_old);
    assert_eq!(status.buckets["old"].unstamped, of_old);
    given.put("old", "n9", r#"{"text": "new"}"#).await.unwrap();
    let mut step = serde_json::to_value(&plan.steps[0]).unwrap();
    let fields = step.as_object_mut().unwrap();
    fields.remove("unstamped").unwrap();
    fields.insert("unstampedVersion".to_owned(), json!("v1"));
    assert_eq!(serde_json::from_value::<Step>(step).unwrap(), plan.steps[0]);
    // What is written from then on is as everything else.
    given.insist(&notes_with(note(), json!({"history": 2}))).await;
    for key in ["authority.acme/notes=v1", "bucket.old"] {
        let record = given.get(SYSTEM_BUCKET, key).await.unwrap().value;
        let record = String::from_utf8(record.to_vec()).unwrap();
        assert!(record.contains(r#""unstamped":{"version":"v0"}"#), "{record}");
    }
}

pub(crate) async fn values_that_do_not_fit_are_found(given: Given) {
    old_bucket(&given, BucketConfig::default()).await;
    given.put("old", "odd", "no note").await.unwrap();
    let plan = adopt(&given, &notes(note()), "old").await.unwrap();
    assert_eq!(plan.verdict(), Verdict::Dangerous);
    let answer = plan.dangers().next().unwrap().answer.as_ref().unwrap();
    assert_eq!((answer.count, answer.of, answer.samples[0].key.as_str()), (1, 6, "odd"));
    assert!(matches!(given.apply(&plan).await, Err(AuthorityError::Unacknowledged { .. })));
    // Mended, and then broken again after the plan.
    given.put("old", "odd", r#"{"text": "a note"}"#).await.unwrap();
    let plan = adopt(&given, &notes(note()), "old").await.unwrap();
    given.put("old", "odd", "no note").await.unwrap();
    assert!(matches!(given.apply(&plan).await, Err(AuthorityError::Violators { .. })));
    given.put("old", "odd", "still nobody's").await.unwrap();
}

pub(crate) async fn another_owner_or_retention_is_dangerous(given: Given) {
    let metadata = [(OWNER_METADATA.to_owned(), "globex.mail@v2".to_owned())].into();
    let history = 5.try_into().unwrap();
    old_bucket(
        &given,
        BucketConfig { metadata, history, ttl: Some(Duration::from_secs(500)), ..BucketConfig::default() },
    )
    .await;
    for _ in 0..3 {
        given.put("old", "n0", r#"{"text": "again"}"#).await.unwrap();
    }
    let contract = notes_with(note(), json!({"history": 2, "ttlMs": 100_000, "maxValueBytes": 5}));
    let plan = adopt(&given, &contract, "old").await.unwrap();
    let mut codes: Vec<_> = plan.dangers().map(|danger| danger.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["bucket.history", "bucket.owner", "bucket.ttl", "bucket.valueBytes"]);
    let deeper = plan.dangers().find(|danger| danger.code == "bucket.history").unwrap();
    assert_eq!(deeper.answer.as_ref().unwrap().count, 1);
}

pub(crate) async fn what_cannot_be_adopted_is_refused(given: Given) {
    for bucket in ["missing", SYSTEM_BUCKET] {
        let error = adopt(&given, &notes(note()), bucket).await.unwrap_err();
        assert!(matches!(error, AuthorityError::NotAdopted { .. }), "{error:?}");
    }
}

/// What was there before the contract is there after it.
pub(crate) async fn an_adopted_bucket_is_given_back(given: Given) {
    old_bucket(&given, BucketConfig::default()).await;
    let plan = adopt(&given, &notes(note()), "old").await.unwrap();
    given.apply(&plan).await.unwrap();
    given.insist(&contract(json!({}), json!({}))).await;
    refusal(given.put("old", "n0", r#"{"text": ""}"#).await);
    given.clock.advance(GRACE);
    assert_eq!(given.contracts.sweep().await.unwrap(), [name("old")]);
    assert_eq!(given.engine.count(&name("old"), Default::default()).await.unwrap(), 5);
    given.put("old", "n0", "nobody's again").await.unwrap();
}

/// Values without a version have the one that their keyspace had when the bucket was adopted, whatever its resource had.
pub(crate) async fn the_version_of_unstamped_values_is_that_of_their_keyspace(given: Given) {
    given.engine.create_bucket(&name("old"), BucketConfig::default()).await.unwrap();
    given.put("old", "note.a", r#"{"text": "of old"}"#).await.unwrap();
    given.put("old", "lock.a", r#"{"holder": "ann"}"#).await.unwrap();
    let locked = |version: &str, schema: &str, accepted: serde_json::Value| {
        json!({
            "purpose": "Notes", "schema": {"schema": "Note"},
            "keyspaces": {
                "note": {"key": "note.{id}"},
                "lock": {"key": "lock.{id}", "schema": {"schema": schema}, "version": version, "acceptedVersions": accepted},
            },
        })
    };
    let lock =
        json!({"type": "object", "properties": {"holder": {"type": "string"}}, "required": ["holder"]});
    let new_lock = json!({"type": "object", "required": ["holder", "since"]});
    let schemas = json!({"Note": note(), "Lock": lock, "NewLock": new_lock});
    let first = contract(schemas.clone(), json!({"notes": locked("k7", "Lock", json!({}))}));
    let plan = adopt(&given, &first, "old").await.unwrap();
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    given.apply(&plan).await.unwrap();
    let kv = async |contract: &Contract| {
        Service::bind(&given.engine, contract).await.unwrap().kv("notes").unwrap()
    };
    let store = kv(&first).await;
    for key in ["note.a", "lock.a"] {
        let read = store.get(&Key::parse(key).unwrap()).await.unwrap();
        assert!(matches!(read, Some(Read::Current(_))), "{read:?}");
    }
    // Under the next contract they are still of that version.
    let next = contract(
        schemas.clone(),
        json!({"notes": locked("k8", "NewLock", json!({"k7": {"schema": "Lock"}}))}),
    );
    let plan = given.plan(&next).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    given.apply(&plan).await.unwrap();
    let read = kv(&next).await.get(&Key::parse("lock.a").unwrap()).await.unwrap();
    assert!(matches!(&read, Some(Read::MigrationRequired(old)) if old.version == "k7"), "{read:?}");
    // And one that no longer takes that version is dangerous because of them.
    let last = contract(schemas, json!({"notes": locked("k8", "NewLock", json!({}))}));
    let plan = given.plan(&last).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
    let found = plan.dangers().filter_map(|danger| danger.answer.as_ref()).map(|answer| answer.count).max();
    assert_eq!(found, Some(1));
}
