use crate::meters::Tally;

/// What an index has done since it was opened.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) gets: Tally,
    /// Tables whose filter let a look-up pass.
    pub(super) tables_looked_at: Tally,
    pub(super) filter_skips: Tally,
    pub(super) filter_false_passes: Tally,
    pub(super) block_hits: Tally,
    pub(super) block_reads: Tally,
    pub(super) flushes: Tally,
    pub(super) flushed_bytes: Tally,
    pub(super) merges: Tally,
    pub(super) merge_read_bytes: Tally,
    pub(super) merge_written_bytes: Tally,
}
