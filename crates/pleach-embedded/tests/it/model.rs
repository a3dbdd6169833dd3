use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, Check, Clock, Compression, Direction, Engine, EngineError,
    Expectation, Expiry, KeyFilter, KeyRange, MemoryEngine, Operation, Revision, ScanQuery, Selection,
    WatchQuery, WatchStart,
};
use pollster::block_on;
use proptest::prelude::*;

use crate::store::{Store, bucket, key, small};

/// Few keys and buckets, so that operations meet.
const KEYS: [&str; 8] = ["a", "a.b", "a.b.c", "a/b", "b", "b.a", "c=", "c.d-e"];
/// How long the engine may take to record what has expired: it syncs that, on a disk that others may keep busy.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(600);
const BUCKETS: [&str; 2] = ["one", "two"];

#[derive(Clone, Debug)]
enum Step {
    Commit { bucket: usize, operations: Vec<(usize, Do, Expect)> },
    Read { bucket: usize, key: usize, back: Option<u64> },
    History { bucket: usize, key: usize },
    Scan { bucket: usize, selection: usize, backward: bool, limit: usize, keys_only: bool },
    Count { bucket: usize, selection: usize },
    Replay { bucket: usize, back: u64 },
    Compact { bucket: usize, key: usize, keep: u8 },
    Configure { bucket: usize, history: u8, ttl_ms: Option<u64>, lz4: bool },
    Recreate { bucket: usize },
    Advance { ms: u64 },
    Reopen,
}

#[derive(Clone, Debug)]
enum Do {
    Put {
        size: usize,
        ttl_ms: Option<u64>,
    },
    Delete,
    Purge,
    /// Writes nothing, and demands what is expected of the key.
    Check,
}

#[derive(Clone, Debug)]
enum Expect {
    Any,
    Absent,
    /// The newest record of the key, as its history has it.
    Newest,
    Revision(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (bucket, at) = (0..BUCKETS.len(), 0..KEYS.len());
    let action = prop_oneof![
        6 => (prop_oneof![0..40_usize, 400..1200_usize], prop::option::weighted(0.3, 1..500_u64))
            .prop_map(|(size, ttl_ms)| Do::Put { size, ttl_ms }),
        2 => Just(Do::Delete),
        1 => Just(Do::Purge),
        1 => Just(Do::Check),
    ];
    let expect = prop_oneof![
        4 => Just(Expect::Any),
        2 => Just(Expect::Absent),
        2 => Just(Expect::Newest),
        1 => (0..60_u64).prop_map(Expect::Revision),
    ];
    let operations = prop::collection::vec((at.clone(), action, expect), 1..4);
    let ttl = prop::option::of(1..400_u64);
    prop_oneof![
        12 => (bucket.clone(), operations).prop_map(|(bucket, operations)| Step::Commit { bucket, operations }),
        4 => (bucket.clone(), at.clone(), prop::option::of(0..20_u64))
            .prop_map(|(bucket, key, back)| Step::Read { bucket, key, back }),
        2 => (bucket.clone(), at.clone()).prop_map(|(bucket, key)| Step::History { bucket, key }),
        3 => (bucket.clone(), 0..6_usize, any::<bool>(), 1..5_usize, any::<bool>()).prop_map(
            |(bucket, selection, backward, limit, keys_only)| Step::Scan { bucket, selection, backward, limit, keys_only }
        ),
        2 => (bucket.clone(), 0..6_usize).prop_map(|(bucket, selection)| Step::Count { bucket, selection }),
        1 => (bucket.clone(), 0..30_u64).prop_map(|(bucket, back)| Step::Replay { bucket, back }),
        1 => (bucket.clone(), at, 1..4_u8).prop_map(|(bucket, key, keep)| Step::Compact { bucket, key, keep }),
        1 => (bucket.clone(), 1..5_u8, ttl, any::<bool>())
            .prop_map(|(bucket, history, ttl_ms, lz4)| Step::Configure { bucket, history, ttl_ms, lz4 }),
        1 => bucket.prop_map(|bucket| Step::Recreate { bucket }),
        3 => (1..300_u64).prop_map(|ms| Step::Advance { ms }),
        1 => Just(Step::Reopen),
    ]
}

fn selection(number: usize) -> Selection {
    match number {
        0 => Selection::all(),
        1 => Selection::prefix("a."),
        2 => Selection::filter(KeyFilter::parse("*.b").expect("a filter")),
        3 => Selection::filter(KeyFilter::parse("a.>").expect("a filter")),
        4 => Selection::range(KeyRange::between("a/", "c")),
        _ => Selection::range(KeyRange::between("z", "a")),
    }
}

/// Different in every bucket, so that what expires in two of them has an order.
fn ttl(ms: u64, bucket: usize) -> Duration {
    Duration::from_millis(ms) + Duration::from_micros(bucket as u64)
}

/// The engine under test beside the oracle, on one clock.
struct Pair {
    store: Store,
    engine: EmbeddedEngine,
    oracle: MemoryEngine,
}

impl Pair {
    fn new() -> Self {
        // The cleaner takes revisions of its own now and then; without it both give the same ones.
        let store = Store::with(Settings { clean: false, ..small() });
        let oracle = MemoryEngine::with_clock(Arc::clone(&store.clock) as Arc<dyn Clock>);
        let pair = Self { engine: store.open(), oracle, store };
        for name in BUCKETS {
            pair.same(|engine| block_on(engine.create_bucket(&bucket(name), BucketConfig::default())));
        }
        pair
    }

