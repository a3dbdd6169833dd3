use std::collections::VecDeque;

use crate::{Change, Revision};

/// The most changes of one bucket that the in-memory engine keeps for its watchers.
pub const FEED_CHANGES_MAX: usize = 65_536;

/// The most bytes of keys, values and headers in them. The largest batch always fits.
pub const FEED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The latest changes of a bucket, oldest first. Watchers read from it and hold nothing themselves.
#[derive(Debug)]
pub(super) struct Feed {
    changes: VecDeque<Change>,
    bytes: usize,
    floor: Revision,
}

impl Feed {
    /// The feed of a bucket created at `floor`.
    pub(super) fn new(floor: Revision) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, floor }
    }

    /// The oldest revision a watch can start from: nothing at or after it is missing.
    pub(super) fn floor(&self) -> Revision {
        self.floor
    }

    /// Adds the newest change; the oldest fall off if there are too many.
    pub(super) fn push(&mut self, change: Change) {
        self.bytes += bytes(&change);
        self.changes.push_back(change);
        while self.changes.len() > FEED_CHANGES_MAX || self.bytes > FEED_BYTES_MAX {
            self.drop_oldest_batch();
        }
    }

    /// The first change at `from` or after it that `wanted` says yes to.
    pub(super) fn next(&self, from: Revision, wanted: impl Fn(&Change) -> bool) -> Option<&Change> {
        let start = self.changes.partition_point(|change| change.entry.revision < from);
        self.changes.range(start..).find(|change| wanted(change))
    }

    /// Batches fall off whole, so that no watch begins in the middle of one.
    fn drop_oldest_batch(&mut self) {
        while let Some(oldest) = self.changes.pop_front() {
            self.bytes -= bytes(&oldest);
            self.floor = oldest.entry.revision.next();
            if oldest.batch.is_last() {
                break;
            }
        }
    }
}

fn bytes(change: &Change) -> usize {
    let entry = &change.entry;
    entry.key.as_bytes().len() + entry.value.len() + entry.headers.bytes()
}
