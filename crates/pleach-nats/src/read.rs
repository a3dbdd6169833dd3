use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use pleach_engine::{At, BucketName, Change, EngineError, Entry, Key, Revision};

use async_nats::{StatusCode, Subject};
use bytes::Bytes;

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::error::ApiError;
use crate::options::Reads;
use crate::range::Chunk;
use crate::record::{Record, shown};
use crate::runtime::pause;

/// Subjects whose newest messages are asked for at once.
const SUBJECTS_AT_ONCE: usize = 512;

/// How often to look whether a replica has come as far as it must.
const CATCH_UP_EVERY: Duration = Duration::from_millis(5);

/// Reads of single keys.
impl Shared {
    pub(crate) async fn read(
        &self,
        name: &BucketName,
        key: &Key,
        at: At,
        reads: Reads,
    ) -> Result<Option<Entry>, EngineError> {
        let bucket = self.bucket(name).await?;
        let found = match at {
            At::Latest => self.newest(&bucket, key, reads).await?.map(|change| change.entry),
            At::Revision(revision) => Box::pin(self.read_at(&bucket, key, revision)).await?,
        };
        let now = self.clock.now();
        let live = found.filter(|entry| bucket.is_live(entry, now));
        Ok(live.map(|entry| shown(entry, &bucket.settings().config)))
    }

    async fn read_at(
        &self,
        bucket: &Bucket,
        key: &Key,
        revision: Revision,
    ) -> Result<Option<Entry>, EngineError> {
        self.check_reached(bucket, revision).await?;
        let records = self.records(bucket, key).await?;
        let oldest = records.first().map(|entry| entry.revision);
        let found = records.into_iter().rev().find(|entry| entry.revision <= revision);
        match (found, oldest) {
            (None, Some(oldest)) => Err(EngineError::Compacted { oldest }),
            (found, _) => Ok(found),
        }
    }

    /// Refuses a revision that no record has yet.
    pub(crate) async fn check_reached(&self, bucket: &Bucket, asked: Revision) -> Result<(), EngineError> {
        if asked.get() <= bucket.seen() {
            return Ok(());
        }
        let (_, newest) = self.look(&bucket.name).await?;
        if asked.get() > newest {
            return Err(EngineError::FutureRevision { asked, newest: Revision::new(newest) });
        }
        Ok(())
    }

    pub(crate) async fn history(&self, name: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        let bucket = self.bucket(name).await?;
        let records = self.records(&bucket, key).await?;
        let config = bucket.config();
        Ok(records.into_iter().map(|entry| shown(entry, &config)).collect())
    }

    /// The kept records of a key, oldest first, each with the expiry of its own.
    async fn records(&self, bucket: &Bucket, key: &Key) -> Result<Vec<Entry>, EngineError> {
        let Some(newest) = self.newest(bucket, key, self.options.reads).await? else { return Ok(Vec::new()) };
        if bucket.settings().config.history.get() == 1 {
            return Ok(vec![newest.entry]);
        }
        let mut records = Vec::new();
        let take = |record: Record| {
            records.extend(record.into_change(&bucket.names).map(|change| change.entry));
            Ok(())
        };
        // Up to what a read finds: no more, so that nobody needs to be asked whether there is, and no less.
        let up_to = newest.entry.revision.get();
        self.read_range(bucket, &bucket.names.subject(key), 1, up_to, take).await?;
        Ok(records)
    }

    /// The newest record of a key, value or marker.
    pub(crate) async fn newest(
        &self,
        bucket: &Bucket,
        key: &Key,
        reads: Reads,
    ) -> Result<Option<Change>, EngineError> {
        let settings = bucket.settings();
        let is_alone = settings.replicas == 1 && !settings.is_mirror && reads != Reads::Leader;
        if let (Reads::AtLeast(revision), false) = (reads, settings.is_mirror) {
            // A replica does not know what is in the future of its bucket: it is waited for instead.
            Box::pin(self.check_reached(bucket, revision)).await?;
        }
        // Of several servers, even the leader's word does not tell how far it has come.
        let asks_leader = !settings.is_direct || (is_alone && bucket.has_missed.load(Ordering::Relaxed));
        let record = match reads {
            Reads::Any if settings.is_direct => self.newest_anywhere(bucket, key).await?,
            _ if asks_leader => Box::pin(self.newest_at_leader(bucket, key)).await?,
            _ if is_alone => self.newest_alone(bucket, key).await?,
            Reads::OwnWrites => Box::pin(self.newest_since(bucket, key, bucket.seen())).await?,
            Reads::AtLeast(revision) => Box::pin(self.newest_since(bucket, key, revision.get())).await?,
            Reads::Any | Reads::Leader => Box::pin(self.newest_at_leader(bucket, key)).await?,
        };
        bucket.has_missed.store(record.is_none(), Ordering::Relaxed);
        let change = record.and_then(|record| record.into_change(&bucket.names));
        if let Some(change) = &change {
            bucket.see(change.entry.revision.get());
        }
        Ok(change)
    }

