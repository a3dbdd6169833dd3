use std::collections::BTreeMap;

use pleach_engine::{
    At, BatchPart, BucketConfig, BucketName, Change, Conflict, ConsumerInfo, ConsumerName, Demand, Direction,
    EngineError, Entry, Expectation, Headers, Key, Op, Revision, Selection, Timestamp,
};

/// Something that is in the log: what the truth is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) first: Revision,
    pub(super) last: Revision,
    pub(super) time: Timestamp,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Records as they were committed: `expires` is each entry's own.
    Commit(BucketName, Vec<Entry>),
    Expire(BucketName, Vec<Key>),
    Compact(BucketName, Key, u8),
    Create(BucketName, BucketConfig),
    Update(BucketName, BucketConfig),
    Delete(BucketName),
    SetConsumer(BucketName, ConsumerInfo),
    DeleteConsumer(BucketName, ConsumerName),
    /// Keys of which nothing but an old marker was left.
    Forget(BucketName, Vec<Key>),
    /// Something about the index that nobody sees. It has no time.
    Upkeep,
}

/// What a store holds once some events have happened, in the most obvious form.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) newest: Revision,
    pub(super) time: Timestamp,
    pub(super) buckets: BTreeMap<BucketName, Bucket>,
    /// Those that were deleted, by the revision at which they were created.
    pub(super) deleted: BTreeMap<Revision, Bucket>,
}

/// A bucket with everything that ever happened in it.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pub(super) name: BucketName,
    pub(super) config: BucketConfig,
    pub(super) created: Timestamp,
    /// Tells it from its namesakes.
    pub(super) created_at: Revision,
    pub(super) last: Revision,
    /// The kept records of each key, oldest first.
    pub(super) records: BTreeMap<Key, Vec<Entry>>,
    pub(super) feed: Vec<Change>,
    pub(super) consumers: BTreeMap<ConsumerName, ConsumerInfo>,
    /// The newest revision at which a key was forgotten.
    forgotten: Revision,
    /// Whether it has had another configuration.
    pub(super) updated: bool,
}

impl State {
    /// What a store holds after `events`.
    pub(super) fn after<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|event| state.apply(event));
        state
    }

    pub(super) fn apply(&mut self, event: &Event) {
        assert_eq!(event.first, self.newest.next(), "revisions have no gap");
        self.newest = event.last;
        if event.what == What::Upkeep {
            return;
        }
        self.time = self.time.max(event.time);
        match &event.what {
            What::Commit(name, records) => {
                let size = u16::try_from(records.len()).expect("a small batch");
                for (entry, index) in records.iter().zip(0..) {
                    self.known(name).add(entry.clone(), BatchPart { index, size });
                }
            }
            What::Expire(name, keys) => {
                for (key, revision) in keys.iter().zip(event.first.get()..) {
                    self.known(name).add(marker(key, Revision::new(revision), event.time), BatchPart::SINGLE);
                }
            }
            What::Compact(name, key, keep) => {
                let records = self.known(name).records.get_mut(key).expect("a key with records");
                keep_newest(records, *keep);
            }
            What::Create(name, config) => {
                let bucket = Bucket {
                    name: name.clone(),
                    config: config.clone(),
                    created: event.time,
                    created_at: event.first,
                    last: event.first,
                    records: BTreeMap::new(),
                    feed: Vec::new(),
                    consumers: BTreeMap::new(),
                    forgotten: Revision::ZERO,
                    updated: false,
                };
                assert!(self.buckets.insert(name.clone(), bucket).is_none(), "{name} is there already");
            }
            What::Update(name, config) => {
                let bucket = self.known(name);
                (bucket.config, bucket.updated) = (config.clone(), true);
                bucket.records.values_mut().for_each(|records| keep_newest(records, config.history.get()));
            }
            What::Delete(name) => {
                let bucket = self.buckets.remove(name).expect("a bucket to delete");
                self.deleted.insert(bucket.created_at, bucket);
            }
            What::SetConsumer(name, consumer) => {
                self.known(name).consumers.insert(consumer.name.clone(), consumer.clone());
            }
            What::DeleteConsumer(name, consumer) => {
                assert!(self.known(name).consumers.remove(consumer).is_some(), "no consumer {consumer}");
            }
            What::Forget(name, keys) => {
                let bucket = self.known(name);
                keys.iter().for_each(|key| drop(bucket.records.remove(key)));
                bucket.forgotten = event.last;
            }
            What::Upkeep => {}
        }
    }

    /// The bucket that was created at a revision, deleted or not.
    pub(super) fn created_at(&self, revision: Revision) -> Option<&Bucket> {
        let mut buckets = self.buckets.values().chain(self.deleted.values());
        buckets.find(|bucket| bucket.created_at == revision)
    }

    /// The values that have expired and are not yet marked so.
    pub(super) fn overdue(&self, now: Timestamp) -> Vec<(BucketName, Key)> {
        let overdue = |bucket: &Bucket| {
            let keys = bucket.records.iter().filter(|(_, records)| bucket.is_overdue(records, now));
            keys.map(|(key, _)| (bucket.name.clone(), key.clone())).collect::<Vec<_>>()
        };
        self.buckets.values().flat_map(overdue).collect()
    }

    fn known(&mut self, name: &BucketName) -> &mut Bucket {
        self.buckets.get_mut(name).expect("an event is about a bucket there is")
    }
}

