//! What a single client sees of servers that go and come back, and of links that are cut.

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, Direction, Engine, EngineError, Key, Op, Operation, Revision,
    ScanQuery, Selection, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use pleach_nats::{BucketPlace, NatsEngine, NatsOptions, Reads, Scans};
use pleach_nats_testing::{Link, Server};

use crate::servers::{self, SOON};

#[tokio::test]
async fn a_watch_survives_a_server_that_was_killed() {
    let mut server = Server::start();
    let engine = NatsEngine::connect(options(server.url())).await.unwrap();
    create(&engine, 8).await;
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    put(&engine, &["a", "b", "a"]).await;
    server.kill();
    server.restart();
    put(&engine, &["a", "c"]).await;
    assert_eq!(take(&mut watch, 5).await, ["a", "b", "a", "a", "c"]);
    assert_eq!(engine.count(&carts(), Selection::all()).await.unwrap(), 3);
}

#[tokio::test]
async fn what_was_committed_while_a_link_was_cut_is_delivered() {
    let server = servers::server();
    let (link, options) = (Link::to(&server.url()), servers::options(vec![server.url()]));
    let writer = NatsEngine::connect(options.clone()).await.unwrap();
    let cut = NatsEngine::connect(NatsOptions { servers: vec![link.url()], ..options }).await.unwrap();
    create(&writer, 8).await;
    let mut watch = cut.watch(&carts(), WatchQuery::default()).await.unwrap();
    put(&writer, &["a"]).await;
    assert_eq!(take(&mut watch, 1).await, ["a"]);
    link.cut();
    put(&writer, &["b", "c", "b"]).await;
    link.mend();
    assert_eq!(take(&mut watch, 3).await, ["b", "c", "b"]);
    put(&writer, &["d"]).await;
    assert_eq!(take(&mut watch, 1).await, ["d"]);
}

#[tokio::test]
async fn more_than_one_answer_holds_is_delivered_after_a_cut() {
    const CHANGES: usize = 2500;
    let server = servers::server();
    let (link, options) = (Link::to(&server.url()), servers::options(vec![server.url()]));
    let writer = NatsEngine::connect(options.clone()).await.unwrap();
    let cut = NatsEngine::connect(NatsOptions { servers: vec![link.url()], ..options }).await.unwrap();
    create(&writer, 1).await;
    let mut watch = cut.watch(&carts(), WatchQuery::default()).await.unwrap();
    link.cut();
    let written: Vec<String> = (0..CHANGES).map(|n| format!("k{n}")).collect();
    for part in written.chunks(100) {
        let batch: Batch = part.iter().map(|at| Operation::put(key(at), "1")).collect();
        writer.commit(&carts(), batch).await.unwrap();
    }
    link.mend();
    assert_eq!(take(&mut watch, CHANGES).await, written);
}

#[tokio::test]
async fn a_deleted_key_does_not_expire_where_history_is_kept() {
    let engine = NatsEngine::connect(servers::options(vec![servers::server().url()])).await.unwrap();
    let (history, ttl) = (NonZeroU8::new(3).unwrap(), Some(Duration::from_secs(1)));
    let config = BucketConfig { history, ttl, ..BucketConfig::plain(engine.capabilities()) };
    engine.create_bucket(&carts(), config).await.unwrap();
    put(&engine, &["deleted", "purged"]).await;
    let batch = Batch::new().delete(key("deleted")).purge(key("purged"));
    engine.commit(&carts(), batch).await.unwrap();
    let records = engine.history(&carts(), &key("deleted")).await.unwrap();
    let ops: Vec<Op> = records.iter().map(|entry| entry.op).collect();
    assert_eq!(ops, [Op::Put, Op::Delete], "what is before a delete stays");
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    // What comes after them expires after them.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    put(&engine, &["later"]).await;
    assert_eq!(take(&mut watch, 2).await, ["later", "later"]);
}

#[tokio::test]
async fn history_is_not_older_than_what_a_read_finds() {
    let options = servers::options(vec![servers::server().url()]);
    let (one, other) =
        (NatsEngine::connect(options.clone()).await.unwrap(), NatsEngine::connect(options).await.unwrap());
    create(&one, 5).await;
    put(&one, &["a"]).await;
    for records in 1..5 {
        assert_eq!(other.history(&carts(), &key("a")).await.unwrap().len(), records);
        put(&one, &["a"]).await;
    }
}

