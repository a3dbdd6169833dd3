//! Keys that start with `_kv` are the store's own: one rule, whichever way a write comes.

use pleach::migrate::{Advance, MigrateOptions, Migration, Plan};
use pleach::stores::Keeper;
use pleach::{Batch, BucketName, EngineError, Error, ErrorKind, Key, Operation, WriteError};

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

pub(crate) async fn a_migration_keeps_its_position_under_a_reserved_key(given: Given) {
    let source = pleach::Store::in_memory();
    let old = source.create_bucket("old").await.unwrap();
    old.put("user.1", r#"{"apples": 3}"#).await.unwrap();
    let carts = BucketName::parse("carts").unwrap();
    let options = MigrateOptions::default();
    let plan = Plan::make(&source, &given.store, old.name(), &carts, &options).await.unwrap();
    let mut migration = Migration::begin(&source, &given.store, plan, &options).await.unwrap();
    while !matches!(migration.advance().await.unwrap(), Advance::Waiting { caught_up: true, .. }) {}
    let carts = given.store.bucket(&carts).await.unwrap();
    let position = || Key::parse_reserved(Keeper::MIGRATION_KEY).unwrap();
    assert!(carts.get("user.1").await.unwrap().is_some());
    assert!(carts.get(position()).await.unwrap().is_some());
    assert!(carts.put(position(), "{}").await.is_err());
}
