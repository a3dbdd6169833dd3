use std::sync::Arc;
use std::time::Duration;

use pleach::{
    Bucket, BucketConfig, CacheOptions, Clock, Direction, EngineError, Entry, Error, KeyRange, ManualClock,
    PutOptions, ScanOptions, Selection, Store, Timestamp, WatchOptions, WatchStart, WriteError,
};

use crate::given::{Given, eventually, run, shown};
use crate::spy::{FREELY, Spy, Watched};

pub(crate) async fn a_cached_bucket_reads_what_was_there_and_what_comes(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    let cached = carts.cached().await.unwrap();
    cached.ready().await.unwrap();
    assert!(cached.is_ready());
    assert_eq!(cached.get("a").await.unwrap(), carts.get("a").await.unwrap());
    carts.put("b", "2").await.unwrap();
    carts.delete("a").await.unwrap();
    eventually(async || shown(&cached.scan(">").unwrap().collect().await.unwrap()) == ["b=2"]).await;
    assert_eq!(cached.keys(">").unwrap().collect().await.unwrap().len(), 1);
    assert_eq!(cached.count(">").await.unwrap(), 1);
}

pub(crate) async fn a_cached_bucket_sees_its_own_writes(given: Given) {
    let cached = given.bucket().await.cached().await.unwrap();
    for number in 0..200 {
        let value = number.to_string();
        match number % 4 {
            0 => cached.put("a", &value).await.map(drop).unwrap(),
            1 => cached.batch().put("b", "x").put("a", &value).commit().await.map(drop).unwrap(),
            2 => {
                let seen = cached.get("a").await.unwrap().unwrap();
                cached.clone().update("a", &value, seen.revision).await.map(drop).unwrap();
            }
            _ => {
                cached.delete("a").await.unwrap();
                assert_eq!(cached.get("a").await.unwrap(), None);
                continue;
            }
        }
        assert_eq!(cached.get("a").await.unwrap().unwrap().value, value);
    }
}

pub(crate) async fn a_cached_bucket_never_goes_back_while_others_write(given: Given) {
    const WRITES: u64 = 300;
    let carts = given.bucket().await;
    carts.batch().put("a", "0").put("b", "0").commit().await.unwrap();
    let cached = carts.cached().await.unwrap();
    let writer = std::thread::Builder::new().spawn(move || {
        for number in 1..=WRITES {
            let value = number.to_string();
            pollster::block_on(carts.batch().put("a", &value).put("b", &value).commit()).unwrap();
        }
    });
    let mut watch = cached.watch("b").await.unwrap();
    let number = |entry: &Entry| String::from_utf8_lossy(&entry.value).parse::<u64>().unwrap();
    let mut seen = 0;
    for round in 0.. {
        let shown = match round % 6 {
            0 | 1 => number(&cached.get("a").await.unwrap().unwrap()),
            2 => number(&cached.get("b").await.unwrap().unwrap()),
            3 => {
                let pair = cached.scan(">").unwrap().collect().await.unwrap();
                assert_eq!(number(&pair[0]), number(&pair[1]));
                number(&pair[0])
            }
            4 => number(cached.history("b").await.unwrap().last().unwrap()),
            _ if seen < WRITES => {
                // What is delivered may be old; what is read after that is not older.
                let delivered = number(&watch.next_change().await.unwrap().unwrap().entry);
                seen.max(delivered)
            }
            _ => break,
        };
        assert!(shown >= seen, "{shown} after {seen}, in round {round}");
        seen = shown;
        if round % 7 == 0 {
            cached.put("own", "1").await.unwrap();
            cached.purge("own").await.unwrap();
        }
    }
    writer.unwrap().join().unwrap();
}

pub(crate) async fn a_dropped_cache_frees_its_watch(given: Given) {
    let carts = given.bucket().await;
    let cached = carts.cached().await.unwrap();
    cached.ready().await.unwrap();
    let clone = cached.clone();
    drop(cached);
    assert_eq!(carts.info().await.unwrap().watches, 1);
    assert!(clone.is_ready());
    drop(clone);
    assert_eq!(carts.info().await.unwrap().watches, 0);
}

