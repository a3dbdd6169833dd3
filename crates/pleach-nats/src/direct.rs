use pleach_engine::{Direction, EngineError, Entry, Key, Page, PageCursor, Revision, ScanQuery, Selection};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::record::shown;
use crate::scan::fill;

/// Keys whose values are asked for at once.
const KEYS_AT_ONCE: usize = 512;

/// Names no snapshot, in the token of a page that has none.
const NO_SNAPSHOT: u64 = 0;

/// Scans that ask the servers for everything. They list subjects in no order and with deleted keys among them, so all
/// keys of a selection are listed and sorted for every page.
impl Shared {
    pub(crate) async fn scan_directly(
        &self,
        bucket: &Bucket,
        query: &ScanQuery,
        cursor: Option<PageCursor>,
    ) -> Result<Page, EngineError> {
        let now = cursor.as_ref().map_or_else(|| self.clock.now(), |cursor| cursor.time);
        if cursor.as_ref().is_some_and(|cursor| cursor.snapshot != NO_SNAPSHOT) {
            return Err(EngineError::InvalidPageToken {
                reason: "it names a snapshot, and there are none here",
            });
        }
        let revision = Revision::new(bucket.seen());
        let after = query.range_after(cursor.as_ref().map(|cursor| &cursor.last));
        let selection = Selection { range: after, filter: query.selection.filter.clone() };
        let mut keys = self.keys(bucket, &selection).await?;
        if query.direction == Direction::Backward {
            keys.reverse();
        }
        let mut found: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for entry in self.live(bucket, keys, now).await? {
                bytes += entry.value.len();
                found.push(entry);
            }
            // One more than the page takes says that there are more.
            if found.len() > query.limit || (!query.keys_only && bytes > pleach_engine::PAGE_BYTES_MAX) {
                break;
            }
        }
        let (entries, is_more) = fill(found.into_iter(), query);
        let next = entries.last().filter(|_| is_more);
        let next = next.map(|last| self.token(bucket, NO_SNAPSHOT, now, query, last.key.clone()));
        Ok(Page { entries, revision, next })
    }

    pub(crate) async fn count_directly(
        &self,
        bucket: &Bucket,
        selection: &Selection,
    ) -> Result<u64, EngineError> {
        let now = self.clock.now();
        let keys = self.keys(bucket, selection).await?;
        let mut count = 0;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            count += self.live(bucket, keys, now).await?.len() as u64;
        }
        Ok(count)
    }

    /// All keys of a selection that have any record, in order.
    async fn keys(&self, bucket: &Bucket, selection: &Selection) -> Result<Vec<Key>, EngineError> {
        if selection.range.is_empty() {
            return Ok(Vec::new());
        }
        let filter = bucket.names.all_subjects();
        let (mut keys, mut offset) = (Vec::new(), 0);
        loop {
            let ask = || self.api.subjects(&bucket.names.stream, &filter, offset);
            let subjects = self.in_bucket(bucket, "list keys", ask).await?.state.subjects.unwrap_or_default();
            if subjects.is_empty() {
                break;
            }
            offset += subjects.len();
            let found = subjects.keys().filter_map(|subject| bucket.names.key(subject));
            keys.extend(found.filter(|key| selection.contains(key)));
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The live values of these keys, in their order.
    async fn live(
        &self,
        bucket: &Bucket,
        keys: &[Key],
        now: pleach_engine::Timestamp,
    ) -> Result<Vec<Entry>, EngineError> {
        let mut newest = self.newest_of(bucket, keys).await?;
        let config = bucket.config();
        let entries = keys.iter().filter_map(|key| newest.remove(key));
        let live = entries.filter(|entry| config.is_live(entry, now));
        Ok(live.map(|entry| shown(entry, &config)).collect())
    }
}
