/// What an index has done since it was opened, and how large it is. What it does not know is zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexStats {
    pub(crate) flushes: u64,
    pub(crate) flushed_bytes: u64,
    pub(crate) merges: u64,
    pub(crate) merge_read_bytes: u64,
    pub(crate) merge_written_bytes: u64,
    /// Blocks that were in the cache when they were wanted, and those that had to be read.
    pub(crate) block_hits: u64,
    pub(crate) block_reads: u64,
    /// Tables that a filter has saved looking into, and those it has not though the key was not there.
    pub(crate) filter_skips: u64,
    pub(crate) filter_false_passes: u64,
    pub(crate) gets: u64,
    /// Tables that gets have looked into.
    pub(crate) tables_looked_at: u64,
    pub(crate) tables: u64,
    pub(crate) table_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// What is in memory and not yet in a table.
    pub(crate) memory_bytes: u64,
    pub(crate) levels: Vec<LevelStats>,
    pub(crate) pending_merge_bytes: u64,
}

/// How large a level of the index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelStats {
    pub(crate) tables: u64,
    pub(crate) bytes: u64,
}
