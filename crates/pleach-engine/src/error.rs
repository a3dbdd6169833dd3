use std::path::PathBuf;
use std::time::Duration;

use humantime::format_duration;

use crate::{BucketName, ConsumerName, Expectation, Key, Revision};

/// What the caller does next, the same for every error of Pleach. Doors turn it into a status, a reply
/// prefix or an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Correct the request; repeating it cannot help.
    Invalid,
    /// Ask someone who may, or take the way that the help names.
    NotAllowed,
    /// Create what is missing, or name another.
    NotFound,
    /// Look again at what is there, and decide anew.
    Conflict,
    /// What was asked for by revision or page token is no longer kept: start over from now.
    Compacted,
    /// Choose an engine or a configuration that can.
    Unsupported,
    /// Try again later, perhaps after freeing something.
    Unavailable,
    /// It may have happened or not: look at what is there before doing it again.
    Unknown,
    /// Open the store again.
    Closed,
    /// What is stored is damaged or breaks its contract: look at the report before doing anything else.
    Corrupt,
    /// Report it.
    Bug,
}

impl ErrorKind {
    /// Its name, the same in every output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotAllowed => "not_allowed",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Compacted => "compacted",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Closed => "closed",
            Self::Corrupt => "corrupt",
            Self::Bug => "bug",
        }
    }
}

/// A name of a bucket or a consumer, a key or a filter that breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing at all.
    #[error("it is empty")]
    Empty,
    /// Too many bytes.
    #[error("{text:?} has {bytes} bytes, more than {limit}")]
    TooLong {
        /// Its beginning.
        text: String,
        /// Its length.
        bytes: usize,
        /// The longest it may be.
        limit: usize,
    },
    /// A character that is not allowed.
    #[error("{text:?} has {character:?} at byte {at}, which is not allowed there")]
    Character {
        /// Its beginning.
        text: String,
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
    /// Nothing between two dots, or before the first or after the last.
    #[error("{text:?} has an empty token at byte {at}")]
    EmptyToken {
        /// Its beginning.
        text: String,
        /// Where the token would be.
        at: usize,
    },
    /// A wildcard that is not a token of its own, or `>` before the end.
    #[error("{text:?} has a misplaced wildcard in the token at byte {at}")]
    Wildcard {
        /// Its beginning.
        text: String,
        /// Where the token begins.
        at: usize,
    },
    /// It begins as only the stores' own keys do.
    #[error("{text:?} starts with `_kv`, which is reserved")]
    Reserved {
        /// Its beginning.
        text: String,
    },
}

impl InvalidName {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Empty => "give at least one character",
            Self::TooLong { .. } => "shorten it, or use a hash of it",
            Self::Character { .. } => {
                "names of buckets and consumers take a-z A-Z 0-9 _ -, keys also / = and dots between tokens; other text needs a key codec"
            }
            Self::EmptyToken { .. } => "put something between the dots, and none at the ends",
            Self::Wildcard { .. } => {
                "`*` stands for one whole token, `>` only at the end: user.*.cart, user.>"
            }
            Self::Reserved { .. } => "choose another beginning",
        }
    }
}

/// A header that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// Its name breaks the rules.
    #[error("header name {name:?} is not 1 to 128 of a-z A-Z 0-9 _ -")]
    Name {
        /// Its beginning.
        name: String,
    },
    /// Its value holds a control character.
    #[error("header {name:?} has a control character in its value")]
    Value {
        /// Its name.
        name: String,
    },
    /// All together they are too large.
    #[error("headers of {bytes} bytes are more than {limit}")]
    TooLarge {
        /// What they would take.
        bytes: usize,
        /// What they may take.
        limit: usize,
    },
}

impl InvalidHeader {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Name { .. } => "use a name such as Trace-Id",
            Self::Value { .. } => "encode the value, as base64 for example",
            Self::TooLarge { .. } => "headers are for small facts: put the rest into the value",
        }
    }
}

/// An expectation of a batch did not hold, and nothing of it was committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("conflict on {bucket}/{key}: expected {expected}, found {}", self.found())]
pub struct Conflict {
    /// The bucket.
    pub bucket: BucketName,
    /// The first key, in the order of the batch, whose expectation did not hold.
    pub key: Key,
    /// What was expected.
    pub expected: Expectation,
    /// The key's newest record, marker or value; none if it has none or its value has expired.
    pub actual: Option<Revision>,
}

impl Conflict {
    fn found(&self) -> String {
        self.actual.map_or_else(|| "no value".into(), |revision| format!("revision {revision}"))
    }

    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Conflict
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        "read the key again and retry with the revision you get"
    }
}

/// Why a commit did not happen. Losing a race is not a failure: there is deliberately no way for `?` to
/// turn it into an [`EngineError`].
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// An expectation did not hold.
    #[error(transparent)]
    Conflict(Conflict),
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl CommitError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict(conflict) => conflict.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Conflict(conflict) => conflict.help(),
            Self::Engine(error) => error.help(),
        }
    }
}

