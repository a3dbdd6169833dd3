//! Contracts in force and claims cover what is stored for users and devices, in every process.

use std::panic::{self, AssertUnwindSafe};
use std::thread;

use pleach_contract::Contract;
use pleach_stores::state::{
    GetOutcome, Principal, PutOptions, PutOutcome, STATE_BUCKET, Session, State, StateError,
};
use pleach_stores::{ApplyOptions, PlanOptions};
use serde_json::{Value, json};

use crate::given::name;
use crate::process::{Process, Shared};

fn drafts(schema: Value) -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes",
        "description": "Notes", "schemas": {"Draft": schema},
        "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    });
    Contract::from_value(&document).unwrap().contract
}

fn loose() -> Contract {
    drafts(json!({"type": "object", "properties": {"title": {"type": "string"}}}))
}

fn strict() -> Contract {
    drafts(json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}))
}

async fn accept(process: &Process, contract: &Contract) {
    let plan = process.contracts.plan(contract, PlanOptions::default()).await.unwrap();
    process.contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
}

/// A session of a program that was made for `contract`.
async fn session(process: &Process, contract: &Contract) -> Session {
    let state = State::open(&process.engine).await.unwrap();
    state.session(Principal::user("ann").unwrap(), &state.contract(contract).await.unwrap())
}

async fn put(session: &Session, key: &str, draft: Value) -> Result<PutOutcome<Value>, StateError> {
    session.store("drafts").unwrap().put(Some(key), draft, PutOptions::default()).await
}

fn applied(result: Result<PutOutcome<Value>, StateError>) {
    assert!(matches!(result, Ok(PutOutcome::Applied(_))), "{result:?}");
}

fn is_refused(result: &Result<PutOutcome<Value>, StateError>) -> bool {
    result.as_ref().is_err_and(|error| error.to_string().contains("acme.notes@v1"))
}

fn old_sessions_keep_the_new_contract(shared: &Shared) {
    pollster::block_on(async {
        let (writer, applier) = (shared.process().await, shared.process().await);
        accept(&applier, &loose()).await;
        let old = session(&writer, &loose()).await;
        applied(put(&old, "early", json!({"title": "milk"})).await);
        accept(&applier, &strict()).await;
        let late = put(&old, "late", json!({})).await;
        assert!(is_refused(&late), "{late:?}");
        // What both contracts take is still taken.
        applied(put(&old, "early", json!({"title": "oats"})).await);
        let found = old.store("drafts").unwrap().get(Some("late")).await.unwrap();
        assert!(matches!(found, GetOutcome::Absent), "{found:?}");
    });
}

#[test]
fn a_session_of_an_old_contract_keeps_the_one_in_force_in_memory() {
    old_sessions_keep_the_new_contract(&Shared::alone_in_memory());
}

#[test]
fn a_session_of_an_old_contract_keeps_the_one_in_force_embedded() {
    old_sessions_keep_the_new_contract(&Shared::alone_embedded());
}

#[test]
fn a_session_of_an_old_contract_keeps_the_one_in_force_on_a_server() {
    old_sessions_keep_the_new_contract(&Shared::one_server());
}

/// Holds a write of a session up inside its commit while another process applies a contract that refuses it.
fn held_up_writes_are_judged_again(shared: &Shared) {
    pollster::block_on(async {
        let (writer, applier) = (shared.process().await, shared.process().await);
        accept(&applier, &loose()).await;
        let old = session(&writer, &loose()).await;
        applied(put(&old, "early", json!({"title": "milk"})).await);
        let gate = writer.below.hold_up(&name(STATE_BUCKET));
        let late = thread::scope(|scope| {
            let late = scope.spawn(|| pollster::block_on(put(&old, "late", json!({}))));
            gate.wait();
            // Whatever comes out, nobody is left waiting.
            let done = panic::catch_unwind(AssertUnwindSafe(|| {
                pollster::block_on(accept(&applier, &strict()));
            }));
            gate.open();
            let late = late.join().unwrap();
            done.unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            late
        });
        assert!(is_refused(&late), "{late:?}");
        let found = old.store("drafts").unwrap().get(Some("late")).await.unwrap();
        assert!(matches!(found, GetOutcome::Absent), "{found:?}");
    });
}

#[test]
fn a_write_of_state_judged_before_an_apply_is_not_stored_after_it_in_memory() {
    held_up_writes_are_judged_again(&Shared::in_memory());
}

#[test]
fn a_write_of_state_judged_before_an_apply_is_not_stored_after_it_on_one_server() {
    held_up_writes_are_judged_again(&Shared::one_server());
}

#[test]
fn a_write_of_state_judged_before_an_apply_is_not_stored_after_it_on_three_servers() {
    held_up_writes_are_judged_again(&Shared::three_servers());
}
