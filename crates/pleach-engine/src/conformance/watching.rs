use std::time::Duration;

use futures_util::StreamExt;

use super::case::told;
use crate::{Change, EngineError, Entry, Revision, WatchEvent, WatchStream};

/// How long an event that must come may take.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

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
    pub(super) async fn item(&mut self) -> Option<Result<WatchEvent, EngineError>> {
        let item = tokio::time::timeout(EVENT_TIMEOUT, self.events.next()).await;
        item.unwrap_or_else(|_| panic!("no event came within {EVENT_TIMEOUT:?}"))
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
