use std::any::type_name;
use std::marker::PhantomData;

use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::StateError;
use super::entry::{
    BadCell, Cell, DeleteOutcome, GetOutcome, MigrateOutcome, Migration, PutOutcome, StateEntry, StatePage,
};
use super::list::{ListOptions, prefix_fits};
use super::older::Older;
use super::store::{DeleteOptions, DynamicStore, PutOptions};
use super::watch::{StateEvent, StateWatch, WatchFrom};
use crate::read_back::read_back;

/// How often a migration starts over because the entry was written meanwhile.
const ATTEMPTS_MAX: usize = 100;

/// What stands between a store of JSON with whole keys and one of types with relative keys.
pub(super) struct View<T, O> {
    pub(super) store: DynamicStore,
    /// What all keys of the view begin with: nothing, or segments that each end in `/`.
    pub(super) path: String,
    /// Whether its keys are paths, as those of every view that [`View::below`] makes. The whole map takes any text.
    has_paths: bool,
    of: PhantomData<fn() -> (T, O)>,
}

impl<T, O> View<T, O> {
    pub(super) fn whole(store: DynamicStore) -> Self {
        Self { store, path: String::new(), has_paths: false, of: PhantomData }
    }

    /// The view of what is below `path`. One that is too long for any key is refused when it is used.
    pub(super) fn below(&self, path: &str) -> Self {
        let mut below = Self { has_paths: true, ..self.clone() };
        for segment in segments(path) {
            below.path.push_str(segment);
            below.path.push('/');
        }
        below
    }

    /// The whole key. An empty one stays empty, since no entry is called that through any view.
    fn raw(&self, key: Option<&str>) -> Option<String> {
        let key = key?;
        if !self.has_paths {
            return Some(key.to_owned());
        }
        let path = segments(key).collect::<Vec<_>>().join("/");
        Some(if path.is_empty() { path } else { format!("{}{path}", self.path) })
    }

    /// Whether a key of the view names the entry with this whole key: what stands below its path has no empty segments.
    fn names(&self, key: &str) -> bool {
        let below = key.strip_prefix(&self.path).unwrap_or(key);
        !self.has_paths || below.split('/').all(|segment| !segment.is_empty())
    }

    fn has(&self, key: Option<&str>) -> bool {
        let below = |key: &str| key.len() > self.path.len() && key.starts_with(&self.path);
        self.path.is_empty() || key.is_some_and(below)
    }

    /// What an entry is called in the view; none if no key of the view names it.
    fn relative(&self, key: Option<String>) -> Option<String> {
        let key = key.filter(|key| self.names(key))?;
        Some(key.strip_prefix(&self.path).map(str::to_owned).unwrap_or(key))
    }

    pub(super) async fn delete(
        &self,
        key: Option<&str>,
        options: DeleteOptions,
    ) -> Result<DeleteOutcome, StateError> {
        self.store.delete(self.raw(key).as_deref(), options).await
    }

    pub(super) async fn count(&self) -> Result<u64, StateError> {
        self.store.count(&self.path).await
    }
}

impl<T: DeserializeOwned, O: Older> View<T, O> {
    pub(super) async fn get(&self, key: Option<&str>) -> Result<GetOutcome<T, O>, StateError> {
        Ok(match self.store.get(self.raw(key).as_deref()).await? {
            GetOutcome::Absent => GetOutcome::Absent,
            GetOutcome::Found(entry) => GetOutcome::Found(self.entry(entry)?),
            GetOutcome::MigrationRequired(old) => GetOutcome::MigrationRequired(self.migration(old)?),
        })
    }

    pub(super) async fn list(&self, options: ListOptions) -> Result<StatePage<T, O>, StateError> {
        let page = self.store.list(&self.path, options).await?;
        let StatePage { entries, count, offset, limit, next_offset } = page;
        let entries = entries.into_iter().map(|cell| self.cell(cell)).collect();
        Ok(StatePage { entries, count, offset, limit, next_offset })
    }

    pub(super) async fn watch(&self, from: WatchFrom) -> Result<StateWatch<T, O>, StateError>
    where
        T: Send + 'static,
        O: Send + 'static,
    {
        prefix_fits(&self.path)?;
        let view = self.clone();
        let events = self.store.watch(from).await?.filter_map(move |event| {
            let told = match event {
                Err(error) => Some(Err(error)),
                Ok(event) => view.event(event).map(Ok),
            };
            std::future::ready(told)
        });
        Ok(Box::pin(events))
    }

    /// An event of the view; none if it is about a key outside.
    fn event(&self, event: StateEvent<Value>) -> Option<StateEvent<T, O>> {
        let is_ready = matches!(event, StateEvent::Ready);
        if !is_ready && !self.has(event.key()) {
            return None;
        }
        Some(match event {
            StateEvent::Put(cell) => StateEvent::Put(self.cell(cell)),
            StateEvent::Deleted { key, revision } => {
                StateEvent::Deleted { key: self.relative(key), revision }
            }
            StateEvent::Expired { key, revision } => {
                StateEvent::Expired { key: self.relative(key), revision }
            }
            StateEvent::Ready => StateEvent::Ready,
        })
    }

