//! What holds while a contract is accepted and not in force: programs are bound by what is in force.

use pleach_contract::Contract;
use pleach_engine::{Engine, ErrorKind};
use pleach_stores::{ApplyOptions, AuthorityError, GRACE, Keyspace, KvError, Plan, Service};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, contract, contract_of, lineage, name, note, notes, notes_with, short_note};
use crate::watched::Failing;

/// The next version, which takes no values of the first one, with mails that are new.
fn next() -> Contract {
    let resource = json!({"purpose": "Notes", "schema": {"schema": "Short"}, "version": "v2", "history": 3});
    let mails = json!({"purpose": "Mails", "schema": {"schema": "Short"}});
    contract(json!({"Short": short_note()}), json!({"mails": mails, "notes": resource}))
}

async fn entries(given: &Given, contract: &Contract) -> Result<Keyspace<Value>, KvError> {
    Service::bind(&given.engine, contract).await?.kv("notes")?.entries()
}

fn options() -> ApplyOptions {
    ApplyOptions::by("ann").acknowledging("a test")
}

/// A store in which the first contract is in force and the apply of the next one has failed in a step.
async fn failed(given: &Given) -> Plan {
    given.accept(&notes(note())).await;
    let plan = given.plan(&next()).await;
    // Someone makes the bucket of the new alias in another way just before the step, and cannot be overruled.
    let below = std::sync::Arc::clone(&given.below);
    given.below.before_create(&name("svc_notes_mails"), move || below.fail_after(0, Failing::Before));
    let error = given.contracts.apply(&plan, options()).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unfinished { .. }), "{error:?}");
    given.below.mend();
    plan
}

pub(crate) async fn after_a_failed_step_the_contract_in_force_is_the_old_one(given: Given) {
    let plan = failed(&given).await;
    let contracts = &given.contracts;
    assert_eq!(contracts.desired(&lineage()).await.unwrap().unwrap(), next());
    assert_eq!(contracts.in_force(&lineage()).await.unwrap().unwrap(), notes(note()));
    let status = contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!(status.in_force, Some(notes(note()).digest().to_string()));
    assert!(status.is_unfinished);
    contracts.apply(&plan, options()).await.unwrap();
    assert_eq!(contracts.in_force(&lineage()).await.unwrap().unwrap(), next());
    let status = contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.in_force.as_ref(), status.authority.in_force), (Some(&plan.target), None));
}

pub(crate) async fn after_a_failed_step_programs_are_bound_by_what_is_in_force(given: Given) {
    let plan = failed(&given).await;
    let error = entries(&given, &next()).await.unwrap_err();
    let KvError::Authority(error) = error else { panic!("{error:?}") };
    let AuthorityError::NotInForce { digest, in_force, .. } = &*error else { panic!("{error:?}") };
    assert_eq!((digest, in_force), (&plan.target, &Some(notes(note()).digest().to_string())));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The programs that are there go on, with what keeps both contracts.
    let old = entries(&given, &notes(note())).await.unwrap();
    old.get("one").await.unwrap();
    given.contracts.apply(&plan, options()).await.unwrap();
    entries(&given, &next()).await.unwrap().put("one", &json!({"text": "new"})).await.unwrap();
    let error = entries(&given, &notes(note())).await.unwrap_err();
    assert!(
        matches!(&error, KvError::Authority(error) if matches!(**error, AuthorityError::Outdated { .. }))
    );
}

/// Only the history differs, and still only the contract in force binds.
pub(crate) async fn a_contract_whose_apply_is_unfinished_binds_nothing(given: Given) {
    given.accept(&notes(note())).await;
    let longer = notes_with(note(), json!({"history": 5}));
    let plan = given.plan(&longer).await;
    let glass = given.engine.break_glass("bob", "a mistake").unwrap();
    glass.delete_bucket(&name(NOTES)).await.unwrap();
    given.contracts.apply(&plan, options()).await.unwrap_err();
    glass.create_bucket(&name(NOTES), Default::default()).await.unwrap();
    entries(&given, &notes(note())).await.unwrap().put("one", &json!({"text": "both"})).await.unwrap();
    let error = given.contracts.bind(&longer).await.unwrap_err();
    assert!(matches!(error, AuthorityError::NotInForce { in_force: Some(_), .. }), "{error:?}");
}

pub(crate) async fn a_first_contract_that_is_not_in_force_binds_nothing(given: Given) {
    let plan = given.plan(&notes(note())).await;
    let below = std::sync::Arc::clone(&given.below);
    given.below.before_create(&name(NOTES), move || below.fail_after(0, Failing::Before));
    given.apply(&plan).await.unwrap_err();
    given.below.mend();
    assert!(given.contracts.in_force(&lineage()).await.unwrap().is_none());
    let error = given.contracts.bind(&notes(note())).await.unwrap_err();
    assert!(matches!(error, AuthorityError::NotInForce { in_force: None, .. }), "{error:?}");
    given.apply(&plan).await.unwrap();
    given.contracts.bind(&notes(note())).await.unwrap();
}

/// Records of older stores do not name the contract in force; the buckets do.
pub(crate) async fn an_older_record_of_a_failed_apply_is_understood(given: Given) {
    failed(&given).await;
    let key = "authority.acme/notes=v1";
    let entry = given.get("pleach_system", key).await.unwrap();
    let mut record: Value = serde_json::from_slice(&entry.value).unwrap();
    assert!(record.as_object_mut().unwrap().remove("inForce").is_some());
    given.plant("pleach_system", key, &record.to_string()).await;
    assert_eq!(given.contracts.in_force(&lineage()).await.unwrap().unwrap(), notes(note()));
}

pub(crate) async fn a_plan_that_is_in_force_is_applied_again_without_doing_anything(given: Given) {
    let plan = given.plan(&notes(note())).await;
    assert!(!given.apply(&plan).await.unwrap().was_in_force);
    let again = given.apply(&plan).await.unwrap();
    assert_eq!((again.was_in_force, again.version, &again.digest), (true, 1, &plan.target));
    assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 1);
    let found = given.contracts.applied_plans(&plan.id[..8]).await.unwrap();
    assert_eq!(found.iter().map(|plan| &plan.id).collect::<Vec<_>>(), [&plan.id]);
    assert!(given.contracts.applied_plans("x").await.unwrap().is_empty());
    // Once another is in force, it is over.
    let second = given.plan(&notes(short_note())).await;
    given.apply(&second).await.unwrap();
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::PlanOver { status: "accepted", .. }), "{error:?}");
}

pub(crate) async fn a_lineage_sweeps_only_its_own_buckets(given: Given) {
    let other = |kv: Value| contract_of("acme.other@v1", json!({"Note": note()}), kv);
    given.accept(&notes(note())).await;
    given.accept(&other(json!({"logs": {"purpose": "Logs", "schema": {"schema": "Note"}}}))).await;
    given.insist(&contract(json!({}), json!({}))).await;
    given.insist(&other(json!({}))).await;
    given.clock.advance(GRACE);
    assert_eq!(given.contracts.sweep_lineage(&lineage()).await.unwrap(), [name(NOTES)]);
    assert!(given.engine.bucket(&name("svc_other_logs")).await.is_ok());
    assert_eq!(given.contracts.sweep().await.unwrap(), [name("svc_other_logs")]);
}
