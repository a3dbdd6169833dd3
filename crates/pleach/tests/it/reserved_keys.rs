//! Keys that start with `_kv` are the store's own: one rule, whichever way a write comes.

use pleach::contract::{Contract, Notation};
use pleach::migrate::{Advance, MigrateOptions, Migration, Plan};
use pleach::stores::{ApplyOptions, PlanOptions};
use pleach::{Batch, EngineError, Error, ErrorKind, Key, Operation, WriteError};

use crate::given::Given;

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::ReservedKey { .. })) && error.kind() == ErrorKind::Invalid
}

pub(crate) async fn reserved_keys_are_not_written_by_users(given: Given) {
    let bucket = given.bucket().await;
    let reserved = || Key::parse_reserved("_kv.projection.x").unwrap();
    let glass = given.store.break_glass("ann", "a test").unwrap();
    let stores = [given.store.clone(), given.store.for_copies(), glass];
    for store in stores {
        let bucket = store.bucket(bucket.name()).await.unwrap();
        let mut errors = vec![
            bucket.put(reserved(), "1").await.unwrap_err(),
            bucket.delete(reserved()).await.unwrap_err(),
            bucket.purge(reserved()).await.unwrap_err(),
        ];
        let typed = bucket.typed::<u32>();
        let (_, value) = typed.stored("a", &1).unwrap();
        for batch in [
            bucket.batch().put("a", "1").put(reserved(), value).commit().await,
            bucket.commit(Batch::from(Operation::delete(reserved()))).await,
        ] {
            match batch.unwrap_err() {
                WriteError::Failed(error) => errors.push(error),
                WriteError::Conflict(conflict) => panic!("{conflict}"),
            }
        }
        assert!(errors.iter().all(is_refused), "{errors:?}");
    }
    assert_eq!(bucket.count(">").await.unwrap(), 0);
    assert!(bucket.get(reserved()).await.unwrap().is_none());
}

pub(crate) async fn a_migration_keeps_its_position_in_a_bucket_that_a_contract_owns(given: Given) {
    let text = r#"
format: pleach.contract.v1
id: acme.carts@v1
kind: app
displayName: Carts
description: Carts
schemas: {Cart: {type: object}}
resources: {kv: {carts: {purpose: Carts, schema: {schema: Cart}}}}
"#;
    let contract = Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract;
    let contracts = given.store.contracts();
    let plan = contracts.plan(&contract, PlanOptions::default()).await.unwrap();
    let applied = contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
    let carts = given.store.bucket(&applied.bindings["carts"].bucket).await.unwrap();
    let source = pleach::Store::in_memory();
    let old = source.create_bucket("old").await.unwrap();
    old.put("user.1", r#"{"apples": 3}"#).await.unwrap();
    let options = MigrateOptions::default();
    let plan = Plan::make(&source, &given.store, old.name(), carts.name(), &options).await.unwrap();
    let mut migration = Migration::begin(&source, &given.store, plan, &options).await.unwrap();
    while !matches!(migration.advance().await.unwrap(), Advance::Waiting { caught_up: true, .. }) {}
    assert!(carts.get("user.1").await.unwrap().is_some());
    // A value that breaks the contract is not copied.
    old.put("user.2", "no object").await.unwrap();
    let error = loop {
        match migration.advance().await {
            Err(error) => break error,
            Ok(Advance::Waiting { caught_up: true, .. }) => panic!("it was copied"),
            Ok(_) => {}
        }
    };
    assert!(matches!(error, Error::Engine(EngineError::BrokenContract { .. })), "{error:?}");
}
