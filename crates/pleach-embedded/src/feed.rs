use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pleach_engine::Revision;
use tokio::sync::watch;

use crate::log::{BucketId, Frame, FrameHeader, FrameKind, Position, Record, SegmentId};

/// How many bytes of recent commits a watched bucket keeps in memory for its watches.
const RING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How many recent commits a watched bucket keeps in memory for its watches.
const RING_COMMITS_MAX: usize = 16 * 1024;

/// A frame of the log with what is known of it once it has a place there.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) kind: FrameKind,
    pub(crate) bucket: BucketId,
    /// How many records the batch had when it was committed.
    pub(crate) size: u16,
    pub(crate) last: Revision,
    pub(crate) records: Vec<(Position, Record)>,
}

impl Logged {
    /// A frame read back from a segment.
    pub(crate) fn from_frame(frame: Frame, segment: SegmentId) -> Self {
        let FrameHeader { kind, bucket, size, .. } = frame.header;
        let place = |(offset, record): (u64, Record)| {
            let len = u32::try_from(record.encoded_len()).unwrap_or(u32::MAX);
            (Position { segment, offset, len }, record)
        };
        let records = frame.records.into_iter().map(place).collect();
        Self { kind, bucket, size, last: frame.header.last(), records }
    }

    /// What its records take in the log.
    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(|(_, record)| record.encoded_len()).sum()
    }
}

/// The newest changes of a bucket, for the watches on it. A watch that is further behind reads the log.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Mutex<Ring>,
    /// Changes whenever there may be something new for a watch.
    tip: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    commits: VecDeque<Arc<Logged>>,
    bytes: usize,
    /// Every commit of the bucket from here on is in `commits`.
    start: Revision,
    watches: usize,
}

/// What [`Feed::after`] found.
pub(crate) enum Recent {
    /// Commits that follow, perhaps none.
    Commits(Vec<Arc<Logged>>),
    /// The ring has moved on: read the log first, up to this revision.
    Behind(Revision),
}

impl Feed {
    pub(crate) fn new(start: Revision) -> Self {
        let ring = Ring { commits: VecDeque::new(), bytes: 0, start, watches: 0 };
        Self { ring: Mutex::new(ring), tip: watch::Sender::new(0) }
    }

    /// Says that the commits before `start` are to be found in the log only.
    pub(crate) fn restart(&self, start: Revision) {
        self.lock().start = start;
    }

    /// Starts keeping commits for one more watch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.lock().watches += 1;
        self.tip.subscribe()
    }

    /// Ends what [`Feed::subscribe`] started.
    pub(crate) fn unsubscribe(&self) {
        let mut ring = self.lock();
        ring.watches -= 1;
        if ring.watches == 0 {
            ring.clear();
        }
    }

    pub(crate) fn watches(&self) -> usize {
        self.lock().watches
    }

    /// What it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Adds a commit, which readers can see by now, and says whether there is anyone to be woken for it.
    pub(crate) fn publish(&self, commit: &Arc<Logged>) -> bool {
        if commit.kind != FrameKind::Commit {
            return false;
        }
        let mut ring = self.lock();
        if ring.watches == 0 {
            ring.start = commit.last.next();
            return false;
        }
        ring.bytes += commit.bytes();
        ring.commits.push_back(Arc::clone(commit));
        while ring.bytes > RING_BYTES_MAX || ring.commits.len() > RING_COMMITS_MAX {
            let Some(oldest) = ring.commits.pop_front() else { break };
            ring.bytes -= oldest.bytes();
            ring.start = oldest.last.next();
        }
        true
    }

    /// Wakes the watches, so that they look at the state of the bucket and the store.
    pub(crate) fn wake(&self) {
        self.tip.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Up to `limit` commits with records at or after `from`.
    pub(crate) fn after(&self, from: Revision, limit: usize) -> Recent {
        let ring = self.lock();
        if from < ring.start {
            return Recent::Behind(ring.start);
        }
        let begin = ring.commits.partition_point(|commit| commit.last < from);
        Recent::Commits(ring.commits.range(begin..).take(limit).cloned().collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn clear(&mut self) {
        if let Some(newest) = self.commits.back() {
            self.start = newest.last.next();
        }
        self.commits.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
