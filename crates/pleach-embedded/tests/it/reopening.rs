use std::num::NonZeroU8;
use std::time::Duration;

use pleach_embedded::Settings;
use pleach_engine::{
    At, Batch, BucketConfig, Change, Durability, Engine, ErrorKind, Expiry, Headers, Op, Operation, Revision,
    ScanQuery, WatchEvent, WatchQuery, WatchStart,
};
use pollster::block_on;

use crate::store::{Store, bucket, contents, create, get, key, put};

#[test]
fn everything_is_there_again() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 3);
    let mut headers = Headers::new();
    headers.set("Trace-Id", "abc").expect("a header");
    let large = "L".repeat(5_000);
    for round in 0..200 {
        put(&engine, &name, &format!("k.{}", round % 20), format!("{round}"));
    }
    put(&engine, &name, "large", large.clone());
    let operation = Operation::put(key("with.headers"), "v").with_headers(headers);
    block_on(engine.commit(&name, operation.into())).expect("a commit");
    block_on(engine.commit(&name, Batch::new().delete(key("k.1")))).expect("a commit");
    let before = contents(&engine, &name).expect("a scan");
    let history = block_on(engine.history(&name, &key("k.1"))).expect("a history");
    let info = block_on(engine.bucket(&name)).expect("the bucket");
    block_on(engine.close()).expect("it closes");

    let engine = store.open();
    assert_eq!(contents(&engine, &name).expect("a scan"), before);
    assert_eq!(block_on(engine.history(&name, &key("k.1"))).expect("a history"), history);
    assert_eq!(history.iter().map(|entry| entry.op).collect::<Vec<_>>(), [Op::Put, Op::Put, Op::Delete]);
    assert_eq!(get(&engine, &name, "large"), Some(large));
    assert_eq!(block_on(engine.bucket(&name)).expect("the bucket"), info);
}

#[test]
fn a_store_that_was_dropped_was_closed() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    put(&engine, &name, "a", "1");
    drop(engine);
    let segments = store.segments();
    assert_eq!(get(&store.open(), &name, "a"), Some("1".into()));
    assert_eq!(store.segments(), segments, "a clean store goes on in the same segment");
}

#[test]
fn revisions_go_on_where_they_were() {
    let store = Store::new();
    let mut last = 0;
    for round in 0..5 {
        let engine = store.open();
        let name = create(&engine, 1);
        let revision = put(&engine, &name, "a", format!("{round}"));
        assert!(revision > last);
        last = revision;
    }
}

#[test]
fn a_deleted_bucket_stays_deleted_and_its_namesake_empty() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    put(&engine, &name, "a", "1");
    block_on(engine.delete_bucket(&name)).expect("it is deleted");
    drop(engine);
    let engine = store.open();
    let missing = block_on(engine.bucket(&name)).expect_err("it is gone");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    create(&engine, 1);
    drop(engine);
    assert_eq!(get(&store.open(), &name, "a"), None);
}

#[test]
fn a_changed_configuration_stays_changed() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 5);
    for value in ["1", "2", "3", "4"] {
        put(&engine, &name, "a", value);
    }
    let shorter = BucketConfig { history: NonZeroU8::MIN.saturating_add(1), ..BucketConfig::default() };
    block_on(engine.update_bucket(&name, shorter.clone())).expect("it is updated");
    drop(engine);
    let engine = store.open();
    assert_eq!(block_on(engine.bucket(&name)).expect("the bucket").config, shorter);
    assert_eq!(block_on(engine.history(&name, &key("a"))).expect("a history").len(), 2);
}

#[test]
fn a_lost_index_is_built_again_from_the_log() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 3);
    for round in 0..500 {
        put(&engine, &name, &format!("k.{}", round % 50), format!("{round}").repeat(40));
    }
    block_on(engine.compact_key(&name, &key("k.1"), NonZeroU8::MIN)).expect("it is compacted");
    let before = contents(&engine, &name).expect("a scan");
    drop(engine);
    std::fs::remove_dir_all(store.path().join("index")).expect("the index is removed");
    let engine = store.open();
    assert_eq!(contents(&engine, &name).expect("a scan"), before);
    assert_eq!(block_on(engine.history(&name, &key("k.2"))).expect("a history").len(), 3);
    assert_eq!(block_on(engine.history(&name, &key("k.1"))).expect("a history").len(), 1);
}

