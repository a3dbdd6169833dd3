use pleach_contract::Problems;
use pleach_engine::{
    BucketName, CommitError, Conflict, EngineError, ErrorKind, InvalidHeader, InvalidName, Key, Revision,
};

use super::key::InvalidKey;
use super::upgrade::BoxError;
use crate::{AuthorityError, Misfit};

/// What went wrong with a typed resource, except a lost race, which is an outcome of its own: see [`KvWriteError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// The service has no such resource.
    #[error("the contract has no resource `{alias}`; it has {}", listed(known))]
    UnknownResource {
        /// What was asked for.
        alias: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The resource has no such keyspace.
    #[error("the resource `{alias}` has no keyspace `{keyspace}`; it has {}", listed(known))]
    UnknownKeyspace {
        /// The resource.
        alias: String,
        /// What was asked for.
        keyspace: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The resource has keyspaces, and was used as if it had none.
    #[error("the resource `{alias}` has keyspaces: {}", listed(known))]
    HasKeyspaces {
        /// The resource.
        alias: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The keyspace has no such access path.
    #[error("`{keyspace}` has no access path `{access}`; it has {}", listed(known))]
    UnknownAccess {
        /// The keyspace.
        keyspace: String,
        /// What was asked for.
        access: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The keys of the keyspace have no such segment.
    #[error("the keys of `{keyspace}` have no segment `{segment}`; they have {}", listed(known))]
    UnknownSegment {
        /// The keyspace.
        keyspace: String,
        /// What was asked for.
        segment: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A page was asked for that is longer than its access path allows.
    #[error("a page of {asked} entries is not between 1 and {limit}, the limit of `{access}`")]
    PageLimit {
        /// The access path.
        access: String,
        /// What was asked for.
        asked: usize,
        /// The most it gives.
        limit: usize,
    },
    /// What was given makes no key of the keyspace.
    #[error("this makes no key of `{keyspace}`")]
    Key {
        /// The keyspace.
        keyspace: String,
        /// Why not.
        source: InvalidKey,
    },
    /// No keyspace has the key.
    #[error(transparent)]
    NoKeyspace(Misfit),
    /// A value that cannot be JSON.
    #[error("the value for {bucket}/{key} cannot be written as JSON: {reason}")]
    Encode {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// The key it was meant for.
        key: Key,
        /// Why not.
        reason: String,
    },
    /// A value that its own type would not read back. It was not written.
    #[error("the value for {bucket}/{key} would be stored, but the program could not read it back: {reason}")]
    NotReadBack {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// The key it was meant for.
        key: Key,
        /// Why not.
        reason: String,
    },
    /// A value that the contract does not allow. It was not written.
    #[error("the contract refuses the value for {bucket}/{key}")]
    Refused {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// The key it was meant for.
        key: Key,
        /// Why.
        #[source]
        misfit: Misfit,
    },
    /// A stored value that the contract does not allow.
    #[error("the value of {bucket}/{key} at revision {revision} is not what the contract says")]
    Stored {
        /// The bucket.
        bucket: BucketName,
        /// The key.
        key: Key,
        /// The record.
        revision: Revision,
        /// What is wrong with it.
        #[source]
        misfit: Misfit,
    },
    /// A stored value that carries no version, where nothing says which it has.
    #[error("the value of {bucket}/{key} at revision {revision} has no version")]
    Unstamped {
        /// The bucket.
        bucket: BucketName,
        /// The key.
        key: Key,
        /// The record.
        revision: Revision,
    },
    /// A stored value that the contract allows, and the type it is read as does not.
    #[error(
        "the value of {bucket}/{key} at revision {revision} is allowed, but is not what the program reads: {reason}"
    )]
    Type {
        /// The bucket.
        bucket: BucketName,
        /// The key.
        key: Key,
        /// The record.
        revision: Revision,
        /// What does not fit.
        reason: String,
    },
    /// A value of an older version that could not be made into one of the current version.
    #[error("the value of {bucket}/{key} at revision {revision} cannot be upgraded from version `{version}`")]
    Upgrade {
        /// The bucket.
        bucket: BucketName,
        /// The key.
        key: Key,
        /// The record.
        revision: Revision,
        /// Its version.
        version: String,
        /// Why not.
        source: BoxError,
    },
    /// A value that others wrote again and again while it was to be upgraded.
    #[error("the value of {bucket}/{key} was written by others {tries} times while it was to be upgraded")]
    Contended {
        /// The bucket.
        bucket: BucketName,
        /// The key.
        key: Key,
        /// How often it was tried.
        tries: usize,
    },
    /// A batch over keyspaces that no atomic group names together.
    #[error("no atomic group of `{alias}` has {} together; {}", listed(keyspaces), groups(declared))]
    NotAtomic {
        /// The resource.
        alias: String,
        /// What the batch writes to.
        keyspaces: Vec<String>,
        /// The groups that the contract declares, each with its members.
        declared: Vec<String>,
    },
    /// A batch with a keyspace of another resource.
    #[error("`{keyspace}` is of {bucket}, and the batch is for {batch}")]
    OtherResource {
        /// The keyspace.
        keyspace: String,
        /// Its bucket.
        bucket: BucketName,
        /// The batch's bucket.
        batch: BucketName,
    },
    /// The service is bound to another contract than the code was made for.
    #[error("the code was made for the contract {wanted}, and `{alias}` is bound to {bound}")]
    OtherContract {
        /// The resource.
        alias: String,
        /// The digest that the code was made for.
        wanted: String,
        /// The digest that it is bound to.
        bound: String,
    },
    /// A part of an envelope that cannot be a header.
    #[error(transparent)]
    Header(#[from] InvalidHeader),
    /// The bucket that a resource is bound to can be none.
    #[error("a resource is bound to what is no bucket name")]
    Bucket(#[source] InvalidName),
    /// The schemas of a contract cannot be compiled.
    #[error("the schemas of `{alias}` cannot be compiled: {problems}")]
    Schemas {
        /// The resource.
        alias: String,
        /// What is wrong with them.
        problems: Problems,
    },
    /// The store does not have the contract that the code was written for.
    #[error(transparent)]
    Authority(Box<AuthorityError>),
    /// What the engine could not do.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<AuthorityError> for KvError {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Engine(error) => Self::Engine(error),
            other => Self::Authority(Box::new(other)),
        }
    }
}

impl KvError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownResource { .. }
            | Self::UnknownKeyspace { .. }
            | Self::UnknownAccess { .. }
            | Self::UnknownSegment { .. } => ErrorKind::NotFound,
            Self::HasKeyspaces { .. }
            | Self::PageLimit { .. }
            | Self::Key { .. }
            | Self::NoKeyspace(_)
            | Self::Encode { .. }
            | Self::NotReadBack { .. }
            | Self::Refused { .. }
            | Self::Type { .. }
            | Self::Upgrade { .. }
            | Self::NotAtomic { .. }
            | Self::OtherResource { .. }
            | Self::OtherContract { .. }
            | Self::Schemas { .. } => ErrorKind::Invalid,
            Self::Stored { .. } | Self::Unstamped { .. } => ErrorKind::Corrupt,
            Self::Contended { .. } => ErrorKind::Unavailable,
            Self::Header(error) => error.kind(),
            Self::Bucket(error) => error.kind(),
            Self::Authority(error) => error.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &str {
        match self {
            Self::UnknownResource { .. } => "name one of those, or declare it and plan the change",
            Self::UnknownKeyspace { .. } => "name one of those, or declare it under `keyspaces`",
            Self::HasKeyspaces { .. } => "ask for one of them by name",
            Self::UnknownAccess { .. } => "name one of those, or declare it under `access`",
            Self::UnknownSegment { .. } => "name one of those",
            Self::PageLimit { .. } => "ask for a page in that range, and for the next with its token",
            Self::Key { source, .. } => source.help(),
            Self::NoKeyspace(_) => "build keys by a keyspace of the contract",
            Self::Encode { .. } => "make it a type that JSON can hold, with text for the keys of maps",
            Self::NotReadBack { .. } => {
                "make the type read what it writes: no NaN or infinity, and no field that is read and not written"
            }
            Self::Refused { misfit: Misfit::Value(refused), .. } => refused.help(),
            Self::Refused { .. } => "write a value that the contract allows",
            Self::Stored { misfit: Misfit::Version { .. }, .. } => {
                "a newer program may have written it: use its contract, or accept that version"
            }
            Self::Stored { .. } => "look at the value without its contract, and put a good one in its place",
            Self::Unstamped { .. } => {
                "say which version unstamped values have, or put a good one in its place"
            }
            Self::Type { .. } => "make the type of the program as wide as the schema, for example by codegen",
            Self::Upgrade { .. } => "see the cause, and mend what upgrades values of that version",
            Self::Contended { .. } => "try again later",
            Self::NotAtomic { .. } => "commit them one by one, or declare a group under `atomic`",
            Self::OtherResource { .. } => "commit a batch for each resource",
            Self::OtherContract { .. } => "bind the service with that contract, or make the code anew",
            Self::Header(error) => error.help(),
            Self::Bucket(error) => error.help(),
            Self::Authority(error) => error.help(),
            Self::Schemas { .. } => "check the contract: pleach contract check",
            Self::Engine(error) => error.help(),
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn groups(declared: &[String]) -> String {
    match declared {
        [] => "it declares none".into(),
        declared => format!("it declares {}", declared.join("; ")),
    }
}

/// Why a conditional write did not happen.
///
/// Losing a race is not a failure, so `?` does not carry it away: there is no conversion of this type into [`KvError`].
/// The caller says what a conflict means.
#[derive(Debug, thiserror::Error)]
pub enum KvWriteError {
    /// What was expected of a key did not hold. Nothing was written.
    #[error(transparent)]
    Conflict(Conflict),
    /// Something went wrong.
    #[error(transparent)]
    Failed(KvError),
}

impl KvWriteError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict(conflict) => conflict.kind(),
            Self::Failed(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &str {
        match self {
            Self::Conflict(conflict) => conflict.help(),
            Self::Failed(error) => error.help(),
        }
    }

    /// Of a write that expected nothing and so cannot have met a conflict.
    pub(super) fn without_conflict(self) -> KvError {
        match self {
            Self::Failed(error) => error,
            Self::Conflict(conflict) => {
                let what = format!("a write that expected nothing was refused: {conflict}");
                KvError::Engine(EngineError::Bug { what })
            }
        }
    }
}

impl From<KvError> for KvWriteError {
    fn from(error: KvError) -> Self {
        Self::Failed(error)
    }
}

impl From<CommitError> for KvWriteError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(conflict) => Self::Conflict(conflict),
            CommitError::Engine(error) => Self::Failed(error.into()),
        }
    }
}
