//! The log stays small, and loses nothing by it.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use pleach_embedded::{EmbeddedEngine, Settings, inspect};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, ConsumerName, ConsumerStart, Engine, EngineError, Key, Revision,
    ScanQuery, WatchQuery, WatchStart,
};
use pollster::block_on;

use crate::store::{Store, bucket, contents, copy, files, get, key, put};

const SEGMENT_BYTES: u64 = 16 * 1024;

/// Small segments, no feed to speak of, and a cleaner in a hurry.
fn settings() -> Settings {
    Settings {
        segment_bytes: SEGMENT_BYTES,
        memtable_bytes: 32 * 1024,
        feed_bytes: Some(0),
        clean_bytes_per_second: u64::MAX,
        ..Settings::default()
    }
}

fn log_bytes(store: &Store) -> u64 {
    // A file may be removed while they are counted.
    let lengths = files(&store.path().join("log")).into_iter().filter_map(|path| path.metadata().ok());
    lengths.map(|metadata| metadata.len()).sum()
}

/// Waits until the log has shrunk to `bytes`.
fn wait_for_log(store: &Store, bytes: u64) {
    wait(
        || log_bytes(store) <= bytes,
        || format!("the log still has {} bytes, not {bytes}", log_bytes(store)),
    );
}

#[allow(clippy::disallowed_methods, reason = "the engine's own threads run in real time")]
fn wait(mut done: impl FnMut() -> bool, what: impl Fn() -> String) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(600), "{}", what());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn config(history: u8) -> BucketConfig {
    BucketConfig { history: NonZeroU8::new(history).expect("not zero"), ..BucketConfig::default() }
}

/// Overwrites few keys often; returns what they should be.
fn overwrite(engine: &EmbeddedEngine, name: &BucketName, rounds: usize) -> BTreeMap<String, String> {
    let mut expected = BTreeMap::new();
    for round in 0..rounds {
        let at = format!("k.{}", round % 10);
        let value = format!("{round}-{}", "v".repeat(round * 37 % 1500));
        put(engine, name, &at, value.clone());
        expected.insert(at, value);
    }
    expected
}

fn check(engine: &EmbeddedEngine, name: &BucketName, expected: &BTreeMap<String, String>) {
    let found = contents(engine, name).expect("a scan");
    let found: BTreeMap<_, _> = found
        .into_iter()
        .map(|(key, entry)| (key, String::from_utf8(entry.value.to_vec()).expect("text")))
        .collect();
    assert_eq!(found, *expected);
}

/// Checks the same on the open store, after it was opened again, and after its index was built anew.
fn check_everywhere(store: &Store, engine: EmbeddedEngine, look: impl Fn(&EmbeddedEngine)) {
    look(&engine);
    block_on(engine.close()).expect("it closes");
    let report = inspect::verify(store.path(), &mut |_| {}).expect("a report");
    assert!(report.log.is_sound(), "{report:?}");
    let engine = store.open();
    look(&engine);
    block_on(engine.close()).expect("it closes");
    std::fs::remove_dir_all(store.path().join("index")).expect("the index goes");
    let engine = store.open();
    look(&engine);
}

#[test]
fn a_log_of_overwritten_values_stays_within_twice_of_what_is_live() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    let expected = overwrite(&engine, &name, 3000);
    let live: usize = expected.values().map(|value| value.len() + 100).sum();
    // Besides, the segment that is written to, those the index has yet to be flushed for, and one being made.
    wait_for_log(&store, 2 * live as u64 + 4 * SEGMENT_BYTES);
    check_everywhere(&store, engine, |engine| check(engine, &name, &expected));
}

#[test]
fn history_survives_cleaning() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(4))).unwrap();
    overwrite(&engine, &name, 3000);
    wait_for_log(&store, 10 * 4 * 1600 * 2 + 4 * SEGMENT_BYTES);
    check_everywhere(&store, engine, |engine| {
        for at in 0..10 {
            let history = block_on(engine.history(&name, &key(&format!("k.{at}")))).unwrap();
            let rounds: Vec<usize> = history
                .iter()
                .map(|entry| {
                    String::from_utf8_lossy(&entry.value).split_once('-').unwrap().0.parse().unwrap()
                })
                .collect();
            assert_eq!(rounds, [2960 + at, 2970 + at, 2980 + at, 2990 + at]);
        }
    });
}

#[test]
fn a_dropped_bucket_gives_its_space_back() {
    let store = Store::with(settings());
    let engine = store.open();
    let (name, other) = (bucket("b"), bucket("other"));
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    block_on(engine.create_bucket(&other, config(1))).unwrap();
    put(&engine, &other, "stays", "here");
    for number in 0..600 {
        put(&engine, &name, &format!("k.{number}"), "x".repeat(1000));
    }
    assert!(log_bytes(&store) > 600_000);
    block_on(engine.delete_bucket(&name)).unwrap();
    // The index keeps the last segments until it is flushed.
    overwrite(&engine, &other, 200);
    wait_for_log(&store, 8 * SEGMENT_BYTES);
    check_everywhere(&store, engine, |engine| {
        assert_eq!(get(engine, &other, "stays").as_deref(), Some("here"));
        let gone = block_on(engine.bucket(&name));
        assert!(matches!(gone, Err(EngineError::BucketNotFound { .. })), "{gone:?}");
    });
}

