use std::num::NonZeroU8;
use std::time::Duration;

use bytes::Bytes;
use pleach_engine::{
    Batch, BucketConfig, BucketName, Check, Compression, ConsumerName, ConsumerStart, Direction, Durability,
    Expectation, Expiry, Headers, Key, KeyFilter, KeyRange, Operation, Revision, ScanQuery, Selection,
    Timestamp,
};

use super::ask::Ask;
use super::dice::Dice;
use super::state::State;
use crate::Settings;
use crate::commit::ConsumerChange;

/// Few keys and buckets, so that operations meet.
const KEYS: [&str; 9] = ["a", "a.b", "a.b.c", "a/b", "b", "b.a", "c=", "c.d-e", "d"];
const BUCKETS: [&str; 3] = ["one", "two", "three"];
const CONSUMERS: [&str; 2] = ["mail", "search"];

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks for some writes, which become one group.
    Write,
    /// The same, with the group left to be applied later.
    WriteOnly,
    Reap,
    Upkeep,
    Seal,
    /// What is sealed may be written out at any moment.
    Flush,
    Clean,
    Read,
    Scan,
    NextPage,
    Watch,
    NextChanges,
    WatchHistory,
    NextHistory,
    Check,
    PassTime,
    JumpInTime,
    FailDisk,
    FillDisk,
    FailIndex,
    ArmCut,
    Cut,
    Kill,
    Rebuild,
    Close,
}

impl Step {
    /// Every step, with how likely it is beside the others.
    const ALL: [(Self, usize); 25] = [
        (Self::Write, 40),
        (Self::WriteOnly, 8),
        (Self::Reap, 8),
        (Self::Upkeep, 6),
        (Self::Seal, 3),
        (Self::Flush, 3),
        (Self::Clean, 14),
        (Self::Read, 8),
        (Self::Scan, 6),
        (Self::NextPage, 8),
        (Self::Watch, 3),
        (Self::NextChanges, 8),
        (Self::WatchHistory, 4),
        (Self::NextHistory, 3),
        (Self::Check, 3),
        (Self::PassTime, 8),
        (Self::JumpInTime, 2),
        (Self::FailDisk, 3),
        (Self::FillDisk, 2),
        (Self::FailIndex, 2),
        (Self::ArmCut, 3),
        (Self::Cut, 2),
        (Self::Kill, 2),
        (Self::Rebuild, 3),
        (Self::Close, 2),
    ];
}

/// How a run differs from others: how likely each step is, and how the store is set.
#[derive(Debug)]
pub(super) struct Plan {
    weights: Vec<usize>,
    pub(super) steps: usize,
    pub(super) settings: Settings,
    /// The fewer there are, the more is overwritten.
    keys: usize,
    buckets: usize,
    buffered_percent: usize,
    large_percent: usize,
    /// How often the cleaner is told what to clean, in no order that it would think of.
    pub(super) scattered_percent: usize,
    /// How often it goes through all segments in order.
    pub(super) pass_percent: usize,
    /// How likely it is that a commit, a compaction, an update, a creation, a deletion, and something about a
    /// consumer is asked for.
    asks: [usize; 6],
}

