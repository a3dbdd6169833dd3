//! How an open store is doing, in figures: what it was asked to do, what that cost, and what is in the way.
//!
//! Every length of time is written to JSON in seconds, every moment as RFC 3339.

mod collect;
mod file;
mod history;
mod reporter;
mod serial;

use std::time::Duration;

use pleach_engine::{Revision, Timestamp};
use serde::{Deserialize, Serialize};

use crate::pressure::StallCause;
pub(crate) use file::leave;
pub use file::{STATUS_FILE_NAME, holder, last_status};
pub(crate) use reporter::Reporter;
use serial::{moment, seconds, seconds_each, seconds_or_none};

/// How an open store is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// When this was found, by the store's clock.
    #[serde(with = "moment")]
    pub time: Timestamp,
    /// Whether the store was being closed: then this is the last there is to say.
    pub closed: bool,
    /// Why no more writes are taken, if none are.
    pub read_only: Option<String>,
    /// The newest revision that readers see.
    pub revision: Revision,
    /// The process that has the store open.
    pub process: ProcessStatus,
    /// Point reads. Their times are those of a sample: the first of each thread, and then
    /// about one of 256.
    pub gets: Operations,
    /// Scans, page by page.
    pub scans: Operations,
    /// Commits, from the call to the answer, whatever it was. A batch is one.
    pub puts: Operations,
    /// How many records commits were to write.
    pub records: u64,
    /// How commits are gathered, and what waits.
    pub commits: CommitStatus,
    /// What has slowed commits down since the store was opened, and whether it does now.
    pub stalls: Vec<Stall>,
    /// The log.
    pub log: LogStatus,
    /// The index.
    pub index: IndexStatus,
    /// What an operation of a user costs the disk.
    pub amplification: Amplification,
    /// The oldest snapshot that is older than the newest revision, if one is held.
    pub oldest_snapshot: Option<HeldSnapshot>,
    /// How many buckets there are.
    pub bucket_count: u64,
    /// The buckets with most bytes in the log, at most sixty-four.
    pub buckets: Vec<BucketUsage>,
    /// How many consumers there are.
    pub consumer_count: u64,
    /// The consumers that are furthest behind, at most eight.
    pub consumers: Vec<ConsumerLag>,
    /// What is used most just now.
    pub hot: HotStatus,
    /// The last minute, about a second each, oldest first.
    pub rates: Rates,
    /// The disk, if the system tells.
    pub disk: Option<DiskStatus>,
    /// How often this could not be written to the store's directory for others to read.
    pub unwritten_reports: u64,
}

/// The process that has a store open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProcessStatus {
    /// Its number.
    pub id: u32,
    /// The name of its program.
    pub name: String,
    /// When it opened the store.
    #[serde(with = "moment")]
    pub opened: Timestamp,
    /// For how long it has had the store open.
    #[serde(with = "seconds")]
    pub uptime: Duration,
    /// What the store takes of its memory.
    pub memory: MemoryStatus,
    /// How many files the whole process has open, if the system tells.
    pub open_files: Option<u64>,
    /// How many it may have open.
    pub open_files_max: Option<u64>,
}

/// What a store takes of the memory, as far as that grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryStatus {
    /// Parts of the index that are not yet written out.
    pub index_bytes: u64,
    /// The most that is kept of the index for reading.
    pub cache_bytes_max: u64,
    /// Recent commits, for watches.
    pub feed_bytes: u64,
    /// Commits that wait.
    pub waiting_bytes: u64,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Operations {
    /// How many there were since the store was opened.
    pub count: u64,
    /// How long they took.
    pub all: Latency,
    /// How long those of the last minute took.
    pub minute: Latency,
}

/// How long operations took. A percentile is too high by an eighth at most; zero if nothing was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Latency {
    /// How many were timed.
    pub timed: u64,
    /// Half of them took no longer.
    #[serde(with = "seconds")]
    pub p50: Duration,
    /// Nine of ten took no longer.
    #[serde(with = "seconds")]
    pub p90: Duration,
    /// Of a hundred, one took longer.
    #[serde(with = "seconds")]
    pub p99: Duration,
    /// Of a thousand, one took longer.
    #[serde(with = "seconds")]
    pub p999: Duration,
    /// The longest.
    #[serde(with = "seconds")]
    pub max: Duration,
}

