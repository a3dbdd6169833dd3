//! State: what a contract keeps for each of its users and devices. Begin with [`Store::state`].

pub use pleach_stores::state::*;
pub use pleach_stores::state_facade;

use crate::Store;

impl Store {
    /// The state of users and devices in this store; its bucket is made if need be.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn state(&self) -> Result<State, StateError> {
        State::open(self.guarded()).await
    }
}
