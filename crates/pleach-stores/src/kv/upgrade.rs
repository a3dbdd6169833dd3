use std::error::Error;
use std::sync::Arc;

use pleach_engine::Expectation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{KvError, KvWriteError};
use super::key::KeyOf;
use super::keyspace::Keyspace;
use super::read::{Old, Read, Typed};

/// How often an upgrade is tried while others write the same key.
pub const UPGRADE_TRIES_MAX: usize = 16;

/// Any error, of code that upgrades values.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What makes a value of an older version, which it is told, one of the current version.
pub(super) type Hook<T> = dyn Fn(Value, &str) -> Result<T, BoxError> + Send + Sync;

impl<T> Keyspace<T> {
    /// The same, with a hook that is given values of older versions, and their version, when they are read by
    /// [`Keyspace::get`], [`Keyspace::query`] or [`Keyspace::scan`].
    ///
    /// What it returns is written in place of the old value, unless someone else was faster: then what they wrote is
    /// what is read. Who reads gets [`Read::Current`].
    #[must_use]
    pub fn migrate_lazily(
        &self,
        hook: impl Fn(Value, &str) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> Self {
        let mut lazily = self.clone();
        lazily.hook = Some(Arc::new(hook));
        lazily
    }
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// Makes sure that the value of a key is of the current version: `convert` is given one of an older version, and
    /// which, and what it returns is written if nobody has written the key since. Returns what is there then.
    ///
    /// # Errors
    /// Why `convert` refused the value or the contract what it made of it, what is wrong with the key or with what is
    /// stored, or what the engine could not do.
    pub async fn upgrade(
        &self,
        key: &(impl KeyOf + ?Sized),
        convert: impl Fn(Value, &str) -> Result<T, BoxError>,
    ) -> Result<Option<Typed<T>>, KvError> {
        let key = self.key(key)?;
        match self.look(&key).await? {
            None => Ok(None),
            Some(Read::Current(typed)) => Ok(Some(typed)),
            Some(Read::MigrationRequired(old)) => self.replace(old, &convert).await,
        }
    }

    /// What the hook makes of a value, if there is one; none if the value was deleted meanwhile.
    pub(super) async fn lazily(&self, old: Old) -> Result<Option<Read<T>>, KvError> {
        match &self.hook {
            None => Ok(Some(Read::MigrationRequired(old))),
            Some(hook) => Ok(self.replace(old, &**hook).await?.map(Read::Current)),
        }
    }

    async fn replace<F>(&self, mut old: Old, convert: &F) -> Result<Option<Typed<T>>, KvError>
    where
        F: Fn(Value, &str) -> Result<T, BoxError> + ?Sized,
    {
        for _ in 0..UPGRADE_TRIES_MAX {
            let key = old.key.clone();
            match self.replace_once(old, convert).await {
                Ok(typed) => return Ok(Some(typed)),
                Err(KvWriteError::Failed(error)) => return Err(error),
                Err(KvWriteError::Conflict(_)) => {}
            }
            old = match self.look(&key).await? {
                None => return Ok(None),
                Some(Read::Current(typed)) => return Ok(Some(typed)),
                Some(Read::MigrationRequired(old)) => old,
            };
        }
        Err(KvError::Contended {
            bucket: self.resource.bucket().clone(),
            key: old.key,
            tries: UPGRADE_TRIES_MAX,
        })
    }

    async fn replace_once<F>(&self, old: Old, convert: &F) -> Result<Typed<T>, KvWriteError>
    where
        F: Fn(Value, &str) -> Result<T, BoxError> + ?Sized,
    {
        let Old { key, value, version, revision, expires, .. } = old;
        let value = convert(value, &version).map_err(|source| KvError::Upgrade {
            bucket: self.resource.bucket().clone(),
            key: key.clone(),
            revision,
            version,
            source,
        })?;
        let operation = self.write(&key, &value, Expectation::Revision(revision), &self.trace)?;
        // To upgrade a value is not to use it: it lives no longer for that.
        let expiry = self.resource.inherited(self.index, expires);
        let operation = operation.expiring(expiry);
        let headers = operation.headers.clone();
        let committed = self.resource.commit(operation.into()).await?;
        let (revision, time) = (committed.last, committed.time);
        let expires = self.resource.moment(expiry, time);
        Ok(Typed { key, value, revision, time, expires, headers })
    }
}
