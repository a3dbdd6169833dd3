//! Buckets are shared with the key-value client of `async-nats`, in both directions.

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use futures_util::{StreamExt, TryStreamExt};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Engine, EngineError, ErrorKind, Expectation, Expiry,
    Key, Op, Operation, ScanQuery, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use pleach_nats::NatsEngine;

use crate::servers::{self, SOON};

#[tokio::test]
async fn another_client_uses_a_bucket_of_ours() {
    let (engine, context, namespace) = both().await;
    let history = NonZeroU8::new(5).unwrap();
    let config = BucketConfig { history, ..BucketConfig::plain(engine.capabilities()) };
    engine.create_bucket(&carts(), config).await.unwrap();
    let native = context.get_key_value(format!("{namespace}carts")).await.unwrap();
    let mut seen = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    let mut native_seen = native.watch_all().await.unwrap();

    let put = engine.commit(&carts(), Batch::new().put(key("a.1"), "ours")).await.unwrap();
    assert_eq!(native.get("a.1").await.unwrap().unwrap(), "ours");
    let entry = native_seen.next().await.unwrap().unwrap();
    assert_eq!((entry.key.as_str(), entry.revision), ("a.1", put.last.get()));

    let revision = native.update("a.1", "theirs".into(), put.last.get()).await.unwrap();
    let read = engine.read(&carts(), &key("a.1"), At::Latest).await.unwrap().unwrap();
    assert_eq!((read.revision.get(), read.value.as_ref()), (revision, &b"theirs"[..]));
    let stale = Operation::put(key("a.1"), "late").expecting(Expectation::Revision(put.last));
    let conflict = engine.commit(&carts(), Batch::from(stale)).await.unwrap_err();
    let CommitError::Conflict(conflict) = conflict else { panic!("expected a conflict, got {conflict:?}") };
    assert_eq!(conflict.actual.map(|actual| actual.get()), Some(revision));

    native.delete("a.1").await.unwrap();
    native.create("b", "again".into()).await.unwrap();
    native.purge("b").await.unwrap();
    assert_eq!(engine.read(&carts(), &key("a.1"), At::Latest).await.unwrap(), None);
    let ops: Vec<Op> = changes(&mut seen, 5).await.into_iter().map(|(op, _)| op).collect();
    assert_eq!(ops, [Op::Put, Op::Put, Op::Delete, Op::Put, Op::Purge]);

    // What we delete is gone for them, and what we commit together they see.
    engine
        .commit(&carts(), Batch::new().put(key("c"), "1").put(key("d"), "2").delete(key("a.1")))
        .await
        .unwrap();
    let keys: BTreeSet<String> = native.keys().await.unwrap().try_collect().await.unwrap();
    assert_eq!(keys, BTreeSet::from(["c".into(), "d".into()]));
    native.create("a.1", "new".into()).await.unwrap();
    // A scan sees what others wrote once the engine has heard of it.
    assert_eq!(changes(&mut seen, 4).await.last(), Some(&(Op::Put, "a.1".to_owned())));
    assert_eq!(listed(&engine).await, ["a.1", "c", "d"]);
}

#[tokio::test]
async fn we_use_a_bucket_of_another_client() {
    let (engine, context, namespace) = both().await;
    let config = kv::Config { bucket: format!("{namespace}carts"), history: 3, ..kv::Config::default() };
    let native = context.create_key_value(config).await.unwrap();
    native.put("a", "1".into()).await.unwrap();
    let info = engine.bucket(&carts()).await.unwrap();
    assert_eq!((info.config.history.get(), info.config.ttl), (3, None));
    assert_eq!(engine.buckets().await.unwrap().len(), 1);

    let query = WatchQuery { start: WatchStart::Latest, ..WatchQuery::default() };
    let mut seen = engine.watch(&carts(), query).await.unwrap();
    native.put("b", "2".into()).await.unwrap();
    let put = engine.commit(&carts(), Batch::new().put(key("c"), "3")).await.unwrap();
    native.delete("a").await.unwrap();
    let expected = [(Op::Put, "a"), (Op::Put, "b"), (Op::Put, "c"), (Op::Delete, "a")];
    assert_eq!(changes(&mut seen, 4).await, expected.map(|(op, at)| (op, at.to_owned())));
    assert_eq!(native.entry("c").await.unwrap().unwrap().revision, put.last.get());
    assert_eq!(listed(&engine).await, ["b", "c"]);
    assert_eq!(engine.history(&carts(), &key("a")).await.unwrap().len(), 2);

    // What its stream was not made for is refused, and nothing of it is written.
    let batch = Batch::new().put(key("x"), "1").put(key("y"), "1");
    let refused = engine.commit(&carts(), batch).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused:?}");
    let expiring = Operation::put(key("x"), "1").expiring(Expiry::After(Duration::from_secs(9)));
    let refused = engine.commit(&carts(), Batch::from(expiring)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused:?}");
    assert_eq!(listed(&engine).await, ["b", "c"]);

    context.delete_key_value(format!("{namespace}carts")).await.unwrap();
    let end = tokio::time::timeout(SOON, seen.next()).await.expect("it ends");
    assert!(matches!(end, Some(Err(EngineError::BucketNotFound { .. }))), "{end:?}");
}

#[tokio::test]
async fn a_value_that_another_client_lets_expire_is_gone() {
    let (engine, context, namespace) = both().await;
    let config = kv::Config {
        bucket: format!("{namespace}carts"),
        limit_markers: Some(Duration::from_secs(60)),
        ..kv::Config::default()
    };
    let native = context.create_key_value(config).await.unwrap();
    let mut seen = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    native.create_with_ttl("a", "1".into(), Duration::from_secs(10)).await.unwrap();
    let entry = engine.read(&carts(), &key("a"), At::Latest).await.unwrap().unwrap();
    assert!(entry.expires.is_some_and(|expires| expires > entry.time));
    let expected = [(Op::Put, "a".to_owned()), (Op::Expire, "a".to_owned())];
    assert_eq!(changes(&mut seen, 2).await, expected);
    assert_eq!(engine.read(&carts(), &key("a"), At::Latest).await.unwrap(), None);
}

async fn both() -> (NatsEngine, jetstream::Context, String) {
    let options = servers::options(vec![servers::server().url()]);
    let namespace = options.namespace.clone();
    (NatsEngine::connect(options).await.unwrap(), servers::context().await, namespace)
}

/// The next changes of a watch.
async fn changes(watch: &mut WatchStream, count: usize) -> Vec<(Op, String)> {
    let mut changes = Vec::new();
    while changes.len() < count {
        match tokio::time::timeout(SOON, watch.next()).await.expect("it comes soon") {
            Some(Ok(WatchEvent::Change(change))) => {
                changes.push((change.entry.op, change.entry.key.to_string()))
            }
            Some(Ok(WatchEvent::InitialDone { .. })) => {}
            other => panic!("expected a change, got {other:?}"),
        }
    }
    changes
}

async fn listed(engine: &NatsEngine) -> Vec<String> {
    let page = engine.scan(&carts(), ScanQuery::default()).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
