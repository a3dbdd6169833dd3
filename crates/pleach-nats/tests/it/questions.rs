//! How often servers are asked.

use futures_util::{FutureExt, StreamExt};
use pleach_engine::{At, Batch, BucketConfig, BucketName, Engine, Key, ScanQuery};
use pleach_nats::NatsEngine;

use crate::servers;

#[tokio::test]
async fn keys_that_are_missing_are_asked_for_once_each() {
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(options.clone()).await.unwrap();
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let mut direct = Counter::of(format!("$JS.API.DIRECT.GET.KV_{}carts.>", options.namespace)).await;
    let mut leader = Counter::of(format!("$JS.API.STREAM.MSG.GET.KV_{}carts", options.namespace)).await;
    let mut asked = async || (direct.take().await, leader.take().await);
    for round in 0..10 {
        assert_eq!(read(&engine, &format!("missing.{round}")).await, None);
    }
    assert_eq!(asked().await, (1, 10), "the first was asked for twice: it could have been there");
    engine.commit(&carts(), Batch::new().put(key("a"), "1")).await.unwrap();
    for _ in 0..10 {
        assert_eq!(read(&engine, "a").await.as_deref(), Some("1"), "what was written is seen");
    }
    assert_eq!(asked().await, (9, 1), "whoever has found something is not asked twice");
}

#[tokio::test]
async fn a_large_bucket_is_copied_by_one_consumer() {
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(options.clone()).await.unwrap();
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    for batch in 0..5 {
        let puts = (0..1000).map(|index| key(&format!("k.{batch}.{index:04}")));
        engine.commit(&carts(), puts.fold(Batch::new(), |batch, key| batch.put(key, "1"))).await.unwrap();
    }
    // Gaps, and a marker.
    engine.commit(&carts(), Batch::new().put(key("k.1.0500"), "2").delete(key("k.2.0500"))).await.unwrap();
    let mut consumers = Counter::of(format!("$JS.API.CONSUMER.CREATE.KV_{}carts", options.namespace)).await;
    let mut chunks = Counter::of(format!("$JS.API.DIRECT.GET.KV_{}carts", options.namespace)).await;
    let mut entries = Vec::new();
    let mut query = ScanQuery { limit: 1000, ..ScanQuery::default() };
    loop {
        let page = engine.scan(&carts(), query.clone()).await.unwrap();
        entries.extend(page.entries);
        let Some(next) = page.next else { break };
        query.page = Some(next);
    }
    let changed = entries.iter().find(|entry| entry.key == key("k.1.0500")).expect("it was changed");
    assert_eq!((entries.len(), changed.value.as_ref()), (4999, &b"2"[..]));
    assert!(entries.iter().is_sorted_by_key(|entry| entry.key.clone()));
    assert!(entries.iter().all(|entry| entry.key != key("k.2.0500")));
    assert_eq!((consumers.take().await, chunks.take().await), (1, 0));
}

/// Counts what is asked under a subject.
struct Counter {
    client: async_nats::Client,
    questions: async_nats::Subscriber,
}

impl Counter {
    async fn of(subject: String) -> Self {
        let client = servers::client().await;
        let questions = client.subscribe(subject).await.unwrap();
        let mut counter = Self { client, questions };
        assert_eq!(counter.take().await, 0);
        counter
    }

    /// How many were asked since the last call, or since the beginning.
    async fn take(&mut self) -> usize {
        // One connection delivers in order: with this answer every question from before is here.
        servers::settle(&self.client).await;
        let mut taken = 0;
        while let Some(Some(_)) = self.questions.next().now_or_never() {
            taken += 1;
        }
        taken
    }
}

async fn read(engine: &NatsEngine, at: &str) -> Option<String> {
    let found = engine.read(&carts(), &key(at), At::Latest).await.unwrap();
    found.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
