mod streams;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{Entry, Headers, Key, Op, Revision, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Json, KeyCodec, Plain, ValueCodec};
use crate::{
    Bucket, CreateOptions, DeleteOptions, Error, IntoFilter, IntoSelection, PurgeOptions, PutOptions,
    ScanOptions, UpdateOptions, WatchOptions, WriteError,
};

pub use streams::{TypedEvent, TypedScan, TypedWatch};

impl Bucket {
    /// This bucket with values of the type `V`, stored as JSON, under keys as they are.
    pub fn typed<V: Serialize + DeserializeOwned + 'static>(&self) -> TypedBucket<str, V> {
        self.with_codecs(Plain, Json)
    }

    /// This bucket with keys of the type `K` and values of the type `V`, stored by these codecs.
    pub fn with_codecs<K: ToOwned + ?Sized, V>(
        &self,
        keys: impl KeyCodec<K> + 'static,
        values: impl ValueCodec<V> + 'static,
    ) -> TypedBucket<K, V> {
        let codecs = Codecs { keys: Arc::new(keys), values: Arc::new(values) };
        TypedBucket { bucket: self.clone(), codecs }
    }
}

/// A bucket with keys of the type `K` and values of the type `V`. A handle, cheap to clone.
///
/// A stored key or value that the codecs cannot read is an error that names it; it is never passed over.
/// Selections and filters are about stored keys.
///
/// ```
/// use pleach::Store;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart { apples: u32 }
///
/// # pollster::block_on(async {
/// let store = Store::in_memory();
/// let carts = store.create_bucket("carts").await?.typed::<Cart>();
/// carts.put("user.42", &Cart { apples: 3 }).await?;
/// assert_eq!(carts.get("user.42").await?.unwrap().value.apples, 3);
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct TypedBucket<K: ToOwned + ?Sized, V> {
    bucket: Bucket,
    codecs: Codecs<K, V>,
}

/// An entry whose key and value were decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedEntry<K, V> {
    /// The key it is a record of.
    pub key: K,
    /// The value.
    pub value: V,
    /// Its own revision.
    pub revision: Revision,
    /// When it was committed.
    pub time: Timestamp,
    /// When its value is gone.
    pub expires: Option<Timestamp>,
    /// What it did.
    pub op: Op,
    /// What travels with it.
    pub headers: Headers,
}

/// A decoded record that may be a marker, which has no value.
pub type TypedRecord<K, V> = TypedEntry<K, Option<V>>;

impl<K: ToOwned + ?Sized, V> TypedBucket<K, V> {
    /// The bucket under it.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// The key that `key` is stored under, for a batch.
    ///
    /// # Errors
    /// [`Error::EncodeKey`].
    pub fn stored_key(&self, key: &K) -> Result<Key, Error> {
        let encoded = self.codecs.keys.encode(key);
        encoded.map_err(|source| Error::EncodeKey { bucket: self.bucket.name().clone(), source })
    }

    /// The key and the bytes that `value` is stored as under `key`, for a batch.
    ///
    /// # Errors
    /// [`Error::EncodeKey`], [`Error::EncodeValue`], and [`Error::NotReadBack`] for a value that its codec could not
    /// decode again.
    pub fn stored(&self, key: &K, value: &V) -> Result<(Key, Bytes), Error> {
        let key = self.stored_key(key)?;
        let bytes = match self.codecs.values.encode(value) {
            Ok(bytes) => bytes,
            Err(source) => {
                return Err(Error::EncodeValue { bucket: self.bucket.name().clone(), key, source });
            }
        };
        match self.codecs.values.check(&bytes) {
            Ok(()) => Ok((key, bytes)),
            Err(source) => Err(Error::NotReadBack { bucket: self.bucket.name().clone(), key, source }),
        }
    }

    /// See [`Bucket::get`].
    ///
    /// # Errors
    /// Those of [`Bucket::get`] and of the codecs.
    pub async fn get(&self, key: &K) -> Result<Option<TypedEntry<K::Owned, V>>, Error> {
        let entry = self.bucket.get(self.stored_key(key)?).await?;
        entry.map(|entry| self.codecs.decode(&self.bucket, entry)).transpose()
    }

