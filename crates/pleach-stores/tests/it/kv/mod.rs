//! Typed resources.

mod batches;
mod given;
mod guarded;
mod queries;
mod reads;
mod retention;
mod upgrades;
mod watches;
mod writes;
