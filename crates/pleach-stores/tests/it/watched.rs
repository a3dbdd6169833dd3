use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pleach_engine::{
    Batch, BucketConfig, BucketInfo, BucketName, Capabilities, CommitError, Committed, Engine, EngineError,
    Entry, Key, Page, ScanQuery, WatchEvent, WatchQuery, WatchStart, WatchStream, hand_on,
};
use tokio::sync::Notify;

/// When a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    /// Before it has done anything.
    Before,
    /// After it has done everything, so that only its answer is lost.
    After,
}

/// A real engine whose calls are counted and can be made to fail.
#[derive(Debug)]
pub(crate) struct Watched {
    engine: Arc<dyn Engine>,
    capabilities: Capabilities,
    calls: AtomicUsize,
    fails: Mutex<Option<(usize, Failing)>>,
    scans: Mutex<BTreeMap<String, usize>>,
    histories: AtomicUsize,
    is_cramped: AtomicBool,
    /// What someone else does just before the next scan of a bucket.
    before_scan: Mutex<Option<(BucketName, Act)>>,
    /// What someone else does just before a bucket is created.
    before_create: Mutex<Option<(BucketName, Act)>>,
    /// Before which the next commit to a bucket waits.
    gate: Mutex<Option<(BucketName, Arc<Gate>)>>,
}

/// What someone else does.
struct Act(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Act")
    }
}

/// Holds a commit up after it has left its caller and before it is done.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_reached: AtomicBool,
    open: Notify,
}

impl Gate {
    /// Waits until a commit stands before it.
    pub(crate) fn wait(&self) {
        while !self.is_reached.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn open(&self) {
        self.open.notify_one();
    }
}

impl Watched {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Arc<Self> {
        let capabilities = engine.capabilities().clone();
        Self::with_capabilities(engine, capabilities)
    }

    /// As an engine that can do less.
    pub(crate) fn with_capabilities(engine: Arc<dyn Engine>, capabilities: Capabilities) -> Arc<Self> {
        Arc::new(Self {
            engine,
            capabilities,
            calls: AtomicUsize::new(0),
            fails: Mutex::new(None),
            scans: Mutex::default(),
            histories: AtomicUsize::new(0),
            is_cramped: AtomicBool::new(false),
            before_scan: Mutex::default(),
            before_create: Mutex::default(),
            gate: Mutex::default(),
        })
    }

    /// Lets the call after `calls` others fail, and all after it until this is called again.
    pub(crate) fn fail_after(&self, calls: usize, how: Failing) {
        self.calls.store(0, Ordering::SeqCst);
        *self.fails.lock().unwrap() = Some((calls, how));
    }

    /// Lets no call fail any more. Says whether one did.
    pub(crate) fn mend(&self) -> bool {
        let fails = self.fails.lock().unwrap().take();
        fails.is_some_and(|(calls, _)| self.calls.load(Ordering::SeqCst) > calls)
    }

    /// How often a scan of the bucket began since this was last asked.
    pub(crate) fn scans(&self, bucket: &str) -> usize {
        self.scans.lock().unwrap().remove(bucket).unwrap_or_default()
    }

    /// How many histories were asked for since this was last asked.
    pub(crate) fn histories(&self) -> usize {
        self.histories.swap(0, Ordering::SeqCst)
    }

    /// From now on it has no room for all records of a bucket at once.
    pub(crate) fn cramp(&self) {
        self.is_cramped.store(true, Ordering::SeqCst);
    }

    /// Lets someone else do `act` just before the next scan of `bucket` begins.
    pub(crate) fn before_scan(&self, bucket: &BucketName, act: impl FnOnce() + Send + 'static) {
        *self.before_scan.lock().unwrap() = Some((bucket.clone(), Act(Box::new(act))));
    }

    /// Lets someone else do `act` just before `bucket` is created.
    pub(crate) fn before_create(&self, bucket: &BucketName, act: impl FnOnce() + Send + 'static) {
        *self.before_create.lock().unwrap() = Some((bucket.clone(), Act(Box::new(act))));
    }

    /// Holds the next commit to `bucket` up.
    pub(crate) fn hold_up(&self, bucket: &BucketName) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        *self.gate.lock().unwrap() = Some((bucket.clone(), Arc::clone(&gate)));
        gate
    }

    async fn pass<T, E: From<EngineError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let fails = *self.fails.lock().unwrap();
        let lost = || E::from(EngineError::Unreachable { reason: "a test".into() });
        match fails {
            Some((calls, Failing::Before)) if number >= calls => Err(lost()),
            // Only the first takes effect: after that, nobody answers.
            Some((calls, Failing::After)) if number > calls => Err(lost()),
            Some((calls, Failing::After)) if number == calls => call.await.and_then(|_| Err(lost())),
            _ => call.await,
        }
    }
}

#[async_trait]
impl Engine for Watched {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        let act = self.before_create.lock().unwrap().take_if(|(name, _)| name == bucket);
        if let Some((_, Act(act))) = act {
            act();
        }
        self.pass(self.engine.create_bucket(bucket, config)).await
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        let gate = self.gate.lock().unwrap().take_if(|(name, _)| name == bucket);
        if let Some((_, gate)) = gate {
            gate.is_reached.store(true, Ordering::SeqCst);
            gate.open.notified().await;
        }
        self.pass(self.engine.commit(bucket, batch)).await
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.histories.fetch_add(1, Ordering::SeqCst);
        self.pass(self.engine.history(bucket, key)).await
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        if self.is_cramped.load(Ordering::SeqCst) && matches!(query.start, WatchStart::History) {
            return Err(EngineError::Unsupported { what: "watches that take so much memory" });
        }
        let watch = self.pass(self.engine.watch(bucket, query)).await?;
        // As engines do that other processes write to: they show no fences.
        let is_shown = |event: &Result<WatchEvent, EngineError>| !matches!(event, Ok(WatchEvent::Change(change)) if change.entry.key.is_fence());
        Ok(Box::pin(watch.filter(move |event| std::future::ready(is_shown(event)))))
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        let act = self.before_scan.lock().unwrap().take_if(|(name, _)| name == bucket);
        if let Some((_, Act(act))) = act {
            act();
        }
        if query.page.is_none() {
            *self.scans.lock().unwrap().entry(bucket.to_string()).or_default() += 1;
        }
        let mut page = self.pass(self.engine.scan(bucket, query)).await?;
        // As engines do that other processes write to: they show no fences.
        page.entries.retain(|entry| !entry.key.is_fence());
        Ok(page)
    }

    hand_on!([engine] through pass: update_bucket delete_bucket bucket buckets read count compact_key);
    hand_on!([engine] create_consumer consumers consumer acknowledge reset_consumer delete_consumer close);
}
