use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use pleach_engine::{BucketName, Change, EngineError, Revision};

use crate::clock::ServerClock;
use crate::connection::Link;
use crate::record::bytes;

/// The most changes of one bucket that are kept for its watchers.
const FEED_CHANGES_MAX: usize = 65_536;

/// The most bytes of keys, values and headers in them.
const FEED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How long after the server was heard of what came from it is taken to be all there is.
const READY_FOR: Duration = Duration::from_secs(3);

/// How long to wait for a change that must come before the server is asked whether it was missed.
const NUDGE_AFTER: Duration = Duration::from_millis(50);

/// Why a feed has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The bucket was deleted.
    Gone,
    /// The engine was closed.
    Closed,
    /// The servers have lost revisions that were there, and give them again from this one on.
    SetBack(u64),
}

/// The latest changes of a bucket as they come from the server, for everyone in this process who follows it.
#[derive(Debug)]
pub(crate) struct Feed {
    name: BucketName,
    clock: Arc<ServerClock>,
    link: watch::Receiver<Link>,
    state: Mutex<State>,
    /// Tells how often something has come.
    arrivals: watch::Sender<u64>,
    /// Has whoever follows the server look at once whether something is missing.
    pub(crate) nudge: Notify,
    task: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
struct State {
    changes: VecDeque<Change>,
    bytes: usize,
    /// Nothing from here on is missing.
    floor: u64,
    /// The first revision that has not come yet.
    next: u64,
    /// The first revision that is not shown yet: batches are shown whole.
    shown: u64,
    /// When the server was heard of last.
    heard: Duration,
    /// The connection on which the server was asked last how far it is.
    asked_on: u64,
    /// The stream's newest revision and how many messages it had, as it said last.
    census: Option<(u64, u64)>,
    end: Option<End>,
}

/// What there is to follow from some place on.
#[derive(Debug)]
pub(crate) enum News {
    /// These changes, and where to go on.
    Changes(Vec<Change>, u64),
    /// Nothing yet.
    None,
}

impl Feed {
    /// A feed whose first change will be `next`, as the server said when it was asked on the connection `asked_on`.
    pub(crate) fn new(
        name: BucketName,
        next: u64,
        clock: Arc<ServerClock>,
        link: watch::Receiver<Link>,
        asked_on: u64,
    ) -> Self {
        let heard = clock.elapsed();
        let state = State {
            changes: VecDeque::new(),
            bytes: 0,
            floor: next,
            next,
            shown: next,
            heard,
            asked_on,
            census: None,
            end: None,
        };
        Self {
            name,
            clock,
            link,
            state: Mutex::new(state),
            arrivals: watch::Sender::new(0),
            nudge: Notify::new(),
            task: Mutex::new(None),
        }
    }

    /// The task that fills it, which ends with it.
    pub(crate) fn fed_by(&self, task: AbortHandle) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Tells when something has come, from now on.
    pub(crate) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    /// The first revision that has not come yet.
    pub(crate) fn next(&self) -> u64 {
        self.lock().next
    }

    /// The newest revision that followers can see.
    pub(crate) fn last_shown(&self) -> u64 {
        self.lock().shown - 1
    }

