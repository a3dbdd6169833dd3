use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use tokio::sync::watch;

use pleach_engine::{Change, EngineError};

use crate::bucket::Bucket;
use crate::config;
use crate::connection::Link;
use crate::engine::Shared;
use crate::feed::{End, Feed};
use crate::record::Record;
use crate::runtime::pause;

/// How often to ask whether something was missed, if the server repeats every change by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The same, for a bucket of which only writers' own messages can be heard.
const LOOK_OFTEN: Duration = Duration::from_millis(200);

/// How long a stream may be behind what it has repeated.
const SET_BACK_MAX: Duration = Duration::from_secs(5);

/// Messages handled at once.
const MESSAGES_AT_ONCE: usize = 512;

/// Following the changes of buckets.
///
/// The stream of a bucket that Pleach made repeats every message it stores, with its revision, from when it was first followed on. A revision that is not the
/// next one means that something did not arrive, and that is then read from the stream. So that the last change
/// is not missed either, the stream is asked every now and then how far it is, and after every reconnect. Other buckets
/// only have the messages of their writers to go by: each is a hint to look.
impl Shared {
    /// The feed of a bucket, which begins when the first who wants it comes.
    pub(crate) async fn feed(self: &Arc<Self>, bucket: &Arc<Bucket>) -> Result<Arc<Feed>, EngineError> {
        let mut running = bucket.feed.lock().await;
        if let Some(feed) = running.upgrade().filter(|feed| !feed.has_ended()) {
            return Ok(feed);
        }
        self.have_repeated(bucket).await?;
        let (settings, asked_on) = (bucket.settings(), self.link.borrow().times);
        let subject =
            if settings.is_repeated { bucket.names.all_repeated() } else { bucket.names.all_subjects() };
        let unreachable = |reason: String| EngineError::Unreachable { reason };
        let client = &self.api.client;
        let subscriber = client.subscribe(subject).await.map_err(|error| unreachable(error.to_string()))?;
        client.flush().await.map_err(|error| unreachable(error.to_string()))?;
        // Everything after this revision comes by the subscription, or is found missing.
        let (looked, last) = self.look(&bucket.name).await?;
        if looked.identity != bucket.identity {
            return Err(EngineError::BucketNotFound { bucket: bucket.name.clone() });
        }
        let feed = Arc::new(Feed::new(
            bucket.name.clone(),
            last + 1,
            Arc::clone(&self.clock),
            self.link.clone(),
            asked_on,
        ));
        let follower = Follower {
            shared: Arc::downgrade(self),
            feed: Arc::downgrade(&feed),
            bucket: Arc::clone(bucket),
            link: self.link.clone(),
            is_repeated: settings.is_repeated,
            set_back: None,
            last: 0,
        };
        feed.fed_by(self.handle.spawn(follower.run(subscriber)).abort_handle());
        *running = Arc::downgrade(&feed);
        *bucket.running.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&feed);
        if self.is_closed() {
            return Err(EngineError::Closed);
        }
        Ok(feed)
    }

    /// Has the stream of a bucket that Pleach made repeat its changes from now on.
    async fn have_repeated(&self, bucket: &Bucket) -> Result<(), EngineError> {
        let settings = bucket.settings();
        let is_ours = settings.is_described && !settings.is_mirror;
        if settings.is_repeated || !is_ours || bucket.is_left_alone.load(Ordering::Acquire) {
            return Ok(());
        }
        let change = |stream: &mut Map<String, Value>| config::repeat(stream, &bucket.names);
        match self.change_stream(&bucket.name, &bucket.names, change).await {
            // Whoever may only read goes by the messages of writers.
            Err(EngineError::Refused { .. } | EngineError::Denied { .. }) => {
                bucket.is_left_alone.store(true, Ordering::Release);
            }
            changed => drop(changed?),
        }
        Ok(())
    }
}

/// Fills a feed from the server.
struct Follower {
    shared: Weak<Shared>,
    feed: Weak<Feed>,
    bucket: Arc<Bucket>,
    link: watch::Receiver<Link>,
    is_repeated: bool,
    /// Since when the stream is behind what it has repeated, if it is.
    set_back: Option<Duration>,
    /// The newest revision when the stream was asked last.
    last: u64,
}

