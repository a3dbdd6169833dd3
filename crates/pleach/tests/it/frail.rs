use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream::StreamExt;
use pleach::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, CommitError, Committed, ConsumerInfo,
    ConsumerName, ConsumerStart, Engine, EngineError, Entry, Key, Page, Revision, ScanQuery, Selection,
    WatchQuery,
};
use pleach_engine::{MemoryEngine, WatchStream};

/// What a crash can come between: the beginning and the end of every call, and the events of watches.
#[derive(Debug)]
pub(crate) struct Fuse {
    left: AtomicUsize,
    blown: AtomicBool,
}

impl Fuse {
    /// Lets this many more steps pass, and none after them.
    pub(crate) fn set(&self, steps: usize) {
        self.left.store(steps, Ordering::SeqCst);
        self.blown.store(false, Ordering::SeqCst);
    }

    /// Whether a step was refused since it was set.
    pub(crate) fn is_blown(&self) -> bool {
        self.blown.load(Ordering::SeqCst)
    }

    fn step(&self) -> Result<(), EngineError> {
        let spent = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        spent.map(drop).map_err(|_| {
            self.blown.store(true, Ordering::SeqCst);
            EngineError::Closed
        })
    }
}

/// An engine that is gone after so many steps, as it is to a program that crashes, and can come back. What a call
/// did before its end is refused stays done.
#[derive(Debug)]
pub(crate) struct Frail {
    engine: MemoryEngine,
    pub(crate) fuse: Arc<Fuse>,
}

impl Frail {
    pub(crate) fn new() -> Self {
        let fuse = Fuse { left: AtomicUsize::new(usize::MAX), blown: AtomicBool::new(false) };
        Self { engine: MemoryEngine::new(), fuse: Arc::new(fuse) }
    }

    async fn pass<T, E: From<EngineError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.fuse.step()?;
        let result = call.await;
        self.fuse.step()?;
        result
    }
}

#[async_trait]
impl Engine for Frail {
    fn capabilities(&self) -> &Capabilities {
        self.engine.capabilities()
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.pass(self.engine.create_bucket(bucket, config)).await
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.pass(self.engine.update_bucket(bucket, config)).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        self.pass(self.engine.delete_bucket(bucket)).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
        self.pass(self.engine.bucket(bucket)).await
    }

    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.pass(self.engine.buckets()).await
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.pass(self.engine.commit(bucket, batch)).await
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        self.pass(self.engine.read(bucket, key, at)).await
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.pass(self.engine.history(bucket, key)).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        self.pass(self.engine.scan(bucket, query)).await
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.pass(self.engine.count(bucket, selection)).await
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        let stream = self.pass(self.engine.watch(bucket, query)).await?;
        let fuse = Arc::clone(&self.fuse);
        Ok(Box::pin(stream.map(move |event| fuse.step().and(event))))
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        self.pass(self.engine.compact_key(bucket, key, keep)).await
    }

    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.pass(self.engine.create_consumer(bucket, consumer, start)).await
    }

    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
        self.pass(self.engine.consumers(bucket)).await
    }

    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        self.pass(self.engine.consumer(bucket, consumer)).await
    }

    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        self.pass(self.engine.acknowledge(bucket, consumer, revision)).await
    }

    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.pass(self.engine.reset_consumer(bucket, consumer, start)).await
    }

    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError> {
        self.pass(self.engine.delete_consumer(bucket, consumer)).await
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.engine.close().await
    }
}
