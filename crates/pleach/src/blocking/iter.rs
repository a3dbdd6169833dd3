use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_core::Stream;
use pleach_engine::{Change, Clock, ConsumerName, Entry, Key, Revision, SystemClock, WatchEvent};
use pleach_stores::{KvError, KvEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{block_on, give_back_a_wake_up};
use crate::{Error, TypedEntry, TypedEvent};

/// What [`Watch::next_timeout`] has waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited<E> {
    /// An event.
    Event(E),
    /// There was none in that time.
    TimedOut,
    /// There will be none: the watch has ended.
    Ended,
}

macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident of $item:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            stream: crate::$name,
        }

        impl Iterator for $name {
            type Item = Result<$item, Error>;

            fn next(&mut self) -> Option<Self::Item> {
                next(&mut self.stream)
            }
        }

        impl From<crate::$name> for $name {
            fn from(stream: crate::$name) -> Self {
                Self { stream }
            }
        }
    };
}

macro_rules! typed_iterator {
    ($(#[$doc:meta])* $name:ident of $item:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<K: ToOwned + ?Sized, V> {
            stream: crate::$name<K, V>,
        }

        impl<K: ToOwned + ?Sized, V> Iterator for $name<K, V> {
            type Item = Result<$item<K::Owned, V>, Error>;

            fn next(&mut self) -> Option<Self::Item> {
                next(&mut self.stream)
            }
        }

        impl<K: ToOwned + ?Sized, V> From<crate::$name<K, V>> for $name<K, V> {
            fn from(stream: crate::$name<K, V>) -> Self {
                Self { stream }
            }
        }
    };
}

iterator! {
    /// The blocking form of [`Scan`](crate::Scan).
    Scan of Entry
}

iterator! {
    /// The blocking form of [`Keys`](crate::Keys).
    Keys of Key
}

iterator! {
    /// The blocking form of [`Watch`](crate::Watch). The iterator waits for changes, without end.
    Watch of WatchEvent
}

iterator! {
    /// The blocking form of [`Consumer`](crate::Consumer). The iterator waits for changes, without end.
    Consumer of Change
}

typed_iterator! {
    /// The blocking form of [`TypedScan`](crate::TypedScan).
    TypedScan of TypedEntry
}

typed_iterator! {
    /// The blocking form of [`TypedWatch`](crate::TypedWatch). The iterator waits for changes, without end.
    TypedWatch of TypedEvent
}

/// The blocking form of [`KvWatch`](pleach_stores::KvWatch). The iterator waits for changes, without end.
#[derive(Debug)]
pub struct KvWatch<T> {
    stream: pleach_stores::KvWatch<T>,
}

impl<T: Serialize + DeserializeOwned> KvWatch<T> {
    /// Waits for the next event, but no longer than `timeout`.
    ///
    /// # Errors
    /// Those of [`KvWatch::next`](pleach_stores::KvWatch::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Waited<KvEvent<T>>, KvError> {
        next_timeout(&mut self.stream, timeout)
    }
}

impl<T: Serialize + DeserializeOwned> Iterator for KvWatch<T> {
    type Item = Result<KvEvent<T>, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        next(&mut self.stream)
    }
}

impl<T> From<pleach_stores::KvWatch<T>> for KvWatch<T> {
    fn from(stream: pleach_stores::KvWatch<T>) -> Self {
        Self { stream }
    }
}

impl Scan {
    /// See [`Scan::revision`](crate::Scan::revision).
    pub fn revision(&self) -> Option<Revision> {
        self.stream.revision()
    }
}

impl Watch {
    /// Waits for the next event, but no longer than `timeout`.
    ///
    /// # Errors
    /// Those of [`Watch::next`](crate::Watch::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Waited<WatchEvent>, Error> {
        next_timeout(&mut self.stream, timeout)
    }
}

impl Consumer {
    /// See [`Consumer::name`](crate::Consumer::name).
    pub fn name(&self) -> &ConsumerName {
        self.stream.name()
    }

    /// Waits for the next change, but no longer than `timeout`.
    ///
    /// # Errors
    /// Those of [`Consumer::next`](crate::Consumer::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Waited<Change>, Error> {
        next_timeout(&mut self.stream, timeout)
    }

    /// See [`Consumer::ack`](crate::Consumer::ack).
    pub fn ack(&mut self, change: &Change) -> Result<(), Error> {
        block_on(self.stream.ack(change))
    }

    /// See [`Consumer::ack_up_to`](crate::Consumer::ack_up_to).
    pub fn ack_up_to(&mut self, revision: Revision) -> Result<(), Error> {
        block_on(self.stream.ack_up_to(revision))
    }
}

impl<K: ToOwned + ?Sized, V> TypedWatch<K, V> {
    /// Waits for the next event, but no longer than `timeout`.
    ///
    /// # Errors
    /// Those of [`TypedWatch::next`](crate::TypedWatch::next).
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Waited<TypedEvent<K::Owned, V>>, Error> {
        next_timeout(&mut self.stream, timeout)
    }
}

fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    block_on(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
}

fn next_timeout<T, E, S>(stream: &mut S, timeout: Duration) -> Result<Waited<T>, E>
where
    S: Stream<Item = Result<T, E>> + Unpin,
{
    let clock = SystemClock::new();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let waited = loop {
        if let Poll::Ready(event) = Pin::new(&mut *stream).poll_next(&mut context) {
            break event.map_or(Ok(Waited::Ended), |event| event.map(Waited::Event));
        }
        // A thread may be unparked for other reasons, and then waits for the rest.
        let left = timeout.saturating_sub(clock.elapsed());
        if left.is_zero() {
            break Ok(Waited::TimedOut);
        }
        thread::park_timeout(left);
    };
    give_back_a_wake_up();
    waited
}

/// Ends the wait of a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
