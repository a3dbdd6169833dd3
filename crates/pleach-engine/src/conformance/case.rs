use std::future::Future;
use std::num::NonZeroU8;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Subject;
use super::watching::Watching;
use crate::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, CommitError, Committed, Conflict,
    ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError, Entry, Expectation, Expiry, Key,
    KeyFilter, Operation, Page, Revision, ScanQuery, Selection, WatchQuery, WatchStart,
};

/// One promise's use of its subject. Everything the promises do to an engine goes through here, so that
/// a change of the engine trait is a change of a helper.
pub(super) struct Case {
    subject: Subject,
    buckets: AtomicU32,
}

impl Case {
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, buckets: AtomicU32::new(0) }
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &*self.subject.engine
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        self.engine().capabilities()
    }

    /// The plainest configuration this engine can keep.
    pub(super) fn config(&self) -> BucketConfig {
        BucketConfig::plain(self.capabilities())
    }

    /// An empty bucket.
    pub(super) async fn bucket(&self) -> Bucket {
        self.bucket_with(|_| ()).await
    }

    /// An empty bucket that keeps this many records of a key.
    pub(super) async fn bucket_with_history(&self, history: u8) -> Bucket {
        self.bucket_with(|config| config.history = NonZeroU8::new(history).unwrap()).await
    }

    /// An empty bucket with a TTL.
    pub(super) async fn bucket_with_ttl(&self, ttl: Duration) -> Bucket {
        self.bucket_with(|config| config.ttl = Some(ttl)).await
    }

    /// An empty bucket whose configuration is changed by `change`.
    pub(super) async fn bucket_with(&self, change: impl FnOnce(&mut BucketConfig)) -> Bucket {
        let mut config = self.config();
        change(&mut config);
        let name = format!("bucket-{}", self.buckets.fetch_add(1, Ordering::Relaxed));
        let bucket = self.named(&name);
        bucket.engine.create_bucket(&bucket.name, config).await.expect("a bucket can be created");
        bucket
    }

    /// A handle to a bucket that may not be there.
    pub(super) fn named(&self, name: &str) -> Bucket {
        Bucket { engine: Arc::clone(&self.subject.engine), name: BucketName::parse(name).unwrap() }
    }

    /// A while that is short for the suite and long for the engine, `times` over.
    pub(super) fn a_while(&self, times: u32) -> Duration {
        self.subject.is_timed.fetch_or(!self.subject.exact, Ordering::Relaxed);
        self.subject.pause * times
    }

    /// Lets time pass.
    pub(super) async fn advance(&self, duration: Duration) {
        (self.subject.advance)(duration).await;
    }

    /// Whether time stands still unless [`Case::advance`] is called.
    pub(super) fn is_exact(&self) -> bool {
        self.subject.exact
    }
}

/// A handle to a bucket that reads like a sentence and expects to succeed.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) name: BucketName,
}

impl Bucket {
    pub(super) async fn try_commit(&self, batch: impl Into<Batch>) -> Result<Committed, CommitError> {
        self.engine.commit(&self.name, batch.into()).await
    }

    pub(super) async fn commit(&self, batch: impl Into<Batch>) -> Committed {
        self.try_commit(batch).await.expect("the batch can be committed")
    }

    pub(super) async fn put(&self, at: &str, value: &str) -> Revision {
        self.commit(put(at, value)).await.last
    }

    pub(super) async fn put_for(&self, at: &str, value: &str, ttl: Duration) -> Revision {
        self.commit(put(at, value).expiring(Expiry::After(ttl))).await.last
    }

    /// Puts every key in a commit of its own, its name as its value, and returns the last revision.
    pub(super) async fn put_all(&self, keys: &[&str]) -> Revision {
        let mut last = Revision::ZERO;
        for at in keys {
            last = self.put(at, at).await;
        }
        last
    }

    pub(super) async fn delete(&self, at: &str) -> Revision {
        self.commit(Operation::delete(key(at))).await.last
    }

    pub(super) async fn purge(&self, at: &str) -> Revision {
        self.commit(Operation::purge(key(at))).await.last
    }

    /// The conflict that committing `batch` must be.
    pub(super) async fn conflict(&self, batch: impl Into<Batch>) -> Conflict {
        match self.try_commit(batch).await {
            Err(CommitError::Conflict(conflict)) => conflict,
            other => panic!("expected a conflict, got {other:?}"),
        }
    }

    pub(super) async fn try_read(&self, at: &str, when: At) -> Result<Option<Entry>, EngineError> {
        self.engine.read(&self.name, &key(at), when).await
    }

    pub(super) async fn get(&self, at: &str) -> Option<Entry> {
        self.try_read(at, At::Latest).await.expect("the key can be read")
    }

    /// The live value of a key, as text.
    pub(super) async fn text(&self, at: &str) -> Option<String> {
        self.get(at).await.map(|entry| value_text(&entry))
    }

    pub(super) async fn text_at(&self, at: &str, revision: Revision) -> Option<String> {
        let entry = self.try_read(at, At::Revision(revision)).await.expect("the key can be read");
        entry.map(|entry| value_text(&entry))
    }

    /// The kept records of a key, each as in [`told`].
    pub(super) async fn history(&self, at: &str) -> Vec<String> {
        self.records(at).await.iter().map(told).collect()
    }

    pub(super) async fn records(&self, at: &str) -> Vec<Entry> {
        self.engine.history(&self.name, &key(at)).await.expect("the history can be read")
    }

    pub(super) async fn try_scan(&self, query: ScanQuery) -> Result<Page, EngineError> {
        self.engine.scan(&self.name, query).await
    }