    /// Asks both, and expects one answer.
    fn same<T: std::fmt::Debug, E: std::fmt::Display>(
        &self,
        ask: impl Fn(&dyn Engine) -> Result<T, E>,
    ) -> String {
        let text = |result: Result<T, E>| match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("error: {error}"),
        };
        let (found, expected) = (text(ask(&self.engine)), text(ask(&self.oracle)));
        assert_eq!(found, expected, "the oracle says the second");
        found
    }

    /// Waits until the engine has recorded what has expired; the oracle does so at once.
    #[allow(clippy::disallowed_methods, reason = "the engine's own threads run in real time")]
    fn settle(&self) {
        let give_up = Instant::now() + SETTLE_TIMEOUT;
        for name in BUCKETS.map(bucket) {
            let last =
                |engine: &dyn Engine| block_on(engine.bucket(&name)).expect("the bucket").last_revision;
            while last(&self.engine) != last(&self.oracle) {
                assert!(
                    Instant::now() < give_up,
                    "expiry is recorded in {name}: {} {}, {:?}",
                    last(&self.engine),
                    last(&self.oracle),
                    self.engine.status()
                );
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Advance { ms } => self.store.clock.advance(Duration::from_millis(*ms)),
            Step::Reopen => {
                block_on(self.engine.close()).expect("it closes");
                self.engine = self.store.open();
            }
            step => drop(self.same(|engine| self.ask(engine, step))),
        }
        self.settle();
    }

    fn ask(&self, engine: &dyn Engine, step: &Step) -> Result<String, String> {
        let name = |number: &usize| bucket(BUCKETS[*number]);
        match step {
            Step::Commit { bucket, operations } => {
                let batch = self.batch(*bucket, operations);
                let result = block_on(engine.commit(&name(bucket), batch));
                result.map(|committed| format!("{committed:?}")).map_err(|error| error.to_string())
            }
            Step::Read { bucket, key: at, back } => {
                let at_revision = back.map_or(At::Latest, |back| At::Revision(self.back(back)));
                show(block_on(engine.read(&name(bucket), &key(KEYS[*at]), at_revision)))
            }
            Step::History { bucket, key: at } => {
                show(block_on(engine.history(&name(bucket), &key(KEYS[*at]))))
            }
            Step::Scan { bucket, selection: number, backward, limit, keys_only } => {
                let direction = if *backward { Direction::Backward } else { Direction::Forward };
                let (limit, keys_only) = (*limit, *keys_only);
                let query =
                    ScanQuery { selection: selection(*number), direction, limit, keys_only, page: None };
                show(all_pages(engine, &name(bucket), query))
            }
            Step::Count { bucket, selection: number } => {
                show(block_on(engine.count(&name(bucket), selection(*number))))
            }
            Step::Replay { bucket, back } => show(replay(engine, &name(bucket), self.back(*back))),
            Step::Compact { bucket, key: at, keep } => {
                let keep = NonZeroU8::new(*keep).expect("not zero");
                show(block_on(engine.compact_key(&name(bucket), &key(KEYS[*at]), keep)))
            }
            Step::Configure { bucket, history, ttl_ms, lz4 } => {
                let config = BucketConfig {
                    history: NonZeroU8::new(*history).expect("not zero"),
                    ttl: ttl_ms.map(|ms| ttl(ms, *bucket)),
                    compression: if *lz4 { Compression::Lz4 } else { Compression::None },
                    ..BucketConfig::default()
                };
                show(block_on(engine.update_bucket(&name(bucket), config)).map(|info| info.config))
            }
            Step::Recreate { bucket } => {
                block_on(engine.delete_bucket(&name(bucket))).map_err(|error| error.to_string())?;
                show(block_on(engine.create_bucket(&name(bucket), BucketConfig::default())))
            }
            Step::Advance { .. } | Step::Reopen => unreachable!("not a question"),
        }
    }

    /// A revision some steps before the newest.
    fn back(&self, steps: u64) -> Revision {
        let newest = |name| block_on(self.oracle.bucket(&bucket(name))).expect("the bucket").last_revision;
        let newest = BUCKETS.map(newest).into_iter().max().unwrap_or_default();
        Revision::new(newest.get().saturating_sub(steps))
    }

    fn batch(&self, number: usize, operations: &[(usize, Do, Expect)]) -> Batch {
        let name = bucket(BUCKETS[number]);
        let mut batch = Batch::new();
        for (at, action, expect) in operations {
            let at = key(KEYS[*at]);
            let newest = || {
                let history = block_on(self.oracle.history(&name, &at)).expect("a history");
                history.last().map_or(Revision::ZERO, |entry| entry.revision)
            };
            let expect = match expect {
                Expect::Any => Expectation::Any,
                Expect::Absent => Expectation::Absent,
                Expect::Newest => Expectation::Revision(newest()),
                Expect::Revision(revision) => Expectation::Revision(Revision::new(*revision)),
            };
            let operation = match (action, expect) {
                (Do::Put { size, ttl_ms }, _) => {
                    let expiry = ttl_ms.map_or(Expiry::Bucket, |ms| Expiry::After(ttl(ms, number)));
                    Operation::put(at, "0123456789".repeat(size / 10)).expiring(expiry)
                }
                (Do::Delete, _) => Operation::delete(at),
                (Do::Purge, _) => Operation::purge(at),
                (Do::Check, Expectation::Revision(revision)) => {
                    batch.push_check(Check::revision(at, revision));
                    continue;
                }
                (Do::Check, _) => {
                    batch.push_check(Check::absent(at));
                    continue;
                }
            };
            batch.push(operation.expecting(expect));
        }
        batch
    }
}

fn show<T: std::fmt::Debug>(result: Result<T, EngineError>) -> Result<String, String> {
    result.map(|value| format!("{value:?}")).map_err(|error| error.to_string())
}

fn all_pages(
    engine: &dyn Engine,
    name: &BucketName,
    mut query: ScanQuery,
) -> Result<Vec<String>, EngineError> {
    let mut entries = Vec::new();
    loop {
        let page = block_on(engine.scan(name, query.clone()))?;
        entries.extend(page.entries.iter().map(|entry| format!("{entry:?}")));
        let Some(next) = page.next else { return Ok(entries) };
        query.page = Some(next);
    }
}

/// The changes from a revision to the newest.
fn replay(engine: &dyn Engine, name: &BucketName, from: Revision) -> Result<Vec<String>, EngineError> {
    let info = block_on(engine.bucket(name))?;
    let newest = info.last_revision;
    let query = WatchQuery { start: WatchStart::Revision(from), ..WatchQuery::default() };
    let mut watch = block_on(engine.watch(name, query))?;
    let mut changes = Vec::new();
    loop {
        // A bucket without records is as old as its creation, which is no change.
        if from > newest || (newest == info.feed_floor && from >= newest) {
            return Ok(changes);
        }
        let next = block_on(std::future::poll_fn(|context| watch.as_mut().poll_next(context)));
        let event = next.expect("the watch goes on")?;
        let pleach_engine::WatchEvent::Change(change) = event else { continue };
        changes.push(format!("{change:?}"));
        if change.entry.revision == newest {
            return Ok(changes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_the_oracles(steps in prop::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.take(step);
        }
        for name in BUCKETS.map(bucket) {
            pair.same(|engine| all_pages(engine, &name, ScanQuery::default()));
            pair.same(|engine| block_on(engine.buckets()));
        }
    }
}
