//! Servers that fail while clients write, and what a cluster of three promises all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BatchPart, BucketConfig, BucketName, Change, CommitError, Engine, EngineError, Expectation,
    Key, Operation, Revision, ScanQuery, Selection, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::Cluster;

use crate::servers::SOON;

/// How long the servers are left alone between two failures.
const CALM: Duration = Duration::from_millis(1500);

/// How long a failure lasts.
const FAILURE: Duration = Duration::from_secs(3);

const WRITERS: usize = 3;

/// A run with fewer acknowledged creations would show little.
const ACKNOWLEDGED_MIN: usize = 50;

/// How far a counter goes before the next is begun. No more records of one are written than are kept, so that a watch finds
/// whatever it missed.
const COUNTER_MAX: u64 = 60;

/// What became of a commit, as its writer was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done(Revision),
    NotDone,
    Unknown,
}

/// Everything the writers were told.
#[derive(Default)]
struct History {
    /// By key and value: keys that are written once.
    creations: Mutex<BTreeMap<String, Told>>,
    /// Increments of counters by all writers.
    increments: Mutex<Vec<Told>>,
    /// Batches by number: their first revision.
    batches: Mutex<BTreeMap<String, Told>>,
}

impl History {
    /// How many creations were acknowledged.
    fn acknowledged(&self) -> usize {
        self.creations.lock().unwrap().values().filter(|told| matches!(told, Told::Done(_))).count()
    }
}

struct Run {
    history: History,
    is_over: AtomicBool,
    /// The counter that is counted up now.
    counter: AtomicU64,
    bucket: BucketName,
}

/// What happens to the server that leads the bucket, whoever it is then, or to the one after it.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// It is killed, and started again.
    Killed,
    /// It hangs, and goes on.
    Stopped,
    /// It no longer hears of one of the others, nor of its clients through it.
    Severed,
    /// It hears of none of the others, but of its clients.
    Isolated,
}

/// Which server something happens to.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Leader,
    Follower,
}

impl Failure {
    fn begin(self, cluster: &mut Cluster, victim: usize) {
        match self {
            Self::Killed => cluster.kill(victim),
            Self::Stopped => cluster.stop(victim),
            Self::Severed | Self::Isolated => {
                self.lost(cluster, victim).for_each(|other| cluster.sever(victim, other));
            }
        }
    }

    fn end(self, cluster: &mut Cluster, victim: usize) {
        match self {
            Self::Killed => cluster.restart(victim),
            Self::Stopped => cluster.go_on(victim),
            Self::Severed | Self::Isolated => {
                self.lost(cluster, victim).for_each(|other| cluster.join(victim, other));
            }
        }
    }

