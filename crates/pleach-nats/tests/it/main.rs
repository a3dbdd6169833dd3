//! The engine on real servers: one, and a cluster of three.

mod cluster;
mod direct;
mod servers;
mod single;
