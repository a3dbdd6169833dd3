//! The vocabulary of Pleach and the contract between its stores and its engines.
//!
//! Everything above an engine speaks in the types of this crate: a [`BucketName`] names a bucket, a
//! [`Key`] an entry in it, a [`Revision`] a point in its history. They are checked when they are made,
//! so code that holds one need not check again. [`Engine`] is the one trait an engine implements; its
//! numbered promises are tests of the same name in `conformance`, which any engine can run.
//!
//! Start with [`Engine`], and with [`MemoryEngine`], which keeps every promise in the most obvious way
//! and is the oracle the other engines are compared with.
//!
//! ```
//! use pleach_engine::*;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = MemoryEngine::new();
//! let carts = BucketName::parse("carts")?;
//! engine.create_bucket(&carts, BucketConfig::default()).await?;
//!
//! let key = Key::parse("user.42")?;
//! let committed = engine.commit(&carts, Batch::new().put(key.clone(), "3 apples")).await?;
//! let entry = engine.read(&carts, &key, At::Latest).await?.expect("just written");
//! assert_eq!(entry.revision, committed.last);
//! # Ok(()) }
//! # let mut task = std::pin::pin!(run());
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(matches!(std::future::Future::poll(task.as_mut(), &mut context), std::task::Poll::Ready(Ok(()))));
//! ```
//!
//! What it leaves to others: disks and networks (the engines), meaning (contracts), convenience (the
//! `pleach` library).

mod batch;
mod bucket;
mod capabilities;
mod clock;
mod consumer;
mod engine;
mod entry;
mod error;
mod filter;
mod hand_on;
mod key;
mod memory;
mod page_snapshots;
mod range;
mod reads;
mod revision;
mod scan;
mod watch;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use batch::{
    Action, BATCH_OPERATIONS_MAX, Batch, Check, CheckedBatch, Committed, Demand, Expectation, Expiry,
    Operation, TTL_MAX,
};
pub use bucket::{
    BUCKETS_MAX, BucketConfig, BucketInfo, BucketName, Compression, Durability, HISTORY_MAX,
    MARKER_TTL_DEFAULT, METADATA_BYTES_MAX, VALUE_BYTES_DEFAULT,
};
pub use capabilities::Capabilities;
pub use clock::{Clock, ManualClock, SteadyClock, SystemClock, Timestamp, WakeHook};
pub use consumer::{CONSUMERS_MAX, ConsumerInfo, ConsumerName, ConsumerStart};
pub use engine::{At, Engine};
pub use entry::{BatchPart, Change, Entry, HEADERS_BYTES_MAX, Headers, Op};
pub use error::{CommitError, Conflict, EngineError, ErrorKind, InvalidHeader, InvalidName};
pub use filter::KeyFilter;
pub use key::{FENCE_AFTER, FENCE_PREFIX, KEY_BYTES_MAX, Key, RESERVED_PREFIX};
pub use memory::{FEED_BYTES_MAX, FEED_CHANGES_MAX, MemoryEngine};
pub use page_snapshots::{PAGE_SNAPSHOTS_MAX, PageSnapshots};
pub use range::{KeyRange, Selection};
pub use reads::Reads;
pub use revision::Revision;
pub use scan::{
    Direction, PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, PAGE_LEASE, Page, PageCursor, PageToken, ScanQuery,
};
pub use watch::{WATCH_FILTERS_MAX, WatchEvent, WatchQuery, WatchStart, WatchStream};
