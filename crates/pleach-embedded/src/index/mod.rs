//! The index: a view of the log that answers reads. It can be thrown away and built again.

mod head;
mod home;
mod layout;
mod lsm;
#[cfg(test)]
mod memory;
mod stats;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;

use bytes::Bytes;
use pleach_engine::{Direction, EngineError, Revision};

pub(crate) use head::{Head, HeadView, INLINE_BYTES_MAX, Past};
pub(crate) use home::{IndexDirectory, IndexHome};
pub(crate) use layout::{
    IndexKey, Meta, bucket_of, decode_expiry_key, is_head, key_of_head, text_of_head, with_head_key,
};
pub(crate) use lsm::LsmIndex;
#[cfg(test)]
pub(crate) use memory::{FlushFault, MemoryHome};
pub(crate) use stats::{IndexStats, LevelStats};

/// As of when to read the index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadAt {
    /// With everything that has been written to it.
    Newest,
    /// As of a revision that is pinned by an open snapshot.
    Snapshot(Revision),
}

/// A change to the index.
#[derive(Debug)]
pub(crate) enum IndexChange {
    Insert(Bytes, Bytes),
    Remove(Bytes),
}

impl IndexChange {
    /// What is changed.
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Insert(key, _) | Self::Remove(key) => key,
        }
    }
}

/// A key and its value.
pub(crate) type Pair<'a> = (&'a [u8], &'a [u8]);

/// Reads keys and values in order, without a copy of any.
pub(crate) trait IndexCursor: Send {
    /// The next key and its value; none at the end.
    fn next(&mut self) -> Result<Option<Pair<'_>>, EngineError>;
}

/// Pairs of key and value in order.
pub(crate) struct IndexIter(Box<dyn IndexCursor>);

impl Iterator for IndexIter {
    type Item = Result<(Bytes, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = self.0.next().transpose()?;
        Some(pair.map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))))
    }
}

/// What the engine needs of an ordered map with snapshots. One thread writes, any number read.
pub(crate) trait Index: fmt::Debug + Send + Sync {
    fn get(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError>;

    /// As [`Index::get`], and keeps nothing in memory for the next one.
    fn peek(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError>;

    /// Reads a range in one direction.
    fn cursor(
        &self,
        start: Bound<Bytes>,
        end: Bound<Bytes>,
        at: ReadAt,
        direction: Direction,
    ) -> Box<dyn IndexCursor>;

    /// The pairs of a range, from the first on.
    fn range(&self, start: Bound<Bytes>, end: Bound<Bytes>, at: ReadAt) -> IndexIter {
        IndexIter(self.cursor(start, end, at, Direction::Forward))
    }

    /// Gives a key a value, or none, at a revision which is not before that of any earlier call.
    fn put(&self, revision: Revision, key: &[u8], value: Option<&[u8]>);

    /// Makes changes at a revision which is not before that of any earlier call.
    fn write(&self, revision: Revision, changes: Vec<IndexChange>) {
        for change in &changes {
            match change {
                IndexChange::Insert(key, value) => self.put(revision, key, Some(value)),
                IndexChange::Remove(key) => self.put(revision, key, None),
            }
        }
    }

    /// How much was written since the last [`Index::seal`].
    fn unsealed_bytes(&self) -> u64;

    /// Ends a stretch of writes: what comes later is flushed later.
    fn seal(&self);

    /// How much is waiting for [`Index::flush`] and [`Index::compact`].
    fn backlog(&self) -> Backlog;

    /// Makes the oldest `count` sealed stretches durable. The log must have been synced as far before. Snapshots
    /// from `oldest` on stay readable.
    fn flush(&self, count: usize, oldest: Revision) -> Result<(), EngineError>;

    /// Does some of the merging that keeps reads fast, if any is due, and says whether it was; while much is written
    /// (`is_busy`) it comes later. Snapshots from `oldest` on stay readable.
    fn compact(&self, oldest: Revision, is_busy: bool) -> Result<bool, EngineError>;

    /// Gives up a merge that is under way, and makes no more: the store is about to be closed.
    fn stop_merging(&self) {}

    /// What it has done, and how large it is.
    fn stats(&self) -> IndexStats;
}

/// Whether no key can be between these ends.
fn is_empty(start: &Bound<Bytes>, end: &Bound<Bytes>) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end) | Bound::Included(end)) => {
            start >= end
        }
    }
}

/// How far the index is behind with its own upkeep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// Sealed stretches not yet flushed.
    pub(crate) sealed: usize,
    /// Flushed runs not yet merged.
    pub(crate) runs: usize,
}
