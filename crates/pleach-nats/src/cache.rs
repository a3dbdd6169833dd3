use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpds::RedBlackTreeMapSync;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use pleach_engine::{Direction, EngineError, Entry, Key, KeyRange};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::feed::{Feed, News};
use crate::record::Record;

/// Changes taken from the feed at once.
const CHANGES_AT_ONCE: usize = 1024;

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

#[derive(Debug, Default)]
struct State {
    entries: Entries,
    revision: u64,
    /// It missed something and must be built again.
    is_broken: bool,
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
            if let Some(copy) = cache.copy() {
                return Ok(copy);
            }
            if cache.feed.has_ended() {
                // Says why, as a look at the bucket does.
                self.look(&bucket.name).await?;
                return Err(EngineError::BucketNotFound { bucket: bucket.name.clone() });
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
        let mut entries = Entries::new_sync();
        let take = |record: Record| {
            if let Some(change) = record.into_change(&bucket.names) {
                apply(&mut entries, change.entry);
            }
            Ok(())
        };
        self.read_range(bucket, &bucket.names.all_subjects(), 1, last, take).await?;
        let (_, exact_from) = self.look(&bucket.name).await?;
        let cache = Arc::new(Cache {
            feed: Arc::clone(&feed),
            exact_from,
            state: Mutex::new(State { entries, revision: last, is_broken: false }),
            reached: watch::Sender::new(last),
            task: Mutex::new(None),
        });
        let task = self.handle.spawn(follow(Arc::downgrade(&cache), feed));
        *cache.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        *kept = Some(Arc::clone(&cache));
        Ok(cache)
    }
}

impl Cache {
    /// What is in it, and as of which revision; none if it is broken.
    fn copy(&self) -> Option<(Entries, u64)> {
        let state = self.lock();
        (!state.is_broken).then(|| (state.entries.clone(), state.revision))
    }

    fn is_over(&self) -> bool {
        self.feed.has_ended() || self.lock().is_broken
    }

    /// Waits until everything up to `revision` is in it and the server has been heard of, or it is broken.
    async fn reach(&self, revision: u64) {
        let revision = revision.max(self.exact_from);
        self.feed.reach(revision).await;
        let mut reached = self.reached.subscribe();
        while !self.lock().is_broken && *reached.borrow_and_update() < revision {
            if self.feed.has_ended() {
                self.lock().is_broken = true;
                return;
            }
            let _ = reached.changed().await;
        }
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

/// Applies what comes by the feed, as long as anyone has the cache.
async fn follow(cache: std::sync::Weak<Cache>, feed: Arc<Feed>) {
    let mut arrivals = feed.arrivals();
    loop {
        let Some(strong) = cache.upgrade() else { return };
        arrivals.mark_unchanged();
        let from = strong.lock().revision + 1;
        match feed.news(from, CHANGES_AT_ONCE) {
            Ok(News::Changes(changes, next)) => {
                let mut state = strong.lock();
                for change in changes {
                    apply(&mut state.entries, change.entry);
                }
                state.revision = next - 1;
                drop(state);
                strong.reached.send_replace(next - 1);
            }
            Ok(News::None) => {
                drop(strong);
                if arrivals.changed().await.is_err() {
                    return;
                }
            }
            Err(_) => {
                strong.lock().is_broken = true;
                strong.reached.send_modify(|_| ());
                return;
            }
        }
    }
}

fn apply(entries: &mut Entries, entry: Entry) {
    let key = CachedKey(entry.key.clone());
    if entry.op.is_put() {
        entries.insert_mut(key, Arc::new(entry));
    } else {
        entries.remove_mut(&key);
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
