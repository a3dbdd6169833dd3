use std::num::NonZeroU8;
use std::ops::Deref;

use pleach_engine::{
    Batch, BucketConfig, BucketInfo, BucketName, Committed, Entry, Page, Revision, ScanQuery,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Keys, Scan, Store, TypedBucket, Watch, block_on};
use crate::codec::{KeyCodec, ValueCodec};
use crate::{
    BatchBuilder, BucketStatus, CacheOptions, CreateOptions, DeleteOptions, Error, GetOptions, IntoFilter,
    IntoKey, IntoSelection, IntoValue, KeysOptions, Origin, PurgeOptions, PutOptions, ScanOptions,
    UpdateOptions, WatchOptions, WriteError,
};

/// The blocking form of [`Bucket`](crate::Bucket).
#[derive(Clone, Debug)]
pub struct Bucket {
    bucket: crate::Bucket,
}

impl Bucket {
    /// See [`Bucket::name`](crate::Bucket::name).
    pub fn name(&self) -> &BucketName {
        self.bucket.name()
    }

    /// See [`Bucket::store`](crate::Bucket::store).
    pub fn store(&self) -> Store {
        self.bucket.store().clone().into()
    }

    /// See [`Bucket::with_origin`](crate::Bucket::with_origin).
    pub fn with_origin(&self, origin: &Origin) -> Result<Self, Error> {
        self.bucket.with_origin(origin).map(Self::from)
    }

    /// See [`Bucket::get`](crate::Bucket::get).
    pub fn get(&self, key: impl IntoKey) -> Result<Option<Entry>, Error> {
        block_on(self.bucket.get(key))
    }

    /// See [`Bucket::get_with`](crate::Bucket::get_with).
    pub fn get_with(&self, key: impl IntoKey, options: GetOptions) -> Result<Option<Entry>, Error> {
        block_on(self.bucket.get_with(key, options))
    }

    /// See [`Bucket::get_at`](crate::Bucket::get_at).
    pub fn get_at(&self, key: impl IntoKey, revision: Revision) -> Result<Option<Entry>, Error> {
        block_on(self.bucket.get_at(key, revision))
    }

    /// See [`Bucket::history`](crate::Bucket::history).
    pub fn history(&self, key: impl IntoKey) -> Result<Vec<Entry>, Error> {
        block_on(self.bucket.history(key))
    }

    /// See [`Bucket::scan`](crate::Bucket::scan).
    pub fn scan(&self, selection: impl IntoSelection) -> Result<Scan, Error> {
        self.bucket.scan(selection).map(Scan::from)
    }

    /// See [`Bucket::scan_with`](crate::Bucket::scan_with).
    pub fn scan_with(&self, options: ScanOptions) -> Scan {
        self.bucket.scan_with(options).into()
    }

    /// See [`Bucket::scan_page`](crate::Bucket::scan_page).
    pub fn scan_page(&self, query: ScanQuery) -> Result<Page, Error> {
        block_on(self.bucket.scan_page(query))
    }

    /// See [`Bucket::keys`](crate::Bucket::keys).
    pub fn keys(&self, selection: impl IntoSelection) -> Result<Keys, Error> {
        self.bucket.keys(selection).map(Keys::from)
    }

    /// See [`Bucket::keys_with`](crate::Bucket::keys_with).
    pub fn keys_with(&self, options: KeysOptions) -> Keys {
        self.bucket.keys_with(options).into()
    }

    /// See [`Bucket::count`](crate::Bucket::count).
    pub fn count(&self, selection: impl IntoSelection) -> Result<u64, Error> {
        block_on(self.bucket.count(selection))
    }

    /// See [`Bucket::watch`](crate::Bucket::watch).
    pub fn watch(&self, filter: impl IntoFilter) -> Result<Watch, Error> {
        block_on(self.bucket.watch(filter)).map(Watch::from)
    }

    /// See [`Bucket::watch_with`](crate::Bucket::watch_with).
    pub fn watch_with(&self, options: WatchOptions) -> Result<Watch, Error> {
        block_on(self.bucket.watch_with(options)).map(Watch::from)
    }

    /// See [`Bucket::put`](crate::Bucket::put).
    pub fn put(&self, key: impl IntoKey, value: impl IntoValue) -> Result<Revision, Error> {
        block_on(self.bucket.put(key, value))
    }

