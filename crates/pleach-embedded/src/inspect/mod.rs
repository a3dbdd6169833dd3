//! Looking at a store that is closed: whether it is sound, building its index anew, and copying out of a
//! damaged one whatever can still be read.
//!
//! All of it blocks, and holds the store's lock meanwhile: a store in use is `Locked`. Memory is bounded by the
//! largest commit and by the named limits, and grows besides only with the number of buckets ever created.

mod clean;
mod damaged;
mod file;
mod lives;
mod mend;
mod rebuild;
mod report;
mod salvage;
mod scan;
mod tally;
#[cfg(test)]
mod tests;
mod verify;
mod view;

pub use clean::clean;
pub use rebuild::{RebuildOptions, rebuild};
pub use report::{
    CleanReport, DAMAGES_LISTED_MAX, Damage, IndexCheck, IndexReport, LIVE_KEYS_COUNTED_MAX,
    LOST_KEYS_LISTED_MAX, LogReport, LostKey, Progress, RebuildReport, RevisionRange, SalvageReport, Step,
    TornTail, VerifyReport,
};
pub use salvage::salvage;
pub use verify::verify;

use std::path::Path;

use pleach_engine::EngineError;

use crate::disk::RealDisk;
use crate::identity;
use crate::lock::DirectoryLock;
use crate::log::StoreId;

/// A closed store, kept closed.
struct Closed {
    /// Which store it is; if that can be read, else what is wrong.
    store: Result<StoreId, Damage>,
    lock: DirectoryLock,
}

impl Closed {
    /// Locks the store in `directory`, which must be one.
    fn lock(directory: &Path) -> Result<Self, EngineError> {
        let checked = identity::check_directory(directory, false);
        // What is no store gets no lock file either.
        if !matches!(checked, Ok(()) | Err(EngineError::Corrupt { .. })) {
            checked?;
        }
        let lock = DirectoryLock::acquire(directory)?;
        // Again, now that nobody else can change it: without the file, the next line would make one.
        let store = identity::check_directory(directory, false)
            .and_then(|()| identity::load_or_create(&RealDisk, directory));
        let store = match store {
            Ok(store) => Ok(store),
            Err(EngineError::Corrupt { path, offset, what }) => Err(Damage {
                path,
                offset,
                length: None,
                what,
                lost: None,
                commits: None,
                bucket: None,
                keys: Vec::new(),
            }),
            Err(error) => return Err(error),
        };
        Ok(Self { store, lock })
    }
}