    /// The servers that `victim` does not hear of.
    fn lost(self, cluster: &Cluster, victim: usize) -> impl Iterator<Item = usize> + use<> {
        let (size, count) = (cluster.size(), if matches!(self, Self::Severed) { 1 } else { 2 });
        (1..=count).map(move |step| (victim + step) % size)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_three_servers_acknowledged_survives_their_failures() {
    use Failure::{Killed, Stopped};
    use Whose::{Follower, Leader};
    let failures =
        [(Killed, Leader), (Killed, Follower), (Stopped, Leader), (Stopped, Follower), (Killed, Leader)];
    survive(Cluster::start(), &failures).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_three_servers_acknowledged_survives_cut_ways_between_them() {
    use Failure::{Isolated, Severed};
    use Whose::{Follower, Leader};
    let failures = [(Severed, Leader), (Isolated, Leader), (Isolated, Follower), (Severed, Follower)];
    survive(Cluster::start_severable(), &failures).await;
}

/// Has clients write and watch while servers fail one after the other, and checks what they were told.
async fn survive(mut cluster: Cluster, failures: &[(Failure, Whose)]) {
    let bucket = BucketName::parse("chaos").unwrap();
    let first = connect(&cluster).await;
    let config =
        BucketConfig { history: NonZeroU8::new(64).unwrap(), ..BucketConfig::plain(first.capabilities()) };
    first.create_bucket(&bucket, config).await.unwrap();
    // From here on its ordered copy follows the bucket through everything.
    assert_eq!(first.count(&bucket, Selection::all()).await.unwrap(), 0);
    let run = Arc::new(Run {
        history: History::default(),
        is_over: AtomicBool::new(false),
        counter: AtomicU64::new(0),
        bucket,
    });
    let watcher = connect(&cluster).await;
    // It is there before anything is written.
    let query = WatchQuery { start: WatchStart::Now, ..WatchQuery::default() };
    let events = watcher.watch(&run.bucket, query).await.expect("the bucket can be watched");
    let watching = tokio::spawn(collect(events));
    let mut writing = Vec::new();
    for writer in 0..WRITERS {
        let engine = connect(&cluster).await;
        writing.push(tokio::spawn(write(Arc::clone(&run), engine, writer)));
    }

    for (failure, whose) in failures {
        tokio::time::sleep(CALM).await;
        let leader = leader(&cluster, "KV_chaos").await;
        let victim = match whose {
            Whose::Leader => leader,
            Whose::Follower => (leader + 1) % cluster.size(),
        };
        failure.begin(&mut cluster, victim);
        tokio::time::sleep(FAILURE).await;
        failure.end(&mut cluster, victim);
    }
    tokio::time::sleep(CALM).await;
    // The writers go on until they have got somewhere, however busy the machine is.
    let begun = async {
        while run.history.acknowledged() < ACKNOWLEDGED_MIN {
            tokio::time::sleep(CALM).await;
        }
    };
    tokio::time::timeout(SOON, begun).await.expect("the writers get somewhere");
    run.is_over.store(true, Ordering::Release);
    for writer in writing {
        writer.await.expect("no writer panics");
    }
    let end = settle(&first, &run.bucket).await;
    let watched = watching.await.expect("the watcher does not panic");
    check(&run, &first, &watched, end).await;
}

async fn connect(cluster: &Cluster) -> Arc<NatsEngine> {
    let options = NatsOptions {
        servers: cluster.urls(),
        replicas: NonZeroU8::new(3).unwrap(),
        request_timeout: Duration::from_secs(2),
        ..NatsOptions::default()
    };
    Arc::new(NatsEngine::connect(options).await.expect("the servers are there"))
}

/// Which server leads a stream.
async fn leader(cluster: &Cluster, stream: &str) -> usize {
    for _ in 0..600 {
        for url in cluster.urls() {
            let Ok(client) = async_nats::ConnectOptions::new().connect(url).await else { continue };
            let asked = client.request(format!("$JS.API.STREAM.INFO.{stream}"), "".into());
            let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_secs(5), asked).await else { continue };
            let info: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
            let name = info["cluster"]["leader"].as_str().unwrap_or_default();
            if let Some(index) = (0..cluster.size()).find(|index| cluster.name(*index) == name) {
                return index;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody leads {stream}");
}

/// Writes in three ways until the run is over.
async fn write(run: Arc<Run>, engine: Arc<NatsEngine>, writer: usize) {
    let mut number = 0;
    while !run.is_over.load(Ordering::Acquire) {
        number += 1;
        let name = format!("{writer}-{number}");
        let creation =
            Operation::put(key(&format!("log.{name}")), name.clone()).expecting(Expectation::Absent);
        let told = commit(&run, &engine, Batch::from(creation)).await;
        run.history.creations.lock().unwrap().insert(name.clone(), told);

        let parts =
            ["a", "b", "c"].map(|part| Operation::put(key(&format!("batch.{name}.{part}")), name.clone()));
        let told = commit(&run, &engine, Batch::from_iter(parts)).await;
        run.history.batches.lock().unwrap().insert(name, told);

        let told = increment(&run, &engine).await;
        run.history.increments.lock().unwrap().push(told);
    }
}

async fn increment(run: &Run, engine: &NatsEngine) -> Told {
    let number_of = run.counter.load(Ordering::Acquire);
    let counter = key(&format!("counter.{number_of}"));
    let Ok(seen) = engine.read(&run.bucket, &counter, At::Latest).await else { return Told::NotDone };
    let value = seen.as_ref().map_or(0, |entry| number(&entry.value)) + 1;
    if value > COUNTER_MAX {
        run.counter.fetch_max(number_of + 1, Ordering::AcqRel);
        return Told::NotDone;
    }
    let expect = seen.map_or(Expectation::Absent, |entry| Expectation::Revision(entry.revision));
    commit(run, engine, Batch::from(Operation::put(counter, value.to_string()).expecting(expect))).await
}

async fn commit(run: &Run, engine: &NatsEngine, batch: Batch) -> Told {
    match engine.commit(&run.bucket, batch).await {
        Ok(committed) => Told::Done(committed.first),
        Err(CommitError::Conflict(_)) => Told::NotDone,
        Err(CommitError::Engine(EngineError::UnknownOutcome { .. })) => Told::Unknown,
        Err(CommitError::Engine(EngineError::Unreachable { .. })) => Told::NotDone,
        Err(other) => panic!("a commit may fail because servers do, but not so: {other:?}"),
    }
}

/// Everything a watch delivers until the key `end`.
async fn collect(mut events: WatchStream) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Some(event) = events.next().await {
        let WatchEvent::Change(change) = event.expect("the watch survives") else { continue };
        let is_end = change.entry.key.as_str() == "end";
        changes.push(change);
        if is_end {
            break;
        }
    }
    changes
}

/// Writes the key `end`, once the servers take it.
async fn settle(engine: &NatsEngine, bucket: &BucketName) -> Revision {
    for _ in 0..20 {
        if let Ok(committed) = engine.commit(bucket, Batch::new().put(key("end"), "")).await {
            return committed.last;
        }
    }
    panic!("the cluster does not recover");
}

async fn check(run: &Run, engine: &NatsEngine, watched: &[Change], end: Revision) {
    // Each change once, in order: none is missing, since the revisions of a bucket have no gaps.
    let mut expected = watched[0].entry.revision;
    for change in watched {
        assert_eq!(change.entry.revision, expected, "the watch misses or repeats a change");
        expected = expected.next();
    }
    assert!(watched.iter().any(|change| change.entry.revision == end));

    let mut by_key: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in watched {
        by_key.entry(change.entry.key.as_str()).or_default().push(change);
    }
    let (mut done, mut unknown) = (0, 0);
    for (name, told) in run.history.creations.lock().unwrap().iter() {
        let seen = by_key.get(format!("log.{name}").as_str()).map_or(&[][..], Vec::as_slice);
        match told {
            Told::Done(revision) => {
                done += 1;
                assert_eq!(seen.len(), 1, "{name} was acknowledged, and happened {} times", seen.len());
                assert_eq!(seen[0].entry.revision, *revision);
            }
            Told::NotDone => assert!(seen.is_empty(), "{name} failed, but happened"),
            Told::Unknown => {
                unknown += 1;
                assert!(seen.len() <= 1, "{name} happened twice");
            }
        }
    }
    check_counter(run, &by_key);
    check_batches(run, watched);
    check_stored(run, engine, &by_key).await;
    println!("{done} creations acknowledged, {unknown} unknown, {} changes watched", watched.len());
}

/// Every value of every counter came once, and every acknowledged increment is one of them.
fn check_counter(run: &Run, by_key: &BTreeMap<&str, Vec<&Change>>) {
    let counters = by_key.iter().filter(|(name, _)| name.starts_with("counter."));
    let mut revisions: BTreeSet<Revision> = BTreeSet::new();
    for (name, changes) in counters {
        let values: Vec<u64> = changes.iter().map(|change| number(&change.entry.value)).collect();
        assert_eq!(
            values,
            (1..=values.len() as u64).collect::<Vec<_>>(),
            "{name}: one was lost or done twice"
        );
        revisions.extend(changes.iter().map(|change| change.entry.revision));
    }
    let increments = run.history.increments.lock().unwrap();
    let mut done = 0;
    for told in increments.iter() {
        if let Told::Done(revision) = told {
            assert!(revisions.contains(revision), "an acknowledged increment is not there");
            done += 1;
        }
    }
    let unknown = increments.iter().filter(|told| **told == Told::Unknown).count();
    let all = revisions.len();
    assert!(
        all >= done && all <= done + unknown,
        "{done} and perhaps {unknown} were done, and {all} are there"
    );
}

/// Batches came whole, and each at most once.
fn check_batches(run: &Run, watched: &[Change]) {
    let mut seen: BTreeMap<String, Revision> = BTreeMap::new();
    let mut changes = watched.iter().filter(|change| change.entry.key.as_str().starts_with("batch."));
    while let Some(first) = changes.next() {
        let name = String::from_utf8(first.entry.value.to_vec()).unwrap();
        assert_eq!(first.batch, BatchPart { index: 0, size: 3 });
        for index in 1..3 {
            let part = changes.next().expect("a batch is whole");
            assert_eq!((part.entry.value.clone(), part.batch.index), (first.entry.value.clone(), index));
            assert_eq!(part.entry.revision, first.entry.revision.plus(u64::from(index)));
        }
        assert_eq!(seen.insert(name, first.entry.revision), None, "a batch happened twice");
    }
    for (name, told) in run.history.batches.lock().unwrap().iter() {
        match told {
            Told::Done(revision) => assert_eq!(seen.get(name), Some(revision), "batch {name}"),
            Told::NotDone => assert_eq!(seen.get(name), None, "batch {name} failed, but happened"),
            Told::Unknown => {}
        }
    }
}

/// What the servers hold is what the watch has seen.
async fn check_stored(run: &Run, engine: &NatsEngine, by_key: &BTreeMap<&str, Vec<&Change>>) {
    for (name, changes) in by_key {
        let newest = changes.last().expect("there is one");
        let read = engine.read(&run.bucket, &key(name), At::Latest).await.unwrap();
        assert_eq!(read.as_ref(), Some(&newest.entry), "{name} is not what was seen last");
    }
    let (mut scanned, mut page) = (Vec::new(), None);
    loop {
        let query = ScanQuery { limit: 1000, page, ..ScanQuery::default() };
        let next = engine.scan(&run.bucket, query).await.unwrap();
        scanned.extend(next.entries);
        page = next.next;
        if page.is_none() {
            break;
        }
    }
    let newest = by_key.values().map(|changes| changes.last().expect("there is one").entry.clone());
    assert!(scanned == newest.collect::<Vec<_>>(), "a scan shows something else");
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}
