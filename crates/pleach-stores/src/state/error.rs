use std::time::Duration;

use pleach_contract::{Problems, Refused, StoreKind};
use pleach_engine::{CommitError, EngineError, ErrorKind, InvalidHeader};

use super::StateRevision;
use crate::AuthorityError;

/// Why State could not do what it was asked for. What a write found in its way is no error but an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum StateError {
    #[error("{caller} has no state: only users and devices do")]
    NotAllowed { caller: String },
    #[error("this cannot be a principal: {reason}")]
    InvalidPrincipal { reason: String },
    #[error("the contract {contract} declares no state store {store:?}")]
    UndeclaredStore { contract: String, store: String },
    #[error("the state store {store} is a {}, not a {}", word(*found), word(*wanted))]
    WrongKind { store: String, found: StoreKind, wanted: StoreKind },
    #[error("the program knows the state store {store} with the versions {}, and the contract declares {}", known.join(", "), declared.join(", "))]
    OtherVersions { store: String, known: Vec<String>, declared: Vec<String> },
    #[error("the state store {store} holds one value and takes no key")]
    KeyNotTaken { store: String },
    #[error("the state store {store} is a map: it needs a key that is not empty")]
    KeyMissing { store: String },
    #[error("the key has {bytes} bytes, more than {limit}")]
    KeyTooLong { bytes: usize, limit: usize },
    #[error("the prefix has {bytes} bytes, more than {limit}")]
    PrefixTooLong { bytes: usize, limit: usize },
    #[error("the value is not JSON: {reason}")]
    NotJson { reason: String },
    #[error("the value has {bytes} bytes of compact JSON, more than {limit}")]
    ValueTooLarge { bytes: usize, limit: usize },
    #[error("the state store {store} does not take the value: {refused}")]
    InvalidValue { store: String, refused: Refused },
    #[error("a watch cannot begin after a revision that no reply gave")]
    InvalidRevision,
    #[error("a TTL of {ttl:?} is not between {min:?} and {} days", max.as_secs() / 86_400)]
    TtlOutOfRange { ttl: Duration, min: Duration, max: Duration },
    #[error("a page of {limit} entries is more than {max}")]
    LimitTooLarge { limit: usize, max: usize },
    #[error("{place} at {revision}: /stateVersion: {version:?} is none of {}", known.join(", "))]
    UnknownVersion { place: String, revision: StateRevision, version: String, known: Vec<String> },
    #[error("{place} at {revision} is not what its version {version:?} asks for: {refused}")]
    InvalidStored { place: String, revision: StateRevision, version: String, refused: Refused },
    #[error("the key of {place} has empty segments: a view, whose keys are paths, cannot name it")]
    NotInView { place: String },
    #[error("the contract in force of {lineage} does not take the value of {place}: {reason}")]
    NotInForce { place: String, lineage: String, reason: String },
    #[error("{place} at {revision} is damaged: {what}")]
    Corrupt { place: String, revision: StateRevision, what: String },
    #[error("the stored value of {place} is valid, but no {expected}: {reason}")]
    WrongType { place: String, expected: &'static str, reason: String },
    #[error("the value for {place} was not written, since it could not be read back as {expected}: {reason}")]
    NotReadBack { place: String, expected: &'static str, reason: String },
    #[error("the value of {place} could not be migrated: {reason}")]
    NotMigrated { place: String, reason: String },
    #[error("{place} changed {attempts} times while it was to be written")]
    Contended { place: String, attempts: usize },
    #[error("{store:?} cannot be the name of a state store")]
    InvalidTarget { store: String },
    #[error("an act of an administrator needs {what}")]
    NotAccountable { what: &'static str },
    #[error("the record {key} of what administrators did is damaged: {what}")]
    CorruptRecord { key: String, what: String },
    #[error("the schemas of the contract cannot be used: {}", first(problems))]
    Contract { problems: Problems },
    #[error("the contract's version or digest cannot be stored")]
    Header(#[from] InvalidHeader),
    #[error(transparent)]
    Authority(Box<AuthorityError>),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<AuthorityError> for StateError {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Engine(error) => Self::Engine(error),
            other => Self::Authority(Box::new(other)),
        }
    }
}

impl StateError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAllowed { .. } => ErrorKind::NotAllowed,
            Self::InvalidPrincipal { .. }
            | Self::UndeclaredStore { .. }
            | Self::WrongKind { .. }
            | Self::OtherVersions { .. }
            | Self::KeyNotTaken { .. }
            | Self::KeyMissing { .. }
            | Self::KeyTooLong { .. }
            | Self::PrefixTooLong { .. }
            | Self::NotJson { .. }
            | Self::ValueTooLarge { .. }
            | Self::InvalidValue { .. }
            | Self::InvalidRevision
            | Self::TtlOutOfRange { .. }
            | Self::LimitTooLarge { .. }
            | Self::NotInView { .. }
            | Self::NotInForce { .. }
            | Self::WrongType { .. }
            | Self::NotReadBack { .. }
            | Self::NotMigrated { .. }
            | Self::InvalidTarget { .. }
            | Self::NotAccountable { .. }
            | Self::Header(_)
            | Self::Contract { .. } => ErrorKind::Invalid,
            Self::UnknownVersion { .. }
            | Self::InvalidStored { .. }
            | Self::Corrupt { .. }
            | Self::CorruptRecord { .. } => ErrorKind::Corrupt,
            Self::Contended { .. } => ErrorKind::Unavailable,
            Self::Authority(error) => error.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } => {
                "authenticate as a user or a device; a service keeps its data in KV resources"
            }
            Self::InvalidPrincipal { .. } => {
                "give `user:ID` or `device:ID` with an id that is not empty and not too long"
            }
            Self::UndeclaredStore { .. } => {
                "declare the store under `state` in the contract, or correct its name"
            }
            Self::WrongKind { .. } => "use the store as the kind that the contract declares",
            Self::OtherVersions { .. } => "open the session with the contract that the program was made of",
            Self::KeyNotTaken { .. } => "leave the key out",
            Self::KeyMissing { .. } => "give a key",
            Self::KeyTooLong { .. } | Self::PrefixTooLong { .. } => {
                "take a shorter one, such as a digest of the long part"
            }
            Self::NotJson { .. } => "write the value as JSON",
            Self::ValueTooLarge { .. } => {
                "split the value over several keys, or keep what is large elsewhere"
            }
            Self::InvalidValue { refused, .. } => refused.help(),
            Self::InvalidRevision => "hand back a revision exactly as a reply gave it",
            Self::TtlOutOfRange { .. } => "give a TTL in that range, or none",
            Self::LimitTooLarge { .. } => "ask for fewer, and for the rest with the next offset",
            Self::NotInView { .. } => "use the whole map and the whole key for this entry",
            Self::NotInForce { .. } => {
                "build the program with the contract in force; `pleach contract status` shows which that is"
            }
            Self::UnknownVersion { .. } => {
                "list the version under `acceptedVersions` again, or put a new value over the entry"
            }
            Self::InvalidStored { .. } => {
                "give the changed shape a new `stateVersion`, or put a valid value over the entry"
            }
            Self::Corrupt { .. } => {
                "put a new value over the entry or delete it; `pleach state admin get` shows what is stored"
            }
            Self::WrongType { .. } => "make the type agree with the contract's schema",
            Self::NotReadBack { .. } => {
                "make the type read what it writes: no NaN or infinity, and no field that is read and not written"
            }
            Self::NotMigrated { .. } => "see the reason; the entry is as it was",
            Self::Contended { .. } => "try again with fewer writers of this key at once",
            Self::InvalidTarget { .. } => "find out which stores there are, and name one of those",
            Self::NotAccountable { .. } => "say who acts, and why",
            Self::CorruptRecord { .. } => "keep a copy of the store, then look at that record",
            Self::Contract { .. } => "check the contract, and correct what is wrong with it",
            Self::Header(_) => "check the contract: versions are letters, digits, `.`, `_` and `-`",
            Self::Authority(error) => error.help(),
            Self::Engine(error) => error.help(),
        }
    }

    /// What is left of a failed commit that expected nothing, or whose conflict makes no sense.
    pub(super) fn unexpected(error: CommitError) -> Self {
        match error {
            CommitError::Engine(error) => error.into(),
            CommitError::Conflict(conflict) => {
                EngineError::Bug { what: format!("a commit without an expectation lost a race: {conflict}") }
                    .into()
            }
        }
    }
}

/// Enough of `text` to recognise it in a message.
pub(super) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 64;
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn word(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Value => "value store",
        StoreKind::Map => "map",
    }
}

fn first(problems: &Problems) -> String {
    problems.list().first().map_or_else(String::new, |problem| problem.message.clone())
}
