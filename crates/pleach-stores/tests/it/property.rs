//! A plan that is called safe never makes a stored value unreadable, whatever contracts, data and changes there are.

use pleach_contract::evolution::Verdict;
use pleach_contract::{Contract, Validators};
use pleach_engine::{Batch, CommitError, Engine, EngineError, Headers, Key, Operation, ScanQuery};
use pleach_stores::{ApplyOptions, AuthorityError, CompiledResource, Envelope};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, contract, name};

/// Thousands of evolutions: each case has three.
const CASES: u32 = 1000;

/// A contract as it is drawn: small, so that drawn values meet its borders.
#[derive(Clone, Debug)]
struct Drawn {
    key: &'static str,
    version: usize,
    /// The schema of each version; none is no longer accepted.
    schemas: [Option<Value>; 2],
}

fn contract_of(drawn: &Drawn) -> Contract {
    let names = ["v1", "v2"];
    let mut schemas = serde_json::Map::new();
    let mut accepted = serde_json::Map::new();
    for (index, schema) in drawn.schemas.iter().enumerate() {
        let is_current = index == drawn.version;
        if schema.is_some() || is_current {
            schemas.insert(format!("S{index}"), schema.clone().unwrap_or(json!({})));
        }
        if schema.is_some() && !is_current {
            accepted.insert(names[index].to_owned(), json!({"schema": format!("S{index}")}));
        }
    }
    let current = json!({"schema": format!("S{}", drawn.version)});
    let keyspace = json!({
        "key": drawn.key, "schema": current, "version": names[drawn.version], "acceptedVersions": accepted,
    });
    let resource = json!({
        "purpose": "Notes", "schema": current, "version": names[drawn.version], "acceptedVersions": accepted,
        "keyspaces": {"note": keyspace},
    });
    contract(Value::Object(schemas), json!({"notes": resource}))
}

