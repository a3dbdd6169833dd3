use std::collections::{BTreeMap, VecDeque};

use pleach_engine::{BucketName, ConsumerName, Entry, Revision, Timestamp};

use super::ask::{Ask, Asked, Outcome};
use super::state::{Event, State, What};
use crate::catalog::decode_config;
use crate::consumers::decode_info;
use crate::log::{BucketId, Frame, FrameKind, Record, RecordKind};

/// What the store must hold: everything that was acknowledged, in order, and what nobody knows about.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Everything that readers can see.
    pub(super) state: State,
    events: Vec<Event>,
    /// What may come after it in the log, or may not.
    unknown: VecDeque<Asked>,
    /// What no power cut may take away.
    durable: Revision,
    names: BTreeMap<BucketId, BucketName>,
    /// The newest time that the store has recorded and may be held to.
    time: Timestamp,
}

impl Truth {
    /// Notes what became of asks, in the order in which they were sequenced; `frames` are those in the log
    /// after the newest revision so far, of which readers can see those up to `visible`.
    pub(super) fn settle(&mut self, asked: Vec<(Asked, Outcome)>, frames: Vec<Frame>, visible: Revision) {
        let mut found = self.events_of(frames);
        for (asked, outcome) in asked {
            self.absorb(&asked, &mut found, visible);
            match outcome {
                Outcome::Answered(answer) => {
                    let verdict = asked.judge(&self.state);
                    assert_eq!(answer, verdict.answer, "the answer to {asked:?}");
                    if let Some(event) = verdict.event {
                        assert_eq!(found.pop_front().as_ref(), Some(&event), "in the log for {asked:?}");
                        if matches!(event.what, What::Update(..)) {
                            let overdue = self.state.overdue(asked.now);
                            assert!(overdue.is_empty(), "{overdue:?} had expired before {asked:?}");
                        }
                        if verdict.synced {
                            self.durable = event.last;
                        }
                        self.add(event);
                    }
                }
                Outcome::Full | Outcome::Damaged => {}
                Outcome::Unknown => self.unknown.push_back(asked),
            }
        }
        // Of what the cleaner did the end may be in the log and not be seen yet.
        assert!(!self.unknown.is_empty() || found.is_empty(), "nobody asked for {found:?}");
        assert_eq!(self.state.newest, visible, "readers see what was acknowledged");
    }

    /// Says that nobody knows what became of asks: the store went away before it answered.
    pub(super) fn lose_sight_of(&mut self, asked: impl IntoIterator<Item = Asked>) {
        self.unknown.extend(asked);
    }

    /// Says that everything readers can see was synced.
    pub(super) fn synced(&mut self) {
        self.durable = self.state.newest;
    }

    /// What the store must at least go up to when it is opened again, after a power cut or without.
    pub(super) fn floor(&self, cut: bool) -> Revision {
        if cut { self.durable } else { self.state.newest }
    }

    /// Takes up what was found when the store was opened again: it goes up to `newest`, and `frames` are
    /// those in the log after the newest revision before.
    pub(super) fn recover(&mut self, newest: Revision, frames: Vec<Frame>, cut: bool) {
        let floor = self.floor(cut);
        assert!(newest >= floor, "the store goes up to {newest}, and {floor} was acknowledged");
        if newest < self.state.newest {
            let kept = self.events.partition_point(|event| event.last <= newest);
            self.events.truncate(kept);
            self.state = State::after(&self.events);
            self.time = self.time.min(self.state.time);
        } else {
            self.take_unknown(frames);
        }
        assert_eq!(self.state.newest, newest, "the store ends between two commits");
        self.unknown.clear();
        // Recovery has synced what it found.
        self.durable = newest;
    }

    /// Everything after the known must be what was asked for, in order and from the first on.
    fn take_unknown(&mut self, frames: Vec<Frame>) {
        let mut found = self.events_of(frames);
        let mut unknown = std::mem::take(&mut self.unknown);
        while !found.is_empty() {
            let asked = unknown.pop_front();
            assert!(asked.is_some(), "nobody asked for {found:?}");
            let Some(asked) = asked else { continue };
            self.absorb(&asked, &mut found, Revision::new(u64::MAX));
            let Some(event) = asked.judge(&self.state).event else { continue };
            if found.front() == Some(&event) {
                found.pop_front();
                self.add(event);
            } else {
                assert!(asked.doubtful || found.is_empty(), "{found:?} in the log instead of {event:?}");
            }
        }
    }

