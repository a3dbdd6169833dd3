//! A process that works on State is killed, again and again: what it said it did is done, counts are exact, and an erasure
//! that was cut off goes on.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::StreamExt as _;
use pleach_contract::Contract;
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{BucketConfig, BucketName, Clock, Durability, Engine, SystemClock, Timestamp};
use pleach_stores::state::{
    Cell, DeleteOutcome, Erasure, GetOutcome, ListOptions, MapStore, Principal, PutOptions, PutOutcome,
    STATE_BUCKET, State, StateEvent, WatchFrom,
};
use pleach_stores::{ApplyOptions, Contracts, Guarded, PlanOptions};
use pollster::block_on;
use serde_json::{Value, json};

/// Set in the process that is going to be killed: the directory of its store.
const CHILD: &str = "PLEACH_STATE_CHILD";

const TEST: &str = "state_killed::what_a_killed_process_did_to_state_is_done_and_counted";

const ROUNDS: u64 = 20;
const ROUNDS_MAX: u64 = 20 * ROUNDS;

/// How long a process may take to open the store and write.
const START_TIMEOUT: Duration = Duration::from_secs(600);

/// More entries than an erasure takes in one batch, so that it can be killed in between.
const TO_ERASE: usize = 3500;

/// The names of Ann's entries.
const NAMES: u64 = 40;

/// The longest life of an entry that has one.
const TTL_MAX: Duration = Duration::from_millis(150);

#[test]
fn what_a_killed_process_did_to_state_is_done_and_counted() {
    if let Ok(directory) = std::env::var(CHILD) {
        return work_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut told = Told::default();
    let mut seen = Seen::default();
    // More rounds if a busy machine showed too little in these.
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS && seen.is_enough() {
            break;
        }
        let before = told.acknowledged;
        run_and_kill(&path, round, &mut told);
        seen.rounds_with_writes += u64::from(told.acknowledged > before);
        block_on(check(&path, &mut told, &mut seen));
    }
    // Or nothing was tested.
    assert!(seen.is_enough(), "{seen:?}");
}

/// What there was to see, over all rounds.
#[derive(Debug, Default)]
struct Seen {
    rounds_with_writes: u64,
    /// Entries that had expired when the store was opened again.
    expired: u64,
    /// Times that an erasure was cut off after it had erased something.
    half_erased: u64,
}

impl Seen {
    fn is_enough(&self) -> bool {
        self.rounds_with_writes >= ROUNDS / 2 && self.expired >= 5 && self.half_erased >= 3
    }
}

/// The store, opened as a program would.
struct Opened {
    state: State,
    clock: Arc<SystemClock>,
}

impl Opened {
    async fn at(path: &Path) -> Self {
        let clock = Arc::new(SystemClock::new());
        let settings =
            Settings { segment_bytes: 64 * 1024, memtable_bytes: 32 * 1024, ..Settings::default() };
        let engine = EmbeddedEngine::open_with(path, settings, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        // A killed process loses nothing of a buffered bucket either, and it is killed in the middle of more.
        let config = BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() };
        let bucket = BucketName::parse(STATE_BUCKET).unwrap();
        engine.create_bucket(&bucket, config).await.unwrap();
        let engine = Guarded::new(Arc::new(engine), Arc::clone(&clock) as Arc<dyn Clock>);
        let plan = Contracts::of(&engine).plan(&contract(), PlanOptions::default()).await.unwrap();
        Contracts::of(&engine).apply(&plan, ApplyOptions::by("olga")).await.unwrap();
        let state = State::open(&engine).await.unwrap();
        Self { state, clock }
    }

    fn map(&self, who: &str) -> MapStore<Value> {
        let contract = block_on(self.state.contract(&contract())).unwrap();
        self.state.session(who.parse().unwrap(), &contract).map("things").unwrap()
    }
}

fn contract() -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes",
        "description": "Notes", "schemas": {"Any": true},
        "state": {"things": {"kind": "map", "schema": {"schema": "Any"}}},
    });
    Contract::from_value(&document).unwrap().contract
}

fn bob() -> Principal {
    Principal::user("bob").unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "state: {line}").and_then(|()| out.flush()).expect("the parent reads");
}

