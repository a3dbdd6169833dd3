use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use pleach_engine::{
    BatchPart, Change, Direction, EngineError, KeyRange, Revision, Selection, WatchEvent, WatchQuery,
    WatchStart, WatchStream,
};
use tokio::sync::watch;

use crate::catalog::Bucket;
use crate::core::Core;
use crate::feed::{Logged, Recent};
use crate::log::{FrameKind, LogReader, Record, RecordKind};
use crate::scan::{HeadScan, Step};

/// How many heads, or commits, a watch takes up at a time.
const CHUNK_MAX: usize = 256;

/// How many bytes of the log a watch takes up at a time, at least one frame.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;

/// A watch: holds no more than a chunk of what it has yet to deliver.
pub(crate) struct Watch {
    core: Arc<Core>,
    subscription: Subscription,
    query: WatchQuery,
    /// Everything before this revision was delivered, or belongs to `initial`.
    next: Revision,
    initial: Option<HeadScan>,
    reader: Option<LogReader>,
    ready: VecDeque<WatchEvent>,
    ended: bool,
}

/// Counts as a watch of its bucket while it lives.
struct Subscription {
    bucket: Arc<Bucket>,
    tip: watch::Receiver<u64>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bucket.feed.unsubscribe();
    }
}

impl Watch {
    /// Begins a watch.
    pub(crate) fn open(
        core: &Arc<Core>,
        bucket: Arc<Bucket>,
        query: WatchQuery,
    ) -> Result<WatchStream, EngineError> {
        // Subscribed before the snapshot is taken: whatever comes after it stays in the ring or in the log.
        let tip = bucket.feed.subscribe();
        let subscription = Subscription { bucket: Arc::clone(&bucket), tip };
        let snapshot = core.snapshots.open();
        let visible = snapshot.revision;
        let next = match query.start {
            WatchStart::Revision(from) => {
                if from > visible.next() {
                    return Err(EngineError::FutureRevision { asked: from, newest: visible });
                }
                let oldest = bucket.feed_floor(core.log.floor());
                if from < oldest {
                    return Err(EngineError::Compacted { oldest });
                }
                from
            }
            WatchStart::Now | WatchStart::Latest | WatchStart::History => visible.next(),
        };
        let initial = matches!(query.start, WatchStart::Latest | WatchStart::History).then(|| {
            HeadScan::new(core, &bucket, snapshot, Selection::all(), &KeyRange::all(), Direction::Forward)
        });
        let core = Arc::clone(core);
        let ready = VecDeque::new();
        let watch = Self { core, subscription, query, next, initial, reader: None, ready, ended: false };
        let events = stream::unfold(watch, |mut watch| async {
            let event = watch.event().await?;
            watch.ended = event.is_err();
            Some((event, watch))
        });
        // Fused, so that asking after the end is no mistake.
        Ok(Box::pin(events.fuse()))
    }

