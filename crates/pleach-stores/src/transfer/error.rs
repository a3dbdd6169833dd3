use pleach_engine::ErrorKind;

use crate::plan::Shortfall;

/// Why contracts cannot move to another store, or not yet.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// An apply or a sweep has not come to its end.
    #[error("{lineage} cannot be moved now: {what}")]
    Unfinished {
        /// The lineage.
        lineage: String,
        /// What is under way.
        what: &'static str,
        /// The command that finishes it.
        help: &'static str,
    },
    /// A selection that leaves out buckets of a contract.
    #[error("the contract {lineage} also has {}, which is not selected", missing.join(", "))]
    Incomplete {
        /// The lineage.
        lineage: String,
        /// The buckets that are left out.
        missing: Vec<String>,
    },
    /// A bucket that is itself being filled.
    #[error("bucket {bucket} is still being copied from another store")]
    Arriving {
        /// The bucket.
        bucket: String,
    },
    /// The other store has a contract of the lineage already.
    #[error("the target has {lineage} already, {theirs}; the source has {ours}")]
    Clash {
        /// The lineage.
        lineage: String,
        /// What the target has.
        theirs: String,
        /// What the source has.
        ours: String,
    },
    /// A bucket that belongs to another contract in the other store.
    #[error("bucket {bucket} of {lineage} belongs to {owner} in the target")]
    Taken {
        /// The bucket.
        bucket: String,
        /// The lineage that is to be moved.
        lineage: String,
        /// The lineage that has the bucket.
        owner: String,
    },
    /// The other engine cannot keep what a contract promises.
    #[error("the target cannot keep what {lineage} promises: {}", messages(shortfalls))]
    Incapable {
        /// The lineage.
        lineage: String,
        /// Every promise that it cannot keep.
        shortfalls: Vec<Shortfall>,
    },
    /// A record of a kind that this version does not know.
    #[error("the system bucket has the record {key}, which this version cannot move")]
    Unknown {
        /// Its key.
        key: String,
    },
    /// Records that do not fit together.
    #[error("the records about contracts are not complete: {what}")]
    Invalid {
        /// What is wrong.
        what: String,
    },
    /// The records of both sides differ after the move.
    #[error("the contracts are not the same in the target: sha256 {theirs} there, {ours} in the source")]
    Different {
        /// The digest of what the target has.
        theirs: String,
        /// The digest of what the source has.
        ours: String,
    },
    /// The contracts of the source changed during the move.
    #[error("the contracts of the source have changed since the move began")]
    Moved,
}

impl TransferError {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Incomplete { .. } | Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Clash { .. } | Self::Taken { .. } | Self::Different { .. } => ErrorKind::Conflict,
            Self::Incapable { .. } | Self::Unknown { .. } => ErrorKind::Unsupported,
            Self::Unfinished { .. } | Self::Arriving { .. } | Self::Moved => ErrorKind::Unavailable,
        }
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Unfinished { help, .. } => help,
            Self::Incomplete { .. } => {
                "name these buckets too, or none to move the whole store, or move the entries alone with --without-contracts"
            }
            Self::Arriving { .. } => "complete that migration or import first, or delete the bucket",
            Self::Clash { .. } => {
                "move to a store without this contract, or move the data alone by --without-contracts"
            }
            Self::Taken { .. } => "give the bucket another name in the target with BUCKET=NAME",
            Self::Incapable { .. } => {
                "apply a contract that asks for less to the source first, or choose another target"
            }
            Self::Unknown { .. } => "use the version of pleach that wrote it",
            Self::Invalid { .. } => "export the store again",
            Self::Different { .. } => {
                "if someone applies contracts to the target, stop that; then repeat the command"
            }
            Self::Moved => "repeat the command: it goes on where it was",
        }
    }
}

fn messages(shortfalls: &[Shortfall]) -> String {
    let all = shortfalls.iter().map(|shortfall| format!("{}: {}", shortfall.path, shortfall.message));
    all.collect::<Vec<_>>().join("; ")
}
