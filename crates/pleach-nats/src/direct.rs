use std::collections::BTreeSet;

use pleach_engine::{Direction, EngineError, Entry, Key, Page, PageCursor, Revision, ScanQuery, Selection};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::record::shown;
use crate::scan::fill;

/// Keys whose values are asked for at once.
const KEYS_AT_ONCE: usize = 512;

/// Names of keys that are held at once. Those after them are listed again.
const KEYS_HELD_MAX: usize = 100_000;

/// Names no snapshot, in the token of a page that has none.
const NO_SNAPSHOT: u64 = 0;

/// Scans that ask the servers for everything. They list subjects in an order of their own and with deleted keys among them, so
/// all keys of a selection are listed for every page, and the first of them sorted.
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
        let mut after = cursor.map(|cursor| cursor.last);
        let mut found: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        // One more than the page takes says that there are more.
        let is_full = |entries: usize, bytes: usize| {
            entries > query.limit || (!query.keys_only && bytes > pleach_engine::PAGE_BYTES_MAX)
        };
        loop {
            let range = query.range_after(after.as_ref());
            let selection = Selection { range, filter: query.selection.filter.clone() };
            let (keys, are_all) = self.keys(bucket, &selection, query.direction).await?;
            for keys in keys.chunks(KEYS_AT_ONCE) {
                for entry in self.live(bucket, keys, now).await? {
                    bytes += entry.value.len();
                    found.push(entry);
                }
                if is_full(found.len(), bytes) {
                    break;
                }
            }
            if are_all || is_full(found.len(), bytes) {
                break;
            }
            after = keys.last().cloned();
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
        let mut rest = ScanQuery { selection: selection.clone(), ..ScanQuery::default() };
        let mut count = 0;
        loop {
            let (keys, are_all) = self.keys(bucket, &rest.selection, rest.direction).await?;
            for keys in keys.chunks(KEYS_AT_ONCE) {
                count += self.live(bucket, keys, now).await?.len() as u64;
            }
            if are_all {
                return Ok(count);
            }
            rest.selection.range = rest.range_after(keys.last());
        }
    }

    /// The first keys of a selection that have any record, in order, and whether those are all.
    async fn keys(
        &self,
        bucket: &Bucket,
        selection: &Selection,
        direction: Direction,
    ) -> Result<(Vec<Key>, bool), EngineError> {
        if selection.range.is_empty() {
            return Ok((Vec::new(), true));
        }
        let filter = bucket.names.all_subjects();
        let (mut kept, mut are_all, mut offset) = (BTreeSet::new(), true, 0);
        loop {
            let ask = || self.api.subjects(&bucket.names.stream, &filter, offset);
            let subjects = self.in_bucket(bucket, "list keys", ask).await?.state.subjects.unwrap_or_default();
            if subjects.is_empty() {
                break;
            }
            offset += subjects.len();
            let found = subjects.keys().filter_map(|subject| bucket.names.listed_key(subject));
            for key in found.filter(|key| selection.contains(key)) {
                kept.insert(key);
                if kept.len() > KEYS_HELD_MAX {
                    are_all = false;
                    match direction {
                        Direction::Forward => kept.pop_last(),
                        Direction::Backward => kept.pop_first(),
                    };
                }
            }
        }
        let mut keys: Vec<Key> = kept.into_iter().collect();
        if direction == Direction::Backward {
            keys.reverse();
        }
        Ok((keys, are_all))
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
