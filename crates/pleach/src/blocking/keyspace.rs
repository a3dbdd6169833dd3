use pleach_engine::{Key, Revision};
use pleach_stores::{
    BoxError, KeyOf, KvError, KvWatchOptions, KvWriteError, QueryOptions, QueryPage, Read, Typed, key,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{KvWatch, block_on};

/// The blocking form of [`Keyspace`](pleach_stores::Keyspace).
#[derive(Debug)]
pub struct Keyspace<T> {
    keyspace: pleach_stores::Keyspace<T>,
}

impl<T> Keyspace<T> {
    /// See [`Keyspace::name`](pleach_stores::Keyspace::name).
    pub fn name(&self) -> &str {
        self.keyspace.name()
    }

    /// See [`Keyspace::version`](pleach_stores::Keyspace::version).
    pub fn version(&self) -> &str {
        self.keyspace.version()
    }

    /// See [`Keyspace::traced`](pleach_stores::Keyspace::traced).
    pub fn traced(&self, id: &str) -> Result<Self, KvError> {
        self.keyspace.traced(id).map(Self::from)
    }

    /// See [`Keyspace::key`](pleach_stores::Keyspace::key).
    pub fn key(&self, of: &(impl KeyOf + ?Sized)) -> Result<Key, KvError> {
        self.keyspace.key(of)
    }

    /// See [`Keyspace::values`](pleach_stores::Keyspace::values).
    pub fn values<'k>(&self, key: &'k Key) -> Result<Vec<key::Value<'k>>, KvError> {
        self.keyspace.values(key)
    }

    /// See [`Keyspace::migrate_lazily`](pleach_stores::Keyspace::migrate_lazily).
    #[must_use]
    pub fn migrate_lazily(
        &self,
        hook: impl Fn(Value, &str) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.keyspace.migrate_lazily(hook).into()
    }

    /// See [`Keyspace::delete`](pleach_stores::Keyspace::delete).
    pub fn delete(&self, key: &(impl KeyOf + ?Sized)) -> Result<Revision, KvError> {
        block_on(self.keyspace.delete(key))
    }

    /// See [`Keyspace::delete_seen`](pleach_stores::Keyspace::delete_seen).
    pub fn delete_seen(&self, key: &(impl KeyOf + ?Sized), seen: Revision) -> Result<Revision, KvWriteError> {
        block_on(self.keyspace.delete_seen(key, seen))
    }

    /// The async form of the same keyspace.
    pub fn as_async(&self) -> &pleach_stores::Keyspace<T> {
        &self.keyspace
    }
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// See [`Keyspace::put`](pleach_stores::Keyspace::put).
    pub fn put(&self, key: &(impl KeyOf + ?Sized), value: &T) -> Result<Revision, KvError> {
        block_on(self.keyspace.put(key, value))
    }

    /// See [`Keyspace::create`](pleach_stores::Keyspace::create).
    pub fn create(&self, key: &(impl KeyOf + ?Sized), value: &T) -> Result<Revision, KvWriteError> {
        block_on(self.keyspace.create(key, value))
    }

    /// See [`Keyspace::update`](pleach_stores::Keyspace::update).
    pub fn update(
        &self,
        key: &(impl KeyOf + ?Sized),
        value: &T,
        seen: Revision,
    ) -> Result<Revision, KvWriteError> {
        block_on(self.keyspace.update(key, value, seen))
    }
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// See [`Keyspace::get`](pleach_stores::Keyspace::get).
    pub fn get(&self, key: &(impl KeyOf + ?Sized)) -> Result<Option<Read<T>>, KvError> {
        block_on(self.keyspace.get(key))
    }

    /// See [`Keyspace::upgrade`](pleach_stores::Keyspace::upgrade).
    pub fn upgrade(
        &self,
        key: &(impl KeyOf + ?Sized),
        convert: impl Fn(Value, &str) -> Result<T, BoxError>,
    ) -> Result<Option<Typed<T>>, KvError> {
        block_on(self.keyspace.upgrade(key, convert))
    }

    /// See [`Keyspace::query`](pleach_stores::Keyspace::query).
    pub fn query(&self, access: &str, given: &[key::Value<'_>]) -> Result<QueryPage<T>, KvError> {
        block_on(self.keyspace.query(access, given))
    }

    /// See [`Keyspace::query_with`](pleach_stores::Keyspace::query_with).
    pub fn query_with(
        &self,
        access: &str,
        given: &[key::Value<'_>],
        options: QueryOptions<'_>,
    ) -> Result<QueryPage<T>, KvError> {
        block_on(self.keyspace.query_with(access, given, options))
    }

    /// See [`Keyspace::scan`](pleach_stores::Keyspace::scan).
    pub fn scan(&self, options: QueryOptions<'_>) -> Result<QueryPage<T>, KvError> {
        block_on(self.keyspace.scan(options))
    }

    /// See [`Keyspace::watch`](pleach_stores::Keyspace::watch).
    pub fn watch(&self) -> Result<KvWatch<T>, KvError> {
        block_on(self.keyspace.watch()).map(KvWatch::from)
    }

    /// See [`Keyspace::watch_with`](pleach_stores::Keyspace::watch_with).
    pub fn watch_with(&self, options: KvWatchOptions<'_>) -> Result<KvWatch<T>, KvError> {
        block_on(self.keyspace.watch_with(options)).map(KvWatch::from)
    }
}

impl<T> Clone for Keyspace<T> {
    fn clone(&self) -> Self {
        Self { keyspace: self.keyspace.clone() }
    }
}

impl<T> From<pleach_stores::Keyspace<T>> for Keyspace<T> {
    fn from(keyspace: pleach_stores::Keyspace<T>) -> Self {
        Self { keyspace }
    }
}
