use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pleach_engine::{BatchPart, Revision, WatchEvent};

use super::{Codecs, TypedEntry, TypedRecord};
use crate::{Bucket, Error, Scan, Watch};

/// The decoded entries of a bucket in the order of their stored keys, all from one snapshot.
///
/// An entry that cannot be decoded is an error in its place; the scan goes on after it.
pub struct TypedScan<K: ToOwned + ?Sized, V> {
    scan: Scan,
    bucket: Bucket,
    codecs: Codecs<K, V>,
}

impl<K: ToOwned + ?Sized, V> TypedScan<K, V> {
    pub(crate) fn new(scan: Scan, bucket: Bucket, codecs: Codecs<K, V>) -> Self {
        Self { scan, bucket, codecs }
    }

    /// See [`Scan::next`].
    ///
    /// # Errors
    /// Those of [`Scan::next`] and of the codecs.
    pub async fn next(&mut self) -> Result<Option<TypedEntry<K::Owned, V>>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// See [`Scan::collect`].
    ///
    /// # Errors
    /// Those of [`Scan::next`] and of the codecs: one entry that cannot be decoded is enough.
    pub async fn collect(mut self) -> Result<Vec<TypedEntry<K::Owned, V>>, Error> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl<K: ToOwned + ?Sized, V> Stream for TypedScan<K, V> {
    type Item = Result<TypedEntry<K::Owned, V>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let entry = ready!(Pin::new(&mut self.scan).poll_next(context));
        let decode = |entry| self.codecs.decode(&self.bucket, entry);
        Poll::Ready(entry.map(|entry| entry.and_then(decode)))
    }
}

impl<K: ToOwned + ?Sized, V> fmt::Debug for TypedScan<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedScan").field("scan", &self.scan).finish_non_exhaustive()
    }
}

/// What a typed watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedEvent<K, V> {
    /// A record; a marker has no value.
    Change {
        /// The record.
        entry: TypedRecord<K, V>,
        /// Its place in its batch.
        batch: BatchPart,
    },
    /// What was there when the watch began has been delivered, as of this revision.
    InitialDone {
        /// The snapshot the initial values were read from.
        revision: Revision,
    },
}

/// The decoded changes of a bucket as they are committed.
///
/// A change that cannot be decoded is an error in its place; the watch goes on after it.
pub struct TypedWatch<K: ToOwned + ?Sized, V> {
    watch: Watch,
    bucket: Bucket,
    codecs: Codecs<K, V>,
}

impl<K: ToOwned + ?Sized, V> TypedWatch<K, V> {
    pub(crate) fn new(watch: Watch, bucket: Bucket, codecs: Codecs<K, V>) -> Self {
        Self { watch, bucket, codecs }
    }

    /// See [`Watch::next`].
    ///
    /// # Errors
    /// Those of [`Watch::next`] and of the codecs.
    pub async fn next(&mut self) -> Result<Option<TypedEvent<K::Owned, V>>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    fn decode(&self, event: WatchEvent) -> Result<TypedEvent<K::Owned, V>, Error> {
        match event {
            WatchEvent::InitialDone { revision } => Ok(TypedEvent::InitialDone { revision }),
            WatchEvent::Change(change) => {
                let entry = self.codecs.decode_record(&self.bucket, change.entry)?;
                Ok(TypedEvent::Change { entry, batch: change.batch })
            }
        }
    }
}

impl<K: ToOwned + ?Sized, V> Stream for TypedWatch<K, V> {
    type Item = Result<TypedEvent<K::Owned, V>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.watch).poll_next(context));
        Poll::Ready(event.map(|event| event.and_then(|event| self.decode(event))))
    }
}

impl<K: ToOwned + ?Sized, V> fmt::Debug for TypedWatch<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedWatch").field("watch", &self.watch).finish_non_exhaustive()
    }
}
