use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use blocking::Task;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pleach_engine::{
    BatchPart, BucketConfig, Change, Direction, EngineError, Entry, Key, Revision, ScanQuery, Selection,
    WatchEvent, WatchQuery, WatchStart, WatchStream,
};

use crate::catalog::Bucket;
use crate::core::{Core, damaged_head};
use crate::feed::{Recent, Watcher};
use crate::index::Head;
use crate::log::{FrameKind, LogReader, Record, RecordFields, RecordKind, SoundFrame, batch_part};
use crate::scan::{HeadScan, Step, is_live};

/// How many heads, or commits, a watch takes up at a time.
const CHUNK_MAX: usize = 256;

/// How many bytes a watch takes up at a time, at least one record or frame.
const CHUNK_BYTES_MAX: u64 = 1024 * 1024;

/// A watch: holds no more than a chunk of what it has yet to deliver, however slow its reader is.
pub(crate) struct Watch {
    core: Arc<Core>,
    subscription: Subscription,
    query: Arc<WatchQuery>,
    /// Everything before this revision was delivered, or belongs to `initial`.
    next: Revision,
    initial: Option<Initial>,
    reader: Option<LogReader>,
    /// A chunk of the log that is being read while the one before it is delivered.
    ahead: Option<ReadAhead>,
    ready: VecDeque<Ready>,
    /// What was read of the log: its records are made when they are delivered.
    chunk: LogChunk,
    /// The configuration of the bucket, and how often it had been changed then.
    config: Option<(u64, Arc<BucketConfig>)>,
}

/// The events of a watch, which belongs to whoever is at work on it.
struct WatchEvents {
    state: State,
}

enum State {
    Ready(Box<Watch>),
    /// More is being read, or waited for.
    Filling(BoxFuture<'static, (Box<Watch>, Result<(), EngineError>)>),
    Ended,
}

impl Stream for WatchEvents {
    type Item = Result<WatchEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Ready(watch) => {
                    let event = match watch.ready.pop_front() {
                        Some(ready) => Some(watch.deliver(ready)),
                        None => watch.deliver_from_log(),
                    };
                    if let Some(event) = event {
                        if event.is_err() {
                            self.state = State::Ended;
                        }
                        return Poll::Ready(Some(event));
                    }
                }
                State::Filling(filling) => {
                    let (watch, filled) = ready!(filling.as_mut().poll(context));
                    if let Err(error) = filled {
                        self.state = State::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                    self.state = State::Ready(watch);
                    continue;
                }
            }
            if let State::Ready(mut watch) = std::mem::replace(&mut self.state, State::Ended) {
                self.state = State::Filling(Box::pin(async move {
                    let filled = watch.fill().await;
                    (watch, filled)
                }));
            }
        }
    }
}

/// What is there when a watch begins and has yet to be delivered. Between chunks the snapshot is only leased,
/// so a watch that nobody reads does not hold on to it for ever.
struct Initial {
    revision: Revision,
    /// The last key that was looked at.
    last: Option<Key>,
    /// A key that is not done, with what is left of its records.
    rest: Option<(Key, Head)>,
}

/// Something to be delivered.
enum Ready {
    Initial(Entry),
    InitialDone(Revision),
    /// A record of a commit of so many.
    Record(Record, u16),
}

