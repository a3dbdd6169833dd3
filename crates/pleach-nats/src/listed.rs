use serde_json::json;

use pleach_engine::{EngineError, FENCE_AFTER};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::range::EVERYTHING;
use crate::record::Record;

/// How far those who watch a bucket can come.
impl Shared {
    /// The newest revision that scans and watches show, of a bucket whose newest is `last`. Fences may come after it, and
    /// whoever waited for those to be shown would wait for ever. A fence says what was shown before it.
    pub(crate) async fn last_listed(&self, bucket: &Bucket, last: u64) -> Result<u64, EngineError> {
        // Whoever may not ask is told what the stream says.
        let newest = match last {
            0 => None,
            _ => self.at_leader(bucket, &json!({ "seq": last })).await.unwrap_or_default(),
        };
        let entry = newest.and_then(|record| record.into_change(&bucket.names)).map(|change| change.entry);
        let Some(fence) = entry.filter(|entry| entry.key.is_fence()) else { return Ok(last) };
        let after = fence.headers.get(FENCE_AFTER).and_then(|revision| revision.parse().ok());
        let Some(mut listed) = after.filter(|after| *after < last) else { return Ok(last) };
        let first = listed + 1;
        let take = |record: Record| {
            let sequence = record.sequence;
            if record.into_listed(&bucket.names).is_some() {
                listed = sequence;
            }
            Ok(())
        };
        self.read_range(bucket, EVERYTHING, first, last, take).await?;
        Ok(listed)
    }
}