fn small_schema() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!({}),
        json!({"type": "string"}),
        json!({"type": "string", "maxLength": 1}),
        json!({"type": "string", "pattern": "^x"}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "integer", "multipleOf": 2}),
        json!({"type": "number", "exclusiveMaximum": 2}),
        json!({"type": ["integer", "null"]}),
        json!({"enum": ["x", 1]}),
        json!({"enum": ["x", 1, null, "long"]}),
        json!({"const": "x"}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"oneOf": [{"type": "integer"}, {"minimum": 1}]}),
        json!({"not": {"type": "null"}}),
        json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true}),
    ]);
    let fields = prop::collection::btree_map(select(vec!["a", "b"]), leaf, 0..=2);
    let required = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    (fields, required, prop::option::of(any::<bool>())).prop_map(|(fields, required, additional)| {
        let mut schema = json!({"type": "object", "properties": fields, "required": required});
        if let Some(additional) = additional {
            schema["additionalProperties"] = json!(additional);
        }
        schema
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let key = select(vec!["n.{id}", "n.{id}", "n.{id:slug(2)}", "n.{id:x|y}"]);
    let schema = || prop::option::weighted(0.7, small_schema());
    (key, 0..2_usize, schema(), schema()).prop_map(|(key, version, first, second)| Drawn {
        key,
        version,
        schemas: [first, second],
    })
}

/// What is taken from another contract: a change is usually small.
#[derive(Clone, Debug)]
struct Change {
    key: bool,
    version: bool,
    schemas: [bool; 2],
    from: Drawn,
}

fn change() -> impl Strategy<Value = Change> {
    let rarely = || prop::bool::weighted(0.2);
    (rarely(), rarely(), prop::bool::weighted(0.5), prop::bool::weighted(0.5), drawn()).prop_map(
        |(key, version, first, second, from)| Change { key, version, schemas: [first, second], from },
    )
}

fn changed(drawn: &Drawn, change: &Change) -> Drawn {
    let mut new = drawn.clone();
    if change.key {
        new.key = change.from.key;
    }
    if change.version {
        new.version = change.from.version;
    }
    for (index, is_changed) in change.schemas.iter().enumerate() {
        if *is_changed {
            new.schemas[index].clone_from(&change.from.schemas[index]);
        }
    }
    new
}

/// A value that someone tries to write.
#[derive(Clone, Debug)]
struct Try {
    key: &'static str,
    version: Option<&'static str>,
    value: Value,
}

fn attempt() -> impl Strategy<Value = Try> {
    let leaf = select(vec![
        json!("x"),
        json!("long"),
        json!(""),
        json!(0),
        json!(1),
        json!(2),
        json!(1.5),
        json!(null),
        json!(true),
        json!([1, 1]),
        json!([]),
        json!({"x": 1}),
    ]);
    let object = prop::collection::btree_map(select(vec!["a", "b", "c"]), leaf.clone(), 0..=3)
        .prop_map(|map| json!(map));
    let value = prop_oneof![8 => object, 1 => leaf];
    let version = select(vec![None, None, Some("v1"), Some("v2")]);
    (select(vec!["n.x", "n.y", "n.z", "n.long"]), version, value).prop_map(|(key, version, value)| Try {
        key,
        version,
        value,
    })
}

async fn write(given: &Given, attempt: &Try) {
    let mut headers = Headers::new();
    if let Some(version) = attempt.version {
        headers.set(Envelope::VERSION, version).unwrap();
    }
    let key = Key::parse(attempt.key).unwrap();
    let operation = Operation::put(key, attempt.value.to_string()).with_headers(headers);
    match given.engine.commit(&name(NOTES), Batch::from(operation)).await {
        Ok(_) | Err(CommitError::Engine(EngineError::BrokenContract { .. })) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// Every stored value can be read under the contract.
async fn check_readable(given: &Given, contract: &Contract, story: &str) {
    let resource = CompiledResource::of(contract, "notes", &Validators::default()).unwrap().unwrap();
    let page = given.engine.scan(&name(NOTES), ScanQuery::default()).await.unwrap();
    for entry in page.entries {
        let version = entry.headers.get(Envelope::VERSION).unwrap();
        let read =
            resource.keyspace_of(&entry.key).and_then(|keyspace| keyspace.check(version, &entry.value));
        assert!(read.is_ok(), "{} of version {version}: {}\n{story}", entry.key, read.unwrap_err());
    }
}

async fn check(first: Drawn, changes: Vec<(Change, Vec<Try>, Vec<Try>)>) -> usize {
    let given = Given::in_memory();
    let mut drawn = first;
    let mut story = format!("{drawn:?}");
    let mut safe = 0;
    given.accept(&contract_of(&drawn)).await;
    for (change, before, meanwhile) in changes {
        for attempt in &before {
            write(&given, attempt).await;
        }
        let new = changed(&drawn, &change);
        let contract = contract_of(&new);
        story = format!("{story}\n{before:?}\n{new:?}");
        let plan = given.plan(&contract).await;
        if plan.verdict() != Verdict::Safe {
            continue;
        }
        for attempt in &meanwhile {
            write(&given, attempt).await;
        }
        match given.contracts.apply(&plan, ApplyOptions::by("ann")).await {
            Ok(_) => {
                check_readable(
                    &given,
                    &contract,
                    &format!("{story}\nmeanwhile {meanwhile:?}\n{:#?}", plan.findings),
                )
                .await;
                (drawn, safe) = (new, safe + 1);
            }
            Err(AuthorityError::Violators { .. }) => {}
            Err(other) => panic!("{other:?}\n{story}"),
        }
    }
    safe
}

#[test]
fn a_safe_plan_makes_no_stored_value_unreadable() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let tries = || prop::collection::vec(attempt(), 0..6);
    let changes = prop::collection::vec((change(), tries(), prop::collection::vec(attempt(), 0..2)), 3);
    let safe = std::sync::atomic::AtomicUsize::new(0);
    TestRunner::new(config)
        .run(&(drawn(), changes), |(first, changes)| {
            safe.fetch_add(pollster::block_on(check(first, changes)), std::sync::atomic::Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    // A test in which nothing is safe shows nothing.
    let safe = safe.into_inner();
    assert!(safe > CASES as usize / 2, "only {safe} plans were safe");
}
