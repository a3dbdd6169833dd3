use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::stream;
use tokio::sync::watch;

use pleach_engine::{
    BatchPart, BucketName, Change, EngineError, Entry, Key, Op, Revision, WatchEvent, WatchQuery, WatchStart,
    WatchStream,
};

use crate::bucket::{Bucket, Watched};
use crate::engine::Shared;
use crate::feed::{Feed, News};
use crate::range::EVERYTHING;
use crate::record::{Record, bytes, shown};
use crate::runtime::Background;

/// Changes taken from the feed at once.
const CHANGES_AT_ONCE: usize = 256;

/// Watches: first what the stream holds, then what comes by the feed.
impl Shared {
    pub(crate) async fn watch(
        self: &Arc<Self>,
        background: &Arc<Background>,
        name: &BucketName,
        query: WatchQuery,
    ) -> Result<WatchStream, EngineError> {
        self.check_open()?;
        query.check()?;
        let bucket = self.bucket(name).await?;
        let feed = self.feed(&bucket).await?;
        let (looked, last) = self.look(name).await?;
        if looked.identity != bucket.identity {
            return Err(EngineError::BucketNotFound { bucket: name.clone() });
        }
        let mut watch = Watch {
            shared: Arc::clone(self),
            arrivals: feed.arrivals(),
            feed,
            watched: bucket.watched(),
            bucket,
            queue: VecDeque::new(),
            stored: None,
            next: last + 1,
            query,
        };
        watch.begin(last).await?;
        let background = Arc::clone(background);
        let events = stream::unfold(Some(watch), move |watch| {
            background.running(async move {
                let mut watch = watch?;
                match watch.event().await {
                    Ok(event) => Some((Ok(event), Some(watch))),
                    Err(error) => Some((Err(error), None)),
                }
            })
        });
        Ok(Box::pin(events))
    }
}

/// A place in a bucket's changes.
struct Watch {
    shared: Arc<Shared>,
    bucket: Arc<Bucket>,
    feed: Arc<Feed>,
    arrivals: watch::Receiver<u64>,
    #[allow(dead_code, reason = "counts the watch as long as it is here")]
    watched: Watched,
    query: WatchQuery,
    /// What is to be delivered before anything else.
    queue: VecDeque<WatchEvent>,
    /// The revisions that are still to be read from the stream: from here up to and with that.
    stored: Option<(u64, u64)>,
    /// Where to go on in the feed.
    next: u64,
}

impl Watch {
    /// Finds out where to begin in a bucket whose newest revision is `last`.
    async fn begin(&mut self, last: u64) -> Result<(), EngineError> {
        match self.query.start {
            WatchStart::Now => {}
            WatchStart::Latest | WatchStart::History => self.read_initial(last).await?,
            WatchStart::Revision(asked) if asked.get() > last + 1 => {
                return Err(EngineError::FutureRevision { asked, newest: Revision::new(last) });
            }
            WatchStart::Revision(asked) if self.feed.news(asked.get(), 0).is_ok() => self.next = asked.get(),
            WatchStart::Revision(asked) => {
                let floor = self.shared.feed_floor(&self.bucket, last).await?;
                if asked.get() < floor {
                    return Err(EngineError::Compacted { oldest: Revision::new(floor) });
                }
                self.stored = Some((asked.get(), last));
            }
        }
        Ok(())
    }

