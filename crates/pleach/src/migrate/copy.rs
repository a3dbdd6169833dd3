use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{BoxFuture, try_join};
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use pleach_engine::{
    EngineError, Entry, Expiry, Key, Op, Operation, PAGE_ENTRIES_MAX, ScanQuery, Selection, WatchEvent,
    WatchQuery, WatchStart, WatchStream,
};

use super::position::Phase;
use super::window::{Window, copied};
use super::{MigrateError, Migration};
use crate::Error;

/// Keys whose records are read at once, unless they may be large.
const READS_MAX: usize = 32;

/// What the records that are read at once may take.
const READS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Changes that are taken up at once.
const CHANGES_MAX: usize = 1000;

/// A key, and what is to be written of it.
type ToWrite = (Key, Vec<Operation>);

/// Copying what was there when the migration began.
impl Migration {
    /// Copies the next keys that are live.
    pub(super) async fn copy_some(&mut self) -> Result<(), Error> {
        let mut window = Window::default();
        let (mut last, mut ended) = (None, false);
        while !window.is_full() {
            if self.keys.is_empty() {
                let after = last.as_ref().or(self.position.after.as_ref());
                self.keys = self.next_keys(after).await?;
                ended = self.keys.is_empty();
                if ended {
                    break;
                }
            }
            let count = self.reads().min(self.keys.len());
            let keys: Vec<Key> = self.keys.drain(..count).collect();
            for (key, operations) in self.read_all(&keys).await? {
                window.add(&key, operations);
            }
            last = keys.last().cloned().or(last);
        }
        if let Some(last) = last {
            self.write(window, Some(last)).await?;
        }
        if ended {
            self.position.phase = Phase::Markers;
            self.writer.commit(Vec::new(), &self.position).await?;
        }
        Ok(())
    }

    /// The live keys after `after`.
    async fn next_keys(&self, after: Option<&Key>) -> Result<VecDeque<Key>, Error> {
        let mut query = ScanQuery { limit: PAGE_ENTRIES_MAX, keys_only: true, ..ScanQuery::default() };
        query.selection = Selection::range(query.range_after(after));
        let page = self.source.engine().scan(&self.plan.source.name, query).await?;
        Ok(page.entries.into_iter().map(|entry| entry.key).collect())
    }

    /// How many keys are read at once, so that what they have fits into memory.
    pub(super) fn reads(&self) -> usize {
        let config = &self.plan.source.config;
        let largest = u64::from(config.value_bytes_max) * u64::from(config.history.get());
        usize::try_from(READS_BYTES_MAX / largest.max(1)).unwrap_or(READS_MAX).clamp(1, READS_MAX)
    }

    /// What is to be written of these keys.
    async fn read_all(&self, keys: &[Key]) -> Result<Vec<ToWrite>, Error> {
        // Boxed one by one, since what closures return here would not count as `Send`.
        let mut reads: Vec<BoxFuture<'_, Result<ToWrite, Error>>> = Vec::new();
        for key in keys.iter().filter(|key| !key.is_reserved()) {
            reads.push(Box::pin(async move { Ok((key.clone(), self.missing(key).await?)) }));
        }
        stream::iter(reads).buffered(self.reads()).try_collect().await
    }

    /// What the target lacks of what a key had when the migration began.
    async fn missing(&self, key: &Key) -> Result<Vec<Operation>, Error> {
        let (source, target) = (self.source.engine(), self.target.engine());
        let (from, to) = (&self.plan.source.name, &self.plan.target);
        // Only where an earlier process has stopped in the middle can there be anything of the key.
        let is_begun = self.position.phase == Phase::Markers
            || self.position.until.as_ref().is_some_and(|until| key <= until);
        let (records, there) = if is_begun {
            try_join(source.history(from, key), target.history(to, key)).await?
        } else {
            (source.history(from, key).await?, Vec::new())
        };
        let at_first = records.iter().filter(|entry| entry.revision <= self.position.base);
        let records: Vec<&Entry> = at_first.filter(|entry| entry.op != Op::Expire).collect();
        // Where expiries cannot be given to values, one that has expired must not come back, nor one under it.
        let has_expired = |entry: &&Entry| entry.expires.is_some_and(|expires| expires <= self.source.now());
        if records.iter().all(has_expired)
            || (!self.plan.keeps_expiry && records.last().is_none_or(has_expired))
        {
            return Ok(Vec::new());
        }
        let there: Vec<&Entry> = there.iter().filter(|entry| entry.op != Op::Expire).collect();
        let rest = &records[copied(&records, &there)..];
        rest.iter().filter_map(|entry| self.operation(entry).transpose()).collect()
    }