#[test]
fn an_index_that_does_not_open_is_set_aside_and_built_again() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for round in 0..500 {
        put(&engine, &name, &format!("k.{round}"), format!("{round}").repeat(40));
    }
    let before = contents(&engine, &name).expect("a scan");
    drop(engine);
    std::fs::write(store.path().join("index").join("MANIFEST"), b"nonsense").expect("the index is damaged");
    let engine = store.open();
    assert_eq!(contents(&engine, &name).expect("a scan"), before);
    assert!(store.path().join("index.set-aside-1").exists(), "nothing is deleted on suspicion");
}

#[test]
fn an_expired_value_stays_expired_when_the_clock_is_set_back() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    let operation = Operation::put(key("a"), "1").expiring(Expiry::After(Duration::from_secs(10)));
    block_on(engine.commit(&name, operation.into())).expect("a commit");
    put(&engine, &name, "b", "2");
    let start = pleach_engine::Clock::now(&*store.clock);
    store.clock.advance(Duration::from_secs(10));
    assert_eq!(get(&engine, &name, "a"), None);
    put(&engine, &name, "c", "3");
    store.clock.jump_to(start);
    assert_eq!(get(&engine, &name, "a"), None, "while the store is open");
    drop(engine);
    let engine = store.open();
    assert_eq!(get(&engine, &name, "a"), None, "and when it is opened again");
    assert_eq!(contents(&engine, &name).expect("a scan").len(), 2);
}

#[test]
fn a_watch_resumes_across_a_restart_without_gap_or_repeat() {
    let store = Store::new();
    let name = create(&store.open(), 1);
    let mut expected = Vec::new();
    for round in 0..3 {
        let engine = store.open();
        for at in 0..100 {
            let revision = put(&engine, &name, &format!("k.{at}"), format!("{round}").repeat(50));
            expected.push(Revision::new(revision));
        }
    }
    let engine = store.open();
    let half = expected[150];
    let query = WatchQuery { start: WatchStart::Revision(half), ..WatchQuery::default() };
    let watch = block_on(engine.watch(&name, query)).expect("a watch");
    let mut seen = Vec::new();
    for event in take(watch, 150) {
        let WatchEvent::Change(Change { entry, .. }) = event else { panic!("only changes are due") };
        seen.push(entry.revision);
    }
    assert_eq!(seen, expected[150..]);
}

fn take(mut watch: pleach_engine::WatchStream, count: usize) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    while events.len() < count {
        let next = std::future::poll_fn(|context| watch.as_mut().poll_next(context));
        events.push(block_on(next).expect("the watch goes on").expect("an event"));
    }
    events
}

#[test]
fn a_page_token_from_before_a_restart_resumes_or_says_compacted() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..10 {
        put(&engine, &name, &format!("k.{at}"), "v");
    }
    let query = ScanQuery { limit: 4, ..ScanQuery::default() };
    let next = block_on(engine.scan(&name, query.clone())).expect("a page").next;
    drop(engine);
    let engine = store.open();
    let rest = ScanQuery { page: next, limit: 100, ..ScanQuery::default() };
    let page = block_on(engine.scan(&name, rest.clone())).expect("nothing has changed since");
    assert_eq!(page.entries.len(), 6);
    put(&engine, &name, "k.5", "changed");
    let late = block_on(engine.scan(&name, rest)).expect_err("the snapshot is gone");
    assert_eq!(late.kind(), ErrorKind::Compacted);
}

#[test]
fn buffered_commits_survive_a_clean_close() {
    let store = Store::new();
    let engine = store.open();
    let name = bucket("fast");
    let config = BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() };
    block_on(engine.create_bucket(&name, config)).expect("the bucket is created");
    for at in 0..2_000 {
        put(&engine, &name, &format!("k.{at}"), "v".repeat(at % 700));
    }
    drop(engine);
    assert_eq!(contents(&store.open(), &name).expect("a scan").len(), 2_000);
}

