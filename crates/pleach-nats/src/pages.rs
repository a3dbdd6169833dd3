use std::collections::BTreeMap;

use pleach_engine::{PAGE_LEASE, Timestamp};

use crate::cache::Entries;

/// The most snapshots that are kept for page tokens. The one not used for longest goes first, and its tokens then say
/// `Compacted`.
const PAGE_SNAPSHOTS_MAX: usize = 256;

/// A bucket as a scan sees it on all its pages.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// What tells the bucket from its namesakes.
    pub(crate) bucket: u64,
    pub(crate) revision: u64,
    /// The time that decides what has expired.
    pub(crate) time: Timestamp,
    pub(crate) entries: Entries,
}

/// The snapshots that page tokens name.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    leases: BTreeMap<u64, Lease>,
    uses: u64,
    next: u64,
}

#[derive(Debug)]
struct Lease {
    snapshot: Snapshot,
    until: Timestamp,
    /// Grows with every use of any lease, so that the smallest belongs to the one idle for longest.
    used: u64,
}

impl Pages {
    /// Keeps `snapshot`, and returns the number that names it.
    pub(crate) fn keep(&mut self, snapshot: Snapshot, now: Timestamp) -> u64 {
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
    pub(crate) fn renew(&mut self, id: u64, now: Timestamp) -> Option<Snapshot> {
        let lease = self.leases.get_mut(&id).filter(|lease| now < lease.until)?;
        self.uses += 1;
        lease.used = self.uses;
        lease.until = now.saturating_add(PAGE_LEASE);
        Some(lease.snapshot.clone())
    }

    /// Forgets what was read from a bucket that is gone.
    pub(crate) fn forget(&mut self, bucket: u64) {
        self.leases.retain(|_, lease| lease.snapshot.bucket != bucket);
    }
}
