use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pleach_embedded::{EmbeddedEngine, inspect};
use pleach_engine::{Batch, Clock, Engine, Operation, SystemClock};
use pollster::block_on;

use crate::store::{Store, create, get, key, small};
use crate::workload::{self, Told};

/// Set in the process that is going to be killed: the directory of its store.
const CHILD: &str = "PLEACH_CRASH_CHILD";

const ROUNDS: u64 = 300;
const BUSY_ROUNDS: u64 = 80;
const WRITERS: u64 = 4;

/// How long a process may take to open the store and write.
const START_TIMEOUT: Duration = Duration::from_secs(600);

#[test]
fn a_killed_process_loses_no_acknowledged_commit_and_leaves_no_half_batch() {
    if let Ok(directory) = std::env::var(CHILD) {
        return write_until_killed(&directory);
    }
    let store = Store::new();
    let mut acknowledged = BTreeMap::new();
    let mut rounds_with_writes = 0;
    for round in 0..ROUNDS {
        // Every other one is killed at any moment, perhaps while it still recovers; the others while they write.
        let before = acknowledged.clone();
        let moment = Duration::from_millis(round * 7919 % 60);
        let once = if round.is_multiple_of(2) { Once::Written } else { Once::Started };
        run_and_kill(&store, moment, once, &mut acknowledged);
        rounds_with_writes += u64::from(before != acknowledged);
        check(&store, &mut acknowledged, round);
    }
    assert!(
        rounds_with_writes >= ROUNDS / 2,
        "only {rounds_with_writes} processes lived long enough to write"
    );
}

/// Small segments, overwritten and deleted keys and no feed: all the while the log is cleaned.
#[test]
fn a_process_that_is_killed_while_it_cleans_loses_no_commit_and_no_position_of_a_consumer() {
    if workload::is_child() {
        return;
    }
    let store = Store::with(workload::busy());
    let test =
        "crash::a_process_that_is_killed_while_it_cleans_loses_no_commit_and_no_position_of_a_consumer";
    let (mut told, mut rounds_with_writes, mut rounds_with_cleaning) = (Told::default(), 0, 0);
    for round in 0..BUSY_ROUNDS {
        let moment = Duration::from_millis(round * 7919 % 250);
        let (before, cleaned) = (told.clone(), cleaned_segments(&store));
        let has_cleaned = || cleaned != cleaned_segments(&store);
        // A third of them clean for certain, however busy the machine is.
        let once = match round % 3 {
            0 => Once::True(&has_cleaned),
            1 => Once::Written,
            _ => Once::Started,
        };
        let child = workload::child(test, &store, None);
        kill(child, moment, once, |line| told.hear(line));
        rounds_with_writes += u64::from(before != told);
        rounds_with_cleaning += u64::from(has_cleaned());
        told.check(&store, &format!("round {round}"));
    }
    assert!(rounds_with_writes >= BUSY_ROUNDS / 2, "only {rounds_with_writes} processes wrote");
    // Or nothing was cleaned, and nothing was tested.
    assert!(rounds_with_cleaning >= BUSY_ROUNDS / 3, "only {rounds_with_cleaning} processes cleaned");
    let report = inspect::verify(store.path(), &mut |_| {}).expect("it can be read");
    assert!(report.log.is_sound(), "{report:?}");
    std::fs::remove_dir_all(store.path().join("index")).expect("the index goes");
    told.check(&store, "without an index");
}

/// The segments that were made by the cleaner.
fn cleaned_segments(store: &Store) -> Vec<PathBuf> {
    if !store.path().join("log").exists() {
        return Vec::new();
    }
    let is_cleaned =
        |path: &PathBuf| path.file_stem().is_some_and(|name| name.to_string_lossy().contains('-'));
    store.segments().into_iter().filter(is_cleaned).collect()
}

