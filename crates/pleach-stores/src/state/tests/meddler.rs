use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pleach_engine::*;

/// A call to meddle with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The next commit.
    Commit,
    /// The next read of an entry.
    Read,
    /// The next scan that reads values.
    ValueScan,
    /// The next count.
    Count,
}

type Deed = Box<dyn FnOnce(Arc<dyn Engine>) + Send>;

/// An engine that counts what is read through it, and lets a test do something right before a call.
pub(super) struct Meddler {
    engine: Arc<dyn Engine>,
    values: AtomicUsize,
    keys: AtomicUsize,
    deeds: Mutex<Vec<(Call, Deed)>>,
    /// Commits to fail, from now on.
    failing: AtomicUsize,
}

impl Meddler {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        let (values, keys, failing) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        Self { engine, values, keys, deeds: Mutex::new(Vec::new()), failing }
    }

    /// Does `deed` with the engine right before the next such call; of several for one call, one each.
    pub(super) fn before(&self, call: Call, deed: impl FnOnce(Arc<dyn Engine>) + Send + 'static) {
        self.deeds.lock().unwrap().push((call, Box::new(deed)));
    }

    /// Fails every commit but the next `count`.
    pub(super) fn fail_after(&self, count: usize) {
        self.failing.store(count, Ordering::SeqCst);
    }

    /// How many values, and how many keys without one, were read since this was asked last.
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.values.swap(0, Ordering::SeqCst), self.keys.swap(0, Ordering::SeqCst))
    }

    fn meddle(&self, call: Call) {
        let deed = {
            let mut deeds = self.deeds.lock().unwrap();
            let place = deeds.iter().position(|(wanted, _)| *wanted == call);
            place.map(|place| deeds.remove(place).1)
        };
        if let Some(deed) = deed {
            deed(Arc::clone(&self.engine));
        }
    }
}

impl fmt::Debug for Meddler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meddler({:?})", self.engine)
    }
}

#[async_trait]
impl Engine for Meddler {
    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.meddle(Call::Commit);
        if self.failing.load(Ordering::SeqCst) == 0 {
            return Err(EngineError::Overloaded.into());
        }
        self.failing.fetch_sub(1, Ordering::SeqCst);
        self.engine.commit(bucket, batch).await
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        self.meddle(Call::Read);
        self.values.fetch_add(1, Ordering::SeqCst);
        self.engine.read(bucket, key, at).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        let keys_only = query.keys_only;
        if !keys_only {
            self.meddle(Call::ValueScan);
        }
        let page = self.engine.scan(bucket, query).await?;
        let counter = if keys_only { &self.keys } else { &self.values };
        counter.fetch_add(page.entries.len(), Ordering::SeqCst);
        Ok(page)
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.meddle(Call::Count);
        self.engine.count(bucket, selection).await
    }

    hand_on!([engine] capabilities create_bucket update_bucket delete_bucket bucket buckets history watch);
    hand_on!([engine] compact_key create_consumer consumers consumer acknowledge reset_consumer);
    hand_on!([engine] delete_consumer close);
}