impl Follower {
    async fn run(mut self, subscriber: Subscriber) {
        let mut messages = subscriber.ready_chunks(MESSAGES_AT_ONCE);
        self.link.mark_unchanged();
        let every = if self.is_repeated { LOOK_EVERY } else { LOOK_OFTEN };
        loop {
            let Some(feed) = self.feed.upgrade() else { return };
            let nudged = feed.nudge.notified();
            let came = tokio::select! {
                came = messages.next() => match came {
                    Some(came) => Some(came),
                    None => return feed.end(End::Closed),
                },
                () = nudged => None,
                _ = self.link.changed() => None,
                () = pause(every) => None,
            };
            let Some(shared) = self.shared.upgrade() else { return };
            let done = match came {
                Some(came) if self.is_repeated => self.take(&shared, &feed, came).await,
                _ => self.look(&shared, &feed).await,
            };
            match done {
                Ok(()) => {}
                Err(EngineError::BucketNotFound { .. }) => return feed.end(End::Gone),
                Err(EngineError::Closed) => return feed.end(End::Closed),
                // Whoever needs to know that nothing was missed waits until the servers answer again.
                Err(_) => {
                    feed.nudge.notify_one();
                    drop((shared, feed));
                    pause(LOOK_OFTEN).await;
                }
            }
        }
    }

    /// Takes repeated messages, and reads what is missing between them.
    async fn take(
        &self,
        shared: &Arc<Shared>,
        feed: &Feed,
        messages: Vec<Message>,
    ) -> Result<(), EngineError> {
        let mut changes: Vec<Change> = Vec::with_capacity(messages.len());
        let mut next = feed.next();
        for message in messages {
            // A message without what the server adds to those it repeats is somebody's who should not be there.
            let Ok(record) = Record::from_message(message) else { continue };
            let sequence = record.sequence;
            if sequence < next {
                continue;
            }
            if sequence > next {
                self.bucket.see(next - 1);
                feed.push(std::mem::take(&mut changes), next);
                self.fill(shared, feed, sequence - 1).await?;
            }
            changes.extend(record.into_listed(&self.bucket.names));
            next = sequence + 1;
        }
        // Whoever is told of a change reads it or a newer one, also from a server that is behind.
        self.bucket.see(next - 1);
        feed.push(changes, next);
        Ok(())
    }

    /// Asks how far the stream is, and reads what has not come.
    async fn look(&mut self, shared: &Arc<Shared>, feed: &Feed) -> Result<(), EngineError> {
        let asked_on = self.link.borrow().times;
        let (looked, last) = shared.look(&self.bucket.name).await?;
        if looked.identity != self.bucket.identity {
            return Err(EngineError::BucketNotFound { bucket: self.bucket.name.clone() });
        }
        if last >= feed.next() {
            self.fill(shared, feed, last).await?;
        }
        // A server that no longer leads may be behind for a moment. One that stays behind has lost what it acknowledged.
        let now = shared.clock.elapsed();
        self.set_back = (last + 1 < feed.next()).then(|| self.set_back.unwrap_or(now));
        if self.set_back.is_some_and(|since| now.saturating_sub(since) > SET_BACK_MAX) {
            shared.forget_because(&self.bucket.name, End::SetBack(last + 1));
            feed.end(End::SetBack(last + 1));
            return Ok(());
        }
        // A batch is stored at once: one whose rest is not there by now, as of messages that someone copied, has none.
        if std::mem::replace(&mut self.last, last) == last && last < feed.next() {
            feed.show_all();
        }
        feed.hear(asked_on, (last, looked.messages.load(Ordering::Acquire)));
        Ok(())
    }

    /// Reads what is missing up to and with `up_to`. What is no longer there is lost to those who follow.
    async fn fill(&self, shared: &Arc<Shared>, feed: &Feed, up_to: u64) -> Result<(), EngineError> {
        let mut from = Some(feed.next());
        while let Some(first) = from {
            let (records, rest) = shared.read_some(&self.bucket, first, up_to).await?;
            let next = rest.unwrap_or(up_to + 1);
            let is_whole = records.iter().map(|record| record.sequence).eq(first..next);
            // Of other buckets nobody knows more than what is kept.
            if !is_whole && self.is_repeated {
                self.bucket.see(up_to);
                feed.lose(up_to + 1);
                return Ok(());
            }
            let changes = records.into_iter().filter_map(|record| record.into_listed(&self.bucket.names));
            let changes: Vec<Change> = changes.collect();
            self.bucket.see(next - 1);
            feed.push(changes, next);
            from = rest;
        }
        if !self.is_repeated {
            feed.show_all();
        }
        Ok(())
    }
}
