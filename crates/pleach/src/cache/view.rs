use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use pleach_engine::{Clock, Direction, Entry, Key, KeyRange, Revision, Selection, SteadyClock, Timestamp};
use tokio::sync::watch;

use super::CACHE_VISITS_MAX;
use crate::ScanOptions;

/// What an entry takes beside its key, its value and its headers, roughly.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// What a header takes beside its name and its value, roughly.
const HEADER_OVERHEAD_BYTES: usize = 64;

/// What a cache is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for the initial values, or about to begin anew.
    Building,
    /// Following the bucket.
    Ready,
    /// Ended: the bucket takes too much memory.
    Full,
    /// Ended: the bucket was deleted.
    BucketGone,
    /// Ended: the store was closed.
    Closed,
    /// Ended by a panic.
    Broken,
}

/// The entries of a bucket as a watch has delivered them.
pub(crate) struct View {
    /// Shows no time before that of any record, as the clock of an engine does.
    clock: SteadyClock,
    bytes_max: usize,
    contents: RwLock<Contents>,
    phase: watch::Sender<Phase>,
    /// The newest revision that the users of the cache know of: before it, the view is too old.
    required: AtomicU64,
}

#[derive(Debug, Default)]
struct Contents {
    entries: BTreeMap<Key, Entry>,
    bytes: usize,
    /// Everything up to this revision is in it.
    applied: Revision,
    ready: bool,
}

/// The bucket takes more memory than the cache may.
#[derive(Debug)]
pub(super) struct Full;

impl View {
    pub(super) fn new(clock: &Arc<dyn Clock>, bytes_max: usize) -> Self {
        Self {
            clock: SteadyClock::new(Arc::clone(clock), Timestamp::default()),
            bytes_max,
            contents: RwLock::default(),
            phase: watch::Sender::new(Phase::Building),
            required: AtomicU64::new(0),
        }
    }