    /// Queues what was there. While it is read, records are replaced by newer ones: those come by the feed, so that
    /// what is queued is what was there once everything had been read.
    async fn read_initial(&mut self, last: u64) -> Result<(), EngineError> {
        let names = &self.bucket.names;
        let filter = match self.query.filters.as_slice() {
            [single] => format!("{}{single}", names.all_subjects().trim_end_matches('>')),
            _ => EVERYTHING.to_owned(),
        };
        let is_latest = self.query.start == WatchStart::Latest;
        let config = self.bucket.config();
        let keep = if is_latest { 1 } else { usize::from(config.history.get()) };
        let mut found: BTreeMap<Key, VecDeque<Entry>> = BTreeMap::new();
        let (mut taken, bytes_max) = (0, self.shared.options.cache_bytes_max);
        let take = |record: Record| {
            let change = record.into_listed(names);
            if let Some(change) = change.filter(|change| self.query.matches(&change.entry.key)) {
                taken += bytes(&change.entry);
                taken -= add(&mut found, change.entry, keep);
            }
            if taken > bytes_max {
                let what = "watches that begin with values that take more memory than `cache_bytes_max`";
                return Err(EngineError::Unsupported { what });
            }
            Ok(())
        };
        self.shared.read_range(&self.bucket, &filter, 1, last, take).await?;
        let (_, reached) = self.shared.look(&self.bucket.name).await?;
        let waited = tokio::time::timeout(self.shared.options.patience, self.feed.reach(reached)).await;
        waited.map_err(|_| EngineError::Unreachable { reason: "changes have not been heard of".into() })?;
        while let News::Changes(changes, next) = self.feed.news(self.next, CHANGES_AT_ONCE)? {
            self.next = next;
            let wanted = changes.into_iter().filter(|change| self.query.matches(&change.entry.key));
            for change in wanted {
                add(&mut found, change.entry, keep);
            }
        }
        let now = self.shared.clock.now();
        let mut entries: Vec<Entry> = found.into_values().flatten().collect();
        entries.retain(|entry| !is_latest || config.is_live(entry, now));
        entries.sort_by_key(|entry| entry.revision);
        let changes = entries.into_iter().map(|entry| shown(entry, &config));
        let changes = changes.map(|entry| Change { entry, batch: BatchPart::SINGLE });
        self.queue.extend(changes.map(WatchEvent::Change));
        self.queue.push_back(WatchEvent::InitialDone { revision: Revision::new(self.next - 1) });
        Ok(())
    }

    async fn event(&mut self) -> Result<WatchEvent, EngineError> {
        loop {
            self.arrivals.mark_unchanged();
            // An end comes before everything else.
            let news = self.feed.news(self.next, CHANGES_AT_ONCE);
            if let Err(error @ (EngineError::BucketNotFound { .. } | EngineError::Closed)) = news {
                return Err(error);
            }
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            if let Some((from, up_to)) = self.stored {
                self.read_stored(from, up_to).await?;
                continue;
            }
            match news? {
                News::Changes(changes, next) => {
                    self.next = next;
                    self.deliver(changes);
                }
                News::None => self.arrivals.changed().await.map_err(|_| EngineError::Closed)?,
            }
        }
    }

    /// Queues what is wanted of `changes`.
    fn deliver(&mut self, changes: Vec<Change>) {
        let config = self.bucket.config();
        for Change { entry, batch } in changes {
            if self.query.matches(&entry.key) {
                let entry = shown(entry, &config);
                self.queue.push_back(WatchEvent::Change(Change { entry, batch }));
            }
        }
    }

    /// Reads on in the stream, up to where the feed takes over.
    async fn read_stored(&mut self, from: u64, up_to: u64) -> Result<(), EngineError> {
        let (records, next) = self.shared.read_some(&self.bucket, from, up_to).await?;
        self.stored = next.map(|next| (next, up_to));
        let changes = records.into_iter().filter_map(|record| record.into_listed(&self.bucket.names));
        self.deliver(changes.collect());
        Ok(())
    }
}

/// Adds a record to those that are kept of its key. Returns what those took that are no longer kept.
fn add(found: &mut BTreeMap<Key, VecDeque<Entry>>, entry: Entry, keep: usize) -> usize {
    let records = found.entry(entry.key.clone()).or_default();
    let keep = if matches!(entry.op, Op::Purge) { 1 } else { keep };
    records.push_back(entry);
    let surplus = records.len().saturating_sub(keep);
    records.drain(..surplus).map(|record| bytes(&record)).sum()
}
