use std::sync::{Arc, PoisonError};

use pleach_engine::{
    BucketName, Direction, EngineError, Entry, Key, PAGE_BYTES_MAX, Page, PageCursor, PageToken, Revision,
    ScanQuery, Selection, Timestamp,
};

use crate::bucket::Bucket;
use crate::cache::{Entries, within};
use crate::engine::Shared;
use crate::options::Scans;
use crate::record::shown;

/// A bucket as a scan sees it on all its pages.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// What tells the bucket from its namesakes.
    pub(crate) bucket: u64,
    revision: u64,
    /// The time that decides what has expired.
    time: Timestamp,
    entries: Entries,
}

/// Scans, pages and counts, from the ordered copy of a bucket or from the server.
impl Shared {
    pub(crate) async fn scan(
        self: &Arc<Self>,
        name: &BucketName,
        query: ScanQuery,
    ) -> Result<Page, EngineError> {
        self.check_open()?;
        query.check()?;
        let bucket = self.bucket(name).await?;
        let cursor = query.page.as_ref().map(PageCursor::decode).transpose()?;
        if let Some(cursor) = &cursor {
            cursor.check(self.store, bucket.identity, &query)?;
        }
        if self.options.scans == Scans::Direct {
            return self.scan_directly(&bucket, &query, cursor).await;
        }
        let now = self.clock.now();
        let (snapshot, kept, last) = match cursor {
            None => {
                let (entries, revision) = self.snapshot(&bucket).await?;
                (Snapshot { bucket: bucket.identity, revision, time: now, entries }, None, None)
            }
            Some(cursor) => {
                let kept =
                    self.pages.lock().unwrap_or_else(PoisonError::into_inner).renew(cursor.snapshot, now);
                let oldest = Revision::new(bucket.seen());
                let snapshot = kept.ok_or(EngineError::Compacted { oldest })?;
                (snapshot, Some(cursor.snapshot), Some(cursor.last))
            }
        };
        Ok(self.page(&bucket, &snapshot, kept, last.as_ref(), &query))
    }

    /// The page of `snapshot` after `last`. The snapshot is kept as `kept` if it is already.
    fn page(
        &self,
        bucket: &Bucket,
        snapshot: &Snapshot,
        kept: Option<u64>,
        last: Option<&Key>,
        query: &ScanQuery,
    ) -> Page {
        let config = bucket.config();
        let range = query.range_after(last);
        let found = within(&snapshot.entries, &range, query.direction)
            .filter(|entry| query.selection.contains(&entry.key) && config.is_live(entry, snapshot.time))
            .map(|entry| shown(Entry::clone(entry), &config));
        let (entries, is_more) = fill(found, query);
        let next = entries.last().filter(|_| is_more).map(|last| {
            let now = self.clock.now();
            let id = kept.unwrap_or_else(|| {
                self.pages.lock().unwrap_or_else(PoisonError::into_inner).keep(snapshot.clone(), now)
            });
            self.token(bucket, id, snapshot.time, query, last.key.clone())
        });
        Page { entries, revision: Revision::new(snapshot.revision), next }
    }

    pub(crate) fn token(
        &self,
        bucket: &Bucket,
        snapshot: u64,
        time: Timestamp,
        query: &ScanQuery,
        last: Key,
    ) -> PageToken {
        let (store, bucket, query) = (self.store, bucket.identity, query.digest());
        PageCursor { store, bucket, snapshot, time, query, last }.encode()
    }

    pub(crate) async fn count(
        self: &Arc<Self>,
        name: &BucketName,
        selection: Selection,
    ) -> Result<u64, EngineError> {
        let bucket = self.bucket(name).await?;
        if self.options.scans == Scans::Direct {
            return self.count_directly(&bucket, &selection).await;
        }
        let (entries, _) = self.snapshot(&bucket).await?;
        let (config, now, range) = (bucket.config(), self.clock.now(), selection.covering_range());
        let found = within(&entries, &range, Direction::Forward);
        let live = found.filter(|entry| selection.contains(&entry.key) && config.is_live(entry, now));
        Ok(live.count() as u64)
    }
}

/// As many of `found` as the page takes, and whether there are more.
pub(crate) fn fill(mut found: impl Iterator<Item = Entry>, query: &ScanQuery) -> (Vec<Entry>, bool) {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for mut entry in found.by_ref() {
        if query.keys_only {
            entry.value.clear();
        }
        bytes += entry.value.len();
        if entries.len() == query.limit || (bytes > PAGE_BYTES_MAX && !entries.is_empty()) {
            return (entries, true);
        }
        entries.push(entry);
    }
    (entries, false)
}
