use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{CONSUMERS_MAX, ConsumerInfo, ConsumerName, Durability, EngineError, Key, Revision};

use super::request::ConsumerChange;
use super::sequencer::Sequencer;
use crate::catalog::Bucket;
use crate::consumers::encode_info;
use crate::feed::Logged;
use crate::log::{BucketId, FrameKind, RecordKind};

/// What is in the log, or about to be, about consumers, and not yet in the catalog; none for a deleted one.
#[derive(Debug, Default)]
pub(crate) struct PendingConsumers {
    by_name: HashMap<(BucketId, ConsumerName), Vec<(Revision, State)>>,
}

/// A consumer as a record leaves it; none if the record deletes it.
type State = Option<ConsumerInfo>;

impl PendingConsumers {
    fn get(&self, bucket: &Bucket, name: &ConsumerName) -> Option<ConsumerInfo> {
        match self.by_name.get(&(bucket.id, name.clone())).and_then(|states| states.last()) {
            Some((_, state)) => state.clone(),
            None => bucket.consumers.get(name).map(|consumer| consumer.info),
        }
    }

    fn set(&mut self, bucket: BucketId, name: &ConsumerName, revision: Revision, state: State) {
        self.by_name.entry((bucket, name.clone())).or_default().push((revision, state));
    }

    /// Forgets what the catalog has by now.
    pub(crate) fn forget_up_to(&mut self, applied: Revision) {
        self.retain(|revision| revision > applied);
    }

    /// Forgets what came after `last`, which was not written.
    pub(crate) fn roll_back(&mut self, last: Revision) {
        self.retain(|revision| revision <= last);
    }

    fn retain(&mut self, keep: impl Fn(Revision) -> bool) {
        self.by_name.retain(|_, states| {
            states.retain(|(revision, _)| keep(*revision));
            !states.is_empty()
        });
    }

    /// How many consumers come on top of those in the catalog; deleted ones are not taken off.
    fn created(&self, bucket: &Bucket) -> usize {
        let new =
            |(id, name): &&(BucketId, ConsumerName)| *id == bucket.id && bucket.consumers.get(name).is_none();
        self.by_name.keys().filter(new).count()
    }
}

impl Sequencer {
    /// Puts a change of a consumer into the log, and says what the consumer is then.
    pub(super) fn change_consumer(
        &mut self,
        bucket: &Bucket,
        name: &ConsumerName,
        change: ConsumerChange,
    ) -> Result<(Option<Arc<Logged>>, Option<ConsumerInfo>), EngineError> {
        if bucket.is_deleted() {
            return Err(bucket.not_found());
        }
        let found = self.consumers.get(bucket, name);
        let (newest, floor, now) = (self.writer.last(), bucket.feed_floor(), self.core.clock.now());
        let missing =
            || EngineError::ConsumerNotFound { bucket: bucket.name.clone(), consumer: name.clone() };
        let info = match change {
            ConsumerChange::Create(start) => {
                if found.is_some() {
                    return Ok((None, found));
                }
                if bucket.consumers.len() + self.consumers.created(bucket) >= CONSUMERS_MAX {
                    let limit = CONSUMERS_MAX;
                    return Err(EngineError::TooManyConsumers { bucket: bucket.name.clone(), limit });
                }
                let next = start.resolve(floor, newest)?;
                Some(ConsumerInfo { name: name.clone(), next, created: now, acknowledged: None })
            }
            ConsumerChange::Acknowledge(revision) => {
                let mut info = found.ok_or_else(missing)?;
                if revision > newest {
                    return Err(EngineError::FutureRevision { asked: revision, newest });
                }
                if !info.acknowledge(revision, now) {
                    return Ok((None, Some(info)));
                }
                Some(info)
            }
            ConsumerChange::Reset(start) => {
                let mut info = found.ok_or_else(missing)?;
                info.reset(start.resolve(floor, newest)?);
                Some(info)
            }
            ConsumerChange::Delete => {
                found.ok_or_else(missing)?;
                None
            }
        };
        let logged = self.log_consumer(bucket, name, info.as_ref())?;
        self.consumers.set(bucket.id, name, logged.last, info.clone());
        Ok((Some(logged), info))
    }

    fn log_consumer(
        &mut self,
        bucket: &Bucket,
        name: &ConsumerName,
        info: Option<&ConsumerInfo>,
    ) -> Result<Arc<Logged>, EngineError> {
        let key = Key::parse_reserved(name.as_str());
        let key = key.map_err(|error| EngineError::Bug { what: error.to_string() })?;
        let (kind, value) = match info {
            Some(info) => (RecordKind::SetConsumer, encode_info(info)),
            None => (RecordKind::DeleteConsumer, Vec::new()),
        };
        let record = self.record(kind, key, Bytes::from(value));
        // A deletion that is lost must not bring back a consumer whose record was cleaned away meanwhile.
        self.sync |= info.is_none() || bucket.config().durability != Durability::Buffered;
        Ok(self.append(FrameKind::Consumer, bucket.id, vec![record]))
    }
}
