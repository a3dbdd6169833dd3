use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use pleach_engine::Engine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::super::{
    DeleteOptions, DeleteOutcome, Expect, GetOutcome, ListOptions, MapStore, PutOptions, PutOutcome,
    StateEntry, StateRevision,
};
use super::given::*;

/// What is done to a map of one of two principals.
#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, value: u8, expect: Guess, ttl: Option<u64> },
    Delete { key: usize, expect: Option<Guess> },
    Get { key: usize },
    List { path: usize, offset: u64, limit: usize },
    Pass { milliseconds: u64 },
    Switch,
}

impl Step {
    /// The same where time cannot be told to pass.
    fn without_time(self) -> Self {
        match self {
            Self::Put { key, value, expect, .. } => Self::Put { key, value, expect, ttl: None },
            Self::Pass { .. } => Self::Switch,
            other => other,
        }
    }
}

/// What a write expects.
#[derive(Clone, Copy, Debug)]
enum Guess {
    Nothing,
    Absent,
    /// The revision that the key had last.
    Right,
    /// One that it had before, or never.
    Wrong,
}

const KEYS: [&str; 8] = ["a", "a/b", "a/b/c", "a/bc", "b", "\0", "\u{ffff}", "a/"];
const PATHS: [&str; 4] = ["", "a", "a/b", "b"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let guess =
        || prop_oneof![Just(Guess::Nothing), Just(Guess::Absent), Just(Guess::Right), Just(Guess::Wrong)];
    let put = (0..KEYS.len(), any::<u8>(), guess(), proptest::option::weighted(0.4, 1..50_u64))
        .prop_map(|(key, value, expect, ttl)| Step::Put { key, value, expect, ttl });
    let delete =
        (0..KEYS.len(), proptest::option::of(guess())).prop_map(|(key, expect)| Step::Delete { key, expect });
    let list = (0..PATHS.len(), 0..6_u64, 0..5_usize).prop_map(|(path, offset, limit)| Step::List {
        path,
        offset,
        limit,
    });
    let step = prop_oneof![
        5 => put,
        2 => delete,
        2 => (0..KEYS.len()).prop_map(|key| Step::Get { key }),
        3 => list,
        2 => (1..30_u64).prop_map(|milliseconds| Step::Pass { milliseconds }),
        1 => Just(Step::Switch),
    ];
    vec(step, 1..60)
}

/// A plain map of entries, with when each is gone.
#[derive(Clone, Debug, Default)]
struct Model {
    entries: BTreeMap<String, (StateEntry<Value>, Option<u64>)>,
    /// The last revision of each key, there or not.
    last: BTreeMap<String, StateRevision>,
}

impl Model {
    fn live(&self, key: &str, now: u64) -> Option<&StateEntry<Value>> {
        let (entry, gone) = self.entries.get(key)?;
        gone.is_none_or(|gone| now < gone).then_some(entry)
    }

    fn revision(&self, guess: Guess, key: &str) -> StateRevision {
        let never = "r0".parse().unwrap();
        match guess {
            Guess::Right => self.last.get(key).copied().unwrap_or(never),
            Guess::Nothing | Guess::Absent | Guess::Wrong => never,
        }
    }
}

