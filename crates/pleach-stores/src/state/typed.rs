use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::StateError;
use super::entry::{DeleteOutcome, GetOutcome, MigrateOutcome, Migration, PutOutcome, StatePage};
use super::list::ListOptions;
use super::older::Older;
use super::store::{DeleteOptions, DynamicStore, PutOptions};
use super::view::View;
use super::watch::{StateWatch, WatchFrom};

/// A store of one value of the type `T`; what its older versions are, [`Older`] says.
pub struct ValueStore<T, O = Value> {
    view: View<T, O>,
}

impl<T: Serialize + DeserializeOwned, O: Older> ValueStore<T, O> {
    pub(super) fn new(store: DynamicStore) -> Self {
        Self { view: View::whole(store) }
    }

    /// Reads the value.
    ///
    /// # Errors
    /// An entry that cannot be read.
    pub async fn get(&self) -> Result<GetOutcome<T, O>, StateError> {
        self.view.get(None).await
    }

    /// Writes the value, whatever is there.
    ///
    /// # Errors
    /// A value that the contract refuses; nothing was written then.
    pub async fn put(&self, value: &T) -> Result<PutOutcome<T, O>, StateError> {
        self.put_with(value, PutOptions::default()).await
    }

    /// [`ValueStore::put`], with options.
    ///
    /// # Errors
    /// A value or a TTL against the rules; nothing was written then.
    pub async fn put_with(&self, value: &T, options: PutOptions) -> Result<PutOutcome<T, O>, StateError> {
        self.view.put(None, value, options).await
    }

    /// Deletes the value.
    ///
    /// # Errors
    /// What the engine could not do; an entry that cannot be read is deleted, too.
    pub async fn delete(&self) -> Result<DeleteOutcome, StateError> {
        self.delete_with(DeleteOptions::default()).await
    }

    /// [`ValueStore::delete`], with options.
    ///
    /// # Errors
    /// What the engine could not do; an entry that cannot be read is deleted, too.
    pub async fn delete_with(&self, options: DeleteOptions) -> Result<DeleteOutcome, StateError> {
        self.view.delete(None, options).await
    }

    /// Turns a value of an older version into one of the current, under the revision that was read: whoever wrote
    /// meanwhile is not written over. `upgrade` may be called again if someone did.
    ///
    /// # Errors
    /// [`StateError::NotMigrated`] with what `upgrade` says, or a value that the contract refuses.
    pub async fn migrate(
        &self,
        upgrade: impl Fn(Migration<O>) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        self.view.migrate(None, upgrade).await
    }

    /// Tells what happens to the value.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn watch(&self, from: WatchFrom) -> Result<StateWatch<T, O>, StateError>
    where
        T: Send + 'static,
        O: Send + 'static,
    {
        self.view.watch(from).await
    }
}

/// A map of values of the type `T`, or the part of one below a prefix; what its older versions are, [`Older`] says.
///
/// A view made by [`MapStore::prefix`] has the keys below its path. Its keys are relative to it, both those it takes and
/// those it returns: what a view returned under a key can be asked for with that key through the same view.
pub struct MapStore<T, O = Value> {
    view: View<T, O>,
}

impl<T: Serialize + DeserializeOwned, O: Older> MapStore<T, O> {
    pub(super) fn new(store: DynamicStore) -> Self {
        Self { view: View::whole(store) }
    }

    /// The view below `path`. The path is split at `/`, and empty segments are dropped; the view of `a/b` has the key
    /// `a/b/c` as `c`, and neither `a/b` nor `a/bc`. Views of views compose. A path that is too long for any key is
    /// refused by the calls on the view.
    ///
    /// The keys that a view takes are paths, too: `prefix("a").get("/open")` reads `a/open`. The whole map takes keys as they
    /// are; an entry that was written through it under a key with empty segments, such as `a//open`, counts in the view
    /// and is a [`Cell::Bad`](super::Cell::Bad) there, since no key of the view names it.
    #[must_use]
    pub fn prefix(&self, path: &str) -> Self {
        Self { view: self.view.below(path) }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// A key against the rules, or an entry that cannot be read.
    pub async fn get(&self, key: &str) -> Result<GetOutcome<T, O>, StateError> {
        self.view.get(Some(key)).await
    }

    /// Writes an entry, whatever is there.
    ///
    /// # Errors
    /// A key or a value against the rules; nothing was written then.
    pub async fn put(&self, key: &str, value: &T) -> Result<PutOutcome<T, O>, StateError> {
        self.put_with(key, value, PutOptions::default()).await
    }

    /// [`MapStore::put`], with options.
    ///
    /// # Errors
    /// A key, a value or a TTL against the rules; nothing was written then.
    pub async fn put_with(
        &self,
        key: &str,
        value: &T,
        options: PutOptions,
    ) -> Result<PutOutcome<T, O>, StateError> {
        self.view.put(Some(key), value, options).await
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// A key against the rules; an entry that cannot be read is deleted, too.
    pub async fn delete(&self, key: &str) -> Result<DeleteOutcome, StateError> {
        self.delete_with(key, DeleteOptions::default()).await
    }

    /// [`MapStore::delete`], with options.
    ///
    /// # Errors
    /// A key against the rules; an entry that cannot be read is deleted, too.
    pub async fn delete_with(&self, key: &str, options: DeleteOptions) -> Result<DeleteOutcome, StateError> {
        self.view.delete(Some(key), options).await
    }

    /// Reads a page, in the byte order of keys.
    ///
    /// # Errors
    /// A limit against the rules. A bad entry is no error but a cell, and past the end the page is empty.
    pub async fn list(&self, options: ListOptions) -> Result<StatePage<T, O>, StateError> {
        self.view.list(options).await
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn count(&self) -> Result<u64, StateError> {
        self.view.count().await
    }

    /// Turns an entry of an older version into one of the current, under the revision that was read: whoever wrote
    /// meanwhile is not written over. `upgrade` may be called again if someone did.
    ///
    /// # Errors
    /// [`StateError::NotMigrated`] with what `upgrade` says, or a value that the contract refuses.
    pub async fn migrate(
        &self,
        key: &str,
        upgrade: impl Fn(Migration<O>) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        self.view.migrate(Some(key), upgrade).await
    }

    /// Tells what happens to the entries.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn watch(&self, from: WatchFrom) -> Result<StateWatch<T, O>, StateError>
    where
        T: Send + 'static,
        O: Send + 'static,
    {
        self.view.watch(from).await
    }
}

impl<T, O> Clone for ValueStore<T, O> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone() }
    }
}

impl<T, O> Clone for MapStore<T, O> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone() }
    }
}

impl<T, O> fmt::Debug for ValueStore<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueStore({})", self.view.store.name())
    }
}

impl<T, O> fmt::Debug for MapStore<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MapStore({}/{})", self.view.store.name(), self.view.path)
    }
}
