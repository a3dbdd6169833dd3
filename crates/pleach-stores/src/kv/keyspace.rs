use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use pleach_contract::key;
use pleach_engine::{At, Expectation, Key, Operation, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{KvError, KvWriteError};
use super::key::KeyOf;
use super::read::Read;
use super::resource::{self, Resource, Trace};
use super::upgrade::Hook;
use crate::CompiledKeyspace;
use crate::read_back::read_back;

/// The keys of one form and their values, of the type `T`. A handle, cheap to clone.
pub struct Keyspace<T> {
    pub(super) resource: Arc<Resource>,
    pub(super) index: usize,
    pub(super) trace: Trace,
    /// What upgrades values of older versions when they are read.
    pub(super) hook: Option<Arc<Hook<T>>>,
    value: PhantomData<fn() -> T>,
}

impl<T> Keyspace<T> {
    pub(super) fn new(resource: Arc<Resource>, index: usize, trace: Trace) -> Self {
        Self { resource, index, trace, hook: None, value: PhantomData }
    }

    /// Its name in the contract; that of its resource, if that declares no keyspaces.
    pub fn name(&self) -> &str {
        self.resource.name(self.index)
    }

    /// The version of what is written.
    pub fn version(&self) -> &str {
        self.compiled().version()
    }

    /// The same, with a trace id in the envelope of whatever is written through it: what it was written for.
    ///
    /// # Errors
    /// If the id cannot be a header.
    pub fn traced(&self, id: &str) -> Result<Self, KvError> {
        Ok(Self { trace: resource::trace(id)?, ..self.clone() })
    }

    /// The key that something makes in this keyspace.
    ///
    /// # Errors
    /// Why it makes none.
    pub fn key(&self, of: &(impl KeyOf + ?Sized)) -> Result<Key, KvError> {
        let key = of.key(self.compiled().grammar());
        key.map_err(|source| KvError::Key { keyspace: self.name().to_owned(), source })
    }

    /// The values of the segments of a key, in their order; none if its resource declares no keyspaces.
    ///
    /// # Errors
    /// If the key is not of this keyspace.
    pub fn values<'k>(&self, key: &'k Key) -> Result<Vec<key::Value<'k>>, KvError> {
        let Some(grammar) = self.compiled().grammar() else { return Ok(Vec::new()) };
        let values = grammar.read(key.as_str());
        values.map_err(|problem| KvError::Key { keyspace: self.name().to_owned(), source: problem.into() })
    }

    /// Whether a key of the bucket is of this keyspace.
    pub(super) fn has(&self, key: &Key) -> bool {
        match self.compiled().grammar() {
            Some(grammar) => grammar.has(key.as_str()),
            None => !key.is_reserved(),
        }
    }

    pub(super) fn compiled(&self) -> &CompiledKeyspace {
        self.resource.keyspace(self.index)
    }

    /// Deletes the value of a key and keeps its history.
    ///
    /// # Errors
    /// What is wrong with the key, or what the engine could not do.
    pub async fn delete(&self, key: &(impl KeyOf + ?Sized)) -> Result<Revision, KvError> {
        let operation = Operation::delete(self.key(key)?);
        self.commit(operation).await.map_err(KvWriteError::without_conflict)
    }

    /// Deletes the value of a key if its newest record is still the one at `seen`.
    ///
    /// # Errors
    /// A conflict if it is not, what is wrong with the key, or what the engine could not do.
    pub async fn delete_seen(
        &self,
        key: &(impl KeyOf + ?Sized),
        seen: Revision,
    ) -> Result<Revision, KvWriteError> {
        self.commit(Operation::delete(self.key(key)?).expecting(Expectation::Revision(seen))).await
    }

    async fn commit(&self, operation: Operation) -> Result<Revision, KvWriteError> {
        Ok(self.resource.commit(operation.into()).await?.last)
    }
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// Gives a key a value, whatever it had before.
    ///
    /// # Errors
    /// Why the contract refuses the value, that `T` does not read back what it writes, what is wrong with the key, or what the engine could not do.
    pub async fn put(&self, key: &(impl KeyOf + ?Sized), value: &T) -> Result<Revision, KvError> {
        let operation = self.write(key, value, Expectation::Any, &self.trace)?;
        self.commit(operation).await.map_err(KvWriteError::without_conflict)
    }

    /// Gives a key a value if it has none.
    ///
    /// # Errors
    /// A conflict if it has one; else those of [`Keyspace::put`].
    pub async fn create(&self, key: &(impl KeyOf + ?Sized), value: &T) -> Result<Revision, KvWriteError> {
        self.commit(self.write(key, value, Expectation::Absent, &self.trace)?).await
    }

    /// Gives a key a value if its newest record is still the one at `seen`.
    ///
    /// # Errors
    /// A conflict if it is not; else those of [`Keyspace::put`].
    pub async fn update(
        &self,
        key: &(impl KeyOf + ?Sized),
        value: &T,
        seen: Revision,
    ) -> Result<Revision, KvWriteError> {
        self.commit(self.write(key, value, Expectation::Revision(seen), &self.trace)?).await
    }

    /// The put of a value that the contract allows.
    pub(super) fn write(
        &self,
        key: &(impl KeyOf + ?Sized),
        value: &T,
        expect: Expectation,
        trace: &Trace,
    ) -> Result<Operation, KvError> {
        let key = self.key(key)?;
        let value = match serde_json::to_value(value) {
            Ok(value) => value,
            Err(error) => return Err(self.resource.not_encoded(key, &error)),
        };
        let operation = self.resource.put(self.index, key, &value, expect, trace)?;
        if let Err(reason) = read_back::<T>(&value) {
            let (bucket, key) = (self.resource.bucket().clone(), operation.key);
            return Err(KvError::NotReadBack { bucket, key, reason });
        }
        Ok(operation)
    }

    /// The value of a key. One of an older version is upgraded first, if [`Keyspace::migrate_lazily`] said how.
    ///
    /// # Errors
    /// What is wrong with the key or with the value that is stored, or what the engine could not do.
    pub async fn get(&self, key: &(impl KeyOf + ?Sized)) -> Result<Option<Read<T>>, KvError> {
        let key = self.key(key)?;
        match self.look(&key).await? {
            Some(Read::MigrationRequired(old)) => self.lazily(old).await,
            read => Ok(read),
        }
    }

    /// The value of a key as it is stored.
    pub(super) async fn look(&self, key: &Key) -> Result<Option<Read<T>>, KvError> {
        let entry = self.resource.engine().read(self.resource.bucket(), key, At::Latest).await?;
        entry.map(|entry| self.resource.decode(self.index, entry)).transpose()
    }
}

impl<T> Clone for Keyspace<T> {
    fn clone(&self) -> Self {
        Self {
            resource: Arc::clone(&self.resource),
            index: self.index,
            trace: self.trace.clone(),
            hook: self.hook.as_ref().map(Arc::clone),
            value: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Keyspace<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("resource", &self.resource)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
