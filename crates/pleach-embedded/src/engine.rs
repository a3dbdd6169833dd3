use std::num::NonZeroU8;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pleach_engine::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, CommitError, Committed,
    ConsumerInfo, ConsumerName, ConsumerStart, Direction, Engine, EngineError, Entry, Key, Page, PageCursor,
    Revision, ScanQuery, Selection, SystemClock, Timestamp, WatchQuery, WatchStream,
};
use tokio::sync::oneshot;

use crate::apply::seal_index;
use crate::catalog::Bucket;
use crate::commit::{BucketChange, CommitQueue, ConsumerChange, Request};
use crate::core::{Core, WholeHead, has_expired};
use crate::index::{Head, ReadAt};
use crate::lock::DirectoryLock;
use crate::log::LogWriter;
use crate::recovery::{self, Media, Opened};
use crate::scan::{Budget, CountScan, HeadScan, PageScan};
use crate::settings::Settings;
use crate::snapshots::Snapshot;
use crate::status::Status;
use crate::threads::Threads;
use crate::watch::Watch;

/// Everything the trait can promise.
pub(crate) static CAPABILITIES: Capabilities = Capabilities::complete("embedded");

/// Values larger than this are not read on the caller's thread.
const INLINE_READ_BYTES_MAX: u32 = 256 * 1024;

/// How long to wait for the cleaner before looking again.
const CLEANER_WAIT: Duration = Duration::from_millis(20);

/// How often a record that the index points to is looked for: it may be overwritten and cleaned away in
/// between, but not again and again.
const LOOKS_MAX: usize = 16;

/// If more of the log than this would have to be read again at the next open, the index is written out when
/// the store is closed; less is read sooner than it is written.
const REPLAY_BYTES_MAX: u64 = 1024 * 1024;

/// A store in a directory, for this process alone.
///
/// Works on any async runtime and on none: its threads are its own. Dropping it closes it, which blocks for a
/// moment; [`Engine::close`] does the same without blocking, and says what went wrong.
#[derive(Debug)]
pub struct EmbeddedEngine {
    core: Arc<Core>,
    queue: Arc<CommitQueue>,
    running: Arc<Mutex<Option<Running>>>,
}

/// What ends when the store is closed.
#[derive(Debug)]
struct Running {
    threads: Threads,
    lock: DirectoryLock,
}

