//! No session slips a value of the old shape in behind an apply: not even between its look and the acceptance.

use std::sync::Arc;

use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Batch, Engine, Operation, ScanQuery};
use pleach_stores::AuthorityError;
use pleach_stores::state::{Principal, PutOptions, STATE_BUCKET, State};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{lineage, name};

fn drafts(schema: Value) -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Draft": schema, "Note": {"type": "object"}},
        "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
        "resources": {"kv": {"notes": {"purpose": "Notes", "schema": {"schema": "Note"}}}},
    });
    Contract::from_value(&document).unwrap_or_else(|problems| panic!("{:?}", problems.list())).contract
}

/// Writes over the only draft there is, below the guards, as a session whose write was judged before the acceptance.
async fn write_over(below: &dyn Engine, draft: Value) {
    let bucket = name(STATE_BUCKET);
    let entry = below.scan(&bucket, ScanQuery::default()).await.unwrap().entries.remove(0);
    let put = Operation::put(entry.key, draft.to_string()).with_headers(entry.headers);
    below.commit(&bucket, Batch::from(put)).await.unwrap();
}

async fn check(given: Given) {
    let loose = drafts(json!({"type": "object"}));
    given.accept(&loose).await;
    let state = State::open(&given.engine).await.unwrap();
    let ann = Principal::user("ann").unwrap();
    let drafts_of_ann = state.session(ann, &state.contract(&loose).await.unwrap()).store("drafts").unwrap();
    let _ = drafts_of_ann.put(Some("a"), json!({"title": "milk"}), PutOptions::default()).await.unwrap();
    let mut with_mails = drafts(json!({"type": "object", "required": ["title"]})).to_value();
    with_mails["resources"]["kv"]["mails"] = json!({"purpose": "Mails", "schema": {"schema": "Note"}});
    let strict = Contract::from_value(&with_mails).unwrap().contract;
    let plan = given.plan(&strict).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    // A step comes after the look and the acceptance: what is there by then may have come between the two.
    let below = Arc::clone(&given.below);
    given.below.before_create(&name("svc_notes_mails"), move || {
        pollster::block_on(write_over(&*below, json!({})));
    });
    let error = given.apply(&plan).await.unwrap_err();
    let AuthorityError::Unfinished { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(**source, AuthorityError::Violators { count: 1, .. }), "{error:?}");
    // Its owner corrects it, and the apply comes to its end.
    write_over(&*given.below, json!({"title": "eggs"})).await;
    let applied = given.contracts.resume(&lineage()).await.unwrap().unwrap();
    assert_eq!((applied.version, applied.digest.as_str()), (2, plan.target.as_str()));
}

#[test]
fn an_apply_does_not_end_well_over_state_of_the_old_shape() {
    pollster::block_on(check(Given::in_memory()));
    pollster::block_on(check(Given::embedded()));
}
