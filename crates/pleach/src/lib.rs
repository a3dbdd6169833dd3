//! A durable, ordered, revisioned, watched key-value store, in your process.
//!
//! A key-value store usually hands its users a simple API and, with it, the work a database used to do.
//! Pleach keeps that work: every write has a revision to compare with, every key a history, every batch is
//! all or nothing, every scan reads one snapshot, every watch misses nothing or says so.
//!
//! Start with a [`Store`]. It holds buckets; a [`Bucket`] holds entries.
//!
//! ```
//! use pleach::{Store, WriteError};
//!
//! # pollster::block_on(async {
//! let store = Store::in_memory(); // or Store::open("./data").await?
//! let carts = store.create_bucket("carts").await?;
//!
//! // A put returns the revision it became; a read returns the entry with it.
//! let first = carts.put("user.42", "3 apples").await?;
//! let cart = carts.get("user.42").await?.expect("just written");
//! assert_eq!((cart.value.as_ref(), cart.revision), (&b"3 apples"[..], first));
//!
//! // An update is refused if someone else was faster.
//! carts.update("user.42", "4 apples", cart.revision).await?;
//! match carts.update("user.42", "9 apples", cart.revision).await {
//!     Err(WriteError::Conflict(lost)) => assert_eq!(lost.expected.to_string(), "revision 2"),
//!     other => unreachable!("{other:?}"),
//! }
//!
//! // Several keys change together, or not at all; scans go in key order.
//! carts.batch().delete("user.42").put("user.43", "a pear").commit().await?;
//! let entries = carts.scan("user.>")?.collect().await?;
//! assert_eq!(entries.len(), 1);
//! # store.close().await?;
//! # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! From there:
//! - [`Bucket::watch`] delivers changes as they are committed, exactly once and in order;
//! - [`Bucket::consume`] does so from a place that the store remembers, [`Bucket::project`] derives a bucket from it;
//! - [`PutOptions::ttl`] and [`BucketConfig::ttl`] let entries expire;
//! - [`Bucket::typed`] and [`codec`] store your own types under any key;
//! - [`Bucket::cached`] keeps a bucket in memory, for reads that ask nobody;
//! - [`Store::contracts`] has a contract say what the buckets are and what they take: `plan` shows what a new one would
//!   do to what is stored, `apply` does it; [`Store::service`] then reads and writes what is in force, with types;
//! - [`state`] keeps what a contract declares for each of its users and devices;
//! - [`migrate`] moves buckets to another store while they are in use;
//! - [`blocking`] is all of it without async; the async form runs on any runtime;
//! - [`cookbook`] has whole small programs.
//!
//! Errors say what to do next: [`Error::kind`] for programs, [`Error::help`] for people. A lost race is no
//! error but an outcome, [`WriteError::Conflict`], which `?` does not carry away into an [`Error`].
//!
//! # Features
//! - `embedded` (default): stores in a directory, `Store::open` and `file:` URLs.
//! - `nats`: stores on NATS servers, `nats://` and `tls://` URLs.
//! - `zstd`: the zstd value codec, `codec::Zstd`.
//!
//! What it leaves to others: keeping the bytes (the engines), the command line (`pleach-cli`).

mod arguments;
mod batch;
pub mod blocking;
mod bucket;
mod cache;
pub mod codec;
mod consumer;
pub mod cookbook;
#[cfg(feature = "embedded")]
pub mod doctor;
#[cfg(feature = "embedded")]
mod embedded;
mod error;
#[cfg(feature = "embedded")]
pub mod inspect;
pub mod migrate;
#[cfg(feature = "nats")]
pub mod nats;
mod options;
mod origin;
mod projection;
mod scan;
pub mod state;
#[cfg(feature = "embedded")]
pub mod status;
mod store;
mod typed;
mod url;
mod watch;
mod write;

pub use arguments::{
    IntoBucketName, IntoConsumerName, IntoFilter, IntoKey, IntoSelection, IntoStoreUrl, IntoValue,
};
pub use batch::BatchBuilder;
pub use bucket::{Bucket, BucketStatus};
pub use cache::{CACHE_BYTES_DEFAULT, CACHE_VISITS_MAX, CacheOptions, CachedBucket};
pub use consumer::{Consumer, ConsumerStatus};
pub use error::{Error, WriteError};
pub use options::{
    ConsumeOptions, CreateOptions, DeleteOptions, GetOptions, KeysOptions, OpenOptions, OpenProgress,
    PurgeOptions, PutOptions, ScanOptions, UpdateOptions, WatchOptions,
};
pub use origin::{Origin, OriginAddress};
pub use projection::{Derived, Progress, Projection, ProjectionError, Reduced, Reducer};
pub use scan::{Keys, Scan};
pub use store::Store;
pub use typed::{TypedBucket, TypedEntry, TypedEvent, TypedRecord, TypedScan, TypedWatch};
pub use url::{InvalidUrl, StoreUrl};
pub use watch::Watch;

pub use bytes::Bytes;
/// What contracts are made of.
pub use pleach_contract as contract;
pub use pleach_engine::{
    Action, At, BATCH_OPERATIONS_MAX, Batch, BatchPart, BucketConfig, BucketInfo, BucketName, CONSUMERS_MAX,
    Capabilities, Change, Check, Clock, CommitError, Committed, Compression, Conflict, ConsumerInfo,
    ConsumerName, ConsumerStart, Direction, Durability, Engine, EngineError, Entry, ErrorKind, Expectation,
    Expiry, HEADERS_BYTES_MAX, HISTORY_MAX, Headers, InvalidHeader, InvalidName, KEY_BYTES_MAX, Key,
    KeyFilter, KeyRange, MARKER_TTL_DEFAULT, METADATA_BYTES_MAX, ManualClock, Op, Operation,
    PAGE_ENTRIES_MAX, PAGE_LEASE, Page, PageToken, RESERVED_PREFIX, Reads, Revision, ScanQuery, Selection,
    SystemClock, TTL_MAX, Timestamp, VALUE_BYTES_DEFAULT, WATCH_FILTERS_MAX, WatchEvent, WatchQuery,
    WatchStart,
};

/// What contracts make of a store: guards, plans, and typed resources.
pub use pleach_stores as stores;

/// The programs of the README, run as doc tests.
#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
pub struct ReadmeDoctests;
