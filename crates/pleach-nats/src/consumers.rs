use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use pleach_engine::{
    Batch, BucketName, CONSUMERS_MAX, CommitError, ConsumerInfo, ConsumerName, ConsumerStart, Direction,
    EngineError, Entry, Expectation, Key, KeyRange, Operation, Revision, Timestamp,
};

use crate::bucket::Bucket;
use crate::cache::within;
use crate::engine::Shared;
use crate::options::Reads;
use crate::runtime::pause;
use crate::system::{bug, system_key};

/// How long to wait before what someone else has changed is looked at again.
const CHANGED_EVERY: Duration = Duration::from_millis(10);

/// A consumer as it is kept among the store's own records.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What tells its bucket from namesakes.
    bucket: u64,
    next: Revision,
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<u64>,
}

impl Kept {
    fn of(bucket: &Bucket, info: &ConsumerInfo) -> Self {
        let (created, acknowledged) = (info.created.as_micros(), info.acknowledged.map(Timestamp::as_micros));
        Self { bucket: bucket.identity, next: info.next, created, acknowledged }
    }

    fn parse(entry: &Entry) -> Option<Self> {
        serde_json::from_slice(&entry.value).ok()
    }

    /// The consumer, if it is one of `bucket` and not of a namesake before it.
    fn info(entry: &Entry, bucket: &Bucket) -> Option<ConsumerInfo> {
        let kept = Self::parse(entry)?;
        let name = ConsumerName::parse(entry.key.tokens().last()?).ok()?;
        let (created, acknowledged) =
            (Timestamp::from_micros(kept.created), kept.acknowledged.map(Timestamp::from_micros));
        let info = ConsumerInfo { name, next: kept.next, created, acknowledged };
        (kept.bucket == bucket.identity).then_some(info)
    }
}

/// Consumers, which are records of the store's own bucket.
impl Shared {
    pub(crate) async fn create_consumer(
        self: &Arc<Self>,
        name: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        let (bucket, newest) = self.look(name).await?;
        loop {
            let (found, seen) = self.kept(&bucket, consumer).await?;
            if let Some(found) = found {
                return Ok(found);
            }
            if self.consumers_of(&bucket).await?.len() >= CONSUMERS_MAX {
                return Err(EngineError::TooManyConsumers { bucket: name.clone(), limit: CONSUMERS_MAX });
            }
            let floor = Revision::new(self.feed_floor(&bucket, newest).await?);
            let next = start.resolve(floor, Revision::new(newest))?;
            let created = self.clock.now();
            let info = ConsumerInfo { name: consumer.clone(), next, created, acknowledged: None };
            if self.keep(&bucket, &info, seen).await? {
                return Ok(info);
            }
        }
    }

    pub(crate) async fn consumers(
        self: &Arc<Self>,
        name: &BucketName,
    ) -> Result<Vec<ConsumerInfo>, EngineError> {
        let bucket = self.bucket(name).await?;
        self.consumers_of(&bucket).await
    }

    pub(crate) async fn consumer(
        &self,
        name: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        let bucket = self.bucket(name).await?;
        self.kept(&bucket, consumer).await?.0.ok_or_else(|| missing(name, consumer))
    }

    pub(crate) async fn acknowledge(
        &self,
        name: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        let bucket = self.bucket(name).await?;
        loop {
            let (found, seen) = self.kept(&bucket, consumer).await?;
            let mut info = found.ok_or_else(|| missing(name, consumer))?;
            self.check_reached(&bucket, revision).await?;
            if !info.acknowledge(revision, self.clock.now()) || self.keep(&bucket, &info, seen).await? {
                return Ok(());
            }
        }
    }

    pub(crate) async fn reset_consumer(
        &self,
        name: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        let (bucket, newest) = self.look(name).await?;
        loop {
            let (found, seen) = self.kept(&bucket, consumer).await?;
            let mut info = found.ok_or_else(|| missing(name, consumer))?;
            let floor = Revision::new(self.feed_floor(&bucket, newest).await?);
            info.reset(start.resolve(floor, Revision::new(newest))?);
            if self.keep(&bucket, &info, seen).await? {
                return Ok(info);
            }
        }
    }