pub(crate) async fn a_cached_bucket_can_be_typed(given: Given) {
    let cached = given.bucket().await.cached().await.unwrap();
    cached.ready().await.unwrap();
    let numbers = cached.typed::<u32>();
    drop(cached);
    numbers.put("a", &1).await.unwrap();
    assert_eq!(numbers.get("a").await.unwrap().unwrap().value, 1);
}

/// A bucket on an engine that is spied upon.
struct Spied {
    spy: Arc<Spy>,
    clock: Arc<ManualClock>,
    store: Store,
    carts: Bucket,
}

async fn spied() -> Spied {
    let clock = Arc::new(ManualClock::new("2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap()));
    let spy = Spy::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let engine = Arc::new(Watched(Arc::clone(&spy)));
    let store = Store::with_engine_and_clock(engine, Arc::clone(&clock) as Arc<dyn Clock>);
    let carts = store.create_bucket("carts").await.unwrap();
    Spied { spy, clock, store, carts }
}

impl Spied {
    /// Reads `key`, and says whether the engine was asked.
    async fn get(&self, bucket: &Bucket, key: &str) -> (Option<String>, &'static str) {
        let before = self.spy.asked();
        let text = |entry: Entry| String::from_utf8_lossy(&entry.value).into_owned();
        let value = bucket.get(key).await.unwrap().map(text);
        (value, if self.spy.asked() == before { "from memory" } else { "from the bucket" })
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.into())
}

#[test]
fn before_a_cache_is_ready_reads_go_to_the_bucket() {
    run(async {
        let spied = spied().await;
        spied.carts.put("a", "1").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(1); // the value, but not the mark that it was the last
        eventually(async || spied.spy.asked_for_events() == 2).await;
        assert!(!cached.is_ready());
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from the bucket"));
        spied.spy.deliver(1);
        cached.ready().await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from memory"));
        assert_eq!(spied.get(&cached, "b").await, (None, "from memory"));
        assert!(cached.bytes() > 0);
    });
}

#[test]
fn own_writes_are_seen_while_the_watch_lags() {
    run(async {
        let spied = spied().await;
        let cached = spied.carts.cached().await.unwrap();
        cached.put("a", "1").await.unwrap(); // after the watch has begun, before it is ready
        spied.spy.deliver(1);
        cached.ready().await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from the bucket"));
        spied.spy.deliver(1);
        eventually(async || spied.get(&cached, "a").await == (some("1"), "from memory")).await;

        cached.batch().put("a", "2").put("b", "2").commit().await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (some("2"), "from the bucket"));
        assert_eq!(cached.count(">").await.unwrap(), 2);
        spied.spy.deliver(2);
        eventually(async || spied.get(&cached, "b").await == (some("2"), "from memory")).await;
    });
}

#[test]
fn what_a_conflict_has_shown_is_seen_by_the_next_read() {
    run(async {
        let spied = spied().await;
        let seen = spied.carts.put("a", "1").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(2);
        cached.ready().await.unwrap();
        spied.carts.put("a", "2").await.unwrap(); // elsewhere
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from memory"));
        assert!(matches!(cached.update("a", "3", seen).await, Err(WriteError::Conflict(_))));
        assert_eq!(spied.get(&cached, "a").await, (some("2"), "from the bucket"));
    });
}

#[test]
fn reads_never_go_back_in_time() {
    run(async {
        let spied = spied().await;
        spied.carts.batch().put("a", "1").put("b", "1").commit().await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(3);
        cached.ready().await.unwrap();
        cached.put("own", "1").await.unwrap(); // so that reads go to the bucket
        spied.carts.put("a", "2").await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (some("2"), "from the bucket"));
        spied.carts.delete("b").await.unwrap();
        assert_eq!(spied.get(&cached, "b").await, (None, "from the bucket"));
        spied.carts.put("c", "1").await.unwrap();
        assert_eq!(cached.count(">").await.unwrap(), 3);

        for (dealt_with, key, value) in [(5, "a", some("2")), (6, "b", None), (7, "c", some("1"))] {
            spied.spy.deliver(1);
            eventually(async || spied.spy.asked_for_events() == dealt_with).await;
            assert_eq!(spied.get(&cached, key).await, (value, "from the bucket"));
        }
        spied.spy.deliver(1);
        eventually(async || spied.get(&cached, "c").await == (some("1"), "from memory")).await;
    });
}