    /// See [`Bucket::put_with`](crate::Bucket::put_with).
    pub fn put_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        options: PutOptions,
    ) -> Result<Revision, WriteError> {
        block_on(self.bucket.put_with(key, value, options))
    }

    /// See [`Bucket::create`](crate::Bucket::create).
    pub fn create(&self, key: impl IntoKey, value: impl IntoValue) -> Result<Revision, WriteError> {
        block_on(self.bucket.create(key, value))
    }

    /// See [`Bucket::create_with`](crate::Bucket::create_with).
    pub fn create_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        options: CreateOptions,
    ) -> Result<Revision, WriteError> {
        block_on(self.bucket.create_with(key, value, options))
    }

    /// See [`Bucket::update`](crate::Bucket::update).
    pub fn update(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        seen: Revision,
    ) -> Result<Revision, WriteError> {
        block_on(self.bucket.update(key, value, seen))
    }

    /// See [`Bucket::update_with`](crate::Bucket::update_with).
    pub fn update_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        seen: Revision,
        options: UpdateOptions,
    ) -> Result<Revision, WriteError> {
        block_on(self.bucket.update_with(key, value, seen, options))
    }

    /// See [`Bucket::delete`](crate::Bucket::delete).
    pub fn delete(&self, key: impl IntoKey) -> Result<Revision, Error> {
        block_on(self.bucket.delete(key))
    }

    /// See [`Bucket::delete_with`](crate::Bucket::delete_with).
    pub fn delete_with(&self, key: impl IntoKey, options: DeleteOptions) -> Result<Revision, WriteError> {
        block_on(self.bucket.delete_with(key, options))
    }

    /// See [`Bucket::purge`](crate::Bucket::purge).
    pub fn purge(&self, key: impl IntoKey) -> Result<Revision, Error> {
        block_on(self.bucket.purge(key))
    }

    /// See [`Bucket::purge_with`](crate::Bucket::purge_with).
    pub fn purge_with(&self, key: impl IntoKey, options: PurgeOptions) -> Result<Revision, WriteError> {
        block_on(self.bucket.purge_with(key, options))
    }

    /// Commits the batch that `build` makes: `bucket.batch(|batch| batch.put("a", "1").delete("b"))`.
    pub fn batch(&self, build: impl FnOnce(BatchBuilder) -> BatchBuilder) -> Result<Committed, WriteError> {
        block_on(build(self.bucket.batch()).commit())
    }

    /// See [`Bucket::commit`](crate::Bucket::commit).
    pub fn commit(&self, batch: Batch) -> Result<Committed, WriteError> {
        block_on(self.bucket.commit(batch))
    }

    /// See [`Bucket::compact_key`](crate::Bucket::compact_key).
    pub fn compact_key(&self, key: impl IntoKey, keep: NonZeroU8) -> Result<(), Error> {
        block_on(self.bucket.compact_key(key, keep))
    }

    /// See [`Bucket::status`](crate::Bucket::status).
    pub fn status(&self) -> Result<BucketStatus, Error> {
        block_on(self.bucket.status())
    }

    /// See [`Bucket::info`](crate::Bucket::info).
    pub fn info(&self) -> Result<BucketInfo, Error> {
        block_on(self.bucket.info())
    }

    /// See [`Bucket::config`](crate::Bucket::config).
    pub fn config(&self) -> Result<BucketConfig, Error> {
        block_on(self.bucket.config())
    }

    /// See [`Bucket::cached`](crate::Bucket::cached).
    pub fn cached(&self) -> Result<CachedBucket, Error> {
        block_on(self.bucket.cached()).map(CachedBucket::from)
    }

    /// See [`Bucket::cached_with`](crate::Bucket::cached_with).
    pub fn cached_with(&self, options: CacheOptions) -> Result<CachedBucket, Error> {
        block_on(self.bucket.cached_with(options)).map(CachedBucket::from)
    }

    /// See [`Bucket::typed`](crate::Bucket::typed).
    pub fn typed<V: Serialize + DeserializeOwned + 'static>(&self) -> TypedBucket<str, V> {
        self.bucket.typed().into()
    }

    /// See [`Bucket::with_codecs`](crate::Bucket::with_codecs).
    pub fn with_codecs<K: ToOwned + ?Sized, V>(
        &self,
        keys: impl KeyCodec<K> + 'static,
        values: impl ValueCodec<V> + 'static,
    ) -> TypedBucket<K, V> {
        self.bucket.with_codecs(keys, values).into()
    }

    /// The async form of the same bucket.
    pub fn as_async(&self) -> &crate::Bucket {
        &self.bucket
    }
}

impl From<crate::Bucket> for Bucket {
    fn from(bucket: crate::Bucket) -> Self {
        Self { bucket }
    }
}

/// The blocking form of [`CachedBucket`](crate::CachedBucket).
#[derive(Clone, Debug)]
pub struct CachedBucket {
    cached: crate::CachedBucket,
    bucket: Bucket,
}

impl CachedBucket {
    /// See [`CachedBucket::bucket`](crate::CachedBucket::bucket).
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// See [`CachedBucket::is_ready`](crate::CachedBucket::is_ready).
    pub fn is_ready(&self) -> bool {
        self.cached.is_ready()
    }

    /// See [`CachedBucket::ready`](crate::CachedBucket::ready).
    pub fn ready(&self) -> Result<(), Error> {
        block_on(self.cached.ready())
    }

    /// See [`CachedBucket::bytes`](crate::CachedBucket::bytes).
    pub fn bytes(&self) -> usize {
        self.cached.bytes()
    }
}

impl Deref for CachedBucket {
    type Target = Bucket;

    fn deref(&self) -> &Bucket {
        &self.bucket
    }
}

impl From<crate::CachedBucket> for CachedBucket {
    fn from(cached: crate::CachedBucket) -> Self {
        let bucket = cached.bucket().clone().into();
        Self { cached, bucket }
    }
}