#[test]
fn a_closed_store_says_so_and_can_be_opened_by_another() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    block_on(engine.close()).expect("it closes");
    let closed = block_on(engine.read(&name, &key("a"), At::Latest)).expect_err("it is closed");
    assert_eq!(closed.kind(), ErrorKind::Closed);
    block_on(engine.close()).expect("closing twice is fine");
    store.open();
}

/// A TTL that was changed leaves two notes about one value: it expired twice.
#[test]
fn a_value_expires_once_though_its_buckets_ttl_was_changed() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 8);
    let config = |ms| BucketConfig {
        history: NonZeroU8::MIN.saturating_add(7),
        ttl: Some(Duration::from_millis(ms)),
        ..BucketConfig::default()
    };
    block_on(engine.update_bucket(&name, config(1))).expect("it is updated");
    let written = put(&engine, &name, "a", "1");
    block_on(engine.update_bucket(&name, config(2))).expect("it is updated");
    let query = WatchQuery { start: WatchStart::Revision(Revision::new(written)), ..WatchQuery::default() };
    let watch = block_on(engine.watch(&name, query)).expect("a watch");
    store.clock.advance(Duration::from_millis(2));
    let ops: Vec<Op> =
        take(watch, 2)
            .into_iter()
            .map(|event| {
                if let WatchEvent::Change(change) = event {
                    change.entry.op
                } else {
                    panic!("a change is due")
                }
            })
            .collect();
    assert_eq!(ops, [Op::Put, Op::Expire]);
    put(&engine, &name, "b", "2");
    assert_eq!(block_on(engine.history(&name, &key("a"))).expect("a history").len(), 2);
}

/// Only the first thousand notes were looked at before a configuration changed: behind them, the dead rose.
#[test]
fn a_longer_ttl_revives_nothing_behind_any_number_of_stale_notes() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    let soon = Expiry::After(Duration::from_secs(10));
    for round in 0..3_u32 {
        let keys = |at: u32| key(&format!("k.{}", round * 1000 + at));
        let mortal: Batch = (0..1000).map(|at| Operation::put(keys(at), "1").expiring(soon)).collect();
        let immortal: Batch = (0..1000).map(|at| Operation::put(keys(at), "2")).collect();
        block_on(engine.commit(&name, mortal)).expect("a commit");
        block_on(engine.commit(&name, immortal)).expect("a commit");
    }
    let other = bucket("other");
    let config = BucketConfig { ttl: Some(Duration::from_secs(11)), ..BucketConfig::default() };
    block_on(engine.create_bucket(&other, config)).expect("the bucket is created");
    put(&engine, &other, "z", "1");
    store.clock.advance(Duration::from_secs(12));
    block_on(engine.update_bucket(&other, BucketConfig::default())).expect("it is updated");
    assert_eq!(get(&engine, &other, "z"), None);
    assert_eq!(contents(&engine, &name).expect("a scan").len(), 3000);
}

/// Every segment of the log was held open, so a log of some dozens of gigabytes could not be opened at all.
#[test]
#[cfg(target_os = "linux")]
fn a_log_of_many_segments_needs_few_open_files() {
    let store = Store::with(Settings { segment_bytes: 1024, ..Settings::default() });
    let log = store.path().join("log");
    let open_files = || {
        let links = std::fs::read_dir("/proc/self/fd").expect("the open files");
        let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
        targets.filter(|target| target.starts_with(&log)).count()
    };
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..400 {
        put(&engine, &name, &format!("k.{at}"), "v".repeat(1100));
    }
    assert!(store.segments().len() > 300);
    assert!(open_files() <= 130, "{} files are open", open_files());
    drop(engine);
    let engine = store.open();
    assert!(open_files() <= 130, "{} files are open", open_files());
    for at in 0..400 {
        assert_eq!(get(&engine, &name, &format!("k.{at}")).map(|value| value.len()), Some(1100));
    }
    assert!(open_files() <= 130, "{} files are open", open_files());
}
