use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use pleach_engine::{EngineError, Revision, Timestamp};
use tokio::sync::oneshot;

use crate::catalog::Bucket;
use crate::commit::{CommitQueue, Due, NoteChange, Request};
use crate::core::{Core, has_expired};
use crate::index::{IndexKey, ReadAt, decode_expiry_key};

/// How many notes are looked at together; also the most expiries in one commit.
const NOTES_MAX: usize = 1000;

/// How long the reaper sleeps at most: the time of day may have been changed meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Records in the log what has expired, so that it stays expired whatever the clock does, and watches hear
/// of it. Reads do not wait for it: they look at the clock.
#[derive(Debug)]
pub(crate) struct Reaper {
    core: Arc<Core>,
    queue: Arc<CommitQueue>,
}

/// What a look at the notes found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What has expired, in the order of its time; what is next to each other in one bucket is together.
    pub(crate) due: Vec<(Arc<Bucket>, Vec<Due>)>,
    /// Corrections to the notes.
    pub(crate) tidy: Vec<NoteChange>,
    /// When to look again.
    next: Option<Timestamp>,
}

impl Reaper {
    pub(crate) fn new(core: Arc<Core>, queue: Arc<CommitQueue>) -> Self {
        Self { core, queue }
    }

    /// Works until the store is closed.
    pub(crate) fn run(&self) {
        let core = &*self.core;
        while !core.health.is_closed() {
            // Before looking, so that a note made meanwhile wakes the sleep after it.
            core.reaper.sleeping_until(None);
            let sleep = match self.step() {
                Ok(Some(next)) => {
                    core.reaper.sleeping_until(Some(next));
                    next.since(core.clock.now()).min(SLEEP_MAX)
                }
                Err(error @ EngineError::CorruptIndex { .. }) => {
                    core.health.poison(format!("it cannot tell what has expired: {error}"));
                    SLEEP_MAX
                }
                // Closed, out of space or read-only: whoever writes is told so.
                Ok(None) | Err(_) => SLEEP_MAX,
            };
            core.reaper.wait(sleep);
        }
    }

    /// Records what is due, and says when to look again.
    fn step(&self) -> Result<Option<Timestamp>, EngineError> {
        loop {
            self.core.health.check_writable()?;
            let found = Found::look(&self.core)?;
            let mut answers = Vec::new();
            let (due, tidy) = (found.due, found.tidy);
            let nothing = due.is_empty() && tidy.is_empty();
            for (bucket, due) in due {
                let (reply, answer) = oneshot::channel();
                self.queue.push(Request::Expire { bucket, due, reply });
                answers.push(answer);
            }
            if !tidy.is_empty() {
                let (reply, answer) = oneshot::channel();
                self.queue.push(Request::Tidy { notes: tidy, reply });
                answers.push(answer);
            }
            for answer in answers {
                answer.blocking_recv().map_err(|_| EngineError::Closed)??;
            }
            if nothing {
                return Ok(found.next);
            }
        }
    }
}

impl Found {
    /// Looks at the notes up to now, and at the first after.
    pub(crate) fn look(core: &Core) -> Result<Self, EngineError> {
        let now = core.clock.now();
        let start = Bound::Included(IndexKey::expiries_from(Timestamp::default()));
        let end = Bound::Excluded(IndexKey::after(&IndexKey::expiries_from(Timestamp::default())[..1]));
        let mut found = Self::default();
        let mut due = Vec::new();
        for item in core.index.range(start, end, ReadAt::Newest).take(NOTES_MAX) {
            let (note_key, bytes) = item?;
            let decoded =
                decode_expiry_key(&note_key).zip(bytes.as_ref().try_into().ok().map(u64::from_le_bytes));
            let Some(((at, id, key), revision)) = decoded else {
                return Err(EngineError::CorruptIndex { what: "a note about expiry is unreadable".into() });
            };
            if at > now {
                found.next = Some(at);
                break;
            }
            let revision = Revision::new(revision);
            let bucket = core.catalog.by_id(id);
            let head = match &bucket {
                Some(bucket) => core.head(bucket, &key, ReadAt::Newest)?,
                None => None,
            };
            let current = bucket.zip(head.filter(|head| head.revision == revision && head.op.is_put()));
            let Some((bucket, head)) = current else {
                found.tidy.push(NoteChange::Remove { key: note_key, about: revision });
                continue;
            };
            let config = bucket.config();
            if has_expired(&config, head.time, head.expires, || now) {
                let moment = config.expiry(head.time, head.expires).unwrap_or(at);
                due.push((moment, bucket, Due { key, revision, note: note_key }));
            } else {
                // The bucket's TTL was lengthened since, or taken away.
                found.tidy.push(NoteChange::Remove { key: note_key, about: revision });
                if let Some(later) = config.expiry(head.time, head.expires) {
                    found
                        .tidy
                        .push(NoteChange::Add { key: IndexKey::expiry(later, id, &key), about: revision });
                }
            }
        }
        // A note may be older than the bucket's TTL, and so in another order than values expire in.
        due.sort_by_key(|(moment, _, _)| *moment);
        for (_, bucket, due) in due {
            match found.due.last_mut() {
                Some((last, together)) if last.id == bucket.id => together.push(due),
                _ => found.due.push((bucket, vec![due])),
            }
        }
        Ok(found)
    }
}