impl Plan {
    pub(super) fn new(dice: &mut Dice) -> Self {
        // Some kinds of steps are left out of a run, or are all of it: what never meets otherwise does then.
        let weight = |(_, weight): (Step, usize)| weight * *dice.pick(&[0, 1, 1, 1, 3]);
        let mut weights: Vec<_> = Step::ALL.into_iter().map(weight).collect();
        weights[0] = weights[0].max(20);
        let settings = Settings {
            segment_bytes: *dice.pick(&[300, 400, 700, 3000]),
            memtable_bytes: *dice.pick(&[300, 1000, 4000, 100_000]),
            feed_time: *dice.pick(&[None, None, Some(Duration::from_secs(2))]),
            feed_bytes: *dice.pick(&[None, Some(0), Some(0), Some(600), Some(2000)]),
            // What consumers wait for is never given up.
            consumer_bytes: u64::MAX,
            clean_bytes_per_second: u64::MAX,
            ..Settings::default()
        };
        let (buffered_percent, large_percent) = (*dice.pick(&[0, 30, 60, 100]), *dice.pick(&[0, 10, 40]));
        let longest = *dice.pick(&[40, 100, 100, 160]);
        let (steps, keys, buckets) =
            (dice.between(20, longest), *dice.pick(&[1, 2, 4, 9]), dice.between(1, BUCKETS.len()));
        let scattered_percent = *dice.pick(&[0, 50, 90, 100]);
        let pass_percent = *dice.pick(&[0, 30, 60]);
        let asks = *dice.pick(&[[80, 6, 4, 3, 1, 4], [80, 6, 4, 3, 1, 4], [60, 20, 14, 3, 2, 1]]);
        Self {
            weights,
            steps,
            settings,
            keys,
            buckets,
            buffered_percent,
            large_percent,
            scattered_percent,
            pass_percent,
            asks,
        }
    }

    pub(super) fn step(&self, dice: &mut Dice) -> Step {
        Step::ALL[dice.weighted(&self.weights)].0
    }

    /// Something to ask for in `state`.
    pub(super) fn ask(&self, dice: &mut Dice, state: &State) -> Ask {
        let name = self.bucket(dice);
        if !state.buckets.contains_key(&name) && dice.chance(80) {
            return Ask::Create(name, self.config(dice));
        }
        match dice.weighted(&self.asks) {
            0 => {
                let batch = self.batch(dice, state, &name);
                Ask::Commit(name, batch)
            }
            1 => Ask::Compact(name, self.key(dice), NonZeroU8::MIN.saturating_add(*dice.pick(&[0, 0, 1, 2]))),
            2 => Ask::Update(name, self.config(dice)),
            3 => match state.buckets.get(&name) {
                Some(bucket) if dice.chance(50) => Ask::Create(name, bucket.config.clone()),
                _ => Ask::Create(name, self.config(dice)),
            },
            4 => Ask::Delete(name),
            _ => consumer(dice, state, name),
        }
    }

    fn config(&self, dice: &mut Dice) -> BucketConfig {
        let buffered = dice.chance(self.buffered_percent);
        BucketConfig {
            history: NonZeroU8::MIN.saturating_add(*dice.pick(&[0, 0, 1, 2, 5])),
            ttl: dice.chance(30).then(|| Duration::from_millis(dice.between(1, 3000) as u64)),
            durability: if buffered { Durability::Buffered } else { Durability::Synced },
            compression: *dice.pick(&[Compression::None, Compression::None, Compression::Lz4]),
            value_bytes_max: *dice.pick(&[100_000, 100_000, 100_000, 600]),
            marker_ttl: *dice.pick(&[
                None,
                Some(Duration::from_millis(1)),
                Some(Duration::from_millis(1)),
                Some(Duration::from_secs(1)),
            ]),
            feed_time: *dice.pick(&[None, None, Some(Duration::from_millis(500))]),
            feed_bytes: *dice.pick(&[None, None, Some(0), Some(1500)]),
            ..BucketConfig::default()
        }
    }

    fn batch(&self, dice: &mut Dice, state: &State, name: &BucketName) -> Batch {
        let count = if dice.chance(10) { self.keys } else { dice.between(1, self.keys.min(3)) };
        let (first, all_go) = (dice.below(self.keys), dice.chance(12));
        let key = |place: usize| Key::parse(KEYS[(first + place) % self.keys]).expect("a key");
        let mut batch: Batch = (0..count)
            .map(|place| {
                let key = key(place);
                if all_go { Operation::delete(key) } else { self.operation(dice, state, name, key) }
            })
            .collect();
        if count < self.keys && dice.chance(20) {
            batch.push_check(self.check(dice, state, name, key(count)));
        }
        batch
    }

