use std::collections::BTreeSet;

use futures_util::StreamExt;
use pleach_engine::{Batch, Engine as _, Key, Operation, WatchEvent, WatchQuery, WatchStart};

use super::super::address::owner_filter;
use super::super::{Principal, StateError};
use super::{Act, StateAdmin};

/// The most entries that one call erases.
pub const ERASE_ENTRIES_MAX: usize = 10_000;

/// How far an erasure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Erasure {
    /// How many entries this call erased.
    pub erased: u64,
    /// Whether nothing is left. If not, call again: what is erased needs no second look.
    pub done: bool,
}

impl StateAdmin {
    /// Erases a principal's whole state, with its history: live entries, and what is still kept of those that were
    /// overwritten, were deleted or have expired. At most [`ERASE_ENTRIES_MAX`] at a time: call it until it is done.
    ///
    /// What is left to do follows from what is there, so an erasure that was cut off goes on with the next call. What
    /// the principal writes meanwhile may be erased or not.
    ///
    /// # Errors
    /// What the engine could not do; what was erased by then stays so.
    pub async fn erase(&self, principal: &Principal) -> Result<Erasure, StateError> {
        let begun = self.begin(&Act::Erase { principal: principal.clone() }).await?;
        let (keys, done) = self.kept_keys(principal).await?;
        let shared = &self.state.shared;
        let many = shared.engine.capabilities().batch_operations_max.max(1);
        for part in keys.chunks(many) {
            let batch: Batch = part.iter().cloned().map(Operation::purge).collect();
            shared.engine.commit(&shared.bucket, batch).await.map_err(StateError::unexpected)?;
        }
        let erased = keys.len() as u64;
        self.end(begun, erased).await?;
        Ok(Erasure { erased, done })
    }

    /// The keys of which a value is kept, and whether these are all. Live entries do not tell: a deleted one may have a
    /// history, and an expired one is kept until someone takes note of it.
    async fn kept_keys(&self, principal: &Principal) -> Result<(Vec<Key>, bool), StateError> {
        let query = WatchQuery { filters: vec![owner_filter(principal)?], start: WatchStart::History };
        let shared = &self.state.shared;
        let mut records = shared.engine.watch(&shared.bucket, query).await?;
        let mut keys = BTreeSet::new();
        while let Some(event) = records.next().await {
            let WatchEvent::Change(change) = event? else { break };
            if change.entry.op.is_put() {
                keys.insert(change.entry.key);
            }
            if keys.len() > ERASE_ENTRIES_MAX {
                keys.pop_last();
                return Ok((keys.into_iter().collect(), false));
            }
        }
        Ok((keys.into_iter().collect(), true))
    }
}