/// What an engine could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum EngineError {
    #[error("there is no bucket {bucket}")]
    BucketNotFound { bucket: BucketName },
    #[error("bucket {bucket} exists with a different {}", .differences.join(", "))]
    BucketExists { bucket: BucketName, differences: Vec<&'static str> },
    #[error("there are {limit} buckets already")]
    TooManyBuckets { limit: usize },
    #[error("bucket {bucket} has no consumer {consumer}")]
    ConsumerNotFound { bucket: BucketName, consumer: ConsumerName },
    #[error("bucket {bucket} has {limit} consumers already")]
    TooManyConsumers { bucket: BucketName, limit: usize },
    #[error("{field} of the bucket configuration: {reason}")]
    InvalidConfig { field: &'static str, reason: String },
    #[error("a TTL of {} is not between {} and {} days", format_duration(*.ttl), format_duration(*.min), .max.as_secs() / 86_400)]
    TtlOutOfRange { ttl: Duration, min: Duration, max: Duration },
    #[error("the value of {bytes} bytes for {bucket}/{key} is larger than the bucket's limit of {limit}")]
    ValueTooLarge { bucket: BucketName, key: Key, bytes: usize, limit: u32 },
    #[error("the batch is empty")]
    BatchEmpty,
    #[error("the batch has {operations} operations, more than {limit}")]
    BatchTooLong { operations: usize, limit: usize },
    #[error("the batch has {bytes} bytes, more than {limit}")]
    BatchTooLarge { bytes: usize, limit: usize },
    #[error("the batch has two operations or checks on {key}")]
    DuplicateKey { key: Key },
    #[error("{count} filters are more than {limit}")]
    TooManyFilters { count: usize, limit: usize },
    #[error("a page of {limit} entries is not between 1 and {max}")]
    PageLimit { limit: usize, max: usize },
    #[error("the page token cannot be used here: {reason}")]
    InvalidPageToken { reason: &'static str },
    #[error("revision {asked} is in the future: the newest is {newest}")]
    FutureRevision { asked: Revision, newest: Revision },
    #[error("what was asked for is no longer kept; the oldest kept revision is {oldest}")]
    Compacted { oldest: Revision },
    #[error("this engine has no {what}")]
    Unsupported { what: &'static str },
    #[error("the store at {} is in use by {holder}", .path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("{} is not a Pleach store", .path.display())]
    NotAStore { path: PathBuf },
    #[error("{} has format {found}, and this program reads up to {supported}", .path.display())]
    UnknownFormat { path: PathBuf, found: u32, supported: u32 },
    #[error("no space is left for {}", .path.display())]
    DiskFull { path: PathBuf },
    #[error("cannot {action} {}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} is damaged at byte {offset}: {what}", .path.display())]
    Corrupt { path: PathBuf, offset: u64, what: String },
    #[error("the index is damaged: {what}")]
    CorruptIndex { what: String },
    #[error("the store takes no more writes, because {reason}")]
    ReadOnly { reason: String },
    #[error("too much is waiting to be committed")]
    Overloaded,
    #[error("the acknowledgement of a commit to {bucket} was lost ({reason}): it may have happened or not")]
    UnknownOutcome { bucket: BucketName, reason: String },
    #[error("the server cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("the server refused to {action}: {reason}")]
    Refused { action: String, reason: String },
    #[error("the server does not permit us to {action}: {reason}")]
    Denied { action: String, reason: String },
    #[error("{name} on the server is not a bucket: {reason}")]
    NotABucket { name: String, reason: String },
    #[error("{bucket}/{key} was not written, because the contract {lineage} says otherwise: {reason}")]
    BrokenContract { bucket: BucketName, key: Key, lineage: String, reason: String },
    #[error("bucket {bucket} belongs to {owner} and is not to be {action} by hand")]
    ContractOwned { bucket: BucketName, owner: String, action: &'static str },
    #[error(
        "bucket {bucket} is being copied from another store and cannot be {action} before that is complete"
    )]
    Arriving { bucket: BucketName, action: &'static str },
    #[error("bucket {bucket} is kept by the store itself and is not to be {action} by hand")]
    StoreOwned { bucket: BucketName, action: &'static str, instead: &'static str },
    #[error("the key {bucket}/{key} starts with `_kv`: only the store itself writes it")]
    ReservedKey { bucket: BucketName, key: Key },
    #[error("the record {bucket}/{key} at revision {revision} is damaged: {what}")]
    DamagedRecord { bucket: BucketName, key: Key, revision: Revision, what: String },
    #[error("the store is closed")]
    Closed,
    #[error("this is a bug in Pleach: {what}")]
    Bug { what: String },
}

impl EngineError {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::BucketNotFound { .. } | Self::ConsumerNotFound { .. } => ErrorKind::NotFound,
            Self::BucketExists { .. } => ErrorKind::Conflict,
            Self::TooManyBuckets { .. }
            | Self::TooManyConsumers { .. }
            | Self::InvalidConfig { .. }
            | Self::TtlOutOfRange { .. }
            | Self::ValueTooLarge { .. }
            | Self::BatchEmpty
            | Self::BatchTooLong { .. }
            | Self::BatchTooLarge { .. }
            | Self::DuplicateKey { .. }
            | Self::TooManyFilters { .. }
            | Self::PageLimit { .. }
            | Self::InvalidPageToken { .. }
            | Self::FutureRevision { .. }
            | Self::NotAStore { .. }
            | Self::Refused { .. }
            | Self::NotABucket { .. }
            | Self::BrokenContract { .. }
            | Self::ReservedKey { .. } => ErrorKind::Invalid,
            Self::Denied { .. } | Self::ContractOwned { .. } | Self::StoreOwned { .. } => {
                ErrorKind::NotAllowed
            }
            Self::Compacted { .. } => ErrorKind::Compacted,
            Self::Unsupported { .. } | Self::UnknownFormat { .. } => ErrorKind::Unsupported,
            Self::Locked { .. }
            | Self::DiskFull { .. }
            | Self::Io { .. }
            | Self::Overloaded
            | Self::Arriving { .. }
            | Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::UnknownOutcome { .. } => ErrorKind::Unknown,
            Self::Corrupt { .. } | Self::CorruptIndex { .. } | Self::DamagedRecord { .. } => {
                ErrorKind::Corrupt
            }
            Self::ReadOnly { .. } | Self::Closed => ErrorKind::Closed,
            Self::Bug { .. } => ErrorKind::Bug,
        }
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::BucketNotFound { .. } => "create it first, or list the buckets there are",
            Self::BucketExists { .. } => "update the bucket instead, or ask for the configuration it has",
            Self::TooManyBuckets { .. } => "delete buckets you do not need, or use keys with a common prefix",
            Self::ConsumerNotFound { .. } => "create it first, or list the consumers of the bucket",
            Self::TooManyConsumers { .. } => "delete consumers that nobody reads for any more",
            Self::InvalidConfig { .. } => "correct that field",
            Self::TtlOutOfRange { .. } => "give a TTL in that range, or none",
            Self::ValueTooLarge { .. } => {
                "raise the bucket's limit, or store the value elsewhere and its address here"
            }
            Self::BatchEmpty => "add an operation",
            Self::BatchTooLong { .. } | Self::BatchTooLarge { .. } => "commit it in several batches",
            Self::DuplicateKey { .. } => {
                "keep one of the two; an operation can expect something of its own key"
            }
            Self::TooManyFilters { .. } => "use fewer and wider filters",
            Self::PageLimit { .. } => "ask for a page in that range, and for the next with its token",
            Self::InvalidPageToken { .. } => {
                "use the token with the query it came from, or start over without one"
            }
            Self::FutureRevision { .. } => "use a revision this store has returned",
            Self::Compacted { .. } => "start over from the latest values",
            Self::Unsupported { .. } => "choose another engine, or do without",
            Self::Locked { .. } => "close the other program, or use another store",
            Self::NotAStore { .. } => "name the directory of a store, or an empty or new one",
            Self::UnknownFormat { .. } => "open it with a newer version of Pleach",
            Self::DiskFull { .. } => {
                "free some space: nothing was lost, and writes go on as soon as they can"
            }
            Self::Io { .. } => "see the cause, mend it, and try again",
            Self::Corrupt { .. } => "keep a copy of the store's directory, then restore from a backup",
            Self::CorruptIndex { .. } => {
                "close the store, move its `index` directory away and open it again: it is built anew from the log"
            }
            Self::ReadOnly { .. } => "open the store again to recover",
            Self::Overloaded => "wait a moment, and commit with fewer writers at once",
            Self::UnknownOutcome { .. } => {
                "read the keys before you commit it again, unless doing it twice does no harm"
            }
            Self::Unreachable { .. } => "see that the servers run and can be reached, and try again",
            Self::Refused { .. } => "correct what the server names: a limit or a setting",
            Self::Denied { .. } => "log in as someone who may, or have the permission granted",
            Self::NotABucket { .. } => "choose another name, or leave what is there to those who made it",
            Self::BrokenContract { .. } => {
                "write what the contract asks for, change it with `pleach contract plan`, or break the glass"
            }
            Self::ContractOwned { .. } => {
                "change the contract and see what that does with `pleach contract plan`, or break the glass"
            }
            Self::Arriving { .. } => {
                "complete the migration or import that fills it, or delete the bucket to give that up"
            }
            Self::StoreOwned { instead, .. } => instead,
            Self::ReservedKey { .. } => "choose a key that does not start with `_kv`",
            Self::DamagedRecord { .. } => {
                "see all that is damaged with `pleach contract status`, keep a copy of the store, and restore a backup"
            }
            Self::Closed => "open the store again",
            Self::Bug { .. } => "please report it with the message above",
        }
    }
}
