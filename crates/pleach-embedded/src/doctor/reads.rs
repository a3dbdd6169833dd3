//! What makes reads slow.

use super::text::{bytes, percent};
use super::{Advice, Severity};
use crate::status::Status;

/// What waits to be merged, and its share of the index.
const PENDING_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PENDING_SHARE_MAX: f64 = 0.5;

/// Tables that a get looks into.
const TABLES_NOTE: f64 = 4.0;
const TABLES_WARNING: f64 = 8.0;

/// A filter should save nearly all looks at tables that do not have the key.
const FILTER_RATE_MIN: f64 = 0.95;

/// Of the blocks that are wanted, this share should be in memory.
const CACHE_RATE_MIN: f64 = 0.8;

/// Of what the index holds, this share may say that something is gone; and so many must be there to speak of it.
const TOMBSTONES_NOTE: f64 = 0.3;
const TOMBSTONES_WARNING: f64 = 0.6;
const TOMBSTONES_MIN: u64 = 10_000;

pub(super) fn merges_behind(status: &Status) -> Option<Advice> {
    let index = &status.index;
    let share = index.pending_merge_bytes as f64 / index.table_bytes.max(1) as f64;
    (index.pending_merge_bytes > PENDING_BYTES_MAX && share > PENDING_SHARE_MAX).then(|| {
        Advice::new(
            Severity::Warning,
            format!("{} of the index wait to be merged", bytes(index.pending_merge_bytes)),
            "commits come faster than merging; until it has caught up, reads look into more tables",
            "write less at once until it has, or use a faster disk",
        )
    })
}

pub(super) fn amplification(status: &Status) -> Option<Advice> {
    let tables = status.amplification.read_tables?;
    let severity = Advice::graded(tables, TABLES_NOTE, TABLES_WARNING)?;
    Some(Advice::new(
        severity,
        format!("a get looks into {tables:.1} tables of the index"),
        "merging is behind, or keys that are not there are asked for and filters cannot tell",
        "let merging catch up: write less at once; see the findings about merges and filters",
    ))
}

pub(super) fn filters(status: &Status) -> Option<Advice> {
    let rate = status.index.filter_rate.filter(|rate| *rate < FILTER_RATE_MIN)?;
    Some(Advice::new(
        Severity::Note,
        format!("filters save only {} of looks at tables that do not have the key", percent(rate)),
        "each look that they do not save reads a block for nothing",
        "ask less for keys that are not there; if it stays, build the index anew with `pleach rebuild`",
    ))
}

pub(super) fn block_cache(status: &Status) -> Option<Advice> {
    let cache = status.process.memory.cache_bytes_max;
    let rate = status.index.block_cache_hit_rate.filter(|rate| *rate < CACHE_RATE_MIN)?;
    (status.index.table_bytes > cache).then(|| {
        let (index, cache) = (bytes(status.index.table_bytes), bytes(cache));
        Advice::new(
            Severity::Note,
            format!("only {} of the blocks that reads want are in memory", percent(rate)),
            format!("the index has {index}, and {cache} of it are kept in memory"),
            "raise `Settings::cache_bytes`, or read less at random",
        )
    })
}

pub(super) fn tombstones(status: &Status) -> Option<Advice> {
    let index = &status.index;
    let ratio = index.tombstone_ratio.filter(|_| index.tombstones >= TOMBSTONES_MIN)?;
    let severity = Advice::graded(ratio, TOMBSTONES_NOTE, TOMBSTONES_WARNING)?;
    Some(Advice::new(
        severity,
        format!("{} of what the index holds only says that something is gone", percent(ratio)),
        "scans have to step over all of it, until it is merged away",
        "delete a whole bucket instead of its keys, or let a TTL of the bucket do it; scan past ranges that are empty",
    ))
}