    pub(crate) async fn delete_consumer(
        &self,
        name: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<(), EngineError> {
        let bucket = self.bucket(name).await?;
        let system = self.system().await?;
        loop {
            let (found, seen) = self.kept(&bucket, consumer).await?;
            found.ok_or_else(|| missing(name, consumer))?;
            let purge = Operation::purge(consumer_key(name, consumer)?).expecting(seen);
            match self.commit_to(&system, Batch::from(purge)).await {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Engine(error)) => return Err(error),
            }
        }
    }

    /// Deletes the consumers of the bucket `identity` that is about to go, and none of a namesake that may be there already.
    pub(crate) async fn forget_consumers(
        self: &Arc<Self>,
        name: &BucketName,
        identity: u64,
    ) -> Result<(), EngineError> {
        let system = self.system().await?;
        loop {
            let (entries, _) = self.snapshot(&system).await?;
            let range = consumers_range(name);
            let kept = within(&entries, &range, Direction::Forward);
            let own = kept.filter(|entry| Kept::parse(entry).is_none_or(|kept| kept.bucket == identity));
            let purge = |entry: &Arc<Entry>| {
                Operation::purge(entry.key.clone()).expecting(Expectation::Revision(entry.revision))
            };
            let batch: Batch = own.take(self.capabilities.batch_operations_max).map(purge).collect();
            if batch.operations().is_empty() {
                return Ok(());
            }
            match self.commit_to(&system, batch).await {
                Ok(_) => {}
                // What someone has changed meanwhile is looked at again, once it has arrived here.
                Err(CommitError::Conflict(_)) => pause(CHANGED_EVERY).await,
                Err(CommitError::Engine(error)) => return Err(error),
            }
        }
    }

    async fn consumers_of(self: &Arc<Self>, bucket: &Bucket) -> Result<Vec<ConsumerInfo>, EngineError> {
        let system = self.system().await?;
        let (entries, _) = self.snapshot(&system).await?;
        let range = consumers_range(&bucket.name);
        let found = within(&entries, &range, Direction::Forward);
        Ok(found.filter_map(|entry| Kept::info(entry, bucket)).collect())
    }

    /// A consumer of a bucket, and what must be true of its record for it to be so still.
    async fn kept(
        &self,
        bucket: &Bucket,
        consumer: &ConsumerName,
    ) -> Result<(Option<ConsumerInfo>, Expectation), EngineError> {
        let system = self.system().await?;
        let key = consumer_key(&bucket.name, consumer)?;
        let Some(change) = self.newest(&system, &key, Reads::Leader).await? else {
            return Ok((None, Expectation::Absent));
        };
        let expect = Expectation::Revision(change.entry.revision);
        Ok((Kept::info(&change.entry, bucket), expect))
    }

    /// Writes a consumer down, if its record is as expected. Says whether it was.
    async fn keep(
        &self,
        bucket: &Bucket,
        info: &ConsumerInfo,
        expect: Expectation,
    ) -> Result<bool, EngineError> {
        let system = self.system().await?;
        let value = serde_json::to_vec(&Kept::of(bucket, info)).map_err(|error| bug(&error))?;
        let put = Operation::put(consumer_key(&bucket.name, &info.name)?, value).expecting(expect);
        match self.commit_to(&system, Batch::from(put)).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict(_)) => Ok(false),
            Err(CommitError::Engine(error)) => Err(error),
        }
    }
}

fn consumer_key(bucket: &BucketName, consumer: &ConsumerName) -> Result<Key, EngineError> {
    system_key(&format!("consumer.{bucket}.{consumer}"))
}

fn consumers_range(bucket: &BucketName) -> KeyRange {
    KeyRange::prefix(format!("consumer.{bucket}."))
}

fn missing(bucket: &BucketName, consumer: &ConsumerName) -> EngineError {
    EngineError::ConsumerNotFound { bucket: bucket.clone(), consumer: consumer.clone() }
}
