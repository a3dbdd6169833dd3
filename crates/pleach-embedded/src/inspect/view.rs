use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_engine::{BucketConfig, BucketName, EngineError, Key, Revision};

use super::report::{IndexCheck, LOST_KEYS_LISTED_MAX, Progress, Step};
use super::scan::scan;
use crate::catalog::{Bucket, decode_config};
use crate::consumers::{Consumer, decode_info};
use crate::disk::{RealDisk, io_error};
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::index::{
    Head, INLINE_BYTES_MAX, Index as _, IndexKey, LsmIndex, Meta, Past, ReadAt, bucket_of, key_of_head,
};
use crate::log::{BucketId, Frame, FrameKind, Log, Position, Record, RecordKind, SegmentId, StoreId};
use crate::random;

/// How much of the index is kept in memory while it is compared.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// Keys with a fault are counted once each up to this many, and then once a record.
const FAULTS_REMEMBERED_MAX: usize = 100_000;

/// Up to so many keys that are not in the index are remembered until the log says that they were forgotten; any
/// more are taken to be.
const ABSENT_REMEMBERED_MAX: usize = 1_000_000;

/// What became of an attempt to open the index.
pub(super) enum Opening {
    Absent,
    Unreadable(String),
    Opened(Box<View>),
}

/// The index of a closed store, opened under another name so that nothing happens to its files.
pub(super) struct View {
    index: LsmIndex,
    pub(super) meta: Meta,
    pub(super) buckets: HashMap<BucketId, Bucket>,
    // Goes last: the index has files open in it.
    _copy: IndexCopy,
}

impl View {
    /// Opens a copy of the index of the store in `directory`.
    pub(super) fn open(directory: &Path, store: Option<StoreId>) -> Result<Opening, EngineError> {
        let index = directory.join("index");
        if !index.is_dir() {
            return Ok(Opening::Absent);
        }
        match IndexCopy::make(directory, &index).and_then(|copy| Self::load(copy, store)) {
            Ok(Some(view)) => Ok(Opening::Opened(Box::new(view))),
            Ok(None) => Ok(Opening::Absent),
            Err(EngineError::CorruptIndex { what }) => Ok(Opening::Unreadable(what)),
            Err(EngineError::Io { source, .. }) => Ok(Opening::Unreadable(source.to_string())),
            Err(error) => Err(error),
        }
    }

    fn load(copy: IndexCopy, store: Option<StoreId>) -> Result<Option<Self>, EngineError> {
        let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
        let index = LsmIndex::open_checking(disk, &copy.0, CACHE_BYTES, u64::MAX)?;
        let Some(meta) = index.get(&IndexKey::meta(), ReadAt::Newest)? else {
            let first = index.range(Bound::Unbounded, Bound::Unbounded, ReadAt::Newest).next().transpose()?;
            let what = "it does not say how far it goes";
            return first.map_or(Ok(None), |_| Err(unreadable(what)));
        };
        let meta = Meta::decode(meta).ok_or_else(|| unreadable("what it says about itself is unreadable"))?;
        if store.is_some_and(|store| store != meta.store) {
            return Err(unreadable("it belongs to another store"));
        }
        let start = Bound::Included(IndexKey::buckets());
        let end = Bound::Excluded(IndexKey::after(&IndexKey::buckets()));
        let mut buckets = HashMap::new();
        for item in index.range(start, end, ReadAt::Newest) {
            let (key, bytes) = item?;
            let bucket =
                Bucket::decode(&key[1..], bytes).ok_or_else(|| unreadable("a bucket is unreadable"))?;
            buckets.insert(bucket.id, bucket);
        }
        Ok(Some(Self { index, meta, buckets, _copy: copy }))
    }

