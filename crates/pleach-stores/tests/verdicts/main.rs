//! No plan that is called safe makes anything stored unreadable: random contracts, random data and random changes, with
//! another implementation of JSON Schema as the judge.
//!
//! `cargo xtask verdicts` runs more cases than this test does, and one of them again by its seed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "these are tests")]

mod campaign;
mod coverage;
mod document;
mod document_edit;
mod failure;
mod judge;
mod keys;
mod known;
mod play;
mod random;
mod regressions;
mod schema;
mod schema_edit;
mod shrink;
mod story;
mod tally;
mod value;