/// How commits are gathered into groups, each of which is synced once, and what waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommitStatus {
    /// How many groups were written.
    pub groups: u64,
    /// Commits in a group, on average.
    pub group_mean: f64,
    /// Half of the groups had no more commits.
    pub group_p50: u64,
    /// Of a hundred groups, one had more.
    pub group_p99: u64,
    /// The largest group.
    pub group_max: u64,
    /// How long it took to sync a group: the price of durability.
    pub syncs: Operations,
    /// Commits that wait for their answer now.
    pub waiting: u64,
    /// Bytes of them.
    pub waiting_bytes: u64,
}

/// How the log of an open store is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LogStatus {
    /// How many segments it has.
    pub segments: usize,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many bytes of them could be cleaned away, as far as samples tell.
    pub garbage_bytes: u64,
    /// How many bytes are in old segments that wait to be removed.
    pub replaced_bytes: u64,
    /// How many bytes were written to it since the store was opened, without what cleaning wrote.
    pub written_bytes: u64,
    /// How many bytes cleaning has read since then.
    pub cleaned_bytes: u64,
    /// How many bytes cleaning has written since then.
    pub rewritten_bytes: u64,
    /// Whether it is cleaned at all.
    pub cleaning: bool,
    /// Why it cannot be cleaned just now, if it cannot.
    pub trouble: Option<String>,
}

/// How the index of an open store is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IndexStatus {
    /// How many bytes of it are in memory and still grow.
    pub unsealed_bytes: u64,
    /// How many parts in memory wait to be written out.
    pub waiting_flushes: usize,
    /// How many parts on the disk wait to be merged.
    pub waiting_merges: usize,
    /// How many bytes wait to be merged, if that is known.
    pub pending_merge_bytes: u64,
    /// How many bytes of the log would have to be read again after a crash.
    pub replay_bytes: u64,
    /// Why it cannot be written out just now, if it cannot.
    pub trouble: Option<String>,
    /// How often a part in memory was written out, with how many bytes, and how long that took.
    pub flushes: u64,
    /// Bytes that this wrote.
    pub flushed_bytes: u64,
    /// Time that this took.
    #[serde(with = "seconds")]
    pub flush_time: Duration,
    /// How often parts on the disk were merged.
    pub merges: u64,
    /// Bytes that this read.
    pub merge_read_bytes: u64,
    /// Bytes that this wrote.
    pub merge_written_bytes: u64,
    /// Time that this took.
    #[serde(with = "seconds")]
    pub merge_time: Duration,
    /// Tables on the disk.
    pub tables: u64,
    /// Bytes of them.
    pub table_bytes: u64,
    /// What they hold, deleted or not.
    pub entries: u64,
    /// How many of these only say that something is gone.
    pub tombstones: u64,
    /// The share of these in `entries`.
    pub tombstone_ratio: Option<f64>,
    /// The levels that the tables are in, the newest first.
    pub levels: Vec<LevelStatus>,
    /// Of gets, the share that the cache of entries has answered.
    pub entry_cache_hit_rate: Option<f64>,
    /// Of blocks of tables, the share that was in memory when it was wanted.
    pub block_cache_hit_rate: Option<f64>,
    /// Of looks at tables that do not have the key, the share that a filter has saved.
    pub filter_rate: Option<f64>,
}

/// A level of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LevelStatus {
    /// Its tables.
    pub tables: u64,
    /// Their bytes, if they are known.
    pub bytes: u64,
}

/// What an operation of a user costs. None means that nothing was done yet that would tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Amplification {
    /// Bytes written to the disk for each byte that commits wrote to the log: that byte itself, and what cleaning,
    /// flushing and merging have written since the store was opened.
    pub write: Option<f64>,
    /// Bytes on the disk, of log and index, for each byte of the log that is needed: live, history or feed.
    pub space: Option<f64>,
    /// Tables that a get of the index has looked into.
    pub read_tables: Option<f64>,
    /// Blocks that it has read from the disk.
    pub read_blocks: Option<f64>,
}

