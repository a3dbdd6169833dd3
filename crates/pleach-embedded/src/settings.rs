/// How a store is opened. It may differ at every start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Makes the store if there is none.
    pub create: bool,
    /// A segment of the log that has grown past this is followed by a new one.
    pub segment_bytes: u64,
    /// How much of the index is collected in memory before it is written out.
    pub memtable_bytes: u64,
    /// How much of the index is kept in memory for reading.
    pub cache_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            create: true,
            segment_bytes: 64 * 1024 * 1024,
            memtable_bytes: 32 * 1024 * 1024,
            cache_bytes: 64 * 1024 * 1024,
        }
    }
}
