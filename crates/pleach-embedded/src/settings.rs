use std::time::Duration;

/// How a store is opened. It may differ at every start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Makes the store if there is none.
    pub create: bool,
    /// A segment of the log that has grown past this is followed by a new one.
    pub segment_bytes: u64,
    /// How much of the index is collected in memory before it is written out.
    pub memtable_bytes: u64,
    /// How much is kept in memory for reading: a quarter for entries, the rest for parts of the index.
    pub cache_bytes: u64,
    /// How long the feed keeps changes at least, for watches that resume, unless a bucket says otherwise; none
    /// means for ever. Whichever of this and `feed_bytes` is reached first lets older changes go.
    pub feed_time: Option<Duration>,
    /// How many bytes of changes the feed keeps at least, of all buckets together that do not say otherwise;
    /// none means all.
    pub feed_bytes: Option<u64>,
    /// How many bytes of a bucket's changes are kept at most for a consumer that does not move on. Past that
    /// it is told `Compacted`, so that one forgotten consumer does not fill the disk.
    pub consumer_bytes: u64,
    /// How many bytes a second the cleaner reads and writes at most, unless most of the log is garbage.
    pub clean_bytes_per_second: u64,
    /// Whether old records are cleaned out of the log at all.
    pub clean: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            create: true,
            segment_bytes: 64 * 1024 * 1024,
            memtable_bytes: 32 * 1024 * 1024,
            cache_bytes: 128 * 1024 * 1024,
            feed_time: Some(Duration::from_secs(24 * 60 * 60)),
            feed_bytes: Some(256 * 1024 * 1024),
            consumer_bytes: 1024 * 1024 * 1024,
            clean_bytes_per_second: 64 * 1024 * 1024,
            clean: true,
        }
    }
}
