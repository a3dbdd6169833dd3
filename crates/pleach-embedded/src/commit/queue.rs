use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::EngineError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::request::{Group, Request};

/// How much may wait to be committed at once, in KiB; commits past it wait for room.
const PENDING_KIB_MAX: usize = 256 * 1024;

/// Of those who may come, in percent, so many are waited for: some take longer than others, or do not come again.
const COMPANY_PERCENT: usize = 90;

/// Callers who were answered come again within so many times the patience, or are no longer expected.
const SOON: u32 = 8;

/// How many groups may be written and not yet applied.
const GROUPS_IN_FLIGHT_MAX: usize = 2;

/// Where callers leave their requests.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    room: Arc<Semaphore>,
    state: Mutex<Pending>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    requests: Vec<Request>,
    /// From so many requests on, whoever waits for them is woken.
    wanted: usize,
    closed: bool,
}

impl CommitQueue {
    pub(crate) fn new() -> Self {
        Self {
            room: Arc::new(Semaphore::new(PENDING_KIB_MAX)),
            state: Mutex::default(),
            filled: Condvar::new(),
        }
    }

    /// Waits until there is room for a request of `bytes`.
    pub(crate) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, EngineError> {
        let kib = u32::try_from((bytes / 1024 + 1).min(PENDING_KIB_MAX)).unwrap_or(u32::MAX);
        Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| EngineError::Closed)
    }

    /// Leaves a request; one that comes after the end is refused.
    pub(crate) fn push(&self, request: Request) {
        let mut pending = self.lock();
        if pending.closed {
            drop(pending);
            return request.refuse(EngineError::Closed);
        }
        pending.requests.push(request);
        let is_enough = pending.requests.len() >= pending.wanted;
        drop(pending);
        if is_enough {
            self.filled.notify_one();
        }
    }

    /// Takes everything that waits, or waits for something; none once closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<Request>> {
        let pending = self.lock();
        let waiting = |pending: &mut Pending| pending.requests.is_empty() && !pending.closed;
        let mut pending = self.filled.wait_while(pending, waiting).unwrap_or_else(PoisonError::into_inner);
        let requests = std::mem::take(&mut pending.requests);
        (!requests.is_empty()).then_some(requests)
    }

    /// The same, but the first to come wait up to `patience` for company, if `answering` callers are being answered just now:
    /// those are likely to come again, and a sync costs the same for one as for all of them.
    pub(crate) fn take_together(&self, answering: usize, patience: Duration) -> Option<Vec<Request>> {
        let pending = self.lock();
        let company = (answering + pending.requests.len()) * COMPANY_PERCENT / 100;
        let nobody = |pending: &mut Pending| pending.requests.is_empty() && !pending.closed;
        let waited = self.filled.wait_timeout_while(pending, patience * SOON, nobody);
        let (mut pending, is_late) = waited.unwrap_or_else(PoisonError::into_inner);
        // Whoever has not come by now does something else.
        if !is_late.timed_out() {
            pending.wanted = company;
            let few = |pending: &mut Pending| pending.requests.len() < company && !pending.closed;
            let waited = self.filled.wait_timeout_while(pending, patience, few);
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
            pending.wanted = 0;
        }
        drop(pending);
        self.take()
    }

    /// Accepts nothing more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.close();
        self.filled.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Groups on their way from the sequencer to the applier.
#[derive(Debug, Default)]
pub(crate) struct GroupQueue {
    state: Mutex<Groups>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Groups {
    waiting: VecDeque<Group>,
    /// Waiting or being applied.
    in_flight: usize,
    closed: bool,
}

impl GroupQueue {
    /// Hands over a group; waits while too many are under way.
    pub(crate) fn push(&self, group: Group) {
        let full = |groups: &mut Groups| groups.in_flight >= GROUPS_IN_FLIGHT_MAX && !groups.closed;
        let mut groups = self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if groups.closed {
            drop(groups);
            return group.refuse(|| EngineError::Closed);
        }
        groups.waiting.push_back(group);
        groups.in_flight += 1;
        self.changed.notify_all();
    }

    /// Whether nothing is under way; then nothing is until [`GroupQueue::applied`] is called, and the caller may do
    /// what the applier does.
    pub(crate) fn begin(&self) -> bool {
        let mut groups = self.lock();
        let free = groups.in_flight == 0 && !groups.closed;
        groups.in_flight += usize::from(free);
        free
    }

    /// Takes the next group, or waits for one; none once closed and empty.
    pub(crate) fn take(&self) -> Option<Group> {
        let waiting = |groups: &mut Groups| groups.waiting.is_empty() && !groups.closed;
        let mut groups =
            self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
        groups.waiting.pop_front()
    }

    /// Says that the group taken last was applied.
    pub(crate) fn applied(&self) {
        self.lock().in_flight -= 1;
        self.changed.notify_all();
    }

    /// Waits until everything handed over was applied.
    pub(crate) fn drain(&self) {
        let busy = |groups: &mut Groups| groups.in_flight > 0 && !groups.closed;
        drop(self.changed.wait_while(self.lock(), busy));
    }

    /// Accepts nothing more; what waits can still be taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Groups> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
