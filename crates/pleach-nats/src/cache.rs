use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rpds::RedBlackTreeMapSync;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use pleach_engine::{Change, Direction, EngineError, Entry, Key, KeyRange};

use crate::bucket::Bucket;
use crate::clock::ServerClock;
use crate::engine::Shared;
use crate::feed::{Feed, News};
use crate::range::EVERYTHING;
use crate::record::{Record, bytes};

/// Changes taken from the feed at once.
const CHANGES_AT_ONCE: usize = 1024;

/// How long a cache is kept that nobody asks for.
const CACHE_IDLE_MAX: Duration = Duration::from_secs(300);

/// The values of a bucket by key. Copying it is cheap, and a copy does not change.
pub(crate) type Entries = RedBlackTreeMapSync<CachedKey, Arc<Entry>>;

/// A key that can be compared with any bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CachedKey(Key);

impl Borrow<[u8]> for CachedKey {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A copy of a bucket in memory, ordered by key, which follows the bucket's changes.
#[derive(Debug)]
pub(crate) struct Cache {
    feed: Arc<Feed>,
    state: Mutex<State>,
    /// From this revision on it is what the bucket was then. Before, it may lack what was replaced while it was loaded.
    exact_from: u64,
    /// Everything up to this revision is in it.
    reached: watch::Sender<u64>,
    task: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
struct State {
    loaded: Loaded,
    revision: u64,
    /// It missed something, and must be built again.
    is_broken: bool,
    /// When someone last asked for it.
    used: Duration,
}

/// Entries, and what they take.
#[derive(Debug, Default)]
struct Loaded {
    entries: Entries,
    bytes: usize,
}

/// The ordered copies of buckets.
impl Shared {
    /// The copy of a bucket, with everything in it that this engine has written or seen.
    pub(crate) async fn snapshot(
        self: &Arc<Self>,
        bucket: &Arc<Bucket>,
    ) -> Result<(Entries, u64), EngineError> {
        let seen = bucket.seen();
        loop {
            let cache = self.cache(bucket).await?;
            let waited = tokio::time::timeout(self.options.patience, cache.reach(seen)).await;
            if waited.is_err() {
                let reason = format!("bucket {} has not been heard of", bucket.name);
                return Err(EngineError::Unreachable { reason });
            }
            self.check_open()?;
            if let Some(copy) = cache.copy(self.clock.elapsed()) {
                return Ok(copy);
            }
            if cache.feed.has_ended() {
                // It says why, unless the servers were set back: then the bucket is there, but it is known anew.
                let (looked, _) = self.look(&bucket.name).await?;
                if Arc::ptr_eq(&looked, bucket) {
                    return Err(EngineError::BucketNotFound { bucket: bucket.name.clone() });
                }
                return Box::pin(self.snapshot(&looked)).await;
            }
        }
    }

    async fn cache(self: &Arc<Self>, bucket: &Arc<Bucket>) -> Result<Arc<Cache>, EngineError> {
        let mut kept = bucket.cache.lock().await;
        if let Some(cache) = kept.as_ref().filter(|cache| !cache.is_over()) {
            return Ok(Arc::clone(cache));
        }
        let feed = self.feed(bucket).await?;
        let last = feed.next() - 1;
        let mut loaded = Loaded::default();
        let take = |record: Record| {
            if let Some(change) = record.into_listed(&bucket.names) {
                loaded.apply(change.entry);
            }
            loaded.check(self.options.cache_bytes_max)
        };
        self.read_range(bucket, EVERYTHING, 1, last, take).await?;
        let (_, exact_from) = self.look(&bucket.name).await?;
        let cache = Arc::new(Cache {
            feed: Arc::clone(&feed),
            exact_from,
            state: Mutex::new(State { loaded, revision: last, is_broken: false, used: self.clock.elapsed() }),
            reached: watch::Sender::new(last),
            task: Mutex::new(None),
        });
        let follower = Follower {
            cache: Arc::downgrade(&cache),
            bucket: Arc::downgrade(bucket),
            feed,
            clock: Arc::clone(&self.clock),
            bytes_max: self.options.cache_bytes_max,
        };
        let task = self.handle.spawn(follower.run());
        *cache.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        *kept = Some(Arc::clone(&cache));
        Ok(cache)
    }
}

impl Cache {
    /// What is in it, and as of which revision; none if it is broken.
    fn copy(&self, now: Duration) -> Option<(Entries, u64)> {
        let mut state = self.lock();
        state.used = now;
        (!state.is_broken).then(|| (state.loaded.entries.clone(), state.revision))
    }

    fn is_over(&self) -> bool {
        self.feed.has_ended() || self.lock().is_broken
    }

