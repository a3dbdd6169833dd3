use std::pin::Pin;

use futures_core::Stream;
use futures_util::StreamExt;
use pleach_contract::StoreKind;
use pleach_engine::{Engine as _, Op, WatchEvent, WatchQuery, WatchStart};
use serde_json::Value;

use super::entry::Cell;
use super::store::DynamicStore;
use super::{StateError, StateRevision};

/// Where a watch begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchFrom {
    /// With the next change.
    #[default]
    Now,
    /// With every entry there is; then [`StateEvent::Ready`]; then every later change.
    Latest,
    /// With the first change after this revision, as far as changes are kept.
    After(StateRevision),
}

/// What a watch tells.
#[derive(Debug)]
pub enum StateEvent<T, O = Value> {
    /// An entry was written, or was there when the watch began.
    Put(Cell<T, O>),
    /// An entry was deleted.
    Deleted {
        /// Its key; none in a value store.
        key: Option<String>,
        /// Which change it was.
        revision: StateRevision,
    },
    /// An entry's time had come.
    Expired {
        /// Its key; none in a value store.
        key: Option<String>,
        /// Which change it was.
        revision: StateRevision,
    },
    /// All that was there when the watch began has been told.
    Ready,
}

/// The events of a watch. It ends after the first error; dropping it frees everything it holds.
pub type StateWatch<T, O = Value> = Pin<Box<dyn Stream<Item = Result<StateEvent<T, O>, StateError>> + Send>>;

impl DynamicStore {
    /// Tells what happens to the entries of this store: of this principal, and of nobody else.
    ///
    /// # Errors
    /// [`StateError::InvalidRevision`] if it is to begin after what is no revision, or what the engine could not do.
    pub async fn watch(&self, from: WatchFrom) -> Result<StateWatch<Value>, StateError> {
        let start = match from {
            WatchFrom::Now => WatchStart::Now,
            WatchFrom::Latest => WatchStart::Latest,
            WatchFrom::After(revision) if revision.is_unknown() => return Err(StateError::InvalidRevision),
            WatchFrom::After(revision) => WatchStart::Revision(revision.0.next()),
        };
        let query = WatchQuery { filters: vec![self.namespace.filter(self.kind())?], start };
        let shared = &self.state.shared;
        let watch = shared.engine.watch(&shared.bucket, query).await?;
        let store = self.clone();
        Ok(Box::pin(watch.map(move |event| Ok(store.told(event?)))))
    }

    fn told(&self, event: WatchEvent) -> StateEvent<Value> {
        let entry = match event {
            WatchEvent::Change(change) => change.entry,
            WatchEvent::InitialDone { .. } => return StateEvent::Ready,
        };
        let revision = StateRevision(entry.revision);
        let key = || match self.kind() {
            StoreKind::Value => None,
            StoreKind::Map => self.namespace.raw(&entry.key),
        };
        match entry.op {
            Op::Put => StateEvent::Put(self.cell(&entry)),
            Op::Delete | Op::Purge => StateEvent::Deleted { key: key(), revision },
            Op::Expire => StateEvent::Expired { key: key(), revision },
        }
    }
}

impl<T, O> StateEvent<T, O> {
    /// The key it is about, if it is about one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Put(cell) => cell.key(),
            Self::Deleted { key, .. } | Self::Expired { key, .. } => key.as_deref(),
            Self::Ready => None,
        }
    }
}