pub(super) async fn state_agrees_with_a_plain_map(given: Given) {
    let cases = if given.engine.capabilities().persistent { 24 } else { 200 };
    let is_exact = given.is_exact;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let round = Cell::new(0_u32);
    let played = runner.run(&steps(), |steps| {
        round.set(round.get() + 1);
        // Each history has principals of its own.
        let steps = if is_exact { steps } else { steps.into_iter().map(Step::without_time).collect() };
        let names = ["user", "device"].map(|kind| format!("{kind}:{}", round.get()));
        pollster::block_on(play(&given, &names, steps));
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
}

async fn play(given: &Given, names: &[String; 2], steps: Vec<Step>) {
    let stores = [0, 1].map(|who| given.session(&names[who], &first()).map::<Value>("anything").unwrap());
    let mut models = [Model::default(), Model::default()];
    let (mut who, mut now) = (0, 0);
    for step in steps {
        let (store, model) = (&stores[who], &mut models[who]);
        match step {
            Step::Put { key, value, expect, ttl } => {
                put(store, model, KEYS[key], json!(value), expect, ttl, now).await;
            }
            Step::Delete { key, expect } => delete(store, model, KEYS[key], expect, now).await,
            Step::Get { key } => {
                let got = store.get(KEYS[key]).await.unwrap();
                let expected = model.live(KEYS[key], now).cloned();
                assert_eq!(got, expected.map_or(GetOutcome::Absent, GetOutcome::Found));
            }
            Step::List { path, offset, limit } => list(store, model, PATHS[path], offset, limit, now).await,
            Step::Pass { milliseconds } => {
                given.advance(milliseconds);
                now += milliseconds;
            }
            Step::Switch => who = 1 - who,
        }
    }
}

async fn put(
    store: &MapStore<Value>,
    model: &mut Model,
    key: &str,
    value: Value,
    guess: Guess,
    ttl: Option<u64>,
    now: u64,
) {
    let expect = match guess {
        Guess::Nothing => Expect::Anything,
        Guess::Absent => Expect::Absent,
        Guess::Right | Guess::Wrong => Expect::Revision(model.revision(guess, key)),
    };
    let options = PutOptions { expect, ttl: ttl.map(Duration::from_millis) };
    let outcome = store.put_with(key, &value, options).await.unwrap();
    let live = model.live(key, now);
    let holds = match expect {
        Expect::Anything => true,
        Expect::Absent => live.is_none(),
        Expect::Revision(revision) => live.is_some_and(|entry| entry.revision == revision),
    };
    match outcome {
        PutOutcome::Applied(entry) => {
            assert!(holds, "{key:?} {guess:?}");
            assert_eq!((entry.key.as_deref(), &entry.value), (Some(key), &value));
            model.last.insert(key.to_owned(), entry.revision);
            model.entries.insert(key.to_owned(), (entry, ttl.map(|ttl| now + ttl)));
        }
        PutOutcome::Absent => assert!(!holds && live.is_none()),
        PutOutcome::Present(entry) => {
            assert!(!holds);
            assert_eq!(Some(&entry), live);
        }
        PutOutcome::MigrationRequired(_) => panic!("there is one version"),
    }
}

async fn delete(store: &MapStore<Value>, model: &mut Model, key: &str, guess: Option<Guess>, now: u64) {
    let expect = guess.map(|guess| model.revision(guess, key));
    let outcome = store.delete_with(key, DeleteOptions { expect }).await.unwrap();
    let holds =
        model.live(key, now).is_some_and(|entry| expect.is_none_or(|expected| expected == entry.revision));
    assert_eq!(outcome == DeleteOutcome::Deleted, holds);
    if holds {
        model.entries.remove(key);
    }
}

async fn list(store: &MapStore<Value>, model: &Model, path: &str, offset: u64, limit: usize, now: u64) {
    let start = if path.is_empty() { String::new() } else { format!("{path}/") };
    let live = model.entries.keys().filter(|key| model.live(key, now).is_some());
    let names: Vec<&str> =
        live.filter_map(|key| key.strip_prefix(&start)).filter(|key| !key.is_empty()).collect();
    let count = names.len() as u64;
    let view = if path.is_empty() { store.clone() } else { store.prefix(path) };
    let page = view.list(ListOptions { offset, limit }).await.unwrap();
    let wanted: Vec<&str> =
        names.iter().skip(usize::try_from(offset).unwrap()).take(limit).copied().collect();
    let next = offset + wanted.len() as u64;
    assert_eq!((page.count, keys(&page)), (count, wanted));
    assert_eq!(page.next_offset, (limit > 0 && next < count).then_some(next));
}