    /// A check of a key that the batch does not write.
    fn check(&self, dice: &mut Dice, state: &State, name: &BucketName, key: Key) -> Check {
        let newest = state.buckets.get(name).and_then(|bucket| bucket.newest(&key));
        match (newest, dice.weighted(&[20, 70, 10])) {
            (None, 0 | 1) | (Some(_), 0) => Check::absent(key),
            (Some(newest), 1) => Check::revision(key, newest.revision),
            (_, _) => Check::revision(key, Revision::new(dice.word() % 40)),
        }
    }

    fn operation(&self, dice: &mut Dice, state: &State, name: &BucketName, key: Key) -> Operation {
        let newest = state.buckets.get(name).and_then(|bucket| bucket.newest(&key));
        let expect = match dice.weighted(&[60, 12, 22, 3]) {
            0 => Expectation::Any,
            1 => Expectation::Absent,
            2 => newest.map_or(Expectation::Absent, |newest| Expectation::Revision(newest.revision)),
            _ => Expectation::Revision(Revision::new(dice.word() % 40)),
        };
        let operation = match dice.weighted(&[70, 20, 10]) {
            0 => {
                let expiry = match dice.weighted(&[75, 20, 5]) {
                    0 => Expiry::Bucket,
                    1 => Expiry::After(Duration::from_millis(dice.between(1, 4000) as u64)),
                    _ => Expiry::At(Timestamp::from_micros(1_800_000_000_000_000 + dice.word() % 10_000_000)),
                };
                Operation::put(key, self.value(dice)).expiring(expiry)
            }
            1 => Operation::delete(key),
            _ => Operation::purge(key),
        };
        let mut headers = Headers::new();
        if dice.chance(15) {
            headers.set("origin", &dice.below(1000).to_string()).expect("a header");
        }
        operation.expecting(expect).with_headers(headers)
    }

    pub(super) fn bucket(&self, dice: &mut Dice) -> BucketName {
        BucketName::parse(dice.pick(&BUCKETS[..self.buckets])).expect("a name")
    }

    pub(super) fn key(&self, dice: &mut Dice) -> Key {
        Key::parse(dice.pick(&KEYS[..self.keys])).expect("a key")
    }

    /// Some are kept in the index, some are not; some can be compressed, some cannot.
    fn value(&self, dice: &mut Dice) -> Bytes {
        let len = if dice.chance(self.large_percent) { dice.between(500, 3000) } else { dice.below(60) };
        let byte = u8::try_from(dice.below(256)).expect("a byte");
        if dice.chance(50) {
            return vec![byte; len].into();
        }
        let mut noise = dice.word();
        (0..len)
            .map(|_| u8::try_from(crate::random::seeded::next(&mut noise) % 256).expect("a byte"))
            .collect()
    }
}

/// Something to do to a consumer.
fn consumer(dice: &mut Dice, state: &State, bucket: BucketName) -> Ask {
    let name = ConsumerName::parse(dice.pick(&CONSUMERS)).expect("a name");
    let revision = Revision::new(dice.word() % (state.newest.get() + 3));
    let start = *dice.pick(&[ConsumerStart::Oldest, ConsumerStart::Now, ConsumerStart::Revision(revision)]);
    let change = match dice.weighted(&[40, 40, 10, 10]) {
        0 => ConsumerChange::Create(start),
        1 => ConsumerChange::Acknowledge(revision),
        2 => ConsumerChange::Reset(start),
        _ => ConsumerChange::Delete,
    };
    Ask::Consumer(bucket, name, change)
}

/// A question about many keys.
pub(super) fn query(dice: &mut Dice) -> ScanQuery {
    let filter = |text| Selection::filter(KeyFilter::parse(text).expect("a filter"));
    let selection = match dice.below(6) {
        0 => Selection::prefix("a"),
        1 => filter("*.b"),
        2 => filter("a.>"),
        3 => Selection::range(KeyRange::between("a/", "c")),
        _ => Selection::all(),
    };
    let direction = *dice.pick(&[Direction::Forward, Direction::Backward]);
    ScanQuery { selection, direction, limit: dice.between(1, 4), keys_only: dice.chance(20), page: None }
}
