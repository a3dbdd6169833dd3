//! Work for a process that is going to be killed or made to fail, and the check of what it leaves behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    Batch, BucketConfig, BucketName, Clock, ConsumerName, ConsumerStart, Engine, EngineError, Revision,
    SystemClock,
};
use pollster::block_on;

use crate::store::{Store, bucket, contents, files, get, key};

/// Set in a process that works: the directory of its store.
const CHILD: &str = "PLEACH_WORKLOAD_CHILD";

/// Set there as well: how many commits each writer makes; without it they go on until the process is killed.
const COMMITS: &str = "PLEACH_WORKLOAD_COMMITS";

pub(crate) const WRITERS: u64 = 2;

/// Set there if nothing is to be cleaned.
pub(crate) const UNCLEAN: &str = "PLEACH_WORKLOAD_UNCLEAN";

/// A process without commits to make waits this long at most until the log is clean.
const CLEANING_MAX: Duration = Duration::from_secs(3);

/// A clean log has at most so many segments.
const SEGMENTS_CLEAN: usize = 8;

/// So many of the keys that come and go are there at any time.
const PASSING: u64 = 3;

/// How often a commit that was refused is tried again.
const TRIES_MAX: u32 = 40;

/// How often it is tried again if the disk was full: the engine looks for room in its own time, which a busy machine stretches.
const FULL_TRIES_MAX: u32 = 100 * TRIES_MAX;

/// Small segments and no feed to speak of, so that the cleaner has much to do.
pub(crate) fn busy() -> Settings {
    Settings {
        segment_bytes: 2 * 1024,
        memtable_bytes: 4 * 1024,
        cache_bytes: 256 * 1024,
        feed_bytes: Some(0),
        clean_bytes_per_second: u64::MAX,
        ..Settings::default()
    }
}

/// The command that does the work in a process of its own: this very test.
pub(crate) fn child(test: &str, store: &Store, commits: Option<u64>) -> Command {
    child_under(Command::new(std::env::current_exe().expect("this test")), test, store, commits)
}

/// As [`child`], with `command` in front.
pub(crate) fn child_under(mut command: Command, test: &str, store: &Store, commits: Option<u64>) -> Command {
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, store.path())
        .env("RUST_BACKTRACE", "0");
    if let Some(commits) = commits {
        command.env(COMMITS, commits.to_string());
    }
    command
}

/// Does the work if this is the process that is meant to; says whether it was.
pub(crate) fn is_child() -> bool {
    let Ok(directory) = std::env::var(CHILD) else { return false };
    let commits = std::env::var(COMMITS).ok().and_then(|commits| commits.parse().ok());
    match work(&directory, commits.unwrap_or(u64::MAX)) {
        Ok(()) => say("closed"),
        Err(error) => say(&format!("failed {error}")),
    }
    true
}

fn work(directory: &str, commits: u64) -> Result<(), EngineError> {
    let clock = Arc::new(SystemClock::new()) as Arc<dyn Clock>;
    let settings = Settings { clean: std::env::var_os(UNCLEAN).is_none(), ..busy() };
    let engine = EmbeddedEngine::open_with(directory, settings, clock)?;
    let (name, reader) = (bucket("b"), reader());
    let marker_ttl = Some(Duration::from_millis(20));
    let config = BucketConfig { marker_ttl, ..BucketConfig::default() };
    match block_on(engine.create_bucket(&name, config)) {
        Ok(_) | Err(EngineError::BucketExists { .. }) => {}
        Err(error) => return Err(error),
    }
    if block_on(engine.consumer(&name, &reader)).is_err() {
        block_on(engine.create_consumer(&name, &reader, ConsumerStart::Now))?;
    }
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, name) = (&engine, &name);
            scope.spawn(move || write(engine, name, writer, commits));
        }
    });
    if commits == 0 {
        wait_until_clean(Path::new(directory));
    }
    say("worked");
    block_on(engine.close())
}

fn wait_until_clean(directory: &Path) {
    const STEP: Duration = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    while files(&directory.join("log")).len() > SEGMENTS_CLEAN && waited < CLEANING_MAX {
        std::thread::sleep(STEP);
        waited += STEP;
    }
    say(&format!("clean after {waited:?}"));
}

