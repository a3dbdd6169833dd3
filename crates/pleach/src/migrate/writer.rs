use std::hash::{BuildHasher as _, RandomState};

use pleach_engine::{At, Batch, BucketName, CommitError, EngineError, Expectation, Key, Operation, Revision};

use super::MigrateError;
use super::position::{POSITION_KEY, Position};
use crate::{Error, Store};

/// How often a commit is tried of which it was not known whether it had happened.
const ATTEMPTS_MAX: usize = 5;

/// Writes to the target: each commit carries the position after it, and holds only if nobody else has moved it.
#[derive(Debug)]
pub(super) struct Writer {
    target: Store,
    bucket: BucketName,
    key: Key,
    /// Tells this process from any other that may be at work on the same bucket.
    run: u64,
    step: u64,
    /// The record of the position, as far as there is one.
    last: Option<Revision>,
}

impl Writer {
    /// A writer, and the position that is there already.
    pub(super) async fn open(target: &Store, bucket: &BucketName) -> Result<(Self, Option<Position>), Error> {
        let key = Key::parse_reserved(POSITION_KEY).map_err(Error::Key)?;
        let found = target.engine().read(bucket, &key, At::Latest).await?;
        let unreadable = || MigrateError::Position { bucket: bucket.clone() };
        let position =
            found.as_ref().map(|entry| Position::read(&entry.headers).ok_or_else(unreadable)).transpose()?;
        let run = RandomState::new().hash_one(POSITION_KEY);
        let (target, bucket, last) = (target.clone(), bucket.clone(), found.map(|entry| entry.revision));
        Ok((Self { target, bucket, key, run, step: 0, last }, position))
    }

    /// Commits `operations` and the position that is reached with them.
    pub(super) async fn commit(
        &mut self,
        operations: Vec<Operation>,
        position: &Position,
    ) -> Result<(), Error> {
        self.step += 1;
        let headers = position.headers(self.run, self.step)?;
        let busy = || MigrateError::Busy { bucket: self.bucket.clone() };
        let mut unknown = None;
        for _ in 0..ATTEMPTS_MAX {
            let expect = self.last.map_or(Expectation::Absent, Expectation::Revision);
            let mut batch: Batch = operations.iter().cloned().collect();
            let note = Operation::put(self.key.clone(), "").with_headers(headers.clone());
            batch.push(note.expecting(expect));
            match self.target.engine().commit(&self.bucket, batch).await {
                Ok(committed) => {
                    self.last = Some(committed.last);
                    return Ok(());
                }
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Engine(error @ EngineError::UnknownOutcome { .. })) => unknown = Some(error),
                Err(CommitError::Engine(error)) => return Err(error.into()),
            }
            let found = self.target.engine().read(&self.bucket, &self.key, At::Latest).await?;
            match found {
                Some(found) if found.headers == headers => {
                    self.last = Some(found.revision);
                    return Ok(());
                }
                // It did not happen.
                Some(found) if Some(found.revision) == self.last => {}
                Some(_) => return Err(busy().into()),
                // The position is the newest record, so if the bucket's TTL has ended it, nothing that was copied before it
                // is alive either.
                None => self.last = None,
            }
        }
        Err(unknown.map_or_else(|| busy().into(), Into::into))
    }

    /// Forgets the position: the migration is over.
    pub(super) async fn finish(&mut self) -> Result<(), Error> {
        if self.last.take().is_none() {
            return Ok(());
        }
        let purge = Batch::from(Operation::purge(self.key.clone()));
        match self.target.engine().commit(&self.bucket, purge).await {
            Ok(_) => Ok(()),
            Err(CommitError::Engine(error)) => Err(error.into()),
            Err(CommitError::Conflict(_)) => Err(MigrateError::Busy { bucket: self.bucket.clone() }.into()),
        }
    }
}
