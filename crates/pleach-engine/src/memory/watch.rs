use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::bucket::Bucket;
use super::engine::Shared;
use super::state::State;
use crate::{
    BatchPart, BucketName, Change, EngineError, Entry, Revision, Timestamp, WatchEvent, WatchQuery,
    WatchStart,
};

/// A place in a bucket's feed. It holds no changes, so a slow watcher costs nothing but its place.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    id: u64,
    name: BucketName,
    bucket: Revision,
    query: WatchQuery,
    initial: VecDeque<WatchEvent>,
    next: Revision,
    ended: bool,
}

impl Watch {
    /// Begins a watch in `state`, which is that of `shared`.
    pub(super) fn begin(
        shared: Arc<Shared>,
        state: &mut State,
        name: &BucketName,
        query: WatchQuery,
        now: Timestamp,
    ) -> Result<Self, EngineError> {
        query.check()?;
        let (bucket, newest) = (state.bucket(name)?, state.newest);
        let next = match query.start {
            WatchStart::Revision(asked) if asked > newest.next() => {
                return Err(EngineError::FutureRevision { asked, newest });
            }
            WatchStart::Revision(asked) => asked,
            WatchStart::Now | WatchStart::Latest | WatchStart::History => newest.next(),
        };
        let (initial, bucket) = (initial(bucket, &query, newest, now), bucket.id);
        let id = state.watches_opened;
        state.watches_opened += 1;
        state.watches.insert(id, (bucket, None));
        Ok(Self { shared, id, name: name.clone(), bucket, query, initial, next, ended: false })
    }

    /// The next event in `state`; none if it is yet to come.
    fn step(&mut self, state: &State) -> Result<Option<WatchEvent>, EngineError> {
        if state.closed {
            return Err(EngineError::Closed);
        }
        let bucket = state.bucket(&self.name)?;
        if bucket.id != self.bucket {
            return Err(EngineError::BucketNotFound { bucket: self.name.clone() });
        }
        if let Some(event) = self.initial.pop_front() {
            return Ok(Some(event));
        }
        if self.next < bucket.feed.floor() {
            return Err(EngineError::Compacted { oldest: bucket.feed.floor() });
        }
        let Some(change) = bucket.feed.next(self.next, |change| self.query.matches(&change.entry.key)) else {
            // What was passed over here need not be looked at again.
            self.next = state.newest.next();
            return Ok(None);
        };
        self.next = change.entry.revision.next();
        let (entry, batch) = (bucket.shown(&change.entry), change.batch);
        Ok(Some(WatchEvent::Change(Change { entry, batch })))
    }

    fn poll(&mut self, state: &mut State, waker: &Waker) -> Poll<Option<Result<WatchEvent, EngineError>>> {
        let event = self.step(state).transpose();
        // A waker is never dropped under the lock: it may be the last to hold a task, and with it a watch.
        let replaced = match &event {
            Some(Ok(_)) => None,
            Some(Err(_)) => {
                self.ended = true;
                state.watches.remove(&self.id).and_then(|(_, waker)| waker)
            }
            None => {
                state.watches.get_mut(&self.id).and_then(|(_, registered)| registered.replace(waker.clone()))
            }
        };
        state.woken.extend(replaced.filter(|replaced| !replaced.will_wake(waker)));
        event.map_or(Poll::Pending, |event| Poll::Ready(Some(event)))
    }
}

impl Stream for Watch {
    type Item = Result<WatchEvent, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watch = self.get_mut();
        if watch.ended {
            return Poll::Ready(None);
        }
        let shared = Arc::clone(&watch.shared);
        shared.with_any(|state, _| watch.poll(state, context.waker()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.with_any(|state, _| state.watches.remove(&self.id));
    }
}

/// What a watch delivers before changes: each record as if it had been committed alone, since the rest
/// of its batch may not be there.
fn initial(bucket: &Bucket, query: &WatchQuery, newest: Revision, now: Timestamp) -> VecDeque<WatchEvent> {
    let records: Vec<&Entry> = match query.start {
        WatchStart::Latest => bucket.live(now).collect(),
        WatchStart::History => bucket.records.values().flatten().collect(),
        WatchStart::Now | WatchStart::Revision(_) => return VecDeque::new(),
    };
    let wanted = records.into_iter().filter(|entry| query.matches(&entry.key));
    let changes = wanted.map(|entry| Change { entry: bucket.shown(entry), batch: BatchPart::SINGLE });
    let done = WatchEvent::InitialDone { revision: newest };
    changes.map(WatchEvent::Change).chain([done]).collect()
}
