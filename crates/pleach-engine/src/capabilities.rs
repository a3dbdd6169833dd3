use std::time::Duration;

use crate::{BATCH_OPERATIONS_MAX, HISTORY_MAX};

/// What works on this engine now. What it lacks is refused with `Unsupported` before anything is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A short name for people: not to be branched on.
    pub engine: &'static str,
    /// Operations in one batch, at most.
    pub batch_operations_max: usize,
    /// Bytes of keys, values and headers in one batch, at most.
    pub batch_bytes_max: usize,
    /// The largest value a bucket can be configured to take.
    pub value_bytes_max: u32,
    /// The longest history a bucket can be configured to keep.
    pub history_max: u8,
    /// The shortest TTL, and how exactly it is kept.
    pub ttl_resolution: Duration,
    /// Commits are on stable storage before they are acknowledged, in buckets that ask for it.
    pub synced_commits: bool,
    /// A commit that this handle was told of is seen by every read that it starts after it.
    pub reads_own_writes: bool,
    /// Every acknowledged commit is seen by every read that starts after it, whoever made it.
    pub linearizable_reads: bool,
    /// Buckets that keep more than one record of a key take values with an expiry of their own, and an expired
    /// value stays in the history until newer records take its place.
    pub expired_history: bool,
    /// A scan and its pages all read one snapshot.
    pub snapshot_scans: bool,
    /// A watch from a revision delivers every change since, not only those still kept as history.
    pub complete_feed: bool,
    /// Consumers can be created, and remember their place.
    pub consumers: bool,
    /// What was committed is there when the store is opened again.
    pub persistent: bool,
    /// Nobody writes to the store but through this handle, so that what it refuses is refused to everyone.
    pub sole_writer: bool,
}

impl Capabilities {
    /// Everything the engine trait can promise, for an engine to take away from.
    pub const fn complete(engine: &'static str) -> Self {
        Self {
            engine,
            batch_operations_max: BATCH_OPERATIONS_MAX,
            batch_bytes_max: 128 * 1024 * 1024,
            value_bytes_max: 64 * 1024 * 1024,
            history_max: HISTORY_MAX,
            ttl_resolution: Duration::from_millis(1),
            synced_commits: true,
            reads_own_writes: true,
            linearizable_reads: true,
            expired_history: true,
            snapshot_scans: true,
            complete_feed: true,
            consumers: true,
            persistent: true,
            sole_writer: true,
        }
    }
}
