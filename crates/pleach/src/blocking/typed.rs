use bytes::Bytes;
use pleach_engine::{Key, Revision};

use super::{Bucket, TypedScan, TypedWatch, block_on};
use crate::{
    CreateOptions, DeleteOptions, Error, IntoFilter, IntoSelection, PurgeOptions, PutOptions, ScanOptions,
    TypedEntry, TypedRecord, UpdateOptions, WatchOptions, WriteError,
};

/// The blocking form of [`TypedBucket`](crate::TypedBucket).
#[derive(Debug)]
pub struct TypedBucket<K: ToOwned + ?Sized, V> {
    typed: crate::TypedBucket<K, V>,
}

impl<K: ToOwned + ?Sized, V> TypedBucket<K, V> {
    /// See [`TypedBucket::bucket`](crate::TypedBucket::bucket).
    pub fn bucket(&self) -> Bucket {
        self.typed.bucket().clone().into()
    }

    /// See [`TypedBucket::stored_key`](crate::TypedBucket::stored_key).
    pub fn stored_key(&self, key: &K) -> Result<Key, Error> {
        self.typed.stored_key(key)
    }

    /// See [`TypedBucket::stored`](crate::TypedBucket::stored).
    pub fn stored(&self, key: &K, value: &V) -> Result<(Key, Bytes), Error> {
        self.typed.stored(key, value)
    }

    /// See [`TypedBucket::get`](crate::TypedBucket::get).
    pub fn get(&self, key: &K) -> Result<Option<TypedEntry<K::Owned, V>>, Error> {
        block_on(self.typed.get(key))
    }

    /// See [`TypedBucket::get_at`](crate::TypedBucket::get_at).
    pub fn get_at(&self, key: &K, revision: Revision) -> Result<Option<TypedEntry<K::Owned, V>>, Error> {
        block_on(self.typed.get_at(key, revision))
    }

    /// See [`TypedBucket::history`](crate::TypedBucket::history).
    pub fn history(&self, key: &K) -> Result<Vec<TypedRecord<K::Owned, V>>, Error> {
        block_on(self.typed.history(key))
    }

    /// See [`TypedBucket::put`](crate::TypedBucket::put).
    pub fn put(&self, key: &K, value: &V) -> Result<Revision, Error> {
        block_on(self.typed.put(key, value))
    }

    /// See [`TypedBucket::put_with`](crate::TypedBucket::put_with).
    pub fn put_with(&self, key: &K, value: &V, options: PutOptions) -> Result<Revision, WriteError> {
        block_on(self.typed.put_with(key, value, options))
    }

    /// See [`TypedBucket::create`](crate::TypedBucket::create).
    pub fn create(&self, key: &K, value: &V) -> Result<Revision, WriteError> {
        block_on(self.typed.create(key, value))
    }

    /// See [`TypedBucket::create_with`](crate::TypedBucket::create_with).
    pub fn create_with(&self, key: &K, value: &V, options: CreateOptions) -> Result<Revision, WriteError> {
        block_on(self.typed.create_with(key, value, options))
    }

    /// See [`TypedBucket::update`](crate::TypedBucket::update).
    pub fn update(&self, key: &K, value: &V, seen: Revision) -> Result<Revision, WriteError> {
        block_on(self.typed.update(key, value, seen))
    }

    /// See [`TypedBucket::update_with`](crate::TypedBucket::update_with).
    pub fn update_with(
        &self,
        key: &K,
        value: &V,
        seen: Revision,
        options: UpdateOptions,
    ) -> Result<Revision, WriteError> {
        block_on(self.typed.update_with(key, value, seen, options))
    }

    /// See [`TypedBucket::delete`](crate::TypedBucket::delete).
    pub fn delete(&self, key: &K) -> Result<Revision, Error> {
        block_on(self.typed.delete(key))
    }

    /// See [`TypedBucket::delete_with`](crate::TypedBucket::delete_with).
    pub fn delete_with(&self, key: &K, options: DeleteOptions) -> Result<Revision, WriteError> {
        block_on(self.typed.delete_with(key, options))
    }

    /// See [`TypedBucket::purge`](crate::TypedBucket::purge).
    pub fn purge(&self, key: &K) -> Result<Revision, Error> {
        block_on(self.typed.purge(key))
    }

    /// See [`TypedBucket::purge_with`](crate::TypedBucket::purge_with).
    pub fn purge_with(&self, key: &K, options: PurgeOptions) -> Result<Revision, WriteError> {
        block_on(self.typed.purge_with(key, options))
    }

    /// See [`TypedBucket::scan`](crate::TypedBucket::scan).
    pub fn scan(&self, selection: impl IntoSelection) -> Result<TypedScan<K, V>, Error> {
        self.typed.scan(selection).map(TypedScan::from)
    }

    /// See [`TypedBucket::scan_with`](crate::TypedBucket::scan_with).
    pub fn scan_with(&self, options: ScanOptions) -> TypedScan<K, V> {
        self.typed.scan_with(options).into()
    }

    /// See [`TypedBucket::watch`](crate::TypedBucket::watch).
    pub fn watch(&self, filter: impl IntoFilter) -> Result<TypedWatch<K, V>, Error> {
        block_on(self.typed.watch(filter)).map(TypedWatch::from)
    }

    /// See [`TypedBucket::watch_with`](crate::TypedBucket::watch_with).
    pub fn watch_with(&self, options: WatchOptions) -> Result<TypedWatch<K, V>, Error> {
        block_on(self.typed.watch_with(options)).map(TypedWatch::from)
    }

    /// The async form of the same bucket.
    pub fn as_async(&self) -> &crate::TypedBucket<K, V> {
        &self.typed
    }
}

impl<K: ToOwned + ?Sized, V> Clone for TypedBucket<K, V> {
    fn clone(&self) -> Self {
        Self { typed: self.typed.clone() }
    }
}

impl<K: ToOwned + ?Sized, V> From<crate::TypedBucket<K, V>> for TypedBucket<K, V> {
    fn from(typed: crate::TypedBucket<K, V>) -> Self {
        Self { typed }
    }
}
