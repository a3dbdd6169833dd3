use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use pleach_engine::{BucketConfig, BucketInfo, BucketName, Entry, Revision, Timestamp};

use crate::cache::Cache;
use crate::config::Settings;
use crate::feed::Feed;
use crate::names::Names;

/// How many batches of one bucket this engine has on their way at once. A server takes 50 from all clients, and forgets the
/// beginnings of more.
const BATCHES_AT_ONCE: usize = 16;

/// What this engine knows of a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) name: BucketName,
    pub(crate) names: Names,
    /// When it was created, in microseconds: tells it from its namesakes.
    pub(crate) identity: u64,
    settings: RwLock<Known>,
    /// The newest revision that this engine has written or seen.
    seen: AtomicU64,
    /// How many messages its stream had when it was looked at last.
    pub(crate) messages: AtomicU64,
    /// The last key that was read had no record. Then the next may have none either, and only the leader's word for that is good.
    pub(crate) has_missed: AtomicBool,
    watches: AtomicUsize,
    /// We may not have it repeat its changes.
    pub(crate) is_left_alone: AtomicBool,
    /// Lets only so many batches be on their way at once.
    pub(crate) batches: Semaphore,
    /// Follows its changes, while anyone wants them.
    pub(crate) feed: tokio::sync::Mutex<Weak<Feed>>,
    /// The ordered copy, once someone has scanned.
    pub(crate) cache: tokio::sync::Mutex<Option<Arc<Cache>>>,
    /// The feed again, for whoever cannot wait.
    pub(crate) running: Mutex<Weak<Feed>>,
}

#[derive(Debug)]
struct Known {
    settings: Arc<Settings>,
    /// It was so at this moment or later, by a clock that never goes back.
    as_of: Duration,
}

impl Bucket {
    pub(crate) fn new(
        name: BucketName,
        names: Names,
        settings: Settings,
        last: u64,
        as_of: Duration,
    ) -> Self {
        Self {
            name,
            names,
            identity: settings.identity(),
            settings: RwLock::new(Known { settings: Arc::new(settings), as_of }),
            seen: AtomicU64::new(last),
            messages: AtomicU64::new(u64::MAX),
            has_missed: AtomicBool::new(false),
            watches: AtomicUsize::new(0),
            is_left_alone: AtomicBool::new(false),
            batches: Semaphore::new(BATCHES_AT_ONCE),
            feed: tokio::sync::Mutex::new(Weak::new()),
            cache: tokio::sync::Mutex::new(None),
            running: Mutex::new(Weak::new()),
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner).settings)
    }

    /// How long ago the server said what is known.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.settings.read().unwrap_or_else(PoisonError::into_inner).as_of)
    }

    /// Takes note of what the server said, unless something newer is known.
    pub(crate) fn learn(&self, settings: Settings, last: u64, as_of: Duration) {
        self.see(last);
        let mut known = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        if as_of >= known.as_of {
            *known = Known { settings: Arc::new(settings), as_of };
        }
    }

    /// Takes note of a revision that is there.
    pub(crate) fn see(&self, revision: u64) {
        self.seen.fetch_max(revision, Ordering::AcqRel);
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(crate) fn info(&self, last: u64, floor: u64) -> BucketInfo {
        let settings = self.settings();
        BucketInfo {
            name: self.name.clone(),
            config: settings.config.clone(),
            created: settings.created,
            last_revision: Revision::new(last),
            feed_floor: Revision::new(floor),
            watches: self.watches.load(Ordering::Acquire),
        }
    }

    /// Whether a record is a value that has not expired. A fence never does.
    pub(crate) fn is_live(&self, entry: &Entry, now: Timestamp) -> bool {
        if entry.key.is_fence() {
            return entry.op.is_put();
        }
        self.settings().config.is_live(entry, now)
    }

    pub(crate) fn config(&self) -> BucketConfig {
        self.settings().config.clone()
    }

    /// Counts a watch until what is returned is dropped.
    pub(crate) fn watched(self: &Arc<Self>) -> Watched {
        self.watches.fetch_add(1, Ordering::AcqRel);
        Watched(Arc::clone(self))
    }

    /// The feed, if someone follows the bucket.
    pub(crate) fn running_feed(&self) -> Option<Arc<Feed>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

/// An open watch of a bucket.
#[derive(Debug)]
pub(crate) struct Watched(Arc<Bucket>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::AcqRel);
    }
}
