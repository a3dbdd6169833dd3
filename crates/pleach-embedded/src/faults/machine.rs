use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::join_all;
use pleach_engine::{
    Batch, BucketConfig, BucketName, Change, Clock, CommitError, Committed, Durability, Engine, EngineError,
    Headers, Key, ManualClock, Operation, Revision, ScanQuery, Timestamp, WatchEvent, WatchQuery, WatchStart,
};
use pollster::block_on;
use tempfile::TempDir;

use super::bench::Bench;
use super::disk::{SimDisk, Survival};
use crate::recovery::{self, Media, Opened};
use crate::{EmbeddedEngine, Settings};

/// A computer with one store on it.
pub(crate) struct Machine {
    pub(crate) disk: SimDisk,
    pub(crate) settings: Settings,
    directory: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Machine {
    /// Segments and memtables are so small that a few commits fill them.
    pub(crate) fn new() -> Self {
        // The cleaner takes revisions of its own, and here every one is counted.
        let settings =
            Settings { segment_bytes: 1024, memtable_bytes: 2 * 1024, clean: false, ..Settings::default() };
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let directory = tempfile::tempdir().expect("a directory");
        Self { disk: SimDisk::default(), settings, directory, clock }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Opens the store.
    pub(crate) fn try_open(&self) -> Result<EmbeddedEngine, EngineError> {
        self.mirror();
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        EmbeddedEngine::open_on(&self.path(), self.settings.clone(), clock, self.media())
    }

    pub(crate) fn open(&self) -> EmbeddedEngine {
        self.try_open().expect("the store opens")
    }

    /// Opens the store without its threads: a test does what they would do.
    pub(crate) fn open_bench(&self) -> Bench {
        Bench::new(self.open_on(self.media()).expect("the store opens"))
    }

    /// Opens the store on other media, without its threads.
    pub(crate) fn open_on(&self, media: Media) -> Result<Opened, EngineError> {
        self.mirror();
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        recovery::open(&self.path(), self.settings.clone(), clock, media)
    }

    /// Cuts the power; the index, which is on another disk, may be gone as well.
    pub(crate) fn power_cycle(&self, survival: Survival, keep_index: bool) {
        self.disk.power_cycle(survival);
        if !keep_index && self.path().join("index").exists() {
            std::fs::remove_dir_all(self.path().join("index")).expect("the index goes");
        }
    }

    /// The log is on the simulated disk, the index in a real directory.
    fn media(&self) -> Media {
        Media { disk: Arc::new(self.disk.clone()), ..Media::real(&self.path()) }
    }

    /// The real directory must look like a store exactly if the one on the disk is.
    fn mirror(&self) {
        let real = self.path().join("STORE");
        if self.disk.has(&real) {
            std::fs::write(&real, "see the simulated disk").expect("a file");
        } else if real.exists() {
            std::fs::remove_file(&real).expect("the file goes");
        }
    }
}

pub(crate) fn bucket() -> BucketName {
    BucketName::parse("b").expect("a name")
}

pub(crate) fn buffered() -> BucketConfig {
    BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() }
}

/// What was committed, or tried to be, in one bucket, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Keys of each batch, in order, each with its value; none for a delete. A header of every record
    /// names the batch.
    batches: Vec<Vec<(String, Option<String>)>>,
    pub(crate) acknowledged: BTreeMap<usize, Committed>,
    refused: BTreeSet<usize>,
}

impl Ledger {
    /// A new batch of one to three operations on few keys.
    pub(crate) fn batch(&mut self) -> (usize, Batch) {
        let tag = self.batches.len();
        let operations: Vec<_> = (0..=tag % 3)
            .map(|part| {
                let key = format!("k.{}", (tag * 3 + part * 4) % 11);
                // Some values are inline in the index, some are not.
                let value = format!("{tag}-{part}-{}", "v".repeat((tag * 7 % 13) * 60));
                (key, ((tag + part) % 5 != 4).then_some(value))
            })
            .collect();
        let mut headers = Headers::new();
        headers.set("batch", &tag.to_string()).expect("a header");
        let operation = |(key, value): &(String, Option<String>)| {
            let key = Key::parse(key).expect("a key");
            let operation = match value {
                Some(value) => Operation::put(key, value.clone()),
                None => Operation::delete(key),
            };
            operation.with_headers(headers.clone())
        };
        let batch = operations.iter().map(operation).collect();
        self.batches.push(operations);
        (tag, batch)
    }

