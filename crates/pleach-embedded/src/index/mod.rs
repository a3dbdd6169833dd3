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
use pleach_engine::{EngineError, Revision};

pub(crate) use head::{Head, INLINE_BYTES_MAX, Past};
pub(crate) use home::{IndexDirectory, IndexHome};
pub(crate) use layout::{IndexKey, Meta, bucket_of, decode_expiry_key, key_of_head};
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

/// Pairs of key and value in order.
pub(crate) type IndexIter = Box<dyn DoubleEndedIterator<Item = Result<(Bytes, Bytes), EngineError>> + Send>;

/// What the engine needs of an ordered map with snapshots. One thread writes, any number read.
pub(crate) trait Index: fmt::Debug + Send + Sync {
    fn get(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError>;

    fn range(&self, start: Bound<Bytes>, end: Bound<Bytes>, at: ReadAt) -> IndexIter;

    /// Applies the changes of one revision, which is not before that of any earlier call.
    fn write(&self, revision: Revision, changes: Vec<IndexChange>);

    /// How much was written since the last [`Index::seal`].
    fn unsealed_bytes(&self) -> u64;

    /// Ends a stretch of writes: what comes later is flushed later.
    fn seal(&self);

    /// How much is waiting for [`Index::flush`] and [`Index::compact`].
    fn backlog(&self) -> Backlog;

    /// Makes every sealed stretch durable. The log must have been synced as far before.
    fn flush(&self, oldest: Revision) -> Result<(), EngineError>;

    /// Does some of the merging that keeps reads fast; snapshots from `oldest` on stay readable.
    fn compact(&self, oldest: Revision) -> Result<(), EngineError>;

    /// What it has done, and how large it is.
    fn stats(&self) -> IndexStats;
}

/// How far the index is behind with its own upkeep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// Sealed stretches not yet flushed.
    pub(crate) sealed: usize,
    /// Flushed runs not yet merged.
    pub(crate) runs: usize,
}
