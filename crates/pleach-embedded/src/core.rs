use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{BucketConfig, Clock, EngineError, Entry, Key, Op, Revision, SteadyClock, Timestamp};

use crate::catalog::{Bucket, Catalog};
use crate::cleaner::Usage;
use crate::entry_cache::EntryCache;
use crate::index::{Head, Index, IndexChange, Past, ReadAt, is_head, with_head_key};
use crate::log::{BucketId, Log, Payload, Record};
use crate::meters::Meters;
use crate::pressure::Pressure;
use crate::settings::Settings;
use crate::signal::Signal;
use crate::snapshots::Snapshots;

/// What all parts of an open store share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) directory: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) clock: SteadyClock,
    /// The clock under it, for time that passes rather than time of day.
    pub(crate) ticks: Arc<dyn Clock>,
    pub(crate) log: Arc<Log>,
    pub(crate) index: Arc<dyn Index>,
    /// In front of the index.
    pub(crate) entries: EntryCache,
    pub(crate) catalog: Catalog,
    pub(crate) snapshots: Arc<Snapshots>,
    /// The newest revision known to be synced.
    pub(crate) durable: Arc<AtomicU64>,
    /// How many bytes of the log were applied since the index was last sealed: what the next open may have
    /// to read again.
    pub(crate) unsealed_log: AtomicU64,
    /// How many bytes of the log were applied since the store was opened.
    pub(crate) written_log: AtomicU64,
    /// What the cleaner has done.
    pub(crate) cleaned: Cleaned,
    /// What the store measures of itself.
    pub(crate) meters: Meters,
    /// What slows commits down.
    pub(crate) pressure: Pressure,
    /// See [`crate::index::Meta::built_over`].
    pub(crate) built_over: Revision,
    /// The index was sealed when it contained the log up to here.
    pub(crate) sealed: AtomicU64,
    /// The index is durable up to here, whatever happens.
    pub(crate) flushed: AtomicU64,
    /// Whether someone waits for the log to be as clean as can be.
    pub(crate) clean_wanted: AtomicBool,
    /// Whether the index shall be sealed though it has not grown large.
    pub(crate) seal_wanted: AtomicBool,
    pub(crate) health: Health,
    /// Wakes the thread that flushes the index.
    pub(crate) upkeep: Signal,
    /// Wakes the thread that merges it.
    pub(crate) merging: Signal,
    /// Wakes the thread that records what has expired.
    pub(crate) reaper: Signal,
    /// Wakes the thread that cleans the log.
    pub(crate) cleaner: Signal,
    /// Wakes the thread that reports how the store is doing.
    pub(crate) reporter: Signal,
}

impl Core {
    /// Time that has passed, for leases.
    pub(crate) fn elapsed(&self) -> Duration {
        self.ticks.elapsed()
    }

    /// Makes everything that readers can see durable.
    pub(crate) fn sync_log(&self) -> Result<(), EngineError> {
        let visible = self.snapshots.visible();
        if Revision::new(self.durable.load(Ordering::Acquire)) >= visible {
            return Ok(());
        }
        // Segments before the last one were synced when they were finished.
        if let Some(segment) = self.log.last_segment() {
            let timed = self.log.syncs.start();
            segment.sync()?;
            drop(timed);
            self.durable.fetch_max(visible.get(), Ordering::AcqRel);
        }
        Ok(())
    }

    /// Makes the sealed part of the index durable, and the log before it.
    pub(crate) fn flush_index(&self, oldest: Revision) -> Result<(), EngineError> {
        let sealed = self.sealed.load(Ordering::Acquire);
        // What is sealed from now on is flushed next time: the log must be synced first, because the index must
        // never know more than the log.
        let count = self.index.backlog().sealed;
        self.sync_log()?;
        self.index.flush(count, oldest)?;
        self.flushed.fetch_max(sealed, Ordering::AcqRel);
        Ok(())
    }

    /// The index is durable up to here, whatever happens.
    pub(crate) fn flushed(&self) -> Revision {
        Revision::new(self.flushed.load(Ordering::Acquire))
    }

    /// The head of a key, if it has one.
    pub(crate) fn head(&self, bucket: &Bucket, key: &Key, at: ReadAt) -> Result<Option<Head>, EngineError> {
        let bytes = with_head_key(bucket.id, key.as_bytes(), |index_key| self.index.get(index_key, at))?;
        let Some(bytes) = bytes else { return Ok(None) };
        Head::decode(&bytes).map(Some).ok_or_else(|| damaged_head(bucket, key.as_str()))
    }

    /// As [`Core::head`], for those who look at keys that nobody is likely to read soon.
    pub(crate) fn peek_head(
        &self,
        bucket: &Bucket,
        key: &Key,
        at: ReadAt,
    ) -> Result<Option<Head>, EngineError> {
        let bytes = with_head_key(bucket.id, key.as_bytes(), |index_key| self.index.peek(index_key, at))?;
        let Some(bytes) = bytes else { return Ok(None) };
        Head::decode(&bytes).map(Some).ok_or_else(|| damaged_head(bucket, key.as_str()))
    }

