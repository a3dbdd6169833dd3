use pleach_engine::{Headers, Key, Revision, Timestamp};
use serde_json::Value;

use crate::Envelope;

/// A stored value as it is read: of the current version, or of an older one that is still accepted.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an older version is not the current one"]
pub enum Read<T> {
    /// A value of the version that is written now.
    Current(Typed<T>),
    /// A value of an older version. [`Keyspace::upgrade`](super::Keyspace::upgrade) makes it a current one.
    MigrationRequired(Old),
}

/// An entry with a value of the current version.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed<T> {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: T,
    /// Its revision, for an update.
    pub revision: Revision,
    /// When it was written.
    pub time: Timestamp,
    /// When it is gone.
    pub expires: Option<Timestamp>,
    /// What travels with it.
    pub headers: Headers,
}

/// An entry with a value of an older version, which the schema of that version allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Old {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Value,
    /// The version it has.
    pub version: String,
    /// The version that is written now.
    pub current_version: String,
    /// Its revision, for an update.
    pub revision: Revision,
    /// When it was written.
    pub time: Timestamp,
    /// When it is gone.
    pub expires: Option<Timestamp>,
    /// What travels with it.
    pub headers: Headers,
}

impl<T> Read<T> {
    /// The key.
    pub fn key(&self) -> &Key {
        match self {
            Self::Current(typed) => &typed.key,
            Self::MigrationRequired(old) => &old.key,
        }
    }

    /// The revision, for an update.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Current(typed) => typed.revision,
            Self::MigrationRequired(old) => old.revision,
        }
    }

    /// The entry, if its value is of the current version.
    pub fn current(self) -> Option<Typed<T>> {
        match self {
            Self::Current(typed) => Some(typed),
            Self::MigrationRequired(_) => None,
        }
    }
}

impl<T> Typed<T> {
    /// Who wrote it and what for; none if it was written before its bucket had a contract.
    pub fn envelope(&self) -> Option<Envelope> {
        Envelope::read(&self.headers)
    }
}

impl Old {
    /// Who wrote it and what for; none if it was written before its bucket had a contract.
    pub fn envelope(&self) -> Option<Envelope> {
        Envelope::read(&self.headers)
    }
}
