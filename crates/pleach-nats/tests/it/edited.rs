//! Streams of buckets that others edit, copy or make anew by the API of the server.

use std::time::Duration;

use async_nats::jetstream::{self, kv, stream};
use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, Engine, EngineError, ErrorKind, Expectation, Key, Operation,
    Revision, ScanQuery, WatchEvent, WatchQuery, WatchStream,
};
use pleach_nats::{Authentication, BucketPlace, NatsEngine, NatsOptions};
use pleach_nats_testing::{Server, Settings};
use serde_json::{Value, json};

use crate::servers::{self, SOON};

/// How long an engine may take what it knows of a bucket for true.
const KNOWN_FOR: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_bucket_goes_on_whatever_is_edited_of_its_stream() {
    let (engine, options) = engine().await;
    let stream = format!("KV_{}carts", options.namespace);
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    let native = servers::context().await.get_key_value(format!("{}carts", options.namespace)).await.unwrap();
    let edits: [(&str, Value); 5] = [
        ("max_msgs_per_subject", json!(3)),
        ("metadata", json!({})),
        ("republish", Value::Null),
        ("allow_direct", json!(false)),
        ("duplicate_window", json!(1_000_000_000)),
    ];
    for (round, (field, value)) in edits.into_iter().enumerate() {
        edit(&stream, field, value).await;
        // At once, and when the engine knows of it.
        for when in ["at-once", "later"] {
            let at = format!("{round}.{when}");
            let ours = put(&engine, &at).await;
            let theirs = native.update(&at, "theirs".into(), ours.get()).await.unwrap();
            let read = engine.read(&carts(), &key(&at), At::Latest).await.unwrap().unwrap();
            assert_eq!(
                (read.revision.get(), read.value.as_ref()),
                (theirs, &b"theirs"[..]),
                "{field} {when}"
            );
            let late = Operation::put(key(&at), "late").expecting(Expectation::Revision(ours));
            let lost = engine.commit(&carts(), Batch::from(late)).await.unwrap_err();
            assert_eq!(lost.kind(), ErrorKind::Conflict, "{field} {when}");
            assert_eq!(next(&mut watch).await, (at.clone(), ours), "{field} {when}");
            assert_eq!(next(&mut watch).await, (at.clone(), Revision::new(theirs)), "{field} {when}");
            assert_eq!(listed(&engine).await.last(), Some(&at), "{field} {when}");
            if when == "at-once" {
                tokio::time::sleep(KNOWN_FOR).await;
            }
        }
    }
}

#[tokio::test]
async fn a_bucket_repeats_its_changes_once_it_is_followed() {
    let (engine, options) = engine().await;
    let stream = format!("KV_{}carts", options.namespace);
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let repeats = async || !configuration(&stream).await["republish"].is_null();
    put(&engine, "before").await;
    assert!(!repeats().await, "nobody follows it");
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    assert!(repeats().await);
    let written = put(&engine, "a").await;
    assert_eq!(next(&mut watch).await, ("a".to_owned(), written));
    let config = BucketConfig {
        history: std::num::NonZeroU8::new(2).unwrap(),
        ..BucketConfig::plain(engine.capabilities())
    };
    engine.update_bucket(&carts(), config).await.unwrap();
    assert!(repeats().await, "it goes on so");
}

#[tokio::test]
async fn whoever_may_not_change_a_bucket_follows_it_all_the_same() {
    let more = "authorization { users: [{ user: all, password: a }, \
                { user: reader, password: r, permissions: { publish: { deny: \"$JS.API.STREAM.UPDATE.>\" } } }] }";
    let server = Server::start_with(Settings { more, ..Settings::default() });
    let connect = async |user: &str, password: &str| {
        let authentication = Authentication::User { user: user.into(), password: password.into() };
        // With this patience an engine that tries again would not be done soon.
        let patience = 10 * SOON;
        NatsEngine::connect(NatsOptions { authentication, patience, ..NatsOptions::server(server.url()) })
            .await
            .unwrap()
    };
    let (writer, reader) = (connect("all", "a").await, connect("reader", "r").await);
    writer.create_bucket(&carts(), BucketConfig::plain(writer.capabilities())).await.unwrap();
    let watch = async { reader.watch(&carts(), WatchQuery::default()).await.unwrap() };
    let mut watch = tokio::time::timeout(SOON, watch).await.expect("it is said at once");
    let written = put(&writer, "a").await;
    assert_eq!(next(&mut watch).await, ("a".to_owned(), written));
    assert_eq!(listed(&reader).await, ["a"]);
}

#[tokio::test]
async fn a_part_of_a_batch_whose_rest_was_not_copied_is_seen() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Msg-Id", "pleach.0123.1000000.0/5");
    let subject = format!("$KV.{}carts.part", options.namespace);
    let context = servers::context().await;
    let stored = context.publish_with_headers(subject, headers, "1".into()).await.unwrap();
    let revision = Revision::new(stored.await.unwrap().sequence);
    assert_eq!(next(&mut watch).await, ("part".to_owned(), revision));
    assert_eq!(listed(&engine).await, ["part"]);
}

#[tokio::test]
async fn batches_are_refused_where_someone_has_turned_them_off() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    edit(&format!("KV_{}carts", options.namespace), "allow_atomic", json!(false)).await;
    for wait in [Duration::ZERO, KNOWN_FOR] {
        tokio::time::sleep(wait).await;
        let batch = Batch::new().put(key("x"), "1").put(key("y"), "1");
        let refused = engine.commit(&carts(), batch).await.unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Unsupported | ErrorKind::Invalid | ErrorKind::Unavailable),
            "{refused:?}"
        );
        assert_eq!(listed(&engine).await, Vec::<String>::new(), "nothing of it is written");
    }
}

