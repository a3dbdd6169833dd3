use std::num::NonZeroU8;
use std::sync::Arc;

use pleach_engine::{
    At, BucketConfig, BucketInfo, BucketName, Engine, Entry, Page, Revision, ScanQuery, Selection, WatchStart,
};
use pleach_stores::Keeper;

use crate::cache::{Answers, Cache};
use crate::{
    Error, GetOptions, IntoFilter, IntoKey, IntoSelection, Keys, KeysOptions, Origin, Scan, ScanOptions,
    Store, Watch, WatchOptions,
};

/// A bucket of a store: a handle, cheap to clone.
///
/// Reading is here, writing in the second block of methods. Each operation that has options has a second
/// form that takes them: [`put`](Bucket::put) and [`put_with`](Bucket::put_with).
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Store,
    name: BucketName,
    /// Asked first by the reads it can answer, and told of every write.
    cache: Option<Arc<Cache>>,
}

/// A bucket as it is now, and how much is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketStatus {
    /// What the engine knows of it.
    pub info: BucketInfo,
    /// How many keys have a live value.
    pub entries: u64,
}

impl Bucket {
    pub(crate) fn new(store: Store, name: BucketName) -> Self {
        Self { store, name, cache: None }
    }

    /// Its name.
    pub fn name(&self) -> &BucketName {
        &self.name
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The same bucket, with `origin` in the headers of whatever is written through this handle.
    ///
    /// # Errors
    /// [`Error::Header`] if a part of `origin` cannot be a header.
    pub fn with_origin(&self, origin: &Origin) -> Result<Self, Error> {
        Ok(Self { store: self.store.with_origin(origin)?, ..self.clone() })
    }

    /// Returns the live entry of a key, if it has one.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn get(&self, key: impl IntoKey) -> Result<Option<Entry>, Error> {
        let key = key.into_key()?;
        if let Some(answer) = self.answers().and_then(|answers| answers.get(&key)) {
            return Ok(answer);
        }
        let found = self.engine().read(&self.name, &key, At::Latest).await?;
        self.shown(found.as_ref().map(|entry| entry.revision)).await?;
        Ok(found)
    }

    /// [`Bucket::get`], with options.
    ///
    /// # Errors
    /// `FutureRevision` if the bucket has not come to the revision asked for, `Unsupported` if the engine cannot promise
    /// that, or what it could not do.
    pub async fn get_with(&self, key: impl IntoKey, options: GetOptions) -> Result<Option<Entry>, Error> {
        let Some(reads) = options.reads else { return self.get(key).await };
        let found = self.store.read_with(&self.name, &key.into_key()?, reads).await?;
        self.shown(found.as_ref().map(|entry| entry.revision)).await?;
        Ok(found)
    }

    /// Returns the entry that a key had once `revision` had been committed, if it had one that has not
    /// expired by now.
    ///
    /// # Errors
    /// `Compacted` if that record is no longer kept, `FutureRevision`, or what the engine could not do.
    pub async fn get_at(&self, key: impl IntoKey, revision: Revision) -> Result<Option<Entry>, Error> {
        let found = self.engine().read(&self.name, &key.into_key()?, At::Revision(revision)).await?;
        self.shown(found.as_ref().map(|entry| entry.revision)).await?;
        Ok(found)
    }

