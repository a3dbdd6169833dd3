use super::bucket::Bucket;
use super::state::State;
use crate::{
    BucketName, CONSUMERS_MAX, ConsumerInfo, ConsumerName, ConsumerStart, EngineError, Revision, Timestamp,
};

/// What consumers are asked for. Whatever changes one takes a revision of the store, as every change does.
impl State {
    pub(super) fn create_consumer(
        &mut self,
        bucket: &BucketName,
        name: &ConsumerName,
        start: ConsumerStart,
        now: Timestamp,
    ) -> Result<ConsumerInfo, EngineError> {
        let newest = self.newest;
        let found = self.bucket_mut(bucket)?;
        if let Some(existing) = found.consumers.get(name) {
            return Ok(existing.clone());
        }
        if found.consumers.len() >= CONSUMERS_MAX {
            return Err(EngineError::TooManyConsumers { bucket: bucket.clone(), limit: CONSUMERS_MAX });
        }
        let next = start.resolve(found.feed.floor(), newest)?;
        let info = ConsumerInfo { name: name.clone(), next, created: now, acknowledged: None };
        found.consumers.insert(name.clone(), info.clone());
        self.newest = newest.next();
        Ok(info)
    }

    pub(super) fn acknowledge(
        &mut self,
        bucket: &BucketName,
        name: &ConsumerName,
        revision: Revision,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let newest = self.newest;
        let consumer = self.bucket_mut(bucket)?.consumer_mut(name)?;
        if revision > newest {
            return Err(EngineError::FutureRevision { asked: revision, newest });
        }
        if consumer.acknowledge(revision, now) {
            self.newest = newest.next();
        }
        Ok(())
    }

    pub(super) fn reset_consumer(
        &mut self,
        bucket: &BucketName,
        name: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        let newest = self.newest;
        let found = self.bucket_mut(bucket)?;
        let floor = found.feed.floor();
        let consumer = found.consumer_mut(name)?;
        consumer.reset(start.resolve(floor, newest)?);
        let info = consumer.clone();
        self.newest = newest.next();
        Ok(info)
    }

    pub(super) fn delete_consumer(
        &mut self,
        bucket: &BucketName,
        name: &ConsumerName,
    ) -> Result<(), EngineError> {
        let found = self.bucket_mut(bucket)?;
        found.consumer(name)?;
        found.consumers.remove(name);
        self.newest = self.newest.next();
        Ok(())
    }
}

impl Bucket {
    pub(super) fn consumer(&self, name: &ConsumerName) -> Result<&ConsumerInfo, EngineError> {
        self.consumers.get(name).ok_or_else(|| missing(&self.name, name))
    }

    fn consumer_mut(&mut self, name: &ConsumerName) -> Result<&mut ConsumerInfo, EngineError> {
        self.consumers.get_mut(name).ok_or_else(|| missing(&self.name, name))
    }
}

fn missing(bucket: &BucketName, consumer: &ConsumerName) -> EngineError {
    EngineError::ConsumerNotFound { bucket: bucket.clone(), consumer: consumer.clone() }
}
