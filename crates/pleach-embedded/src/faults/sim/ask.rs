use std::num::NonZeroU8;

use bytes::Bytes;
use pleach_engine::{
    Action, Batch, BucketConfig, BucketName, CommitError, Committed, ConsumerInfo, ConsumerName, EngineError,
    Entry, Key, Op, Operation, Revision, Timestamp,
};

use super::state::{Bucket, Event, State, What};
use crate::commit::ConsumerChange;
use crate::engine::CAPABILITIES;

/// Something that a caller, or the reaper, wants to have written.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Commit(BucketName, Batch),
    Compact(BucketName, Key, NonZeroU8),
    Create(BucketName, BucketConfig),
    Update(BucketName, BucketConfig),
    Delete(BucketName),
    Consumer(BucketName, ConsumerName, ConsumerChange),
    /// What the reaper found to be due: keys with the revisions of their values.
    Expire(BucketName, Vec<(Key, Revision)>),
    /// Corrections to notes, which leave nothing in the log.
    Tidy,
    /// What the cleaner does: whatever it puts into the log.
    Clean,
}

/// An ask that was handed in.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) ask: Ask,
    /// The bucket that it found when it was handed in.
    pub(super) bucket: Option<Revision>,
    /// Where that one's feed began.
    pub(super) floor: Revision,
    /// The time when it was put in order with others.
    pub(super) now: Timestamp,
    /// Whether the index was damaged by then: it may have been refused for that, whatever its answer.
    pub(super) doubtful: bool,
}

/// What became of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Acknowledged, or refused for what it asked; the text tells which.
    Answered(String),
    /// Not written, and never will be: there was no space.
    Full,
    /// Nobody knows whether it was written.
    Unknown,
    /// Not written, because the index turned out to be damaged.
    Damaged,
}

impl Outcome {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Full => "full",
            Self::Unknown => "unknown",
            Self::Damaged => "damaged",
        }
    }

    pub(super) fn of<T>(result: Result<T, CommitError>, text: impl FnOnce(T) -> String) -> Self {
        match result {
            Ok(done) => Self::Answered(text(done)),
            Err(CommitError::Engine(EngineError::DiskFull { .. })) => Self::Full,
            Err(CommitError::Engine(EngineError::ReadOnly { .. } | EngineError::Closed)) => Self::Unknown,
            Err(CommitError::Engine(EngineError::CorruptIndex { .. })) => Self::Damaged,
            Err(error) => Self::Answered(format!("error: {error}")),
        }
    }
}

/// What must become of an ask if nothing fails.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) event: Option<Event>,
    pub(super) answer: String,
    /// Whether it is durable once it is acknowledged.
    pub(super) synced: bool,
}

impl Asked {
    /// Whatever the cleaner does at a moment.
    pub(super) fn by_cleaner(now: Timestamp) -> Self {
        Self { ask: Ask::Clean, bucket: None, floor: Revision::ZERO, now, doubtful: false }
    }

    /// What its caller was told at once, if it was: it never reached the queue.
    pub(super) fn refused_at_once(&self, state: &State) -> Option<String> {
        let refused = match &self.ask {
            Ask::Commit(name, batch) => match state.buckets.get(name) {
                None => Some(not_found(name)),
                Some(bucket) => batch.clone().check(name, &bucket.config, &CAPABILITIES).err(),
            },
            Ask::Compact(name, ..) | Ask::Update(name, _) | Ask::Consumer(name, ..)
                if !state.buckets.contains_key(name) =>
            {
                Some(not_found(name))
            }
            _ => None,
        };
        refused.map(|error| format!("error: {error}"))
    }

    /// What must become of it in `state`.
    pub(super) fn judge(&self, state: &State) -> Verdict {
        let first = state.newest.next();
        let done = |what: What, count: u64, answer: String, synced: bool| {
            let last = first.plus(count - 1);
            Verdict { event: Some(Event { first, last, time: self.now, what }), answer, synced }
        };
        let nothing = |answer: String| Verdict { event: None, answer, synced: false };
        let failed = |error: EngineError| nothing(format!("error: {error}"));
        match &self.ask {
            Ask::Commit(name, batch) => match self.commit(state, name, batch) {
                Ok((records, synced)) => {
                    let count = records.len() as u64;
                    let committed = Committed { first, last: first.plus(count - 1), time: self.now };
                    done(What::Commit(name.clone(), records), count, format!("{committed:?}"), synced)
                }
                Err(error) => nothing(format!("error: {error}")),
            },
            Ask::Compact(name, key, keep) => match self.bucket(state, name) {
                None => failed(not_found(name)),
                Some(bucket) if !bucket.records.contains_key(key) => nothing("()".into()),
                Some(bucket) => {
                    let what = What::Compact(name.clone(), key.clone(), keep.get());
                    done(what, 1, "()".into(), is_synced(&bucket.config))
                }
            },
            Ask::Create(name, config) => match state.buckets.get(name) {
                None => done(
                    What::Create(name.clone(), config.clone()),
                    1,
                    format!("{name} of {}", self.now),
                    true,
                ),
                Some(bucket) => {
                    let differences = bucket.config.differences(config);
                    if differences.is_empty() {
                        nothing(format!("{name} of {}", bucket.created))
                    } else {
                        failed(EngineError::BucketExists { bucket: name.clone(), differences })
                    }
                }
            },
            Ask::Update(name, config) => match state.buckets.get(name) {
                None => failed(not_found(name)),
                Some(bucket) => {
                    let answer = format!("{name} of {}", bucket.created);
                    done(What::Update(name.clone(), config.clone()), 1, answer, true)
                }
            },
            Ask::Delete(name) => match state.buckets.get(name) {
                None => failed(not_found(name)),
                Some(_) => done(What::Delete(name.clone()), 1, "()".into(), true),
            },
            Ask::Expire(name, due) => {
                let (keys, synced) = self.expired(state, name, due);
                if keys.is_empty() {
                    return nothing("()".into());
                }
                let count = keys.len() as u64;
                done(What::Expire(name.clone(), keys), count, "()".into(), synced)
            }
            Ask::Consumer(name, consumer, change) => match self.consumer(state, name, consumer, *change) {
                Ok((Some(what), answer, synced)) => done(what, 1, answer, synced),
                Ok((None, answer, _)) => nothing(answer),
                Err(error) => failed(error),
            },
            Ask::Tidy | Ask::Clean => nothing("()".into()),
        }
    }

