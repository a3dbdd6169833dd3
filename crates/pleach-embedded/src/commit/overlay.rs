use std::collections::{HashMap, VecDeque};

use pleach_engine::{Key, Revision};

use crate::core::Newest;
use crate::log::BucketId;

/// The newest records that are in the log, or about to be, but not yet in the index: what expectations are
/// checked against before the index.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    newest: HashMap<(BucketId, Key), Newest>,
    /// Which keys each commit touched, oldest first.
    order: VecDeque<(Revision, BucketId, Key)>,
    /// What the current group replaced, to be put back if it cannot be written.
    replaced: Vec<(BucketId, Key, Option<Newest>)>,
}

impl Overlay {
    pub(crate) fn get(&self, bucket: BucketId, key: &Key) -> Option<Newest> {
        // The key is cloned to look it up: a counter goes up, nothing is copied.
        self.newest.get(&(bucket, key.clone())).copied()
    }

    pub(crate) fn insert(&mut self, bucket: BucketId, key: &Key, newest: Newest) {
        let before = self.newest.insert((bucket, key.clone()), newest);
        self.replaced.push((bucket, key.clone(), before));
        self.order.push_back((newest.revision, bucket, key.clone()));
    }

    /// The current group was written.
    pub(crate) fn keep(&mut self) {
        self.replaced.clear();
    }

    /// The current group was not written.
    pub(crate) fn roll_back(&mut self) {
        while let Some((bucket, key, before)) = self.replaced.pop() {
            self.order.pop_back();
            match before {
                Some(before) => self.newest.insert((bucket, key), before),
                None => self.newest.remove(&(bucket, key)),
            };
        }
    }

    /// Forgets what the index has by now.
    pub(crate) fn forget_up_to(&mut self, applied: Revision) {
        while self.order.front().is_some_and(|(revision, _, _)| *revision <= applied) {
            let Some((revision, bucket, key)) = self.order.pop_front() else { return };
            let entry = (bucket, key);
            if self.newest.get(&entry).is_some_and(|newest| newest.revision == revision) {
                self.newest.remove(&entry);
            }
        }
    }
}
