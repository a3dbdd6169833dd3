//! The log: every commit, in order, in checksummed segments. `docs/formats/log.md` draws its bytes.

mod chain;
mod footer;
mod frame;
mod frames;
mod gather;
mod reader;
mod record;
mod segment;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use pleach_engine::{EngineError, Key, Revision};

pub(crate) use footer::{BucketSummary, Footer, FrameSummary};
pub(crate) use frame::{FRAME_ALIGNMENT, Frame, FrameHeader, FrameKind, FromBody, SoundFrame, batch_part};
pub(crate) use frames::SegmentFrames;
pub(crate) use gather::Wanted;
pub(crate) use reader::LogReader;
pub(crate) use record::{FLAG_EXPIRES, Payload, Record, RecordFields, RecordKind, take, take_u64};
pub(crate) use segment::{Segment, SegmentHeader};
pub(crate) use tail::Tail;
pub(crate) use writer::{LogWriter, WriteError};

use crate::disk::{Disk, io_error};
use crate::meters::Stopwatch;

/// A small log has small segments, so that little of it waits for a segment to be finished: this part of it.
const SEGMENTS_AT_LEAST: u64 = 32;

/// But no smaller than this.
const SEGMENT_BYTES_MIN: u64 = 2 * 1024 * 1024;

/// The largest value any bucket takes.
pub(crate) const VALUE_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// Tells stores apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Tells buckets of a store apart, also one from its namesake before it. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BucketId(pub(crate) u32);

/// Tells segments apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId {
    /// No record in it has a lower revision.
    pub(crate) first: Revision,
    /// How often what is there was cleaned: a segment of a later generation takes the place of earlier ones.
    pub(crate) generation: u32,
}

impl SegmentId {
    /// The first segment that is written for a revision.
    pub(crate) fn new(first: Revision) -> Self {
        Self { first, generation: 0 }
    }

    /// The name of its file; names sort as revisions do.
    pub(crate) fn file_name(self) -> String {
        match self.generation {
            0 => format!("{:020}.log", self.first.get()),
            generation => format!("{:020}-{generation}.log", self.first.get()),
        }
    }

    /// What a file name says about the segment in it, if it is the name of one.
    pub(crate) fn parse(file_name: &str) -> Option<Self> {
        let name = file_name.strip_suffix(".log")?;
        let (digits, generation) = name.split_once('-').map_or((name, Some(0)), |(digits, generation)| {
            (digits, generation.parse().ok().filter(|generation| *generation > 0))
        });
        let first = Some(digits).filter(|digits| digits.len() == 20)?.parse().ok()?;
        let id = Self { first: Revision::new(first), generation: generation? };
        // Signs and leading zeros would be other names for the same segment.
        (id.file_name() == file_name).then_some(id)
    }
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: SegmentId,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// Ties checksums to their place, so that bytes of another segment, another offset or another revision
/// are never taken for the ones that should be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    salt: u64,
}

impl Binding {
    /// That of the segment with this salt.
    pub(crate) const fn new(salt: u64) -> Self {
        Self { salt }
    }

    /// What to combine with the checksum of bytes at `offset` that belong to `revision`.
    pub(crate) fn of(self, offset: u64, revision: Revision) -> u32 {
        // The finaliser of SplitMix64, twice: every bit of the place changes half the bits of the result.
        let mix = |mut word: u64| {
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        let word = mix(mix(self.salt ^ offset).wrapping_add(revision.get()));
        u32::try_from(word >> 32).unwrap_or_default()
    }
}

/// The segments of a store. Together they hold every revision from the first on, each in one of them.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) store: StoreId,
    /// Times how long it takes to sync what was written.
    pub(crate) syncs: Stopwatch,
    segments: RwLock<Segments>,
    /// What the segment that is being written holds of each bucket, for whoever wants to know.
    unfinished: Mutex<HashMap<BucketId, BucketSummary>>,
}

#[derive(Debug, Default)]
struct Segments {
    /// By their first revision.
    current: BTreeMap<Revision, Arc<Segment>>,
    /// Those that cleaned ones took the place of, as long as someone may need them.
    replaced: HashMap<SegmentId, Arc<Segment>>,
}

impl Log {
    /// Opens the segments there are and checks that none is missing or shortened. What is inside is not
    /// looked at.
    pub(crate) fn open(disk: Arc<dyn Disk>, directory: &Path, store: StoreId) -> Result<Self, EngineError> {
        let names = disk.list(directory).map_err(io_error("list", directory))?;
        let mut found = Vec::new();
        for id in names.iter().filter_map(|name| SegmentId::parse(name)) {
            let segment = Segment::open(&*disk, directory.join(id.file_name()))?;
            if segment.header.store != store {
                return Err(segment.damaged(16, "the segment belongs to another store"));
            }
            if segment.id() != id {
                let name = segment.id().file_name();
                return Err(segment.damaged(32, format!("the segment's own name is {name}")));
            }
            found.push(Arc::new(segment));
        }
        let segments = chain::link(found, directory)?;
        let (syncs, segments, unfinished) = (Stopwatch::default(), RwLock::new(segments), Mutex::default());
        Ok(Self { disk, directory: directory.into(), store, syncs, segments, unfinished })
    }

    /// Removes what interrupted work has left: segments that never got their name.
    pub(crate) fn remove_unfinished(&self) -> Result<(), EngineError> {
        let names = self.disk.list(&self.directory).map_err(io_error("list", &self.directory))?;
        for name in names {
            let finished = name.strip_suffix(".tmp").map(|stem| format!("{stem}.log"));
            if finished.is_some_and(|name| SegmentId::parse(&name).is_some()) {
                let path = self.directory.join(name);
                self.disk.remove(&path).map_err(io_error("remove", &path))?;
            }
        }
        Ok(())
    }

