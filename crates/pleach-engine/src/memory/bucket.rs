use std::collections::BTreeMap;

use super::feed::Feed;
use crate::{
    At, BucketConfig, BucketInfo, BucketName, Change, Conflict, ConsumerInfo, ConsumerName, Demand,
    Direction, EngineError, Entry, Key, Op, Revision, Selection, Timestamp,
};

/// A bucket: the kept records of every key, oldest first, the feed of its changes, and places in it.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) name: BucketName,
    pub(super) config: BucketConfig,
    pub(super) created: Timestamp,
    /// The revision at which it was created, which tells it from its namesakes.
    pub(super) id: Revision,
    pub(super) last_revision: Revision,
    pub(super) records: BTreeMap<Key, Vec<Entry>>,
    pub(super) feed: Feed,
    pub(super) consumers: BTreeMap<ConsumerName, ConsumerInfo>,
}

impl Bucket {
    pub(super) fn new(name: BucketName, config: BucketConfig, created: Timestamp, id: Revision) -> Self {
        let (records, feed, consumers) = (BTreeMap::new(), Feed::new(id), BTreeMap::new());
        Self { name, config, created, id, last_revision: id, records, feed, consumers }
    }

    pub(super) fn info(&self, watches: usize) -> BucketInfo {
        BucketInfo {
            name: self.name.clone(),
            config: self.config.clone(),
            created: self.created,
            last_revision: self.last_revision,
            feed_floor: self.feed.floor(),
            watches,
        }
    }

    pub(super) fn newest(&self, key: &Key) -> Option<&Entry> {
        self.records.get(key)?.last()
    }

    /// The moment at which the value of `key` is gone, if it has one that ever is.
    pub(super) fn expiry(&self, key: &Key) -> Option<Timestamp> {
        let newest = self.newest(key).filter(|newest| newest.op.is_put())?;
        self.config.expiry(newest.time, newest.expires)
    }

    /// Adds a record, and drops those that are no longer kept.
    pub(super) fn append(&mut self, change: Change) {
        let entry = change.entry.clone();
        self.last_revision = entry.revision;
        let records = self.records.entry(entry.key.clone()).or_default();
        if entry.op == Op::Purge {
            records.clear();
        }
        records.push(entry);
        keep_newest(records, self.config.history.get());
        self.feed.push(change);
    }

    /// Takes another configuration; a shorter history is cut at once.
    pub(super) fn configure(&mut self, config: BucketConfig) {
        for records in self.records.values_mut() {
            keep_newest(records, config.history.get());
        }
        self.config = config;
    }

    /// Says whether `key` has records at all.
    pub(super) fn compact(&mut self, key: &Key, keep: u8) -> bool {
        self.records.get_mut(key).map(|records| keep_newest(records, keep)).is_some()
    }

    /// Whether what an operation or a check demands of its key is true.
    pub(super) fn judge(&self, demand: Demand<'_>, now: Timestamp) -> Result<(), Conflict> {
        let newest = self.newest(demand.key);
        let newest = newest.filter(|newest| !newest.op.is_put() || self.config.is_live(newest, now));
        demand.judge(&self.name, newest.map(|newest| (newest.revision, newest.op)))
    }

    pub(super) fn read(&self, key: &Key, at: At, now: Timestamp) -> Result<Option<Entry>, EngineError> {
        let Some(records) = self.records.get(key) else { return Ok(None) };
        let found = match at {
            At::Latest => records.last(),
            At::Revision(revision) => {
                let found = records.iter().rev().find(|entry| entry.revision <= revision);
                if let (None, Some(oldest)) = (found, records.first()) {
                    return Err(EngineError::Compacted { oldest: oldest.revision });
                }
                found
            }
        };
        Ok(found.filter(|entry| self.config.is_live(entry, now)).map(|entry| self.shown(entry)))
    }

    pub(super) fn history(&self, key: &Key) -> Vec<Entry> {
        self.records.get(key).into_iter().flatten().map(|entry| self.shown(entry)).collect()
    }

    /// The newest records that are live values, by key.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = &Entry> {
        let newest = self.records.values().filter_map(|records| records.last());
        newest.filter(move |newest| self.config.is_live(newest, now))
    }

    /// The live values of a selection, as callers see them.
    pub(super) fn select(&self, selection: &Selection, direction: Direction, now: Timestamp) -> Vec<Entry> {
        let selected = self.live(now).filter(|entry| selection.contains(&entry.key));
        let mut entries: Vec<Entry> = selected.map(|entry| self.shown(entry)).collect();
        if direction == Direction::Backward {
            entries.reverse();
        }
        entries
    }

    /// A record as callers see it: with the expiry that holds for it now.
    pub(super) fn shown(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        if entry.op.is_put() {
            entry.expires = self.config.expiry(entry.time, entry.expires);
        }
        entry
    }
}

/// Says whether there were more.
fn keep_newest(records: &mut Vec<Entry>, keep: u8) -> bool {
    let surplus = records.len().saturating_sub(usize::from(keep));
    records.drain(..surplus);
    surplus > 0
}
