//! The engine on real servers: one, and a cluster of three.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "these are tests, and real servers take real time"
)]

mod authentication;
mod chaos;
mod checks;
mod cluster;
mod deleting;
mod direct;
mod edited;
mod interop;
mod native;
mod outcomes;
mod questions;
mod refusals;
mod resilience;
mod servers;
mod single;