/// A snapshot that someone holds: a scan, a page token, a watch that begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HeldSnapshot {
    /// Its revision.
    pub revision: Revision,
    /// For how long it has been the oldest, to a second or so.
    #[serde(with = "seconds")]
    pub age: Duration,
}

/// What a bucket takes of the log. What is in the segment that is being written is taken to be live.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BucketUsage {
    /// Its name.
    pub name: String,
    /// Its records, dead ones included.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that are needed: by an entry, its history, or the feed. As far as samples tell.
    pub live_bytes: u64,
    /// Bytes of these that only the feed needs.
    pub feed_bytes: u64,
    /// Bytes that cleaning would free.
    pub dead_bytes: u64,
    /// Its newest record.
    pub last_revision: Revision,
    /// The oldest revision that a watch can start from.
    pub feed_floor: Revision,
    /// How many watches it has.
    pub watches: u64,
    /// How many consumers it has.
    pub consumers: u64,
    /// Whether a power cut may lose its last commits.
    pub buffered: bool,
    /// Whether its changes are kept for ever.
    pub feed_for_ever: bool,
}

/// How far a consumer is behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ConsumerLag {
    /// Its bucket.
    pub bucket: String,
    /// Its name.
    pub name: String,
    /// The revision that it has yet to see.
    pub next: Revision,
    /// How many revisions of the store there are from there to the newest of its bucket.
    pub revisions: u64,
    /// Bytes of its bucket from there on, in finished segments.
    pub bytes: u64,
    /// Past so many bytes what it has yet to see is given up.
    pub bytes_max: u64,
    /// Whether something that it has yet to see is gone.
    pub lost: bool,
    /// How long ago it moved on, if it ever did.
    #[serde(with = "seconds_or_none")]
    pub idle: Option<Duration>,
}

/// What is used most just now, from samples. The shares are certain: they may be larger, but not smaller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HotStatus {
    /// Keys that are read.
    pub get_keys: Vec<HotSpot>,
    /// Leading tokens of keys that are read.
    pub get_prefixes: Vec<HotSpot>,
    /// Keys that are written.
    pub put_keys: Vec<HotSpot>,
    /// Leading tokens of keys that are written.
    pub put_prefixes: Vec<HotSpot>,
}

/// A key or a prefix with a large share of the traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HotSpot {
    /// Its bucket.
    pub bucket: String,
    /// The key, or the first tokens of keys.
    pub key: String,
    /// Its share of the gets, or puts, of the whole store: from 0 to 1.
    pub share: f64,
}

/// What was done each second, about, of the last minute; oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Rates {
    /// Gets.
    pub gets: Vec<u64>,
    /// Records that commits were to write.
    pub puts: Vec<u64>,
    /// Pages of scans.
    pub scans: Vec<u64>,
    /// Bytes that commits wrote to the log.
    pub log_bytes: Vec<u64>,
    /// Bytes that flushes of the index wrote.
    pub flushed_bytes: Vec<u64>,
    /// Bytes that merges of the index wrote.
    pub merged_bytes: Vec<u64>,
    /// Bytes that cleaning wrote.
    pub cleaned_bytes: Vec<u64>,
    /// Commits in a group, on average.
    pub group_sizes: Vec<u64>,
    /// Of a hundred syncs, one took longer.
    #[serde(with = "seconds_each")]
    pub sync_p99: Vec<Duration>,
    /// How long of it commits were made to wait.
    #[serde(with = "seconds_each")]
    pub stalled: Vec<Duration>,
}

/// The disk that a store is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DiskStatus {
    /// How large it is.
    pub bytes: u64,
    /// How much of it is left.
    pub free_bytes: u64,
}

/// Something that slows commits down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stall {
    /// What it is.
    pub cause: StallCause,
    /// How long commits have waited for it since the store was opened.
    #[serde(with = "seconds")]
    pub time: Duration,
    /// How long each group of commits waits for it now.
    #[serde(with = "seconds_or_none")]
    pub now: Option<Duration>,
}
