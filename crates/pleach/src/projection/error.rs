use pleach_engine::{BucketName, ConsumerName, ErrorKind, Revision};

use crate::Error;

/// Why a projection cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// Its source and its target are the same bucket.
    #[error("bucket {bucket} cannot be projected into itself")]
    IntoItself {
        /// The bucket.
        bucket: BucketName,
    },
    /// Its target belongs to another projection.
    #[error("bucket {target} belongs to projection {owner} of bucket {of}")]
    TargetTaken {
        /// The target.
        target: BucketName,
        /// The projection that is there.
        owner: ConsumerName,
        /// Its source.
        of: String,
    },
    /// Its position in the target cannot be read.
    #[error("the position of projection {projection} in bucket {target} cannot be read")]
    Position {
        /// The projection.
        projection: ConsumerName,
        /// Its target.
        target: BucketName,
        /// Why not.
        source: serde_json::Error,
    },
    /// Someone else has moved it since.
    #[error("projection {projection} into bucket {target} is being run by someone else")]
    Overtaken {
        /// The projection.
        projection: ConsumerName,
        /// Its target.
        target: BucketName,
    },
    /// Changes that it has not applied are no longer kept.
    #[error("projection {projection} is too far behind: the oldest change kept is {oldest}")]
    Behind {
        /// The projection.
        projection: ConsumerName,
        /// Where the feed of its source begins.
        oldest: Revision,
    },
    /// Its reducer failed. Everything before that change is applied.
    #[error("the reducer of projection {projection} failed at revision {revision}")]
    Reducer {
        /// The projection.
        projection: ConsumerName,
        /// The change it failed at.
        revision: Revision,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ProjectionError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::IntoItself { .. } => ErrorKind::Invalid,
            Self::TargetTaken { .. } | Self::Overtaken { .. } => ErrorKind::Conflict,
            Self::Position { .. } => ErrorKind::Corrupt,
            Self::Behind { .. } => ErrorKind::Compacted,
            // What a reducer passes on from the store keeps its kind.
            Self::Reducer { source, .. } => {
                source.downcast_ref::<Error>().map_or(ErrorKind::Invalid, Error::kind)
            }
        }
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::IntoItself { .. } | Self::TargetTaken { .. } => {
                "give every projection a target bucket of its own"
            }
            Self::Position { .. } => "open it with a newer version of Pleach, or rebuild the projection",
            Self::Overtaken { .. } => {
                "let one program at a time run it; run again, it goes on where the other has come"
            }
            Self::Behind { .. } => "rebuild the projection",
            Self::Reducer { .. } => "see the cause, mend the reducer, and run the projection again",
        }
    }
}
