//! The log: every commit, in order, in checksummed segments. `docs/formats/log.md` draws its bytes.

mod frame;
mod reader;
mod record;
mod segment;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pleach_engine::{EngineError, Key, Revision};

pub(crate) use frame::{FRAME_ALIGNMENT, Frame, FrameHeader, FrameKind};
pub(crate) use reader::LogReader;
pub(crate) use record::{FLAG_EXPIRES, Payload, Record, RecordKind, take, take_u64};
pub(crate) use segment::{Segment, SegmentHeader};
pub(crate) use tail::Tail;
pub(crate) use writer::{LogWriter, WriteError};

use crate::disk::{Disk, io_error};

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

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The first revision of its segment.
    pub(crate) segment: Revision,
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

/// The segments of a store.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) store: StoreId,
    segments: RwLock<BTreeMap<Revision, Arc<Segment>>>,
}

impl Log {
    /// Opens the segments there are and checks that none is missing or shortened. What is inside is not
    /// looked at.
    pub(crate) fn open(disk: Arc<dyn Disk>, directory: &Path, store: StoreId) -> Result<Self, EngineError> {
        let names = disk.list(directory).map_err(io_error("list", directory))?;
        let mut segments = BTreeMap::new();
        for first in names.iter().filter_map(|name| Segment::first_of(name)) {
            let segment = Segment::open(&*disk, directory.join(Segment::file_name(first)))?;
            if segment.header.store != store {
                return Err(segment.damaged(16, "the segment belongs to another store"));
            }
            if segment.header.first != first {
                return Err(
                    segment.damaged(32, format!("the segment is that of revision {}", segment.header.first))
                );
            }
            segments.insert(first, Arc::new(segment));
        }
        let log = Self { disk, directory: directory.into(), store, segments: RwLock::new(segments) };
        log.check_chain()?;
        Ok(log)
    }

    fn check_chain(&self) -> Result<(), EngineError> {
        let segments = self.segments();
        let mut before: Option<&Arc<Segment>> = None;
        for segment in &segments {
            let found = before.map(|before| (before.header.first, before.len()));
            match (segment.header.previous, found) {
                (expected, found) if expected == found => {}
                (Some((expected, len)), Some((first, found))) if expected == first => {
                    let before = before.map_or(&segment.path, |before| &before.path);
                    let what = format!("the segment should have {len} bytes and has {found}");
                    return Err(EngineError::Corrupt { path: before.clone(), offset: found.min(len), what });
                }
                (Some((expected, _)), _) => {
                    let path = self.directory.join(Segment::file_name(expected));
                    return Err(EngineError::Corrupt {
                        path,
                        offset: 0,
                        what: "the segment is missing".into(),
                    });
                }
                (None, _) => {
                    return Err(segment.damaged(48, "the segment says it is the first, and is not"));
                }
            }
            before = Some(segment);
        }
        Ok(())
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        self.lock_read().values().cloned().collect()
    }

    pub(crate) fn last_segment(&self) -> Option<Arc<Segment>> {
        self.lock_read().last_key_value().map(|(_, segment)| Arc::clone(segment))
    }

    /// The oldest revision whose segment is still there.
    pub(crate) fn floor(&self) -> Revision {
        self.lock_read().first_key_value().map_or(Revision::new(1), |(first, _)| *first)
    }

    /// The segment in which `revision` is, or would be.
    pub(crate) fn segment_of(&self, revision: Revision) -> Option<Arc<Segment>> {
        self.lock_read().range(..=revision).next_back().map(|(_, segment)| Arc::clone(segment))
    }

    /// The segment after that which begins at `first`.
    pub(crate) fn segment_after(&self, first: Revision) -> Option<Arc<Segment>> {
        self.lock_read().range(first.next()..).next().map(|(_, segment)| Arc::clone(segment))
    }

    pub(crate) fn add(&self, segment: Arc<Segment>) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.insert(segment.header.first, segment);
    }

    /// Reads one record, which must be of `key` and `revision`.
    pub(crate) fn read(
        &self,
        position: Position,
        key: &Key,
        revision: Revision,
    ) -> Result<Record, EngineError> {
        let segment = self.lock_read().get(&position.segment).cloned();
        let Some(segment) = segment else {
            let path = self.directory.join(Segment::file_name(position.segment));
            return Err(EngineError::Corrupt {
                path,
                offset: position.offset,
                what: "the segment is missing".into(),
            });
        };
        let bytes = segment.read(position.offset, position.len as usize)?;
        Record::decode(&bytes, revision, segment.binding().of(position.offset, revision))
            .filter(|record| record.key == *key)
            .ok_or_else(|| {
                segment.damaged(
                    position.offset,
                    format!("the record of {key} at revision {revision} is unreadable"),
                )
            })
    }

    fn lock_read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Revision, Arc<Segment>>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }
}
