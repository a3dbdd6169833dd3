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

/// What was asked of an engine, and what it gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Calls that read or write entries.
    pub(super) calls: usize,
    /// Values.
    pub(super) values: usize,
    /// Keys without a value.
    pub(super) keys: usize,
}

/// An engine that counts what is read through it, and lets a test do something right before a call.
pub(super) struct Meddler {
    engine: Arc<dyn Engine>,
    taken: Mutex<Taken>,
    deeds: Mutex<Vec<(Call, Deed)>>,
    /// Commits to fail, from now on.
    failing: AtomicUsize,
}

impl Meddler {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        let failing = AtomicUsize::new(usize::MAX);
        Self { engine, taken: Mutex::default(), deeds: Mutex::default(), failing }
    }

    /// Does `deed` with the engine right before the next such call; of several for one call, one each.
    pub(super) fn before(&self, call: Call, deed: impl FnOnce(Arc<dyn Engine>) + Send + 'static) {
        self.deeds.lock().unwrap().push((call, Box::new(deed)));
    }

    /// Fails every commit but the next `count`.
    pub(super) fn fail_after(&self, count: usize) {
        self.failing.store(count, Ordering::SeqCst);
    }

    /// What was taken since this was asked last.
    pub(super) fn taken(&self) -> Taken {
        std::mem::take(&mut self.taken.lock().unwrap())
    }

    fn take(&self, values: usize, keys: usize) {
        let mut taken = self.taken.lock().unwrap();
        let Taken { calls, .. } = *taken;
        *taken = Taken { calls: calls + 1, values: taken.values + values, keys: taken.keys + keys };
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
        self.take(0, 0);
        if self.failing.load(Ordering::SeqCst) == 0 {
            return Err(EngineError::Overloaded.into());
        }
        self.failing.fetch_sub(1, Ordering::SeqCst);
        self.engine.commit(bucket, batch).await
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        // Whether a fence has to be read depends on what the process knows already.
        if !key.is_fence() {
            self.meddle(Call::Read);
            self.take(1, 0);
        }
        self.engine.read(bucket, key, at).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        let keys_only = query.keys_only;
        if !keys_only {
            self.meddle(Call::ValueScan);
        }
        let page = self.engine.scan(bucket, query).await?;
        let many = page.entries.len();
        if keys_only {
            self.take(0, many)
        } else {
            self.take(many, 0)
        }
        Ok(page)
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.meddle(Call::Count);
        self.take(0, 0);
        self.engine.count(bucket, selection).await
    }

    hand_on!([engine] capabilities create_bucket update_bucket delete_bucket bucket buckets history watch);
    hand_on!([engine] compact_key create_consumer consumers consumer acknowledge reset_consumer);
    hand_on!([engine] delete_consumer close);
}
