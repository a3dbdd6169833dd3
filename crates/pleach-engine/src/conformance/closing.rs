use std::num::NonZeroU8;

use super::case::{Case, consumer, key, put};
use super::refused;
use crate::{
    At, Batch, CommitError, ConsumerStart, EngineError, ScanQuery, Selection, WatchQuery, WatchStart,
};

pub(super) async fn a_closed_engine_refuses_every_call(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let page = bucket.scan(ScanQuery { limit: 1, ..ScanQuery::default() }).await.next;
    let (engine, name, at) = (case.engine(), &bucket.name, key("a"));
    engine.close().await.unwrap();
    refused!(engine.create_bucket(name, case.config()).await, EngineError::Closed);
    refused!(engine.create_bucket(&case.named("new").name, case.config()).await, EngineError::Closed);
    refused!(engine.update_bucket(name, case.config()).await, EngineError::Closed);
    refused!(engine.delete_bucket(name).await, EngineError::Closed);
    refused!(engine.bucket(name).await, EngineError::Closed);
    refused!(engine.buckets().await, EngineError::Closed);
    let batch = Batch::from(put("a", "2"));
    refused!(engine.commit(name, batch).await, CommitError::Engine(EngineError::Closed));
    refused!(engine.read(name, &at, At::Latest).await, EngineError::Closed);
    refused!(engine.history(name, &at).await, EngineError::Closed);
    refused!(engine.scan(name, ScanQuery { page, ..ScanQuery::default() }).await, EngineError::Closed);
    refused!(engine.count(name, Selection::all()).await, EngineError::Closed);
    let watch = engine.watch(name, WatchQuery::default()).await.map(|_| "a watch");
    refused!(watch, EngineError::Closed);
    refused!(engine.compact_key(name, &at, NonZeroU8::MIN).await, EngineError::Closed);
}

pub(super) async fn a_closed_engine_refuses_consumers(case: Case) {
    let bucket = case.bucket().await;
    let revision = bucket.put("a", "1").await;
    let (engine, name, at) = (case.engine(), &bucket.name, consumer("c"));
    bucket.consume("c", ConsumerStart::Oldest).await;
    engine.close().await.unwrap();
    refused!(engine.create_consumer(name, &at, ConsumerStart::Now).await, EngineError::Closed);
    refused!(engine.create_consumer(name, &consumer("new"), ConsumerStart::Now).await, EngineError::Closed);
    refused!(engine.consumers(name).await, EngineError::Closed);
    refused!(engine.consumer(name, &at).await, EngineError::Closed);
    refused!(engine.acknowledge(name, &at, revision).await, EngineError::Closed);
    refused!(engine.reset_consumer(name, &at, ConsumerStart::Now).await, EngineError::Closed);
    refused!(engine.delete_consumer(name, &at).await, EngineError::Closed);
}

pub(super) async fn closing_ends_every_watch(case: Case) {
    let bucket = case.bucket().await;
    let mut waiting = bucket.watch(WatchStart::Now).await;
    let mut begun = bucket.watch(WatchStart::Latest).await;
    begun.initial().await;
    let close = async { case.engine().close().await.unwrap() };
    let ended = waiting.woken_by(close).await;
    assert!(matches!(ended, Some(Err(EngineError::Closed))), "{ended:?}");
    assert!(waiting.item().await.is_none());
    assert!(matches!(begun.end().await, EngineError::Closed));
}

pub(super) async fn closing_twice_is_fine(case: Case) {
    case.bucket().await.put("a", "1").await;
    case.engine().close().await.unwrap();
    case.engine().close().await.unwrap();
    refused!(case.engine().buckets().await, EngineError::Closed);
}