#[tokio::test]
async fn a_bucket_that_was_made_anew_is_another() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    put(&engine, "old").await;
    assert_eq!(listed(&engine).await, ["old"]);
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    let (context, name) = (servers::context().await, format!("{}carts", options.namespace));
    context.delete_key_value(&name).await.unwrap();
    let native =
        context.create_key_value(kv::Config { bucket: name, ..kv::Config::default() }).await.unwrap();
    native.put("new", "1".into()).await.unwrap();
    let end = loop {
        match tokio::time::timeout(SOON, watch.next()).await.expect("it ends soon") {
            Some(Ok(_)) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Some(Err(EngineError::BucketNotFound { .. }))), "{end:?}");
    assert_eq!(listed(&engine).await, ["new"]);
    assert_eq!(engine.read(&carts(), &key("old"), At::Latest).await.unwrap(), None);
    put(&engine, "ours").await;
    assert_eq!(native.get("ours").await.unwrap().unwrap(), "ours");
}

#[tokio::test]
async fn a_mirror_that_answers_for_its_bucket_hides_nothing_we_wrote() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let context = servers::context().await;
    // Every client makes its mirrors so that they answer reads of the bucket too.
    mirror(&context, &options).await;
    for round in 0..500 {
        let at = format!("k{round}");
        for _ in 0..2 {
            let written = put(&engine, &at).await;
            let read = engine.read(&carts(), &key(&at), At::Latest).await.unwrap();
            assert_eq!(read.map(|entry| entry.revision), Some(written), "round {round}");
        }
    }
}

#[tokio::test]
async fn a_mirror_of_another_client_is_read_in_the_place_of_its_bucket() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let context = servers::context().await;
    mirror(&context, &options).await;
    let native = context.get_key_value(format!("{}carts", options.namespace)).await.unwrap();
    let mut elsewhere = options.clone();
    let subjects = format!("$KV.{}carts", options.namespace);
    let stream = format!("KV_{}carts-mirror", options.namespace);
    elsewhere.places.insert(carts(), BucketPlace { stream, subjects });
    let replica = NatsEngine::connect(elsewhere).await.unwrap();
    let mut watch = replica.watch(&carts(), WatchQuery::default()).await.unwrap();
    for round in 0..5 {
        let (ours, theirs) = (format!("k{round}.ours"), format!("k{round}.theirs"));
        let written = put(&replica, &ours).await;
        let read = replica.read(&carts(), &key(&ours), At::Latest).await.unwrap().unwrap();
        assert_eq!(read.revision, written);
        let revision = native.put(theirs.as_str(), "theirs".into()).await.unwrap();
        assert_eq!(next(&mut watch).await, (ours, written));
        assert_eq!(next(&mut watch).await, (theirs, Revision::new(revision)));
    }
    assert_eq!(listed(&replica).await, listed(&engine).await);
}

#[tokio::test]
async fn another_client_reads_a_replica_of_ours() {
    let (engine, options) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    let name = format!("{}carts-replica", options.namespace);
    engine.create_replica(&carts(), &format!("KV_{name}")).await.unwrap();
    // The key-value client of async-nats does not read mirrors, but whoever knows the subject can.
    let stream = servers::context().await.get_stream(format!("KV_{name}")).await.unwrap();
    let read = async |revision: u64| loop {
        let found = stream.direct_get_last_for_subject(format!("$KV.{}carts.a", options.namespace)).await;
        match found {
            Ok(found) if found.sequence == revision => break found,
            _ => tokio::task::yield_now().await,
        }
    };
    for value in ["1", "2"] {
        let put = engine.commit(&carts(), Batch::new().put(key("a"), value)).await.unwrap();
        let found = tokio::time::timeout(SOON, read(put.last.get())).await.expect("the replica gets it");
        assert_eq!(found.payload.as_ref(), value.as_bytes());
    }
}

/// The bucket's mirror, as another client makes it.
async fn mirror(context: &jetstream::Context, options: &NatsOptions) {
    let origin = stream::Source { name: format!("{}carts", options.namespace), ..stream::Source::default() };
    let bucket = format!("{}carts-mirror", options.namespace);
    let config = kv::Config { bucket, mirror: Some(origin), ..kv::Config::default() };
    context.create_key_value(config).await.unwrap();
}

/// Changes one setting of a stream, as the tools of NATS do: by replacing all of them.
pub(crate) async fn edit(stream: &str, field: &str, value: Value) {
    let mut config = configuration(stream).await;
    config[field] = value;
    servers::ask(&format!("STREAM.UPDATE.{stream}"), &config).await;
}

/// The settings of a stream.
async fn configuration(stream: &str) -> Value {
    servers::ask(&format!("STREAM.INFO.{stream}"), &json!({})).await["config"].take()
}

async fn engine() -> (NatsEngine, NatsOptions) {
    let options = servers::options(vec![servers::server().url()]);
    (NatsEngine::connect(options.clone()).await.unwrap(), options)
}

/// Puts the key itself as its value.
async fn put(engine: &NatsEngine, at: &str) -> Revision {
    engine.commit(&carts(), Batch::new().put(key(at), at.to_owned())).await.unwrap().last
}

async fn listed(engine: &NatsEngine) -> Vec<String> {
    let page = engine.scan(&carts(), ScanQuery::default()).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// The next change of a watch.
async fn next(watch: &mut WatchStream) -> (String, Revision) {
    loop {
        match tokio::time::timeout(SOON, watch.next()).await.expect("it comes soon") {
            Some(Ok(WatchEvent::Change(change))) => {
                return (change.entry.key.to_string(), change.entry.revision);
            }
            Some(Ok(WatchEvent::InitialDone { .. })) => {}
            other => panic!("expected a change, got {other:?}"),
        }
    }
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