/// Writes pairs of keys that always change together, and says so after each acknowledgement.
fn write_until_killed(directory: &str) {
    let engine =
        EmbeddedEngine::open_with(directory, small(), Arc::new(SystemClock::new()) as Arc<dyn Clock>);
    let engine = engine.expect("the store opens");
    let name = create(&engine, 3);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, name) = (&engine, &name);
            scope.spawn(move || {
                let (left, right) = (format!("w{writer}.left"), format!("w{writer}.right"));
                let mut count: u64 =
                    get(engine, name, &left).map_or(0, |count| count.parse().expect("a count"));
                loop {
                    count += 1;
                    // Now and then a value that is too large for the index, and a commit of many keys.
                    let filler = "x".repeat(if count.is_multiple_of(5) { 900 } else { 0 });
                    let mut batch = Batch::new()
                        .put(key(&left), count.to_string())
                        .put(key(&format!("w{writer}.filler")), filler)
                        .put(key(&right), count.to_string());
                    if count.is_multiple_of(7) {
                        batch.push(Operation::delete(key(&format!("w{writer}.gone"))));
                    }
                    let committed = block_on(engine.commit(name, batch)).expect("a commit");
                    let mut out = std::io::stdout().lock();
                    let line = writeln!(out, "ack {writer} {count} {}", committed.last);
                    line.and_then(|()| out.flush()).expect("the parent reads");
                }
            });
        }
    });
}

fn run_and_kill(
    store: &Store,
    after: Duration,
    once: Once<'_>,
    acknowledged: &mut BTreeMap<u64, (u64, u64)>,
) {
    let name = "crash::a_killed_process_loses_no_acknowledged_commit_and_leaves_no_half_batch";
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD, store.path());
    kill(child, after, once, |line| match parse(line) {
        Some((writer, count, revision)) => {
            acknowledged.insert(writer, (count, revision));
            true
        }
        None => false,
    });
}

/// What is waited for before a process is killed.
enum Once<'a> {
    /// That it was started.
    Started,
    /// Its first acknowledgement.
    Written,
    /// That this is true.
    True(&'a dyn Fn() -> bool),
}

/// Runs a process and kills it, some time after what is waited for. `hear` gets what it said, and tells what is an
/// acknowledgement.
#[allow(clippy::disallowed_methods, reason = "the engine's own threads run in real time")]
fn kill(mut child: Command, after: Duration, once: Once<'_>, mut hear: impl FnMut(&str) -> bool + Send) {
    let mut child = child.stdout(Stdio::piped()).spawn().expect("the child starts");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let (first_ack, writes) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if hear(&line) {
                    // Only the first is waited for, if that.
                    let _ = first_ack.try_send(());
                }
            }
        });
        let started = Instant::now();
        match once {
            Once::Started => {}
            Once::Written => writes.recv_timeout(START_TIMEOUT).expect("the child starts to write"),
            Once::True(is_so) => {
                while !is_so() {
                    assert!(started.elapsed() < START_TIMEOUT, "the child does not do it");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
        std::thread::sleep(after);
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    });
}

fn parse(line: &str) -> Option<(u64, u64, u64)> {
    // The first line begins with what the test runner prints.
    let (_, numbers) = line.split_once("ack ")?;
    let mut words = numbers.split(' ').map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?))
}

fn check(store: &Store, acknowledged: &mut BTreeMap<u64, (u64, u64)>, round: u64) {
    let engine = store.open();
    if acknowledged.is_empty() {
        return;
    }
    let name = crate::store::bucket("b");
    let info = block_on(engine.bucket(&name)).expect("the bucket is there");
    for (writer, (count, revision)) in acknowledged {
        let read =
            |side: &str| get(&engine, &name, &format!("w{writer}.{side}")).expect("it was acknowledged");
        let (left, right) = (read("left"), read("right"));
        assert_eq!(left, right, "round {round}: half a batch of writer {writer}");
        let found: u64 = left.parse().expect("a count");
        assert!(found >= *count, "round {round}: writer {writer} was told {count}, and {found} is there");
        assert!(found <= *count + 1, "round {round}: writer {writer} wrote {found} after {count}");
        assert!(info.last_revision.get() >= *revision, "round {round}: revision {revision} is gone");
        // What has been seen once must stay, acknowledged or not.
        *count = found;
    }
}
