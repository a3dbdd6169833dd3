use std::collections::BTreeSet;
use std::sync::Arc;

use pleach_engine::{Batch, Committed, Expectation, Operation, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{KvError, KvWriteError};
use super::key::KeyOf;
use super::keyspace::Keyspace;
use super::resource::{Resource, Trace};

/// Writes that are committed together or not at all: to one keyspace, or to keyspaces that an atomic group of the
/// contract names together.
#[derive(Debug)]
#[must_use = "a batch does nothing until it is committed"]
pub struct KvBatch {
    resource: Arc<Resource>,
    trace: Trace,
    batch: Batch,
    /// The keyspaces that it writes to.
    indexes: BTreeSet<usize>,
    /// The first thing that was wrong, for `commit` to report.
    error: Option<KvError>,
}

impl KvBatch {
    pub(super) fn new(resource: Arc<Resource>, trace: Trace) -> Self {
        Self { resource, trace, batch: Batch::new(), indexes: BTreeSet::new(), error: None }
    }

    /// Gives a key a value, whatever it had before.
    pub fn put<T: Serialize + DeserializeOwned>(
        self,
        keyspace: &Keyspace<T>,
        key: &(impl KeyOf + ?Sized),
        value: &T,
    ) -> Self {
        self.write(keyspace, key, value, Expectation::Any)
    }

    /// Gives a key a value if it has none.
    pub fn create<T: Serialize + DeserializeOwned>(
        self,
        keyspace: &Keyspace<T>,
        key: &(impl KeyOf + ?Sized),
        value: &T,
    ) -> Self {
        self.write(keyspace, key, value, Expectation::Absent)
    }

    /// Gives a key a value if its newest record is still the one at `seen`.
    pub fn update<T: Serialize + DeserializeOwned>(
        self,
        keyspace: &Keyspace<T>,
        key: &(impl KeyOf + ?Sized),
        value: &T,
        seen: Revision,
    ) -> Self {
        self.write(keyspace, key, value, Expectation::Revision(seen))
    }

    /// Deletes the value of a key and keeps its history.
    pub fn delete<T>(self, keyspace: &Keyspace<T>, key: &(impl KeyOf + ?Sized)) -> Self {
        let operation = keyspace.key(key).map(Operation::delete);
        self.add(keyspace, operation)
    }

    /// Deletes the value of a key if its newest record is still the one at `seen`.
    pub fn delete_seen<T>(self, keyspace: &Keyspace<T>, key: &(impl KeyOf + ?Sized), seen: Revision) -> Self {
        let key = keyspace.key(key);
        let operation = key.map(|key| Operation::delete(key).expecting(Expectation::Revision(seen)));
        self.add(keyspace, operation)
    }

    /// Commits them all, or none of them.
    ///
    /// # Errors
    /// A conflict on the first key, in the order of the batch, of which something else was expected; the first thing
    /// that was wrong with a write; keyspaces that no atomic group names together; or what the engine could not do.
    pub async fn commit(self) -> Result<Committed, KvWriteError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        self.resource.check_atomic(&self.indexes)?;
        self.resource.commit(self.batch).await
    }

    fn write<T: Serialize + DeserializeOwned>(
        self,
        keyspace: &Keyspace<T>,
        key: &(impl KeyOf + ?Sized),
        value: &T,
        expect: Expectation,
    ) -> Self {
        // What the keyspace was told about the write is more than what the batch was.
        let trace = if keyspace.trace.is_some() { &keyspace.trace } else { &self.trace };
        let operation = keyspace.write(key, value, expect, trace);
        self.add(keyspace, operation)
    }

    fn add<T>(mut self, keyspace: &Keyspace<T>, operation: Result<Operation, KvError>) -> Self {
        let (ours, theirs) = (&self.resource, &keyspace.resource);
        let is_ours = ours.bucket() == theirs.bucket() && ours.digest() == theirs.digest();
        let operation = if is_ours { operation } else { Err(self.other(keyspace)) };
        match operation {
            Ok(operation) => {
                self.batch.push(operation);
                self.indexes.insert(keyspace.index);
            }
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    fn other<T>(&self, keyspace: &Keyspace<T>) -> KvError {
        KvError::OtherResource {
            keyspace: keyspace.name().to_owned(),
            bucket: keyspace.resource.bucket().clone(),
            batch: self.resource.bucket().clone(),
        }
    }
}
