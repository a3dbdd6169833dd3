//! What happens when the disk fails or the power goes: the log on a disk that does so on demand.

mod bench;
mod disk;
mod failures;
mod machine;
mod power;
mod sim;

pub(crate) use disk::{DiskOp, Fault, SimDisk, Survival};
pub(crate) use machine::Machine;