impl Bucket {
    fn add(&mut self, entry: Entry, batch: BatchPart) {
        self.last = entry.revision;
        let records = self.records.entry(entry.key.clone()).or_default();
        if entry.op == Op::Purge {
            records.clear();
        }
        records.push(entry.clone());
        keep_newest(records, self.config.history.get());
        self.feed.push(Change { entry, batch });
    }

    pub(super) fn newest(&self, key: &Key) -> Option<&Entry> {
        self.records.get(key)?.last()
    }

    /// Whether the newest of `records` is a value whose time has come.
    fn is_overdue(&self, records: &[Entry], now: Timestamp) -> bool {
        records.last().is_some_and(|newest| newest.op.is_put() && !self.config.is_live(newest, now))
    }

    /// Whether the value of `key`, if it is the one of `revision`, has expired.
    pub(super) fn has_expired(&self, key: &Key, now: Timestamp) -> bool {
        self.records.get(key).is_some_and(|records| self.is_overdue(records, now))
    }

    /// Whether what an operation or a check demands of its key is true.
    pub(super) fn judge(&self, demand: Demand<'_>, now: Timestamp) -> Result<(), Conflict> {
        let newest = self.newest(demand.key).filter(|_| !self.has_expired(demand.key, now));
        let holds = match demand.expect {
            Expectation::Any => true,
            Expectation::Absent => newest.is_none_or(|newest| !newest.op.is_put()),
            Expectation::Revision(expected) => newest.is_some_and(|newest| newest.revision == expected),
        };
        if holds {
            return Ok(());
        }
        Err(Conflict {
            bucket: self.name.clone(),
            key: demand.key.clone(),
            expected: demand.expect,
            actual: newest.filter(|newest| newest.op != Op::Expire).map(|newest| newest.revision),
        })
    }

    /// What a read must answer.
    pub(super) fn read(&self, key: &Key, at: At, now: Timestamp) -> Result<Option<Entry>, EngineError> {
        let Some(records) = self.records.get(key) else {
            return match at {
                At::Revision(at) if at < self.forgotten => {
                    Err(EngineError::Compacted { oldest: self.forgotten.next() })
                }
                _ => Ok(None),
            };
        };
        let found = match at {
            At::Latest => records.last(),
            At::Revision(at) => match records.iter().rev().find(|entry| entry.revision <= at) {
                None => return Err(EngineError::Compacted { oldest: records[0].revision }),
                found => found,
            },
        };
        Ok(found.filter(|entry| self.config.is_live(entry, now)).map(|entry| self.shown(entry)))
    }

    /// Whether nothing but an old marker is left of `key`.
    pub(super) fn is_forgettable(&self, key: &Key, now: Timestamp) -> bool {
        let Some((marker, older)) = self.records.get(key).and_then(|records| records.split_last()) else {
            return false;
        };
        let is_old = self.config.marker_ttl.is_some_and(|ttl| marker.time.saturating_add(ttl) <= now);
        !marker.op.is_put() && is_old && !older.iter().any(|entry| self.config.is_live(entry, now))
    }

    /// The kept records of `key`, as callers see them.
    pub(super) fn history(&self, key: &Key) -> Vec<Entry> {
        self.records.get(key).into_iter().flatten().map(|entry| self.shown(entry)).collect()
    }

    /// The live values of a selection, as callers see them.
    pub(super) fn select(&self, selection: &Selection, direction: Direction, now: Timestamp) -> Vec<Entry> {
        let newest = self.records.values().filter_map(|records| records.last());
        let live = newest.filter(|entry| self.config.is_live(entry, now) && selection.contains(&entry.key));
        let mut entries: Vec<_> = live.map(|entry| self.shown(entry)).collect();
        if direction == Direction::Backward {
            entries.reverse();
        }
        entries
    }

    /// The changes from a revision on, as a watch delivers them now.
    pub(super) fn changes(&self, from: Revision) -> Vec<Change> {
        let changes = self.feed.iter().filter(|change| change.entry.revision >= from);
        changes.map(|change| Change { entry: self.shown(&change.entry), batch: change.batch }).collect()
    }

    /// A record with the expiry that holds for it now.
    fn shown(&self, entry: &Entry) -> Entry {
        let expires = if entry.op.is_put() { self.config.expiry(entry.time, entry.expires) } else { None };
        Entry { expires, ..entry.clone() }
    }
}

fn keep_newest(records: &mut Vec<Entry>, keep: u8) {
    records.drain(..records.len().saturating_sub(keep.into()));
}

fn marker(key: &Key, revision: Revision, time: Timestamp) -> Entry {
    let (value, headers) = (bytes::Bytes::new(), Headers::new());
    Entry { key: key.clone(), value, revision, time, expires: None, op: Op::Expire, headers }
}
