use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pleach_engine::{
    Change, ConsumerInfo, ConsumerName, ConsumerStart, EngineError, Revision, WatchEvent, WatchStart,
};

use crate::{Bucket, ConsumeOptions, Error, IntoConsumerName, Watch, WatchOptions};

/// The changes of a bucket from a place that the store remembers: a watch that a restart does not lose.
///
/// Whoever has done with a change acknowledges it, and with it every change before. Opened again, by this
/// program or the next, the consumer begins with the first change that is not acknowledged, so each is
/// delivered at least once: what was delivered but not acknowledged comes again. Where a change must not count
/// twice, make that harmless, or use a [`Projection`](crate::Projection).
///
/// Changes of one batch come together, and acknowledging the last of them acknowledges the batch.
/// Acknowledging one inside it is possible, and a restart then begins inside the batch. Changes that did
/// not pass the filters are acknowledged with the next one that did.
///
/// A consumer is one place, not a queue: opened twice at a time, it delivers every change to both.
///
/// It is a [`Stream`]; [`Consumer::next`] needs no other crate. After an error it ends.
///
/// ```
/// # pollster::block_on(async {
/// # let store = pleach::Store::in_memory();
/// let orders = store.create_bucket("orders").await?;
/// orders.put("order.1", "2 apples").await?;
///
/// let mut mails = orders.consume("mails").await?;
/// let change = mails.next().await?.expect("it ends only after an error");
/// // … send a mail about it …
/// mails.ack(&change).await?;
///
/// orders.put("order.2", "a pear").await?;
/// let mut mails = orders.consume("mails").await?; // after a restart, for example
/// assert_eq!(mails.next().await?.unwrap().entry.key.as_str(), "order.2");
/// # Ok::<_, pleach::Error>(()) }).unwrap();
/// ```
pub struct Consumer {
    bucket: Bucket,
    name: ConsumerName,
    watch: Watch,
}

/// A consumer as it is now, and how far it is behind its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerStatus {
    /// What the engine knows of it.
    pub info: ConsumerInfo,
    /// How many changes are not acknowledged, at most: revisions of other buckets may lie between them.
    pub lag: u64,
    /// The oldest change that is kept, if some that it has not acknowledged are not.
    pub missed_before: Option<Revision>,
}

/// Consumers: places in the feed of a bucket that outlive whoever reads there.
impl Bucket {
    /// Opens a consumer where it was left, or creates it at the oldest change that is kept.
    ///
    /// # Errors
    /// [`Error::ConsumerName`] for text that is no name, [`Error::ConsumerBehind`], or what the engine could
    /// not do.
    pub async fn consume(&self, consumer: impl IntoConsumerName) -> Result<Consumer, Error> {
        self.consume_with(consumer, ConsumeOptions::default()).await
    }

    /// [`Bucket::consume`], with options: by filters, and created elsewhere than at the oldest change.
    ///
    /// # Errors
    /// Those of [`Bucket::consume`]; `FutureRevision` or `Compacted` if it cannot be created there.
    pub async fn consume_with(
        &self,
        consumer: impl IntoConsumerName,
        options: ConsumeOptions,
    ) -> Result<Consumer, Error> {
        let ConsumeOptions { start, filters } = options;
        let info = self.engine().create_consumer(self.name(), &consumer.into_consumer_name()?, start).await?;
        let start = WatchStart::Revision(info.next);
        let watch = self.watch_with(WatchOptions { filters, start }).await;
        let watch = watch.map_err(|error| behind(error, self, &info.name))?;
        Ok(Consumer { bucket: self.clone(), name: info.name, watch })
    }

