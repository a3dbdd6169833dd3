use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::stream::{StreamExt, unfold};
use pleach::{
    At, BucketName, Clock, Engine, EngineError, Entry, Key, Page, Revision, ScanQuery, Selection, WatchQuery,
};
use pleach_engine::{MemoryEngine, WatchStream, hand_on};
use tokio::sync::{Notify, Semaphore};

/// Lets any number of events pass.
pub(crate) const FREELY: usize = 1 << 20;

/// An engine that counts what it is asked, and whose watches of every key, as caches have them, deliver only
/// as many events as it is told.
#[derive(Debug)]
pub(crate) struct Spy {
    engine: MemoryEngine,
    asked: AtomicUsize,
    events_asked: AtomicUsize,
    /// How many events may still be delivered.
    events: Semaphore,
    lose: Notify,
}

impl Spy {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let engine = MemoryEngine::with_clock(clock);
        Arc::new(Self {
            engine,
            asked: AtomicUsize::new(0),
            events_asked: AtomicUsize::new(0),
            events: Semaphore::new(0),
            lose: Notify::new(),
        })
    }

    /// How many reads, scans and counts have reached it.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Delivers `count` events more.
    pub(crate) fn deliver(&self, count: usize) {
        self.events.add_permits(count);
    }

    /// How many events its watches were asked for: all but the last have been dealt with.
    pub(crate) fn asked_for_events(&self) -> usize {
        self.events_asked.load(Ordering::SeqCst)
    }

    /// Ends the watch there is with `Compacted`.
    pub(crate) fn lose_the_watch(&self) {
        self.lose.notify_waiters();
    }

    fn count_one(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }
}

/// The spy as an engine, so that its watches can hold on to it.
#[derive(Debug)]
pub(crate) struct Watched(pub(crate) Arc<Spy>);

#[async_trait]
impl Engine for Watched {
    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        self.0.count_one();
        self.0.engine.read(bucket, key, at).await
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.0.count_one();
        self.0.engine.history(bucket, key).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        self.0.count_one();
        self.0.engine.scan(bucket, query).await
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.0.count_one();
        self.0.engine.count(bucket, selection).await
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        let is_held = query.filters.is_empty();
        let stream = self.0.engine.watch(bucket, query).await?;
        if !is_held {
            return Ok(stream);
        }
        let spy = Arc::clone(&self.0);
        Ok(Box::pin(unfold(Some((stream, spy)), async |state| {
            let (mut stream, spy) = state?;
            let next = {
                // From here on, the watch can be lost; only then is it known to have been asked.
                let lost = pin!(spy.lose.notified());
                spy.events_asked.fetch_add(1, Ordering::SeqCst);
                let delivered = pin!(async {
                    // An error comes through also while events are held.
                    let event = stream.next().await?;
                    if event.is_ok() {
                        spy.events.acquire().await.unwrap().forget();
                    }
                    Some(event)
                });
                match select(lost, delivered).await {
                    Either::Left(_) => Some(Err(EngineError::Compacted { oldest: Revision::new(1) })),
                    Either::Right((event, _)) => event,
                }
            }?;
            let rest = next.is_ok().then_some((stream, spy));
            Some((next, rest))
        })))
    }

    hand_on!([0.engine] capabilities create_bucket update_bucket delete_bucket bucket buckets commit compact_key);
    hand_on!([0.engine] create_consumer consumers consumer acknowledge reset_consumer delete_consumer close);
}