    /// Compares the index with the log of the store in `directory`, which is sound.
    pub(super) fn check(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<IndexCheck, EngineError> {
        let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
        let log = Log::open(disk, &directory.join("log"), self.meta.store)?;
        let mut comparison = Comparison::new(self, log);
        comparison.compare_records(directory, progress)?;
        comparison.compare_consumers()?;
        comparison.compare_heads()?;
        Ok(comparison.check)
    }

    fn head(&self, bucket: BucketId, key: &Key) -> Result<Option<Option<Head>>, EngineError> {
        let bytes = self.index.get(&IndexKey::head(bucket, key.as_bytes()), ReadAt::Newest)?;
        Ok(bytes.map(|bytes| Head::decode(&bytes)))
    }
}

struct Comparison<'a> {
    view: &'a View,
    log: Log,
    /// The segments there are, also those that others have taken the place of.
    segments: HashSet<SegmentId>,
    check: IndexCheck,
    buckets: HashMap<BucketId, Found>,
    consumers: BTreeMap<(BucketId, String), Option<Consumer>>,
    /// Keys that are in the log and not in the index, which may be because they were forgotten later.
    absent: HashSet<(BucketId, Key)>,
    /// Keys and consumers that are changed after what the index contains: what it knows of them may have been
    /// cleaned away, because of these changes.
    later: HashSet<(BucketId, Key)>,
    faulty: HashSet<(BucketId, Key)>,
    /// How many heads are exactly what the newest record of their key says.
    exact: u64,
}

/// A bucket as the log has it.
struct Found {
    name: BucketName,
    config: Option<BucketConfig>,
    /// The newest revision that forgets a key.
    forgotten: Revision,
}

enum Fault {
    Missing,
    Stale,
    Wrong,
}

impl<'a> Comparison<'a> {
    fn new(view: &'a View, log: Log) -> Self {
        let segments = log.segments().into_iter().chain(log.replaced());
        Self {
            view,
            segments: segments.map(|segment| segment.id()).collect(),
            log,
            check: IndexCheck { applied: view.meta.applied, ..IndexCheck::default() },
            buckets: HashMap::new(),
            consumers: BTreeMap::new(),
            absent: HashSet::new(),
            later: HashSet::new(),
            faulty: HashSet::new(),
            exact: 0,
        }
    }

