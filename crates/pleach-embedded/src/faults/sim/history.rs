use std::sync::Arc;
use std::time::Duration;

use pleach_engine::{
    BucketName, Clock, Engine, EngineError, Entry, PAGE_LEASE, Revision, WatchQuery, WatchStart, WatchStream,
};

use super::readers::{HELD_MAX, patiently, read_initial};
use super::run::Run;

/// A watch that begins with every kept record, and of which nobody has read anything: whatever is written and
/// cleaned meanwhile, it shows what was there when it began.
pub(super) struct HeldHistory {
    bucket: BucketName,
    created_at: Revision,
    stream: WatchStream,
    expected: Vec<Entry>,
    leased_at: Duration,
    /// How much the cleaner had read by then.
    cleaned: u64,
}

impl Run {
    pub(super) fn watch_history(&mut self) {
        let name = self.any_bucket();
        let Some(bucket) = self.truth.state.buckets.get(&name) else { return };
        let created_at = bucket.created_at;
        let expected = bucket.records.keys().flat_map(|key| bucket.history(key)).collect();
        let query = WatchQuery { start: WatchStart::History, ..WatchQuery::default() };
        let stream = patiently(Arc::clone(&self.stage().engine).watch(&name, query)).expect("a watch");
        let (leased_at, cleaned) = (self.machine.clock.elapsed(), self.stage().core.cleaned.bytes().0);
        let held = HeldHistory { bucket: name, created_at, stream, expected, leased_at, cleaned };
        self.histories.push(held);
        if self.histories.len() > HELD_MAX {
            self.histories.remove(0);
        }
    }

    pub(super) fn next_history(&mut self) {
        if self.histories.is_empty() {
            return self.watch_history();
        }
        let place = self.dice.below(self.histories.len());
        let mut held = self.histories.swap_remove(place);
        let present = self.truth.state.buckets.get(&held.bucket);
        let deleted = present.is_none_or(|bucket| bucket.created_at != held.created_at);
        // What expires when follows from the configuration, which may have changed.
        let plain = |entries: Vec<Entry>| -> Vec<Entry> {
            entries.into_iter().map(|entry| Entry { expires: None, ..entry }).collect()
        };
        match read_initial(&mut held.stream) {
            Ok(found) => {
                let expected = plain(held.expected);
                assert_eq!(plain(found), expected, "the history of {} as it was", held.bucket);
                self.saw("history held");
                if self.stage().core.cleaned.bytes().0 > held.cleaned {
                    self.saw("history of cleaned segments");
                }
            }
            Err(EngineError::BucketNotFound { .. }) if deleted => {}
            Err(EngineError::Compacted { .. }) => {
                let leased = self.machine.clock.elapsed() < held.leased_at + PAGE_LEASE;
                assert!(!leased, "a snapshot was given up before its time");
            }
            Err(error) => assert!(self.excuses(&error), "the history of {}: {error}", held.bucket),
        }
    }
}
