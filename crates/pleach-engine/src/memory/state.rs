use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::task::Waker;

use super::bucket::Bucket;
use crate::{
    Action, At, BUCKETS_MAX, Batch, BatchPart, BucketConfig, BucketInfo, BucketName, Capabilities, Change,
    CommitError, Committed, EngineError, Entry, Headers, Key, Op, Operation, PAGE_BYTES_MAX, Page,
    PageCursor, PageSnapshots, PageToken, Revision, ScanQuery, Timestamp,
};

/// What a scan had still to deliver when its first page was full, in the order of the scan.
#[derive(Clone, Debug)]
struct Snapshot {
    bucket: Revision,
    revision: Revision,
    time: Timestamp,
    entries: Arc<[Entry]>,
}

/// Everything the engine holds.
#[derive(Debug)]
pub(super) struct State {
    pub(super) closed: bool,
    /// Tells this store from others, whose page tokens must not work here.
    store: u64,
    pub(super) newest: Revision,
    pub(super) buckets: BTreeMap<BucketName, Bucket>,
    /// The moment of every value that will be gone one day, in the order in which that is recorded.
    pub(super) expiring: BTreeSet<(Timestamp, BucketName, Key)>,
    pages: PageSnapshots<Snapshot>,
    /// The open watches: the bucket of each, and whom to wake.
    pub(super) watches: BTreeMap<u64, (Revision, Option<Waker>)>,
    pub(super) watches_opened: u64,
    /// Whom to wake once the lock is released.
    pub(super) woken: Vec<Waker>,
    /// The moment that a thread waits for, if there is one.
    pub(super) alarm: Option<Timestamp>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            closed: false,
            // Hash maps take their seeds from the system's randomness; one of them is random enough here.
            store: RandomState::new().build_hasher().finish(),
            newest: Revision::ZERO,
            buckets: BTreeMap::new(),
            expiring: BTreeSet::new(),
            pages: PageSnapshots::default(),
            watches: BTreeMap::new(),
            watches_opened: 0,
            woken: Vec::new(),
            alarm: None,
        }
    }

    /// Records as expired what is so by `now`, each in a commit of its own.
    pub(super) fn record_due(&mut self, now: Timestamp) {
        while self.expiring.first().is_some_and(|(moment, ..)| *moment <= now) {
            let Some((_, bucket, key)) = self.expiring.pop_first() else { break };
            let marker = Entry {
                key,
                value: bytes::Bytes::new(),
                revision: self.newest.next(),
                time: now,
                expires: None,
                op: Op::Expire,
                headers: Headers::new(),
            };
            self.append(&bucket, marker, BatchPart::SINGLE);
        }
    }

    /// The next expiry, if there is one and anyone waits for news of it.
    pub(super) fn awaited_expiry(&self) -> Option<Timestamp> {
        self.expiring.first().filter(|_| !self.watches.is_empty()).map(|(moment, ..)| *moment)
    }

    pub(super) fn bucket(&self, name: &BucketName) -> Result<&Bucket, EngineError> {
        self.buckets.get(name).ok_or_else(|| EngineError::BucketNotFound { bucket: name.clone() })
    }

    pub(super) fn bucket_mut(&mut self, name: &BucketName) -> Result<&mut Bucket, EngineError> {
        self.buckets.get_mut(name).ok_or_else(|| EngineError::BucketNotFound { bucket: name.clone() })
    }

    pub(super) fn info(&self, bucket: &Bucket) -> BucketInfo {
        let watches = self.watches.values().filter(|(watched, _)| *watched == bucket.id).count();
        bucket.info(watches)
    }

    pub(super) fn create_bucket(
        &mut self,
        name: &BucketName,
        config: BucketConfig,
        now: Timestamp,
    ) -> Result<BucketInfo, EngineError> {
        if let Some(existing) = self.buckets.get(name) {
            let differences = existing.config.differences(&config);
            if differences.is_empty() {
                return Ok(self.info(existing));
            }
            return Err(EngineError::BucketExists { bucket: name.clone(), differences });
        }
        if self.buckets.len() >= BUCKETS_MAX {
            return Err(EngineError::TooManyBuckets { limit: BUCKETS_MAX });
        }
        self.newest = self.newest.next();
        self.buckets.insert(name.clone(), Bucket::new(name.clone(), config, now, self.newest));
        Ok(self.info(self.bucket(name)?))
    }

    pub(super) fn update_bucket(
        &mut self,
        name: &BucketName,
        config: BucketConfig,
        now: Timestamp,
    ) -> Result<BucketInfo, EngineError> {
        self.bucket(name)?;
        self.newest = self.newest.next();
        self.expiring.retain(|(_, expiring, _)| expiring != name);
        if let Some(bucket) = self.buckets.get_mut(name) {
            bucket.configure(config);
            let moments = bucket.records.keys().filter_map(|key| Some((bucket.expiry(key)?, key)));
            self.expiring.extend(moments.map(|(moment, key)| (moment, name.clone(), key.clone())));
        }
        // A shorter TTL may have ended some values already.
        self.record_due(now);
        Ok(self.info(self.bucket(name)?))
    }

    pub(super) fn delete_bucket(&mut self, name: &BucketName) -> Result<(), EngineError> {
        let id = self.bucket(name)?.id;
        self.newest = self.newest.next();
        self.buckets.remove(name);
        self.expiring.retain(|(_, expiring, _)| expiring != name);
        self.pages.forget(|snapshot| snapshot.bucket == id);
        self.wake(id);
        Ok(())
    }

    pub(super) fn commit(
        &mut self,
        name: &BucketName,
        batch: Batch,
        capabilities: &Capabilities,
        now: Timestamp,
    ) -> Result<Committed, CommitError> {
        let bucket = self.bucket(name)?;
        let batch = batch.check(name, &bucket.config, capabilities)?;
        for demand in batch.demands() {
            bucket.judge(demand, now).map_err(CommitError::Conflict)?;
        }
        let first = self.newest.next();
        let operations = batch.into_operations();
        let size = u16::try_from(operations.len()).map_err(|_| bug("a checked batch is too long"))?;
        for (index, operation) in (0..size).zip(operations) {
            let entry = record(operation, first.plus(u64::from(index)), now);
            self.append(name, entry, BatchPart { index, size });
        }
        Ok(Committed { first, last: self.newest, time: now })
    }

    pub(super) fn compact_key(
        &mut self,
        name: &BucketName,
        key: &Key,
        keep: NonZeroU8,
    ) -> Result<(), EngineError> {
        self.bucket(name)?;
        if self.buckets.get_mut(name).is_some_and(|bucket| bucket.compact(key, keep.get())) {
            self.newest = self.newest.next();
        }
        Ok(())
    }

    pub(super) fn read(
        &self,
        name: &BucketName,
        key: &Key,
        at: At,
        now: Timestamp,
    ) -> Result<Option<Entry>, EngineError> {
        let bucket = self.bucket(name)?;
        match at {
            At::Revision(asked) if asked > self.newest => {
                Err(EngineError::FutureRevision { asked, newest: self.newest })
            }
            At::Latest | At::Revision(_) => bucket.read(key, at, now),
        }
    }

    pub(super) fn scan(
        &mut self,
        name: &BucketName,
        query: &ScanQuery,
        now: Timestamp,
    ) -> Result<Page, EngineError> {
        query.check()?;
        let bucket = self.bucket(name)?;
        let Some(token) = &query.page else {
            let entries = bucket.select(&query.selection, query.direction, now).into();
            let snapshot = Snapshot { bucket: bucket.id, revision: self.newest, time: now, entries };
            return Ok(self.page(&snapshot, 0, None, query, now));
        };
        let (cursor, id) = (PageCursor::decode(token)?, bucket.id);
        cursor.check(self.store, id.get(), query)?;
        let snapshot =
            self.pages.renew(cursor.snapshot, now).ok_or(EngineError::Compacted { oldest: self.newest })?;
        let last = snapshot.entries.iter().position(|entry| entry.key == cursor.last);
        let last = last.ok_or(EngineError::InvalidPageToken { reason: "its key was not on a page" })?;
        Ok(self.page(&snapshot, last + 1, Some(cursor.snapshot), query, now))
    }

    /// The page that begins at `start` in `snapshot`, which is kept as `kept` if it is already.
    fn page(
        &mut self,
        snapshot: &Snapshot,
        start: usize,
        kept: Option<u64>,
        query: &ScanQuery,
        now: Timestamp,
    ) -> Page {
        let mut entries: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        for entry in snapshot.entries.iter().skip(start).take(query.limit) {
            let mut entry = entry.clone();
            if query.keys_only {
                entry.value = bytes::Bytes::new();
            }
            bytes += entry.value.len();
            if bytes > PAGE_BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        let next = entries.last().filter(|_| start + entries.len() < snapshot.entries.len());
        let next = next.map(|last| last.key.clone()).map(|last| {
            let id = kept.unwrap_or_else(|| self.pages.keep(snapshot.clone(), now));
            self.token(snapshot, id, query, last)
        });
        Page { entries, revision: snapshot.revision, next }
    }

    fn token(&self, snapshot: &Snapshot, id: u64, query: &ScanQuery, last: Key) -> PageToken {
        PageCursor {
            store: self.store,
            bucket: snapshot.bucket.get(),
            snapshot: id,
            time: snapshot.time,
            query: query.digest(),
            last,
        }
        .encode()
    }

    /// The one way into a bucket's records: the store's newest revision, the moments of expiry and the
    /// watchers all follow from here.
    fn append(&mut self, name: &BucketName, entry: Entry, batch: BatchPart) {
        let Some(bucket) = self.buckets.get_mut(name) else { return };
        let key = entry.key.clone();
        self.newest = entry.revision;
        if let Some(moment) = bucket.expiry(&key) {
            self.expiring.remove(&(moment, name.clone(), key.clone()));
        }
        bucket.append(Change { entry, batch });
        if let Some(moment) = bucket.expiry(&key) {
            self.expiring.insert((moment, name.clone(), key));
        }
        let id = bucket.id;
        self.wake(id);
    }

    /// Has the watchers of a bucket woken once the lock is released.
    fn wake(&mut self, bucket: Revision) {
        let watchers = self.watches.values_mut().filter(|(watched, _)| *watched == bucket);
        self.woken.extend(watchers.filter_map(|(_, waker)| waker.take()));
    }

    /// Lets go of everything.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.buckets.clear();
        self.expiring.clear();
        self.pages = PageSnapshots::default();
        let wakers = self.watches.values_mut().filter_map(|(_, waker)| waker.take());
        self.woken.extend(wakers);
    }
}

fn record(operation: Operation, revision: Revision, time: Timestamp) -> Entry {
    let Operation { key, action, headers, .. } = operation;
    let (op, value, expires) = match action {
        Action::Put { value, expiry } => (Op::Put, value, expiry.moment(time)),
        Action::Delete => (Op::Delete, bytes::Bytes::new(), None),
        Action::Purge => (Op::Purge, bytes::Bytes::new(), None),
    };
    Entry { key, value, revision, time, expires, op, headers }
}

fn bug(what: &str) -> EngineError {
    EngineError::Bug { what: what.to_owned() }
}
