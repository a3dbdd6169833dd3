//! Stores with meaning, on any engine.
//!
//! An engine keeps bytes. Here a contract decides which: what buckets there are, which keys and values they take,
//! what a new version of the contract would do to those that are stored, and in which steps it comes into force.
//!
//! This crate speaks to an `Engine` and never knows which; doors and the library stand above it.

mod compiled;
mod envelope;
pub mod state;

pub use compiled::{CompiledKeyspace, CompiledResource, Misfit};
pub use envelope::Envelope;
