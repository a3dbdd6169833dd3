//! Eight writers of old contracts, four readers and an operator who applies new ones at random moments: once an apply has
//! returned, nothing is stored any more that the contract before it would have allowed and this one does not, and no
//! update is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pleach_contract::Contract;
use pleach_engine::{
    At, Batch, CommitError, Engine, EngineError, Entry, Expectation, Key, Operation, Revision, ScanQuery,
};
use pleach_stores::{ApplyOptions, AuthorityError, PlanOptions};
use serde_json::{Value, json};

use crate::given::{NOTES, name, notes};
use crate::process::{Process, Shared};

const WRITERS: u64 = 8;
const READERS: usize = 4;
/// Keys that writers share.
const COUNTERS: u64 = 3;
/// Updates that each writer makes of shared keys; it makes as many of its own.
const UPDATES: u64 = 12;
const APPLIES: u64 = 4;

/// Notes of a generation that is at least this one.
fn generation(least: u64) -> Contract {
    notes(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "generation": {"type": "integer", "minimum": least}},
        "required": ["n", "generation"],
    }))
}

/// What everyone knows of each other.
#[derive(Default)]
struct Stage {
    /// Updates that succeeded.
    done: AtomicU64,
    /// The newest revision when the contract of a generation had been applied.
    applied: Mutex<BTreeMap<u64, Revision>>,
    is_over: AtomicBool,
}

impl Stage {
    /// Fails if an entry is newer than a contract that it does not keep.
    fn check(&self, entry: &Entry) {
        let found = number(entry, "generation");
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        for (least, revision) in applied.iter() {
            let is_fine = entry.revision <= *revision || found >= *least;
            assert!(
                is_fine,
                "{} is of generation {found}, after {least} was applied at {revision}",
                entry.key
            );
        }
    }
}

fn number(entry: &Entry, field: &str) -> u64 {
    let value: Value = serde_json::from_slice(&entry.value).unwrap();
    value[field].as_u64().unwrap()
}

fn key(text: String) -> Key {
    Key::parse(text).unwrap()
}

/// Writes by the contract it was made for, until it is refused; then it is replaced by a program of the next one.
struct Writer<'a> {
    process: Process,
    stage: &'a Stage,
    number: u64,
    generation: u64,
}

impl Writer<'_> {
    /// Adds one to a key, however often others are faster and whichever contract it takes.
    async fn update(&mut self, at: &Key) {
        loop {
            let entry = self.process.engine.read(&name(NOTES), at, At::Latest).await.unwrap();
            let seen = entry.as_ref().map_or(0, |entry| number(entry, "n"));
            let expect = entry.map_or(Expectation::Absent, |entry| Expectation::Revision(entry.revision));
            if self.write(at, seen + 1, expect).await {
                return;
            }
        }
    }

    async fn write(&mut self, at: &Key, n: u64, expect: Expectation) -> bool {
        let value = json!({"n": n, "generation": self.generation}).to_string();
        let put = Operation::put(at.clone(), value).expecting(expect);
        match self.process.engine.commit(&name(NOTES), Batch::from(put)).await {
            Ok(_) => {
                self.stage.done.fetch_add(1, Ordering::SeqCst);
                true
            }
            Err(CommitError::Conflict(conflict)) => {
                assert_eq!(conflict.key, *at, "nobody sees the conflict of a fence");
                false
            }
            Err(CommitError::Engine(EngineError::BrokenContract { .. })) => {
                self.generation += 1;
                false
            }
            Err(other) => panic!("{other}"),
        }
    }

    async fn run(mut self) {
        for round in 0..UPDATES {
            self.update(&key(format!("shared.{}", (round + self.number) % COUNTERS))).await;
            let own = key(format!("own.{}", self.number));
            while !self.write(&own, round + 1, Expectation::Any).await {}
        }
    }
}

/// Reads everything again and again.
async fn read(process: Process, stage: &Stage) {
    let mut seen: BTreeMap<Key, u64> = BTreeMap::new();
    while !stage.is_over.load(Ordering::SeqCst) {
        let page = process.engine.scan(&name(NOTES), ScanQuery::default()).await.unwrap();
        for entry in page.entries {
            stage.check(&entry);
            let n = number(&entry, "n");
            let before = seen.insert(entry.key.clone(), n).unwrap_or_default();
            assert!(before <= n, "{} went back from {before} to {n}", entry.key);
        }
    }
}

/// Applies one contract after another, each when some more updates are done: how many, chance says.
async fn operate(process: Process, stage: &Stage, seed: u64) {
    let mut chance = seed;
    let mut until = 0;
    for least in 1..=APPLIES {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        until += (chance >> 33) % (2 * UPDATES * WRITERS / (APPLIES + 1));
        while stage.done.load(Ordering::SeqCst) < until {
            thread::yield_now();
        }
        // An acknowledgement does not cover what was written since the plan: then there is another plan.
        loop {
            let plan = process.contracts.plan(&generation(least), PlanOptions::default()).await.unwrap();
            let options = ApplyOptions::by("ann").acknowledging("older generations may stay");
            match process.contracts.apply(&plan, options).await {
                Ok(_) => break,
                Err(AuthorityError::Violators { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let revision = process.engine.bucket(&name(NOTES)).await.unwrap().last_revision;
        stage.applied.lock().unwrap_or_else(PoisonError::into_inner).insert(least, revision);
    }
}

fn show(shared: &Shared) {
    let process = || pollster::block_on(shared.process());
    let operator = process();
    let plan = pollster::block_on(operator.contracts.plan(&generation(0), PlanOptions::default())).unwrap();
    pollster::block_on(operator.contracts.apply(&plan, ApplyOptions::by("ann"))).unwrap();
    let stage = Stage::default();
    thread::scope(|scope| {
        let stage = &stage;
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let writer = Writer { process: process(), stage, number, generation: 0 };
                scope.spawn(move || pollster::block_on(writer.run()))
            })
            .collect();
        for _ in 0..READERS {
            let process = process();
            scope.spawn(move || pollster::block_on(read(process, stage)));
        }
        let operator = operator.clone();
        let applies = scope.spawn(move || pollster::block_on(operate(operator, stage, 7)));
        // Whatever comes out, the readers end.
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        let applied = applies.join();
        stage.is_over.store(true, Ordering::SeqCst);
        assert!(ends.into_iter().all(|end| end.is_ok()) && applied.is_ok());
    });
    let page = pollster::block_on(operator.engine.scan(&name(NOTES), ScanQuery::default())).unwrap();
    page.entries.iter().for_each(|entry| stage.check(entry));
    let count = |prefix: &str| {
        let counted = page.entries.iter().filter(|entry| entry.key.as_str().starts_with(prefix));
        counted.map(|entry| number(entry, "n")).sum::<u64>()
    };
    assert_eq!((count("shared."), count("own.")), (UPDATES * WRITERS, UPDATES * WRITERS), "none is lost");
    assert_eq!(stage.applied.into_inner().unwrap().len() as u64, APPLIES);
}

#[test]
fn no_old_shape_and_no_lost_update_in_memory() {
    show(&Shared::alone_in_memory());
}

#[test]
fn no_old_shape_and_no_lost_update_embedded() {
    show(&Shared::alone_embedded());
}

#[test]
fn no_old_shape_and_no_lost_update_of_processes_in_memory() {
    show(&Shared::in_memory());
}

#[test]
fn no_old_shape_and_no_lost_update_on_one_server() {
    show(&Shared::one_server());
}

#[test]
fn no_old_shape_and_no_lost_update_on_three_servers() {
    show(&Shared::three_servers());
}
