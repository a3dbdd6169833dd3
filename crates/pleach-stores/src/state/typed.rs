use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::StateError;
use super::entry::{
    BadCell, Cell, DeleteOutcome, GetOutcome, MigrateOutcome, Migration, PutOutcome, StateEntry, StatePage,
};
use super::list::ListOptions;
use super::store::{DeleteOptions, DynamicStore, KEY_BYTES_MAX, PutOptions};
use super::watch::{StateEvent, StateWatch, WatchFrom};

/// How often a migration starts over because the entry was written meanwhile.
const ATTEMPTS_MAX: usize = 100;

/// A store of one value of the type `T`.
pub struct ValueStore<T> {
    store: DynamicStore,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> ValueStore<T> {
    pub(super) fn new(store: DynamicStore) -> Self {
        Self { store, of: PhantomData }
    }

    /// Reads the value.
    ///
    /// # Errors
    /// An entry that cannot be read.
    pub async fn get(&self) -> Result<GetOutcome<T>, StateError> {
        Facade::WHOLE.get(&self.store, None).await
    }

    /// Writes the value, whatever is there.
    ///
    /// # Errors
    /// A value that the contract refuses; nothing was written then.
    pub async fn put(&self, value: &T) -> Result<PutOutcome<T>, StateError> {
        self.put_with(value, PutOptions::default()).await
    }

    /// [`ValueStore::put`], with options.
    ///
    /// # Errors
    /// A value or a TTL against the rules; nothing was written then.
    pub async fn put_with(&self, value: &T, options: PutOptions) -> Result<PutOutcome<T>, StateError> {
        Facade::WHOLE.put(&self.store, None, value, options).await
    }

    /// Deletes the value.
    ///
    /// # Errors
    /// A damaged entry, which only an administrator deletes.
    pub async fn delete(&self) -> Result<DeleteOutcome, StateError> {
        self.delete_with(DeleteOptions::default()).await
    }

    /// [`ValueStore::delete`], with options.
    ///
    /// # Errors
    /// A damaged entry, which only an administrator deletes.
    pub async fn delete_with(&self, options: DeleteOptions) -> Result<DeleteOutcome, StateError> {
        self.store.delete(None, options).await
    }

    /// Turns a value of an older version into one of the current, under the revision that was read: whoever wrote
    /// meanwhile is not written over. `upgrade` may be called again if someone did.
    ///
    /// # Errors
    /// [`StateError::NotMigrated`] with what `upgrade` says, or a value that the contract refuses.
    pub async fn migrate(
        &self,
        upgrade: impl Fn(&Migration) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        Facade::WHOLE.migrate(&self.store, None, upgrade).await
    }

    /// Tells what happens to the value.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn watch(&self, from: WatchFrom) -> Result<StateWatch<T>, StateError>
    where
        T: Send + 'static,
    {
        Facade::WHOLE.watch(&self.store, from).await
    }
}

/// A map of values of the type `T`, or the part of one below a prefix.
///
/// A view made by [`MapStore::prefix`] has the keys below its path. Its keys are relative to it, both those it takes and
/// those it returns: what a view returned under a key can be asked for with that key through the same view.
pub struct MapStore<T> {
    store: DynamicStore,
    facade: Facade,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> MapStore<T> {
    pub(super) fn new(store: DynamicStore) -> Self {
        Self { store, facade: Facade::WHOLE, of: PhantomData }
    }

    /// The view below `path`. The path is split at `/`, and empty segments are dropped; the view of `a/b` has the key
    /// `a/b/c` as `c`, and neither `a/b` nor `a/bc`. Views of views compose.
    ///
    /// # Errors
    /// [`StateError::PrefixTooLong`].
    pub fn prefix(&self, path: &str) -> Result<Self, StateError> {
        let facade = self.facade.below(path)?;
        Ok(Self { store: self.store.clone(), facade, of: PhantomData })
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// A key against the rules, or an entry that cannot be read.
    pub async fn get(&self, key: &str) -> Result<GetOutcome<T>, StateError> {
        self.facade.get(&self.store, Some(key)).await
    }

    /// Writes an entry, whatever is there.
    ///
    /// # Errors
    /// A key or a value against the rules; nothing was written then.
    pub async fn put(&self, key: &str, value: &T) -> Result<PutOutcome<T>, StateError> {
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
    ) -> Result<PutOutcome<T>, StateError> {
        self.facade.put(&self.store, Some(key), value, options).await
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// A key against the rules, or a damaged entry, which only an administrator deletes.
    pub async fn delete(&self, key: &str) -> Result<DeleteOutcome, StateError> {
        self.delete_with(key, DeleteOptions::default()).await
    }

    /// [`MapStore::delete`], with options.
    ///
    /// # Errors
    /// A key against the rules, or a damaged entry, which only an administrator deletes.
    pub async fn delete_with(&self, key: &str, options: DeleteOptions) -> Result<DeleteOutcome, StateError> {
        self.store.delete(self.facade.raw(Some(key)).as_deref(), options).await
    }

    /// Reads a page, in the byte order of keys.
    ///
    /// # Errors
    /// A limit against the rules, or an offset past the end. A bad entry is no error but a cell.
    pub async fn list(&self, options: ListOptions) -> Result<StatePage<T>, StateError> {
        let page = self.store.list(&self.facade.path, options).await?;
        let StatePage { entries, count, offset, limit, next_offset } = page;
        let entries = entries.into_iter().map(|cell| self.facade.cell(&self.store, cell)).collect();
        Ok(StatePage { entries, count, offset, limit, next_offset })
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn count(&self) -> Result<u64, StateError> {
        self.store.count(&self.facade.path).await
    }

    /// Turns an entry of an older version into one of the current, under the revision that was read: whoever wrote
    /// meanwhile is not written over. `upgrade` may be called again if someone did.
    ///
    /// # Errors
    /// [`StateError::NotMigrated`] with what `upgrade` says, or a value that the contract refuses.
    pub async fn migrate(
        &self,
        key: &str,
        upgrade: impl Fn(&Migration) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        self.facade.migrate(&self.store, Some(key), upgrade).await
    }

    /// Tells what happens to the entries.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn watch(&self, from: WatchFrom) -> Result<StateWatch<T>, StateError>
    where
        T: Send + 'static,
    {
        self.facade.watch(&self.store, from).await
    }
}

/// What stands between a store of JSON with whole keys and one of types with relative keys.
#[derive(Clone, Debug)]
struct Facade {
    /// What all keys of the view begin with: nothing, or segments that each end in `/`.
    path: String,
}

impl Facade {
    const WHOLE: Self = Self { path: String::new() };

    fn below(&self, path: &str) -> Result<Self, StateError> {
        let mut whole = self.path.clone();
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            whole.push_str(segment);
            whole.push('/');
        }
        if whole.len() > KEY_BYTES_MAX {
            return Err(StateError::PrefixTooLong { bytes: whole.len(), limit: KEY_BYTES_MAX });
        }
        Ok(Self { path: whole })
    }

    /// The whole key. An empty one stays empty, since no entry is called that through any view.
    fn raw(&self, key: Option<&str>) -> Option<String> {
        key.map(|key| if key.is_empty() { String::new() } else { format!("{}{key}", self.path) })
    }

    fn has(&self, key: Option<&str>) -> bool {
        let below = |key: &str| key.len() > self.path.len() && key.starts_with(&self.path);
        self.path.is_empty() || key.is_some_and(below)
    }

    fn relative(&self, key: Option<String>) -> Option<String> {
        key.map(|key| key.strip_prefix(&self.path).map(str::to_owned).unwrap_or(key))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        store: &DynamicStore,
        key: Option<&str>,
    ) -> Result<GetOutcome<T>, StateError> {
        Ok(match store.get(self.raw(key).as_deref()).await? {
            GetOutcome::Absent => GetOutcome::Absent,
            GetOutcome::Found(entry) => GetOutcome::Found(self.entry(store, entry)?),
            GetOutcome::MigrationRequired(old) => GetOutcome::MigrationRequired(self.migration(old)),
        })
    }

    async fn put<T: Serialize + DeserializeOwned>(
        &self,
        store: &DynamicStore,
        key: Option<&str>,
        value: &T,
        options: PutOptions,
    ) -> Result<PutOutcome<T>, StateError> {
        let outcome = store.put(self.raw(key).as_deref(), json(value)?, options).await?;
        self.outcome(store, outcome)
    }

    fn outcome<T: DeserializeOwned>(
        &self,
        store: &DynamicStore,
        outcome: PutOutcome<Value>,
    ) -> Result<PutOutcome<T>, StateError> {
        Ok(match outcome {
            PutOutcome::Applied(entry) => PutOutcome::Applied(self.entry(store, entry)?),
            PutOutcome::Absent => PutOutcome::Absent,
            PutOutcome::Present(entry) => PutOutcome::Present(self.entry(store, entry)?),
            PutOutcome::MigrationRequired(old) => PutOutcome::MigrationRequired(self.migration(old)),
        })
    }

    async fn migrate<T: Serialize + DeserializeOwned>(
        &self,
        store: &DynamicStore,
        key: Option<&str>,
        upgrade: impl Fn(&Migration) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        let mut old = match store.get(self.raw(key).as_deref()).await? {
            GetOutcome::Absent => return Ok(MigrateOutcome::Absent),
            GetOutcome::Found(entry) => return Ok(MigrateOutcome::Current(self.entry(store, entry)?)),
            GetOutcome::MigrationRequired(old) => old,
        };
        let place = || store.compiled.place(key);
        for _ in 0..ATTEMPTS_MAX {
            let whole = old.entry.clone();
            let new = upgrade(&self.migration(old))
                .map_err(|reason| StateError::NotMigrated { place: place(), reason })?;
            old = match store.put_over(&whole, json(&new)?).await? {
                PutOutcome::Applied(entry) => return Ok(MigrateOutcome::Migrated(self.entry(store, entry)?)),
                PutOutcome::Absent => return Ok(MigrateOutcome::Absent),
                PutOutcome::Present(entry) => return Ok(MigrateOutcome::Current(self.entry(store, entry)?)),
                PutOutcome::MigrationRequired(newer) => newer,
            };
        }
        Err(StateError::Contended { place: place(), attempts: ATTEMPTS_MAX })
    }

    async fn watch<T: DeserializeOwned + Send + 'static>(
        &self,
        store: &DynamicStore,
        from: WatchFrom,
    ) -> Result<StateWatch<T>, StateError> {
        let (facade, kept) = (self.clone(), store.clone());
        let events = store.watch(from).await?.filter_map(move |event| {
            let told = match event {
                Err(error) => Some(Err(error)),
                Ok(event) => facade.event(&kept, event).map(Ok),
            };
            std::future::ready(told)
        });
        Ok(Box::pin(events))
    }

    /// An event of the view; none if it is about a key outside.
    fn event<T: DeserializeOwned>(
        &self,
        store: &DynamicStore,
        event: StateEvent<Value>,
    ) -> Option<StateEvent<T>> {
        let is_ready = matches!(event, StateEvent::Ready);
        if !is_ready && !self.has(event.key()) {
            return None;
        }
        Some(match event {
            StateEvent::Put(cell) => StateEvent::Put(self.cell(store, cell)),
            StateEvent::Deleted { key, revision } => {
                StateEvent::Deleted { key: self.relative(key), revision }
            }
            StateEvent::Expired { key, revision } => {
                StateEvent::Expired { key: self.relative(key), revision }
            }
            StateEvent::Ready => StateEvent::Ready,
        })
    }

    fn cell<T: DeserializeOwned>(&self, store: &DynamicStore, cell: Cell<Value>) -> Cell<T> {
        match cell {
            Cell::Entry(entry) => {
                let (key, revision) = (self.relative(entry.key.clone()), entry.revision);
                match self.entry(store, entry) {
                    Ok(entry) => Cell::Entry(entry),
                    Err(error) => Cell::Bad(BadCell { key, revision, error }),
                }
            }
            Cell::MigrationRequired(old) => Cell::MigrationRequired(self.migration(old)),
            Cell::Bad(bad) => Cell::Bad(BadCell { key: self.relative(bad.key), ..bad }),
        }
    }

    fn entry<T: DeserializeOwned>(
        &self,
        store: &DynamicStore,
        mut entry: StateEntry<Value>,
    ) -> Result<StateEntry<T>, StateError> {
        let place = store.compiled.place(entry.key.as_deref());
        let value = T::deserialize(std::mem::take(&mut entry.value)).map_err(|error| {
            StateError::WrongType { place, expected: type_name::<T>(), reason: error.to_string() }
        })?;
        entry.key = self.relative(entry.key);
        Ok(entry.with(value))
    }

    fn migration(&self, mut old: Migration) -> Migration {
        old.entry.key = self.relative(old.entry.key);
        old
    }
}

fn json<T: Serialize>(value: &T) -> Result<Value, StateError> {
    serde_json::to_value(value).map_err(|error| StateError::NotJson { reason: error.to_string() })
}

impl<T> Clone for ValueStore<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), of: PhantomData }
    }
}

impl<T> Clone for MapStore<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), facade: self.facade.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for ValueStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueStore({})", self.store.name())
    }
}

impl<T> fmt::Debug for MapStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MapStore({}/{})", self.store.name(), self.facade.path)
    }
}