impl EmbeddedEngine {
    /// Opens the store in `directory`, making it if there is none. Blocks while it recovers.
    ///
    /// # Errors
    /// `Locked` if another process has it, `NotAStore`, `UnknownFormat`, `Corrupt`, or what the disk says.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, EngineError> {
        Self::open_with(directory, Settings::default(), Arc::new(SystemClock::new()))
    }

    /// Opens the store in `directory` with other settings or another clock.
    ///
    /// # Errors
    /// As [`EmbeddedEngine::open`].
    pub fn open_with(
        directory: impl AsRef<Path>,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EngineError> {
        let directory = directory.as_ref();
        Self::open_on(directory, settings, clock, Media::real(directory))
    }

    /// Opens the store in `directory` as [`EmbeddedEngine::open_with`] does. `progress` hears how many bytes of the
    /// log have been read again to bring the index up to it: all of them if the index is missing or damaged.
    ///
    /// # Errors
    /// As [`EmbeddedEngine::open`].
    pub fn open_with_progress(
        directory: impl AsRef<Path>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, EngineError> {
        let directory = directory.as_ref();
        let media = Media::real(directory);
        Self::start(recovery::open_watched(directory, settings, clock, media, progress)?)
    }

    /// Opens the store in `directory`, which is kept on `media`.
    pub(crate) fn open_on(
        directory: &Path,
        settings: Settings,
        clock: Arc<dyn Clock>,
        media: Media,
    ) -> Result<Self, EngineError> {
        Self::start(recovery::open(directory, settings, clock, media)?)
    }

    fn start(opened: Opened) -> Result<Self, EngineError> {
        let Opened { core, writer, lock } = opened;
        let queue = Arc::new(CommitQueue::new());
        let threads = Threads::start(&core, &queue, writer)?;
        let running = Arc::new(Mutex::new(Some(Running { threads, lock })));
        Ok(Self { core, queue, running })
    }

    /// Cleans the log as far as that is possible now. It is cleaned anyway while the store is open, as soon as
    /// enough of it is garbage; this is for whoever wants the space back at once.
    ///
    /// # Errors
    /// `Closed` or `ReadOnly`. What keeps single segments from being cleaned is in [`EmbeddedEngine::status`].
    pub async fn clean(&self) -> Result<(), EngineError> {
        let core = Arc::clone(&self.core);
        blocking::unblock(move || clean(&core, &mut || {})).await
    }

    /// [`EmbeddedEngine::clean`] and then [`Engine::close`], on this thread; `tell` hears now and then how many bytes
    /// cleaning has read.
    pub(crate) fn clean_and_close(&self, tell: &mut dyn FnMut(u64)) -> Result<Status, EngineError> {
        clean(&self.core, &mut || tell(self.core.cleaned.bytes().0))?;
        let status = self.status();
        close(&self.core, &self.running)?;
        Ok(status)
    }

    /// How the store is doing.
    pub fn status(&self) -> Status {
        Status::of(&self.core)
    }

    /// The front of a store whose threads a test plays.
    #[cfg(test)]
    pub(crate) fn without_threads(core: Arc<Core>, queue: Arc<CommitQueue>) -> Self {
        Self { core, queue, running: Arc::default() }
    }

    fn open_bucket(&self, name: &BucketName) -> Result<Arc<Bucket>, EngineError> {
        self.core.health.check_open()?;
        self.core.catalog.get(name)
    }

    fn info(&self, bucket: &Bucket) -> BucketInfo {
        bucket.info()
    }

    async fn ask<T, E: From<EngineError>>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Request,
    ) -> Result<T, E> {
        self.core.health.check_writable()?;
        let (reply, answer) = oneshot::channel();
        self.queue.push(request(reply));
        match answer.await {
            Ok(answer) => answer,
            // The thread that should have answered broke; it has said why.
            Err(_) => Err(self.core.health.check_writable().err().unwrap_or(EngineError::Closed).into()),
        }
    }

    async fn change_bucket(&self, change: BucketChange) -> Result<Option<BucketInfo>, EngineError> {
        let bucket = self.ask(|reply| Request::Bucket { change, reply }).await?;
        Ok(bucket.map(|bucket| self.info(&bucket)))
    }

    /// Changes a consumer that is there afterwards.
    async fn change_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        change: ConsumerChange,
    ) -> Result<ConsumerInfo, EngineError> {
        let (found, name) = (self.open_bucket(bucket)?, consumer.clone());
        let info = self.ask(|reply| Request::Consumer { bucket: found, name, change, reply }).await?;
        info.ok_or_else(|| no_consumer(bucket, consumer))
    }

    /// The head of a key as readers may see it.
    fn visible_head(&self, bucket: &Bucket, key: &Key) -> Result<Option<Head>, EngineError> {
        let visible = self.core.snapshots.visible();
        let head = self.core.head(bucket, key, ReadAt::Newest)?;
        // A head that is too new belongs to a commit that is being applied right now: only then is a snapshot
        // worth its price.
        if head.as_ref().is_some_and(|head| head.revision > visible) {
            let snapshot = self.core.snapshots.open();
            return self.core.head(bucket, key, ReadAt::Snapshot(snapshot.revision));
        }
        Ok(head)
    }

    /// Reads the newest entry of a key on this thread; none if that takes a closer look.
    fn read_at_once(
        &self,
        bucket: &Bucket,
        config: &BucketConfig,
        key: &Key,
    ) -> Result<Option<Option<Entry>>, EngineError> {
        let core = &*self.core;
        let visible = core.snapshots.visible();
        match core.whole_head(bucket, key, INLINE_READ_BYTES_MAX)? {
            WholeHead::Absent => Ok(Some(None)),
            // It belongs to a commit that is being applied right now.
            WholeHead::Found(head) if head.revision > visible => Ok(None),
            WholeHead::Found(head) => {
                let live =
                    head.op.is_put() && !has_expired(config, head.time, head.expires, || core.clock.now());
                if live { core.entry(config, key.clone(), head, false).map(Some) } else { Ok(Some(None)) }
            }
            WholeHead::Elsewhere => Ok(None),
        }
    }

    fn snapshot_for(
        &self,
        bucket: &Bucket,
        query: &ScanQuery,
    ) -> Result<(Snapshot, Timestamp, Option<Key>), EngineError> {
        let core = &self.core;
        let Some(token) = &query.page else { return Ok((core.snapshots.open(), core.clock.now(), None)) };
        let cursor = PageCursor::decode(token)?;
        cursor.check(self.token_store(), bucket.id.0.into(), query)?;
        let now = core.elapsed();
        let snapshot = core
            .snapshots
            .reopen(Revision::new(cursor.snapshot), now)
            .ok_or_else(|| EngineError::Compacted { oldest: core.snapshots.oldest(now) })?;
        Ok((snapshot, cursor.time, Some(cursor.last)))
    }

    fn token_store(&self) -> u64 {
        let mut half = [0; 8];
        half.copy_from_slice(&self.core.log.store.0[..8]);
        u64::from_le_bytes(half)
    }
}

impl Drop for EmbeddedEngine {
    fn drop(&mut self) {
        // Whoever wants to know what went wrong calls `close`.
        let _ = close(&self.core, &self.running);
    }
}