    async fn event(&mut self) -> Option<Result<WatchEvent, EngineError>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Err(error) = self.fill().await {
                return Some(Err(error));
            }
        }
    }

    /// Makes at least one event ready, or waits until there may be one.
    async fn fill(&mut self) -> Result<(), EngineError> {
        self.core.health.check_open()?;
        if let Some(scan) = self.initial.take() {
            return self.fill_initial(scan).await;
        }
        // Marked as seen before looking, so that what comes after the look wakes the wait.
        self.subscription.tip.borrow_and_update();
        match self.subscription.bucket.feed.after(self.next, CHUNK_MAX) {
            Recent::Commits(commits) if commits.is_empty() => {
                if self.subscription.bucket.is_deleted() {
                    return Err(self.subscription.bucket.not_found());
                }
                let tip = self.subscription.tip.changed().await;
                tip.map_err(|_| EngineError::Closed)
            }
            Recent::Commits(commits) => {
                self.reader = None;
                commits.iter().try_for_each(|commit| self.take_up(commit))
            }
            Recent::Behind(ring) => self.fill_from_log(ring).await,
        }
    }

    async fn fill_initial(&mut self, mut scan: HeadScan) -> Result<(), EngineError> {
        let query = self.query.clone();
        let (scan, events, done) = blocking::unblock(move || {
            let mut events = Vec::new();
            let mut budget = CHUNK_MAX;
            loop {
                match scan.next(&mut budget) {
                    Ok(Step::Head(key, head)) if query.matches(&key) => {
                        if let Err(error) = initial_events(&scan, query.start, key, head, &mut events) {
                            return (scan, Err(error), true);
                        }
                    }
                    Ok(Step::Head(..)) => {}
                    Ok(Step::End) => return (scan, Ok(events), true),
                    Ok(Step::OutOfBudget) => return (scan, Ok(events), false),
                    Err(error) => return (scan, Err(error), true),
                }
            }
        })
        .await;
        self.ready.extend(events?);
        if done {
            self.ready.push_back(WatchEvent::InitialDone { revision: scan.snapshot.revision });
        } else {
            self.initial = Some(scan);
        }
        Ok(())
    }

    /// Reads a chunk of the log, up to where the ring begins.
    async fn fill_from_log(&mut self, ring: Revision) -> Result<(), EngineError> {
        let reader = self.reader.take().unwrap_or_else(|| LogReader::from(&self.core.log, self.next));
        let oldest = self.subscription.bucket.feed_floor(self.core.log.floor());
        if self.next < oldest {
            return Err(EngineError::Compacted { oldest });
        }
        let (bucket, from) = (self.subscription.bucket.id, self.next);
        let (reader, chunk) = blocking::unblock(move || {
            let mut reader = reader;
            let chunk = read_chunk(&mut reader, bucket, from, ring);
            (reader, chunk)
        })
        .await;
        let chunk = chunk?;
        self.reader = Some(reader);
        chunk.commits.iter().try_for_each(|commit| self.take_up(commit))?;
        self.next = self.next.max(chunk.next);
        Ok(())
    }

    /// Makes the changes of a commit ready that the watch is about.
    fn take_up(&mut self, commit: &Logged) -> Result<(), EngineError> {
        let config = self.subscription.bucket.config();
        for (_, record) in &commit.records {
            if record.revision < self.next || !self.query.matches(&record.key) {
                continue;
            }
            let batch = match record.kind {
                // Expiries are logged together for speed; nobody committed them together.
                RecordKind::Expire => BatchPart::SINGLE,
                _ => BatchPart { index: record.index, size: commit.size },
            };
            if let Some(entry) = self.core.record_entry(&config, Record::clone(record))? {
                self.ready.push_back(WatchEvent::Change(Change { entry, batch }));
            }
        }
        self.next = self.next.max(commit.last.next());
        Ok(())
    }
}

fn initial_events(
    scan: &HeadScan,
    start: WatchStart,
    key: pleach_engine::Key,
    head: crate::index::Head,
    events: &mut Vec<WatchEvent>,
) -> Result<(), EngineError> {
    let core = &scan.core;
    let mut add = |entry| events.push(WatchEvent::Change(Change { entry, batch: BatchPart::SINGLE }));
    if start == WatchStart::History {
        for past in head.past.iter().rev() {
            add(core.past_entry(&scan.config, &key, *past)?);
        }
    } else if !scan.is_live(&head, core.clock.now()) {
        return Ok(());
    }
    add(core.entry(&scan.config, key, head, false)?);
    Ok(())
}

/// Some commits of the log.
struct Chunk {
    commits: Vec<Logged>,
    /// Everything of the bucket before this revision was read.
    next: Revision,
}

fn read_chunk(
    reader: &mut LogReader,
    bucket: crate::log::BucketId,
    from: Revision,
    until: Revision,
) -> Result<Chunk, EngineError> {
    let mut chunk = Chunk { commits: Vec::new(), next: from };
    let mut bytes = 0;
    while bytes < CHUNK_BYTES_MAX && chunk.next < until {
        let Some((segment, frame)) = reader.next()? else {
            // What the ring no longer holds is in the log, so the log cannot end before the ring begins.
            let what = format!("the log ends at revision {}, before {until}", chunk.next);
            return Err(EngineError::Bug { what });
        };
        let last = frame.header.last();
        if last < from {
            continue;
        }
        bytes += usize::try_from(frame.header.frame_len()).unwrap_or(usize::MAX);
        chunk.next = chunk.next.max(last.next());
        if frame.header.kind == FrameKind::Commit && frame.header.bucket == bucket {
            chunk.commits.push(Logged::from_frame(frame, segment));
        }
    }
    Ok(chunk)
}
