use std::collections::{HashMap, HashSet};

use pleach_engine::{BucketConfig, Timestamp};

use crate::catalog::Bucket;
use crate::core::Core;
use crate::log::{BucketId, BucketSummary, SegmentId};

/// Which changes the feed still needs, by segment and bucket.
///
/// A segment is kept or given up for a bucket as a whole: retention is a promise of how much is kept at least.
/// If a segment may be given up, so may all before it.
#[derive(Debug, Default)]
pub(super) struct Retention {
    needed: HashSet<(SegmentId, BucketId)>,
}

/// What has been written after a segment.
#[derive(Debug, Default)]
struct After {
    bytes: u64,
    by_bucket: HashMap<BucketId, u64>,
}

impl Retention {
    /// Looks through the segments, the newest first.
    pub(super) fn new(core: &Core) -> Self {
        let now = core.clock.now();
        let mut retention = Self::default();
        let mut after = After::default();
        for segment in core.log.segments().iter().rev() {
            let Some(footer) = segment.footer() else {
                after.bytes += segment.len();
                continue;
            };
            for (id, summary) in &footer.buckets {
                let bucket = core.catalog.by_id(*id);
                if bucket.is_some_and(|bucket| needs(core, &bucket, summary, &after, now)) {
                    retention.needed.insert((segment.id(), *id));
                }
            }
            for (id, summary) in &footer.buckets {
                *after.by_bucket.entry(*id).or_default() += summary.bytes;
            }
            after.bytes += segment.len();
        }
        retention
    }

    /// Whether the feed of a bucket needs the changes in a segment.
    pub(super) fn needs(&self, segment: SegmentId, bucket: BucketId) -> bool {
        self.needed.contains(&(segment, bucket))
    }
}

fn needs(core: &Core, bucket: &Bucket, summary: &BucketSummary, after: &After, now: Timestamp) -> bool {
    let config = bucket.config();
    let own_bytes_after = after.by_bucket.get(&bucket.id).copied().unwrap_or_default();
    is_recent(core, &config, summary, after.bytes, own_bytes_after, now)
        || (own_bytes_after < core.settings.consumer_bytes && awaits(bucket, summary))
}

fn is_recent(
    core: &Core,
    config: &BucketConfig,
    summary: &BucketSummary,
    bytes_after: u64,
    own_bytes_after: u64,
    now: Timestamp,
) -> bool {
    let in_time = |time| now < summary.time.saturating_add(time);
    let in_bytes = match config.feed_bytes {
        Some(limit) => own_bytes_after < limit,
        None => core.settings.feed_bytes.is_none_or(|limit| bytes_after < limit),
    };
    in_bytes && config.feed_time.or(core.settings.feed_time).is_none_or(in_time)
}

/// Whether a consumer has yet to see something of what a segment holds.
fn awaits(bucket: &Bucket, summary: &BucketSummary) -> bool {
    bucket.consumers.all().iter().any(|consumer| consumer.info.next <= summary.last)
}