    /// The bucket that it is about, if that is still there.
    fn bucket<'a>(&self, state: &'a State, name: &BucketName) -> Option<&'a Bucket> {
        state.buckets.get(name).filter(|bucket| Some(bucket.created_at) == self.bucket)
    }

    fn commit(
        &self,
        state: &State,
        name: &BucketName,
        batch: &Batch,
    ) -> Result<(Vec<Entry>, bool), CommitError> {
        let bucket = self.bucket(state, name).ok_or_else(|| not_found(name))?;
        let batch = batch.clone().check(name, &bucket.config, &CAPABILITIES)?;
        for demand in batch.demands() {
            bucket.judge(demand, self.now).map_err(CommitError::Conflict)?;
        }
        let first = state.newest.next();
        let records = batch.into_operations().into_iter().zip(first.get()..);
        let records =
            records.map(|(operation, revision)| record(operation, Revision::new(revision), self.now));
        Ok((records.collect(), is_synced(&bucket.config)))
    }

    /// What happens to a consumer, what its owner is told, and whether that is durable then.
    fn consumer(
        &self,
        state: &State,
        bucket: &BucketName,
        consumer: &ConsumerName,
        change: ConsumerChange,
    ) -> Result<(Option<What>, String, bool), EngineError> {
        let found = self.bucket(state, bucket).ok_or_else(|| not_found(bucket))?;
        let (newest, synced) = (state.newest, is_synced(&found.config));
        let set = |info: ConsumerInfo| What::SetConsumer(bucket.clone(), info);
        let there = found.consumers.get(consumer).cloned();
        let missing = || EngineError::ConsumerNotFound { bucket: bucket.clone(), consumer: consumer.clone() };
        match (change, there) {
            (ConsumerChange::Create(_), Some(info)) => Ok((None, format!("{info:?}"), false)),
            (ConsumerChange::Create(start), None) => {
                let next = start.resolve(self.floor, newest)?;
                let (name, created) = (consumer.clone(), self.now);
                let info = ConsumerInfo { name, next, created, acknowledged: None };
                Ok((Some(set(info.clone())), format!("{info:?}"), synced))
            }
            (_, None) => Err(missing()),
            (ConsumerChange::Acknowledge(asked), Some(_)) if asked > newest => {
                Err(EngineError::FutureRevision { asked, newest })
            }
            (ConsumerChange::Acknowledge(revision), Some(mut info)) => {
                let moved = info.acknowledge(revision, self.now);
                Ok((moved.then(|| set(info)), "()".into(), synced))
            }
            (ConsumerChange::Reset(start), Some(mut info)) => {
                info.reset(start.resolve(self.floor, newest)?);
                Ok((Some(set(info.clone())), format!("{info:?}"), synced))
            }
            (ConsumerChange::Delete, Some(_)) => {
                Ok((Some(What::DeleteConsumer(bucket.clone(), consumer.clone())), "()".into(), true))
            }
        }
    }

    fn expired(&self, state: &State, name: &BucketName, due: &[(Key, Revision)]) -> (Vec<Key>, bool) {
        let Some(bucket) = self.bucket(state, name) else { return (Vec::new(), false) };
        let mut keys: Vec<Key> = Vec::new();
        for (key, revision) in due {
            let same = bucket.newest(key).is_some_and(|newest| newest.revision == *revision);
            if same && bucket.has_expired(key, self.now) && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        (keys, is_synced(&bucket.config))
    }
}

fn is_synced(config: &BucketConfig) -> bool {
    config.durability != pleach_engine::Durability::Buffered
}

fn not_found(name: &BucketName) -> EngineError {
    EngineError::BucketNotFound { bucket: name.clone() }
}

fn record(operation: Operation, revision: Revision, time: Timestamp) -> Entry {
    let Operation { key, action, headers, .. } = operation;
    let (op, value, expires) = match action {
        Action::Put { value, expiry } => (Op::Put, value, expiry.moment(time)),
        Action::Delete => (Op::Delete, Bytes::new(), None),
        Action::Purge => (Op::Purge, Bytes::new(), None),
    };
    Entry { key, value, revision, time, expires, op, headers }
}