    /// Returns the kept records of a key, oldest first: values and markers, expired or not.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn history(&self, key: impl IntoKey) -> Result<Vec<Entry>, Error> {
        let records = self.engine().history(&self.name, &key.into_key()?).await?;
        self.shown(records.last().map(|record| record.revision)).await?;
        Ok(records)
    }

    /// Reads the live entries of `selection` in key order, all from one snapshot, page by page as they are
    /// asked for. A string is a filter: `scan("user.>")`, `scan(">")`.
    ///
    /// # Errors
    /// [`Error::Filter`] for text that is no filter. What the engine could not do is said by the [`Scan`].
    pub fn scan(&self, selection: impl IntoSelection) -> Result<Scan, Error> {
        let selection = selection.into_selection()?;
        Ok(self.scan_with(ScanOptions { selection, ..ScanOptions::default() }))
    }

    /// [`Bucket::scan`], with options.
    pub fn scan_with(&self, options: ScanOptions) -> Scan {
        match self.answers().and_then(|answers| answers.scan(&options)) {
            Some((entries, revision)) => Scan::of(entries, revision),
            None => Scan::new(self.clone(), options),
        }
    }

    /// Reads one page of a scan, to go on with its token now or from another process.
    ///
    /// # Errors
    /// `InvalidPageToken`, `PageLimit`, `Compacted` if the snapshot is gone, or what the engine could not do.
    pub async fn scan_page(&self, query: ScanQuery) -> Result<Page, Error> {
        let page = self.engine().scan(&self.name, query).await?;
        self.shown(None).await?;
        Ok(page)
    }

    /// Lists the keys of `selection` that have live values, in order, all from one snapshot.
    ///
    /// # Errors
    /// [`Error::Filter`] for text that is no filter. What the engine could not do is said by the [`Keys`].
    pub fn keys(&self, selection: impl IntoSelection) -> Result<Keys, Error> {
        let selection = selection.into_selection()?;
        Ok(self.keys_with(KeysOptions { selection, ..KeysOptions::default() }))
    }

    /// [`Bucket::keys`], with options.
    pub fn keys_with(&self, options: KeysOptions) -> Keys {
        Keys::new(self.scan_with(options.into()))
    }

    /// Counts the keys of `selection` that have live values.
    ///
    /// # Errors
    /// [`Error::Filter`] for text that is no filter, or what the engine could not do.
    pub async fn count(&self, selection: impl IntoSelection) -> Result<u64, Error> {
        let selection = selection.into_selection()?;
        if let Some(answer) = self.answers().and_then(|answers| answers.count(&selection)) {
            return Ok(answer);
        }
        let count = self.engine().count(&self.name, selection).await?;
        self.shown(None).await?;
        Ok(count)
    }

    /// Delivers the changes of the keys that pass `filter`, from now on.
    ///
    /// # Errors
    /// [`Error::Filter`] for text that is no filter, or what the engine could not do.
    pub async fn watch(&self, filter: impl IntoFilter) -> Result<Watch, Error> {
        let filters = vec![filter.into_filter()?];
        self.watch_with(WatchOptions { filters, start: WatchStart::Now }).await
    }

    /// [`Bucket::watch`], with options: by several filters, from the latest values, with history, or from
    /// a revision.
    ///
    /// # Errors
    /// `Compacted`, `FutureRevision`, or what the engine could not do.
    pub async fn watch_with(&self, options: WatchOptions) -> Result<Watch, Error> {
        let has_initial = matches!(options.start, WatchStart::Latest | WatchStart::History);
        let watch = Watch::new(self.engine().watch(&self.name, options.into()).await?);
        if has_initial {
            // What is not among the initial values is shown to be gone.
            self.shown(None).await?;
        }
        Ok(match &self.cache {
            Some(cache) => watch.shown_to(cache),
            None => watch,
        })
    }

    /// Forgets all but the newest `keep` records of a key. Nothing happens if it has fewer.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn compact_key(&self, key: impl IntoKey, keep: NonZeroU8) -> Result<(), Error> {
        Ok(self.engine().compact_key(&self.name, &key.into_key()?, keep).await?)
    }

    /// Describes the bucket and counts its entries.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn status(&self) -> Result<BucketStatus, Error> {
        let entries = self.engine().count(&self.name, Selection::all()).await?;
        let info = self.info().await?;
        Ok(BucketStatus { info, entries })
    }

    /// Describes the bucket.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn info(&self) -> Result<BucketInfo, Error> {
        let info = self.engine().bucket(&self.name).await?;
        self.shown(Some(info.last_revision)).await?;
        Ok(info)
    }

    /// Its configuration.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn config(&self) -> Result<BucketConfig, Error> {
        Ok(self.info().await?.config)
    }

    pub(crate) fn with_cache(&self, cache: Arc<Cache>) -> Self {
        Self { cache: Some(cache), ..self.clone() }
    }

    /// The same bucket for a part of the library that keeps records of its own under reserved keys.
    pub(crate) fn keeping(&self, keeper: Keeper) -> Self {
        Self { store: self.store.keeping(keeper), ..self.clone() }
    }

    pub(crate) fn without_cache(&self) -> Self {
        Self { cache: None, ..self.clone() }
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.cache.as_deref()
    }

    /// What a cache can answer now, if there is one.
    fn answers(&self) -> Option<Answers<'_>> {
        self.cache()?.answers()
    }

    /// Tells the cache, if there is one, what the engine has shown: a record, or how things are now. Reads from
    /// memory must not go back behind that.
    pub(crate) async fn shown(&self, record: Option<Revision>) -> Result<(), Error> {
        let Some(cache) = self.cache().filter(|cache| cache.is_alive()) else { return Ok(()) };
        let newest = match record {
            Some(revision) => revision,
            None => self.engine().bucket(&self.name).await?.last_revision,
        };
        cache.knows_of(newest);
        Ok(())
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        self.store.engine()
    }
}