    pub(crate) async fn newest_at_leader(
        &self,
        bucket: &Bucket,
        key: &Key,
    ) -> Result<Option<Record>, EngineError> {
        self.at_leader(bucket, &json!({ "last_by_subj": bucket.names.subject(key) })).await
    }

    /// From the one server that has the bucket. A mirror may have answered instead, which may be behind: it says so
    /// with what it has. Whoever has nothing does not say who it is, so that is asked of the leader again.
    async fn newest_alone(&self, bucket: &Bucket, key: &Key) -> Result<Option<Record>, EngineError> {
        let record = self.newest_anywhere(bucket, key).await?;
        let is_own = |found: &Record| found.stream() == Some(&bucket.names.stream);
        if record.as_ref().is_some_and(is_own) {
            return Ok(record);
        }
        Box::pin(self.newest_at_leader(bucket, key)).await
    }

    /// From whoever answers first.
    async fn newest_anywhere(&self, bucket: &Bucket, key: &Key) -> Result<Option<Record>, EngineError> {
        let subject = self.api.direct_subject(&bucket.names.stream, &bucket.names.subject(key));
        self.in_bucket(bucket, "read", || self.ask_one(bucket, key, subject.clone())).await
    }

    async fn ask_one(
        &self,
        bucket: &Bucket,
        key: &Key,
        subject: Subject,
    ) -> Result<Option<Record>, ApiError> {
        // It may have turned out while nobody answered that only the leader does.
        if !bucket.settings().is_direct {
            let asked = json!({ "last_by_subj": bucket.names.subject(key) });
            return Box::pin(self.api.message(&bucket.names.stream, &asked)).await;
        }
        let message = self.api.ask(subject, Bytes::new()).await?;
        match message.status {
            None => Record::from_message(message).map(Some),
            Some(StatusCode::NOT_FOUND) => Ok(None),
            Some(status) => {
                let description = message.description.unwrap_or_default();
                Err(ApiError::Server { code: status.as_u16().into(), number: 0, description })
            }
        }
    }

    /// From whoever answers first, if they say that they have come as far as `revision`; else from the leader.
    async fn newest_since(
        &self,
        bucket: &Bucket,
        key: &Key,
        revision: u64,
    ) -> Result<Option<Record>, EngineError> {
        let asked = json!({ "multi_last": [bucket.names.subject(key)], "batch": 1 });
        let started = self.clock.elapsed();
        loop {
            let mut chunk = self.chunk(bucket, &asked).await?;
            if chunk.up_to.is_some_and(|reached| reached >= revision) {
                return Ok(chunk.records.pop());
            }
            if !bucket.settings().is_mirror {
                return self.newest_at_leader(bucket, key).await;
            }
            // Even the leader of a replica is behind the bucket itself, but it gets there.
            let (_, reached) = self.look(&bucket.name).await?;
            if reached >= revision {
                return self.newest_at_leader(bucket, key).await;
            }
            if self.clock.elapsed().saturating_sub(started) > self.options.patience {
                let reason = format!("the replica {} is at revision {reached}", bucket.names.stream);
                return Err(EngineError::Unreachable { reason });
            }
            pause(CATCH_UP_EVERY).await;
        }
    }

    /// The newest records of several keys, as far as they have any. Answers of servers that are behind what this engine has
    /// seen are not taken.
    pub(crate) async fn newest_of(
        &self,
        bucket: &Bucket,
        keys: &[Key],
    ) -> Result<HashMap<Key, Entry>, EngineError> {
        let mut found = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(SUBJECTS_AT_ONCE) {
            let subjects: Vec<String> = keys.iter().map(|key| bucket.names.subject(key)).collect();
            let asked = json!({ "multi_last": subjects, "batch": SUBJECTS_AT_ONCE });
            let seen = bucket.seen();
            let chunk = match bucket.settings().is_direct {
                true => self.chunk(bucket, &asked).await?,
                false => Chunk::default(),
            };
            let is_fresh = chunk.up_to.is_some_and(|reached| reached >= seen);
            let mut records = chunk.records;
            if !(is_fresh && chunk.is_last) {
                records.clear();
                for key in keys {
                    records.extend(self.newest_at_leader(bucket, key).await?);
                }
            }
            let changes = records.into_iter().filter_map(|record| record.into_change(&bucket.names));
            found.extend(changes.map(|change| (change.entry.key.clone(), change.entry)));
        }
        Ok(found)
    }
}