#[test]
fn a_deleted_key_never_comes_back() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    let marker_ttl = Some(Duration::from_secs(60));
    block_on(engine.create_bucket(&name, BucketConfig { marker_ttl, ..config(1) })).unwrap();
    for number in 0..200 {
        put(&engine, &name, &format!("gone.{number}"), "x".repeat(300));
    }
    for number in 0..200 {
        block_on(engine.commit(&name, Batch::new().delete(key(&format!("gone.{number}"))))).unwrap();
    }
    let mut expected = overwrite(&engine, &name, 1000);
    store.clock.advance(Duration::from_secs(120));
    expected.extend(overwrite(&engine, &name, 1000));
    let forgotten = || {
        let history = |number: usize| block_on(engine.history(&name, &key(&format!("gone.{number}"))));
        (0..200).all(|number| history(number).unwrap().is_empty())
    };
    wait(forgotten, || "the markers are still there".into());
    let past = block_on(engine.read(&name, &key("gone.7"), At::Revision(Revision::new(50))));
    assert!(matches!(past, Err(EngineError::Compacted { .. })), "{past:?}");
    check_everywhere(&store, engine, |engine| check(engine, &name, &expected));
}

#[test]
fn a_watch_from_what_was_cleaned_away_says_compacted() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    overwrite(&engine, &name, 2000);
    let floor = || block_on(engine.bucket(&name)).unwrap().feed_floor;
    wait(|| floor() > Revision::new(1000), || format!("the floor is {}", floor()));
    let start = WatchStart::Revision(Revision::new(2));
    let watch = block_on(engine.watch(&name, WatchQuery { start, ..WatchQuery::default() }));
    let oldest = match watch {
        Err(EngineError::Compacted { oldest }) => oldest,
        other => panic!("{:?}", other.map(drop)),
    };
    assert!(oldest > Revision::new(1000));
    // The cleaner may still be at work, and take what was the floor a moment ago.
    let first = || {
        let start = WatchStart::Revision(floor());
        let mut watch = block_on(engine.watch(&name, WatchQuery { start, ..WatchQuery::default() }))?;
        block_on(watch.next()).expect("a watch has no end")
    };
    wait(
        || match first() {
            Ok(_) => true,
            Err(EngineError::Compacted { oldest }) if oldest <= floor() => false,
            Err(error) => panic!("{error}"),
        },
        || format!("the floor is {}", floor()),
    );
    let before = floor();
    check_everywhere(&store, engine, |engine| {
        assert!(block_on(engine.bucket(&name)).unwrap().feed_floor >= before, "the floor never goes back");
    });
}

#[test]
fn the_feed_is_kept_as_long_as_the_bucket_says() {
    let store = Store::with(settings());
    let engine = store.open();
    let (kept, other) = (bucket("kept"), bucket("other"));
    let feed_bytes = Some(u64::MAX);
    block_on(engine.create_bucket(&kept, BucketConfig { feed_bytes, ..config(1) })).unwrap();
    block_on(engine.create_bucket(&other, config(1))).unwrap();
    for round in 0..300 {
        put(&engine, &kept, "k", format!("{round}"));
        overwrite(&engine, &other, 10);
    }
    wait(
        || block_on(engine.bucket(&other)).unwrap().feed_floor > Revision::new(1000),
        || "no cleaning".into(),
    );
    check_everywhere(&store, engine, |engine| {
        let start = WatchStart::Revision(Revision::new(1));
        let mut watch = block_on(engine.watch(&kept, WatchQuery { start, ..WatchQuery::default() })).unwrap();
        for round in 0..300 {
            let event = block_on(watch.next()).unwrap().unwrap();
            assert!(matches!(event, pleach_engine::WatchEvent::Change(change)
                if change.entry.value == format!("{round}")));
        }
        assert_eq!(block_on(engine.history(&kept, &key("k"))).unwrap().len(), 1);
    });
}

#[test]
fn a_consumer_keeps_the_feed_within_a_bound() {
    let store = Store::with(Settings { consumer_bytes: 256 * 1024, ..settings() });
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    let consumer = ConsumerName::parse("slow").unwrap();
    let info = block_on(engine.create_consumer(&name, &consumer, ConsumerStart::Now)).unwrap();
    overwrite(&engine, &name, 200);
    // Within the bound nothing that it has yet to see is gone.
    let held = block_on(engine.bucket(&name)).unwrap().feed_floor;
    assert!(held <= info.next, "{held} {}", info.next);
    overwrite(&engine, &name, 3000);
    let floor = || block_on(engine.bucket(&name)).unwrap().feed_floor;
    wait(|| floor() > info.next, || "the consumer fills the disk".into());
    let moved = block_on(engine.consumer(&name, &consumer)).unwrap();
    assert_eq!(moved, info, "it stays where it is, and its watch tells");
    check_everywhere(&store, engine, |engine| {
        assert_eq!(block_on(engine.consumer(&name, &consumer)).unwrap(), info);
    });
}

