//! The in-memory engine: slow, obvious, and the oracle the others are compared with.
//!
//! One mutex guards plain maps. Every entry point first records what has expired, in the order of its
//! moments, and then does its own work; nothing else ever changes the maps.

mod bucket;
mod consumers;
mod engine;
mod feed;
mod state;
mod watch;

#[cfg(test)]
mod tests;

pub use engine::MemoryEngine;
pub use feed::{FEED_BYTES_MAX, FEED_CHANGES_MAX};
