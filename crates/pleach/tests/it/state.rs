use futures_util::StreamExt;
use pleach::state::{
    Cell, DeleteOutcome, Erasure, Expect, GetOutcome, ListOptions, MapStore, PutOptions, PutOutcome,
    StateEvent, WatchFrom,
};
use pleach::stores::{ApplyOptions, PlanOptions};
use pleach_contract::Contract;
use serde_json::{Value, json};

use crate::given::Given;

/// The drafts of a user.
async fn drafts(given: &Given, user: &str) -> MapStore<Value> {
    let contract = Contract::from_value(&json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Draft": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}},
        "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    }));
    let (contracts, contract) = (given.store.contracts(), contract.unwrap().contract);
    let plan = contracts.plan(&contract, PlanOptions::default()).await.unwrap();
    contracts.apply(&plan, ApplyOptions::by("olga")).await.unwrap();
    let state = given.store.state().await.unwrap();
    let compiled = state.contract(&contract).await.unwrap();
    state.session(format!("user:{user}").parse().unwrap(), &compiled).map("drafts").unwrap()
}

fn draft(title: &str) -> Value {
    json!({ "title": title })
}

fn expecting(expect: Expect) -> PutOptions {
    PutOptions { expect, ttl: None }
}

pub(crate) async fn the_outcome_table_holds(given: Given) {
    let drafts = drafts(&given, "ann").await;
    let create = expecting(Expect::Absent);
    let PutOutcome::Applied(first) = drafts.put_with("a.*", &draft("one"), create).await.unwrap() else {
        panic!("nothing was there")
    };
    assert_eq!(
        drafts.put_with("a.*", &draft("x"), create).await.unwrap(),
        PutOutcome::Present(first.clone())
    );
    let old = expecting(Expect::Revision(first.revision));
    let PutOutcome::Applied(second) = drafts.put_with("a.*", &draft("two"), old).await.unwrap() else {
        panic!("it was that one")
    };
    assert_eq!(drafts.put_with("a.*", &draft("x"), old).await.unwrap(), PutOutcome::Present(second.clone()));
    assert_eq!(drafts.get("a.*").await.unwrap(), GetOutcome::Found(second.clone()));
    assert_eq!(drafts.delete("a.*").await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(drafts.delete("a.*").await.unwrap(), DeleteOutcome::NotDeleted);
    let gone = expecting(Expect::Revision(second.revision));
    assert_eq!(drafts.put_with("a.*", &draft("x"), gone).await.unwrap(), PutOutcome::Absent);
    assert!(matches!(drafts.put_with("a.*", &draft("x"), create).await.unwrap(), PutOutcome::Applied(_)));
}

pub(crate) async fn pages_and_watches_are_ones_own(given: Given) {
    let (ann, bob) = (drafts(&given, "ann").await, drafts(&given, "bob").await);
    let mut events = ann.watch(WatchFrom::Now).await.unwrap();
    for number in 0..25 {
        let _ = bob.put(&format!("{number:02}"), &draft("bob")).await.unwrap();
        let _ = ann.put(&format!("{number:02}"), &draft("ann")).await.unwrap();
    }
    let page = ann.list(ListOptions::first(10).from(20)).await.unwrap();
    let names: Vec<&str> = page.entries.iter().filter_map(Cell::key).collect();
    assert_eq!((names, page.count, page.next_offset), (vec!["20", "21", "22", "23", "24"], 25, None));
    for number in 0..25 {
        let event = events.next().await.unwrap().unwrap();
        let StateEvent::Put(Cell::Entry(entry)) = event else { panic!("{event:?}") };
        assert_eq!((entry.key, entry.value), (Some(format!("{number:02}")), draft("ann")));
    }
}

pub(crate) async fn someone_can_be_erased(given: Given) {
    let (ann, bob) = (drafts(&given, "ann").await, drafts(&given, "bob").await);
    for key in ["a", "b", "c"] {
        let _ = ann.put(key, &draft("x")).await.unwrap();
        let _ = bob.put(key, &draft("x")).await.unwrap();
    }
    let _ = ann.delete("a").await.unwrap();
    let admin = given.store.state().await.unwrap().admin("olga", "ticket 7").await.unwrap();
    let principal = "user:ann".parse().unwrap();
    assert_eq!(admin.export(&principal, None).await.unwrap().lines.len(), 2);
    assert_eq!(admin.erase(&principal).await.unwrap(), Erasure { erased: 2, done: true });
    assert_eq!((ann.count().await.unwrap(), bob.count().await.unwrap()), (0, 3));
    let records = given.store.state().await.unwrap().admin_records().await.unwrap();
    assert_eq!(records.len(), 2);
}
