use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Durability, Engine, Expectation, Operation, Revision,
    ScanQuery, WatchEvent, WatchQuery, WatchStart,
};
use pollster::block_on;

use crate::store::{Store, bucket, key};

const WRITERS: u64 = 3;
const READERS: u64 = 2;
const OPERATIONS: u64 = 1_500;
/// Enough for a batch of all of them to take a while to apply.
const KEYS: [&str; 16] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

/// The live entries: key to value and revision.
type State = BTreeMap<String, (String, u64)>;

/// The newest record of each key: its value, unless it is a marker, and its revision.
type Records = BTreeMap<String, (Option<String>, u64)>;

/// A commit's last revision, and the records after it.
type Commit = (u64, Records);

/// What a client did, when it began and ended by a clock that all share, and what it was told.
#[derive(Debug)]
struct Act {
    called: u64,
    returned: u64,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    Committed {
        last: u64,
    },
    /// The key, what was expected of it, and the revision the conflict names.
    Conflict {
        key: String,
        expected: Expectation,
        actual: Option<u64>,
    },
    Entry {
        key: String,
        entry: Option<(String, u64)>,
    },
    All(State),
}

#[test]
fn what_concurrent_clients_see_fits_one_order_of_commits() {
    for seed in 0..4 {
        let store = Store::new();
        let engine = store.open();
        // Without syncs, so that commits follow each other closely.
        let config = BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() };
        let name = bucket("b");
        block_on(engine.create_bucket(&name, config)).expect("the bucket is created");
        let acts = run(&engine, &name, seed);
        check(&states(&engine, &name), acts, seed);
    }
}

/// Lets clients loose on a few keys, and collects what they did.
fn run(engine: &dyn Engine, name: &BucketName, seed: u64) -> Vec<Act> {
    let clock = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let client = |number: u64| {
            let clock = &clock;
            scope.spawn(move || {
                let mut random = Random(seed * 1_000 + number + 1);
                let mut known = [Revision::ZERO; KEYS.len()];
                let act = |_| {
                    let called = clock.fetch_add(1, Ordering::SeqCst);
                    let reads = number >= WRITERS;
                    let seen = act(engine, name, &mut random, &mut known, reads);
                    Act { called, returned: clock.fetch_add(1, Ordering::SeqCst), seen }
                };
                (0..OPERATIONS).map(act).collect::<Vec<_>>()
            })
        };
        let clients: Vec<_> = (0..WRITERS + READERS).map(client).collect();
        clients.into_iter().flat_map(|client| client.join().expect("the client ends")).collect()
    })
}

fn act(
    engine: &dyn Engine,
    name: &BucketName,
    random: &mut Random,
    known: &mut [Revision],
    reads: bool,
) -> Seen {
    let at = random.below(KEYS.len());
    let value = random.next().to_string();
    let put = |at: usize| Operation::put(key(KEYS[at]), value.clone());
    let batch: Batch = match if reads { 7 + random.below(3) } else { random.below(10) } {
        0 | 1 => put(at).into(),
        2 => put(at).expecting(Expectation::Absent).into(),
        3 | 4 => put(at).expecting(Expectation::Revision(known[at])).into(),
        5 => Operation::delete(key(KEYS[at])).into(),
        6 => (0..KEYS.len()).map(put).collect(),
        7 => return Seen::All(all(engine, name)),
        _ => {
            let entry = block_on(engine.read(name, &key(KEYS[at]), At::Latest)).expect("a read");
            known[at] = entry.as_ref().map_or(Revision::ZERO, |entry| entry.revision);
            let entry = entry.map(|entry| (text(&entry.value), entry.revision.get()));
            return Seen::Entry { key: KEYS[at].into(), entry };
        }
    };
    match block_on(engine.commit(name, batch)) {
        Ok(committed) => {
            known[at] = committed.first;
            Seen::Committed { last: committed.last.get() }
        }
        Err(CommitError::Conflict(conflict)) => Seen::Conflict {
            key: conflict.key.to_string(),
            expected: conflict.expected,
            actual: conflict.actual.map(Revision::get),
        },
        Err(CommitError::Engine(error)) => unreachable!("the engine works: {error}"),
    }
}

