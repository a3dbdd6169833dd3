use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use crate::*;

/// An engine with one bucket, on a clock that stands still.
struct Given {
    engine: MemoryEngine,
    clock: Arc<ManualClock>,
    bucket: BucketName,
}

fn given(change: impl FnOnce(&mut BucketConfig)) -> Given {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
    let engine = MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let bucket = BucketName::parse("b").unwrap();
    let mut config = BucketConfig::default();
    change(&mut config);
    now(engine.create_bucket(&bucket, config)).unwrap();
    Given { engine, clock, bucket }
}

impl Given {
    fn commit(&self, batch: impl Into<Batch>) -> Committed {
        now(self.engine.commit(&self.bucket, batch.into())).unwrap()
    }

    fn get(&self, text: &str) -> Option<Entry> {
        now(self.engine.read(&self.bucket, &key(text), At::Latest)).unwrap()
    }

    fn watch(&self, start: WatchStart) -> WatchStream {
        let query = WatchQuery { start, ..WatchQuery::default() };
        now(self.engine.watch(&self.bucket, query)).unwrap()
    }

    fn page(&self, page: Option<PageToken>) -> Result<Page, EngineError> {
        now(self.engine.scan(&self.bucket, ScanQuery { limit: 1, page, ..ScanQuery::default() }))
    }
}

/// The result of a call, none of which ever waits here.
fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the in-memory engine never waits")
}

