//! Stores that earlier versions wrote are opened for ever after.

use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, Compression, ConsumerName, ConsumerStart, Engine, EngineError,
    Expiry, Headers, Key, Op, Operation, Selection,
};
use pollster::block_on;

use crate::store::{Store, copy, files, small};

/// Where the stores are kept, one directory for each format of the log.
fn kept(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/store-{format}"))
}

fn name(text: &str) -> BucketName {
    BucketName::parse(text).expect("a name")
}

fn key(text: impl AsRef<str>) -> Key {
    Key::parse(text).expect("a key")
}

/// Some of everything that a store can hold, over many small segments.
async fn fill(engine: &EmbeddedEngine) -> Result<(), Box<dyn std::error::Error>> {
    let (carts, sessions, texts, gone) = (name("carts"), name("sessions"), name("texts"), name("gone"));
    let history = NonZeroU8::new(3).expect("three");
    engine.create_bucket(&carts, BucketConfig { history, ..BucketConfig::default() }).await?;
    let ttl = Some(Duration::from_secs(3600));
    engine.create_bucket(&sessions, BucketConfig { ttl, ..BucketConfig::default() }).await?;
    let compression = Compression::Lz4;
    engine.create_bucket(&texts, BucketConfig { compression, ..BucketConfig::default() }).await?;
    engine.create_bucket(&gone, BucketConfig::default()).await?;
    for round in 0..40 {
        let operations = (0..3).map(|part| {
            let mut headers = Headers::new();
            headers.set("round", &round.to_string()).expect("a header");
            let key = key(format!("user.{}", (round * 3 + part) % 20));
            Operation::put(key, format!("cart {round}.{part}")).with_headers(headers)
        });
        engine.commit(&carts, operations.collect()).await?;
        let text = format!("{round} ").repeat(400);
        engine.commit(&texts, Batch::new().put(key(format!("text.{}", round % 7)), text)).await?;
        engine.commit(&gone, Batch::new().put(key(format!("k.{round}")), "x")).await?;
    }
    let expiry = Expiry::After(Duration::from_secs(60));
    let short = Operation::put(key("short"), "a minute").expiring(expiry);
    engine.commit(&sessions, [short].into_iter().collect()).await?;
    engine.commit(&sessions, Batch::new().put(key("long"), "an hour")).await?;
    engine.commit(&carts, Batch::new().delete(key("user.1"))).await?;
    engine.commit(&carts, Batch::new().purge(key("user.2"))).await?;
    engine.compact_key(&carts, &key("user.3"), NonZeroU8::MIN).await?;
    engine.delete_bucket(&gone).await?;
    let config = BucketConfig { ttl: Some(Duration::from_secs(7200)), ..BucketConfig::default() };
    engine.update_bucket(&sessions, config).await?;
    Ok(())
}

/// What [`fill`] made, whatever has written it.
pub(crate) async fn check(engine: &EmbeddedEngine) -> Result<(), Box<dyn std::error::Error>> {
    let (carts, sessions, texts) = (name("carts"), name("sessions"), name("texts"));
    let names: Vec<_> = engine.buckets().await?.into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(names, ["carts", "sessions", "texts"]);
    assert_eq!(engine.count(&carts, Selection::all()).await?, 18);
    let entry = engine.read(&carts, &key("user.19"), At::Latest).await?.expect("a value");
    assert_eq!((entry.value, entry.headers.get("round")), ("cart 39.2".into(), Some("39")));
    let history = engine.history(&carts, &key("user.19")).await?;
    let values: Vec<_> = history.into_iter().map(|entry| entry.value).collect();
    assert_eq!(values, ["cart 26.1", "cart 33.0", "cart 39.2"]);
    let history = engine.history(&carts, &key("user.1")).await?;
    assert_eq!(history.last().map(|entry| entry.op), Some(Op::Delete));
    assert_eq!(history.len(), 3);
    assert_eq!(engine.history(&carts, &key("user.2")).await?.len(), 1);
    assert_eq!(engine.history(&carts, &key("user.3")).await?.len(), 1);
    let text = engine.read(&texts, &key("text.4"), At::Latest).await?.expect("a value");
    assert_eq!(text.value, "39 ".repeat(400));
    let ttl = engine.bucket(&sessions).await?.config.ttl;
    assert_eq!(ttl, Some(Duration::from_secs(7200)));
    assert!(engine.read(&sessions, &key("short"), At::Latest).await?.is_some());
    assert!(engine.read(&sessions, &key("long"), At::Latest).await?.is_some());
    Ok(())
}