#[test]
fn what_other_reads_of_the_bucket_have_shown_is_seen_by_the_next_read() {
    run(async {
        for show in ["get_at", "status", "watch", "latest"] {
            let spied = spied().await;
            spied.carts.put("a", "1").await.unwrap();
            let cached = spied.carts.cached().await.unwrap();
            spied.spy.deliver(2);
            cached.ready().await.unwrap();
            let mut watch = if show == "watch" { Some(cached.watch("a").await.unwrap()) } else { None };
            let second = spied.carts.put("a", "2").await.unwrap(); // elsewhere
            assert_eq!(spied.get(&cached, "a").await, (some("1"), "from memory"));
            if let Some(watch) = &mut watch {
                watch.next().await.unwrap().unwrap();
            }
            match show {
                "get_at" => assert_eq!(cached.get_at("a", second).await.unwrap().unwrap().value, "2"),
                "status" => assert_eq!(cached.status().await.unwrap().info.last_revision, second),
                "latest" => drop(
                    cached
                        .watch_with(WatchOptions { start: WatchStart::Latest, ..Default::default() })
                        .await
                        .unwrap(),
                ),
                _ => {}
            }
            assert_eq!(spied.get(&cached, "a").await, (some("2"), "from the bucket"), "{show}");
        }
    });
}

#[test]
fn a_conflict_with_an_expired_value_is_seen_by_the_next_read() {
    run(async {
        let spied = spied().await;
        let seen = spied.carts.put("a", "1").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(2);
        cached.ready().await.unwrap();
        // The cache cannot know of the new TTL, but the conflict tells.
        let config = BucketConfig { ttl: Some(Duration::from_secs(1)), ..BucketConfig::default() };
        spied.store.update_bucket("carts", config).await.unwrap();
        spied.clock.advance(Duration::from_secs(1));
        assert!(matches!(cached.update("a", "2", seen).await, Err(WriteError::Conflict(_))));
        assert_eq!(spied.get(&cached, "a").await, (None, "from the bucket"));
    });
}

#[test]
fn a_clock_that_was_set_back_keeps_nothing_longer_than_the_bucket_does() {
    run(async {
        let spied = spied().await;
        let ttl = Duration::from_secs(60);
        spied.carts.put_with("a", "1", PutOptions::ttl(ttl)).await.unwrap();
        spied.clock.jump_to(Timestamp::default());
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(2);
        cached.ready().await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from memory"));
        spied.clock.advance(ttl);
        assert_eq!(spied.carts.get("a").await.unwrap(), None);
        assert_eq!(spied.get(&cached, "a").await, (None, "from the bucket"));
    });
}

#[test]
fn what_is_cached_is_not_printed() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        spied.carts.put("a", "a secret").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        cached.ready().await.unwrap();
        let printed = format!("{cached:?}");
        assert!(printed.contains("Ready") && !printed.contains("secret"), "{printed}");
    });
}

#[test]
fn a_batch_appears_whole() {
    run(async {
        let spied = spied().await;
        spied.carts.batch().put("a", "1").put("b", "1").commit().await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(3);
        cached.ready().await.unwrap();
        spied.carts.batch().put("a", "2").put("b", "2").commit().await.unwrap();
        spied.carts.put("c", "3").await.unwrap();
        let values = async || shown(&cached.scan(">").unwrap().collect().await.unwrap());
        spied.spy.deliver(1);
        eventually(async || spied.spy.asked_for_events() == 5).await; // the first half has been dealt with
        assert_eq!(values().await, ["a=1", "b=1"]);
        spied.spy.deliver(1);
        eventually(async || values().await == ["a=2", "b=2"]).await;
        spied.spy.deliver(1);
        eventually(async || values().await == ["a=2", "b=2", "c=3"]).await;
        assert_eq!(spied.spy.asked(), 0);
    });
}

