use pleach_engine::{Batch, CommitError, Committed, Conflict, Expectation, Operation, Revision};

use crate::origin::add_headers;
use crate::{
    BatchBuilder, Bucket, CreateOptions, DeleteOptions, Error, IntoKey, IntoValue, PurgeOptions, PutOptions,
    UpdateOptions, WriteError,
};

/// Writing. What expects nothing of its key fails with an [`Error`]; what expects something can also lose a
/// race, and returns a [`WriteError`].
impl Bucket {
    /// Gives a key a value, whatever it had before.
    ///
    /// # Errors
    /// What is wrong with the key or the value, or what the engine could not do.
    pub async fn put(&self, key: impl IntoKey, value: impl IntoValue) -> Result<Revision, Error> {
        self.write(put(key, value, PutOptions::default())?).await.map_err(WriteError::without_conflict)
    }

    /// [`Bucket::put`], with options.
    ///
    /// # Errors
    /// A conflict if `options.expect` does not hold, and those of [`Bucket::put`].
    pub async fn put_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        options: PutOptions,
    ) -> Result<Revision, WriteError> {
        self.write(put(key, value, options)?).await
    }

    /// Gives a key a value if it has none: it is missing, deleted, purged or expired.
    ///
    /// # Errors
    /// A conflict if it has one, and those of [`Bucket::put`].
    pub async fn create(&self, key: impl IntoKey, value: impl IntoValue) -> Result<Revision, WriteError> {
        self.create_with(key, value, CreateOptions::default()).await
    }

    /// [`Bucket::create`], with options.
    ///
    /// # Errors
    /// Those of [`Bucket::create`].
    pub async fn create_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        options: CreateOptions,
    ) -> Result<Revision, WriteError> {
        self.write(put(key, value, options.into())?).await
    }

    /// Gives a key a value if its newest record, value or marker, is still the one at `seen`.
    ///
    /// # Errors
    /// A conflict if it is not, and those of [`Bucket::put`].
    pub async fn update(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        seen: Revision,
    ) -> Result<Revision, WriteError> {
        self.update_with(key, value, seen, UpdateOptions::default()).await
    }

    /// [`Bucket::update`], with options.
    ///
    /// # Errors
    /// Those of [`Bucket::update`].
    pub async fn update_with(
        &self,
        key: impl IntoKey,
        value: impl IntoValue,
        seen: Revision,
        options: UpdateOptions,
    ) -> Result<Revision, WriteError> {
        self.write(put(key, value, options.expecting(seen))?).await
    }

    /// Deletes the value of a key and leaves a marker, also if it has no value. Its history is kept.
    ///
    /// # Errors
    /// What is wrong with the key, or what the engine could not do.
    pub async fn delete(&self, key: impl IntoKey) -> Result<Revision, Error> {
        self.write(delete(key, DeleteOptions::default())?).await.map_err(WriteError::without_conflict)
    }

    /// [`Bucket::delete`], with options.
    ///
    /// # Errors
    /// A conflict if `options.expect` does not hold, and those of [`Bucket::delete`].
    pub async fn delete_with(
        &self,
        key: impl IntoKey,
        options: DeleteOptions,
    ) -> Result<Revision, WriteError> {
        self.write(delete(key, options)?).await
    }

    /// Deletes the value of a key with all its history and leaves a marker, also if it has no value.
    ///
    /// # Errors
    /// What is wrong with the key, or what the engine could not do.
    pub async fn purge(&self, key: impl IntoKey) -> Result<Revision, Error> {
        self.write(purge(key, PurgeOptions::default())?).await.map_err(WriteError::without_conflict)
    }

    /// [`Bucket::purge`], with options.
    ///
    /// # Errors
    /// A conflict if `options.expect` does not hold, and those of [`Bucket::purge`].
    pub async fn purge_with(&self, key: impl IntoKey, options: PurgeOptions) -> Result<Revision, WriteError> {
        self.write(purge(key, options)?).await
    }

    /// Begins a batch: operations on different keys that are committed together or not at all.
    pub fn batch(&self) -> BatchBuilder {
        BatchBuilder::new(self.clone())
    }

    /// Commits a batch that is already made.
    ///
    /// # Errors
    /// A conflict if an expectation does not hold, what is wrong with the batch, or what the engine could
    /// not do.
    pub async fn commit(&self, mut batch: Batch) -> Result<Committed, WriteError> {
        let origin = self.store().origin().headers()?;
        if !origin.is_empty() {
            for operation in batch.operations_mut() {
                add_headers(operation, &origin)?;
            }
        }
        let result = self.engine().commit(self.name(), batch).await;
        if let Some(cache) = self.cache() {
            // Also what a conflict has shown must be seen by the next read, or a retry would meet it again.
            match &result {
                Ok(committed) => cache.knows_of(committed.last),
                Err(CommitError::Conflict(Conflict { actual: Some(actual), .. })) => cache.knows_of(*actual),
                // The value has expired. Whatever goes wrong here, the conflict is what is to be told.
                Err(CommitError::Conflict(_)) => self.shown(None).await.unwrap_or_default(),
                Err(CommitError::Engine(_)) => {}
            }
        }
        Ok(result?)
    }

    /// A single write is a batch of one.
    async fn write(&self, operation: Operation) -> Result<Revision, WriteError> {
        Ok(self.commit(operation.into()).await?.last)
    }
}

impl From<CreateOptions> for PutOptions {
    fn from(CreateOptions { expiry, headers }: CreateOptions) -> Self {
        Self { expect: Expectation::Absent, expiry, headers }
    }
}

impl UpdateOptions {
    pub(crate) fn expecting(self, seen: Revision) -> PutOptions {
        let Self { expiry, headers } = self;
        PutOptions { expect: Expectation::Revision(seen), expiry, headers }
    }
}

pub(crate) fn put(key: impl IntoKey, value: impl IntoValue, options: PutOptions) -> Result<Operation, Error> {
    let PutOptions { expect, expiry, headers } = options;
    let operation = Operation::put(key.into_key()?, value.into_value());
    Ok(operation.expecting(expect).expiring(expiry).with_headers(headers))
}

pub(crate) fn delete(key: impl IntoKey, options: DeleteOptions) -> Result<Operation, Error> {
    let DeleteOptions { expect, headers } = options;
    Ok(Operation::delete(key.into_key()?).expecting(expect).with_headers(headers))
}

pub(crate) fn purge(key: impl IntoKey, options: PurgeOptions) -> Result<Operation, Error> {
    let PurgeOptions { expect, headers } = options;
    Ok(Operation::purge(key.into_key()?).expecting(expect).with_headers(headers))
}
