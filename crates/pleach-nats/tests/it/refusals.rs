//! What is wrong with servers, settings and buckets is said clearly, and nothing is lost by it.

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Engine, EngineError, ErrorKind, Expectation, Expiry,
    Key, Operation, ScanQuery, Selection, WatchEvent, WatchQuery,
};
use pleach_nats::{Authentication, NatsEngine, NatsOptions, Reads};
use pleach_nats_testing::{Cluster, Server, Settings, tool};
use serde_json::json;

use crate::servers;

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let error = NatsEngine::connect(NatsOptions::server("nats://127.0.0.1:1")).await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_without_jetstream_is_told_from_one_that_is_away() {
    let server = Server::start_with(Settings { jetstream: None, ..Settings::default() });
    let error = NatsEngine::connect(NatsOptions::server(server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_told_so() {
    let program = tool("nats-server-old");
    let server = Server::start_with(Settings { program: Some(&program), ..Settings::default() });
    let error = NatsEngine::connect(NatsOptions::server(server.url())).await.unwrap_err();
    let EngineError::Refused { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("2.11.11") && reason.contains("2.12.1"), "{reason}");
}

#[test]
fn whoever_calls_needs_no_runtime() {
    let options = servers::options(vec![servers::server().url()]);
    pollster::block_on(async {
        let engine = NatsEngine::connect(options).await.unwrap();
        create(&engine, |_| ()).await;
        let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
        let put = engine.commit(&carts(), Batch::new().put(key("a"), "1")).await.unwrap();
        let event = watch.next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Change(change) if change.entry.revision == put.last));
        assert_eq!(engine.scan(&carts(), ScanQuery::default()).await.unwrap().entries.len(), 1);
        engine.close().await.unwrap();
        assert!(matches!(watch.next().await, Some(Err(EngineError::Closed))));
    });
}

#[tokio::test]
async fn a_domain_is_reached_by_its_name_only() {
    let server = Server::start_with(Settings { jetstream: Some("domain: hub"), ..Settings::default() });
    let in_domain =
        |domain: &str| NatsOptions { domain: Some(domain.into()), ..NatsOptions::server(server.url()) };
    round_trip(&NatsEngine::connect(in_domain("hub")).await.unwrap()).await;
    let error = NatsEngine::connect(in_domain("elsewhere")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
}

#[tokio::test]
async fn a_commit_without_permission_is_refused() {
    let more = "authorization { users: [{ user: all, password: a }, \
                { user: reader, password: r, permissions: { publish: { deny: \"$KV.carts.>\" } } }] }";
    let server = Server::start_with(Settings { more, ..Settings::default() });
    let (all, reader) = (connect_as(&server, "all", "a").await, connect_as(&server, "reader", "r").await);
    create(&all, |_| ()).await;
    let error = reader.commit(&carts(), Batch::new().put(key("a"), "1")).await.unwrap_err();
    assert!(matches!(error, CommitError::Engine(EngineError::Denied { .. })), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::NotAllowed);
    assert_eq!(reader.read(&carts(), &key("a"), At::Latest).await.unwrap(), None);
}

/// A server that sends a bucket waits, every few megabytes, to be told to go on.
#[tokio::test]
async fn whoever_may_not_tell_the_server_to_go_on_reads_all_the_same() {
    let more = "authorization { users: [{ user: all, password: a }, \
                { user: reader, password: r, permissions: { publish: { deny: \"$JS.FC.>\" } } }] }";
    let server = Server::start_with(Settings { more, ..Settings::default() });
    let (all, reader) = (connect_as(&server, "all", "a").await, connect_as(&server, "reader", "r").await);
    create(&all, |_| ()).await;
    for batch in 0..10 {
        let put = |entry: i32| Operation::put(key(&format!("{batch}.{entry}")), vec![7; 10_000]);
        all.commit(&carts(), (0..200).map(put).collect()).await.unwrap();
    }
    let bucket = carts();
    let counted = reader.count(&bucket, Selection::all());
    let counted = tokio::time::timeout(servers::SOON, counted).await;
    assert_eq!(counted.expect("it does not wait for ever").unwrap(), 2_000);
}

#[tokio::test]
async fn a_stream_with_the_name_of_a_bucket_is_left_alone() {
    let options = servers::options(vec![servers::server().url()]);
    let stream = format!("KV_{}carts", options.namespace);
    let engine = NatsEngine::connect(options).await.unwrap();
    let config = json!({ "name": stream, "subjects": [format!("orders.{stream}")], "storage": "memory" });
    servers::ask(&format!("STREAM.CREATE.{stream}"), &config).await;
    let created = engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await;
    assert!(matches!(created, Err(EngineError::NotABucket { .. })), "{created:?}");
    let deleted = engine.delete_bucket(&carts()).await;
    assert!(matches!(deleted, Err(EngineError::NotABucket { .. })), "{deleted:?}");
    assert_eq!(engine.buckets().await.unwrap(), []);
    assert_eq!(
        servers::ask(&format!("STREAM.INFO.{stream}"), &json!({})).await["config"]["name"],
        json!(stream)
    );
}

#[tokio::test]
async fn the_payload_that_a_server_takes_limits_values() {
    let server = Server::start_with(Settings { more: "max_payload: 100000", ..Settings::default() });
    let engine = NatsEngine::connect(NatsOptions::server(server.url())).await.unwrap();
    let limit = engine.capabilities().value_bytes_max as usize;
    assert!(limit < 100_000);
    create(&engine, |_| ()).await;
    engine.commit(&carts(), Batch::new().put(key("a"), vec![1; limit])).await.unwrap();
    let error = engine.commit(&carts(), Batch::new().put(key("a"), vec![1; limit + 1])).await.unwrap_err();
    assert!(matches!(error, CommitError::Engine(EngineError::ValueTooLarge { .. })), "{error:?}");
}

#[tokio::test]
async fn what_another_client_changes_of_a_bucket_is_seen() {
    let options = servers::options(vec![servers::server().url()]);
    let stream = format!("KV_{}carts", options.namespace);
    let engine = NatsEngine::connect(options.clone()).await.unwrap();
    create(&engine, |config| config.feed_time = Some(Duration::from_secs(60))).await;
    engine.commit(&carts(), Batch::new().put(key("a"), "1")).await.unwrap();
    let mut config = servers::ask(&format!("STREAM.INFO.{stream}"), &json!({})).await["config"].take();
    config["max_msgs_per_subject"] = json!(5);
    config["metadata"] = json!({});
    servers::ask(&format!("STREAM.UPDATE.{stream}"), &config).await;
    let seen = engine.bucket(&carts()).await.unwrap().config;
    assert_eq!(seen.history.get(), 5, "what the server acts by is true");
    assert_eq!(seen.feed_time, Some(Duration::from_secs(60)), "what only Pleach knows is not lost");
    let another = NatsEngine::connect(options).await.unwrap();
    assert_eq!(another.bucket(&carts()).await.unwrap().config, seen);
    assert_eq!(engine.read(&carts(), &key("a"), At::Latest).await.unwrap().unwrap().value, "1");
}

#[tokio::test]
async fn a_value_that_expires_alone_is_refused_where_history_is_kept() {
    let engine = NatsEngine::connect(servers::options(vec![servers::server().url()])).await.unwrap();
    create(&engine, |config| config.history = NonZeroU8::new(2).unwrap()).await;
    let put = Operation::put(key("a"), "1").expiring(Expiry::After(Duration::from_secs(5)));
    let error = engine.commit(&carts(), Batch::from(put)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert_eq!(engine.history(&carts(), &key("a")).await.unwrap(), []);
}

#[tokio::test]
async fn a_lost_acknowledgement_is_resolved_or_told() {
    let server = Server::start();
    let options = NatsOptions {
        request_timeout: Duration::from_millis(300),
        patience: Duration::from_secs(20),
        ..NatsOptions::server(server.url())
    };
    let engine = Arc::new(NatsEngine::connect(options).await.unwrap());
    create(&engine, |config| config.history = NonZeroU8::new(9).unwrap()).await;
    let put = |at: &'static str| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.commit(&carts(), Batch::new().put(key(at), "1")).await })
    };
    // The server hangs for a while: the commit is repeated meanwhile, and happens once.
    server.stop();
    let commit = |batch: Batch| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.commit(&carts(), batch).await })
    };
    let (one, two) = (put("one"), commit(Batch::new().put(key("x"), "1").put(key("y"), "1")));
    let absent = |operation: Operation| operation.expecting(Expectation::Absent);
    // What these expect is no longer so once they have happened, or still is.
    let created = commit(Batch::from(absent(Operation::put(key("p"), "1"))).put(key("q"), "1"));
    let purged = commit(Batch::from(absent(Operation::purge(key("r")))).put(key("s"), "1"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.go_on();
    let one = one.await.unwrap().unwrap();
    assert_eq!(revisions(&engine, "one").await, [one.last]);
    let two = two.await.unwrap().unwrap();
    assert_eq!(
        (revisions(&engine, "x").await, revisions(&engine, "y").await),
        (vec![two.first], vec![two.last])
    );
    let created = created.await.unwrap().unwrap();
    assert_eq!(revisions(&engine, "p").await, [created.first]);
    let purged = purged.await.unwrap().unwrap();
    assert_eq!(revisions(&engine, "s").await, [purged.last]);
    // It hangs for too long: nobody can know.
    server.stop();
    let error = put("three").await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    server.go_on();
    let after = engine.commit(&carts(), Batch::new().put(key("four"), "1")).await.unwrap();
    assert!(revisions(&engine, "three").await.len() <= 1);
    assert_eq!(revisions(&engine, "four").await, [after.last]);
}

#[tokio::test]
async fn without_most_servers_nothing_is_committed_and_nothing_lost() {
    let mut cluster = Cluster::start();
    let options = NatsOptions {
        servers: cluster.urls(),
        replicas: NonZeroU8::new(3).unwrap(),
        request_timeout: Duration::from_millis(500),
        patience: Duration::from_secs(10),
        ..NatsOptions::default()
    };
    let engine = NatsEngine::connect(options).await.unwrap();
    create(&engine, |_| ()).await;
    let before = engine.commit(&carts(), Batch::new().put(key("a"), "before")).await.unwrap();
    (1..3).for_each(|index| cluster.kill(index));
    let error = engine.commit(&carts(), Batch::new().put(key("b"), "during")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Unavailable), "{error:?}");
    // One that led may go on answering for a while, with what it knows.
    if let Ok(read) = engine.read_with(&carts(), &key("a"), Reads::Leader).await {
        assert_eq!(read.unwrap().value, "before");
    }
    (1..3).for_each(|index| cluster.restart(index));
    let read = async || engine.read_with(&carts(), &key("a"), Reads::Leader).await;
    let found = retried(read).await.unwrap().unwrap();
    assert_eq!((found.revision, found.value.as_ref()), (before.last, &b"before"[..]));
    let put = async || engine.commit(&carts(), Batch::new().put(key("c"), "after")).await;
    retried(put).await.unwrap();
}

