use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::Stream;
use futures_core::future::BoxFuture;
use pleach_engine::{Entry, Key, PAGE_ENTRIES_MAX, Page, PageToken, Revision, ScanQuery};

use crate::{Bucket, Error, ScanOptions};

/// How many entries a scan reads at a time.
const SCAN_PAGE_ENTRIES: usize = 500;

/// How many keys a scan reads at a time if that is all it reads.
const SCAN_PAGE_KEYS: usize = 5_000;

const _: () = assert!(SCAN_PAGE_ENTRIES <= PAGE_ENTRIES_MAX && SCAN_PAGE_KEYS <= PAGE_ENTRIES_MAX);

/// The entries of a bucket in key order, all from one snapshot. Pages are read as entries are asked for.
///
/// It is a [`Stream`]; [`Scan::next`] needs no other crate. After an error it ends.
pub struct Scan {
    /// The entries of the page being handed out.
    entries: vec::IntoIter<Entry>,
    revision: Option<Revision>,
    /// How many entries may still be yielded.
    left: usize,
    pages: Pages,
}

/// What comes after the page being handed out.
enum Pages {
    Next(Bucket, ScanQuery),
    Reading(BoxFuture<'static, (Result<Page, Error>, Bucket, ScanQuery)>),
    Done,
}

impl Scan {
    pub(crate) fn new(bucket: Bucket, options: ScanOptions) -> Self {
        let ScanOptions { selection, direction, limit, keys_only } = options;
        let limit_page = if keys_only { SCAN_PAGE_KEYS } else { SCAN_PAGE_ENTRIES };
        let left = limit.unwrap_or(usize::MAX);
        let query = ScanQuery { selection, direction, limit: limit_page, keys_only, page: None };
        Self { entries: Vec::new().into_iter(), revision: None, left, pages: Pages::Next(bucket, query) }
    }

    /// The scan of entries that are already here.
    pub(crate) fn of(entries: Vec<Entry>, revision: Revision) -> Self {
        let left = entries.len();
        Self { entries: entries.into_iter(), revision: Some(revision), left, pages: Pages::Done }
    }

    /// Returns the next entry, or none if that was all.
    ///
    /// # Errors
    /// `Compacted` if so much time has passed since the last page that the snapshot is gone, or what the
    /// engine could not do.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Reads what is left into memory.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub async fn collect(mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await? {
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The snapshot that is read, known once the first entry or the end was returned.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    fn begin(&mut self, bucket: Bucket, mut query: ScanQuery) {
        query.limit = query.limit.min(self.left);
        self.pages = Pages::Reading(Box::pin(async move {
            let page = bucket.scan_page(query.clone()).await;
            (page, bucket, query)
        }));
    }

    fn take(&mut self, page: Page, bucket: Bucket, mut query: ScanQuery) {
        let Page { entries, revision, next } = page;
        self.entries = entries.into_iter();
        self.revision = Some(revision);
        self.pages = match next {
            Some(token) => {
                query.page = Some::<PageToken>(token);
                Pages::Next(bucket, query)
            }
            None => Pages::Done,
        };
    }
}

impl Stream for Scan {
    type Item = Result<Entry, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let scan = &mut *self;
        loop {
            if scan.left == 0 {
                scan.pages = Pages::Done;
                return Poll::Ready(None);
            }
            if let Some(entry) = scan.entries.next() {
                scan.left -= 1;
                return Poll::Ready(Some(Ok(entry)));
            }
            match std::mem::replace(&mut scan.pages, Pages::Done) {
                Pages::Done => return Poll::Ready(None),
                Pages::Next(bucket, query) => scan.begin(bucket, query),
                Pages::Reading(mut page) => {
                    let Poll::Ready((page, bucket, query)) = page.as_mut().poll(context) else {
                        scan.pages = Pages::Reading(page);
                        return Poll::Pending;
                    };
                    match page {
                        Ok(page) => scan.take(page, bucket, query),
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// The keys of a bucket in order, all from one snapshot.
///
/// It is a [`Stream`]; [`Keys::next`] needs no other crate. After an error it ends.
#[derive(Debug)]
pub struct Keys {
    scan: Scan,
}

impl Keys {
    pub(crate) fn new(scan: Scan) -> Self {
        Self { scan }
    }

    /// Returns the next key, or none if that was all.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub async fn next(&mut self) -> Result<Option<Key>, Error> {
        Ok(self.scan.next().await?.map(|entry| entry.key))
    }

    /// Reads what is left into memory.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub async fn collect(mut self) -> Result<Vec<Key>, Error> {
        let mut keys = Vec::new();
        while let Some(key) = self.next().await? {
            keys.push(key);
        }
        Ok(keys)
    }
}

impl Stream for Keys {
    type Item = Result<Key, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let entry = ready!(Pin::new(&mut self.scan).poll_next(context));
        Poll::Ready(entry.map(|entry| entry.map(|entry| entry.key)))
    }
}
