use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use pleach::{
    Batch, Bucket, BucketConfig, Change, Derived, Engine, Error, ErrorKind, Key, Operation, Projection,
    ProjectionError, Reduced, Reducer, Selection, Store,
};
use pleach_engine::MemoryEngine;

use crate::Given;
use crate::frail::Frail;
use crate::given::{TEST_TIME_MAX, within};

/// Counts the live keys of the source by their first token: `count.TOKEN`. What a key has contributed is
/// remembered under `seen.KEY`, since an overwrite must not count twice.
struct Count;

impl Reducer for Count {
    async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
        let key = &change.entry.key;
        let (seen, counter) = (format!("seen.{key}"), format!("count.{}", key.tokens().next().expect("one")));
        let was = derived.get(&seen).await?.is_some();
        let counted = number(derived, &counter).await?;
        match (was, change.entry.op.is_put()) {
            (false, true) => {
                derived.put(seen, "")?;
                derived.put(counter, (counted + 1).to_string())?;
            }
            (true, false) => {
                derived.delete(seen)?;
                match counted {
                    1 => derived.delete(counter)?,
                    more => derived.put(counter, (more - 1).to_string())?,
                }
            }
            (true, true) | (false, false) => {}
        }
        Ok(())
    }
}

/// Counts changes, which shows at once if one is applied twice.
struct Tally;

impl Reducer for Tally {
    async fn reduce(&mut self, _change: &Change, derived: &mut Derived) -> Reduced {
        let applied = number(derived, "applied").await?;
        derived.put("applied", (applied + 1).to_string())?;
        Ok(())
    }
}

/// [`Tally`], which fails at a bad value until it is mended.
struct Squeamish {
    mended: Arc<AtomicBool>,
}

impl Reducer for Squeamish {
    async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
        Tally.reduce(change, derived).await?;
        if change.entry.value == "bad" && !self.mended.load(Ordering::SeqCst) {
            return Err("a bad value".into());
        }
        Ok(())
    }
}

/// Writes almost as much as a batch can hold, and adds to what the change before wrote.
struct Wide;

impl Reducer for Wide {
    async fn reduce(&mut self, _change: &Change, derived: &mut Derived) -> Reduced {
        for n in 0..999 {
            let key = format!("k{n}");
            let value = number(derived, &key).await?;
            derived.put(key, (value + 1).to_string())?;
        }
        Ok(())
    }
}

/// Copies every entry of the source many times over, so that a few fill a commit.
struct Spread;

const COPIES: u64 = 200;

impl Reducer for Spread {
    async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
        for n in 0..COPIES {
            let copy = format!("{}.{n}", change.entry.key);
            if change.entry.op.is_put() {
                derived.put(copy, &change.entry.value)?;
            } else {
                derived.delete(copy)?;
            }
        }
        Ok(())
    }
}

/// Meddles with what is the projection's own.
struct Meddler;

impl Reducer for Meddler {
    async fn reduce(&mut self, _change: &Change, derived: &mut Derived) -> Reduced {
        derived.put(Key::parse_reserved("_kv.projection.r")?, "1")?;
        Ok(())
    }
}

async fn number(derived: &Derived, key: &str) -> Result<u64, Error> {
    let value = derived.get(key).await?;
    Ok(value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number")))
}

async fn buckets(store: &Store) -> (Bucket, Bucket) {
    (store.create_bucket("orders").await.unwrap(), store.create_bucket("derived").await.unwrap())
}

/// The counts that are in a target.
async fn counts(target: &Bucket) -> BTreeMap<String, u64> {
    let entries = target.scan("count.*").unwrap().collect().await.unwrap();
    let value = |value: &[u8]| String::from_utf8_lossy(value).parse().unwrap();
    entries.iter().map(|entry| (entry.key.as_str()[6..].to_owned(), value(&entry.value))).collect()
}

/// What they must be.
async fn counted(source: &Bucket) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for key in source.keys(">").unwrap().collect().await.unwrap() {
        *counted.entry(key.tokens().next().unwrap().to_owned()).or_default() += 1;
    }
    counted
}

async fn check(source: &Bucket, target: &Bucket) {
    assert_eq!(counts(target).await, counted(source).await);
    let seen = target.count("seen.>").await.unwrap();
    assert_eq!(seen, source.count(">").await.unwrap());
}

