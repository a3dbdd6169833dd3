//! Typed key-value resources: the keyspaces of a contract, with the types that its schemas describe.

mod batch;
mod error;
mod key;
mod keyspace;
mod query;
mod read;
mod resource;
mod retention;
mod upgrade;
mod watch;

use std::fmt;
use std::sync::Arc;

use pleach_contract::Digest;
use pleach_engine::{BucketName, Key};
use serde_json::Value;

pub use batch::KvBatch;
pub use error::{KvError, KvWriteError};
pub use key::{InvalidKey, KeyOf};
pub use keyspace::Keyspace;
pub use query::{QueryOptions, QueryPage, SCAN_LIMIT_DEFAULT};
pub use read::{Old, Read, Typed};
pub use resource::Mark;
pub(crate) use resource::{Ground, Resource};
pub use retention::{InvalidRetainCursor, RETAIN_DROPPED_MAX, RetainCursor, Retained, Retaining};
pub use upgrade::{BoxError, UPGRADE_TRIES_MAX};
pub use watch::{KvEvent, KvWatch, KvWatchOptions};

use resource::Trace;

/// A resource of a contract: the keyspaces of one bucket. A handle, cheap to clone.
///
/// [`KvStore::keyspace`] gives a keyspace with a type of yours; with [`Value`] for a type it takes any JSON that the
/// contract allows. What is wrong with a value that is written is told before anything is; what is wrong with one that
/// is stored is an error that names its key and revision.
#[derive(Clone)]
pub struct KvStore {
    resource: Arc<Resource>,
    trace: Trace,
}

impl KvStore {
    pub(crate) fn new(resource: Arc<Resource>) -> Self {
        Self { resource, trace: None }
    }

    /// Its alias in the contract.
    pub fn alias(&self) -> &str {
        self.resource.alias()
    }

    /// Where its entries are.
    pub fn bucket(&self) -> &BucketName {
        self.resource.bucket()
    }

    /// The digest of the contract that the code was written for.
    pub fn digest(&self) -> &Digest {
        self.resource.digest()
    }

    /// The same, if it is bound to the contract of this digest: what the code that is made of a contract asks for.
    ///
    /// # Errors
    /// If it is bound to another.
    pub fn of_contract(self, digest: &str) -> Result<Self, KvError> {
        if self.resource.is_of_contract(digest) {
            return Ok(self);
        }
        let (alias, bound) = (self.alias().to_owned(), self.digest().to_string());
        Err(KvError::OtherContract { alias, wanted: digest.to_owned(), bound })
    }

    /// The same, with a trace id in the envelope of whatever is written through it: what it was written for.
    ///
    /// # Errors
    /// If the id cannot be a header.
    pub fn traced(&self, id: &str) -> Result<Self, KvError> {
        Ok(Self { trace: resource::trace(id)?, ..self.clone() })
    }

    /// A keyspace with values of the type `T`.
    ///
    /// # Errors
    /// If the contract has no keyspace of that name.
    pub fn keyspace<T>(&self, name: &str) -> Result<Keyspace<T>, KvError> {
        let index = self.resource.index_of(Some(name))?;
        Ok(Keyspace::new(Arc::clone(&self.resource), index, self.trace.clone()))
    }

    /// All entries, with values of the type `T`, of a resource that declares no keyspaces.
    ///
    /// # Errors
    /// If it declares some.
    pub fn entries<T>(&self) -> Result<Keyspace<T>, KvError> {
        let index = self.resource.index_of(None)?;
        Ok(Keyspace::new(Arc::clone(&self.resource), index, self.trace.clone()))
    }

    /// The keyspace that has `key`, with values of any type that the contract allows.
    ///
    /// # Errors
    /// If none has it, or the store writes it itself.
    pub fn keyspace_of(&self, key: &Key) -> Result<Keyspace<Value>, KvError> {
        let index = self.resource.index_of_key(key)?;
        Ok(Keyspace::new(Arc::clone(&self.resource), index, self.trace.clone()))
    }

    /// The value of a key, whichever keyspace it is of.
    ///
    /// # Errors
    /// If no keyspace has the key, what is wrong with the value that is stored, or what the engine could not do.
    pub async fn get(&self, key: &Key) -> Result<Option<Read<Value>>, KvError> {
        self.keyspace_of(key)?.get(key).await
    }

    /// A batch: writes that are committed together or not at all, within what the contract declares as atomic.
    pub fn batch(&self) -> KvBatch {
        KvBatch::new(Arc::clone(&self.resource), self.trace.clone())
    }
}

impl fmt::Debug for KvStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvStore").field("resource", &self.resource).finish_non_exhaustive()
    }
}
