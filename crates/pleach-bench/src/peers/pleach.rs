use std::collections::VecDeque;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use pleach::{
    Bucket, BucketConfig, Committed, Durability, KeyRange, Revision, ScanQuery, Selection, Store,
    SystemClock, WatchEvent, WatchOptions, WatchStart, WriteError,
};
use pleach_embedded::{EmbeddedEngine, Settings};
use pollster::block_on;
use tokio::runtime::Runtime;

use super::{Opening, Peer, Record, See};
use crate::drive::{Caller, Drive, Step};
use crate::keys::KeyText;

const BUCKET: &str = "bench";

/// How many threads run the callers' tasks.
const RUNTIME_THREADS: usize = 2;

/// Pleach, through its library.
pub(crate) struct PleachPeer {
    store: Store,
    bucket: Bucket,
    /// Whether the bucket syncs its commits now.
    synced: AtomicBool,
    /// The newest revision that was acknowledged.
    last: AtomicU64,
    runtime: Runtime,
    /// Batches that were begun and are not yet acknowledged, oldest first.
    in_flight: Mutex<VecDeque<Commit>>,
    batches_in_flight: usize,
}

type Commit = Pin<Box<dyn Future<Output = std::result::Result<Committed, WriteError>> + Send>>;

/// So many batches are under way while keys are loaded: one thread need not wait for each.
const BATCHES_IN_FLIGHT: usize = 4;

impl PleachPeer {
    pub(crate) fn open(opening: Opening<'_>) -> Result<Self> {
        let mut settings = Settings::default();
        if opening.unflushed {
            settings.memtable_bytes = opening.memtable_bytes() as u64;
        }
        Self::open_with(opening, settings)
    }

    fn open_with(opening: Opening<'_>, settings: Settings) -> Result<Self> {
        // The engine is opened by itself because the library has no option for the size of its memtable.
        let engine = EmbeddedEngine::open_with(opening.directory, settings, Arc::new(SystemClock::new()))?;
        let store = Store::with_engine(Arc::new(engine));
        let bucket = match block_on(store.bucket(BUCKET)) {
            Ok(bucket) => bucket,
            Err(_) => block_on(store.create_bucket(BUCKET))?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(RUNTIME_THREADS).build()?;
        // Who is about to be killed waits for each.
        let batches_in_flight = if opening.unflushed { 1 } else { BATCHES_IN_FLIGHT };
        let synced = block_on(bucket.config())?.durability == Durability::Synced;
        Ok(Self {
            store,
            bucket,
            synced: synced.into(),
            last: AtomicU64::new(0),
            runtime,
            in_flight: Mutex::default(),
            batches_in_flight,
        })
    }

    pub(crate) fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Has the bucket sync its commits, or not.
    fn set_synced(&self, synced: bool) -> Result<()> {
        if self.synced.swap(synced, Ordering::AcqRel) != synced {
            let durability = if synced { Durability::Synced } else { Durability::Buffered };
            block_on(
                self.store.update_bucket(BUCKET, BucketConfig { durability, ..BucketConfig::default() }),
            )?;
        }
        Ok(())
    }

    fn await_oldest(&self, in_flight: &mut VecDeque<Commit>) -> Result<()> {
        if let Some(commit) = in_flight.pop_front() {
            self.acknowledged(block_on(commit)?.last);
        }
        Ok(())
    }

    fn acknowledged(&self, revision: Revision) {
        self.last.fetch_max(revision.get(), Ordering::AcqRel);
    }
}

impl Peer for PleachPeer {
    fn put_batch(&self, records: &[Record]) -> Result<()> {
        self.set_synced(false)?;
        let batch = self.bucket.batch();
        let batch = records.iter().fold(batch, |batch, record| {
            batch.put(record.key.as_str(), Bytes::copy_from_slice(&record.value))
        });
        // Begun by asking once; then the next batch is made while this one is written.
        let mut commit: Commit = Box::pin(batch.commit());
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        match commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(committed) => self.acknowledged(committed?.last),
            Poll::Pending => in_flight.push_back(commit),
        }
        while in_flight.len() >= self.batches_in_flight {
            self.await_oldest(&mut in_flight)?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        while !in_flight.is_empty() {
            self.await_oldest(&mut in_flight)?;
        }
        drop(in_flight);
        // A change of configuration is synced itself, and with it everything before it in the log.
        self.set_synced(true)
    }

    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()> {
        self.set_synced(true)?;
        self.acknowledged(block_on(self.bucket.put(key.as_str(), Bytes::copy_from_slice(value)))?);
        Ok(())
    }

    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool> {
        let Some(entry) = block_on(self.bucket.get(key.as_str()))? else { return Ok(false) };
        see(entry.revision.get(), key, &entry.value);
        Ok(true)
    }

    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize> {
        let range = KeyRange { start: Bound::Included(from.to_vec()), end: Bound::Unbounded };
        let query = ScanQuery { selection: Selection::range(range), limit: count, ..ScanQuery::default() };
        let page = block_on(self.bucket.scan_page(query))?;
        for entry in &page.entries {
            see(entry.revision.get(), entry.key.as_bytes(), &entry.value);
        }
        Ok(page.entries.len())
    }

    fn replay(&self, see: See<'_>) -> Result<Option<u64>> {
        let last = self.last.load(Ordering::Acquire);
        let start = WatchStart::Revision(Revision::new(1));
        let count = block_on(async {
            let mut watch = self.bucket.watch_with(WatchOptions { start, ..WatchOptions::default() }).await?;
            let mut count = 0;
            while let Some(event) = watch.next().await? {
                let WatchEvent::Change(change) = event else { continue };
                let entry = &change.entry;
                see(entry.revision.get(), entry.key.as_bytes(), &entry.value);
                count += 1;
                if entry.revision.get() >= last {
                    return Ok(count);
                }
            }
            bail!("the watch ended before revision {last}")
        });
        count.context("the feed cannot be replayed").map(Some)
    }

    fn trim_feed(&self, _keep: u64) -> Result<()> {
        Ok(()) // The cleaner does.
    }

    fn drive(&self, drive: &Arc<Drive>) -> Result<Vec<Caller>> {
        self.set_synced(true)?;
        let tasks: Vec<_> = (0..drive.callers)
            .map(|number| self.runtime.spawn(call(self.bucket.clone(), Caller::new(drive, number))))
            .collect();
        let mut callers = Vec::new();
        for task in tasks {
            let (caller, last) = block_on(task)??;
            self.last.fetch_max(last, Ordering::AcqRel);
            callers.push(caller);
        }
        Ok(callers)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(block_on(self.store.close())?)
    }
}

/// One caller as a task; returns it with the newest revision it was told.
async fn call(bucket: Bucket, mut caller: Caller) -> Result<(Caller, u64)> {
    let mut last = 0;
    while let Some(step) = caller.next() {
        match step {
            Step::Get => {
                let entry = bucket.get(caller.key.as_str()).await?;
                match &entry {
                    Some(entry) => caller.saw(&entry.value)?,
                    None => caller.saw_nothing()?,
                }
            }
            Step::Put => {
                let value = Bytes::copy_from_slice(&caller.value);
                last = bucket.put(caller.key.as_str(), value).await?.get().max(last);
            }
        }
        caller.done();
    }
    Ok((caller, last))
}
