use pleach_engine::{BucketName, ErrorKind, Key, Revision};

use super::Loss;

/// Why a bucket cannot be migrated, or not yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum MigrateError {
    #[error("bucket {bucket} is in the target already, and is not what this migration made there")]
    TargetExists { bucket: BucketName },
    #[error("the target cannot keep this of bucket {bucket}: {}", messages(.losses))]
    Loss { bucket: BucketName, losses: Vec<Loss> },
    #[error("the value of {bucket}/{key} has {bytes} bytes, and the target takes at most {limit}")]
    ValueTooLarge { bucket: BucketName, key: Key, bytes: usize, limit: u32 },
    #[error(
        "{bucket}/{key} has an expiry of its own, and the target keeps those only in buckets without history"
    )]
    Expiring { bucket: BucketName, key: Key },
    #[error("changes of bucket {bucket} from revision {next} on are no longer kept: the oldest is {oldest}")]
    Behind { bucket: BucketName, next: Revision, oldest: Revision },
    #[error("another process is migrating to bucket {bucket}")]
    Busy { bucket: BucketName },
    #[error("bucket {bucket} is still being written to")]
    StillWritten { bucket: BucketName },
    #[error("{bucket}/{key} is not the same in the target: {what}")]
    Different { bucket: BucketName, key: Key, what: &'static str },
    #[error("bucket {bucket} belongs to the contract {lineage}, which is not moved with it")]
    NotReserved { bucket: BucketName, lineage: String },
    #[error("bucket {bucket} keeps as many records of a key as the contract {lineage} asks for")]
    ContractHistory { bucket: BucketName, lineage: String },
    #[error(
        "bucket {from} cannot be migrated to {to}: what the store itself keeps has the same name everywhere"
    )]
    Renamed { from: BucketName, to: BucketName },
    #[error("how far the migration to bucket {bucket} has come cannot be read")]
    Position { bucket: BucketName },
}

impl MigrateError {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TargetExists { .. } | Self::Busy { .. } | Self::Different { .. } => ErrorKind::Conflict,
            Self::Loss { .. } | Self::ValueTooLarge { .. } | Self::Expiring { .. } => ErrorKind::Unsupported,
            Self::Behind { .. } => ErrorKind::Compacted,
            Self::StillWritten { .. } => ErrorKind::Unavailable,
            Self::NotReserved { .. } | Self::ContractHistory { .. } => ErrorKind::Invalid,
            Self::Renamed { .. } => ErrorKind::NotAllowed,
            Self::Position { .. } => ErrorKind::Corrupt,
        }
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::TargetExists { .. } => {
                "migrate to another name with BUCKET=NAME, or delete the bucket in the target first"
            }
            Self::Loss { .. } => "migrate without it with --accept-loss, or choose a target that can keep it",
            Self::ValueTooLarge { .. } => {
                "raise the limit of the target (max_payload of a NATS server), or delete the value; what was copied stays"
            }
            Self::Expiring { .. } => {
                "delete the bucket in the target if it was begun, and migrate with --history 1: expiries are kept, old records not"
            }
            Self::Behind { .. } => {
                "raise --feed-time and --feed-bytes of the source's bucket, delete the bucket in the target, and migrate again"
            }
            Self::Renamed { .. } => "leave the name out, or migrate the whole store",
            Self::Busy { .. } => "let one of the two go on, and end the other",
            Self::StillWritten { .. } => {
                "stop whoever writes to the source, and do the same again: it goes on where it was"
            }
            Self::Different { .. } => {
                "if something else writes to the target, stop it; then delete the bucket there, and migrate again"
            }
            Self::NotReserved { .. } => {
                "begin a `ContractMove` with all its buckets first, or copy the entries without contracts"
            }
            Self::ContractHistory { .. } => {
                "leave --history out, or copy the entries alone with --without-contracts"
            }
            Self::Position { .. } => "delete the bucket in the target, and migrate again",
        }
    }
}

fn messages(losses: &[Loss]) -> String {
    losses.iter().map(|loss| loss.message.as_str()).collect::<Vec<_>>().join("; ")
}
