use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::sync::Notify;

use super::case::told;
use crate::{Change, EngineError, Entry, Revision, WatchEvent, WatchStream};

/// How long an event that must come may take.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);

/// An open watch that expects its events to come soon.
pub(super) struct Watching {
    events: WatchStream,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watching")
    }
}

impl Watching {
    pub(super) fn new(events: WatchStream) -> Self {
        Self { events }
    }

    /// What comes next: none if the watch has ended.
    #[allow(clippy::disallowed_methods, reason = "a time-out of the suite, whatever clock the engine has")]
    pub(super) async fn item(&mut self) -> Option<Result<WatchEvent, EngineError>> {
        // The time-out is looked at first, so that an event nobody was woken for comes too late.
        let late = pin!(tokio::time::sleep(EVENT_TIMEOUT));
        match select(late, self.events.next()).await {
            Either::Left(_) => panic!("no event came within {EVENT_TIMEOUT:?}"),
            Either::Right((item, _)) => item,
        }
    }

    /// What comes next, and only comes because of `cause`: whoever waits for it is woken.
    pub(super) async fn woken_by(
        &mut self,
        cause: impl Future<Output = ()>,
    ) -> Option<Result<WatchEvent, EngineError>> {
        let bell = Arc::new(Bell(Notify::new()));
        let waker = Waker::from(Arc::clone(&bell));
        let mut context = Context::from_waker(&waker);
        let early = self.events.poll_next_unpin(&mut context);
        assert!(early.is_pending(), "nothing has happened yet, but this came: {early:?}");
        cause.await;
        loop {
            let rung = tokio::time::timeout(EVENT_TIMEOUT, bell.0.notified()).await;
            assert!(rung.is_ok(), "the waiting watch was not woken within {EVENT_TIMEOUT:?}");
            if let Poll::Ready(item) = self.events.poll_next_unpin(&mut context) {
                return item;
            }
        }
    }

    pub(super) async fn change(&mut self) -> Change {
        match self.item().await {
            Some(Ok(WatchEvent::Change(change))) => change,
            other => panic!("expected a change, got {other:?}"),
        }
    }

    pub(super) async fn entry(&mut self) -> Entry {
        self.change().await.entry
    }

    /// The next change, as in [`told`].
    pub(super) async fn next(&mut self) -> String {
        told(&self.entry().await)
    }

    /// The next `count` changes, as in [`told`].
    pub(super) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut seen = Vec::new();
        for _ in 0..count {
            seen.push(self.next().await);
        }
        seen
    }

    /// What was there when the watch began, and as of when.
    pub(super) async fn initial(&mut self) -> (Vec<Entry>, Revision) {
        let mut entries = Vec::new();
        loop {
            match self.item().await {
                Some(Ok(WatchEvent::Change(change))) => entries.push(change.entry),
                Some(Ok(WatchEvent::InitialDone { revision })) => return (entries, revision),
                other => panic!("expected the initial values, got {other:?}"),
            }
        }
    }

    /// Initial values as in [`told`], sorted, since their order is not promised.
    pub(super) async fn initial_sorted(&mut self) -> Vec<String> {
        let mut seen: Vec<String> = self.initial().await.0.iter().map(told).collect();
        seen.sort();
        seen
    }

    /// All changes up to and with the one of `last`.
    pub(super) async fn until(&mut self, last: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|seen| seen != last) {
            seen.push(self.next().await);
        }
        seen
    }

    /// The error that the watch must end with.
    pub(super) async fn end(&mut self) -> EngineError {
        let Some(Err(error)) = self.item().await else { panic!("expected the watch to end with an error") };
        assert!(self.item().await.is_none(), "nothing follows an error");
        error
    }
}

/// A waker that can be waited for.
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}