fn all(engine: &dyn Engine, name: &BucketName) -> State {
    let page = block_on(engine.scan(name, ScanQuery::default())).expect("a scan");
    let entry =
        |entry: pleach_engine::Entry| (entry.key.to_string(), (text(&entry.value), entry.revision.get()));
    page.entries.into_iter().map(entry).collect()
}

/// The newest record of each key after each commit, as the feed tells it, with the commit's last revision. The
/// first is the empty bucket.
fn states(engine: &dyn Engine, name: &BucketName) -> Vec<Commit> {
    let info = block_on(engine.bucket(name)).expect("the bucket");
    let query = WatchQuery { start: WatchStart::Revision(info.feed_floor), ..WatchQuery::default() };
    let mut watch = block_on(engine.watch(name, query)).expect("a watch");
    let mut states = vec![(info.feed_floor.get(), BTreeMap::new())];
    let mut state = BTreeMap::new();
    loop {
        let next = block_on(std::future::poll_fn(|context| watch.as_mut().poll_next(context)));
        let next = next.expect("the watch goes on").expect("a change is due");
        let WatchEvent::Change(change) = next else { continue };
        let value = change.entry.op.is_put().then(|| text(&change.entry.value));
        let revision = change.entry.revision.get();
        state.insert(change.entry.key.to_string(), (value, revision));
        if change.batch.is_last() {
            states.push((revision, state.clone()));
        }
        if change.entry.revision == info.last_revision {
            return states;
        }
    }
}

/// Gives every act a place in the order of commits: the earliest that fits what it saw and comes after every
/// act that had returned before it was called. If that cannot be done for one, no order fits.
fn check(states: &[Commit], mut acts: Vec<Act>, seed: u64) {
    let place_of: BTreeMap<u64, usize> =
        states.iter().enumerate().map(|(place, (last, _))| (*last, place)).collect();
    let live: Vec<State> = states.iter().map(|(_, state)| live(state)).collect();
    acts.sort_by_key(|act| act.returned);
    let committed = acts.iter().filter(|act| matches!(act.seen, Seen::Committed { .. })).count();
    assert_eq!(
        committed,
        states.len() - 1,
        "seed {seed}: the feed has what was acknowledged, and nothing else"
    );
    // When each act so far returned, and the latest place that it or any before it has.
    let mut placed: Vec<(u64, usize)> = Vec::new();
    for act in &acts {
        let before = placed.partition_point(|(returned, _)| *returned < act.called);
        let earliest = before.checked_sub(1).map_or(0, |last| placed[last].1);
        let fits = |place: &usize| match &act.seen {
            Seen::Committed { .. } => false,
            Seen::Entry { key, entry } => live[*place].get(key) == entry.as_ref(),
            Seen::All(state) => live[*place] == *state,
            Seen::Conflict { key, expected, actual } => {
                let found = states[*place].1.get(key).map(|(_, revision)| *revision);
                let held = match expected {
                    Expectation::Any => true,
                    Expectation::Absent => !live[*place].contains_key(key),
                    Expectation::Revision(revision) => found == Some(revision.get()),
                };
                !held && found == *actual
            }
        };
        let place = match &act.seen {
            Seen::Committed { last } => place_of.get(last).copied().filter(|place| *place > earliest),
            _ => (earliest..states.len()).find(fits),
        };
        assert!(place.is_some(), "seed {seed}: no place from {earliest} on fits {act:?}");
        let place = place.unwrap_or_default();
        let latest = placed.last().map_or(place, |(_, latest)| place.max(*latest));
        placed.push((act.returned, latest));
    }
}

fn live(state: &Records) -> State {
    let live = |(key, (value, revision)): (&String, &(Option<String>, u64))| {
        value.clone().map(|value| (key.clone(), (value, *revision)))
    };
    state.iter().filter_map(live).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A small generator of numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % limit
    }
}