/// Counts as a watch of its bucket while it lives.
struct Subscription {
    bucket: Arc<Bucket>,
    watcher: Watcher,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bucket.feed.unsubscribe(&self.watcher);
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
        let watcher = bucket.feed.subscribe(&query.filters);
        let subscription = Subscription { bucket: Arc::clone(&bucket), watcher };
        let snapshot = core.snapshots.open();
        let visible = snapshot.revision;
        let next = match query.start {
            WatchStart::Revision(from) => {
                if from > visible.next() {
                    return Err(EngineError::FutureRevision { asked: from, newest: visible });
                }
                let oldest = bucket.feed_floor();
                if from < oldest {
                    return Err(EngineError::Compacted { oldest });
                }
                from
            }
            WatchStart::Now | WatchStart::Latest | WatchStart::History => visible.next(),
        };
        let initial = matches!(query.start, WatchStart::Latest | WatchStart::History).then(|| {
            core.snapshots.lease(&snapshot, core.elapsed());
            Initial { revision: visible, last: None, rest: None }
        });
        let (core, ready) = (Arc::clone(core), VecDeque::new());
        let (query, chunk) = (Arc::new(query), LogChunk::default());
        let (reader, ahead, config) = (None, None, None);
        let watch = Self { core, subscription, query, next, initial, reader, ahead, ready, chunk, config };
        Ok(Box::pin(WatchEvents { state: State::Ready(Box::new(watch)) }))
    }

    fn deliver(&mut self, ready: Ready) -> Result<WatchEvent, EngineError> {
        match ready {
            Ready::Initial(entry) => Ok(WatchEvent::Change(Change { entry, batch: BatchPart::SINGLE })),
            Ready::InitialDone(revision) => Ok(WatchEvent::InitialDone { revision }),
            Ready::Record(record, size) => {
                let index = record.index;
                let entry = self.core.record_entry(record)?;
                let batch = batch_part(entry.op, index, size);
                Ok(self.deliver_change(Change { entry, batch }))
            }
        }
    }

    /// Delivers the next change of what was read of the log; none if there are no more.
    fn deliver_from_log(&mut self) -> Option<Result<WatchEvent, EngineError>> {
        let (query, from) = (&self.query, self.chunk.from);
        loop {
            let frame = self.chunk.frames.front_mut()?;
            let next = frame.next_if(|fields, revision| is_wanted(query, from, fields, revision));
            match next {
                Ok(Some(change)) => return Some(Ok(self.deliver_change(change))),
                Ok(None) => drop(self.chunk.frames.pop_front()),
                Err(revision) => {
                    return Some(Err(self.core.damaged_record(revision, "says what no record can")));
                }
            }
        }
    }

    /// Delivers a change with the expiry that its bucket gives it now.
    fn deliver_change(&mut self, mut change: Change) -> WatchEvent {
        let changes = self.subscription.bucket.config_changes();
        if self.config.as_ref().is_none_or(|(known, _)| *known != changes) {
            self.config = Some((changes, self.subscription.bucket.config()));
        }
        let entry = &mut change.entry;
        if let Some((_, config)) = self.config.as_ref().filter(|_| entry.op.is_put()) {
            entry.expires = config.expiry(entry.time, entry.expires);
        }
        WatchEvent::Change(change)
    }

    /// Makes at least one event ready, or waits until there may be one.
    async fn fill(&mut self) -> Result<(), EngineError> {
        self.core.health.check_open()?;
        if let Some(initial) = self.initial.take() {
            return self.fill_initial(initial).await;
        }
        let Subscription { bucket, watcher } = &self.subscription;
        match bucket.feed.next(watcher, self.next, CHUNK_MAX) {
            Recent::Commits(commits) if commits.is_empty() => {
                if bucket.is_deleted() {
                    return Err(bucket.not_found());
                }
                // It may sleep for days, and need not hold on to a part of the log meanwhile.
                (self.reader, self.ahead, self.chunk) = (None, None, LogChunk::default());
                self.subscription.watcher.woken().await;
                Ok(())
            }
            Recent::Commits(commits) => {
                (self.reader, self.ahead) = (None, None);
                for commit in &commits {
                    for (_, record) in &commit.records {
                        let is_wanted = record.revision >= self.next && record.kind != RecordKind::Compact;
                        if is_wanted && self.query.matches(&record.key) {
                            self.ready.push_back(Ready::Record(record.clone(), commit.size));
                        }
                    }
                    self.next = self.next.max(commit.last.next());
                }
                Ok(())
            }
            Recent::Behind { from, ring } => {
                self.next = self.next.max(from);
                self.fill_from_log(ring).await
            }
        }
    }

    async fn fill_initial(&mut self, initial: Initial) -> Result<(), EngineError> {
        let (core, query) = (Arc::clone(&self.core), Arc::clone(&self.query));
        let bucket = Arc::clone(&self.subscription.bucket);
        let revision = initial.revision;
        let chunk = blocking::unblock(move || initial.chunk(&core, &bucket, &query)).await?;
        self.ready.extend(chunk.entries.into_iter().map(Ready::Initial));
        self.initial = chunk.rest;
        if self.initial.is_none() {
            self.ready.push_back(Ready::InitialDone(revision));
        }
        Ok(())
    }

    /// Takes up a chunk of the log, up to where the ring begins, and has the next one read meanwhile.
    async fn fill_from_log(&mut self, ring: Revision) -> Result<(), EngineError> {
        let bucket = Arc::clone(&self.subscription.bucket);
        let ahead = match self.ahead.take() {
            Some(ahead) => ahead,
            None => {
                let new = || LogReader::of_bucket(&self.core.log, bucket.id, self.next);
                // One that is still further behind would read what need not be seen.
                let kept = self.reader.take().filter(|reader| reader.reached() >= self.next);
                self.read_ahead(kept.unwrap_or_else(new), ring)
            }
        };
        let (reader, chunk) = ahead.await;
        // After it was read: changes are cleaned out of the log only after the floor was raised above them.
        let oldest = bucket.feed_floor();
        if self.next < oldest {
            return Err(EngineError::Compacted { oldest });
        }
        let chunk = chunk?;
        self.next = self.next.max(chunk.next);
        // One that has seen more than readers may see is of no use: what it passed over comes again.
        let reader = Some(reader).filter(|reader| reader.reached() <= chunk.until);
        match reader {
            Some(reader) if chunk.next < ring => self.ahead = Some(self.read_ahead(reader, ring)),
            reader => self.reader = reader,
        }
        self.chunk = chunk;
        Ok(())
    }

    /// Begins to read a chunk of the log.
    fn read_ahead(&self, mut reader: LogReader, until: Revision) -> ReadAhead {
        let (query, from) = (Arc::clone(&self.query), self.next);
        blocking::unblock(move || {
            let chunk = LogChunk::read(&mut reader, &query, from, until);
            (reader, chunk)
        })
    }
}