    pub(super) async fn scan(&self, query: ScanQuery) -> Page {
        self.try_scan(query).await.expect("the bucket can be scanned")
    }

    /// The keys on the only page of a scan.
    pub(super) async fn keys(&self, selection: impl Into<Selection>) -> Vec<String> {
        let query = ScanQuery { selection: selection.into(), limit: 1000, ..ScanQuery::default() };
        let page = self.scan(query).await;
        assert_eq!(page.next, None, "one page is enough");
        keys_of(&page.entries)
    }

    pub(super) async fn count(&self, selection: impl Into<Selection>) -> u64 {
        self.engine.count(&self.name, selection.into()).await.expect("the bucket can be counted")
    }

    pub(super) async fn try_watch(&self, query: WatchQuery) -> Result<Watching, EngineError> {
        self.engine.watch(&self.name, query).await.map(Watching::new)
    }

    pub(super) async fn watch(&self, start: WatchStart) -> Watching {
        self.watch_by(&[], start).await
    }

    pub(super) async fn watch_by(&self, filters: &[&str], start: WatchStart) -> Watching {
        let filters = filters.iter().map(|text| filter(text)).collect();
        self.try_watch(WatchQuery { filters, start }).await.expect("the bucket can be watched")
    }

    pub(super) async fn compact(&self, at: &str, keep: u8) {
        let keep = NonZeroU8::new(keep).unwrap();
        self.engine.compact_key(&self.name, &key(at), keep).await.expect("the key can be compacted");
    }

    pub(super) async fn try_consume(
        &self,
        name: &str,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.engine.create_consumer(&self.name, &consumer(name), start).await
    }

    pub(super) async fn consume(&self, name: &str, start: ConsumerStart) -> ConsumerInfo {
        self.try_consume(name, start).await.expect("the consumer can be created")
    }

    pub(super) async fn consumer(&self, name: &str) -> ConsumerInfo {
        self.engine.consumer(&self.name, &consumer(name)).await.expect("the consumer is there")
    }

    pub(super) async fn try_acknowledge(&self, name: &str, revision: Revision) -> Result<(), EngineError> {
        self.engine.acknowledge(&self.name, &consumer(name), revision).await
    }

    pub(super) async fn acknowledge(&self, name: &str, revision: Revision) {
        self.try_acknowledge(name, revision).await.expect("the revision can be acknowledged");
    }

    pub(super) async fn try_reset(
        &self,
        name: &str,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.engine.reset_consumer(&self.name, &consumer(name), start).await
    }

    pub(super) async fn info(&self) -> BucketInfo {
        self.engine.bucket(&self.name).await.expect("the bucket is there")
    }

    /// Changes the configuration.
    pub(super) async fn update(&self, change: impl FnOnce(&mut BucketConfig)) -> BucketInfo {
        let mut config = self.info().await.config;
        change(&mut config);
        self.engine.update_bucket(&self.name, config).await.expect("the bucket can be updated")
    }

    /// Deletes the bucket.
    pub(super) async fn remove(&self) {
        self.engine.delete_bucket(&self.name).await.expect("the bucket can be deleted");
    }

    /// Deletes the bucket and creates its namesake.
    pub(super) async fn recreate(&self) {
        let config = self.info().await.config;
        self.remove().await;
        self.engine.create_bucket(&self.name, config).await.expect("the bucket can be created again");
    }
}

pub(super) fn key(text: &str) -> Key {
    Key::parse_reserved(text).unwrap()
}

pub(super) fn consumer(text: &str) -> ConsumerName {
    ConsumerName::parse(text).unwrap()
}

pub(super) fn filter(text: &str) -> KeyFilter {
    KeyFilter::parse(text).unwrap()
}

pub(super) fn put(at: &str, value: &str) -> Operation {
    Operation::put(key(at), value.to_owned())
}

pub(super) fn put_new(at: &str, value: &str) -> Operation {
    put(at, value).expecting(Expectation::Absent)
}

pub(super) fn put_over(at: &str, value: &str, seen: Revision) -> Operation {
    put(at, value).expecting(Expectation::Revision(seen))
}

pub(super) fn value_text(entry: &Entry) -> String {
    String::from_utf8(entry.value.to_vec()).expect("the suite wrote text")
}

pub(super) fn keys_of(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// A record as `put a=1` or `delete a`.
pub(super) fn told(entry: &Entry) -> String {
    if entry.op.is_put() {
        return format!("put {}={}", entry.key, value_text(entry));
    }
    assert!(entry.value.is_empty(), "a marker has no value");
    format!("{} {}", entry.op, entry.key)
}

/// Something to do at the same time as something else.
pub(super) type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts every task on a thread of its own, all at the same moment.
pub(super) fn start_together<T: Send + 'static>(tasks: Vec<Task<T>>) -> Vec<JoinHandle<T>> {
    let together = Arc::new(Barrier::new(tasks.len()));
    let start = |task: Task<T>| {
        let (together, runtime) = (Arc::clone(&together), Handle::current());
        spawn_blocking(move || {
            together.wait();
            runtime.block_on(task)
        })
    };
    tasks.into_iter().map(start).collect()
}

pub(super) async fn finish<T>(started: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in started {
        results.push(task.await.expect("no task panics"));
    }
    results
}

/// Runs every task on a thread of its own, all at the same time.
pub(super) async fn at_once<T: Send + 'static>(tasks: Vec<Task<T>>) -> Vec<T> {
    finish(start_together(tasks)).await
}