    pub(crate) fn note(&mut self, tag: usize, result: &Result<Committed, CommitError>) {
        match result {
            Ok(committed) => drop(self.acknowledged.insert(tag, *committed)),
            Err(CommitError::Engine(EngineError::DiskFull { .. })) => drop(self.refused.insert(tag)),
            Err(_) => {}
        }
    }

    /// Commits `count` batches at the same time.
    pub(crate) fn commit(
        &mut self,
        engine: &dyn Engine,
        count: usize,
    ) -> Vec<Result<Committed, CommitError>> {
        let (tags, batches): (Vec<_>, Vec<_>) = (0..count).map(|_| self.batch()).unzip();
        let name = bucket();
        let results = block_on(join_all(batches.into_iter().map(|batch| engine.commit(&name, batch))));
        for (tag, result) in tags.into_iter().zip(&results) {
            self.note(tag, result);
        }
        results
    }

    /// Checks that the bucket holds every acknowledged batch, no refused one, and of no batch a part; that
    /// its changes are without a gap, and its entries what the changes make of them. Says which batches
    /// are there.
    pub(crate) fn check(&self, engine: &dyn Engine, all_acknowledged: bool) -> BTreeSet<usize> {
        let changes = match changes(engine) {
            Ok(changes) => changes,
            Err(EngineError::BucketNotFound { .. }) if self.acknowledged.is_empty() => Vec::new(),
            Err(error) => panic!("the bucket cannot be read: {error}"),
        };
        let mut found = BTreeMap::new();
        let mut entries = BTreeMap::new();
        for together in changes.chunk_by(|_, next| next.batch.index > 0) {
            let tag: usize =
                together[0].entry.headers.get("batch").expect("a header").parse().expect("a tag");
            let operations: Vec<_> = together.iter().map(operation_of).collect();
            assert_eq!(operations, self.batches[tag], "all of batch {tag}, or nothing");
            let revisions: Vec<_> = together.iter().map(|change| change.entry.revision).collect();
            assert!(revisions.is_sorted_by(|before, after| before.next() == *after));
            assert!(together.iter().all(|change| usize::from(change.batch.size) == together.len()));
            assert!(found.insert(tag, revisions[0]).is_none(), "batch {tag} is there twice");
            assert!(!self.refused.contains(&tag), "batch {tag} was refused and is there");
            entries.extend(operations);
        }
        for (tag, committed) in &self.acknowledged {
            let there = found.get(tag);
            if all_acknowledged || there.is_some() {
                assert_eq!(there, Some(&committed.first), "batch {tag} was acknowledged");
            }
        }
        if !changes.is_empty() {
            let live: BTreeMap<_, _> =
                entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
            assert_eq!(contents(engine), live);
        }
        found.into_keys().collect()
    }
}

fn operation_of(change: &Change) -> (String, Option<String>) {
    let entry = &change.entry;
    let value = entry.op.is_put().then(|| String::from_utf8(entry.value.to_vec()).expect("text"));
    (entry.key.to_string(), value)
}

/// Every change of the bucket.
fn changes(engine: &dyn Engine) -> Result<Vec<Change>, EngineError> {
    let last = block_on(engine.bucket(&bucket()))?.last_revision;
    // The bucket was made first, so that its own revision is the store's first.
    let start = WatchStart::Revision(Revision::new(1));
    let mut watch = block_on(engine.watch(&bucket(), WatchQuery { start, ..WatchQuery::default() }))?;
    let mut changes: Vec<Change> = Vec::new();
    while changes.last().map_or(Revision::new(1), |change| change.entry.revision) < last {
        match block_on(watch.next()).expect("more to come")? {
            WatchEvent::Change(change) => changes.push(change),
            WatchEvent::InitialDone { .. } => panic!("nobody asked for initial values"),
        }
    }
    for (change, number) in changes.iter().zip(2..) {
        assert_eq!(change.entry.revision.get(), number, "no gap");
    }
    Ok(changes)
}

/// Every live entry of the bucket.
pub(crate) fn contents(engine: &dyn Engine) -> BTreeMap<String, String> {
    let page = block_on(engine.scan(&bucket(), ScanQuery::default())).expect("a scan");
    assert!(page.next.is_none(), "few keys");
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
    page.entries.into_iter().map(|entry| (entry.key.to_string(), text(&entry.value))).collect()
}