fn close(core: &Core, running: &Mutex<Option<Running>>) -> Result<(), EngineError> {
    // Held to the end, so that whoever closes it as well returns when it is closed.
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Running { threads, lock }) = running.take() else { return Ok(()) };
    core.health.close();
    let writer = threads.stop();
    for bucket in core.catalog.all() {
        bucket.feed.wake_all();
    }
    let finished = match writer {
        Some(writer) if !core.health.is_poisoned() => finish(core, writer),
        _ => Ok(()),
    };
    crate::status::leave(core);
    drop(lock);
    finished
}

/// Has the cleaner do all it can, and waits for it.
fn clean(core: &Core, tell: &mut dyn FnMut()) -> Result<(), EngineError> {
    core.clean_wanted.store(true, Ordering::Release);
    while core.clean_wanted.load(Ordering::Acquire) {
        core.health.check_writable()?;
        core.cleaner.wake_and_wait(CLEANER_WAIT);
        tell();
    }
    Ok(())
}

/// Ends the log cleanly, and writes out the index if reading the log again would take longer.
pub(crate) fn finish(core: &Core, mut writer: LogWriter) -> Result<(), EngineError> {
    writer.close()?;
    if core.index.backlog().sealed > 0 || core.unsealed_log.load(Ordering::Acquire) > REPLAY_BYTES_MAX {
        let applied = core.snapshots.visible();
        seal_index(core, applied, core.clock.now())?;
        core.flush_index(applied)?;
    }
    Ok(())
}