    /// What may be answered from memory; none if nothing may.
    pub(super) fn answers(&self) -> Option<Answers<'_>> {
        let contents = self.contents.read().unwrap_or_else(PoisonError::into_inner);
        let required = Revision::new(self.required.load(Ordering::Acquire));
        if !contents.ready || contents.applied < required {
            return None;
        }
        Some(Answers { contents, now: self.clock.now() })
    }

    /// From now on, what is older than `revision` is no answer.
    pub(super) fn require(&self, revision: Revision) {
        self.required.fetch_max(revision.get(), Ordering::AcqRel);
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(super) fn bytes(&self) -> usize {
        self.contents.read().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Waits until it is no longer building.
    pub(super) async fn settled(&self) -> Phase {
        let mut phases = self.phase.subscribe();
        match phases.wait_for(|phase| *phase != Phase::Building).await {
            Ok(phase) => *phase,
            // The sender lives as long as this view does.
            Err(_) => Phase::Broken,
        }
    }

    /// Applies records that were committed together.
    pub(super) fn apply(&self, records: impl IntoIterator<Item = Entry>) -> Result<(), Full> {
        // Copied before readers have to wait.
        let records: Vec<Entry> = records.into_iter().map(copied).collect();
        let mut contents = self.write();
        for record in records {
            self.clock.raise(record.time);
            contents.apply(record);
        }
        if contents.bytes > self.bytes_max { Err(Full) } else { Ok(()) }
    }

    /// All that was there at `revision` has been applied.
    pub(super) fn initial_done(&self, revision: Revision) {
        {
            let mut contents = self.write();
            contents.applied = contents.applied.max(revision);
            contents.ready = true;
        }
        self.phase.send_replace(Phase::Ready);
    }

    /// Forgets everything, and answers nothing until the initial values have been applied again.
    pub(super) fn clear(&self, phase: Phase) {
        // The entries are freed after the lock is.
        let _entries = std::mem::take(&mut *self.write());
        self.phase.send_replace(phase);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says how it is, not what is in it.
impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl Contents {
    fn apply(&mut self, record: Entry) {
        self.applied = self.applied.max(record.revision);
        if let Some(old) = self.entries.remove(&record.key) {
            self.bytes -= entry_bytes(&old);
        }
        if record.op.is_put() {
            self.bytes += entry_bytes(&record);
            self.entries.insert(record.key.clone(), record);
        }
    }

    /// The entries of `range`, and perhaps some beside it.
    fn near<'a>(&'a self, range: &KeyRange) -> impl DoubleEndedIterator<Item = &'a Entry> + use<'a> {
        // A map refuses a range that ends before it begins.
        let nothing = (Bound::Excluded(""), Bound::Included(""));
        let bounds = if range.is_empty() { nothing } else { (text(&range.start), text(&range.end)) };
        self.entries.range::<str, _>(bounds).map(|(_, entry)| entry)
    }
}

/// The same record with a value of its own: as it was, it may be a small part of a large buffer, a piece of a
/// log for example, and hold all of it.
fn copied(record: Entry) -> Entry {
    Entry { value: Bytes::copy_from_slice(&record.value), ..record }
}

fn entry_bytes(entry: &Entry) -> usize {
    let headers = entry.headers.bytes() + entry.headers.iter().len() * HEADER_OVERHEAD_BYTES;
    entry.key.as_bytes().len() + entry.value.len() + headers + ENTRY_OVERHEAD_BYTES
}

/// The same bound as text; a bound that is not text is left open, and its entries are looked at one by one.
fn text(bound: &Bound<Vec<u8>>) -> Bound<&str> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    match bound {
        Bound::Included(bytes) => text(bytes).map_or(Bound::Unbounded, Bound::Included),
        Bound::Excluded(bytes) => text(bytes).map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// What may be answered from memory, at one revision and one time. Every answer may be none: ask the bucket.
#[derive(Debug)]
pub(crate) struct Answers<'a> {
    contents: RwLockReadGuard<'a, Contents>,
    now: Timestamp,
}

impl Answers<'_> {
    /// The live entry of a key, if it has one.
    pub(crate) fn get(&self, key: &Key) -> Option<Option<Entry>> {
        match self.contents.entries.get(key) {
            Some(entry) if self.has_expired(entry) => None,
            found => Some(found.cloned()),
        }
    }

    /// The entries that a scan asks for.
    pub(crate) fn scan(&self, options: &ScanOptions) -> Option<(Vec<Entry>, Revision)> {
        let near = self.contents.near(&options.selection.covering_range());
        let found = match options.direction {
            Direction::Forward => self.select(near, &options.selection, options.limit),
            Direction::Backward => self.select(near.rev(), &options.selection, options.limit),
        };
        let mut entries: Vec<Entry> = found?.into_iter().cloned().collect();
        if options.keys_only {
            entries.iter_mut().for_each(|entry| entry.value.clear());
        }
        Some((entries, self.contents.applied))
    }

    /// How many keys of `selection` have live entries.
    pub(crate) fn count(&self, selection: &Selection) -> Option<u64> {
        let near = self.contents.near(&selection.covering_range());
        self.select(near, selection, None).map(|found| found.len() as u64)
    }

    fn select<'a>(
        &self,
        near: impl Iterator<Item = &'a Entry>,
        selection: &Selection,
        limit: Option<usize>,
    ) -> Option<Vec<&'a Entry>> {
        let limit = limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for (visited, entry) in near.enumerate() {
            if found.len() == limit {
                break;
            }
            if visited == CACHE_VISITS_MAX {
                return None;
            }
            if selection.contains(&entry.key) {
                if self.has_expired(entry) {
                    return None;
                }
                found.push(entry);
            }
        }
        Some(found)
    }

    fn has_expired(&self, entry: &Entry) -> bool {
        entry.expires.is_some_and(|expires| expires <= self.now)
    }
}