    /// Describes every consumer of the bucket, by name.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn consumers(&self) -> Result<Vec<ConsumerStatus>, Error> {
        // The consumers first: one that moves meanwhile seems nearer to the end than it is, not past it.
        let consumers = self.engine().consumers(self.name()).await?;
        let (newest, floor) = self.ends().await?;
        Ok(consumers.into_iter().map(|info| status(info, newest, floor)).collect())
    }

    /// Describes a consumer.
    ///
    /// # Errors
    /// `ConsumerNotFound`, or what the engine could not do.
    pub async fn consumer(&self, consumer: impl IntoConsumerName) -> Result<ConsumerStatus, Error> {
        let info = self.engine().consumer(self.name(), &consumer.into_consumer_name()?).await?;
        let (newest, floor) = self.ends().await?;
        Ok(status(info, newest, floor))
    }

    /// Moves a consumer, forward or back. One that is open goes on where it was until it is opened again.
    ///
    /// # Errors
    /// `ConsumerNotFound`, `FutureRevision`, `Compacted`, or what the engine could not do.
    pub async fn reset_consumer(
        &self,
        consumer: impl IntoConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerStatus, Error> {
        let name = consumer.into_consumer_name()?;
        let info = self.engine().reset_consumer(self.name(), &name, start).await?;
        let (newest, floor) = self.ends().await?;
        Ok(status(info, newest, floor))
    }

    /// Deletes a consumer: its place is forgotten, and nothing is kept for it any more.
    ///
    /// # Errors
    /// `ConsumerNotFound`, or what the engine could not do.
    pub async fn delete_consumer(&self, consumer: impl IntoConsumerName) -> Result<(), Error> {
        Ok(self.engine().delete_consumer(self.name(), &consumer.into_consumer_name()?).await?)
    }

    /// The newest change of the bucket, and the oldest that is kept.
    async fn ends(&self) -> Result<(Revision, Revision), Error> {
        let info = self.engine().bucket(self.name()).await?;
        Ok((info.last_revision, info.feed_floor))
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &ConsumerName {
        &self.name
    }

    /// Waits for the next change. None means that the consumer has ended, which it does only after an error.
    ///
    /// # Errors
    /// [`Error::ConsumerBehind`] if changes it has not delivered are no longer kept, `BucketNotFound` if the
    /// bucket was deleted, `Closed`, or what the engine could not do.
    pub async fn next(&mut self) -> Result<Option<Change>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Acknowledges a change and every one before it: they are not delivered again. Acknowledging one that is
    /// acknowledged already changes nothing.
    ///
    /// # Errors
    /// `ConsumerNotFound` if it was deleted, or what the engine could not do.
    pub async fn ack(&mut self, change: &Change) -> Result<(), Error> {
        self.ack_up_to(change.entry.revision).await
    }

    /// Acknowledges everything up to and including `revision`.
    ///
    /// # Errors
    /// `FutureRevision`, and those of [`Consumer::ack`].
    pub async fn ack_up_to(&mut self, revision: Revision) -> Result<(), Error> {
        Ok(self.bucket.engine().acknowledge(self.bucket.name(), &self.name, revision).await?)
    }
}

impl Stream for Consumer {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let event = ready!(Pin::new(&mut self.watch).poll_next(context));
            return Poll::Ready(match event {
                Some(Ok(WatchEvent::Change(change))) => Some(Ok(change)),
                // A watch from a revision has no such mark.
                Some(Ok(WatchEvent::InitialDone { .. })) => continue,
                Some(Err(error)) => Some(Err(behind(error, &self.bucket, &self.name))),
                None => None,
            });
        }
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bucket = self.bucket.name();
        f.debug_struct("Consumer").field("bucket", bucket).field("name", &self.name).finish_non_exhaustive()
    }
}

fn status(info: ConsumerInfo, newest: Revision, floor: Revision) -> ConsumerStatus {
    let lag = newest.next().get().saturating_sub(info.next.get());
    let missed_before = (info.next < floor).then_some(floor);
    ConsumerStatus { info, lag, missed_before }
}

/// A consumer whose watch is told `Compacted` has a name for that.
fn behind(error: Error, bucket: &Bucket, consumer: &ConsumerName) -> Error {
    match error {
        Error::Engine(EngineError::Compacted { oldest }) => {
            Error::ConsumerBehind { bucket: bucket.name().clone(), consumer: consumer.clone(), oldest }
        }
        other => other,
    }
}