    /// Looks every record of the log up in the index.
    fn compare_records(
        &mut self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EngineError> {
        let store = Some(self.view.meta.store);
        scan(directory, store, Step::CheckIndex, progress, &mut |segment, frame| {
            if frame.header.last() > self.view.meta.applied {
                self.follow_later(&frame);
                return Ok(());
            }
            match frame.header.kind {
                FrameKind::Bucket => self.follow_bucket(&frame),
                FrameKind::Consumer => self.follow_consumer(&frame),
                FrameKind::Commit if self.view.buckets.contains_key(&frame.header.bucket) => {
                    self.compare_frame(segment, &frame)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        for (bucket, key) in std::mem::take(&mut self.absent) {
            self.fault(bucket, &key, &Fault::Missing);
        }
        let (known, found) = (&self.view.buckets, &self.buckets);
        let fits = |(id, found): &(&BucketId, &Found)| {
            known.get(id).is_some_and(|bucket| {
                bucket.name == found.name
                    && found.config.as_ref() == Some(&*bucket.config())
                    && bucket.forgotten() >= found.forgotten
            })
        };
        let wrong = found.iter().filter(|found| !fits(found)).count();
        let surplus = known.keys().filter(|id| !found.contains_key(id)).count();
        self.check.buckets_wrong = (wrong + surplus) as u64;
        Ok(())
    }

    fn follow_later(&mut self, frame: &Frame) {
        let keys = frame.records.iter().map(|(_, record)| (frame.header.bucket, record.key.clone()));
        let room = ABSENT_REMEMBERED_MAX.saturating_sub(self.later.len());
        self.later.extend(keys.take(room));
    }

    /// Whether a key or consumer is changed after what the index contains, or may be.
    fn is_changed_later(&self, bucket: BucketId, key: &Key) -> bool {
        self.later.len() >= ABSENT_REMEMBERED_MAX || self.later.contains(&(bucket, key.clone()))
    }

    fn compare_frame(&mut self, segment: SegmentId, frame: &Frame) -> Result<(), EngineError> {
        let bucket = frame.header.bucket;
        let forgotten = self.view.buckets.get(&bucket).map(|bucket| bucket.forgotten()).unwrap_or_default();
        for (offset, record) in &frame.records {
            if record.forgets_its_key() {
                self.absent.remove(&(bucket, record.key.clone()));
                if let Some(found) = self.buckets.get_mut(&bucket) {
                    found.forgotten = record.revision;
                }
            }
            // A purge that its key has forgotten leaves no marker, but what came before it stays purged.
            if record.faded && record.kind == RecordKind::Purge {
                self.absent.remove(&(bucket, record.key.clone()));
            }
            if record.kind.op().is_none() || record.faded {
                continue;
            }
            let len = u32::try_from(record.encoded_len()).unwrap_or(u32::MAX);
            let position = Position { segment, offset: *offset, len };
            match self.view.head(bucket, &record.key)? {
                None if record.revision < forgotten => {
                    if self.absent.len() < ABSENT_REMEMBERED_MAX {
                        self.absent.insert((bucket, record.key.clone()));
                    }
                }
                None => self.fault(bucket, &record.key, &Fault::Missing),
                Some(None) => self.fault(bucket, &record.key, &Fault::Wrong),
                Some(Some(head)) if head.revision > record.revision => {}
                Some(Some(head)) if head.revision < record.revision => {
                    self.fault(bucket, &record.key, &Fault::Stale);
                }
                Some(Some(head)) if fits(&head, record) && self.is_at(&head, position, record) => {
                    self.exact += 1;
                }
                Some(Some(_)) => self.fault(bucket, &record.key, &Fault::Wrong),
            }
        }
        Ok(())
    }

    /// Whether a head points to its record, here or where it was before it was moved.
    fn is_at(&self, head: &Head, position: Position, record: &Record) -> bool {
        let before = head.position.segment;
        // If that segment is gone, the record is looked for by its revision, and this is the one.
        let is_gone = before.generation < position.segment.generation && !self.segments.contains(&before);
        head.position == position
            || is_gone
            || self.log.read(head.position, &record.key, record.revision).is_ok_and(|found| {
                found.is_some_and(|found| found.payload == record.payload && found.kind == record.kind)
            })
    }

    fn follow_bucket(&mut self, frame: &Frame) {
        let id = frame.header.bucket;
        for (_, record) in &frame.records {
            let Ok(name) = BucketName::parse(record.key.as_str()) else { continue };
            if record.kind == RecordKind::DeleteBucket {
                self.buckets.remove(&id);
                self.consumers.retain(|(bucket, _), _| *bucket != id);
                continue;
            }
            let forgotten = self.buckets.get(&id).map(|found| found.forgotten).unwrap_or_default();
            let config = decode_config(&record.payload.value);
            self.buckets.insert(id, Found { name, config, forgotten });
        }
    }

    fn follow_consumer(&mut self, frame: &Frame) {
        for (_, record) in &frame.records {
            let place = (frame.header.bucket, record.key.to_string());
            if record.kind == RecordKind::DeleteConsumer {
                self.consumers.remove(&place);
                continue;
            }
            let info = decode_info(record.key.as_str(), record.payload.value.clone());
            self.consumers.insert(place, info.map(|info| Consumer { info, revision: record.revision }));
        }
    }

    /// Compares the consumers that the log came to with those in the index.
    fn compare_consumers(&mut self) -> Result<(), EngineError> {
        // Of a bucket that was deleted, what came before may be left.
        self.consumers.retain(|(bucket, _), _| self.buckets.contains_key(bucket));
        let start = IndexKey::consumers();
        let end = Bound::Excluded(IndexKey::after(&start));
        let mut right = 0;
        for item in self.view.index.range(Bound::Included(start), end, ReadAt::Newest) {
            let (key, bytes) = item?;
            let place =
                bucket_of(&key).and_then(|(bucket, name)| Some((bucket, std::str::from_utf8(name).ok()?)));
            let (bucket, name) = place.ok_or_else(|| unreadable("the name of a consumer is none"))?;
            let known = Consumer::decode(name, bytes);
            let found = self.consumers.get(&(bucket, name.to_owned()));
            let key = Key::parse_reserved(name).map_err(|_| unreadable("the name of a consumer is none"))?;
            if known.is_some() && (found == Some(&known) || self.is_changed_later(bucket, &key)) {
                right += u64::from(found.is_some());
            } else {
                self.check.consumers_wrong += u64::from(found.is_none());
            }
        }
        self.check.consumers_wrong += self.consumers.len() as u64 - right;
        Ok(())
    }

    /// Looks up in the log whatever the heads point to.
    fn compare_heads(&mut self) -> Result<(), EngineError> {
        for id in self.view.buckets.keys().copied() {
            self.each_head(id, |comparison, key, head| {
                comparison.check.heads += 1;
                let is_there = |past: &Past| comparison.is_there(past.position, &key, past.revision);
                let sound = |head: &Head| head.past.iter().all(is_there);
                if !head.as_ref().is_some_and(sound) && !comparison.is_changed_later(id, &key) {
                    comparison.fault(id, &key, &Fault::Wrong);
                }
            })?;
        }
        if self.check.heads == self.exact {
            return Ok(());
        }
        // Some are not the newest record of anything: those that are of no record at all are found by reading.
        for id in self.view.buckets.keys().copied() {
            self.each_head(id, |comparison, key, head| {
                let is_there =
                    head.is_some_and(|head| comparison.is_there(head.position, &key, head.revision));
                if !is_there && !comparison.is_changed_later(id, &key) {
                    comparison.fault(id, &key, &Fault::Wrong);
                }
            })?;
        }
        Ok(())
    }

    fn is_there(&self, position: Position, key: &Key, revision: Revision) -> bool {
        self.log.read(position, key, revision).is_ok_and(|record| record.is_some())
    }

    fn each_head(
        &mut self,
        bucket: BucketId,
        mut see: impl FnMut(&mut Self, Key, Option<Head>),
    ) -> Result<(), EngineError> {
        let start = IndexKey::head(bucket, &[]);
        let end = Bound::Excluded(IndexKey::after(&start));
        for item in self.view.index.range(Bound::Included(start), end, ReadAt::Newest) {
            let (key, bytes) = item?;
            let key = key_of_head(&key).ok_or_else(|| unreadable("a key in it is none"))?;
            see(self, key, Head::decode(&bytes));
        }
        Ok(())
    }

    fn fault(&mut self, bucket: BucketId, key: &Key, fault: &Fault) {
        if self.faulty.len() < FAULTS_REMEMBERED_MAX && !self.faulty.insert((bucket, key.clone())) {
            return;
        }
        match fault {
            Fault::Missing => self.check.missing += 1,
            Fault::Stale => self.check.stale += 1,
            Fault::Wrong => self.check.wrong += 1,
        }
        if self.check.examples.len() < LOST_KEYS_LISTED_MAX
            && let Some(bucket) = self.view.buckets.get(&bucket)
        {
            self.check.examples.push((bucket.name.clone(), key.clone()));
        }
    }
}

fn fits(head: &Head, record: &Record) -> bool {
    let inline = record.payload.encoded_len() <= INLINE_BYTES_MAX;
    let same_payload =
        if inline { head.payload == record.payload } else { head.payload.headers == record.payload.headers };
    Some(head.op) == record.kind.op()
        && (head.time, head.expires) == (record.time, record.expires)
        && head.inline == inline
        && same_payload
}

fn unreadable(what: &str) -> EngineError {
    EngineError::CorruptIndex { what: what.into() }
}

/// The files of an index under another name, until it is dropped. Opening an index may delete files of it, and
/// then it does so here. Tables are never changed once they are written, so they are linked where that works.
struct IndexCopy(PathBuf);

impl IndexCopy {
    fn make(directory: &Path, index: &Path) -> Result<Self, EngineError> {
        let copy = Self(directory.join(format!("index.inspect-{:016x}", random::word()?)));
        copy_files(index, &copy.0).map_err(io_error("copy", index))?;
        Ok(copy)
    }
}

impl Drop for IndexCopy {
    fn drop(&mut self) {
        // What stays behind is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Tables never change, so another name for each is enough.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        let is_table = path.extension().is_some_and(|extension| extension == "table");
        if !is_table || fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
