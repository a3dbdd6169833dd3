use pleach_engine::{Batch, BucketName, EngineError, Key};

/// Which part of the store a handle belongs to, as far as reserved keys are concerned.
///
/// This is the only place that says who writes keys that start with `_kv`. Everyone else is refused, whichever way the
/// write comes: a bucket, a batch, a typed value, an import, or a write past the guards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keeper {
    /// None: users, imports and sessions.
    #[default]
    Nobody,
    /// Projections, which keep their positions in their targets.
    Projections,
    /// Every part: code that stands for the engine itself, such as the suite of its promises.
    All,
    /// Migrations, which keep their position in the bucket that they write, and carry those of projections along.
    Migrations,
}

impl Keeper {
    /// What the keys of projections' positions start with; the name of the projection follows.
    pub const PROJECTION_PREFIX: &'static str = "_kv.projection.";

    /// Where the position of a migration is.
    pub const MIGRATION_KEY: &'static str = "_kv.migration";

    /// Whether it may write a key.
    pub fn may_write(self, key: &Key) -> bool {
        !key.is_reserved()
            || match self {
                Self::Nobody => false,
                Self::All => !key.is_fence(),
                Self::Projections => key.as_str().starts_with(Self::PROJECTION_PREFIX),
                Self::Migrations => {
                    key.as_str() == Self::MIGRATION_KEY || key.as_str().starts_with(Self::PROJECTION_PREFIX)
                }
            }
    }

    /// Refuses a batch with a reserved key that is not this keeper's.
    pub(crate) fn check(self, bucket: &BucketName, batch: &Batch) -> Result<(), EngineError> {
        match batch.operations().iter().find(|operation| !self.may_write(&operation.key)) {
            Some(operation) => {
                Err(EngineError::ReservedKey { bucket: bucket.clone(), key: operation.key.clone() })
            }
            None => Ok(()),
        }
    }
}
