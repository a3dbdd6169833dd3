//! What keys and values mean. This crate reads declarations and decides; it does no I/O.
//!
//! Start with [`key::Grammar`]: it builds and reads the keys of a keyspace.

pub mod key;