/// What `ask` says once the servers have found each other again.
async fn retried<T, E>(ask: impl AsyncFn() -> Result<T, E>) -> Result<T, E> {
    let until_done = async {
        loop {
            if let Ok(done) = ask().await {
                return done;
            }
        }
    };
    match tokio::time::timeout(servers::SOON, until_done).await {
        Ok(done) => Ok(done),
        Err(_) => ask().await,
    }
}

pub(crate) async fn round_trip(engine: &NatsEngine) {
    create(engine, |_| ()).await;
    engine.commit(&carts(), Batch::new().put(key("a"), "1")).await.unwrap();
    assert_eq!(engine.read(&carts(), &key("a"), At::Latest).await.unwrap().unwrap().value, "1");
}

async fn connect_as(server: &Server, user: &str, password: &str) -> NatsEngine {
    let authentication = Authentication::User { user: user.into(), password: password.into() };
    let request_timeout = Duration::from_millis(300);
    let options = NatsOptions {
        authentication,
        request_timeout,
        patience: servers::SOON,
        ..NatsOptions::server(server.url())
    };
    NatsEngine::connect(options).await.unwrap()
}

async fn create(engine: &NatsEngine, change: impl FnOnce(&mut BucketConfig)) {
    let mut config = BucketConfig::plain(engine.capabilities());
    change(&mut config);
    engine.create_bucket(&carts(), config).await.unwrap();
}

async fn revisions(engine: &NatsEngine, at: &str) -> Vec<pleach_engine::Revision> {
    let records = engine.history(&carts(), &key(at)).await.unwrap();
    records.iter().map(|entry| entry.revision).collect()
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