    /// See [`Bucket::get_at`].
    ///
    /// # Errors
    /// Those of [`Bucket::get_at`] and of the codecs.
    pub async fn get_at(
        &self,
        key: &K,
        revision: Revision,
    ) -> Result<Option<TypedEntry<K::Owned, V>>, Error> {
        let entry = self.bucket.get_at(self.stored_key(key)?, revision).await?;
        entry.map(|entry| self.codecs.decode(&self.bucket, entry)).transpose()
    }

    /// See [`Bucket::history`]. Markers have no value.
    ///
    /// # Errors
    /// Those of [`Bucket::history`] and of the codecs.
    pub async fn history(&self, key: &K) -> Result<Vec<TypedRecord<K::Owned, V>>, Error> {
        let records = self.bucket.history(self.stored_key(key)?).await?;
        records.into_iter().map(|record| self.codecs.decode_record(&self.bucket, record)).collect()
    }

    /// See [`Bucket::put`].
    ///
    /// # Errors
    /// Those of [`Bucket::put`] and of the codecs.
    pub async fn put(&self, key: &K, value: &V) -> Result<Revision, Error> {
        let (key, bytes) = self.stored(key, value)?;
        self.bucket.put(key, bytes).await
    }

    /// See [`Bucket::put_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::put_with`] and of the codecs.
    pub async fn put_with(&self, key: &K, value: &V, options: PutOptions) -> Result<Revision, WriteError> {
        let (key, bytes) = self.stored(key, value)?;
        self.bucket.put_with(key, bytes, options).await
    }

    /// See [`Bucket::create`].
    ///
    /// # Errors
    /// Those of [`Bucket::create`] and of the codecs.
    pub async fn create(&self, key: &K, value: &V) -> Result<Revision, WriteError> {
        self.create_with(key, value, CreateOptions::default()).await
    }

    /// See [`Bucket::create_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::create_with`] and of the codecs.
    pub async fn create_with(
        &self,
        key: &K,
        value: &V,
        options: CreateOptions,
    ) -> Result<Revision, WriteError> {
        let (key, bytes) = self.stored(key, value)?;
        self.bucket.create_with(key, bytes, options).await
    }

    /// See [`Bucket::update`].
    ///
    /// # Errors
    /// Those of [`Bucket::update`] and of the codecs.
    pub async fn update(&self, key: &K, value: &V, seen: Revision) -> Result<Revision, WriteError> {
        self.update_with(key, value, seen, UpdateOptions::default()).await
    }

    /// See [`Bucket::update_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::update_with`] and of the codecs.
    pub async fn update_with(
        &self,
        key: &K,
        value: &V,
        seen: Revision,
        options: UpdateOptions,
    ) -> Result<Revision, WriteError> {
        let (key, bytes) = self.stored(key, value)?;
        self.bucket.update_with(key, bytes, seen, options).await
    }

    /// See [`Bucket::delete`].
    ///
    /// # Errors
    /// Those of [`Bucket::delete`] and of the key codec.
    pub async fn delete(&self, key: &K) -> Result<Revision, Error> {
        self.bucket.delete(self.stored_key(key)?).await
    }

    /// See [`Bucket::delete_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::delete_with`] and of the key codec.
    pub async fn delete_with(&self, key: &K, options: DeleteOptions) -> Result<Revision, WriteError> {
        self.bucket.delete_with(self.stored_key(key)?, options).await
    }

    /// See [`Bucket::purge`].
    ///
    /// # Errors
    /// Those of [`Bucket::purge`] and of the key codec.
    pub async fn purge(&self, key: &K) -> Result<Revision, Error> {
        self.bucket.purge(self.stored_key(key)?).await
    }

    /// See [`Bucket::purge_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::purge_with`] and of the key codec.
    pub async fn purge_with(&self, key: &K, options: PurgeOptions) -> Result<Revision, WriteError> {
        self.bucket.purge_with(self.stored_key(key)?, options).await
    }