/// A chunk of the log that is being read.
type ReadAhead = Task<(LogReader, Result<LogChunk, EngineError>)>;

/// Whether a record is a change that a watch is about and that was not delivered before. What cannot be a key is damage, which
/// must not be passed over.
fn is_wanted(query: &WatchQuery, from: Revision, fields: &RecordFields<'_>, revision: Revision) -> bool {
    let is_about = || {
        query.filters.is_empty()
            || std::str::from_utf8(fields.key).map_or(true, |key| query.matches_text(key))
    };
    revision >= from && fields.kind != RecordKind::Compact && is_about()
}

/// Some of what is there when a watch begins.
struct InitialChunk {
    entries: Vec<Entry>,
    rest: Option<Initial>,
}

impl Initial {
    /// Reads some of it.
    fn chunk(
        mut self,
        core: &Arc<Core>,
        bucket: &Arc<Bucket>,
        query: &WatchQuery,
    ) -> Result<InitialChunk, EngineError> {
        let now = core.elapsed();
        let Some(snapshot) = core.snapshots.reopen(self.revision, now) else {
            return Err(EngineError::Compacted { oldest: core.snapshots.oldest(now) });
        };
        let range = ScanQuery::default().range_after(self.last.as_ref());
        let mut scan = HeadScan::new(core, bucket, snapshot, Selection::all(), &range, Direction::Forward);
        let (mut entries, config) = (Vec::new(), Arc::clone(&scan.config));
        let (mut bytes, mut budget) = (0, CHUNK_MAX);
        while bytes < CHUNK_BYTES_MAX {
            if let Some((key, head)) = self.rest.take() {
                let entry = self.take_record(&scan, key, head)?;
                bytes += entry.value.len() as u64;
                entries.push(entry);
                continue;
            }
            match scan.next(&mut budget)? {
                Step::Head(text, head) => {
                    let damaged = || damaged_head(bucket, text);
                    let key = Key::parse_reserved(text).map_err(|_| damaged())?;
                    self.last = Some(key.clone());
                    let history = query.start == WatchStart::History;
                    let wanted = history || is_live(&config, &head, core.clock.now());
                    if wanted && query.matches(&key) {
                        let head = head.to_head().ok_or_else(damaged)?;
                        let past = if history { head.past } else { Vec::new() };
                        self.rest = Some((key, Head { past, ..head }));
                    }
                }
                Step::Skipped => {}
                Step::End => return Ok(InitialChunk { entries, rest: None }),
                Step::OutOfBudget => break,
            }
        }
        core.snapshots.lease(&scan.snapshot, core.elapsed());
        Ok(InitialChunk { entries, rest: Some(self) })
    }

    /// Reads the oldest record that is left of a key.
    fn take_record(&mut self, scan: &HeadScan, key: Key, mut head: Head) -> Result<Entry, EngineError> {
        let Some(oldest) = head.past.pop() else { return scan.entry(key, head) };
        let entry = scan.core.past_entry(&scan.config, &key, oldest)?;
        let entry = entry.ok_or_else(|| scan.core.missing(&key))?;
        self.rest = Some((key, head));
        Ok(entry)
    }
}

/// Some commits of the log.
#[derive(Default)]
struct LogChunk {
    frames: VecDeque<SoundFrame>,
    /// Everything before this revision was delivered before.
    from: Revision,
    /// Readers saw everything before this revision when it was read.
    until: Revision,
    /// Everything of the bucket before this revision was read.
    next: Revision,
}

impl LogChunk {
    fn read(
        reader: &mut LogReader,
        query: &WatchQuery,
        from: Revision,
        until: Revision,
    ) -> Result<Self, EngineError> {
        let mut chunk = Self { frames: VecDeque::new(), from, until, next: reader.reached() };
        // A frame keeps what was read with it in memory, so that is what counts.
        let end = reader.bytes_read() + CHUNK_BYTES_MAX;
        while reader.bytes_read() < end && chunk.next < until {
            let Some(frame) = reader.next_sound()? else {
                chunk.next = reader.reached().min(until);
                if chunk.next >= until {
                    break;
                }
                // What the ring no longer holds is in the log, so the log cannot end before the ring begins.
                let what = format!("the log ends at revision {}, before {until}", chunk.next);
                return Err(EngineError::Bug { what });
            };
            // The reader passes over other buckets, and so comes to what readers cannot see yet.
            if frame.header.first >= until {
                chunk.next = until;
                break;
            }
            chunk.next = reader.reached();
            let has_wanted = || frame.has(|fields, revision| is_wanted(query, from, fields, revision));
            if frame.header.kind == FrameKind::Commit && (query.filters.is_empty() || has_wanted()) {
                chunk.frames.push_back(frame);
            }
        }
        Ok(chunk)
    }
}
