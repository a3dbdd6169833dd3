//! Buckets that several delete, while someone makes them anew.

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, ConsumerName, ConsumerStart, Engine, EngineError, Key,
};
use pleach_nats::{NatsEngine, NatsOptions};
use tokio::sync::oneshot;

use crate::edited::edit;
use crate::servers::{self, SOON};

#[tokio::test]
async fn whoever_deletes_last_leaves_the_namesake_alone() {
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(options.clone()).await.unwrap();
    let plain = BucketConfig { marker_ttl: None, ..BucketConfig::plain(engine.capabilities()) };
    engine.create_bucket(&carts(), plain.clone()).await.unwrap();
    engine.create_consumer(&carts(), &indexer(), ConsumerStart::Now).await.unwrap();
    // It has sealed the bucket, and does not get on.
    let prefix = format!("SLOW.{}", options.namespace);
    let (held, release) = hold(&prefix, "STREAM.MSG.GET.").await;
    let slow = NatsOptions { api_prefix: Some(prefix), patience: SOON, ..options.clone() };
    let slow = NatsEngine::connect(slow).await.unwrap();
    let deleting = tokio::spawn(async move { slow.delete_bucket(&carts()).await });
    tokio::time::timeout(SOON, held).await.expect("it gets there").unwrap();
    let sealed = engine.commit(&carts(), Batch::new().put(key("late"), "1")).await.unwrap_err();
    assert!(format!("{sealed:?}").contains("BucketNotFound"), "{sealed:?}");
    // Another finishes it, and makes a namesake.
    engine.delete_bucket(&carts()).await.unwrap();
    engine.create_bucket(&carts(), plain.clone()).await.unwrap();
    engine.create_consumer(&carts(), &indexer(), ConsumerStart::Now).await.unwrap();
    let put = engine.commit(&carts(), Batch::new().put(key("new"), "1")).await.unwrap();
    release.send(()).unwrap();
    tokio::time::timeout(SOON, deleting).await.expect("it ends").unwrap().unwrap();
    let fresh = NatsEngine::connect(options.clone()).await.unwrap();
    let found = fresh.read(&carts(), &key("new"), At::Latest).await.unwrap();
    assert_eq!(found.map(|entry| entry.revision), Some(put.last));
    fresh.consumer(&carts(), &indexer()).await.expect("the namesake's consumer is there");
    // What only the store's own records know by now is still known.
    edit(&format!("KV_{}carts", options.namespace), "metadata", serde_json::json!({})).await;
    let fresh = NatsEngine::connect(options).await.unwrap();
    assert_eq!(fresh.bucket(&carts()).await.unwrap().config, plain);
}

#[tokio::test]
async fn a_deleted_bucket_takes_its_consumers_with_it() {
    let engine = NatsEngine::connect(servers::options(vec![servers::server().url()])).await.unwrap();
    let plain = BucketConfig::plain(engine.capabilities());
    engine.create_bucket(&carts(), plain.clone()).await.unwrap();
    engine.create_consumer(&carts(), &indexer(), ConsumerStart::Now).await.unwrap();
    engine.delete_bucket(&carts()).await.unwrap();
    engine.create_bucket(&carts(), plain).await.unwrap();
    let missing = engine.consumer(&carts(), &indexer()).await.unwrap_err();
    assert!(matches!(missing, EngineError::ConsumerNotFound { .. }), "{missing:?}");
}

/// Passes on to the API of JetStream what is asked under `prefix`, and holds the first question that contains `which`, with all
/// that come after it. Tells when it holds one, and lets go when it is told.
async fn hold(prefix: &str, which: &'static str) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
    let client = servers::client().await;
    let mut questions = client.subscribe(format!("{prefix}.>")).await.unwrap();
    servers::settle(&client).await;
    let ((holds, held), (release, released)) = (oneshot::channel(), oneshot::channel());
    let beginning = prefix.len();
    tokio::spawn(async move {
        let mut gate = Some((holds, released));
        while let Some(question) = questions.next().await {
            if question.subject.contains(which)
                && let Some((holds, released)) = gate.take()
            {
                holds.send(()).unwrap();
                released.await.unwrap();
            }
            let subject = format!("$JS.API{}", &question.subject[beginning..]);
            let reply = question.reply.expect("every question wants an answer");
            client.publish_with_reply(subject, reply, question.payload).await.unwrap();
        }
    });
    (held, release)
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn indexer() -> ConsumerName {
    ConsumerName::parse("indexer").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