fn next(watch: &mut WatchStream) -> Option<Result<WatchEvent, EngineError>> {
    now(watch.next())
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn put(text: &str) -> Operation {
    Operation::put(key(text), "v")
}

#[test]
fn a_watcher_too_slow_for_the_feed_is_told_where_it_begins() {
    let given = given(|_| ());
    let mut watch = given.watch(WatchStart::Now);
    let batch: Batch = (0..1000).map(|n| put(&format!("k{n}"))).collect();
    for _ in 0..=FEED_CHANGES_MAX / 1000 {
        given.commit(batch.clone());
    }
    let floor = now(given.engine.bucket(&given.bucket)).unwrap().feed_floor;
    assert!(matches!(next(&mut watch), Some(Err(EngineError::Compacted { oldest })) if oldest == floor));
    assert!(next(&mut watch).is_none());
    let mut resumed = given.watch(WatchStart::Revision(floor));
    let Some(Ok(WatchEvent::Change(first))) = next(&mut resumed) else { panic!("the feed begins there") };
    assert_eq!((first.entry.revision, first.batch.index), (floor, 0), "batches fall off whole");
}

#[test]
fn a_feed_of_large_values_is_bounded_too() {
    let given = given(|config| config.value_bytes_max = 64 << 20);
    let before = now(given.engine.bucket(&given.bucket)).unwrap().feed_floor;
    // One buffer, shared by all records.
    let value = Bytes::from(vec![0; 64 << 20]);
    for _ in 0..FEED_BYTES_MAX / value.len() + 1 {
        given.commit(Operation::put(key("a"), value.clone()));
    }
    let after = now(given.engine.bucket(&given.bucket)).unwrap().feed_floor;
    assert!(after > before);
}

#[test]
fn of_too_many_page_snapshots_the_one_idle_for_longest_goes_first() {
    let given = given(|_| ());
    given.commit(Batch::from(put("a")).with(put("b")).with(put("c")));
    let first = given.page(None).unwrap().next;
    let second = given.page(None).unwrap().next;
    for _ in 2..PAGE_SNAPSHOTS_MAX {
        given.page(None).unwrap();
    }
    assert!(given.page(first.clone()).is_ok(), "as many as that are kept");
    given.page(None).unwrap();
    assert!(given.page(first).is_ok(), "the first was used after the second");
    assert!(matches!(given.page(second), Err(EngineError::Compacted { .. })));
}

#[test]
fn a_page_token_lives_for_its_lease_and_every_use_renews_it() {
    let given = given(|_| ());
    given.commit(Batch::from(put("a")).with(put("b")).with(put("c")));
    let token = given.page(None).unwrap().next;
    for _ in 0..3 {
        given.clock.advance(PAGE_LEASE - Duration::from_micros(1));
        assert!(given.page(token.clone()).is_ok());
    }
    given.clock.advance(PAGE_LEASE);
    assert!(matches!(given.page(token), Err(EngineError::Compacted { .. })));
}

#[test]
fn a_clock_set_back_revives_nothing() {
    let given = given(|_| ());
    given.commit(put("a").expiring(Expiry::After(Duration::from_secs(5))));
    given.clock.advance(Duration::from_secs(5));
    given.clock.jump_to(Timestamp::default());
    assert_eq!(given.get("a"), None);
    let committed = given.commit(put("b").expiring(Expiry::After(Duration::from_secs(5))));
    assert_eq!(committed.time, Timestamp::from_micros(6_000_000), "time stands rather than going back");
    given.clock.advance(Duration::from_secs(5));
    assert_eq!(given.get("b"), None);
}

#[test]
fn expiry_is_recorded_in_the_order_of_its_moments() {
    let given = given(|_| ());
    let mut watch = given.watch(WatchStart::Now);
    for (text, seconds) in [("c", 1), ("b", 3), ("a", 2), ("d", 2)] {
        given.commit(put(text).expiring(Expiry::After(Duration::from_secs(seconds))));
        next(&mut watch);
    }
    given.clock.advance(Duration::from_secs(300));
    let mut expired = String::new();
    while let Some(Some(Ok(WatchEvent::Change(change)))) = watch.next().now_or_never() {
        assert_eq!(change.entry.op, Op::Expire);
        expired += change.entry.key.as_str();
    }
    assert_eq!(expired, "cadb");
}

#[test]
fn a_clock_moved_by_hand_wakes_the_watchers_of_what_it_expires() {
    struct Rung(AtomicBool);
    impl Wake for Rung {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let given = given(|_| ());
    given.commit(put("a").expiring(Expiry::After(Duration::from_secs(500))));
    let mut watch = given.watch(WatchStart::Now);
    let rung = Arc::new(Rung(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&rung));
    assert!(watch.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    given.clock.advance(Duration::from_secs(499));
    assert!(!rung.0.load(Ordering::SeqCst), "nothing has expired yet");
    given.clock.advance(Duration::from_secs(1));
    assert!(rung.0.load(Ordering::SeqCst), "before `advance` returns");
    assert!(
        matches!(next(&mut watch), Some(Ok(WatchEvent::Change(change))) if change.entry.op == Op::Expire)
    );
}

#[test]
fn there_is_a_limit_to_buckets() {
    let given = given(|_| ());
    let name = |n: usize| BucketName::parse(format!("b{n}")).unwrap();
    for n in 1..BUCKETS_MAX {
        now(given.engine.create_bucket(&name(n), BucketConfig::default())).unwrap();
    }
    let create = || now(given.engine.create_bucket(&name(BUCKETS_MAX), BucketConfig::default()));
    assert!(matches!(create(), Err(EngineError::TooManyBuckets { limit: BUCKETS_MAX })));
    now(given.engine.delete_bucket(&name(1))).unwrap();
    create().unwrap();
}

#[test]
fn dropping_the_engine_ends_its_watches() {
    let given = given(|_| ());
    let mut watch = given.watch(WatchStart::Now);
    drop(given.engine);
    assert!(matches!(next(&mut watch), Some(Err(EngineError::Closed))));
    assert!(next(&mut watch).is_none());
}

#[test]
fn the_thread_that_waits_for_expiry_ends_with_the_last_watch() {
    let given = given(|_| ());
    given.commit(put("a").expiring(Expiry::After(Duration::from_secs(500))));
    assert!(!given.engine.has_alarm(), "nobody waits for news");
    let watch = given.watch(WatchStart::Now);
    assert!(given.engine.has_alarm());
    drop(watch);
    ends(&given.engine);
    let _watch = given.watch(WatchStart::Now);
    assert!(given.engine.has_alarm());
    now(given.engine.close()).unwrap();
    ends(&given.engine);
}

#[allow(clippy::disallowed_methods, reason = "a thread of the machine ends in the machine's time")]
fn ends(engine: &MemoryEngine) {
    let begun = Instant::now();
    while engine.has_alarm() {
        assert!(begun.elapsed() < Duration::from_secs(300), "the thread is still there");
        std::thread::yield_now();
    }
}
