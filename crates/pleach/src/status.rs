//! How a store in a directory is doing, in figures.
//!
//! The process that has it open asks [`Store::status`](crate::Store::status). About once a second it also writes the same
//! to the store's directory, where others find it by [`last_status`]: a store belongs to one process, but everybody may
//! look. [`doctor`](crate::doctor) turns the figures into sentences.
//!
//! ```
//! use pleach::Store;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store");
//! # pollster::block_on(async {
//! let store = Store::open(&path).await?;
//! let carts = store.create_bucket("carts").await?;
//! carts.put("user.42", "3 apples").await?;
//!
//! let status = store.status().await?;
//! assert_eq!((status.puts.count, status.bucket_count), (1, 1));
//! println!("a put takes {:?}, a sync {:?}", status.puts.all.p99, status.commits.syncs.all.p99);
//! # Ok::<_, pleach::Error>(()) })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use pleach_embedded::{
    Amplification, BucketUsage, CommitStatus, ConsumerLag, DiskStatus, HeldSnapshot, HotSpot, HotStatus,
    IndexStatus, Latency, LevelStatus, LogStatus, MemoryStatus, Operations, ProcessStatus, Rates,
    STATUS_FILE_NAME, Stall, StallCause, Status, holder, last_status,
};
