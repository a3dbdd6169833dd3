use std::fmt;
use std::num::NonZeroU8;

use async_trait::async_trait;

use crate::{
    Batch, BucketConfig, BucketInfo, BucketName, Capabilities, CommitError, Committed, EngineError, Entry, Key,
    Page, Revision, ScanQuery, Selection, WatchQuery, WatchStream,
};

/// As of when to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// Now.
    #[default]
    Latest,
    /// As it was once this revision had been committed.
    Revision(Revision),
}

/// Stores entries in buckets.
///
/// PROMISES
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// What this engine can do.
    fn capabilities(&self) -> &Capabilities;

    /// Creates a bucket, or finds it there with this very configuration.
    async fn create_bucket(&self, bucket: &BucketName, config: BucketConfig) -> Result<BucketInfo, EngineError>;

    /// Gives a bucket another configuration, which holds at once for everything in it.
    async fn update_bucket(&self, bucket: &BucketName, config: BucketConfig) -> Result<BucketInfo, EngineError>;

    /// Deletes a bucket with everything in it.
    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError>;

    /// Describes a bucket.
    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError>;

    /// Describes every bucket, by name.
    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError>;

    /// Applies all of `batch`, or none of it.
    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError>;

    /// Returns the live value of a key, if it has one: its newest kept record as of `at`, unless that is
    /// a marker or has expired by now. Where the record as of `at` is no longer kept, says `Compacted`.
    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError>;

    /// Returns the kept records of a key, oldest first, values and markers, expired or not.
    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError>;

    /// Returns live entries in the byte order of their keys, all from one snapshot.
    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError>;

    /// Counts live entries.
    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError>;

    /// Delivers changes as they are committed. The watch has begun when this returns.
    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError>;

    /// Forgets all but the newest `keep` records of a key.
    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError>;

    /// Finishes what was acknowledged and lets go of everything; other calls then say `Closed`.
    async fn close(&self) -> Result<(), EngineError>;
}
