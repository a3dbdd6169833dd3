//! Real NATS servers on free ports of the loopback interface, for tests and measurements.
//!
//! [`Server`] is one, [`Cluster`] several that know each other. Their data is in a temporary directory, and they
//! end with the value, or with the process that started them, however it ends. Single servers can be killed,
//! stopped, continued and started again. [`Link`] is a way to a server that can be cut.
//!
//! The program is found by [`program`], and what else tests need by [`tool`]: `cargo xtask ci` installs it, and `cargo xtask tools` does so alone.

#![allow(clippy::panic, reason = "what tests need and do not get is a failed test, with a message")]

mod cluster;
mod link;
mod port;
mod process;
mod program;
mod server;

pub use cluster::Cluster;
pub use link::Link;
pub use program::{PROGRAM_VARIABLE, program, tool};
pub use server::{Saved, Server, Settings};
