//! The way in for administrators: explicit targets, and a record of every act.

mod erase;
mod find;
mod inspect;
mod record;

pub use erase::{ERASE_ENTRIES_MAX, Erasure};
pub use find::{EXPORT_ENTRIES_MAX, ExportPage, Holding};
pub use inspect::{Inspected, InspectedPage, Target};
pub use record::{Act, AdminRecord, RECORDS_MAX, STATE_LOG_BUCKET};

use pleach_engine::{BucketConfig, Engine as _};

use super::{State, StateError};
use record::Log;

/// An administrator with a reason. Reaches the state of any principal, says of which in every call, and leaves a record
/// in [`STATE_LOG_BUCKET`] before anything is looked at or changed.
#[derive(Clone, Debug)]
pub struct StateAdmin {
    state: State,
    log: Log,
}

impl StateAdmin {
    pub(super) async fn open(state: State, who: &str, why: &str) -> Result<Self, StateError> {
        for (text, what) in [(who, "a name: who acts"), (why, "a reason: why")] {
            if text.trim().is_empty() {
                return Err(StateError::NotAccountable { what });
            }
        }
        let config = BucketConfig::plain(state.shared.engine.capabilities());
        let bucket = super::open::name(STATE_LOG_BUCKET)?;
        super::open::ensure(&state.shared.engine, &bucket, config).await?;
        let log = Log { bucket, who: who.to_owned(), why: why.to_owned() };
        Ok(Self { state, log })
    }
}