    /// How large a segment grows, in a log of this size, if it may not grow past `limit`.
    pub(crate) fn segment_bytes(&self, limit: u64) -> u64 {
        let bytes: u64 = self.lock_read().current.values().map(|segment| segment.len()).sum();
        (bytes / SEGMENTS_AT_LEAST).max(SEGMENT_BYTES_MIN).min(limit)
    }

    /// What the segment that is being written holds of each bucket.
    pub(crate) fn unfinished(&self) -> MutexGuard<'_, HashMap<BucketId, BucketSummary>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        self.lock_read().current.values().cloned().collect()
    }

    pub(crate) fn last_segment(&self) -> Option<Arc<Segment>> {
        self.lock_read().current.last_key_value().map(|(_, segment)| Arc::clone(segment))
    }

    /// The segment to which `revision` belongs, or would belong.
    pub(crate) fn segment_of(&self, revision: Revision) -> Option<Arc<Segment>> {
        self.lock_read().current.range(..=revision).next_back().map(|(_, segment)| Arc::clone(segment))
    }

    /// The first segment that begins after `first`.
    pub(crate) fn segment_after(&self, first: Revision) -> Option<Arc<Segment>> {
        self.lock_read().current.range(first.next()..).next().map(|(_, segment)| Arc::clone(segment))
    }

    pub(crate) fn add(&self, segment: Arc<Segment>) {
        self.lock_write().current.insert(segment.first(), segment);
    }

    /// Puts a cleaned segment in the place of those it was made from, which can still be read.
    pub(crate) fn replace(&self, old: &[Arc<Segment>], new: Arc<Segment>) {
        let mut segments = self.lock_write();
        for segment in old {
            segments.current.remove(&segment.first());
            segment.set_replaced();
            segments.replaced.insert(segment.id(), Arc::clone(segment));
        }
        segments.current.insert(new.first(), new);
    }

    /// The segments that others have taken the place of, oldest first.
    pub(crate) fn replaced(&self) -> Vec<Arc<Segment>> {
        let mut replaced: Vec<_> = self.lock_read().replaced.values().cloned().collect();
        replaced.sort_by_key(|segment| segment.id());
        replaced
    }

    /// Removes segments that nobody needs any more, though someone may be reading them.
    pub(crate) fn remove(&self, replaced: &[SegmentId]) -> Result<(), EngineError> {
        for id in replaced {
            let Some(segment) = self.lock_write().replaced.remove(id) else { continue };
            match self.disk.remove(&segment.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    self.lock_write().replaced.insert(*id, Arc::clone(&segment));
                    return Err(io_error("remove", &segment.path)(error));
                }
                _ => {}
            }
        }
        if replaced.is_empty() {
            return Ok(());
        }
        self.disk.sync_directory(&self.directory).map_err(io_error("sync", &self.directory))
    }

    /// Reads one record, which must be of `key` and `revision`; none if nobody needed it any more, and it was
    /// cleaned away.
    pub(crate) fn read(
        &self,
        position: Position,
        key: &Key,
        revision: Revision,
    ) -> Result<Option<Record>, EngineError> {
        let Some(segment) = self.segment(position.segment) else { return self.find(key, revision) };
        let bytes = match segment.read(position.offset, position.len as usize) {
            Err(_) if self.segment(position.segment).is_none() => return self.find(key, revision),
            bytes => bytes?,
        };
        let record = Record::decode(&bytes, revision, segment.binding().of(position.offset, revision))
            .filter(|record| record.key == *key);
        let what = || format!("the record of {key} at revision {revision} is unreadable");
        record.map(Some).ok_or_else(|| segment.damaged(position.offset, what()))
    }

    /// Looks for a record by its revision, because the segment in which it was is gone. What was cleaned out of
    /// the log may still be in a segment that waits to be removed, for the sake of a snapshot.
    fn find(&self, key: &Key, revision: Revision) -> Result<Option<Record>, EngineError> {
        let holds = |segment: &Arc<Segment>| {
            segment.first() <= revision && segment.footer().is_some_and(|footer| revision <= footer.last)
        };
        loop {
            let Some(current) = self.segment_of(revision) else { return Ok(None) };
            let older = self.replaced().into_iter().filter(holds);
            for segment in std::iter::once(Arc::clone(&current)).chain(older) {
                match Self::find_in(&segment, key, revision) {
                    Ok(None) => {}
                    // Its file may be gone by now.
                    Err(_) if segment.is_replaced() => {}
                    found => return found,
                }
            }
            if !current.is_replaced() {
                return Ok(None);
            }
        }
    }

    fn find_in(segment: &Arc<Segment>, key: &Key, revision: Revision) -> Result<Option<Record>, EngineError> {
        const WINDOW_BYTES: usize = 64 * 1024;
        let mut frames = SegmentFrames::at(segment, segment.offset_for(revision), WINDOW_BYTES);
        while let Some((_, frame)) = frames.next()? {
            if frame.header.first > revision {
                break;
            }
            let is_it = |(_, record): &(u64, Record)| record.revision == revision && record.key == *key;
            if let Some((_, record)) = frame.records.into_iter().find(is_it) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The segment of this very generation, if it is there.
    fn segment(&self, id: SegmentId) -> Option<Arc<Segment>> {
        let segments = self.lock_read();
        let current = segments.current.get(&id.first).filter(|segment| segment.id() == id);
        current.or_else(|| segments.replaced.get(&id)).cloned()
    }

    fn lock_read(&self) -> std::sync::RwLockReadGuard<'_, Segments> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_write(&self) -> std::sync::RwLockWriteGuard<'_, Segments> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }
}
