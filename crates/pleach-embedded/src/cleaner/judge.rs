use std::collections::HashMap;
use std::sync::Arc;

use pleach_engine::{EngineError, Key, Revision, Timestamp};

use super::retention::Retention;
use crate::catalog::Bucket;
use crate::consumers::Consumer;
use crate::core::{Core, has_expired};
use crate::index::{Head, IndexKey, ReadAt};
use crate::log::{BucketId, FrameHeader, FrameKind, Record, RecordKind, SegmentId};
use crate::snapshots::Snapshot;

/// What becomes of a record when its segment is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays as it is.
    Keep,
    /// Its key has forgotten it, the feed has not.
    Fade,
    /// Nobody needs it.
    Drop,
}

/// Decides what becomes of records, as of one snapshot.
///
/// Whatever is dead stays dead: the records of a key are forgotten from the oldest on. So it does not matter
/// what is committed while the judge is at work.
pub(super) struct Judge {
    core: Arc<Core>,
    snapshot: Snapshot,
    retention: Retention,
    clean_since: CleanSince,
}

/// By segment, a revision: whatever had been forgotten then is no longer in any older segment.
pub(super) type CleanSince = HashMap<SegmentId, Revision>;

impl Judge {
    pub(super) fn new(core: &Arc<Core>, clean_since: CleanSince) -> Self {
        let snapshot = core.snapshots.open();
        Self { core: Arc::clone(core), snapshot, retention: Retention::new(core), clean_since }
    }

    /// As of when it decides.
    pub(super) fn revision(&self) -> Revision {
        self.snapshot.revision
    }

    /// What becomes of a record in the frame with this header.
    pub(super) fn judge(
        &self,
        segment: SegmentId,
        frame: &FrameHeader,
        record: &Record,
    ) -> Result<Verdict, EngineError> {
        let bucket = self.core.catalog.by_id(frame.bucket);
        match (frame.kind, bucket) {
            (FrameKind::Commit, Some(bucket)) => self.of_key(segment, &bucket, record),
            (FrameKind::Bucket, bucket) => Ok(self.of_bucket(segment, bucket.as_deref(), record)),
            (FrameKind::Consumer, Some(bucket)) => self.of_consumer(segment, &bucket, record),
            // What is left of a bucket that was deleted, which the record of its deletion keeps from coming back.
            _ => Ok(Verdict::Drop),
        }
    }

    fn of_key(&self, segment: SegmentId, bucket: &Bucket, record: &Record) -> Result<Verdict, EngineError> {
        if record.kind.op().is_some() && !record.faded && self.is_kept(bucket, record)? {
            return Ok(Verdict::Keep);
        }
        if record.kind.is_shadow() && self.is_needed_as_shadow(segment, record) {
            // A purge that is no longer one of its key's records must not become one again.
            let is_purge = record.kind == RecordKind::Purge;
            return Ok(if is_purge { Verdict::Fade } else { Verdict::Keep });
        }
        let needed = record.kind.is_change() && self.retention.needs(segment, bucket.id);
        Ok(if needed { Verdict::Fade } else { Verdict::Drop })
    }

    /// Whether the index says that the record is one of its key.
    fn is_kept(&self, bucket: &Bucket, record: &Record) -> Result<bool, EngineError> {
        let head = self.head(bucket, &record.key)?;
        Ok(head.is_some_and(|head| {
            head.revision == record.revision || head.past.iter().any(|past| past.revision == record.revision)
        }))
    }

    fn of_bucket(&self, segment: SegmentId, bucket: Option<&Bucket>, record: &Record) -> Verdict {
        let keep = match (record.kind, bucket) {
            (RecordKind::CreateBucket, bucket) => bucket.is_some(),
            (RecordKind::UpdateBucket, bucket) => {
                bucket.is_some_and(|bucket| bucket.is_configured_by(record.revision))
            }
            _ => self.is_needed_as_shadow(segment, record),
        };
        if keep { Verdict::Keep } else { Verdict::Drop }
    }

    fn of_consumer(
        &self,
        segment: SegmentId,
        bucket: &Bucket,
        record: &Record,
    ) -> Result<Verdict, EngineError> {
        let keep = match record.kind {
            RecordKind::SetConsumer => {
                // As of the snapshot: where it has moved on since may not be durable yet.
                let state_key = IndexKey::consumer(bucket.id, record.key.as_str());
                let state = self.core.index.get(&state_key, ReadAt::Snapshot(self.snapshot.revision))?;
                let consumer = state.and_then(|state| Consumer::decode(record.key.as_str(), state));
                consumer.is_some_and(|consumer| consumer.revision == record.revision)
            }
            _ => self.is_needed_as_shadow(segment, record),
        };
        Ok(if keep { Verdict::Keep } else { Verdict::Drop })
    }

    /// Whether something that it says is forgotten may still be in the log.
    fn is_needed_as_shadow(&self, segment: SegmentId, record: &Record) -> bool {
        self.clean_since.get(&segment).is_none_or(|clean| record.revision > *clean)
    }

    /// Whether a record is the marker of a key that can be forgotten altogether: it is older than markers are
    /// kept, and of the key's older records none is left that has not expired.
    pub(super) fn is_forgettable(
        &self,
        bucket: &Bucket,
        record: &Record,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let config = bucket.config();
        let is_marker = record.kind.op().is_some_and(|op| !op.is_put()) && !record.faded;
        let is_old = config.marker_ttl.is_some_and(|ttl| record.time.saturating_add(ttl) <= now);
        if !is_marker || !is_old {
            return Ok(false);
        }
        let Some(head) = self.head(bucket, &record.key)?.filter(|head| head.revision == record.revision)
        else {
            return Ok(false);
        };
        for past in &head.past {
            let Some(older) = self.core.log.read(past.position, &record.key, past.revision)? else {
                return Ok(false);
            };
            let is_value = older.kind == RecordKind::Put;
            if is_value && !has_expired(&config, older.time, older.expires, || now) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn head(&self, bucket: &Bucket, key: &Key) -> Result<Option<Head>, EngineError> {
        self.core.peek_head(bucket, key, ReadAt::Snapshot(self.snapshot.revision))
    }
}

/// The bucket of a frame whose markers may be forgettable.
pub(super) fn bucket_with_markers(core: &Core, id: BucketId, kind: FrameKind) -> Option<Arc<Bucket>> {
    let bucket = core.catalog.by_id(id).filter(|_| kind == FrameKind::Commit)?;
    bucket.config().marker_ttl.is_some().then_some(bucket)
}