/// How many changes the tally has seen.
async fn applied(target: &Bucket) -> String {
    let entry = target.get("applied").await.unwrap();
    entry.map_or("0".into(), |entry| String::from_utf8_lossy(&entry.value).into_owned())
}

/// Writes enough to have the in-memory engine forget the oldest changes.
pub(crate) async fn outrun_the_feed(bucket: &Bucket) {
    let before = bucket.info().await.unwrap().last_revision;
    while bucket.info().await.unwrap().feed_floor <= before.next() {
        let put = |n: u32| Operation::put(Key::parse(format!("k{n}")).unwrap(), "1");
        bucket.commit((0..1000).map(put).collect::<Batch>()).await.unwrap();
    }
}

pub(crate) async fn a_projection_follows_its_source(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("counts", &derived, Count).await.unwrap();
    assert_eq!((projection.name().as_str(), projection.position().await.unwrap()), ("counts", None));
    projection.catch_up().await.unwrap();
    check(&orders, &derived).await;
    for (round, key) in ["a.1", "b.1", "a.2", "a.1"].into_iter().enumerate() {
        let last = orders.put(key, round.to_string()).await.unwrap();
        projection.catch_up().await.unwrap();
        check(&orders, &derived).await;
        assert_eq!(projection.position().await.unwrap(), Some(last.next()));
    }
    assert_eq!(counts(&derived).await, BTreeMap::from([("a".into(), 2), ("b".into(), 1)]));
    orders.batch().delete("b.1").put("c.1", "1").delete("never").commit().await.unwrap();
    orders.purge("a.2").await.unwrap();
    orders.put_with("a.9", "1", pleach::PutOptions::ttl(std::time::Duration::from_secs(1))).await.unwrap();
    projection.catch_up().await.unwrap();
    assert_eq!(counts(&derived).await, BTreeMap::from([("a".into(), 2), ("c".into(), 1)]));
    given.clock.advance(std::time::Duration::from_secs(1));
    crate::given::eventually(|| async {
        orders.history("a.9").await.unwrap().last().unwrap().op == pleach::Op::Expire
    })
    .await;
    projection.catch_up().await.unwrap();
    check(&orders, &derived).await;
}

pub(crate) async fn a_projection_begins_with_what_is_there(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    for n in 0..1000 {
        orders.put(format!("t{}.{n}", n % 7), "1").await.unwrap();
    }
    orders.delete("t0.0").await.unwrap();
    derived.put("count.stale", "7").await.unwrap();
    let mut projection = orders.project("counts", &derived, Count).await.unwrap();
    projection.catch_up().await.unwrap();
    check(&orders, &derived).await;
}

pub(crate) async fn a_projection_goes_on_where_it_was(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    orders.project("tally", &derived, Tally).await.unwrap().catch_up().await.unwrap();
    for n in 1..=5 {
        orders.put("a", n.to_string()).await.unwrap();
        let mut projection = orders.project("tally", &derived, Tally).await.unwrap();
        projection.catch_up().await.unwrap();
        projection.catch_up().await.unwrap();
        assert_eq!(applied(&derived).await, n.to_string());
    }
    // Without the consumer, the feed was not held; what is left of it is enough here.
    orders.delete_consumer("projection-derived").await.unwrap();
    orders.put("a", "6").await.unwrap();
    orders.project("tally", &derived, Tally).await.unwrap().catch_up().await.unwrap();
    assert_eq!(applied(&derived).await, "6");
    assert_eq!(orders.consumers().await.unwrap().len(), 1);
}

pub(crate) async fn a_rebuild_derives_the_same_and_tells_its_progress(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("counts", &derived, Count).await.unwrap();
    projection.catch_up().await.unwrap();
    for n in 0..700 {
        orders.put(format!("t{}.{}", n % 5, n % 300), "1").await.unwrap();
        if n % 3 == 0 {
            orders.delete(format!("t{}.{}", n % 5, n % 300)).await.unwrap();
        }
    }
    projection.catch_up().await.unwrap();
    let incremental = counts(&derived).await;
    let entries = derived.count(">").await.unwrap();
    let mut told = Vec::new();
    projection.rebuild(|progress| told.push((progress.done, progress.total))).await.unwrap();
    assert_eq!(counts(&derived).await, incremental);
    check(&orders, &derived).await;
    let total = entries + orders.count(">").await.unwrap();
    assert_eq!(told, (0..=total).map(|done| (done, total)).collect::<Vec<_>>());
    orders.put("new.1", "1").await.unwrap();
    projection.catch_up().await.unwrap();
    check(&orders, &derived).await;
}

