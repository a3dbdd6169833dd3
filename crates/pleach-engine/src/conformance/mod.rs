//! The conformance suite: one test for every promise of [`Engine`], for any engine or door.
//!
//! An engine's tests give it a function that opens an empty store, and get a test for each promise:
//!
//! ```
//! use std::sync::Arc;
//! use pleach_engine::{ManualClock, MemoryEngine, conformance::Subject};
//!
//! async fn open() -> Subject {
//!     let clock = Arc::new(ManualClock::default());
//!     let engine = MemoryEngine::with_clock(clock.clone());
//!     Subject::with_manual_clock(Arc::new(engine), clock)
//! }
//!
//! pleach_engine::conformance_suite!(open);
//! ```
//!
//! A promise that needs a capability the engine lacks is skipped and says so; nothing else can skip one.
//! [`PROMISES`] is the list.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken promise is a failed test")]

mod case;
mod list;
mod run;
mod subject;
mod watching;

mod batches;
mod buckets;
mod checks;
mod closing;
mod commits;
mod consumers;
mod expectations;
mod expiry;
mod expiry_changes;
mod history;
mod pages;
mod races;
mod reads;
mod scans;
mod watch_filters;
mod watches;

#[cfg(test)]
mod tests;

pub use list::{Need, PROMISES, Promise};
pub use run::check;
pub use subject::Subject;

#[cfg(doc)]
use crate::Engine;

/// Fails with a message that shows what came instead, unless the result is an error of this pattern.
macro_rules! refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected {}, got {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
use refused;