    fn cell(&self, cell: Cell<Value>) -> Cell<T, O> {
        if let Some(key) = cell.key().filter(|key| !self.names(key)) {
            let error = StateError::NotInView { place: self.store.compiled.place(Some(key)) };
            return Cell::Bad(BadCell { key: None, revision: cell.revision(), error });
        }
        let (key, revision, read) = match cell {
            Cell::Bad(bad) => return Cell::Bad(BadCell { key: self.relative(bad.key), ..bad }),
            Cell::Entry(entry) => (entry.key.clone(), entry.revision, self.entry(entry).map(Cell::Entry)),
            Cell::MigrationRequired(old) => {
                let (key, revision) = (old.entry.key.clone(), old.entry.revision);
                (key, revision, self.migration(old).map(Cell::MigrationRequired))
            }
        };
        read.unwrap_or_else(|error| Cell::Bad(BadCell { key: self.relative(key), revision, error }))
    }

    fn entry(&self, entry: StateEntry<Value>) -> Result<StateEntry<T>, StateError> {
        self.typed(entry, |value| T::deserialize(value).map_err(|error| error.to_string()))
    }

    fn migration(&self, old: Migration) -> Result<Migration<O>, StateError> {
        let Migration { entry, state_version, current_state_version, writer_contract_digest } = old;
        let entry = self.typed(entry, |value| O::read(&state_version, value))?;
        Ok(Migration { entry, state_version, current_state_version, writer_contract_digest })
    }

    fn typed<V>(
        &self,
        mut entry: StateEntry<Value>,
        read: impl FnOnce(Value) -> Result<V, String>,
    ) -> Result<StateEntry<V>, StateError> {
        match read(std::mem::take(&mut entry.value)) {
            Ok(value) => {
                entry.key = self.relative(entry.key);
                Ok(entry.with(value))
            }
            Err(reason) => {
                let place = self.store.compiled.place(entry.key.as_deref());
                Err(StateError::WrongType { place, expected: type_name::<V>(), reason })
            }
        }
    }
}

impl<T: Serialize + DeserializeOwned, O: Older> View<T, O> {
    pub(super) async fn put(
        &self,
        key: Option<&str>,
        value: &T,
        options: PutOptions,
    ) -> Result<PutOutcome<T, O>, StateError> {
        let raw = self.raw(key);
        let (value, back) = self.checked(raw.as_deref(), value)?;
        Ok(match self.store.put(raw.as_deref(), value, options).await? {
            PutOutcome::Applied(entry) => PutOutcome::Applied(self.typed(entry, |_| Ok(back))?),
            PutOutcome::Absent => PutOutcome::Absent,
            PutOutcome::Present(entry) => PutOutcome::Present(self.entry(entry)?),
            PutOutcome::MigrationRequired(old) => PutOutcome::MigrationRequired(self.migration(old)?),
        })
    }

    pub(super) async fn migrate(
        &self,
        key: Option<&str>,
        upgrade: impl Fn(Migration<O>) -> Result<T, String>,
    ) -> Result<MigrateOutcome<T>, StateError> {
        let raw = self.raw(key);
        let mut old = match self.store.get(raw.as_deref()).await? {
            GetOutcome::Absent => return Ok(MigrateOutcome::Absent),
            GetOutcome::Found(entry) => return Ok(MigrateOutcome::Current(self.entry(entry)?)),
            GetOutcome::MigrationRequired(old) => old,
        };
        let place = || self.store.compiled.place(raw.as_deref());
        for _ in 0..ATTEMPTS_MAX {
            let whole = old.entry.clone();
            let new = upgrade(self.migration(old)?)
                .map_err(|reason| StateError::NotMigrated { place: place(), reason })?;
            let (value, back) = self.checked(raw.as_deref(), &new)?;
            old = match self.store.put_over(&whole, value).await? {
                PutOutcome::Applied(entry) => {
                    return Ok(MigrateOutcome::Migrated(self.typed(entry, |_| Ok(back))?));
                }
                PutOutcome::Absent => return Ok(MigrateOutcome::Absent),
                PutOutcome::Present(entry) => return Ok(MigrateOutcome::Current(self.entry(entry)?)),
                PutOutcome::MigrationRequired(newer) => newer,
            };
        }
        Err(StateError::Contended { place: place(), attempts: ATTEMPTS_MAX })
    }

    /// A value as JSON, and as it is read back from that. Both are known before anything is written.
    fn checked(&self, key: Option<&str>, value: &T) -> Result<(Value, T), StateError> {
        let json =
            serde_json::to_value(value).map_err(|error| StateError::NotJson { reason: error.to_string() })?;
        match read_back(&json) {
            Ok(back) => Ok((json, back)),
            Err(reason) => {
                let place = self.store.compiled.place(key);
                Err(StateError::NotReadBack { place, expected: type_name::<T>(), reason })
            }
        }
    }
}

/// The segments of a path: what stands between slashes, without the empty ones.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

impl<T, O> Clone for View<T, O> {
    fn clone(&self) -> Self {
        let Self { store, path, has_paths, of } = self;
        Self { store: store.clone(), path: path.clone(), has_paths: *has_paths, of: *of }
    }
}