/// Ann puts and deletes, and says what she is about to do and what is done; Bob's state is filled and erased.
fn work_until_killed(directory: &Path) {
    let opened = block_on(Opened::at(directory));
    std::thread::scope(|scope| {
        scope.spawn(|| block_on(be_ann(&opened)));
        scope.spawn(|| block_on(fill_and_erase(&opened)));
        scope.spawn(|| block_on(tell_of_erasing(&opened)));
    });
}

async fn be_ann(opened: &Opened) {
    let things = opened.map("user:ann");
    // Each process begins elsewhere in the same pattern.
    let mut number = opened.clock.now().as_micros() % 100_000 * 1000;
    loop {
        number += 1;
        let key = format!("n{:02}", number * 7919 % NAMES);
        if number.is_multiple_of(4) {
            say(&format!("will delete {key}"));
            let outcome = things.delete(&key).await.unwrap();
            say(&format!("did delete {}", u8::from(outcome == DeleteOutcome::Deleted)));
            continue;
        }
        let ttl = number.is_multiple_of(3).then(|| Duration::from_millis(1 + number % 150).min(TTL_MAX));
        say(&format!("will put {key} {number}"));
        let options = PutOptions { ttl, ..PutOptions::default() };
        let PutOutcome::Applied(entry) = things.put_with(&key, &json!(number), options).await.unwrap() else {
            panic!("it expected nothing")
        };
        let expires = entry.expires_at.map_or(0, Timestamp::as_micros);
        say(&format!("did put {expires}"));
    }
}

async fn fill_and_erase(opened: &Opened) {
    let things = opened.map("user:bob");
    let admin = opened.state.admin("olga", "a test").await.unwrap();
    loop {
        for number in 0..TO_ERASE {
            let _ = things.put(&format!("{number:05}"), &json!("secret")).await.unwrap();
        }
        let Erasure { erased, done } = admin.erase(&bob()).await.unwrap();
        assert!(done && erased >= TO_ERASE as u64, "{erased}");
    }
}

/// Says so once something of Bob's is erased and there is more, since then it is time to be killed.
async fn tell_of_erasing(opened: &Opened) {
    let mut events = opened.map("user:bob").watch(WatchFrom::Now).await.unwrap();
    while let Some(event) = events.next().await {
        if matches!(event, Ok(StateEvent::Deleted { .. })) {
            return say("is erasing");
        }
    }
}

/// An entry of Ann's: its number, and when it is gone; zero is never.
type Entry = (u64, u64);

/// What the processes said.
#[derive(Debug, Default)]
struct Told {
    entries: BTreeMap<String, Entry>,
    /// What was begun, and perhaps done: a key with the number that was to be put, or a delete.
    begun: Option<(String, Option<u64>)>,
    acknowledged: u64,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        match (word(), word()) {
            ("will", "put") => self.begun = Some((word().to_owned(), word().parse().ok())),
            ("will", "delete") => self.begun = Some((word().to_owned(), None)),
            ("did", "put") => {
                let expires = word().parse().expect("a moment");
                if let Some((key, Some(number))) = self.begun.take() {
                    self.entries.insert(key, (number, expires));
                }
                self.acknowledged += 1;
            }
            ("did", "delete") => {
                if let Some((key, None)) = self.begun.take() {
                    self.entries.remove(&key);
                }
                self.acknowledged += 1;
            }
            _ => {}
        }
    }
}

/// Runs a process and kills it: at any moment after its first word, or while it erases.
fn run_and_kill(path: &Path, round: u64, told: &mut Told) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let (awaited, moment) =
        if round.is_multiple_of(2) { ("will put", round * 7919 % 200) } else { ("is erasing", round % 5) };
    let (begun, has_begun) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The first line begins with what the test runner prints.
            let lines = output.lines().map_while(Result::ok);
            for line in lines.filter_map(|line| Some(line.split_once("state: ")?.1.to_owned())) {
                if line.starts_with(awaited) {
                    // Only the first is waited for.
                    let _ = begun.try_send(());
                }
                told.hear(&line);
            }
        });
        has_begun.recv_timeout(START_TIMEOUT).expect("the child begins to work");
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    });
}