    /// Whether the server is there and has been heard of lately: else nobody knows what has been missed.
    fn is_ready(&self) -> bool {
        let (heard, asked_on) = {
            let state = self.lock();
            (state.heard, state.asked_on)
        };
        let link = *self.link.borrow();
        // What came while there was no connection has passed by, until the server is asked on the new one.
        let is_whole = link.is_up && link.times == asked_on;
        is_whole && self.clock.elapsed().saturating_sub(heard) < READY_FOR
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// How many messages the stream had when its newest revision was this, as it said last.
    pub(crate) fn census(&self) -> Option<(u64, u64)> {
        self.lock().census
    }

    /// Takes note that the server has said how far it is, when it was asked on the connection `asked_on`.
    /// It then had `census` messages at its newest revision.
    pub(crate) fn hear(&self, asked_on: u64, census: (u64, u64)) {
        let mut state = self.lock();
        (state.heard, state.asked_on, state.census) = (self.clock.elapsed(), asked_on, Some(census));
        drop(state);
        self.tell();
    }

    /// Adds changes, the next that there are; `next` is the first revision after them.
    pub(crate) fn push(&self, changes: impl IntoIterator<Item = Change>, next: u64) {
        let mut state = self.lock();
        for change in changes {
            state.bytes += bytes(&change.entry);
            if change.batch.is_last() {
                state.shown = change.entry.revision.get() + 1;
            }
            state.changes.push_back(change);
        }
        state.next = next;
        // Records that nobody is shown may end what has come. Only the rest of a batch is waited for.
        if state.changes.back().is_none_or(|last| last.batch.is_last()) {
            state.shown = state.shown.max(next);
        }
        state.heard = self.clock.elapsed();
        while state.changes.len() > FEED_CHANGES_MAX || state.bytes > FEED_BYTES_MAX {
            state.drop_oldest();
        }
        drop(state);
        self.tell();
    }

    /// Shows everything that has come: nothing of a batch in it is still to come.
    pub(crate) fn show_all(&self) {
        let mut state = self.lock();
        state.shown = state.next;
        drop(state);
        self.tell();
    }

    /// Takes note that something before `floor` was missed for good.
    pub(crate) fn lose(&self, floor: u64) {
        let mut state = self.lock();
        state.changes.clear();
        (state.bytes, state.floor, state.next, state.shown) = (0, floor, floor, floor);
        drop(state);
        self.tell();
    }

    pub(crate) fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.tell();
    }

    /// What there is from `from` on, at most `limit` changes.
    ///
    /// # Errors
    /// `Compacted` if some of it is no longer here, and why the feed has ended if it has.
    pub(crate) fn news(&self, from: u64, limit: usize) -> Result<News, EngineError> {
        let state = self.lock();
        match state.end {
            Some(End::Gone) => return Err(EngineError::BucketNotFound { bucket: self.name.clone() }),
            Some(End::Closed) => return Err(EngineError::Closed),
            Some(End::SetBack(oldest)) => {
                return Err(EngineError::Compacted { oldest: Revision::new(oldest) });
            }
            None => {}
        }
        if from < state.floor {
            return Err(EngineError::Compacted { oldest: Revision::new(state.floor) });
        }
        if from >= state.shown {
            return Ok(News::None);
        }
        let place = |revision| state.changes.partition_point(|change| change.entry.revision.get() < revision);
        let (start, end) = (place(from), place(state.shown));
        let mut changes: Vec<Change> = Vec::new();
        for change in state.changes.range(start..end) {
            // What is taken together is seen together, so a batch is never cut.
            let is_full =
                changes.len() >= limit && changes.last().is_some_and(|last: &Change| last.batch.is_last());
            if is_full {
                let next = change.entry.revision.get();
                return Ok(News::Changes(changes, next));
            }
            changes.push(change.clone());
        }
        Ok(News::Changes(changes, state.shown))
    }

    /// Waits until everything up to `revision` has come and the server has been heard of lately, or the feed has ended.
    pub(crate) async fn reach(&self, revision: u64) {
        let mut arrivals = self.arrivals();
        loop {
            arrivals.mark_unchanged();
            if self.has_ended() || (self.lock().shown > revision && self.is_ready()) {
                return;
            }
            if tokio::time::timeout(NUDGE_AFTER, arrivals.changed()).await.is_err() {
                self.nudge.notify_one();
            }
        }
    }

    fn tell(&self) {
        self.arrivals.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Batches fall off whole, so that nobody begins in the middle of one.
    fn drop_oldest(&mut self) {
        while let Some(oldest) = self.changes.pop_front() {
            self.bytes -= bytes(&oldest.entry);
            self.floor = oldest.entry.revision.get() + 1;
            if oldest.batch.is_last() {
                break;
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
        }
    }
}
