//! The code that is made of a contract: it is up to date, it compiles, and it does what it says.
//! `PLEACH_GOLDEN=write cargo test -p pleach-stores codegen` makes it anew.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pleach_contract::codegen::{RustOptions, rust_module};
use pleach_contract::{Contract, Notation};
use pleach_engine::{BucketConfig, BucketName, Engine, MemoryEngine, SystemClock};
use pleach_stores::key::{Between, Time, Value};
use pleach_stores::{Binding, KvError, QueryOptions, Read, Service};
use serde_json::json;

use crate::generated::{awkward, cases};

/// A service of a contract on a new engine, with all but some of its resources.
async fn service(text: &str, missing: &[&str]) -> Service {
    let contract = Contract::parse(text.as_bytes(), Notation::Json).unwrap().contract;
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let mut bindings = Vec::new();
    for alias in contract.resources.kv.keys().filter(|alias| !missing.contains(&alias.as_str())) {
        let bucket = BucketName::parse(alias).unwrap();
        engine.create_bucket(&bucket, BucketConfig::plain(engine.capabilities())).await.unwrap();
        bindings.push((alias.clone(), Binding { bucket: alias.clone(), unstamped: None }));
    }
    Service::new(engine, Arc::new(SystemClock::new()), &contract, bindings).unwrap()
}

#[test]
fn the_code_is_what_the_contracts_give_now() {
    for name in ["cases", "awkward", "notes"] {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = fs::read(here.join(format!("../pleach-contract/testdata/{name}.yaml"))).unwrap();
        let contract = Contract::parse(&text, Notation::Yaml).unwrap().contract;
        let code = rust_module(&contract, &RustOptions { stores_path: "pleach_stores".into() });
        let path = here.join(format!("tests/it/generated/{name}.rs"));
        if std::env::var_os("PLEACH_GOLDEN").is_some_and(|mode| mode == "write") {
            fs::write(&path, code).unwrap();
            continue;
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == code,
            "tests/it/generated/{name}.rs is behind: PLEACH_GOLDEN=write cargo test -p pleach-stores codegen"
        );
    }
}

#[test]
fn the_code_of_a_contract_reads_and_writes_its_values() {
    pollster::block_on(async {
        let cases = cases::Cases::bind(&service(cases::CONTRACT, &[]).await).unwrap().cases;
        let (case, at) = (7_u128, Time::new(1_783_166_400, 0).unwrap());
        let key = cases::CasesCurrentKey { tenant: "acme".into(), case };
        let open = cases::Case::new(cases::CaseStatus::Open);
        let events = [1, 2, 3].map(|id| cases::CasesEventKey { tenant: "acme".into(), case, at, id });
        let mut batch = cases.store().batch().create(cases.current(), &key, &open);
        for key in &events {
            batch = batch.create(cases.event(), key, &cases::Event::new("opened".into()));
        }
        batch.commit().await.unwrap();
        let Some(Read::Current(read)) = cases.current().get(&key).await.unwrap() else {
            panic!("it is current")
        };
        assert_eq!(read.value, open);
        let values = cases.current().values(&read.key).unwrap();
        assert_eq!(cases::CasesCurrentKey::of(&values), Some(key));
        assert_eq!(cases::CasesEventKey::of(&values), None);

        let options =
            QueryOptions { between: Between::since(Value::Time(at)), limit: Some(2), ..Default::default() };
        let page = cases.event_timeline("acme", case, options).await.unwrap();
        assert_eq!((page.entries.len(), page.next.is_some()), (2, true));
    });
}

#[test]
fn fields_that_a_schema_does_not_name_survive_a_change() {
    let stored = json!({"status": "OPEN", "dueAt": "2026-07-04T12:00:00Z", "color": "red"});
    let mut case: cases::Case = serde_json::from_value(stored).unwrap();
    case.status = cases::CaseStatus::Closed;
    let changed = json!({"status": "CLOSED", "dueAt": "2026-07-04T12:00:00Z", "color": "red"});
    assert_eq!(serde_json::to_value(&case).unwrap(), changed);
}

#[test]
fn awkward_names_and_shapes_survive_a_round() {
    let values = [
        json!({
            "type": "t", "dueAt": null, "self": 1, "Self": -1, "other": true, "due_at": 1.5, "": null, "2nd": "x",
            "state": "a-b", "list": [{"crate": true}], "pairs": {"a": 1}, "tuple": ["a", 2], "color": "red",
            "again": "green", "maybe": null, "alias": "text", "nested": {"crate": false}, "only": "exactly",
            "mixed": 1, "unnamed": {"kept": []}
        }),
        json!({"type": "t", "dueAt": "x", "state": null}),
    ];
    for value in values {
        let read: awkward::Option2 = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
    }
    let tree = json!({"name": "a", "left": {"name": "b"},
        "children": [{"weight": 0.5, "tree": {"name": "c"}, "note": "kept"}]});
    let read: awkward::Tree = serde_json::from_value(tree.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), tree);
}

#[test]
fn awkward_keys_and_access_paths_work() {
    pollster::block_on(async {
        let service = service(awkward::CONTRACT, &["optional"]).await;
        let bound = awkward::Type::bind(&service).unwrap();
        assert!(bound.optional.is_none());
        let store = bound.r#fn;
        let key = awkward::FnStoreKey {
            self_value: "me".into(),
            r#match: -7,
            hash: vec![1, 2, 3, 4].into(),
            blob: vec![0, 255].into(),
        };
        store.store2().put(&key, &awkward::Tree::new("oak".into())).await.unwrap();
        let page = store.store2_bind("me", -7, QueryOptions::default()).await.unwrap();
        assert_eq!(page.entries.len(), 1);
        let read = page.entries.into_iter().next().unwrap().unwrap();
        let values = store.store2().values(read.key()).unwrap();
        assert_eq!(awkward::FnStoreKey::of(&values), Some(key));
        store
            .constant()
            .put(&awkward::FnConstantKey {}, &awkward::Option2::new(None, "t".into()))
            .await
            .unwrap();
    });
}

#[test]
fn code_of_another_contract_is_not_bound() {
    pollster::block_on(async {
        let text = cases::CONTRACT.replace("UNDER_REVIEW", "IN_REVIEW");
        let error = cases::Cases::bind(&service(&text, &[]).await).unwrap_err();
        assert!(matches!(error, KvError::OtherContract { .. }), "{error:?}");
        let error = cases::Cases::bind(&service(cases::CONTRACT, &["sessions"]).await).unwrap_err();
        assert!(matches!(error, KvError::UnknownResource { .. }), "{error:?}");
    });
}