/// Opens the store as the process left it, and compares.
async fn check(path: &Path, told: &mut Told, seen: &mut Seen) {
    let opened = Opened::at(path).await;
    let things = opened.map("user:ann");
    settle(&things, told).await;
    seen.expired += check_entries(&opened, &things, told).await;
    check_erasure(&opened, seen).await;
    // Once all that could expire has, what is left is exactly what is counted.
    std::thread::sleep(TTL_MAX);
    told.entries.retain(|_, (_, expires)| *expires == 0);
    let page = things.list(ListOptions::first(100)).await.unwrap();
    let names: Vec<&str> = page.entries.iter().filter_map(Cell::key).collect();
    assert_eq!(names, told.entries.keys().collect::<Vec<_>>());
    assert_eq!(page.count, told.entries.len() as u64);
    assert_eq!(things.count().await.unwrap(), page.count);
}

/// What was begun and not acknowledged is done, or it is not.
async fn settle(things: &MapStore<Value>, told: &mut Told) {
    let Some((key, begun)) = told.begun.take() else { return };
    let before = told.entries.get(&key).copied();
    match (things.get(&key).await.unwrap(), begun) {
        (GetOutcome::Found(entry), Some(number)) if entry.value == json!(number) => {
            let expires = entry.expires_at.map_or(0, Timestamp::as_micros);
            told.entries.insert(key, (number, expires));
        }
        (GetOutcome::Found(entry), _) => {
            let (number, _) = before.expect("nothing else was put");
            assert_eq!(entry.value, json!(number), "{key}");
        }
        // Deleted, or put with a life that is over, or what was there before had one.
        (GetOutcome::Absent, begun) => {
            let is_over = before.is_none_or(|(_, expires)| expires != 0);
            let had_one = begun.is_some_and(|number| number.is_multiple_of(3));
            assert!(begun.is_none() || is_over || had_one, "{key}: {before:?} {begun:?}");
            told.entries.remove(&key);
        }
        (GetOutcome::MigrationRequired(_), _) => panic!("there is one version"),
    }
}

/// Every entry is there with its last number until its time, and no other; returns how many had expired.
async fn check_entries(opened: &Opened, things: &MapStore<Value>, told: &Told) -> u64 {
    let mut expired = 0;
    for number in 0..NAMES {
        let key = format!("n{number:02}");
        let earliest = opened.clock.now().as_micros();
        let found = things.get(&key).await.unwrap();
        let latest = opened.clock.now().as_micros();
        let expected = told.entries.get(&key);
        match (found, expected) {
            (GetOutcome::Found(entry), Some((number, expires))) => {
                assert_eq!(entry.value, json!(number), "{key}");
                assert!(*expires == 0 || *expires > earliest, "{key} expired at {expires}");
            }
            (GetOutcome::Absent, Some((_, expires))) => {
                assert!(*expires != 0 && *expires <= latest, "{key} is gone: {expected:?}");
                expired += 1;
            }
            (GetOutcome::Absent, None) => {}
            (found, None) => panic!("{key} is there: {found:?}"),
            (GetOutcome::MigrationRequired(_), _) => panic!("there is one version"),
        }
    }
    let page = things.list(ListOptions::first(100)).await.unwrap();
    assert_eq!(page.count, page.entries.len() as u64);
    expired
}

/// An erasure that was cut off is on record as that, and goes on until nothing is left.
async fn check_erasure(opened: &Opened, seen: &mut Seen) {
    let (things, admin) = (opened.map("user:bob"), opened.state.admin("olga", "the rest").await.unwrap());
    let left = things.count().await.unwrap();
    let holdings = admin.find(&bob()).await.unwrap();
    assert_eq!(holdings.iter().map(|held| held.entries).sum::<u64>(), left, "whoever counts");
    let records = opened.state.admin_records().await.unwrap();
    let cut_off =
        records.iter().find(|record| record.act == "erase").is_some_and(|last| last.entries.is_none());
    seen.half_erased += u64::from(cut_off && left > 0 && left < TO_ERASE as u64);
    assert_eq!(admin.erase(&bob()).await.unwrap(), Erasure { erased: left, done: true });
    assert_eq!(things.count().await.unwrap(), 0);
    assert!(admin.find(&bob()).await.unwrap().is_empty());
}
