use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_engine::{BucketConfig, BucketName, EngineError, Key, Revision};

use super::report::{IndexCheck, LOST_KEYS_LISTED_MAX, Progress, Step};
use super::scan::scan;
use crate::catalog::{Bucket, decode_config};
use crate::core::op_of;
use crate::disk::{RealDisk, io_error};
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::index::{Head, INLINE_BYTES_MAX, Index as _, IndexKey, LsmIndex, Meta, ReadAt, key_of_head};
use crate::log::{BucketId, Frame, FrameKind, Log, Position, Record, RecordKind, StoreId};
use crate::random;

/// How much of the index is kept in memory while it is compared.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// Keys with a fault are counted once each up to this many, and then once a record.
const FAULTS_REMEMBERED_MAX: usize = 100_000;

/// What became of an attempt to open the index.
pub(super) enum Opening {
    Absent,
    Unreadable(String),
    Opened(View),
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
        let opened = IndexCopy::make(directory, &index).and_then(|copy| {
            // The library is not made for files that anyone may have changed.
            let opened = catch_unwind(AssertUnwindSafe(|| Self::load(copy, store)));
            opened.unwrap_or_else(|_| Err(unreadable("its files make no sense")))
        });
        match opened {
            Ok(Some(view)) => Ok(Opening::Opened(view)),
            Ok(None) => Ok(Opening::Absent),
            Err(EngineError::CorruptIndex { what }) => Ok(Opening::Unreadable(what)),
            Err(EngineError::Io { source, .. }) => Ok(Opening::Unreadable(source.to_string())),
            Err(error) => Err(error),
        }
    }

    fn load(copy: IndexCopy, store: Option<StoreId>) -> Result<Option<Self>, EngineError> {
        let index = LsmIndex::open(&copy.0, CACHE_BYTES)?;
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
        let check = IndexCheck { applied: self.meta.applied, ..IndexCheck::default() };
        let mut comparison = Comparison { view: self, check, faulty: HashSet::new(), exact: 0 };
        let compared = catch_unwind(AssertUnwindSafe(|| {
            comparison.compare_records(directory, progress)?;
            comparison.compare_heads(directory)
        }));
        compared.unwrap_or_else(|_| Err(unreadable("its files make no sense")))?;
        Ok(comparison.check)
    }

    fn head(&self, bucket: BucketId, key: &Key) -> Result<Option<Option<Head>>, EngineError> {
        let bytes = self.index.get(&IndexKey::head(bucket, key.as_bytes()), ReadAt::Newest)?;
        Ok(bytes.map(Head::decode))
    }
}

struct Comparison<'a> {
    view: &'a View,
    check: IndexCheck,
    faulty: HashSet<(BucketId, Key)>,
    /// How many heads are exactly what the newest record of their key says.
    exact: u64,
}

enum Fault {
    Missing,
    Stale,
    Wrong,
}

impl Comparison<'_> {
    /// Looks every record of the log up in the index.
    fn compare_records(
        &mut self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EngineError> {
        let mut buckets: HashMap<BucketId, (BucketName, Option<BucketConfig>)> = HashMap::new();
        let store = Some(self.view.meta.store);
        scan(directory, store, Step::CheckIndex, progress, &mut |segment, frame| {
            if frame.header.last() > self.view.meta.applied {
                return Ok(());
            }
            match frame.header.kind {
                FrameKind::Bucket => follow_buckets(&mut buckets, &frame),
                FrameKind::Commit if self.view.buckets.contains_key(&frame.header.bucket) => {
                    self.compare_frame(segment, &frame)?;
                }
                FrameKind::Commit | FrameKind::Mark => {}
            }
            Ok(())
        })?;
        let found = &self.view.buckets;
        let wrong = buckets.iter().filter(|(id, (name, config))| {
            !found.get(id).is_some_and(|bucket| {
                bucket.name == *name && config.as_ref().is_some_and(|config| *config == *bucket.config())
            })
        });
        let surplus = found.keys().filter(|id| !buckets.contains_key(id));
        self.check.buckets_wrong = (wrong.count() + surplus.count()) as u64;
        Ok(())
    }

    fn compare_frame(&mut self, segment: Revision, frame: &Frame) -> Result<(), EngineError> {
        let bucket = frame.header.bucket;
        for (offset, record) in &frame.records {
            if op_of(record.kind).is_none() {
                continue;
            }
            let len = u32::try_from(record.encoded_len()).unwrap_or(u32::MAX);
            let position = Position { segment, offset: *offset, len };
            match self.view.head(bucket, &record.key)? {
                None => self.fault(bucket, &record.key, &Fault::Missing),
                Some(None) => self.fault(bucket, &record.key, &Fault::Wrong),
                Some(Some(head)) if head.revision > record.revision => {}
                Some(Some(head)) if head.revision < record.revision => {
                    self.fault(bucket, &record.key, &Fault::Stale);
                }
                Some(Some(head)) if fits(&head, position, record) => self.exact += 1,
                Some(Some(_)) => self.fault(bucket, &record.key, &Fault::Wrong),
            }
        }
        Ok(())
    }

    /// Looks up in the log whatever the heads point to.
    fn compare_heads(&mut self, directory: &Path) -> Result<(), EngineError> {
        let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
        let log = Log::open(disk, &directory.join("log"), self.view.meta.store)?;
        let is_there = |position, key: &Key, revision| log.read(position, key, revision).is_ok();
        for id in self.view.buckets.keys().copied() {
            self.each_head(id, |comparison, key, head| {
                comparison.check.heads += 1;
                let sound =
                    |head: &Head| head.past.iter().all(|past| is_there(past.position, &key, past.revision));
                if !head.as_ref().is_some_and(sound) {
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
                if !head.is_some_and(|head| is_there(head.position, &key, head.revision)) {
                    comparison.fault(id, &key, &Fault::Wrong);
                }
            })?;
        }
        Ok(())
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
            see(self, key, Head::decode(bytes));
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

fn fits(head: &Head, position: Position, record: &Record) -> bool {
    let inline = record.payload.encoded_len() <= INLINE_BYTES_MAX;
    let same_payload =
        if inline { head.payload == record.payload } else { head.payload.headers == record.payload.headers };
    Some(head.op) == op_of(record.kind)
        && (head.time, head.expires) == (record.time, record.expires)
        && (head.position, head.inline) == (position, inline)
        && same_payload
}

fn follow_buckets(buckets: &mut HashMap<BucketId, (BucketName, Option<BucketConfig>)>, frame: &Frame) {
    for (_, record) in &frame.records {
        let Ok(name) = BucketName::parse(record.key.as_str()) else { continue };
        if record.kind == RecordKind::DeleteBucket {
            buckets.remove(&frame.header.bucket);
        } else {
            buckets.insert(frame.header.bucket, (name, decode_config(&record.payload.value)));
        }
    }
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
        copy_files(index, &copy.0, false).map_err(io_error("copy", index))?;
        Ok(copy)
    }
}

impl Drop for IndexCopy {
    fn drop(&mut self) {
        // What stays behind is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_files(from: &Path, to: &Path, link: bool) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_files(&path, &target, entry.file_name() == "tables")?;
        } else if !link || fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