    /// The head of a key with its whole payload, up to `limit` bytes of it, from the cache if it is there, as of
    /// after everything that was written to the index.
    pub(crate) fn whole_head(
        &self,
        bucket: &Bucket,
        key: &Key,
        limit: u32,
    ) -> Result<WholeHead, EngineError> {
        with_head_key(bucket.id, key.as_bytes(), |index_key| {
            let stamp = match self.entries.get(index_key) {
                Ok(head) => {
                    self.meters.entry_hits.add(1);
                    return Ok(WholeHead::Found(head));
                }
                Err(stamp) => stamp,
            };
            self.meters.entry_misses.add(1);
            let Some(bytes) = self.index.get(index_key, ReadAt::Newest)? else {
                return Ok(WholeHead::Absent);
            };
            let mut head = Head::decode(&bytes).ok_or_else(|| damaged_head(bucket, key.as_str()))?;
            let in_index = head.inline;
            if !in_index && head.op.is_put() {
                if head.position.len > limit {
                    return Ok(WholeHead::Elsewhere);
                }
                let Some(payload) = self.log.read_payload(head.position, key, head.revision)? else {
                    return Ok(WholeHead::Elsewhere);
                };
                head.payload = payload;
                head.inline = true;
            }
            if head.op.is_put() {
                // Detached, because what came from the index would keep a whole block of it in memory.
                let payload = if in_index { head.payload.detached() } else { head.payload.clone() };
                self.entries.leave(index_key, stamp, Head { payload, ..head.clone() });
            }
            Ok(WholeHead::Found(head))
        })
    }

    /// Changes the index: the only way to do so.
    pub(crate) fn write_index(&self, revision: Revision, changes: Vec<IndexChange>) {
        let keys: Vec<_> = changes.iter().map(IndexChange::key).filter(|key| is_head(key)).cloned().collect();
        self.index.write(revision, changes);
        // Afterwards: what was found before the change must not be believed after it.
        for key in keys {
            self.entries.written(&key);
        }
    }

    /// Writes a head to the index, and to the cache if it is likely to be read.
    pub(crate) fn write_head(&self, index_key: &[u8], head: &Head, payload: &Payload) {
        thread_local! {
            static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        }
        let mut buffer = BUFFER.take();
        buffer.clear();
        head.encode_to(&mut buffer);
        self.index.put(head.revision, index_key, Some(&buffer));
        BUFFER.set(buffer);
        let stamp = self.entries.written(index_key);
        if head.op.is_put() && self.entries.is_wanted(index_key) {
            let head = Head { inline: true, payload: payload.detached(), ..head.clone() };
            self.entries.leave(index_key, stamp, head);
        }
    }

    /// Turns a head into the entry it stands for, reading the value from the log if it is not inline. None
    /// if the record has been cleaned away meanwhile: another look at the index tells what has followed it. That
    /// cannot happen to a head that was read from a snapshot which is still held.
    pub(crate) fn entry(
        &self,
        config: &BucketConfig,
        key: Key,
        head: Head,
        keys_only: bool,
    ) -> Result<Option<Entry>, EngineError> {
        let payload = match (keys_only, head.inline) {
            (true, _) => head.payload.without_value(),
            (false, true) => head.payload,
            (false, false) => match self.log.read_payload(head.position, &key, head.revision)? {
                Some(payload) => payload,
                None => return Ok(None),
            },
        };
        let (headers, value) =
            payload.into_value().ok_or_else(|| self.damaged_value(&head.position, &key))?;
        let expires = if head.op.is_put() { config.expiry(head.time, head.expires) } else { None };
        let Head { revision, time, op, .. } = head;
        Ok(Some(Entry { key, value, revision, time, expires, op, headers }))
    }

    /// Reads an older record of a key; none if it has been cleaned away, as with [`Core::entry`].
    pub(crate) fn past_entry(
        &self,
        config: &BucketConfig,
        key: &Key,
        past: Past,
    ) -> Result<Option<Entry>, EngineError> {
        let Some(record) = self.log.read(past.position, key, past.revision)? else { return Ok(None) };
        let mut entry = self.record_entry(record)?;
        if entry.op.is_put() {
            entry.expires = config.expiry(entry.time, entry.expires);
        }
        Ok(Some(entry))
    }

    /// What to say if a record that someone may read is nowhere.
    pub(crate) fn missing(&self, key: &Key) -> EngineError {
        let what = format!("a record of {key} is missing");
        EngineError::Corrupt { path: self.log.directory.clone(), offset: 0, what }
    }

    /// Turns a record of a key into the entry it stands for, with its own expiry alone.
    pub(crate) fn record_entry(&self, record: Record) -> Result<Entry, EngineError> {
        let Record { kind, key, revision, time, expires, payload, .. } = record;
        let damaged = |what: &str| self.damaged_record(revision, what);
        let op = kind.op().ok_or_else(|| damaged("is not about an entry"))?;
        let (headers, value) = payload.into_value().ok_or_else(|| damaged("does not decompress"))?;
        Ok(Entry { key, value, revision, time, expires: expires.filter(|_| op.is_put()), op, headers })
    }