/// Opens a copy of a kept store, with its index or without.
pub(crate) fn open_copy(format: u32, with_index: bool) -> Store {
    let store = Store::new();
    copy(&kept(format), &store.path());
    if !with_index {
        std::fs::remove_dir_all(store.path().join("index")).expect("the index goes");
    }
    store
}

/// What the second format has besides: a consumer, and segments that were cleaned.
fn fill_more(store: &Store, engine: &EmbeddedEngine) {
    let (carts, mails) = (name("carts"), ConsumerName::parse("mails").expect("a name"));
    block_on(engine.create_consumer(&carts, &mails, ConsumerStart::Now)).expect("a consumer");
    let is_cleaned = || store.segments().iter().any(|path| path.to_string_lossy().contains('-'));
    for number in 0_u32.. {
        if is_cleaned() {
            return;
        }
        assert!(number < 20_000, "nothing is cleaned");
        let batch = Batch::new().put(key("filler"), "f".repeat(200));
        block_on(engine.commit(&name("texts"), batch)).expect("a commit");
    }
}

fn check_more(engine: &EmbeddedEngine) {
    let mails = ConsumerName::parse("mails").expect("a name");
    let consumer = block_on(engine.consumer(&name("carts"), &mails)).expect("the consumer");
    assert!(consumer.next > block_on(engine.bucket(&name("carts"))).expect("the bucket").last_revision);
}

/// When the format changes, this writes the store to keep to the directory that `PLEACH_STORE_TO_KEEP` names.
#[test]
fn a_store_of_the_present_format_is_read() {
    let store = Store::with(Settings { feed_bytes: Some(0), ..small() });
    let engine = store.open();
    block_on(fill(&engine)).unwrap();
    fill_more(&store, &engine);
    block_on(engine.close()).unwrap();
    if let Some(target) = std::env::var_os("PLEACH_STORE_TO_KEEP") {
        copy(&store.path(), Path::new(&target));
    }
    let engine = store.open();
    block_on(check(&engine)).unwrap();
    check_more(&engine);
}

#[test]
fn a_store_of_every_format_so_far_is_read() {
    for format in 1..=2 {
        for with_index in [true, false] {
            let store = open_copy(format, with_index);
            let engine = store.open();
            block_on(check(&engine)).unwrap();
            if format > 1 {
                check_more(&engine);
            }
            block_on(engine.close()).unwrap();
            assert!(files(&store.path()).iter().all(|path| !path.to_string_lossy().contains("LOCK.")));
        }
    }
}

#[test]
fn a_store_of_every_format_so_far_can_be_written_to() {
    for format in 1..=2 {
        let store = open_copy(format, true);
        for round in 0..3 {
            let engine = store.open();
            for number in 0..30 {
                let batch = Batch::new().put(key(format!("new.{number}")), format!("{round}").repeat(300));
                block_on(engine.commit(&name("texts"), batch)).unwrap();
            }
            block_on(check(&engine)).unwrap();
            block_on(engine.close()).unwrap();
        }
    }
}

#[test]
fn a_store_of_a_later_format_is_refused_by_name() {
    let store = open_copy(1, true);
    let identity = store.path().join("STORE");
    let text = std::fs::read_to_string(&identity).unwrap();
    std::fs::write(&identity, text.replace("\"version\":1", "\"version\":9")).unwrap();
    let error = store.try_open().unwrap_err();
    assert!(matches!(error, EngineError::UnknownFormat { found: 9, .. }), "{error}");
}