    /// Takes up what goes with an ask and nobody asked for by itself: before a bucket gets another
    /// configuration, what has expired is marked so, and the cleaner does what it likes.
    fn absorb(&mut self, asked: &Asked, found: &mut VecDeque<Event>, visible: Revision) {
        while let Some(event) = found.pop_front() {
            if event.last > visible || !self.goes_with(asked, &event) {
                found.push_front(event);
                return;
            }
            self.add(event);
        }
    }

    /// Whether an event goes with an ask; if it does, it must also be right.
    fn goes_with(&self, asked: &Asked, event: &Event) -> bool {
        let bucket = |name| self.state.buckets.get(name).expect("a bucket that is there");
        match (&asked.ask, &event.what) {
            (Ask::Update(..), What::Expire(name, keys)) => {
                for key in keys {
                    assert!(bucket(name).has_expired(key, asked.now), "{name}/{key} has not expired");
                }
                true
            }
            (Ask::Clean, What::Forget(name, keys)) => {
                for key in keys {
                    assert!(
                        bucket(name).is_forgettable(key, asked.now),
                        "{name}/{key} is forgotten too soon"
                    );
                }
                true
            }
            (Ask::Clean, What::Upkeep) => true,
            _ => false,
        }
    }

    fn add(&mut self, event: Event) {
        if event.what != What::Upkeep {
            assert!(event.time >= self.time, "time goes back: {} before {event:?}", self.time);
            self.time = event.time;
        }
        self.state.apply(&event);
        self.events.push(event);
    }

    fn events_of(&mut self, frames: Vec<Frame>) -> VecDeque<Event> {
        frames.into_iter().map(|frame| self.event_of(frame)).collect()
    }

    fn event_of(&mut self, frame: Frame) -> Event {
        let (first, last, id) = (frame.header.first, frame.header.last(), frame.header.bucket);
        let records: Vec<Record> = frame.records.into_iter().map(|(_, record)| record).collect();
        if frame.header.kind == FrameKind::Upkeep {
            return Event { first, last, time: Timestamp::default(), what: What::Upkeep };
        }
        let head = records.first().cloned().expect("a frame with records");
        let config = || decode_config(&head.payload.value).expect("a configuration");
        let named = || BucketName::parse(head.key.as_str()).expect("a name");
        let known = || self.names.get(&id).cloned().expect("a bucket that was created");
        let what = match head.kind {
            RecordKind::CreateBucket => {
                self.names.insert(id, named());
                What::Create(named(), config())
            }
            RecordKind::UpdateBucket => What::Update(named(), config()),
            RecordKind::DeleteBucket => What::Delete(named()),
            RecordKind::Compact if head.forgets_its_key() => {
                What::Forget(known(), records.into_iter().map(|record| record.key).collect())
            }
            RecordKind::Compact => What::Compact(known(), head.key.clone(), head.payload.value[0]),
            RecordKind::Expire => {
                What::Expire(known(), records.into_iter().map(|record| record.key).collect())
            }
            RecordKind::SetConsumer => {
                let info = decode_info(head.key.as_str(), head.payload.value.clone());
                What::SetConsumer(known(), info.expect("a consumer"))
            }
            RecordKind::DeleteConsumer => {
                What::DeleteConsumer(known(), ConsumerName::parse(head.key.as_str()).expect("a name"))
            }
            RecordKind::Put | RecordKind::Delete | RecordKind::Purge => {
                What::Commit(known(), records.into_iter().map(entry_of).collect())
            }
        };
        Event { first, last, time: head.time, what }
    }

    /// The newest time that the store has recorded and may be held to.
    pub(super) fn time(&self) -> Timestamp {
        self.time
    }
}

fn entry_of(record: Record) -> Entry {
    let op = record.kind.op().expect("a record of a key");
    let (headers, value) = record.payload.into_value().expect("a sound value");
    let (key, revision, time, expires) = (record.key, record.revision, record.time, record.expires);
    Entry { key, value, revision, time, expires, op, headers }
}
