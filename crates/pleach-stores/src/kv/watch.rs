use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pleach_contract::key::Value;
use pleach_engine::{
    BatchPart, Change, Key, Op, Revision, Timestamp, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::KvError;
use super::keyspace::Keyspace;
use super::read::Read;

/// What to watch of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct KvWatchOptions<'v> {
    /// The values of segments that keys must have, by name of the segment; by default none.
    pub given: Vec<(&'v str, Value<'v>)>,
    /// Where to begin.
    pub start: WatchStart,
}

/// What a typed watch delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum KvEvent<T> {
    /// A value was written. Values of older versions are delivered as they are stored.
    Value {
        /// The entry.
        read: Read<T>,
        /// Its place in its batch.
        batch: BatchPart,
    },
    /// A value is gone.
    Gone {
        /// The key.
        key: Key,
        /// How it went.
        op: Op,
        /// The revision of the marker.
        revision: Revision,
        /// When.
        time: Timestamp,
        /// The marker's place in its batch.
        batch: BatchPart,
    },
    /// What was there when the watch began has been delivered, as of this revision.
    InitialDone {
        /// The snapshot the initial values were read from.
        revision: Revision,
    },
}

/// The changes of a keyspace as they are committed.
///
/// A value that is not what the contract says is an error in its place, and the watch goes on after it. An error of the
/// engine ends it.
pub struct KvWatch<T> {
    /// None once it has ended.
    stream: Option<WatchStream>,
    keyspace: Keyspace<T>,
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// Watches the keyspace from now on.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn watch(&self) -> Result<KvWatch<T>, KvError> {
        self.watch_with(KvWatchOptions::default()).await
    }

    /// [`Keyspace::watch`], with options.
    ///
    /// # Errors
    /// What is wrong with a value that was given, or what the engine could not do.
    pub async fn watch_with(&self, options: KvWatchOptions<'_>) -> Result<KvWatch<T>, KvError> {
        let wrong = |source| KvError::Key { keyspace: self.name().to_owned(), source };
        let filters = match self.compiled().grammar() {
            Some(grammar) => {
                let names: Vec<&str> = grammar.named().filter_map(|segment| segment.name()).collect();
                if let Some((unknown, _)) = options.given.iter().find(|(name, _)| !names.contains(name)) {
                    return Err(KvError::UnknownSegment {
                        keyspace: self.name().to_owned(),
                        segment: (*unknown).to_owned(),
                        known: names.into_iter().map(str::to_owned).collect(),
                    });
                }
                let value_of = |name: &&str| {
                    options.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone())
                };
                let values: Vec<Option<Value<'_>>> = names.iter().map(value_of).collect();
                grammar.filters(&values).map_err(|problem| wrong(problem.into()))?
            }
            None => Vec::new(),
        };
        let query = WatchQuery { filters, start: options.start };
        let stream = self.resource.engine().watch(self.resource.bucket(), query).await?;
        Ok(KvWatch { stream: Some(stream), keyspace: self.clone() })
    }
}

impl<T: Serialize + DeserializeOwned> KvWatch<T> {
    /// Waits for the next event. None means that the watch has ended, which it does only after an error of the engine.
    ///
    /// # Errors
    /// What is wrong with a value, or what ended the watch.
    pub async fn next(&mut self) -> Result<Option<KvEvent<T>>, KvError> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// None for a change of another keyspace.
    fn event(&self, event: WatchEvent) -> Option<Result<KvEvent<T>, KvError>> {
        let Change { entry, batch } = match event {
            WatchEvent::Change(change) => change,
            WatchEvent::InitialDone { revision } => return Some(Ok(KvEvent::InitialDone { revision })),
        };
        if !self.keyspace.has(&entry.key) {
            return None;
        }
        if entry.op.is_put() {
            let read = self.keyspace.resource.decode(self.keyspace.index, entry);
            return Some(read.map(|read| KvEvent::Value { read, batch }));
        }
        let (key, op, revision, time) = (entry.key, entry.op, entry.revision, entry.time);
        Some(Ok(KvEvent::Gone { key, op, revision, time, batch }))
    }
}

impl<T: Serialize + DeserializeOwned> Stream for KvWatch<T> {
    type Item = Result<KvEvent<T>, KvError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
            match ready!(stream.as_mut().poll_next(context)) {
                Some(Ok(event)) => {
                    if let Some(event) = self.event(event) {
                        return Poll::Ready(Some(event));
                    }
                }
                ended => {
                    self.stream = None;
                    return Poll::Ready(ended.and_then(Result::err).map(|error| Err(error.into())));
                }
            }
        }
    }
}

impl<T> fmt::Debug for KvWatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvWatch").field("keyspace", &self.keyspace).finish_non_exhaustive()
    }
}
