use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use pleach_engine::{KeyFilter, Revision};
use tokio::sync::Notify;

use crate::log::{BucketId, Frame, FrameHeader, FrameKind, Position, Record, SegmentId};

mod interests;

pub(crate) use interests::WatchId;

use interests::Interests;

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
///
/// A watch that has caught up is woken only for commits that it is about, and passes over all others without
/// looking at them: a commit costs what the watches cost that it concerns, however many others there are.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    commits: VecDeque<Arc<Logged>>,
    bytes: usize,
    /// Every commit of the bucket from here on is in `commits`.
    start: Revision,
    watches: HashMap<WatchId, Watching>,
    interests: Interests,
    /// Those to be woken for what was published.
    waking: Vec<Arc<Notify>>,
    next_id: WatchId,
}

/// What the ring knows of a watch.
#[derive(Debug)]
struct Watching {
    filters: Vec<KeyFilter>,
    place: Place,
    wake: Arc<Notify>,
}

/// How far a watch is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It takes up everything from some revision on, which it knows itself.
    Behind,
    /// It has seen everything, or was not concerned.
    CaughtUp,
    /// The first and the last change that concern it and that it has not taken up.
    Concerned(Revision, Revision),
}

/// Someone who watches a bucket.
#[derive(Debug)]
pub(crate) struct Watcher {
    id: WatchId,
    wake: Arc<Notify>,
}

impl Watcher {
    /// Returns once there may be something new, at once if that was so since the last time.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// What [`Feed::next`] found.
pub(crate) enum Recent {
    /// Commits that follow, perhaps none.
    Commits(Vec<Arc<Logged>>),
    /// The ring has moved on: read the log first.
    Behind {
        /// Nothing before this revision is left to be seen.
        from: Revision,
        /// Where the ring begins.
        ring: Revision,
    },
}

impl Feed {
    pub(crate) fn new(start: Revision) -> Self {
        let ring = Ring {
            commits: VecDeque::new(),
            bytes: 0,
            start,
            watches: HashMap::new(),
            interests: Interests::default(),
            waking: Vec::new(),
            next_id: WatchId::default(),
        };
        Self { ring: Mutex::new(ring) }
    }

    /// Says that the commits before `start` are to be found in the log only.
    pub(crate) fn restart(&self, start: Revision) {
        self.lock().start = start;
    }

    /// Starts keeping commits for one more watch, which is about keys that pass any of `filters`.
    pub(crate) fn subscribe(&self, filters: Vec<KeyFilter>) -> Watcher {
        let mut ring = self.lock();
        let id = ring.next_id;
        ring.next_id = id.next();
        let wake = Arc::new(Notify::new());
        ring.interests.add(id, &filters);
        ring.watches.insert(id, Watching { filters, place: Place::Behind, wake: Arc::clone(&wake) });
        Watcher { id, wake }
    }

    /// Ends what [`Feed::subscribe`] started.
    pub(crate) fn unsubscribe(&self, watcher: &Watcher) {
        let mut ring = self.lock();
        if let Some(watching) = ring.watches.remove(&watcher.id) {
            ring.interests.remove(watcher.id, &watching.filters);
        }
        if ring.watches.is_empty() {
            ring.clear();
        }
    }

    pub(crate) fn watches(&self) -> usize {
        self.lock().watches.len()
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
        if ring.watches.is_empty() {
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
        ring.note(commit);
        !ring.waking.is_empty()
    }

    /// Wakes the watches that something published since the last time is about.
    pub(crate) fn wake(&self) {
        let waking = std::mem::take(&mut self.lock().waking);
        waking.iter().for_each(|watch| watch.notify_one());
    }

    /// Wakes every watch, so that it looks at the state of the bucket and the store.
    pub(crate) fn wake_all(&self) {
        self.lock().watches.values().for_each(|watching| watching.wake.notify_one());
    }

    /// Up to `limit` commits for a watch that has seen everything before `from`, or need not see it.
    pub(crate) fn next(&self, watcher: &Watcher, from: Revision, limit: usize) -> Recent {
        let mut ring = self.lock();
        let ring = &mut *ring;
        let Some(watching) = ring.watches.get_mut(&watcher.id) else { return Recent::Commits(Vec::new()) };
        let (from, until) = match watching.place {
            Place::Behind => (from, Revision::new(u64::MAX)),
            Place::CaughtUp => return Recent::Commits(Vec::new()),
            Place::Concerned(first, last) => (from.max(first), last),
        };
        if from < ring.start {
            watching.place = Place::Behind;
            return Recent::Behind { from, ring: ring.start };
        }
        let begin = ring.commits.partition_point(|commit| commit.last < from);
        let end = ring.commits.partition_point(|commit| commit.last < until).saturating_add(1);
        let end = end.min(ring.commits.len()).max(begin);
        let commits: Vec<_> = ring.commits.range(begin..end).take(limit).cloned().collect();
        watching.place = match commits.last() {
            Some(newest) if begin + commits.len() < end => match watching.place {
                Place::Concerned(_, last) => Place::Concerned(newest.last.next(), last),
                place => place,
            },
            _ => Place::CaughtUp,
        };
        Recent::Commits(commits)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Takes note of the watches that a commit is about.
    fn note(&mut self, commit: &Logged) {
        let Self { watches, interests, waking, .. } = self;
        for (_, record) in &commit.records {
            interests.of(record.key.as_str(), &mut |id| {
                let Some(watching) = watches.get_mut(&id) else { return };
                watching.place = match watching.place {
                    Place::Behind => Place::Behind,
                    Place::Concerned(first, _) => Place::Concerned(first, record.revision),
                    Place::CaughtUp => {
                        waking.push(Arc::clone(&watching.wake));
                        Place::Concerned(record.revision, record.revision)
                    }
                };
            });
        }
    }

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