#[async_trait]
impl Engine for EmbeddedEngine {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        config.check(&CAPABILITIES)?;
        let info = self.change_bucket(BucketChange::Create(bucket.clone(), config)).await?;
        info.ok_or_else(|| EngineError::BucketNotFound { bucket: bucket.clone() })
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.open_bucket(bucket)?;
        config.check(&CAPABILITIES)?;
        let info = self.change_bucket(BucketChange::Update(bucket.clone(), config)).await?;
        info.ok_or_else(|| EngineError::BucketNotFound { bucket: bucket.clone() })
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        self.change_bucket(BucketChange::Delete(bucket.clone())).await.map(drop)
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
        Ok(self.info(&*self.open_bucket(bucket)?))
    }

    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.core.health.check_open()?;
        Ok(self.core.catalog.all().iter().map(|bucket| self.info(bucket)).collect())
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        let bucket = self.open_bucket(bucket)?;
        let config = bucket.config();
        let batch = batch.check(&bucket.name, &config, &CAPABILITIES)?;
        let _waiting = self.core.meters.put(bucket.id, &batch);
        let room = self.queue.room(batch.bytes()).await;
        let permit = room.map_err(|closed| self.core.health.check_writable().err().unwrap_or(closed))?;
        self.ask(|reply| Request::Commit { bucket, config, batch, reply, permit }).await
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        let bucket = self.open_bucket(bucket)?;
        let _timed = self.core.meters.get(bucket.id, key);
        let config = bucket.config();
        if at == At::Latest
            && let Some(entry) = self.read_at_once(&bucket, &config, key)?
        {
            return Ok(entry);
        }
        for _ in 0..LOOKS_MAX {
            let visible = self.core.snapshots.visible();
            let head = self.visible_head(&bucket, key)?;
            if let At::Revision(revision) = at {
                if revision > visible {
                    return Err(EngineError::FutureRevision { asked: revision, newest: visible });
                }
                if head.is_none() && revision < bucket.forgotten() {
                    return Err(EngineError::Compacted { oldest: bucket.forgotten().next() });
                }
                if let Some(head) = head.as_ref().filter(|head| head.revision > revision) {
                    match read_past(&self.core, &config, key, head, revision).await? {
                        Some(entry) => return Ok(entry),
                        None => continue,
                    }
                }
            }
            let is_live = |head: &Head| {
                head.op.is_put() && !has_expired(&config, head.time, head.expires, || self.core.clock.now())
            };
            let Some(head) = head.filter(is_live) else { return Ok(None) };
            let entry = if head.inline || head.position.len <= INLINE_READ_BYTES_MAX {
                self.core.entry(&config, key.clone(), head, false)?
            } else {
                let (core, key, config) = (Arc::clone(&self.core), key.clone(), Arc::clone(&config));
                blocking::unblock(move || core.entry(&config, key, head, false)).await?
            };
            // A record that was cleaned away between the two looks has been followed by another.
            if entry.is_some() {
                return Ok(entry);
            }
        }
        Err(self.core.missing(key))
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        let bucket = self.open_bucket(bucket)?;
        let config = bucket.config();
        for _ in 0..LOOKS_MAX {
            let Some(head) = self.visible_head(&bucket, key)? else { return Ok(Vec::new()) };
            let (core, key, config) = (Arc::clone(&self.core), key.clone(), Arc::clone(&config));
            let entries = blocking::unblock(move || {
                let past = head.past.iter().rev().map(|past| core.past_entry(&config, &key, *past));
                let mut entries = past.collect::<Result<Vec<_>, _>>()?;
                entries.push(core.entry(&config, key.clone(), head, false)?);
                Ok::<_, EngineError>(entries.into_iter().collect::<Option<Vec<_>>>())
            });
            if let Some(entries) = entries.await? {
                return Ok(entries);
            }
        }
        Err(self.core.missing(key))
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        let bucket = self.open_bucket(bucket)?;
        query.check()?;
        let _timed = self.core.meters.scan();
        let (snapshot, now, last) = self.snapshot_for(&bucket, &query)?;
        let revision = snapshot.revision;
        let range = query.range_after(last.as_ref());
        let scan =
            HeadScan::new(&self.core, &bucket, snapshot, query.selection.clone(), &range, query.direction);
        let (limit, keys_only) = (query.limit, query.keys_only);
        let mut page = PageScan::new(scan, now, limit, keys_only);
        if !page.run(Budget::INLINE)? {
            page = blocking::unblock(move || page.run(Budget::UNLIMITED).map(|_| page)).await?;
        }
        let next = page.entries.last().filter(|_| page.more).map(|last| {
            self.core.snapshots.lease(&page.scan.snapshot, self.core.elapsed());
            let last = last.key.clone();
            let (store, bucket, query) = (self.token_store(), bucket.id.0.into(), query.digest());
            PageCursor { store, bucket, snapshot: revision.get(), time: now, query, last }.encode()
        });
        Ok(Page { entries: page.entries, revision, next })
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        let bucket = self.open_bucket(bucket)?;
        let now = self.core.clock.now();
        let range = selection.covering_range();
        let snapshot = self.core.snapshots.open();
        let scan = HeadScan::new(&self.core, &bucket, snapshot, selection, &range, Direction::Forward);
        let mut count = CountScan::new(scan, now);
        if !count.run(Budget::INLINE)? {
            count = blocking::unblock(move || count.run(Budget::UNLIMITED).map(|_| count)).await?;
        }
        Ok(count.count)
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        query.check()?;
        Watch::open(&self.core, self.open_bucket(bucket)?, query)
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        let bucket = self.open_bucket(bucket)?;
        let (key, keep) = (key.clone(), keep.get());
        self.ask(|reply| Request::Compact { bucket, key, keep, reply }).await
    }

    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.change_consumer(bucket, consumer, ConsumerChange::Create(start)).await
    }

    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
        let consumers = self.open_bucket(bucket)?.consumers.all();
        Ok(consumers.into_iter().map(|consumer| consumer.info).collect())
    }

    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        let found = self.open_bucket(bucket)?.consumers.get(consumer);
        found.map(|found| found.info).ok_or_else(|| no_consumer(bucket, consumer))
    }

    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        self.change_consumer(bucket, consumer, ConsumerChange::Acknowledge(revision)).await.map(drop)
    }

    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.change_consumer(bucket, consumer, ConsumerChange::Reset(start)).await
    }

    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError> {
        let (bucket, name) = (self.open_bucket(bucket)?, consumer.clone());
        let change = ConsumerChange::Delete;
        self.ask(|reply| Request::Consumer { bucket, name, change, reply }).await.map(drop)
    }

    async fn close(&self) -> Result<(), EngineError> {
        let (core, running) = (Arc::clone(&self.core), Arc::clone(&self.running));
        blocking::unblock(move || close(&core, &running)).await
    }
}

fn no_consumer(bucket: &BucketName, consumer: &ConsumerName) -> EngineError {
    EngineError::ConsumerNotFound { bucket: bucket.clone(), consumer: consumer.clone() }
}

/// Reads a key as it was at a revision before its newest record; none if the record has been moved meanwhile.
async fn read_past(
    core: &Arc<Core>,
    config: &Arc<BucketConfig>,
    key: &Key,
    head: &Head,
    revision: Revision,
) -> Result<Option<Option<Entry>>, EngineError> {
    let Some(past) = head.past.iter().find(|past| past.revision <= revision).copied() else {
        let oldest = head.past.last().map_or(head.revision, |past| past.revision);
        return Err(EngineError::Compacted { oldest });
    };
    let (core, key, config) = (Arc::clone(core), key.clone(), Arc::clone(config));
    blocking::unblock(move || {
        let Some(entry) = core.past_entry(&config, &key, past)? else { return Ok(None) };
        let now = core.clock.now();
        Ok(Some(Some(entry).filter(|entry| config.is_live(entry, now))))
    })
    .await
}