    /// See [`Bucket::scan`].
    ///
    /// # Errors
    /// Those of [`Bucket::scan`].
    pub fn scan(&self, selection: impl IntoSelection) -> Result<TypedScan<K, V>, Error> {
        let selection = selection.into_selection()?;
        Ok(self.scan_with(ScanOptions { selection, ..ScanOptions::default() }))
    }

    /// See [`Bucket::scan_with`]. Values are read also if the options say `keys_only`.
    pub fn scan_with(&self, options: ScanOptions) -> TypedScan<K, V> {
        let scan = self.bucket.scan_with(ScanOptions { keys_only: false, ..options });
        TypedScan::new(scan, self.bucket.clone(), self.codecs.clone())
    }

    /// See [`Bucket::watch`].
    ///
    /// # Errors
    /// Those of [`Bucket::watch`].
    pub async fn watch(&self, filter: impl IntoFilter) -> Result<TypedWatch<K, V>, Error> {
        let filters = vec![filter.into_filter()?];
        self.watch_with(WatchOptions { filters, ..WatchOptions::default() }).await
    }

    /// See [`Bucket::watch_with`].
    ///
    /// # Errors
    /// Those of [`Bucket::watch_with`].
    pub async fn watch_with(&self, options: WatchOptions) -> Result<TypedWatch<K, V>, Error> {
        let watch = self.bucket.watch_with(options).await?;
        Ok(TypedWatch::new(watch, self.bucket.clone(), self.codecs.clone()))
    }
}

impl<K: ToOwned + ?Sized, V> Clone for TypedBucket<K, V> {
    fn clone(&self) -> Self {
        Self { bucket: self.bucket.clone(), codecs: self.codecs.clone() }
    }
}

impl<K: ToOwned + ?Sized, V> fmt::Debug for TypedBucket<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Codecs { keys, values } = &self.codecs;
        f.debug_struct("TypedBucket")
            .field("bucket", self.bucket.name())
            .field("keys", keys)
            .field("values", values)
            .finish_non_exhaustive()
    }
}

/// The two codecs of a typed bucket.
pub(crate) struct Codecs<K: ToOwned + ?Sized, V> {
    keys: Arc<dyn KeyCodec<K>>,
    values: Arc<dyn ValueCodec<V>>,
}

impl<K: ToOwned + ?Sized, V> Codecs<K, V> {
    pub(crate) fn decode(&self, bucket: &Bucket, entry: Entry) -> Result<TypedEntry<K::Owned, V>, Error> {
        let key = self.decode_key(bucket, &entry)?;
        let value = self.decode_value(bucket, &entry)?;
        Ok(typed(entry, key, value))
    }

    /// The same for a record that may be a marker.
    pub(crate) fn decode_record(
        &self,
        bucket: &Bucket,
        entry: Entry,
    ) -> Result<TypedRecord<K::Owned, V>, Error> {
        let key = self.decode_key(bucket, &entry)?;
        let value = if entry.op.is_put() { Some(self.decode_value(bucket, &entry)?) } else { None };
        Ok(typed(entry, key, value))
    }

    fn decode_key(&self, bucket: &Bucket, entry: &Entry) -> Result<K::Owned, Error> {
        self.keys.decode(&entry.key).map_err(|source| Error::DecodeKey {
            bucket: bucket.name().clone(),
            key: entry.key.clone(),
            revision: entry.revision,
            source,
        })
    }

    fn decode_value(&self, bucket: &Bucket, entry: &Entry) -> Result<V, Error> {
        self.values.decode(&entry.value).map_err(|source| Error::DecodeValue {
            bucket: bucket.name().clone(),
            key: entry.key.clone(),
            revision: entry.revision,
            source,
        })
    }
}

fn typed<K, V>(entry: Entry, key: K, value: V) -> TypedEntry<K, V> {
    let Entry { key: _, value: _, revision, time, expires, op, headers } = entry;
    TypedEntry { key, value, revision, time, expires, op, headers }
}

impl<K: ToOwned + ?Sized, V> Clone for Codecs<K, V> {
    fn clone(&self) -> Self {
        Self { keys: Arc::clone(&self.keys), values: Arc::clone(&self.values) }
    }
}
