use pleach_engine::{BucketName, CommitError, EngineError, Expectation, Key};

use crate::error::AuthorityError;
use crate::guards::Shared;
use crate::naming::system_key;
use crate::record::GlassAct;

/// The most keys that the record of an act names.
pub const GLASS_KEYS_MAX: usize = 100;

/// How many acts of one moment are told apart.
const ACTS_OF_A_MOMENT_MAX: usize = 1000;

/// Who has broken the glass, and why.
#[derive(Debug)]
pub(crate) struct Glass {
    who: String,
    why: String,
}

impl Glass {
    pub(crate) fn new(who: &str, why: &str) -> Result<Self, AuthorityError> {
        for (word, what) in [(who, "who breaks the glass"), (why, "why the glass is broken")] {
            if word.trim().is_empty() {
                return Err(AuthorityError::Missing { what });
            }
        }
        Ok(Self { who: who.to_owned(), why: why.to_owned() })
    }

    /// Records an act before it is done: what cannot be recorded is not done.
    pub(crate) async fn record(
        &self,
        shared: &Shared,
        bucket: &BucketName,
        act: &str,
        keys: &[&Key],
    ) -> Result<(), EngineError> {
        let act = GlassAct {
            who: self.who.clone(),
            why: self.why.clone(),
            bucket: bucket.to_string(),
            act: act.to_owned(),
            keys: keys.iter().take(GLASS_KEYS_MAX).map(|key| key.to_string()).collect(),
            count: keys.len(),
            time: shared.clock.now(),
        };
        keep(shared, &act).await
    }
}

/// Writes the record of an act, under a key that no other act has.
pub(crate) async fn keep(shared: &Shared, act: &GlassAct) -> Result<(), EngineError> {
    for number in 0..ACTS_OF_A_MOMENT_MAX {
        let parts = ["glass", &format!("{:018}", act.time.as_micros()), &format!("{number:03}")];
        let key = system_key(&parts).map_err(|error| EngineError::Bug { what: error.to_string() })?;
        let put = shared.system.put(key, act, Expectation::Absent);
        match shared.system.commit(put.into()).await {
            Ok(()) => return Ok(()),
            Err(CommitError::Conflict(_)) => {}
            // Nothing of this store was ever recorded.
            Err(CommitError::Engine(EngineError::BucketNotFound { .. })) => shared.system.create().await?,
            Err(CommitError::Engine(error)) => return Err(error),
        }
    }
    Err(EngineError::Overloaded)
}