    /// What repeats a record in the target, if anything does.
    pub(super) fn operation(&self, entry: &Entry) -> Result<Option<Operation>, Error> {
        self.plan.check(entry, self.target.capabilities().value_bytes_max)?;
        let key = entry.key.clone();
        let operation = match entry.op {
            Op::Put => {
                let expires = entry.expires.filter(|_| self.plan.keeps_expiry);
                let expiry = expires.map_or(Expiry::Bucket, Expiry::At);
                Operation::put(key, entry.value.clone()).expiring(expiry)
            }
            Op::Delete => Operation::delete(key),
            Op::Purge => Operation::purge(key),
            // The target lets its copy of the value expire by itself, if it knows when.
            Op::Expire if self.plan.keeps_expiry => return Ok(None),
            Op::Expire => Operation::delete(key),
        };
        Ok(Some(operation.with_headers(entry.headers.clone())))
    }

    /// Writes a window, with which all keys up to `last` are copied.
    async fn write(&mut self, window: Window, last: Option<Key>) -> Result<(), Error> {
        let mut batches = window.into_batches(self.limits);
        let final_batch = batches.pop().unwrap_or_default();
        for batch in batches {
            // Whoever goes on after a crash must look what is there of the keys up to here.
            self.position.until = last.clone().max(self.position.until.take());
            self.commit(batch).await?;
        }
        if let Some(last) = last {
            self.position.until.take_if(|until| *until <= last);
            self.position.after = Some(last);
        }
        self.commit(final_batch).await
    }

    /// Copies what keys had that are not live any more, as far as the feed tells of them: deleted before the migration began,
    /// or before their turn came. Says whether something was done.
    pub(super) async fn copy_markers(&mut self) -> Result<bool, Error> {
        if self.feed.is_none() {
            let info = self.source.engine().bucket(&self.plan.source.name).await?;
            self.markers_until = info.last_revision;
            let start = WatchStart::Revision(info.feed_floor);
            self.feed = Some(self.watch(WatchQuery { filters: Vec::new(), start }).await?);
            self.reached = info.feed_floor;
        }
        let mut window = Window::default();
        let (mut seen, mut ended) = (0, self.reached > self.markers_until);
        while !ended && !window.is_full() && seen < CHANGES_MAX {
            let Some(event) = self.next_event()? else { break };
            seen += 1;
            let WatchEvent::Change(change) = event else { continue };
            let entry = change.entry;
            self.reached = entry.revision.next();
            ended = self.reached > self.markers_until;
            let wanted =
                !entry.op.is_put() && !entry.key.is_reserved() && entry.revision <= self.markers_until;
            if wanted && !window.has(&entry.key) {
                let operations = self.missing(&entry.key).await?;
                window.add(&entry.key, operations);
            }
        }
        self.note_idle(seen > 0);
        if !window.is_empty() {
            self.write(window, None).await?;
        }
        if ended || self.is_idle() {
            self.feed = None;
            self.position.phase = Phase::Follow;
            self.position.until = None;
            self.writer.commit(Vec::new(), &self.position).await?;
            return Ok(true);
        }
        Ok(seen > 0)
    }

    /// A watch of the source.
    pub(super) async fn watch(&self, query: WatchQuery) -> Result<Mutex<WatchStream>, Error> {
        let watch = self.source.engine().watch(&self.plan.source.name, query).await;
        watch.map(Mutex::new).map_err(|error| self.told(error))
    }

    /// The next event that is there already.
    pub(super) fn next_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        let feed = self.feed.as_mut().map(|feed| feed.get_mut().unwrap_or_else(PoisonError::into_inner));
        let event = feed.and_then(|feed| feed.next().now_or_never());
        match event {
            None => Ok(None),
            Some(Some(Ok(event))) => Ok(Some(event)),
            Some(Some(Err(error))) => Err(self.told(error)),
            Some(None) => Err(EngineError::Closed.into()),
        }
    }

    /// An error of the source's feed, with what it means here.
    fn told(&self, error: EngineError) -> Error {
        match error {
            EngineError::Compacted { oldest } => {
                let (bucket, next) = (self.plan.source.name.clone(), self.position.next);
                MigrateError::Behind { bucket, next, oldest }.into()
            }
            error => error.into(),
        }
    }
}
