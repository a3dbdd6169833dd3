use std::collections::HashMap;

use pleach_engine::{BucketConfig, Clock, SystemClock, Timestamp};
use xxhash_rust::xxh3::xxh3_128;

use super::report::{LIVE_KEYS_COUNTED_MAX, LogReport};
use crate::catalog::decode_config;
use crate::log::{BucketId, Frame, FrameKind, Record, RecordKind};

/// Counts what a log amounts to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    buckets: HashMap<BucketId, Counted>,
    keys: usize,
    too_many: bool,
}

/// A bucket, and by the hash of its key when each value was written and its own expiry.
#[derive(Debug, Default)]
struct Counted {
    config: BucketConfig,
    values: HashMap<u128, (Timestamp, Option<Timestamp>)>,
}

impl Tally {
    /// Counts a frame in.
    pub(super) fn see(&mut self, frame: &Frame) {
        for (_, record) in &frame.records {
            match frame.header.kind {
                FrameKind::Bucket => self.bucket(frame.header.bucket, record),
                FrameKind::Commit => self.record(frame.header.bucket, record),
                FrameKind::Mark | FrameKind::Upkeep | FrameKind::Footer | FrameKind::Consumer => {}
            }
        }
    }

    /// Writes into `report` what it comes to.
    pub(super) fn finish(self, report: &mut LogReport) {
        report.buckets = self.buckets.len() as u64;
        if self.too_many {
            return;
        }
        let now = SystemClock::new().now();
        let live = |bucket: &Counted| {
            let is_live = |(time, expires): &&(Timestamp, Option<Timestamp>)| {
                bucket.config.expiry(*time, *expires).is_none_or(|expires| now < expires)
            };
            bucket.values.values().filter(is_live).count() as u64
        };
        report.live_entries = Some(self.buckets.values().map(live).sum());
    }

    fn bucket(&mut self, id: BucketId, record: &Record) {
        if record.kind == RecordKind::DeleteBucket {
            let values = self.buckets.remove(&id).map_or(0, |bucket| bucket.values.len());
            self.keys -= values;
        } else if let Some(config) = decode_config(&record.payload.value) {
            self.buckets.entry(id).or_default().config = config;
        }
    }

    fn record(&mut self, id: BucketId, record: &Record) {
        // A faded purge leaves no marker, but what came before it stays purged.
        let is_told = !record.faded || record.kind == RecordKind::Purge;
        if record.kind == RecordKind::Compact || !is_told || self.too_many {
            return;
        }
        let values = &mut self.buckets.entry(id).or_default().values;
        let hash = xxh3_128(record.key.as_bytes());
        self.keys -= usize::from(values.remove(&hash).is_some());
        if record.kind == RecordKind::Put {
            values.insert(hash, (record.time, record.expires));
            self.keys += 1;
        }
        if self.keys > LIVE_KEYS_COUNTED_MAX {
            self.too_many = true;
            self.buckets.values_mut().for_each(|bucket| bucket.values = HashMap::new());
            self.keys = 0;
        }
    }
}
