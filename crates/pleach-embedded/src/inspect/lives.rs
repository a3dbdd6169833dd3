use std::collections::BTreeMap;

use pleach_engine::{BucketName, Revision, Timestamp};

use crate::log::{BucketId, Frame, FrameKind, RecordKind};

/// The most stretches of revisions without records that are remembered; the oldest are forgotten first.
const FREE_RANGES_MAX: usize = 100_000;

/// What the sound frames of a log tell about its buckets.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub(super) by_bucket: BTreeMap<BucketId, Life>,
    pub(super) free: Free,
    /// The newest revision that a record has.
    last: Revision,
}

/// One bucket, from its creation to its deletion, as far as the log still has it.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// Its name, if a record about it is left.
    pub(super) name: Option<BucketName>,
    pub(super) created: Option<Revision>,
    pub(super) deleted: Option<Revision>,
    /// The first revision that is about it, and its time.
    pub(super) first: Revision,
    pub(super) time: Timestamp,
}

impl Life {
    /// Whether all that is left is what the deletion of the bucket has not yet taken away.
    pub(super) fn is_over(&self) -> bool {
        self.created.is_none() && self.deleted.is_some()
    }
}

impl Lives {
    /// Takes account of the next frame.
    pub(super) fn see(&mut self, frame: &Frame) {
        let (first, last) = (frame.header.first, frame.header.last());
        let Some((_, record)) = frame.records.first() else { return };
        self.free.add(self.last.next(), first);
        self.last = last;
        let life = Life { name: None, created: None, deleted: None, first, time: record.time };
        let life = self.by_bucket.entry(frame.header.bucket).or_insert(life);
        if frame.header.kind != FrameKind::Bucket {
            return;
        }
        for (_, record) in &frame.records {
            let Ok(name) = BucketName::parse(record.key.as_str()) else { continue };
            life.name = Some(name);
            match record.kind {
                RecordKind::CreateBucket => life.created = life.created.or(Some(record.revision)),
                RecordKind::DeleteBucket => life.deleted = Some(record.revision),
                _ => {}
            }
        }
    }
}

/// Revisions that no record has: they were cleaned away, or lost, or never had one.
#[derive(Clone, Debug, Default)]
pub(super) struct Free {
    /// The first of a stretch, and the one after its last.
    ranges: BTreeMap<Revision, Revision>,
}

impl Free {
    /// Adds the revisions from `first` to before `end`.
    fn add(&mut self, first: Revision, end: Revision) {
        if first >= end {
            return;
        }
        self.ranges.insert(first, end);
        if self.ranges.len() > FREE_RANGES_MAX {
            self.ranges.pop_first();
        }
    }

    /// Takes the newest one before `before` and not before `from`.
    pub(super) fn take(&mut self, from: Revision, before: Revision) -> Option<Revision> {
        let (first, end) = self.ranges.range(..before).next_back().map(|(first, end)| (*first, *end))?;
        let found = Revision::new(end.min(before).get() - 1);
        if found < from {
            return None;
        }
        self.ranges.remove(&first);
        self.add(first, found);
        self.add(found.next(), end);
        Some(found)
    }
}