#[tokio::test]
async fn what_would_take_too_much_memory_is_refused() {
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(NatsOptions { cache_bytes_max: 10_000, ..options }).await.unwrap();
    create(&engine, 1).await;
    let start = WatchStart::Latest;
    let fill = async |at: &str| {
        let batch = Batch::new().put(key(at), vec![1; 4000]);
        engine.commit(&carts(), batch).await.unwrap();
    };
    // The same key again and again takes no more than once.
    for at in ["a", "a", "a", "b"] {
        fill(at).await;
    }
    assert_eq!(keys(&engine).await, ["a", "b"]);
    let mut watch = engine.watch(&carts(), WatchQuery { start, ..WatchQuery::default() }).await.unwrap();
    assert_eq!(take(&mut watch, 2).await, ["a", "b"]);
    fill("c").await;
    let scanned = engine.scan(&carts(), ScanQuery::default()).await;
    assert!(matches!(scanned, Err(EngineError::Unsupported { .. })), "{scanned:?}");
    let watched = engine.watch(&carts(), WatchQuery { start, ..WatchQuery::default() }).await;
    assert!(matches!(watched.map(drop), Err(EngineError::Unsupported { .. })));
    // What needs no copy works all the same.
    assert!(engine.read(&carts(), &key("c"), At::Latest).await.unwrap().is_some());
}

