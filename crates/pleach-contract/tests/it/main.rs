//! Contracts from outside: from Rust types, and from whoever means harm.
#![allow(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod bad_input;
mod derive;
mod fuzz;
