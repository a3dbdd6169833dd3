//! The engine on real servers: one, and a cluster of three.

#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "failures of real servers take real time, and tell what came of it"
)]
mod chaos;
mod cluster;
mod direct;
mod servers;
mod single;
