use std::collections::BTreeMap;

use crate::{PAGE_LEASE, Timestamp};

/// The most snapshots that are kept for page tokens. The one not used for longest goes first, and its tokens then say
/// `Compacted`.
pub const PAGE_SNAPSHOTS_MAX: usize = 256;

/// The snapshots that page tokens name, for engines that keep them in memory. Each is kept for a lease, which every use
/// renews.
#[derive(Debug)]
pub struct PageSnapshots<S> {
    leases: BTreeMap<u64, Lease<S>>,
    uses: u64,
    next: u64,
}

#[derive(Debug)]
struct Lease<S> {
    snapshot: S,
    until: Timestamp,
    /// Grows with every use of any lease, so that the smallest belongs to the one idle for longest.
    used: u64,
}

impl<S> Default for PageSnapshots<S> {
    fn default() -> Self {
        Self { leases: BTreeMap::new(), uses: 0, next: 0 }
    }
}

impl<S: Clone> PageSnapshots<S> {
    /// Keeps `snapshot`, and returns the number that names it.
    pub fn keep(&mut self, snapshot: S, now: Timestamp) -> u64 {
        self.leases.retain(|_, lease| now < lease.until);
        while self.leases.len() >= PAGE_SNAPSHOTS_MAX {
            let idle = self.leases.iter().min_by_key(|(_, lease)| lease.used).map(|(id, _)| *id);
            idle.and_then(|id| self.leases.remove(&id));
        }
        let id = self.next;
        self.next += 1;
        self.uses += 1;
        let until = now.saturating_add(PAGE_LEASE);
        self.leases.insert(id, Lease { snapshot, until, used: self.uses });
        id
    }

    /// The snapshot with this number, for another while; none if it is no longer kept.
    pub fn renew(&mut self, id: u64, now: Timestamp) -> Option<S> {
        let lease = self.leases.get_mut(&id).filter(|lease| now < lease.until)?;
        self.uses += 1;
        lease.used = self.uses;
        lease.until = now.saturating_add(PAGE_LEASE);
        Some(lease.snapshot.clone())
    }

    /// Forgets those of a bucket that is gone.
    pub fn forget(&mut self, is_gone: impl Fn(&S) -> bool) {
        self.leases.retain(|_, lease| !is_gone(&lease.snapshot));
    }
}
