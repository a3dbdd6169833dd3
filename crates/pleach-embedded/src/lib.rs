//! The embedded engine: the log is the database, the index is a view of it.
//!
//! Every commit is appended to a checksummed log and synced before it is acknowledged; the log is at once
//! write-ahead log, change feed and history. An index, which can be thrown away and built again from the log,
//! answers reads. Start with [`EmbeddedEngine`].
//!
//! ```
//! use pleach_embedded::EmbeddedEngine;
//! use pleach_engine::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store");
//! # pollster::block_on(async {
//! let engine = EmbeddedEngine::open(&path)?;
//! let carts = BucketName::parse("carts")?;
//! engine.create_bucket(&carts, BucketConfig::default()).await?;
//! engine.commit(&carts, Batch::new().put(Key::parse("user.42")?, "3 apples")).await?;
//! engine.close().await?;
//!
//! let engine = EmbeddedEngine::open(&path)?;
//! let entry = engine.read(&carts, &Key::parse("user.42")?, At::Latest).await?;
//! assert_eq!(entry.map(|entry| entry.value), Some("3 apples".into()));
//! # Ok(()) }) }
//! ```
//!
//! What it leaves to others: what keys and values mean, and convenience (the `pleach` library).

mod apply;
mod catalog;
mod cleaner;
mod commit;
mod consumers;
mod core;
mod disk;
pub mod doctor;
mod engine;
mod entry_cache;
#[cfg(test)]
mod faults;
mod feed;
mod fields;
mod file_pool;
mod identity;
mod index;
pub mod inspect;
mod lock;
mod log;
mod meters;
mod pressure;
mod random;
mod reaper;
mod recovery;
mod scan;
mod settings;
mod signal;
mod snapshots;
mod status;
mod threads;
mod upkeep;
mod watch;

pub use engine::EmbeddedEngine;
pub use pressure::StallCause;
pub use settings::Settings;
pub use status::{
    Amplification, BucketUsage, CommitStatus, ConsumerLag, DiskStatus, HeldSnapshot, HotSpot, HotStatus,
    IndexStatus, Latency, LevelStatus, LogStatus, MemoryStatus, Operations, ProcessStatus, Rates,
    STATUS_FILE_NAME, Stall, Status, holder, last_status,
};
