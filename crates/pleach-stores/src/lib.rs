//! Stores with meaning, on any engine.
//!
//! An engine keeps bytes. Here a contract decides which: what buckets there are, which keys and values they take,
//! what a new version of the contract would do to those that are stored, and in which steps it comes into force.
//!
//! This crate speaks to an `Engine` and never knows which; doors and the library stand above it.

mod binding;
mod compiled;
mod envelope;
mod kv;
mod service;

pub use binding::Binding;
pub use compiled::{CompiledKeyspace, CompiledResource, Misfit};
pub use envelope::Envelope;
pub use kv::{
    BoxError, InvalidKey, InvalidRetainCursor, KeyOf, Keyspace, KvBatch, KvError, KvEvent, KvStore, KvWatch,
    KvWatchOptions, KvWriteError, Old, QueryOptions, QueryPage, RETAIN_DROPPED_MAX, Read, RetainCursor,
    Retained, Retaining, SCAN_LIMIT_DEFAULT, Typed, UPGRADE_TRIES_MAX,
};
pub use service::Service;

// What the signatures above are made of, so that the code that is made of a contract needs no other crate.
pub use pleach_contract::key;
pub use pleach_engine::{Key, Revision};
