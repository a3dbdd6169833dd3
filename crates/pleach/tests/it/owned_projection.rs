//! A projection into a bucket that a contract owns.

use pleach::contract::evolution::Verdict;
use pleach::contract::{Contract, Notation};
use pleach::stores::{ApplyOptions, PlanOptions, Read};
use pleach::{
    Bucket, Change, Derived, EngineError, Error, Key, ProjectionError, Reduced, Reducer, WriteError,
};
use serde_json::Value;

use crate::given::Given;

/// Derives for every key what the function makes of its value.
struct Copy(fn(&str) -> String);

impl Reducer for Copy {
    async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
        if change.entry.op.is_put() {
            let text = str::from_utf8(&change.entry.value)?;
            derived.put(change.entry.key.as_str(), (self.0)(text))?;
        }
        Ok(())
    }
}

fn sized(text: &str) -> String {
    format!(r#"{{"letters": {}}}"#, text.len())
}

/// Sizes of texts, up to so many letters.
fn sizes(letters: u64) -> Contract {
    let text = format!(
        r#"
format: pleach.contract.v1
id: acme.sizes@v1
kind: service
displayName: Sizes
description: Sizes of texts
schemas:
  Size: {{type: object, properties: {{letters: {{type: integer, maximum: {letters}}}}}, required: [letters]}}
resources:
  kv:
    sizes: {{purpose: Sizes of texts, schema: {{schema: Size}}, history: 3}}
"#
    );
    Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract
}

/// Texts, and a bucket for their sizes that a contract owns.
async fn given_sizes(given: &Given) -> (Bucket, Bucket) {
    let texts = given.store.create_bucket("texts").await.unwrap();
    let contracts = given.store.contracts();
    let plan = contracts.plan(&sizes(9), PlanOptions::default()).await.unwrap();
    let applied = contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
    (texts, given.store.bucket(&applied.bindings["sizes"].bucket).await.unwrap())
}

async fn size(given: &Given, key: &str) -> Value {
    let service = given.store.service(&sizes(9)).await.unwrap();
    match service.kv("sizes").unwrap().entries::<Value>().unwrap().get(key).await.unwrap() {
        Some(Read::Current(found)) => found.value["letters"].clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_projection_writes_to_a_bucket_that_a_contract_owns(given: Given) {
    let (texts, derived) = given_sizes(&given).await;
    texts.put("a", "one").await.unwrap();
    let mut projection = texts.project("sizes", &derived, Copy(sized)).await.unwrap();
    projection.catch_up().await.unwrap();
    assert_eq!(size(&given, "a").await, 3);
    // Another process goes on where this one was.
    texts.put("a", "three").await.unwrap();
    let before = projection.position().await.unwrap();
    drop(projection);
    let mut again = texts.project("sizes", &derived, Copy(sized)).await.unwrap();
    assert_eq!(again.position().await.unwrap(), before);
    again.catch_up().await.unwrap();
    assert_eq!(size(&given, "a").await, 5);
    again.rebuild(|_| ()).await.unwrap();
    assert_eq!(size(&given, "a").await, 5);
    // Its position is its own.
    for key in ["_kv.projection.sizes", "_kv.projection.x", "_kv.x"] {
        let error = derived.put(Key::parse_reserved(key).unwrap(), "{}").await.unwrap_err();
        assert!(matches!(error, Error::Engine(EngineError::ReservedKey { .. })), "{error:?}");
    }
    let batch = derived.batch().put(Key::parse_reserved("_kv.projection.x").unwrap(), "{}").commit().await;
    assert!(matches!(batch, Err(WriteError::Failed(Error::Engine(EngineError::ReservedKey { .. })))));
}

pub(crate) async fn what_a_projection_derives_is_judged_by_the_contract(given: Given) {
    let (texts, derived) = given_sizes(&given).await;
    texts.put("a", "one").await.unwrap();
    let mut projection = texts.project("sizes", &derived, Copy(sized)).await.unwrap();
    projection.catch_up().await.unwrap();
    let before = projection.position().await.unwrap();
    texts.put("b", "much longer than it may be").await.unwrap();
    let error = projection.catch_up().await.unwrap_err();
    assert!(matches!(&error, Error::Engine(EngineError::BrokenContract { key, .. }) if key.as_str() == "b"));
    assert!(!matches!(error, Error::Projection(ProjectionError::Overtaken { .. })));
    // Neither the value nor the position was written.
    assert_eq!(projection.position().await.unwrap(), before);
    assert!(derived.get("b").await.unwrap().is_none());
    let mut mended =
        texts.project("sizes", &derived, Copy(|text| sized(&text[..text.len().min(9)]))).await.unwrap();
    mended.catch_up().await.unwrap();
    assert_eq!(size(&given, "b").await, 9);
}

pub(crate) async fn positions_are_no_values_of_the_contract(given: Given) {
    let (texts, derived) = given_sizes(&given).await;
    texts.put("a", "one").await.unwrap();
    texts.project("sizes", &derived, Copy(sized)).await.unwrap().catch_up().await.unwrap();
    let contracts = given.store.contracts();
    let plan = contracts.plan(&sizes(9), PlanOptions::default()).await.unwrap();
    assert!(plan.is_nothing(), "{plan:#?}");
    let plan = contracts.plan(&sizes(3), PlanOptions::default()).await.unwrap();
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
    contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
    let service = given.store.service(&sizes(3)).await.unwrap();
    let page =
        service.kv("sizes").unwrap().entries::<Value>().unwrap().scan(Default::default()).await.unwrap();
    assert_eq!(page.entries.len(), 1);
}
