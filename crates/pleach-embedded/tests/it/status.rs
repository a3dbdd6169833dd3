//! How a store is doing, in figures.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pleach_embedded::{EmbeddedEngine, STATUS_FILE_NAME, Settings, Status, last_status};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, ConsumerName, ConsumerStart, Durability, Engine, Key, ScanQuery,
    SystemClock,
};
use pollster::block_on;

fn open(path: &Path) -> EmbeddedEngine {
    let settings = Settings { segment_bytes: 64 * 1024, memtable_bytes: 64 * 1024, ..Settings::default() };
    EmbeddedEngine::open_with(path, settings, Arc::new(SystemClock::new())).expect("the store opens")
}

fn name(text: &str) -> BucketName {
    BucketName::parse(text).expect("a name")
}

fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}

fn put(engine: &EmbeddedEngine, bucket: &str, text: &str, value: impl Into<Vec<u8>>) {
    block_on(engine.commit(&name(bucket), Batch::new().put(key(text), value.into()))).expect("a commit");
}

/// Waits for a status that is as wanted: it is taken and written about once a second.
fn wait_for(what: &str, mut look: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "real time passes")]
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < Duration::from_secs(600), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn operations_are_counted_and_timed() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(directory.path());
    let config = BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() };
    block_on(engine.create_bucket(&name("b"), BucketConfig::default())).expect("a bucket");
    block_on(engine.create_bucket(&name("quick"), config)).expect("a bucket");
    for number in 0..10 {
        put(&engine, "b", &format!("k.{number}"), "v");
    }
    for _ in 0..100 {
        block_on(engine.read(&name("b"), &key("k.1"), At::Latest)).expect("a read");
    }
    block_on(engine.scan(&name("b"), ScanQuery::default())).expect("a scan");
    let status = engine.status();
    assert_eq!((status.gets.count, status.puts.count, status.scans.count), (100, 10, 1));
    assert_eq!((status.records, status.revision.get()), (10, 12));
    assert!(status.gets.all.timed >= 64 && status.gets.all.p50 > Duration::ZERO, "{:?}", status.gets);
    assert!(status.puts.all.p50 <= status.puts.all.p99 && status.puts.all.p99 <= status.puts.all.max);
    assert_eq!(status.puts.all, status.puts.minute);
    assert!(status.commits.syncs.count >= 10 && status.commits.groups >= 10, "{:?}", status.commits);
    assert_eq!((status.commits.waiting, status.commits.waiting_bytes), (0, 0));
    assert!(status.log.written_bytes > 0 && status.amplification.write >= Some(1.0));
    assert_eq!(status.hot.get_keys.iter().map(|spot| spot.key.as_str()).collect::<Vec<_>>(), ["k.1"]);
    let buckets: Vec<_> = status.buckets.iter().map(|one| (one.name.as_str(), one.buffered)).collect();
    assert_eq!(buckets, [("b", false), ("quick", true)]);
    assert!(status.buckets[0].records == 11 && status.buckets[0].bytes > 300, "{:?}", status.buckets);
    assert_eq!((status.closed, &status.read_only), (false, &None));
    assert!(status.disk.is_none_or(|disk| disk.free_bytes <= disk.bytes));
    block_on(engine.close()).expect("closed");
}

