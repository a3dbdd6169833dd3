use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    Batch, BucketConfig, BucketName, Clock, Engine, EngineError, Entry, Key, ManualClock, Operation,
    ScanQuery, Timestamp,
};
use pollster::block_on;
use tempfile::TempDir;

/// Small segments and memtables, so that short tests cross their borders.
pub(crate) fn small() -> Settings {
    Settings { segment_bytes: 4 * 1024, memtable_bytes: 16 * 1024, ..Settings::default() }
}

/// A store in a directory of its own, opened and closed as a test likes.
pub(crate) struct Store {
    pub(crate) directory: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) settings: Settings,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::with(small())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        Self { directory, clock, settings }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn open(&self) -> EmbeddedEngine {
        self.try_open().expect("the store opens")
    }

    pub(crate) fn try_open(&self) -> Result<EmbeddedEngine, EngineError> {
        EmbeddedEngine::open_with(
            self.path(),
            self.settings.clone(),
            Arc::clone(&self.clock) as Arc<dyn Clock>,
        )
    }

    /// The segments of the log, oldest first.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        files(&self.path().join("log"))
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "log"))
            .collect()
    }
}

pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory can be listed");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Copies a store's directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for path in files(from) {
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a copy");
        }
    }
}

pub(crate) fn bucket(name: &str) -> BucketName {
    BucketName::parse(name).expect("a bucket name")
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}

/// Creates bucket `b`, which keeps `history` records of each key.
pub(crate) fn create(engine: &dyn Engine, history: u8) -> BucketName {
    let name = bucket("b");
    let config = BucketConfig { history: history.try_into().expect("not zero"), ..BucketConfig::default() };
    block_on(engine.create_bucket(&name, config)).expect("the bucket is created");
    name
}

pub(crate) fn put(engine: &dyn Engine, name: &BucketName, at: &str, value: impl Into<bytes::Bytes>) -> u64 {
    let batch = Batch::from(Operation::put(key(at), value));
    block_on(engine.commit(name, batch)).expect("a commit").last.get()
}

pub(crate) fn get(engine: &dyn Engine, name: &BucketName, at: &str) -> Option<String> {
    let entry = block_on(engine.read(name, &key(at), pleach_engine::At::Latest)).expect("a read");
    entry.map(|entry| String::from_utf8(entry.value.to_vec()).expect("text"))
}

/// Every live entry of a bucket, by key.
pub(crate) fn contents(
    engine: &dyn Engine,
    name: &BucketName,
) -> Result<BTreeMap<String, Entry>, EngineError> {
    let mut all = BTreeMap::new();
    let mut query = ScanQuery { limit: 1000, ..ScanQuery::default() };
    loop {
        let page = block_on(engine.scan(name, query.clone()))?;
        all.extend(page.entries.into_iter().map(|entry| (entry.key.to_string(), entry)));
        match page.next {
            Some(next) => query.page = Some(next),
            None => return Ok(all),
        }
    }
}