pub(crate) async fn a_projection_waits_for_changes(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("tally", &derived, Tally).await.unwrap();
    projection.catch_up().await.unwrap();
    let (running, stop) = futures_util::future::abortable(async move { projection.run().await });
    let runner = std::thread::Builder::new().spawn(move || pollster::block_on(running)).unwrap();
    for n in 1..=3 {
        orders.put("a", n.to_string()).await.unwrap();
        crate::given::eventually(|| async { applied(&derived).await == n.to_string() }).await;
    }
    stop.abort();
    assert!(runner.join().unwrap().is_err(), "it was dropped where it waited");
    orders.put("a", "4").await.unwrap();
    orders.project("tally", &derived, Tally).await.unwrap().catch_up().await.unwrap();
    assert_eq!(applied(&derived).await, "4");
}

pub(crate) async fn of_two_runners_the_slower_stops(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut one = orders.project("tally", &derived, Tally).await.unwrap();
    let mut other = orders.project("tally", &derived, Tally).await.unwrap();
    one.catch_up().await.unwrap();
    other.catch_up().await.unwrap();
    orders.put("a", "1").await.unwrap();
    one.catch_up().await.unwrap();
    let error = other.catch_up().await.unwrap_err();
    assert!(matches!(error, Error::Projection(ProjectionError::Overtaken { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    orders.put("a", "2").await.unwrap();
    other.catch_up().await.unwrap();
    assert!(one.catch_up().await.is_err(), "now it is the slower one");
    assert_eq!(applied(&derived).await, "2");
    other.rebuild(|_| ()).await.unwrap();
    orders.put("a", "3").await.unwrap();
    one.catch_up().await.unwrap();
    assert!(other.catch_up().await.is_err());
    assert_eq!(applied(&derived).await, "2", "one key there, and one change since");
}

pub(crate) async fn a_failing_reducer_loses_nothing(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mended = Arc::new(AtomicBool::new(false));
    let reducer = Squeamish { mended: Arc::clone(&mended) };
    let mut projection = orders.project("tally", &derived, reducer).await.unwrap();
    projection.catch_up().await.unwrap();
    orders.put("a", "1").await.unwrap();
    orders.put("a", "2").await.unwrap();
    let bad = orders.put("a", "bad").await.unwrap();
    orders.put("a", "3").await.unwrap();
    for _ in 0..2 {
        let error = projection.catch_up().await.unwrap_err();
        assert!(matches!(&error, Error::Projection(ProjectionError::Reducer { revision, source, .. })
            if *revision == bad && source.to_string() == "a bad value"));
        assert_eq!(applied(&derived).await, "2");
        assert_eq!(projection.position().await.unwrap(), Some(bad));
    }
    mended.store(true, Ordering::SeqCst);
    projection.catch_up().await.unwrap();
    assert_eq!(applied(&derived).await, "4");
}

pub(crate) async fn a_change_may_write_many_keys(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("wide", &derived, Wide).await.unwrap();
    projection.catch_up().await.unwrap();
    for _ in 0..4 {
        orders.put("a", "1").await.unwrap();
    }
    projection.catch_up().await.unwrap();
    let values = derived.scan("*").unwrap().collect().await.unwrap();
    assert_eq!(values.len(), 999);
    assert!(values.iter().all(|entry| entry.value == "4"));
}

pub(crate) async fn many_changes_are_committed_together(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("tally", &derived, Tally).await.unwrap();
    projection.catch_up().await.unwrap();
    let put = |n: u32| Operation::put(Key::parse(format!("k{n}")).unwrap(), "1");
    for _ in 0..3 {
        orders.commit((0..1000).map(put).collect::<Batch>()).await.unwrap();
    }
    let before = orders.info().await.unwrap().last_revision;
    projection.catch_up().await.unwrap();
    assert_eq!(applied(&derived).await, "3000");
    let taken = derived.info().await.unwrap().last_revision.get() - before.get();
    assert!(taken < 600, "{taken} revisions for 3000 changes");
}

pub(crate) async fn projections_can_be_chained(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let last = given.store.create_bucket("last").await.unwrap();
    let mut first = orders.project("counts", &derived, Count).await.unwrap();
    let mut second = derived.project("counts", &last, Count).await.unwrap();
    for key in ["a.1", "a.2", "b.1"] {
        orders.put(key, "1").await.unwrap();
        first.catch_up().await.unwrap();
        second.catch_up().await.unwrap();
    }
    // Two counters and three keys that were seen; the first projection's position is not among them.
    assert_eq!(counts(&last).await, BTreeMap::from([("count".into(), 2), ("seen".into(), 3)]));
}

pub(crate) async fn a_target_belongs_to_one_projection(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    orders.project("counts", &derived, Count).await.unwrap().catch_up().await.unwrap();
    let taken = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        matches!(error, Error::Projection(ProjectionError::TargetTaken { owner, of, .. })
            if owner.as_str() == "counts" && of == "orders")
    };
    assert!(taken(orders.project("other", &derived, Tally).await.unwrap_err()));
    let other = given.store.create_bucket("other").await.unwrap();
    assert!(taken(other.project("counts", &derived, Tally).await.unwrap_err()));
    let itself = orders.project("self", &orders, Tally).await.unwrap_err();
    assert!(matches!(itself, Error::Projection(ProjectionError::IntoItself { .. })));
    let ttl = Some(std::time::Duration::from_secs(1));
    let fleeting = BucketConfig { ttl, ..BucketConfig::default() };
    let fleeting = given.store.create_bucket_with("fleeting", fleeting).await.unwrap();
    assert_eq!(orders.project("c", &fleeting, Tally).await.unwrap_err().kind(), ErrorKind::Invalid);
    orders.put("a", "1").await.unwrap();
    let failed = orders.project("r", &other, Meddler).await.unwrap().catch_up().await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Invalid, "its position is not the reducer's business");
}

pub(crate) async fn a_projection_lets_go_of_the_feed_behind_it(given: Given) {
    let (orders, derived) = buckets(&given.store).await;
    let mut projection = orders.project("tally", &derived, Tally).await.unwrap();
    projection.catch_up().await.unwrap();
    for n in 0..10 {
        orders.put("a", n.to_string()).await.unwrap();
    }
    let held = orders.consumer("projection-derived").await.unwrap();
    assert!(held.lag >= 10);
    projection.catch_up().await.unwrap();
    assert_eq!(orders.consumer("projection-derived").await.unwrap().lag, 0);
}

/// Only the in-memory engine forgets its feed as fast as that.
#[test]
fn a_projection_too_far_behind_is_rebuilt() {
    crate::run(async {
        let (orders, derived) = buckets(&Store::in_memory()).await;
        let mut projection = orders.project("counts", &derived, Count).await.unwrap();
        projection.catch_up().await.unwrap();
        outrun_the_feed(&orders).await;
        let mut again = orders.project("counts", &derived, Count).await.unwrap();
        for projection in [&mut projection, &mut again] {
            let error = projection.catch_up().await.unwrap_err();
            assert!(matches!(error, Error::Projection(ProjectionError::Behind { .. })), "{error}");
            assert_eq!((error.kind(), error.help()), (ErrorKind::Compacted, "rebuild the projection"));
        }
        projection.rebuild(|_| ()).await.unwrap();
        check(&orders, &derived).await;
    });
}

#[test]
fn a_position_that_cannot_be_read_is_reported_and_replaced() {
    crate::run(async {
        let engine = Arc::new(MemoryEngine::new());
        let (orders, derived) = buckets(&Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>)).await;
        orders.put("a.1", "1").await.unwrap();
        // Past the library, which lets nobody but the projection write there.
        let position = Key::parse_reserved("_kv.projection.counts").unwrap();
        engine.commit(derived.name(), Batch::new().put(position, "rubbish")).await.unwrap();
        let mut projection = orders.project("counts", &derived, Count).await.unwrap();
        assert_eq!(projection.catch_up().await.unwrap_err().kind(), ErrorKind::Corrupt);
        projection.rebuild(|_| ()).await.unwrap();
        check(&orders, &derived).await;
    });
}

/// Lets the engine crash after so many steps of `act`, from every step on, until nothing is left to crash. Each
/// time, `before` prepares a new store and `after` must find everything in order. Returns how many steps there were.
async fn crash_at_every_step(
    before: impl AsyncFn(&Bucket, &Bucket),
    act: impl AsyncFn(&Bucket, &Bucket) -> Result<(), Error>,
    after: impl AsyncFn(&Bucket, &Bucket),
) -> usize {
    for steps in 0..10_000 {
        let engine = Arc::new(Frail::new());
        let fuse = Arc::clone(&engine.fuse);
        let (orders, derived) = buckets(&Store::with_engine(engine)).await;
        before(&orders, &derived).await;
        fuse.set(steps);
        let result = act(&orders, &derived).await;
        let crashed = fuse.is_blown();
        fuse.set(usize::MAX);
        after(&orders, &derived).await;
        if !crashed {
            result.expect("nothing went wrong");
            return steps;
        }
        assert!(result.is_err(), "a crash at step {steps} was not noticed");
    }
    panic!("it crashes for ever");
}

/// Whatever is not applied must still be held for the projection, unless it is to be rebuilt.
async fn holds_the_feed<R: Reducer>(source: &Bucket, projection: &mut Projection<R>) {
    let held = source.consumer("projection-derived").await.unwrap().info.next;
    assert!(projection.position().await.unwrap().is_none_or(|next| held <= next));
}

#[test]
fn a_crash_between_any_two_steps_applies_nothing_twice() {
    async fn write(orders: &Bucket) {
        for n in 0..5 {
            orders.put("a", n.to_string()).await.unwrap();
        }
    }
    within(TEST_TIME_MAX, || {
        let steps = pollster::block_on(crash_at_every_step(
            async |orders, derived| {
                orders.project("tally", derived, Tally).await.unwrap().catch_up().await.unwrap();
                write(orders).await;
            },
            async |orders, derived| orders.project("tally", derived, Tally).await?.catch_up().await,
            async |orders, derived| {
                write(orders).await;
                let mut projection = orders.project("tally", derived, Tally).await.unwrap();
                holds_the_feed(orders, &mut projection).await;
                projection.catch_up().await.unwrap();
                assert_eq!(applied(derived).await, "10");
                assert_eq!(orders.consumer("projection-derived").await.unwrap().lag, 0);
            },
        ));
        assert!(steps > 15, "{steps} steps");
    });
}

#[test]
fn a_crash_between_any_two_steps_of_a_rebuild_skips_nothing() {
    within(TEST_TIME_MAX, || {
        let steps = pollster::block_on(crash_at_every_step(
            async |orders, derived| {
                for key in ["a", "b", "c", "d", "e"] {
                    orders.put(key, "1").await.unwrap();
                }
                orders.project("copies", derived, Spread).await.unwrap().catch_up().await.unwrap();
                orders.delete("a").await.unwrap();
                orders.put("f", "1").await.unwrap();
            },
            async |orders, derived| {
                let mut projection = orders.project("copies", derived, Spread).await?;
                projection.rebuild(|_| ()).await?;
                projection.catch_up().await
            },
            async |orders, derived| {
                orders.delete("b").await.unwrap();
                orders.put("g", "1").await.unwrap();
                let mut projection = orders.project("copies", derived, Spread).await.unwrap();
                holds_the_feed(orders, &mut projection).await;
                projection.catch_up().await.unwrap();
                for key in orders.keys(">").unwrap().collect().await.unwrap() {
                    assert_eq!(derived.count(format!("{key}.*")).await.unwrap(), COPIES, "{key}");
                }
                let own = derived.count(Selection::prefix("_kv")).await.unwrap();
                assert_eq!(
                    derived.count(">").await.unwrap() - own,
                    COPIES * orders.count(">").await.unwrap()
                );
            },
        ));
        assert!(steps > 30, "{steps} steps");
    });
}

/// A projection can be handed to a runtime with several threads.
#[test]
fn running_a_projection_is_send() {
    fn check<T: Send>(value: T) -> T {
        value
    }
    crate::run(async {
        let (orders, derived) = buckets(&Store::in_memory()).await;
        let mut projection = check(orders.project("tally", &derived, Tally)).await.unwrap();
        check(projection.catch_up()).await.unwrap();
        check(projection.rebuild(|_| ())).await.unwrap();
        assert!(check(projection.run()).now_or_never().is_none());
    });
}
