use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{BucketConfig, Clock, EngineError, Entry, Key, Op, Revision, SteadyClock, Timestamp};

use crate::catalog::{Bucket, Catalog};
use crate::index::{Head, Index, IndexKey, Past, ReadAt};
use crate::log::{Log, Record, RecordKind};
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
    pub(crate) catalog: Catalog,
    pub(crate) snapshots: Arc<Snapshots>,
    /// The newest revision known to be synced.
    pub(crate) durable: Arc<AtomicU64>,
    /// How many bytes of the log were applied since the index was last sealed: what the next open may have
    /// to read again.
    pub(crate) unsealed_log: AtomicU64,
    pub(crate) health: Health,
    /// Wakes the thread that flushes and compacts.
    pub(crate) upkeep: Signal,
    /// Wakes the thread that records what has expired.
    pub(crate) reaper: Signal,
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
            segment.sync()?;
            self.durable.fetch_max(visible.get(), Ordering::AcqRel);
        }
        Ok(())
    }

    /// The head of a key, if it has one.
    pub(crate) fn head(&self, bucket: &Bucket, key: &Key, at: ReadAt) -> Result<Option<Head>, EngineError> {
        let Some(bytes) = self.index.get(&IndexKey::head(bucket.id, key.as_bytes()), at)? else {
            return Ok(None);
        };
        Head::decode(bytes).map(Some).ok_or_else(|| damaged_head(bucket, key))
    }

    /// Turns a head into the entry it stands for, reading the value from the log if it is not inline.
    pub(crate) fn entry(
        &self,
        config: &BucketConfig,
        key: Key,
        head: Head,
        keys_only: bool,
    ) -> Result<Entry, EngineError> {
        let payload = match (keys_only, head.inline) {
            (true, _) => head.payload.without_value(),
            (false, true) => head.payload,
            (false, false) => self.log.read(head.position, &key, head.revision)?.payload,
        };
        let (headers, value) =
            payload.into_value().ok_or_else(|| self.damaged_value(&head.position, &key))?;
        let expires = if head.op.is_put() { config.expiry(head.time, head.expires) } else { None };
        Ok(Entry { key, value, revision: head.revision, time: head.time, expires, op: head.op, headers })
    }

    /// Reads an older record of a key.
    pub(crate) fn past_entry(
        &self,
        config: &BucketConfig,
        key: &Key,
        past: Past,
    ) -> Result<Entry, EngineError> {
        self.record_entry(config, self.log.read(past.position, key, past.revision)?)
    }

    /// Turns a record of a key into the entry it stands for.
    pub(crate) fn record_entry(&self, config: &BucketConfig, record: Record) -> Result<Entry, EngineError> {
        let Record { kind, key, revision, time, expires, payload, .. } = record;
        let damaged = |what: &str| EngineError::Corrupt {
            path: self.log.directory.clone(),
            offset: 0,
            what: format!("the record of {key} at revision {revision} {what}"),
        };
        let op = op_of(kind).ok_or_else(|| damaged("is not about an entry"))?;
        let (headers, value) = payload.into_value().ok_or_else(|| damaged("does not decompress"))?;
        let expires = if op.is_put() { config.expiry(time, expires) } else { None };
        Ok(Entry { key, value, revision, time, expires, op, headers })
    }

    fn damaged_value(&self, position: &crate::log::Position, key: &Key) -> EngineError {
        let path = self.log.directory.join(crate::log::Segment::file_name(position.segment));
        EngineError::Corrupt {
            path,
            offset: position.offset,
            what: format!("the value of {key} is unreadable"),
        }
    }
}

pub(crate) fn damaged_head(bucket: &Bucket, key: &Key) -> EngineError {
    EngineError::CorruptIndex { what: format!("what it holds about {}/{key} is unreadable", bucket.name) }
}

/// What a record did to its key, if it is a record of a key.
pub(crate) fn op_of(kind: RecordKind) -> Option<Op> {
    match kind {
        RecordKind::Put => Some(Op::Put),
        RecordKind::Delete => Some(Op::Delete),
        RecordKind::Purge => Some(Op::Purge),
        RecordKind::Expire => Some(Op::Expire),
        RecordKind::Compact
        | RecordKind::CreateBucket
        | RecordKind::UpdateBucket
        | RecordKind::DeleteBucket => None,
    }
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

/// Whether the store still works, and why not.
#[derive(Debug, Default)]
pub(crate) struct Health {
    closed: AtomicBool,
    poisoned: AtomicBool,
    reason: Mutex<Option<String>>,
    /// Why the index cannot be written out just now.
    obstacle: Mutex<Option<PathBuf>>,
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

    /// Refuses writes from now on: what is on the disk is no longer known.
    pub(crate) fn poison(&self, reason: String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.poisoned.store(true, Ordering::Release);
    }

    /// Notes that the index cannot be written out, or that it can again.
    pub(crate) fn set_obstacle(&self, obstacle: Option<PathBuf>) {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = obstacle;
    }

    /// Where no space was left for the index.
    pub(crate) fn obstacle(&self) -> Option<PathBuf> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
