//! What becomes of commits when answers are lost, late or somebody else's: each happens at most once, and nobody guesses.

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Engine, EngineError, ErrorKind, Key, Selection,
};
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::{Link, Server, Settings};
use serde_json::json;

use crate::edited::edit;
use crate::servers::{self, SOON};

#[tokio::test]
async fn what_was_never_sent_is_not_done_and_stays_so() {
    let (observer, options) = observer().await;
    let link = Link::to(&servers::server().url());
    let engine = NatsEngine::connect(impatient(&link, options)).await.unwrap();
    put(&engine, "before").await.unwrap();
    link.cut();
    // Until the engine has noticed, nobody knows.
    while put(&engine, "meanwhile").await.unwrap_err().kind() == ErrorKind::Unknown {}
    let error = put(&engine, "away").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    link.mend();
    while put(&engine, "after").await.is_err() {}
    assert_eq!(observer.read(&carts(), &key("away"), At::Latest).await.unwrap(), None, "it came late");
}

#[tokio::test]
async fn a_bucket_that_soon_forgets_what_came_is_not_written_to_twice() {
    let (observer, options) = observer().await;
    edit(&format!("KV_{}carts", options.namespace), "duplicate_window", json!(100_000_000)).await;
    let link = Link::to(&servers::server().url());
    let engine = NatsEngine::connect(impatient(&link, options)).await.unwrap();
    put(&engine, "before").await.unwrap();
    link.silence();
    let error = put(&engine, "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    assert_eq!(observer.history(&carts(), &key("a")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_batch_whose_answer_was_lost_is_recognised_and_not_written_twice() {
    let (observer, options) = observer().await;
    let link = Link::to(&servers::server().url());
    let patient = NatsOptions { patience: SOON, ..impatient(&link, options) };
    let engine = NatsEngine::connect(patient).await.unwrap();
    put(&engine, "before").await.unwrap();
    link.silence();
    let keys = ["x", "y", "z"].map(key);
    let batch = keys.iter().fold(Batch::new(), |batch, key| batch.put(key.clone(), "1"));
    let committing = tokio::spawn(async move { engine.commit(&carts(), batch).await });
    // It is stored, and its writer does not know.
    while observer.read(&carts(), &key("z"), At::Latest).await.unwrap().is_none() {}
    link.mend();
    let told = tokio::time::timeout(SOON, committing).await.expect("it ends").unwrap().unwrap();
    for (key, revision) in keys.iter().zip(told.first.get()..) {
        let records = observer.history(&carts(), key).await.unwrap();
        let found: Vec<u64> = records.iter().map(|record| record.revision.get()).collect();
        assert_eq!(found, [revision], "{key}");
    }
}

#[tokio::test]
async fn an_answer_of_someone_else_says_nothing() {
    let (observer, options) = observer().await;
    let client = servers::client().await;
    let mut heard = client.subscribe(format!("$KV.{}carts.>", options.namespace)).await.unwrap();
    servers::settle(&client).await;
    let answering = tokio::spawn(async move {
        while let Some(message) = heard.next().await {
            let Some(reply) = message.reply else { continue };
            client.publish(reply, r#"{"thanks":true}"#.into()).await.unwrap();
            client.flush().await.unwrap();
        }
    });
    let options = NatsOptions { patience: Duration::from_secs(2), ..options };
    let engine = NatsEngine::connect(options).await.unwrap();
    for round in 0..50 {
        let at = format!("k{round}");
        let told = put(&engine, &at).await.map_err(|error| error.kind());
        let records = observer.history(&carts(), &key(&at)).await.unwrap().len();
        assert!(matches!((told, records), (Ok(()), 1) | (Err(ErrorKind::Unknown), _)), "{told:?}, {records}");
    }
    answering.abort();
}

#[tokio::test]
async fn a_bucket_that_is_full_says_so_and_keeps_what_it_has() {
    let (_, options) = observer().await;
    edit(&format!("KV_{}carts", options.namespace), "max_bytes", json!(5000)).await;
    // With this patience an engine that tries again would not be done soon.
    let engine = NatsEngine::connect(NatsOptions { patience: 10 * SOON, ..options }).await.unwrap();
    let refused = async {
        for round in 0.. {
            let batch = Batch::new().put(key(&format!("k{round}")), vec![1; 1000]);
            if let Err(error) = engine.commit(&carts(), batch).await {
                return (round, error);
            }
        }
        unreachable!()
    };
    let (fitted, error) = tokio::time::timeout(SOON, refused).await.expect("it is said at once");
    assert!(matches!(&error, CommitError::Engine(EngineError::Refused { .. })), "{error:?}");
    assert!(error.to_string().contains("maximum bytes"), "{error}");
    assert!(fitted > 1);
    assert_eq!(engine.count(&carts(), Selection::all()).await.unwrap(), fitted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_too_busy_is_asked_again() {
    const PUTS: usize = 500;
    let jetstream = Some("max_buffered_msgs: 1");
    let server = Server::start_with(Settings { jetstream, ..Settings::default() });
    let engine = Arc::new(NatsEngine::connect(NatsOptions::server(server.url())).await.unwrap());
    create(&engine).await;
    let start = |n: usize| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { put(&engine, &format!("k{n}")).await })
    };
    for put in (0..PUTS).map(start).collect::<Vec<_>>() {
        put.await.unwrap().unwrap();
    }
    assert_eq!(engine.count(&carts(), Selection::all()).await.unwrap(), PUTS as u64);
}

/// An engine beside those that are disturbed, and the options of its store, in which there is a bucket.
pub(crate) async fn observer() -> (NatsEngine, NatsOptions) {
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(options.clone()).await.unwrap();
    create(&engine).await;
    (engine, options)
}

pub(crate) fn impatient(link: &Link, options: NatsOptions) -> NatsOptions {
    let (request_timeout, patience) = (Duration::from_secs(2), Duration::from_secs(10));
    NatsOptions { servers: vec![link.url()], request_timeout, patience, ..options }
}

async fn create(engine: &NatsEngine) {
    let config =
        BucketConfig { history: NonZeroU8::new(9).unwrap(), ..BucketConfig::plain(engine.capabilities()) };
    engine.create_bucket(&carts(), config).await.unwrap();
}

async fn put(engine: &NatsEngine, at: &str) -> Result<(), CommitError> {
    let carts = carts();
    let commit = engine.commit(&carts, Batch::new().put(key(at), "1"));
    tokio::time::timeout(SOON, commit).await.expect("it ends").map(drop)
}

pub(crate) fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
