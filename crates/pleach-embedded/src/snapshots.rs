use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{PAGE_LEASE, Revision};

/// The most snapshots held for page tokens; past it, the one that was idle longest is given up.
const LEASES_MAX: usize = 1024;

/// Which revisions are being read, so that the index keeps what they need.
#[derive(Debug)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// How many readers hold each revision.
    open: BTreeMap<Revision, usize>,
    /// Until when a revision is held for page tokens, by the clock's elapsed time.
    leases: BTreeMap<Revision, Duration>,
    /// No lease ends before.
    first_end: Duration,
}

impl Snapshots {
    pub(crate) fn new(visible: Revision) -> Self {
        Self { visible: AtomicU64::new(visible.get()), held: Mutex::default() }
    }

    /// The newest revision that readers see.
    pub(crate) fn visible(&self) -> Revision {
        Revision::new(self.visible.load(Ordering::Acquire))
    }

    /// Lets readers see everything up to `revision`.
    pub(crate) fn publish(&self, revision: Revision) {
        self.visible.store(revision.get(), Ordering::Release);
    }

    /// Holds the newest visible revision.
    pub(crate) fn open(self: &Arc<Self>) -> Snapshot {
        let mut held = self.lock();
        // Read under the lock: `oldest` must not pass it by before it is held.
        let revision = self.visible();
        *held.open.entry(revision).or_default() += 1;
        Snapshot { snapshots: Arc::clone(self), revision }
    }

    /// Holds `revision` for a page token for a while.
    pub(crate) fn lease(&self, snapshot: &Snapshot, now: Duration) {
        let mut held = self.lock();
        held.expire(now);
        held.leases.insert(snapshot.revision, now + PAGE_LEASE);
        held.first_end = held.first_end.min(now + PAGE_LEASE);
        if held.leases.len() > LEASES_MAX
            && let Some(idlest) =
                held.leases.iter().min_by_key(|(_, until)| **until).map(|(revision, _)| *revision)
        {
            held.leases.remove(&idlest);
        }
    }

    /// Holds the revision of a page token again, if it is still held for it or nothing has changed since.
    pub(crate) fn reopen(self: &Arc<Self>, revision: Revision, now: Duration) -> Option<Snapshot> {
        let mut held = self.lock();
        held.expire(now);
        if revision != self.visible() && !held.leases.contains_key(&revision) {
            return None;
        }
        *held.open.entry(revision).or_default() += 1;
        Some(Snapshot { snapshots: Arc::clone(self), revision })
    }

    /// Gives up what is held for page tokens of revisions before `revision`.
    pub(crate) fn end_leases(&self, revision: Revision) {
        self.lock().leases.retain(|leased, _| *leased >= revision);
    }

    /// The oldest revision that anyone reads or may come back to.
    pub(crate) fn oldest(&self, now: Duration) -> Revision {
        let mut held = self.lock();
        held.expire(now);
        let open = held.open.keys().next().copied();
        let leased = held.leases.keys().next().copied();
        open.into_iter().chain(leased).fold(self.visible(), Revision::min)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn expire(&mut self, now: Duration) {
        if now >= self.first_end {
            self.leases.retain(|_, until| now < *until);
            self.first_end = self.leases.values().min().copied().unwrap_or(Duration::MAX);
        }
    }
}

/// A revision that stays readable while this lives.
#[derive(Debug)]
pub(crate) struct Snapshot {
    snapshots: Arc<Snapshots>,
    pub(crate) revision: Revision,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut held = self.snapshots.lock();
        if let Some(count) = held.open.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                held.open.remove(&self.revision);
            }
        }
    }
}

#[cfg(test)]
mod tests;
