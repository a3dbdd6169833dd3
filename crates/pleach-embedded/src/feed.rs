use std::collections::VecDeque;
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
    /// By their numbers; those that have ended leave a gap for another.
    watches: Vec<Option<Watching>>,
    gaps: Vec<WatchId>,
    /// Which of them are about which keys, but for those that are about all of them.
    interests: Interests,
    /// Those that are about all keys and have seen everything.
    sleepers: Vec<WatchId>,
    /// Those to be woken for what was published.
    waking: Vec<Arc<Notify>>,
}

/// What the ring knows of a watch.
#[derive(Debug)]
struct Watching {
    /// None is all keys.
    filters: Option<Vec<KeyFilter>>,
    place: Place,
    wake: Arc<Notify>,
}

/// How far a watch is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It takes up everything from some revision on, which it knows itself. One that is about all keys always does.
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
            watches: Vec::new(),
            gaps: Vec::new(),
            interests: Interests::default(),
            sleepers: Vec::new(),
            waking: Vec::new(),
        };
        Self { ring: Mutex::new(ring) }
    }

    /// Says that the commits before `start` are to be found in the log only.
    pub(crate) fn restart(&self, start: Revision) {
        self.lock().start = start;
    }

    /// Starts keeping commits for one more watch, which is about keys that pass any of `filters`, or about all keys if
    /// there is none.
    pub(crate) fn subscribe(&self, filters: &[KeyFilter]) -> Watcher {
        let is_about_all = filters.is_empty() || filters.iter().any(|filter| filter.as_str() == ">");
        let filters = (!is_about_all).then(|| filters.to_vec());
        let wake = Arc::new(Notify::new());
        let mut ring = self.lock();
        let id = ring.gaps.pop().unwrap_or(ring.watches.len());
        filters.iter().for_each(|filters| ring.interests.add(id, filters));
        let watching = Watching { filters, place: Place::Behind, wake: Arc::clone(&wake) };
        if id == ring.watches.len() {
            ring.watches.push(None);
        }
        ring.watches[id] = Some(watching);
        Watcher { id, wake }
    }

    /// Ends what [`Feed::subscribe`] started.
    pub(crate) fn unsubscribe(&self, watcher: &Watcher) {
        let mut ring = self.lock();
        let Some(watching) = ring.watches.get_mut(watcher.id).and_then(Option::take) else { return };
        watching.filters.iter().for_each(|filters| ring.interests.remove(watcher.id, filters));
        ring.sleepers.retain(|sleeper| *sleeper != watcher.id);
        ring.gaps.push(watcher.id);
        if ring.count() == 0 {
            ring.clear();
        }
    }

    pub(crate) fn watches(&self) -> usize {
        self.lock().count()
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
        if ring.count() == 0 {
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
        let wakes = |watching: &Watching| Arc::clone(&watching.wake);
        let waking: Vec<_> = self.lock().watches.iter().flatten().map(wakes).collect();
        waking.iter().for_each(|watch| watch.notify_one());
    }

    /// Up to `limit` commits for a watch that has seen everything before `from`, or need not see it.
    pub(crate) fn next(&self, watcher: &Watcher, from: Revision, limit: usize) -> Recent {
        let mut ring = self.lock();
        let ring = &mut *ring;
        let Some(watching) = ring.watches.get_mut(watcher.id).and_then(Option::as_mut) else {
            return Recent::Commits(Vec::new());
        };
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
        match (&watching.filters, commits.last()) {
            (None, None) => ring.sleepers.push(watcher.id),
            (None, Some(_)) => {}
            (Some(_), Some(newest)) if begin + commits.len() < end => {
                if let Place::Concerned(_, last) = watching.place {
                    watching.place = Place::Concerned(newest.last.next(), last);
                }
            }
            (Some(_), _) => watching.place = Place::CaughtUp,
        }
        Recent::Commits(commits)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Takes note of the watches that a commit is about.
    fn note(&mut self, commit: &Logged) {
        let Self { watches, interests, sleepers, waking, .. } = self;
        let wake = |id: WatchId| watches.get(id).and_then(Option::as_ref).map(|one| Arc::clone(&one.wake));
        waking.extend(sleepers.drain(..).filter_map(wake));
        for (_, record) in commit.records.iter().filter(|(_, record)| record.kind.is_change()) {
            interests.of(record.key.as_str(), &mut |id| {
                let Some(watching) = watches.get_mut(id).and_then(Option::as_mut) else { return };
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

    /// How many watches there are.
    fn count(&self) -> usize {
        self.watches.len() - self.gaps.len()
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
