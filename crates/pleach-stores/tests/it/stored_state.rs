use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_stores::state::{Principal, PutOptions, PutOutcome, State};
use pleach_stores::{AuthorityError, Plan};
use serde_json::{Value, json};

use crate::given::Given;

/// A contract of a lineage whose users and devices have drafts, as this schema has them.
fn drafts(id: &str, schema: Value) -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": id, "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Draft": schema}, "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    });
    Contract::from_value(&document).unwrap().contract
}

fn loose() -> Value {
    json!({"type": "object", "properties": {"title": {"type": "string"}}})
}

fn strict() -> Value {
    json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]})
}

const NOTES: &str = "acme.notes@v1";

async fn put(given: &Given, contract: &Contract, who: Principal, key: &str, draft: Value) {
    let state = State::open(&given.engine).await.unwrap();
    let session = state.session(who, &state.contract(contract).await.unwrap());
    let outcome =
        session.store("drafts").unwrap().put(Some(key), draft, PutOptions::default()).await.unwrap();
    assert!(matches!(outcome, PutOutcome::Applied(_)), "{outcome:?}");
}

fn answer(plan: &Plan) -> (u64, u64) {
    let [finding] = &plan.findings[..] else { panic!("{:?}", plan.findings) };
    let answer = finding.answer.as_ref().unwrap();
    (answer.count, answer.of)
}

pub(crate) async fn what_users_and_devices_have_stored_weighs_in(given: Given) {
    let first = drafts(NOTES, loose());
    given.accept(&first).await;
    let (ann, phone) = (Principal::user("ann").unwrap(), Principal::device("phone.7").unwrap());
    put(&given, &first, ann.clone(), "a", json!({"title": "milk"})).await;
    put(&given, &first, ann.clone(), "b", json!({})).await;
    put(&given, &first, phone, "a", json!({})).await;
    // What is stored under other contracts does not count.
    let other = drafts("acme.other@v1", loose());
    given.accept(&other).await;
    put(&given, &other, ann, "a", json!({})).await;
    let plan = given.plan(&drafts(NOTES, strict())).await;
    assert_eq!((plan.verdict(), answer(&plan)), (Verdict::Dangerous, (2, 3)));
    let scanned = &plan.scans["state.drafts"];
    assert_eq!((scanned.entries, scanned.versions["v1"]), (3, 3));
}

pub(crate) async fn state_that_fits_is_safe_until_something_else_is_written(given: Given) {
    let first = drafts(NOTES, loose());
    given.accept(&first).await;
    let ann = Principal::user("ann").unwrap();
    put(&given, &first, ann.clone(), "a", json!({"title": "milk"})).await;
    let plan = given.plan(&drafts(NOTES, strict())).await;
    assert_eq!((plan.verdict(), answer(&plan)), (Verdict::Safe, (0, 1)));
    put(&given, &first, ann.clone(), "b", json!({})).await;
    let refused = given.apply(&plan).await.unwrap_err();
    assert!(matches!(refused, AuthorityError::Violators { count: 1, .. }), "{refused}");
    put(&given, &first, ann, "b", json!({"title": "eggs"})).await;
    given.apply(&plan).await.unwrap();
}