#[test]
fn a_lost_watch_makes_the_cache_build_itself_anew() {
    run(async {
        let spied = spied().await;
        spied.carts.put("a", "1").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(2);
        cached.ready().await.unwrap();
        spied.carts.purge("a").await.unwrap();
        spied.carts.put("b", "2").await.unwrap();
        eventually(async || spied.spy.asked_for_events() == 3).await;
        spied.spy.lose_the_watch();
        eventually(async || !cached.is_ready()).await;
        assert_eq!(spied.get(&cached, "a").await, (None, "from the bucket"));
        spied.spy.deliver(FREELY);
        cached.ready().await.unwrap();
        assert_eq!(spied.get(&cached, "a").await, (None, "from memory"));
        assert_eq!(spied.get(&cached, "b").await, (some("2"), "from memory"));
    });
}

#[test]
fn an_entry_is_gone_from_memory_at_exactly_its_time() {
    run(async {
        let spied = spied().await;
        let ttl = Duration::from_secs(60);
        spied.carts.put_with("a", "1", PutOptions::ttl(ttl)).await.unwrap();
        spied.carts.put("b", "1").await.unwrap();
        let cached = spied.carts.cached().await.unwrap();
        spied.spy.deliver(3);
        cached.ready().await.unwrap();
        spied.clock.advance(ttl - Duration::from_micros(1));
        assert_eq!(spied.get(&cached, "a").await, (some("1"), "from memory"));
        assert_eq!(cached.count(">").await.unwrap(), 2);
        spied.clock.advance(Duration::from_micros(1));
        assert_eq!(spied.get(&cached, "b").await, (some("1"), "from memory"));
        assert_eq!(spied.get(&cached, "a").await.0, None);
        assert_eq!(cached.count(">").await.unwrap(), 1);
        assert_eq!(shown(&cached.scan(">").unwrap().collect().await.unwrap()), ["b=1"]);
        // A clock that is set back revives nothing.
        spied.clock.jump_to(Timestamp::default());
        assert_eq!(spied.get(&cached, "a").await.0, None);
    });
}

#[test]
fn a_bucket_that_takes_too_much_memory_is_not_cached() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        spied.carts.put("a", "x".repeat(1000)).await.unwrap();
        let options = CacheOptions { bytes_max: 1000 };
        let cached = spied.carts.cached_with(options).await.unwrap();
        let error = cached.ready().await.unwrap_err();
        assert!(matches!(error, Error::CacheFull { limit: 1000, .. }), "{error}");
        assert_eq!((cached.is_ready(), cached.bytes()), (false, 0));
        assert_eq!(spied.get(&cached, "a").await.1, "from the bucket");

        // So it is if it grows too large later.
        let options = CacheOptions { bytes_max: 3000 };
        let cached = spied.carts.cached_with(options).await.unwrap();
        cached.ready().await.unwrap();
        cached.put("b", "x".repeat(2000)).await.unwrap();
        eventually(async || !cached.is_ready()).await;
        assert!(matches!(cached.ready().await, Err(Error::CacheFull { limit: 3000, .. })));
        assert_eq!(cached.count(">").await.unwrap(), 2);
    });
}

#[test]
fn replaced_and_deleted_entries_give_their_bytes_back() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        let cached = spied.carts.cached_with(CacheOptions { bytes_max: 10_000 }).await.unwrap();
        cached.ready().await.unwrap();
        for _ in 0..50 {
            cached.put("a", "x".repeat(2000)).await.unwrap();
        }
        cached.delete("a").await.unwrap();
        eventually(async || cached.bytes() == 0).await;
        assert!(cached.is_ready());
    });
}

