use pleach_engine::Timestamp;
use serde_json::Value;

use super::{StateError, StateRevision};

/// An entry of a state store, of the current version and valid.
#[derive(Clone, Debug, PartialEq)]
pub struct StateEntry<T> {
    /// Its key, relative to the view it was read through; none in a value store.
    pub key: Option<String>,
    /// Its value.
    pub value: T,
    /// Which write it is of.
    pub revision: StateRevision,
    /// When it was written.
    pub updated_at: Timestamp,
    /// When it is gone, if it ever is.
    pub expires_at: Option<Timestamp>,
}

/// An entry of an older version that the contract still reads: valid for that version, and for the program to turn
/// into the current one. Its value is of type `O`: see [`Older`](super::Older).
#[derive(Clone, Debug, PartialEq)]
pub struct Migration<O = Value> {
    /// The entry with its old value.
    pub entry: StateEntry<O>,
    /// The version it was written with.
    pub state_version: String,
    /// The version that is written now.
    pub current_state_version: String,
    /// The digest of the contract that wrote it.
    pub writer_contract_digest: String,
}

/// What a get found.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum GetOutcome<T, O = Value> {
    /// Nothing, or something that has expired.
    Absent,
    /// An entry.
    Found(StateEntry<T>),
    /// An entry of an older version.
    MigrationRequired(Migration<O>),
}

/// What a put did: the row of the table in `docs/state.md` that held.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum PutOutcome<T, O = Value> {
    /// It was written; this is the caller's own value with its own revision.
    Applied(StateEntry<T>),
    /// Nothing was written: an entry was expected, and there is none.
    Absent,
    /// Nothing was written: this entry was not expected.
    Present(StateEntry<T>),
    /// Nothing was written: this entry of an older version was not expected.
    MigrationRequired(Migration<O>),
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DeleteOutcome {
    /// The entry is gone, and this call did it.
    Deleted,
    /// Nothing was done: there was no entry, or not the expected one.
    NotDeleted,
}

/// What a migration did.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum MigrateOutcome<T> {
    /// There is no entry.
    Absent,
    /// The entry was of the current version before: someone else may have been faster.
    Current(StateEntry<T>),
    /// The entry was written anew, under the revision that was read; it expires when the old one did.
    Migrated(StateEntry<T>),
}

/// One place of a page or one event of a watch. A bad one does not spoil the others.
#[derive(Debug)]
#[must_use]
pub enum Cell<T, O = Value> {
    /// An entry.
    Entry(StateEntry<T>),
    /// An entry of an older version.
    MigrationRequired(Migration<O>),
    /// What cannot be read, and why.
    Bad(BadCell),
}

/// An entry that cannot be read.
#[derive(Debug)]
pub struct BadCell {
    /// Its key; none if even that is damaged, if no key of the view names it, or in a value store.
    pub key: Option<String>,
    /// Which write it is of.
    pub revision: StateRevision,
    /// What is wrong with it.
    pub error: StateError,
}

impl<T, O> Cell<T, O> {
    /// The key of the entry, good or bad.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Entry(entry) => entry.key.as_deref(),
            Self::MigrationRequired(migration) => migration.entry.key.as_deref(),
            Self::Bad(bad) => bad.key.as_deref(),
        }
    }

    /// Which write the entry is of, good or bad.
    pub fn revision(&self) -> StateRevision {
        match self {
            Self::Entry(entry) => entry.revision,
            Self::MigrationRequired(migration) => migration.entry.revision,
            Self::Bad(bad) => bad.revision,
        }
    }
}

/// Some entries of a map, and how many there are.
#[derive(Debug)]
pub struct StatePage<T, O = Value> {
    /// The entries in the byte order of their keys.
    pub entries: Vec<Cell<T, O>>,
    /// How many entries the map or view has, bad ones included.
    pub count: u64,
    /// Where the page begins.
    pub offset: u64,
    /// How many were asked for.
    pub limit: usize,
    /// Where the next page begins; none if this one ends with the last entry.
    pub next_offset: Option<u64>,
}

impl<T> StateEntry<T> {
    /// The same entry with another value.
    pub(super) fn with<U>(self, value: U) -> StateEntry<U> {
        let Self { key, revision, updated_at, expires_at, .. } = self;
        StateEntry { key, value, revision, updated_at, expires_at }
    }
}
