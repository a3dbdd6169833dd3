mod driver;
#[cfg(test)]
mod tests;
mod view;

use std::ops::Deref;
use std::sync::Arc;

use pleach_engine::{EngineError, Revision};

use crate::{Bucket, Error, WatchOptions, WatchStart};
use driver::Driver;
pub(crate) use view::Answers;
use view::{Phase, View};

/// The most bytes of entries that a read cache holds unless told otherwise.
pub const CACHE_BYTES_DEFAULT: usize = 256 * 1024 * 1024;

/// The most entries that a read cache looks at to answer one scan or count; for more, it asks the bucket,
/// which reads page by page.
pub const CACHE_VISITS_MAX: usize = 10_000;

/// How a read cache is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The most bytes of entries that it holds. A bucket that takes more is not cached.
    pub bytes_max: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { bytes_max: CACHE_BYTES_DEFAULT }
    }
}

/// A bucket whose live entries are kept in memory by a watch, so that most reads ask nobody.
///
/// It is used as the bucket that it is: `get`, `scan`, `keys` and `count` are answered from memory where
/// that is right, and everything else, writes too, goes to the bucket.
///
/// **When memory answers.** Only while the cache [is ready](CachedBucket::is_ready): the watch has delivered
/// everything that was there when it began. Until then, and again after the watch has lost its place, reads
/// go to the bucket while the cache builds itself anew. Batches appear in it whole.
///
/// **Its own writes.** A write through this handle or a clone of it is seen by the next read through them:
/// the cache remembers the revision of the write, and until the watch has delivered it, reads go to the
/// bucket. So it is with whatever a conflict, a read from the bucket or a watch through this handle has shown:
/// reads never go back in time. Writes made elsewhere appear as soon as the watch delivers them, in order; so do
/// the end of the bucket and that of the store.
///
/// **Expiry.** An entry is never answered from memory once its time has come by the store's clock; from then
/// until the watch reports it expired, reads that meet it go to the bucket. A shorter TTL that is given to the
/// whole bucket later ends what is in memory by then only when the watch reports it expired.
///
/// **What it costs.** One thread named `pleach-cache`, which follows the watch and needs no async runtime,
/// and at most [`CacheOptions::bytes_max`] of entries; a bucket that takes more is not cached, and
/// [`CachedBucket::ready`] says so. Dropping the last clone stops the thread, waits until it has stopped,
/// and frees everything.
///
/// ```
/// # pollster::block_on(async {
/// # let store = pleach::Store::in_memory();
/// let flags = store.create_bucket("flags").await?.cached().await?;
/// flags.ready().await?;
/// flags.put("dark-mode", "on").await?;
/// assert_eq!(flags.get("dark-mode").await?.unwrap().value, "on");
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct CachedBucket {
    /// Its bucket has a cache.
    bucket: Bucket,
    cache: Arc<Cache>,
}

impl Bucket {
    /// Starts a read cache of this bucket. It is of use once it is [ready](CachedBucket::ready).
    ///
    /// # Errors
    /// `BucketNotFound`, [`Error::NoThread`], or what the engine could not do.
    pub async fn cached(&self) -> Result<CachedBucket, Error> {
        self.cached_with(CacheOptions::default()).await
    }

    /// [`Bucket::cached`], with options.
    ///
    /// # Errors
    /// Those of [`Bucket::cached`].
    pub async fn cached_with(&self, options: CacheOptions) -> Result<CachedBucket, Error> {
        let source = self.without_cache();
        let watch = source.watch_with(latest()).await?;
        let view = Arc::new(View::new(self.store().clock(), options.bytes_max));
        let driver = Driver::start(source, watch, Arc::clone(&view))?;
        let cache = Arc::new(Cache { view, bytes_max: options.bytes_max, _driver: driver });
        Ok(CachedBucket { bucket: self.with_cache(Arc::clone(&cache)), cache })
    }
}

impl CachedBucket {
    /// The bucket, with this cache: for whatever takes a [`Bucket`].
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Whether reads are answered from memory, except while a write through this handle is on its way.
    pub fn is_ready(&self) -> bool {
        self.cache.view.phase() == Phase::Ready
    }

    /// Waits until the cache is ready.
    ///
    /// # Errors
    /// If it will never be: [`Error::CacheFull`], `BucketNotFound` after the bucket was deleted, or `Closed`.
    /// Reads then go to the bucket for good.
    pub async fn ready(&self) -> Result<(), Error> {
        let bucket = || self.bucket.name().clone();
        match self.cache.view.settled().await {
            Phase::Building | Phase::Ready => Ok(()),
            Phase::Full => Err(Error::CacheFull { bucket: bucket(), limit: self.cache.bytes_max }),
            Phase::BucketGone => Err(EngineError::BucketNotFound { bucket: bucket() }.into()),
            Phase::Closed => Err(EngineError::Closed.into()),
            Phase::Broken => {
                let what = "the thread of a read cache has ended".to_owned();
                Err(EngineError::Bug { what }.into())
            }
        }
    }

    /// What the entries in it take, in bytes.
    pub fn bytes(&self) -> usize {
        self.cache.view.bytes()
    }
}

impl Deref for CachedBucket {
    type Target = Bucket;

    fn deref(&self) -> &Bucket {
        &self.bucket
    }
}

/// What the clones of a cached bucket share. Dropping it stops the thread.
#[derive(Debug)]
pub(crate) struct Cache {
    view: Arc<View>,
    bytes_max: usize,
    _driver: Driver,
}

impl Cache {
    /// What may be answered from memory; none if nothing may.
    pub(crate) fn answers(&self) -> Option<Answers<'_>> {
        self.view.answers()
    }

    /// Whether it answers now or may answer later.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.view.phase(), Phase::Building | Phase::Ready)
    }

    /// From now on, what is older than `revision` is no answer.
    pub(crate) fn knows_of(&self, revision: Revision) {
        self.view.require(revision);
    }
}

fn latest() -> WatchOptions {
    WatchOptions { filters: Vec::new(), start: WatchStart::Latest }
}