    /// Waits until everything up to `revision` is in it and the server has been heard of, or it is broken.
    async fn reach(&self, revision: u64) {
        let revision = revision.max(self.exact_from);
        self.feed.reach(revision).await;
        // What has come since is here too, or a scan would not see what the feed already knows.
        let revision = revision.max(self.feed.last_shown());
        let mut reached = self.reached.subscribe();
        while !self.lock().is_broken && *reached.borrow_and_update() < revision {
            if self.feed.has_ended() {
                self.lock().is_broken = true;
                return;
            }
            let _ = reached.changed().await;
        }
    }

    /// Whoever wants it must build it again.
    fn break_down(&self) {
        let mut state = self.lock();
        state.is_broken = true;
        state.loaded = Loaded::default();
        drop(state);
        self.reached.send_modify(|_| ());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Loaded {
    fn apply(&mut self, entry: Entry) {
        let key = CachedKey(entry.key.clone());
        if let Some(older) = self.entries.get(&key) {
            self.bytes -= bytes(older);
        }
        if entry.op.is_put() {
            self.bytes += bytes(&entry);
            self.entries.insert_mut(key, Arc::new(entry));
        } else {
            self.entries.remove_mut(&key);
        }
    }

    fn check(&self, bytes_max: usize) -> Result<(), EngineError> {
        if self.bytes > bytes_max {
            let what =
                "scans of a bucket that takes more memory than `cache_bytes_max`, unless they are direct";
            return Err(EngineError::Unsupported { what });
        }
        Ok(())
    }
}

/// Applies what comes by the feed, as long as anyone asks for the cache.
struct Follower {
    cache: Weak<Cache>,
    bucket: Weak<Bucket>,
    feed: Arc<Feed>,
    clock: Arc<ServerClock>,
    bytes_max: usize,
}

impl Follower {
    async fn run(self) {
        let mut arrivals = self.feed.arrivals();
        loop {
            arrivals.mark_unchanged();
            let Some(cache) = self.cache.upgrade() else { return };
            let (from, used) = {
                let state = cache.lock();
                (state.revision + 1, state.used)
            };
            match self.feed.news(from, CHANGES_AT_ONCE) {
                Ok(News::Changes(changes, next)) => self.apply(&cache, changes, next),
                Ok(News::None) if self.is_short(&cache) => return cache.break_down(),
                Ok(News::None) if self.clock.elapsed().saturating_sub(used) > CACHE_IDLE_MAX => {
                    return self.discard(&cache).await;
                }
                Ok(News::None) => {
                    drop(cache);
                    if arrivals.changed().await.is_err() {
                        return;
                    }
                }
                Err(_) => return cache.break_down(),
            }
        }
    }

    fn apply(&self, cache: &Cache, changes: Vec<Change>, next: u64) {
        let mut state = cache.lock();
        for change in changes {
            state.loaded.apply(change.entry);
        }
        state.revision = next - 1;
        let is_too_large = state.loaded.check(self.bytes_max).is_err();
        drop(state);
        if is_too_large {
            // Whoever asks next is told why, when it cannot be built again.
            cache.break_down();
        }
        cache.reached.send_replace(next - 1);
    }

    /// Whether the stream has fewer messages than there are values: someone has removed some without leaving a marker.
    fn is_short(&self, cache: &Cache) -> bool {
        let state = cache.lock();
        let is_short =
            |(last, messages)| state.revision == last && (state.loaded.entries.size() as u64) > messages;
        self.feed.census().is_some_and(is_short)
    }

    /// Gives the memory back, and with it the feed if nobody else follows.
    async fn discard(&self, cache: &Arc<Cache>) {
        cache.break_down();
        let Some(bucket) = self.bucket.upgrade() else { return };
        let mut kept = bucket.cache.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, cache)) {
            *kept = None;
        }
    }
}

/// The entries of a range in the order of a scan.
pub(crate) fn within<'a>(
    entries: &'a Entries,
    range: &'a KeyRange,
    direction: Direction,
) -> Box<dyn Iterator<Item = &'a Arc<Entry>> + Send + 'a> {
    if range.is_empty() {
        return Box::new(std::iter::empty());
    }
    fn bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
        match bound {
            Bound::Included(bytes) => Bound::Included(bytes.as_slice()),
            Bound::Excluded(bytes) => Bound::Excluded(bytes.as_slice()),
            Bound::Unbounded => Bound::Unbounded,
        }
    }
    let found = entries.range::<[u8], _>((bytes(&range.start), bytes(&range.end))).map(|(_, entry)| entry);
    match direction {
        Direction::Forward => Box::new(found),
        Direction::Backward => Box::new(found.rev()),
    }
}
