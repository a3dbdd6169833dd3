use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{
    BucketConfig, BucketName, CheckedBatch, CommitError, Committed, ConsumerInfo, ConsumerName,
    ConsumerStart, EngineError, Key, Revision,
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::catalog::Bucket;
use crate::feed::Logged;
use crate::log::{BucketId, Position};

/// Where the answer to a request goes; nobody may be waiting for it any more.
pub(crate) type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// Something to be written.
#[derive(Debug)]
pub(crate) enum Request {
    /// A batch for a bucket.
    Commit {
        bucket: Arc<Bucket>,
        /// The configuration that the batch was checked against.
        config: Arc<BucketConfig>,
        batch: CheckedBatch,
        reply: Reply<Committed, CommitError>,
        /// Its share of what may wait at once.
        permit: OwnedSemaphorePermit,
    },
    /// Forgets all but the newest records of a key.
    Compact { bucket: Arc<Bucket>, key: Key, keep: u8, reply: Reply<(), EngineError> },
    /// Records what has expired in a bucket.
    Expire { bucket: Arc<Bucket>, due: Vec<Due>, reply: Reply<(), EngineError> },
    /// Puts notes about expiry in order; nothing for the log.
    Tidy { notes: Vec<NoteChange>, reply: Reply<(), EngineError> },
    /// Creates, changes or deletes a bucket.
    Bucket { change: BucketChange, reply: Reply<Option<Arc<Bucket>>, EngineError> },
    /// Creates, moves or deletes a consumer.
    Consumer {
        bucket: Arc<Bucket>,
        name: ConsumerName,
        change: ConsumerChange,
        reply: Reply<Option<ConsumerInfo>, EngineError>,
    },
    /// Forgets deleted keys, each with the revision of its marker, unless they have been written since.
    Forget { bucket: Arc<Bucket>, keys: Vec<(Key, Revision)>, reply: Reply<(), EngineError> },
    /// Changes the index without any change to what it says; answers with the revision that this took.
    Upkeep { upkeep: IndexUpkeep, reply: Reply<Revision, EngineError> },
}

/// What is done to a consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConsumerChange {
    Create(ConsumerStart),
    Acknowledge(Revision),
    Reset(ConsumerStart),
    Delete,
}

/// A change to the index that nobody sees.
#[derive(Debug)]
pub(crate) enum IndexUpkeep {
    /// Points to where records have moved.
    Move(Vec<Moved>),
    /// Removes keys of the index, which belong to buckets that are gone.
    Remove(Vec<Bytes>),
    /// Seals it, so that it can be flushed.
    Seal,
}

/// A record that is also somewhere else now.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) bucket: BucketId,
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) position: Position,
}

/// What is done to a bucket.
#[derive(Debug)]
pub(crate) enum BucketChange {
    Create(BucketName, BucketConfig),
    Update(BucketName, BucketConfig),
    Delete(BucketName),
}

/// A value that may have expired.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    /// The index key of the note that said so.
    pub(crate) note: Bytes,
}

/// A correction to the notes about expiry. `key` is the index key of the note, `about` the revision of the
/// value that it is about.
#[derive(Debug)]
pub(crate) enum NoteChange {
    Add { key: Bytes, about: Revision },
    Remove { key: Bytes, about: Revision },
}

/// Requests that were written together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) steps: Vec<Step>,
}

/// One request of a group: what it put into the log, and what to answer once that is applied.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) logged: Option<Arc<Logged>>,
    /// Corrections to the notes about expiry.
    pub(crate) notes: Vec<NoteChange>,
    /// What else is done to the index.
    pub(crate) upkeep: Option<IndexUpkeep>,
    pub(crate) answer: Answer,
}

impl Step {
    /// A request that puts something into the log, or only answers.
    pub(crate) fn new(logged: Option<Arc<Logged>>, answer: Answer) -> Self {
        Self { logged, notes: Vec::new(), upkeep: None, answer }
    }
}

/// What to answer.
#[derive(Debug)]
pub(crate) enum Answer {
    Commit(Reply<Committed, CommitError>, Result<Committed, CommitError>, OwnedSemaphorePermit),
    Plain(Reply<(), EngineError>, Result<(), EngineError>),
    Bucket(Reply<Option<Arc<Bucket>>, EngineError>, Result<Option<BucketName>, EngineError>),
    Consumer(Reply<Option<ConsumerInfo>, EngineError>, Result<Option<ConsumerInfo>, EngineError>),
    Upkeep(Reply<Revision, EngineError>, Revision),
}

impl Request {
    /// Answers that it was not done.
    pub(crate) fn refuse(self, error: EngineError) {
        match self {
            Self::Commit { reply, .. } => drop(reply.send(Err(error.into()))),
            Self::Compact { reply, .. }
            | Self::Expire { reply, .. }
            | Self::Tidy { reply, .. }
            | Self::Forget { reply, .. } => drop(reply.send(Err(error))),
            Self::Bucket { reply, .. } => drop(reply.send(Err(error))),
            Self::Consumer { reply, .. } => drop(reply.send(Err(error))),
            Self::Upkeep { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

impl Group {
    /// How many commits of callers are in it.
    pub(crate) fn commits(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.answer, Answer::Commit(..))).count()
    }

    /// Answers everyone that it was not done. A conflict is no answer any more: it may have been with a commit
    /// of this very group.
    pub(crate) fn refuse(self, mut error: impl FnMut() -> EngineError) {
        for step in self.steps {
            match step.answer {
                Answer::Commit(reply, _, _permit) => drop(reply.send(Err(error().into()))),
                Answer::Plain(reply, _) => drop(reply.send(Err(error()))),
                Answer::Bucket(reply, _) => drop(reply.send(Err(error()))),
                Answer::Consumer(reply, _) => drop(reply.send(Err(error()))),
                Answer::Upkeep(reply, _) => drop(reply.send(Err(error()))),
            }
        }
    }
}