#[test]
fn an_open_scan_reads_its_snapshot_while_the_log_is_cleaned() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    let value = |number: usize| format!("{number}-{}", "o".repeat(900));
    for number in 0..100 {
        put(&engine, &name, &format!("s.{number:03}"), value(number));
    }
    let mut query = ScanQuery { limit: 7, ..ScanQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = block_on(engine.scan(&name, query.clone())).unwrap();
        seen.extend(page.entries.iter().map(|entry| String::from_utf8(entry.value.to_vec()).unwrap()));
        let Some(next) = page.next else { break };
        query.page = Some(next);
        for number in 0..100 {
            put(&engine, &name, &format!("s.{number:03}"), "n".repeat(900));
        }
    }
    assert_eq!(seen, (0..100).map(value).collect::<Vec<_>>());
    check_everywhere(&store, engine, |engine| {
        assert_eq!(get(engine, &name, "s.042"), Some("n".repeat(900)));
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the engine's own threads run in real time")]
fn readers_and_writers_go_on_while_the_log_is_cleaned() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(2))).unwrap();
    for number in 0..50 {
        put(&engine, &name, &format!("r.{number}"), "0".repeat(700));
    }
    let started = Instant::now();
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (engine, name) = (&engine, &name);
            scope.spawn(move || {
                let mut last = vec![0_usize; 50];
                let mut at = reader;
                while started.elapsed() < Duration::from_secs(3) {
                    at = (at + 7) % 50;
                    let entry =
                        block_on(engine.read(name, &Key::parse(format!("r.{at}")).unwrap(), At::Latest));
                    let value = String::from_utf8(entry.unwrap().expect("a value").value.to_vec()).unwrap();
                    let round: usize = value.trim_start_matches('0').len();
                    assert!(round >= last[at], "it goes back");
                    last[at] = round;
                    let history = block_on(engine.history(name, &Key::parse(format!("r.{at}")).unwrap()));
                    assert!((1..=2).contains(&history.unwrap().len()));
                }
            });
        }
        let mut round = 0;
        while started.elapsed() < Duration::from_secs(3) {
            round = (round + 1).min(600);
            for number in 0..50 {
                put(
                    &engine,
                    &name,
                    &format!("r.{number}"),
                    format!("{}{}", "0".repeat(700), "1".repeat(round)),
                );
            }
        }
    });
    wait_for_log(&store, 50 * 2 * 1400 * 2 + 6 * SEGMENT_BYTES);
}

#[test]
fn an_index_from_before_a_cleaning_is_not_believed() {
    let store = Store::with(settings());
    let name = bucket("b");
    let engine = store.open();
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    for number in 0..100 {
        put(&engine, &name, &format!("gone.{number}"), "x".repeat(900));
    }
    // Enough for the index to be flushed, so that there is something to believe.
    overwrite(&engine, &name, 1000);
    block_on(engine.close()).unwrap();
    let (index, old) = (store.path().join("index"), store.directory.path().join("old"));
    copy(&index, &old);
    let engine = store.open();
    for number in 0..100 {
        block_on(engine.commit(&name, Batch::new().purge(key(&format!("gone.{number}"))))).unwrap();
    }
    let expected = overwrite(&engine, &name, 2000);
    wait_for_log(&store, 100_000);
    block_on(engine.close()).unwrap();
    std::fs::remove_dir_all(&index).unwrap();
    copy(&old, &index);
    let engine = store.open();
    check(&engine, &name, &expected);
    assert!(store.path().join("index.set-aside-1").is_dir(), "the old index is kept for a look");
}

#[test]
fn a_small_value_that_was_moved_is_found_when_it_becomes_history() {
    let store = Store::with(settings());
    let engine = store.open();
    let name = bucket("b");
    block_on(engine.create_bucket(&name, config(1))).unwrap();
    put(&engine, &name, "small", "first");
    overwrite(&engine, &name, 2000);
    let is_cleaned = || !store.segments()[0].to_string_lossy().ends_with("001.log");
    wait(is_cleaned, || "the first segment was not cleaned".into());
    block_on(engine.update_bucket(&name, config(3))).unwrap();
    put(&engine, &name, "small", "second");
    check_everywhere(&store, engine, |engine| {
        let history = block_on(engine.history(&name, &key("small"))).unwrap();
        let values: Vec<_> = history.into_iter().map(|entry| entry.value).collect();
        assert_eq!(values, ["first", "second"]);
    });
}