/// Commits one state after the other, and says so after each acknowledgement.
fn write(engine: &EmbeddedEngine, name: &BucketName, writer: u64, commits: u64) {
    let mut count = count_of(engine, name, writer);
    let last = count.saturating_add(commits);
    let (mut tries, mut full_tries) = (0, 0);
    while count < last && tries < TRIES_MAX && full_tries < FULL_TRIES_MAX {
        match block_on(engine.commit(name, batch(writer, count + 1))) {
            Ok(committed) => {
                (count, tries, full_tries) = (count + 1, 0, 0);
                if commits == u64::MAX {
                    // So that the cleaner keeps up, and the log stays small.
                    std::thread::sleep(Duration::from_millis(3));
                }
                say(&format!("ack {writer} {count} {}", committed.last));
                let moved = writer == 0 && count.is_multiple_of(5);
                if moved && block_on(engine.acknowledge(name, &reader(), committed.last)).is_ok() {
                    say(&format!("moved {}", committed.last));
                }
            }
            Err(error) => {
                match error.to_string().contains("no space") {
                    true => full_tries += 1,
                    false => tries += 1,
                }
                say(&format!("refused {writer} {error}; {}", error.help()));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn count_of(engine: &EmbeddedEngine, name: &BucketName, writer: u64) -> u64 {
    get(engine, name, &format!("w{writer}.left")).map_or(0, |count| count.parse().expect("a count"))
}

/// What takes a writer's keys from one state to the next.
fn batch(writer: u64, count: u64) -> Batch {
    let mut batch = Batch::new();
    for (at, value) in state(writer, count) {
        if !at.contains("passing") || at.ends_with(&format!(".{count}")) {
            batch = batch.put(key(&at), value);
        }
    }
    match count.checked_sub(PASSING) {
        Some(old) if old > 0 => batch.delete(key(&format!("w{writer}.passing.{old}"))),
        _ => batch,
    }
}

/// All that a writer has in the store after so many commits.
fn state(writer: u64, count: u64) -> BTreeMap<String, String> {
    if count == 0 {
        return BTreeMap::new();
    }
    let number = count.to_string();
    // Now and then a value that is too large for the index.
    let filler = number.repeat(if count.is_multiple_of(5) { 300 } else { 1 });
    let mut state = BTreeMap::from([
        (format!("w{writer}.left"), number.clone()),
        (format!("w{writer}.filler"), filler),
        (format!("w{writer}.right"), number),
    ]);
    for passing in (count + 1).saturating_sub(PASSING).max(1)..=count {
        state.insert(format!("w{writer}.passing.{passing}"), format!("{passing} is here"));
    }
    state
}

/// What a process was told, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Of each writer, the last commit that was acknowledged, and its revision.
    acks: BTreeMap<u64, (u64, u64)>,
    /// Up to where the consumer has moved on.
    moved: u64,
}

impl Told {
    /// Takes up a line.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        // The first line begins with what the test runner prints.
        let numbers =
            |what| line.split_once(what).map(|(_, rest)| rest.split(' ').map_while(|n| n.parse().ok()));
        if let Some(numbers) = numbers("ack ") {
            let numbers: Vec<u64> = numbers.collect();
            if let [writer, count, revision] = numbers[..] {
                self.acks.insert(writer, (count, revision));
                return true;
            }
        }
        if let Some(revision) = numbers("moved ").and_then(|mut numbers| numbers.next()) {
            self.moved = self.moved.max(revision);
        }
        false
    }

    /// All that a process said.
    pub(crate) fn hear_all(&mut self, output: &Output) {
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            self.hear(line);
        }
    }

    /// Of a writer, the last commit that was acknowledged.
    pub(crate) fn count(&self, writer: u64) -> u64 {
        self.acks.get(&writer).map_or(0, |(count, _)| *count)
    }

    /// Opens the store and checks that it holds all that was acknowledged, whole commits only, in a state that it
    /// was in, and nothing that was deleted. What is there counts as told from now on.
    pub(crate) fn check(&mut self, store: &Store, context: &str) {
        let engine = store.try_open().expect(context);
        let name = bucket("b");
        let info = match block_on(engine.bucket(&name)) {
            Err(EngineError::BucketNotFound { .. }) if self.acks.is_empty() => return,
            info => info.expect(context),
        };
        let mut expected = BTreeMap::new();
        for writer in 0..WRITERS {
            let found = count_of(&engine, &name, writer);
            let (count, revision) = self.acks.get(&writer).copied().unwrap_or_default();
            assert!(found >= count, "{context}: writer {writer} was told {count}, and {found} is there");
            assert!(found <= count + 1, "{context}: writer {writer} was told {count}, and {found} is there");
            assert!(info.last_revision.get() >= revision, "{context}: revision {revision} is gone");
            expected.extend(state(writer, found));
            if found > 0 {
                self.acks.insert(writer, (found, revision));
            }
        }
        let found = contents(&engine, &name).expect(context);
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let found: BTreeMap<_, _> = found.into_iter().map(|(key, entry)| (key, text(&entry.value))).collect();
        assert_eq!(found, expected, "{context}");
        if self.moved > 0 {
            let info = block_on(engine.consumer(&name, &reader())).expect("the consumer is there");
            assert!(info.next > Revision::new(self.moved), "{context}: {info:?} was at {}", self.moved);
        }
    }
}

fn reader() -> ConsumerName {
    ConsumerName::parse("reader").expect("a name")
}

/// Tells the process that started this one, whatever else fails.
fn say(line: &str) {
    let line = format!("{line}\n");
    let out = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let told = out.is_ok_and(|mut out| (0..TRIES_MAX).any(|_| out.write_all(line.as_bytes()).is_ok()));
    assert!(told, "nobody hears {line}");
}
