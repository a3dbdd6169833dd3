use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream::StreamExt;
use pleach::{BucketName, Engine, EngineError, WatchQuery};
use pleach_engine::{MemoryEngine, WatchStream, hand_on};

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
    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        let stream = self.pass(self.engine.watch(bucket, query)).await?;
        let fuse = Arc::clone(&self.fuse);
        Ok(Box::pin(stream.map(move |event| fuse.step().and(event))))
    }

    hand_on!([engine] through pass: create_bucket update_bucket delete_bucket bucket buckets commit read history);
    hand_on!([engine] through pass: scan count compact_key create_consumer consumers consumer acknowledge);
    hand_on!([engine] through pass: reset_consumer delete_consumer);
    hand_on!([engine] capabilities close);
}