#[test]
fn a_cache_ends_with_its_bucket_or_its_store() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        let cached = spied.carts.cached().await.unwrap();
        cached.ready().await.unwrap();
        spied.store.delete_bucket("carts").await.unwrap();
        eventually(async || !cached.is_ready()).await;
        let error = cached.ready().await.unwrap_err();
        assert!(matches!(error, Error::Engine(EngineError::BucketNotFound { .. })), "{error}");
        assert!(cached.get("a").await.is_err());
        assert!(spied.carts.cached().await.is_err());

        let cached = spied.store.create_bucket("carts").await.unwrap().cached().await.unwrap();
        cached.ready().await.unwrap();
        spied.store.close().await.unwrap();
        eventually(async || !cached.is_ready()).await;
        let error = cached.ready().await.unwrap_err();
        assert!(matches!(error, Error::Engine(EngineError::Closed)), "{error}");
        assert!(matches!(cached.get("a").await, Err(Error::Engine(EngineError::Closed))));
    });
}

#[test]
fn scans_from_memory_are_those_of_the_bucket() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        for key in ["a", "a.1", "a.1.x", "a.2", "a/b", "b", "b.1", "bb", "zz"] {
            spied.carts.put(key, key).await.unwrap();
        }
        let cached = spied.carts.cached().await.unwrap();
        cached.ready().await.unwrap();
        let selections = [
            Selection::all(),
            Selection::prefix("a."),
            Selection::prefix("nothing"),
            Selection::prefix([0xff, 0xff]),
            Selection::filter("a.*".parse().unwrap()),
            Selection::filter("*.1".parse().unwrap()),
            Selection::range(KeyRange::between("a.1", "b")),
            Selection::range(KeyRange::between("b", "a")),
            Selection::range(KeyRange::between([b'a', 0xff], "bb")),
            Selection { range: KeyRange::prefix("a"), filter: Some("*.2".parse().unwrap()) },
        ];
        for selection in selections {
            for direction in [Direction::Forward, Direction::Backward] {
                for (limit, keys_only) in [(None, false), (Some(0), false), (Some(2), true)] {
                    let options = ScanOptions { selection: selection.clone(), direction, limit, keys_only };
                    let expected = spied.carts.scan_with(options.clone()).collect().await.unwrap();
                    let asked = spied.spy.asked();
                    let found = cached.scan_with(options.clone()).collect().await.unwrap();
                    assert_eq!(found, expected, "{options:?}");
                    assert_eq!(spied.spy.asked(), asked, "{options:?}");
                }
            }
            let expected = spied.carts.count(&selection).await.unwrap();
            let asked = spied.spy.asked();
            assert_eq!((cached.count(&selection).await.unwrap(), spied.spy.asked()), (expected, asked));
        }
    });
}

#[test]
fn a_scan_of_very_many_entries_goes_to_the_bucket() {
    run(async {
        let spied = spied().await;
        spied.spy.deliver(FREELY);
        for start in (0..11_000).step_by(1000) {
            let mut batch = spied.carts.batch();
            for number in start..start + 1000 {
                batch = batch.put(format!("k{number:05}"), "");
            }
            batch.commit().await.unwrap();
        }
        let cached = spied.carts.cached().await.unwrap();
        cached.ready().await.unwrap();
        let limited = ScanOptions { limit: Some(10), ..ScanOptions::default() };
        assert_eq!(cached.scan_with(limited).collect().await.unwrap().len(), 10);
        assert_eq!(cached.count(Selection::prefix("k00")).await.unwrap(), 1000);
        assert_eq!(spied.spy.asked(), 0);
        assert_eq!(cached.count(">").await.unwrap(), 11_000);
        assert_eq!(spied.spy.asked(), 1);
    });
}

#[test]
fn a_cache_can_be_dropped_while_it_waits_for_anything() {
    run(async {
        let spied = spied().await;
        let building = spied.carts.cached().await.unwrap();
        drop(building); // its watch has delivered nothing
        let rebuilding = spied.carts.cached().await.unwrap();
        spied.spy.deliver(1);
        rebuilding.ready().await.unwrap();
        spied.spy.lose_the_watch();
        drop(rebuilding); // it waits for a change, or before it begins anew
        assert_eq!(spied.carts.info().await.unwrap().watches, 0);
        assert_eq!(Arc::strong_count(&spied.spy), 2); // this test's and the engine's
    });
}
