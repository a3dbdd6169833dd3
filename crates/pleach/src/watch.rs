use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pleach_engine::{Change, WatchEvent, WatchStream};

use crate::Error;
use crate::cache::Cache;

/// The changes of a bucket as they are committed: in order, each exactly once.
///
/// It is a [`Stream`]; [`Watch::next`] needs no other crate. After an error it ends; dropping it frees
/// everything it holds. It buffers nothing itself: a watcher that is too slow is told so by the engine. Nor does
/// it keep its store open: keep a handle for as long as you watch.
pub struct Watch {
    /// None once it has ended: an engine's stream need not be asked again then.
    stream: Option<WatchStream>,
    /// Of the bucket that is watched, if it has one: what was delivered can be read from then on.
    cache: Option<Weak<Cache>>,
}

impl Watch {
    pub(crate) fn new(stream: WatchStream) -> Self {
        Self { stream: Some(stream), cache: None }
    }

    /// The same watch, which tells `cache` what it delivers but does not keep it alive.
    pub(crate) fn shown_to(self, cache: &Arc<Cache>) -> Self {
        Self { cache: Some(Arc::downgrade(cache)), ..self }
    }

    /// Waits for the next event. None means that the watch has ended, which it does only after an error.
    ///
    /// # Errors
    /// `Compacted` if changes it has not delivered are no longer kept, `BucketNotFound` if the bucket was
    /// deleted, `Closed`, or what the engine could not do.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Waits for the next change, and passes over the mark that all initial values have been delivered.
    ///
    /// # Errors
    /// Those of [`Watch::next`].
    pub async fn next_change(&mut self) -> Result<Option<Change>, Error> {
        while let Some(event) = self.next().await? {
            if let WatchEvent::Change(change) = event {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }
}

impl Stream for Watch {
    type Item = Result<WatchEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let event = ready!(stream.as_mut().poll_next(context));
        if !matches!(event, Some(Ok(_))) {
            self.stream = None;
        }
        if let Some(Ok(WatchEvent::Change(change))) = &event
            && let Some(cache) = self.cache.as_ref().and_then(Weak::upgrade)
        {
            cache.knows_of(change.entry.revision);
        }
        Poll::Ready(event.map(|event| event.map_err(Error::from)))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
