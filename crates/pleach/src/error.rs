use pleach_engine::{
    BucketName, CommitError, Conflict, ConsumerName, EngineError, ErrorKind, InvalidHeader, InvalidName, Key,
    Revision,
};
use pleach_stores::{AuthorityError, KvError};

use crate::codec::CodecError;
use crate::migrate::MigrateError;
use crate::projection::ProjectionError;
use crate::url::InvalidUrl;

/// What went wrong, except a lost race, which is an outcome of its own: see [`WriteError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text that is no key.
    #[error("this is no key")]
    Key(#[source] InvalidName),
    /// Text that is no bucket name.
    #[error("this is no bucket name")]
    BucketName(#[source] InvalidName),
    /// Text that is no name of a consumer or a projection.
    #[error("this is no name of a consumer")]
    ConsumerName(#[source] InvalidName),
    /// Text that is no filter.
    #[error("this is no filter")]
    Filter(#[source] InvalidName),
    /// Headers that an entry cannot have.
    #[error(transparent)]
    Header(#[from] InvalidHeader),
    /// A URL that names no store.
    #[error(transparent)]
    Url(InvalidUrl),
    /// A typed key that has no key to be stored under.
    #[error("the key for bucket {bucket} cannot be encoded")]
    EncodeKey {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// Why not.
        source: CodecError,
    },
    /// A typed value that has no bytes to be stored as.
    #[error("the value for {bucket}/{key} cannot be encoded")]
    EncodeValue {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// The key it was meant for.
        key: Key,
        /// Why not.
        source: CodecError,
    },
    /// A typed value whose bytes its codec could not decode again. It was not written.
    #[error("the value for {bucket}/{key} was not written, since it could not be read back")]
    NotReadBack {
        /// The bucket it was meant for.
        bucket: BucketName,
        /// The key it was meant for.
        key: Key,
        /// Why not.
        source: CodecError,
    },
    /// A stored key that the key codec did not make.
    #[error("the key of {bucket}/{key} at revision {revision} cannot be decoded")]
    DecodeKey {
        /// The bucket.
        bucket: BucketName,
        /// The key as it is stored.
        key: Key,
        /// The record.
        revision: Revision,
        /// Why not.
        source: CodecError,
    },
    /// A stored value that the value codec did not make.
    #[error("the value of {bucket}/{key} at revision {revision} cannot be decoded")]
    DecodeValue {
        /// The bucket.
        bucket: BucketName,
        /// The key as it is stored.
        key: Key,
        /// The record.
        revision: Revision,
        /// Why not.
        source: CodecError,
    },
    /// A bucket that takes more memory than its read cache may.
    #[error("the read cache of bucket {bucket} would take more than its {limit} bytes")]
    CacheFull {
        /// The bucket.
        bucket: BucketName,
        /// What the cache may take.
        limit: usize,
    },
    /// No thread could be started.
    #[error("no thread could be started for the read cache of bucket {bucket}")]
    NoThread {
        /// The bucket.
        bucket: BucketName,
        /// Why not.
        source: std::io::Error,
    },
    /// Changes that a consumer has not acknowledged are no longer kept.
    #[error("consumer {consumer} of bucket {bucket} is too far behind: the oldest change kept is {oldest}")]
    ConsumerBehind {
        /// The bucket.
        bucket: BucketName,
        /// The consumer.
        consumer: ConsumerName,
        /// Where the feed of the bucket begins.
        oldest: Revision,
    },
    /// A projection cannot go on.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// A migration cannot begin, or go on.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// What stands between the store and a contract.
    #[error(transparent)]
    Contract(#[from] AuthorityError),
    /// What a resource of a contract could not do.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// What the engine could not do.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Error {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Key(error) | Self::BucketName(error) | Self::ConsumerName(error) | Self::Filter(error) => {
                error.kind()
            }
            Self::Header(error) => error.kind(),
            Self::Url(error) => error.kind(),
            Self::EncodeKey { .. } | Self::EncodeValue { .. } | Self::NotReadBack { .. } => {
                ErrorKind::Invalid
            }
            Self::DecodeKey { .. } | Self::DecodeValue { .. } => ErrorKind::Corrupt,
            Self::CacheFull { .. } | Self::NoThread { .. } => ErrorKind::Unavailable,
            Self::ConsumerBehind { .. } => ErrorKind::Compacted,
            Self::Projection(error) => error.kind(),
            Self::Migrate(error) => error.kind(),
            Self::Contract(error) => error.kind(),
            Self::Kv(error) => error.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &str {
        match self {
            Self::Key(error) | Self::BucketName(error) | Self::ConsumerName(error) | Self::Filter(error) => {
                error.help()
            }
            Self::Header(error) => error.help(),
            Self::Url(error) => error.help(),
            Self::EncodeKey { source, .. } | Self::EncodeValue { source, .. } => source.help(),
            Self::NotReadBack { .. } => {
                "make the type read what it writes: no NaN or infinity, and no field that is read and not written"
            }
            Self::DecodeValue { source: source @ CodecError::TooLarge { .. }, .. } => source.help(),
            Self::DecodeKey { .. } | Self::DecodeValue { .. } => {
                "read it with the codec it was written with, or without one, and write it anew"
            }
            Self::CacheFull { .. } => "give the cache more bytes, or use the bucket without one",
            Self::NoThread { .. } => "see the cause below, or use the bucket without a cache",
            Self::ConsumerBehind { .. } => {
                "what it has missed is gone: read the latest values, then reset it: pleach consumer reset"
            }
            Self::Projection(error) => error.help(),
            Self::Migrate(error) => error.help(),
            Self::Contract(error) => error.help(),
            Self::Kv(error) => error.help(),
            Self::Engine(error) => error.help(),
        }
    }
}

/// Why a conditional write did not happen.
///
/// Losing a race is not a failure, so `?` does not carry it away: there is no conversion of this type into
/// [`Error`]. The caller says what a conflict means.
///
/// ```
/// # use pleach::{Bucket, Error, Revision, WriteError};
/// enum Saved { At(Revision), TooLate }
///
/// async fn save(carts: &Bucket, seen: Revision) -> Result<Saved, Error> {
///     match carts.update("user.42", "4 apples", seen).await {
///         Ok(revision) => Ok(Saved::At(revision)),
///         Err(WriteError::Conflict(_)) => Ok(Saved::TooLate),
///         Err(WriteError::Failed(error)) => Err(error),
///     }
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use pleach::{Bucket, Error, Revision};
/// async fn save(carts: &Bucket, seen: Revision) -> Result<Revision, Error> {
///     Ok(carts.update("user.42", "4 apples", seen).await?) // a lost race is not an `Error`
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What was expected of a key did not hold. Nothing was written.
    #[error(transparent)]
    Conflict(Conflict),
    /// Something went wrong.
    #[error(transparent)]
    Failed(Error),
}

impl WriteError {
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
    pub(crate) fn without_conflict(self) -> Error {
        match self {
            Self::Failed(error) => error,
            Self::Conflict(conflict) => {
                let what = format!("a write that expected nothing was refused: {conflict}");
                Error::Engine(EngineError::Bug { what })
            }
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<EngineError> for WriteError {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<InvalidHeader> for WriteError {
    fn from(error: InvalidHeader) -> Self {
        Self::Failed(error.into())
    }
}

impl From<CommitError> for WriteError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(conflict) => Self::Conflict(conflict),
            CommitError::Engine(error) => Self::Failed(error.into()),
        }
    }
}