#[tokio::test]
async fn a_watch_that_missed_a_replaced_change_says_so() {
    let server = servers::server();
    let (link, options) = (Link::to(&server.url()), servers::options(vec![server.url()]));
    let writer = NatsEngine::connect(options.clone()).await.unwrap();
    let cut = NatsEngine::connect(NatsOptions { servers: vec![link.url()], ..options }).await.unwrap();
    create(&writer, 1).await;
    put(&writer, &["a", "b"]).await;
    let mut watch = cut.watch(&carts(), WatchQuery::default()).await.unwrap();
    assert_eq!(keys(&cut).await, ["a", "b"]);
    link.cut();
    put(&writer, &["c", "c"]).await;
    let last = writer.bucket(&carts()).await.unwrap().last_revision;
    link.mend();
    let event = tokio::time::timeout(SOON, watch.next()).await.expect("it ends");
    assert!(
        matches!(event, Some(Err(EngineError::Compacted { oldest })) if oldest == last.next()),
        "{event:?}"
    );
    // The cache has missed it too, and is built again.
    assert_eq!(keys(&cut).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_scan_does_not_answer_from_a_cache_that_hears_nothing() {
    let server = servers::server();
    let (link, options) = (Link::to(&server.url()), servers::options(vec![server.url()]));
    let writer = NatsEngine::connect(options.clone()).await.unwrap();
    let patience = Duration::from_secs(10);
    let request_timeout = Duration::from_secs(2);
    let options = NatsOptions { servers: vec![link.url()], patience, request_timeout, ..options };
    let cut = NatsEngine::connect(options).await.unwrap();
    create(&writer, 1).await;
    put(&writer, &["a"]).await;
    assert_eq!(keys(&cut).await, ["a"]);
    link.cut();
    put(&writer, &["b"]).await;
    let scanned = cut.scan(&carts(), ScanQuery::default()).await;
    assert!(matches!(scanned, Err(EngineError::Unreachable { .. })), "{scanned:?}");
    link.mend();
    assert_eq!(keys(&cut).await, ["a", "b"]);
}

#[tokio::test]
async fn every_kind_of_read_finds_what_was_written() {
    let urls = servers::cluster().urls();
    let three = NonZeroU8::new(3).unwrap();
    let options = NatsOptions { replicas: three, scans: Scans::Direct, ..servers::options(urls) };
    let engine = NatsEngine::connect(options).await.unwrap();
    create(&engine, 1).await;
    for round in 0..50 {
        let at = format!("k{}", round % 7);
        let written = put(&engine, &[&at]).await;
        for reads in [Reads::OwnWrites, Reads::AtLeast(written), Reads::Leader] {
            let read = engine.read_with(&carts(), &key(&at), reads).await.unwrap().unwrap();
            assert_eq!(read.revision, written, "{reads:?}");
        }
        let any = engine.read_with(&carts(), &key(&at), Reads::Any).await.unwrap();
        assert!(any.is_none_or(|any| any.revision <= written));
    }
    let far = Reads::AtLeast(Revision::new(1_000_000));
    let read = engine.read_with(&carts(), &key("k1"), far).await;
    assert!(matches!(read, Err(EngineError::FutureRevision { .. })), "{read:?}");
}

#[tokio::test]
async fn more_keys_than_are_held_at_once_are_counted_and_scanned() {
    const KEYS: usize = 100_500;
    let options = servers::options(vec![servers::server().url()]);
    let engine = NatsEngine::connect(NatsOptions { scans: Scans::Direct, ..options }).await.unwrap();
    create(&engine, 1).await;
    let all: Vec<String> = (0..KEYS).map(|n| format!("k{n:06}")).collect();
    for part in all.chunks(1000) {
        let batch: Batch = part.iter().map(|at| Operation::put(key(at), "1")).collect();
        engine.commit(&carts(), batch).await.unwrap();
    }
    assert_eq!(engine.count(&carts(), Selection::all()).await.unwrap(), KEYS as u64);
    for (direction, first) in [(Direction::Forward, &all[..]), (Direction::Backward, &all[KEYS - 1..])] {
        let query = ScanQuery { direction, limit: 1, ..ScanQuery::default() };
        let page = engine.scan(&carts(), query).await.unwrap();
        assert_eq!(page.entries[0].key.as_str(), first[0], "{direction:?}");
        assert!(page.next.is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_batches_than_a_server_takes_at_once_are_committed_all() {
    const BATCHES: usize = 300;
    const SIZE: usize = 20;
    for urls in [vec![servers::server().url()], servers::cluster().urls()] {
        let replicas = NonZeroU8::new(if urls.len() > 1 { 3 } else { 1 }).unwrap();
        let options = NatsOptions { replicas, ..servers::options(urls) };
        let engine = Arc::new(NatsEngine::connect(options).await.unwrap());
        create(&engine, 1).await;
        let commit = |batch: usize| {
            let engine = Arc::clone(&engine);
            let puts = (0..SIZE).map(|n| Operation::put(key(&format!("k{batch}.{n}")), vec![1; 1000]));
            let batch: Batch = puts.collect();
            tokio::spawn(async move { engine.commit(&carts(), batch).await })
        };
        let started: Vec<_> = (0..BATCHES).map(commit).collect();
        for commit in started {
            commit.await.unwrap().unwrap();
        }
        assert_eq!(engine.count(&carts(), Selection::all()).await.unwrap(), (BATCHES * SIZE) as u64);
    }
}

#[tokio::test]
async fn two_engines_share_buckets_and_go_on_from_each_others_revisions() {
    let options = servers::options(vec![servers::server().url()]);
    let one = NatsEngine::connect(options.clone()).await.unwrap();
    let other = NatsEngine::connect(options).await.unwrap();
    create(&one, 1).await;
    let first = put(&one, &["a"]).await;
    assert_eq!(other.read(&carts(), &key("a"), At::Latest).await.unwrap().unwrap().revision, first);
    let start = WatchStart::Revision(first.next());
    let mut watch = one.watch(&carts(), WatchQuery { start, ..WatchQuery::default() }).await.unwrap();
    put(&other, &["b"]).await;
    assert_eq!(take(&mut watch, 1).await, ["b"]);
    other.delete_bucket(&carts()).await.unwrap();
    let event = tokio::time::timeout(SOON, watch.next()).await.expect("it ends");
    assert!(matches!(event, Some(Err(EngineError::BucketNotFound { .. }))), "{event:?}");
    create(&one, 1).await;
    assert!(put(&other, &["c"]).await > first.next());
    assert_eq!(keys(&one).await, ["c"]);
}

#[tokio::test]
async fn a_replica_is_read_in_the_place_of_its_bucket() {
    let options = servers::options(vec![servers::server().url()]);
    let origin = NatsEngine::connect(options.clone()).await.unwrap();
    create(&origin, 1).await;
    put(&origin, &["a"]).await;
    let stream = format!("KV_{}carts-replica", options.namespace);
    origin.create_replica(&carts(), &stream).await.unwrap();
    let place = BucketPlace { stream, subjects: format!("$KV.{}carts", options.namespace) };
    let mut elsewhere = options.clone();
    elsewhere.places.insert(carts(), place);
    let replica = NatsEngine::connect(elsewhere).await.unwrap();
    while replica.read(&carts(), &key("a"), At::Latest).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let mut watch = replica.watch(&carts(), WatchQuery::default()).await.unwrap();
    for round in 0..20 {
        let at = format!("k{round}");
        let written = put(&replica, &[&at]).await;
        let read = replica.read(&carts(), &key(&at), At::Latest).await.unwrap().unwrap();
        assert_eq!(read.revision, written, "what was written through it is read from it");
        assert_eq!(take(&mut watch, 1).await, [at]);
    }
    replica.commit(&carts(), Batch::new().put(key("x"), "1").put(key("y"), "1")).await.unwrap();
    assert_eq!(replica.count(&carts(), Selection::all()).await.unwrap(), 23);
    assert_eq!(keys(&replica).await, keys(&origin).await);
    let names: Vec<String> =
        origin.buckets().await.unwrap().iter().map(|info| info.name.to_string()).collect();
    assert_eq!(names, ["carts"], "a replica is no bucket of its own");
}

#[tokio::test]
async fn a_server_that_lost_what_it_acknowledged_is_noticed() {
    let mut server = Server::start();
    let engine = NatsEngine::connect(options(server.url())).await.unwrap();
    create(&engine, 1).await;
    put(&engine, &["a"]).await;
    let saved = server.save();
    server.restart();
    put(&engine, &["b", "c"]).await;
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    assert_eq!(keys(&engine).await, ["a", "b", "c"]);
    server.set_back(&saved);
    server.restart();
    let event = tokio::time::timeout(SOON, watch.next()).await.expect("it ends");
    assert!(matches!(event, Some(Err(EngineError::Compacted { .. }))), "{event:?}");
    assert_eq!(keys(&engine).await, ["a"]);
    put(&engine, &["d"]).await;
    assert_eq!(keys(&engine).await, ["a", "d"]);
}

#[tokio::test]
async fn a_stream_that_was_purged_behind_our_back_is_noticed() {
    let options = servers::options(vec![servers::server().url()]);
    let stream = format!("KV_{}carts", options.namespace);
    let engine = NatsEngine::connect(options).await.unwrap();
    create(&engine, 1).await;
    put(&engine, &["a", "b", "c"]).await;
    assert_eq!(keys(&engine).await, ["a", "b", "c"]);
    let client = servers::client().await;
    let asked = format!("$JS.API.STREAM.PURGE.{stream}");
    client.request(asked, "{\"filter\":\">\",\"keep\":0}".into()).await.unwrap();
    let noticed = async {
        while !keys(&engine).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, noticed).await.expect("it is noticed");
    put(&engine, &["d"]).await;
    assert_eq!(keys(&engine).await, ["d"]);
}

fn options(url: String) -> NatsOptions {
    NatsOptions { request_timeout: Duration::from_secs(1), patience: SOON, ..NatsOptions::server(url) }
}

async fn create(engine: &NatsEngine, history: u8) {
    let history = NonZeroU8::new(history).unwrap();
    let config = BucketConfig { history, ..BucketConfig::plain(engine.capabilities()) };
    engine.create_bucket(&carts(), config).await.unwrap();
}

/// Puts every key in a commit of its own, and returns the last revision.
async fn put(engine: &NatsEngine, keys: &[&str]) -> Revision {
    let mut last = Revision::ZERO;
    for at in keys {
        last = engine.commit(&carts(), Batch::new().put(key(at), "1")).await.unwrap().last;
    }
    last
}

async fn keys(engine: &NatsEngine) -> Vec<String> {
    let page = engine.scan(&carts(), ScanQuery::default()).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// The keys of the next changes.
async fn take(watch: &mut WatchStream, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    while keys.len() < count {
        match tokio::time::timeout(SOON, watch.next()).await.expect("it comes soon") {
            Some(Ok(WatchEvent::Change(change))) => keys.push(change.entry.key.to_string()),
            other => panic!("expected a change, got {other:?}"),
        }
    }
    keys
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