    pub(crate) fn damaged_record(&self, revision: Revision, what: &str) -> EngineError {
        let path = self.log.directory.clone();
        EngineError::Corrupt { path, offset: 0, what: format!("the record at revision {revision} {what}") }
    }

    pub(crate) fn damaged_value(&self, position: &crate::log::Position, key: &Key) -> EngineError {
        let path = self.log.directory.join(position.segment.file_name());
        EngineError::Corrupt {
            path,
            offset: position.offset,
            what: format!("the value of {key} is unreadable"),
        }
    }
}

pub(crate) fn damaged_head(bucket: &Bucket, key: &str) -> EngineError {
    EngineError::CorruptIndex { what: format!("what it holds about {}/{key} is unreadable", bucket.name) }
}

/// Whether a put at `time` with its own expiry `expires` has expired; reads the clock only if it can have.
pub(crate) fn has_expired(
    config: &BucketConfig,
    time: Timestamp,
    expires: Option<Timestamp>,
    now: impl FnOnce() -> Timestamp,
) -> bool {
    config.expiry(time, expires).is_some_and(|expires| expires <= now())
}

/// What the cleaner has done since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Cleaned {
    read: AtomicU64,
    written: AtomicU64,
    /// How large the segments are that it has looked at, and how much of that is garbage.
    estimate: Mutex<(u64, u64)>,
    /// What they hold of each bucket.
    usage: Mutex<BTreeMap<BucketId, Usage>>,
}

impl Cleaned {
    /// Takes account of segments of `read` bytes that became one of `written` bytes.
    pub(crate) fn add(&self, read: u64, written: u64) {
        self.read.fetch_add(read, Ordering::AcqRel);
        self.written.fetch_add(written, Ordering::AcqRel);
    }

    /// Notes how much of how many bytes is garbage, as far as it can tell.
    pub(crate) fn set_estimate(&self, bytes: u64, dead: u64) {
        *self.estimate.lock().unwrap_or_else(PoisonError::into_inner) = (bytes, dead);
    }

    /// What it noted last.
    pub(crate) fn estimate(&self) -> (u64, u64) {
        *self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the segments that it has looked at hold of each bucket.
    pub(crate) fn set_usage(&self, usage: BTreeMap<BucketId, Usage>) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }

    /// What it noted last of each bucket.
    pub(crate) fn usage(&self) -> BTreeMap<BucketId, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many bytes it has read and written.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.read.load(Ordering::Acquire), self.written.load(Ordering::Acquire))
    }
}

/// What is done for the index in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexWork {
    Flush,
    Merge,
}

/// Whether the store still works, and why not.
#[derive(Debug, Default)]
pub(crate) struct Health {
    closed: AtomicBool,
    poisoned: AtomicBool,
    reason: Mutex<Option<String>>,
    /// Why the index cannot be flushed, or merged, just now.
    obstacles: Mutex<[Option<PathBuf>; 2]>,
    /// Why the log cannot be cleaned just now.
    cleaning_trouble: Mutex<Option<String>>,
}

impl Health {
    /// # Errors
    /// `Closed`.
    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed() { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// # Errors
    /// `Closed` or `ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<(), EngineError> {
        self.check_open()?;
        if !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(EngineError::ReadOnly { reason: reason.unwrap_or_default() })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Closes the store; says whether it was open.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Why no more writes are taken.
    pub(crate) fn reason(&self) -> String {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    /// Refuses writes from now on: what is on the disk is no longer known.
    pub(crate) fn poison(&self, reason: String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.poisoned.store(true, Ordering::Release);
    }

    /// Notes that the index cannot be written out by this work, or that it can again.
    pub(crate) fn set_obstacle(&self, work: IndexWork, obstacle: Option<PathBuf>) {
        self.obstacles.lock().unwrap_or_else(PoisonError::into_inner)[work as usize] = obstacle;
    }

    /// Notes that the log cannot be cleaned, or that it can again.
    pub(crate) fn set_cleaning_trouble(&self, trouble: Option<String>) {
        *self.cleaning_trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Why the log cannot be cleaned just now.
    pub(crate) fn cleaning_trouble(&self) -> Option<String> {
        self.cleaning_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where no space was left for the index.
    pub(crate) fn obstacle(&self) -> Option<PathBuf> {
        self.obstacles.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().next().cloned()
    }
}

/// What was found of a key.
#[derive(Debug)]
pub(crate) enum WholeHead {
    Found(Head),
    Absent,
    /// There is one, and its value is too large, or its record has moved.
    Elsewhere,
}

/// The newest record of a key, as far as an expectation needs to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) op: Op,
    pub(crate) revision: Revision,
    pub(crate) time: Timestamp,
    pub(crate) expires: Option<Timestamp>,
}

impl Newest {
    /// Whether it is a value that has expired at `now`.
    pub(crate) fn has_expired(&self, config: &BucketConfig, now: Timestamp) -> bool {
        self.op.is_put() && has_expired(config, self.time, self.expires, || now)
    }
}

impl From<&Head> for Newest {
    fn from(head: &Head) -> Self {
        Self { op: head.op, revision: head.revision, time: head.time, expires: head.expires }
    }
}