#[test]
fn what_a_bucket_takes_is_known_once_the_log_was_looked_at() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings =
        Settings { segment_bytes: 16 * 1024, feed_bytes: Some(0), clean: true, ..Settings::default() };
    let engine =
        EmbeddedEngine::open_with(directory.path(), settings, Arc::new(SystemClock::new())).expect("opened");
    for bucket in ["kept", "overwritten"] {
        block_on(engine.create_bucket(&name(bucket), BucketConfig::default())).expect("a bucket");
    }
    for number in 0..300 {
        put(&engine, "kept", &format!("k.{number}"), vec![1; 200]);
        put(&engine, "overwritten", "k", vec![1; 200]);
    }
    block_on(engine.create_consumer(
        &name("kept"),
        &ConsumerName::parse("c").expect("a name"),
        ConsumerStart::Oldest,
    ))
    .expect("a consumer");
    block_on(engine.clean()).expect("cleaned");
    let status = engine.status();
    let find = |name: &str| status.buckets.iter().find(|bucket| bucket.name == name).expect("the bucket");
    let (kept, overwritten) = (find("kept"), find("overwritten"));
    assert!(kept.bytes > 50_000 && kept.live_bytes * 10 >= kept.bytes * 9, "{kept:?}");
    assert!(overwritten.bytes < kept.bytes / 2, "{overwritten:?}");
    assert_eq!((kept.consumers, overwritten.consumers), (1, 0));
    let lag = &status.consumers[0];
    assert_eq!((lag.name.as_str(), lag.bucket.as_str(), lag.lost), ("c", "kept", false));
    assert!(lag.revisions > 500 && lag.bytes > 0, "{lag:?}");
    assert!(status.log.cleaned_bytes > 0 && status.amplification.space >= Some(1.0), "{status:?}");
    block_on(engine.close()).expect("closed");
}

#[test]
fn an_open_store_tells_others_how_it_is_doing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let engine = open(path);
    block_on(engine.create_bucket(&name("b"), BucketConfig::default())).expect("a bucket");
    put(&engine, "b", "k", "v");
    wait_for("it is written", || last_status(path).is_some_and(|status| status.records == 1));
    put(&engine, "b", "k", "w");
    wait_for("a change is written", || last_status(path).is_some_and(|status| status.records == 2));
    let status = last_status(path).expect("a status");
    assert_eq!((status.process.id, status.closed), (std::process::id(), false));
    wait_for("rates are sampled", || engine.status().rates.puts.iter().sum::<u64>() > 0);
    block_on(engine.close()).expect("closed");
    let last = last_status(path).expect("a status");
    assert!(last.closed && last.process.uptime >= Duration::from_secs(1), "{last:?}");

    // Whoever is gone in a moment leaves what was there.
    let engine = open(path);
    put(&engine, "b", "k", "x");
    block_on(engine.close()).expect("closed");
    assert_eq!(last_status(path), Some(last));
    assert!(!path.join("status.json.tmp").exists());
}

#[test]
fn a_status_survives_its_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(directory.path());
    block_on(engine.create_bucket(&name("b"), BucketConfig::default())).expect("a bucket");
    (0..100).for_each(|_| put(&engine, "b", "a.k", "v"));
    let status = engine.status();
    let text = serde_json::to_string(&status).expect("JSON");
    let read: Status = serde_json::from_str(&text).expect("a status");
    assert_eq!(read, status);
    let older: Status = serde_json::from_str(r#"{"records":7,"what_is_this":1}"#).expect("a status");
    assert_eq!(older.records, 7);
    block_on(engine.close()).expect("closed");
}

#[test]
fn damage_to_the_status_is_as_if_there_were_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    assert_eq!(last_status(path), None);
    let engine = open(path);
    block_on(engine.create_bucket(&name("b"), BucketConfig::default())).expect("a bucket");
    wait_for("it is written", || last_status(path).is_some());
    block_on(engine.close()).expect("closed");
    let file = path.join(STATUS_FILE_NAME);
    let whole = std::fs::read(&file).expect("the file");
    for bytes in [&whole[..whole.len() / 2], b"", b"{}", b"[1]", b"\xff\xfe", br#"{"v":2,"status":{}}"#] {
        std::fs::write(&file, bytes).expect("a file");
        assert_eq!(last_status(path), None);
        // The store does not care either.
        block_on(open(path).close()).expect("closed");
    }
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a directory in its place");
    let engine = open(path);
    wait_for("it cannot be written", || engine.status().unwritten_reports > 0);
    put(&engine, "b", "k", "v");
    block_on(engine.close()).expect("closed");
}
