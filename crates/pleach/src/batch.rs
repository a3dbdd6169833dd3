use pleach_engine::{Batch, Check, Committed, Operation, Revision};

use crate::{
    Bucket, CreateOptions, DeleteOptions, Error, IntoKey, IntoValue, PurgeOptions, PutOptions, UpdateOptions,
    WriteError, write,
};

/// Operations on different keys of one bucket that are committed together or not at all.
///
/// ```
/// # pollster::block_on(async {
/// # let store = pleach::Store::in_memory();
/// let accounts = store.create_bucket("accounts").await?;
/// let committed = accounts.batch().create("ann", "90").create("bob", "110").commit().await?;
/// assert_eq!(accounts.get("bob").await?.unwrap().revision, committed.last);
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a batch does nothing until it is committed"]
pub struct BatchBuilder {
    bucket: Bucket,
    batch: Batch,
    /// The first thing that was wrong, for `commit` to report.
    error: Option<Error>,
}

impl BatchBuilder {
    pub(crate) fn new(bucket: Bucket) -> Self {
        Self { bucket, batch: Batch::new(), error: None }
    }

    /// Gives a key a value, whatever it had before.
    pub fn put(self, key: impl IntoKey, value: impl IntoValue) -> Self {
        self.put_with(key, value, PutOptions::default())
    }

    /// [`BatchBuilder::put`], with options.
    pub fn put_with(self, key: impl IntoKey, value: impl IntoValue, options: PutOptions) -> Self {
        self.add(write::put(key, value, options))
    }

    /// Gives a key a value if it has none.
    pub fn create(self, key: impl IntoKey, value: impl IntoValue) -> Self {
        self.create_with(key, value, CreateOptions::default())
    }

    /// [`BatchBuilder::create`], with options.
    pub fn create_with(self, key: impl IntoKey, value: impl IntoValue, options: CreateOptions) -> Self {
        self.add(write::put(key, value, options.into()))
    }

    /// Gives a key a value if its newest record is still the one at `seen`.
    pub fn update(self, key: impl IntoKey, value: impl IntoValue, seen: Revision) -> Self {
        self.update_with(key, value, seen, UpdateOptions::default())
    }

    /// [`BatchBuilder::update`], with options.
    pub fn update_with(
        self,
        key: impl IntoKey,
        value: impl IntoValue,
        seen: Revision,
        options: UpdateOptions,
    ) -> Self {
        self.add(write::put(key, value, options.expecting(seen)))
    }

    /// Deletes the value of a key and keeps its history.
    pub fn delete(self, key: impl IntoKey) -> Self {
        self.delete_with(key, DeleteOptions::default())
    }

    /// [`BatchBuilder::delete`], with options.
    pub fn delete_with(self, key: impl IntoKey, options: DeleteOptions) -> Self {
        self.add(write::delete(key, options))
    }

    /// Deletes the value of a key with its history.
    pub fn purge(self, key: impl IntoKey) -> Self {
        self.purge_with(key, PurgeOptions::default())
    }

    /// [`BatchBuilder::purge`], with options.
    pub fn purge_with(self, key: impl IntoKey, options: PurgeOptions) -> Self {
        self.add(write::purge(key, options))
    }

    /// Demands that a key, which the batch does not write, has no value. The check writes nothing; if it fails, nothing
    /// of the batch is committed.
    pub fn check_absent(self, key: impl IntoKey) -> Self {
        self.add_check(key.into_key().map(Check::absent))
    }

    /// Demands that the newest record of a key, which the batch does not write, is still the one at `seen`. The check
    /// writes nothing; if it fails, nothing of the batch is committed.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// # let store = pleach::Store::in_memory();
    /// let jobs = store.create_bucket("jobs").await?;
    /// let lease = jobs.put("lease", "worker 1").await?;
    /// jobs.batch().put("job/7", "done").check("lease", lease).commit().await?;
    /// jobs.put("lease", "worker 2").await?;
    /// let late = jobs.batch().put("job/8", "done").check("lease", lease).commit().await;
    /// assert!(matches!(late, Err(pleach::WriteError::Conflict(_))));
    /// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn check(self, key: impl IntoKey, seen: Revision) -> Self {
        self.add_check(key.into_key().map(|key| Check::revision(key, seen)))
    }

    /// Adds an operation that is already made.
    pub fn with(self, operation: Operation) -> Self {
        self.add(Ok(operation))
    }

    /// Commits them all, or none of them.
    ///
    /// # Errors
    /// A conflict on the first key, in the order of the batch, of which something else was expected; the
    /// first thing that was wrong with an operation; what is wrong with the batch; or what the engine could
    /// not do.
    pub async fn commit(self) -> Result<Committed, WriteError> {
        let Self { bucket, batch, error } = self;
        match error {
            Some(error) => Err(error.into()),
            None => bucket.commit(batch).await,
        }
    }

    fn add_check(mut self, check: Result<Check, Error>) -> Self {
        match check {
            Ok(check) => self.batch.push_check(check),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    fn add(mut self, operation: Result<Operation, Error>) -> Self {
        match operation {
            Ok(operation) => self.batch.push(operation),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }
}
