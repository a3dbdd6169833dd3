use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use pleach_contract::Retention;
use pleach_contract::key::{AccessPath, Grammar, Kind, Segment, Time, Value};
use pleach_engine::{Batch, Direction, Key, KeyFilter, KeyRange, Operation, ScanQuery, Selection, Timestamp};

use super::KvStore;
use super::error::{KvError, KvWriteError};
use super::query::names_before;
use super::resource::Resource;
use crate::CompiledKeyspace;

/// How many entries one call of [`KvStore::retain`] drops before it returns, to go on with its cursor.
pub const RETAIN_DROPPED_MAX: u64 = 10_000;

/// How many keys are looked at and dropped at once.
const RETAIN_KEYS: usize = 1000;

/// What the retention of a keyspace lets go of at some moment: the keys whose time or date lies before its border.
#[derive(Debug)]
pub struct Retaining<'g> {
    grammar: &'g Grammar,
    /// Which of the segments that have a value holds the time.
    place: usize,
    border: Value<'static>,
}

/// What one call of [`KvStore::retain`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// How many entries were dropped.
    pub dropped: u64,
    /// Where to go on; none if nothing is left to drop.
    pub next: Option<RetainCursor>,
}

/// Where [`KvStore::retain`] goes on. As text it can be kept and read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainCursor {
    keyspace: String,
    from: Bound<Vec<u8>>,
}

/// Text that is no [`RetainCursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no place where retention can go on")]
pub struct InvalidRetainCursor;

impl<'g> Retaining<'g> {
    /// What `retention` lets go of at `now`; none if nothing can lie that far back, or it is of another keyspace.
    pub fn of(keyspace: &'g CompiledKeyspace, retention: &Retention, now: Timestamp) -> Option<Self> {
        let grammar = keyspace.grammar()?;
        let place = grammar.named().position(|segment| segment.name() == Some(&retention.segment))?;
        let border = retention.border(time_of(now)?)?;
        let border = match grammar.named().nth(place).map(Segment::kind)? {
            Kind::Date => Value::Date(border.date()),
            _ => Value::Time(border),
        };
        Some(Self { grammar, place, border })
    }

    /// The first time or date that is kept.
    pub fn border(&self) -> &Value<'static> {
        &self.border
    }

    /// The time or date of a key that it lets go of; none if that is kept, or of another keyspace.
    pub fn passed<'k>(&self, key: &'k str) -> Option<Value<'k>> {
        let values = self.grammar.read(key).ok()?;
        values.into_iter().nth(self.place).filter(|time| *time < self.border)
    }
}

impl KvStore {
    /// Drops what the retention of its keyspaces no longer keeps, with its history: about [`RETAIN_DROPPED_MAX`]
    /// entries, and then says where to go on.
    ///
    /// Of what is kept it looks at few keys and at no value, as it passes over the rest of a range once it comes to
    /// what is kept. A call that fails or is given up can be repeated, with its cursor or without.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn retain(&self, from: Option<RetainCursor>) -> Result<Retained, KvError> {
        let resource = &*self.resource;
        let now = resource.now();
        let mut dropped = 0;
        for (index, keyspace) in resource.keyspaces().iter().enumerate() {
            let Some(retention) = &resource.member(index).retention else { continue };
            let Some(retaining) = Retaining::of(keyspace, retention, now) else { continue };
            let name = resource.name(index);
            let mut next = match &from {
                // Keyspaces come in the order of their names.
                Some(cursor) if *cursor.keyspace > *name => continue,
                Some(cursor) if cursor.keyspace == name => Some(cursor.from.clone()),
                _ => Some(Bound::Unbounded),
            };
            while let Some(start) = next {
                if dropped >= RETAIN_DROPPED_MAX {
                    let cursor = RetainCursor { keyspace: name.to_owned(), from: start };
                    return Ok(Retained { dropped, next: Some(cursor) });
                }
                let step = retaining.step(resource, start).await?;
                dropped += step.dropped;
                next = step.next;
            }
        }
        Ok(Retained { dropped, next: None })
    }
}

/// What was done with one page of keys.
#[derive(Debug)]
struct Step {
    dropped: u64,
    /// Where the next page begins; none if this was the last.
    next: Option<Bound<Vec<u8>>>,
}

impl Retaining<'_> {
    /// Drops what is to go of the first keys from `start` on.
    async fn step(&self, resource: &Resource, start: Bound<Vec<u8>>) -> Result<Step, KvError> {
        let range = KeyRange { start, end: Bound::Unbounded };
        let selection = Selection { range, filter: self.filter() };
        let query = ScanQuery {
            selection,
            direction: Direction::Forward,
            limit: RETAIN_KEYS,
            keys_only: true,
            page: None,
        };
        let page = resource.engine().scan(resource.bucket(), query).await?;
        let keys: Vec<&Key> = page.entries.iter().map(|entry| &entry.key).collect();
        let gone: Vec<&Key> =
            keys.iter().copied().filter(|key| self.passed(key.as_str()).is_some()).collect();
        for chunk in gone.chunks(resource.capabilities().batch_operations_max.max(1)) {
            let batch: Batch = chunk.iter().map(|key| Operation::purge((*key).clone())).collect();
            resource.commit(batch).await.map_err(KvWriteError::without_conflict)?;
        }
        let last = keys.last().filter(|_| page.next.is_some());
        let next = last.and_then(|last| self.after(last));
        Ok(Step { dropped: gone.len() as u64, next })
    }

    /// Where to look after `key`: behind all that differ from it only in their time, if it is kept, as they are, too.
    fn after(&self, key: &Key) -> Option<Bound<Vec<u8>>> {
        let values = self.grammar.read(key.as_str());
        match values {
            Ok(values) if values[self.place] >= self.border => {
                match self.siblings(&values[..self.place])?.end {
                    Bound::Excluded(end) => Some(Bound::Included(end)),
                    Bound::Included(end) => Some(Bound::Excluded(end)),
                    Bound::Unbounded => None,
                }
            }
            _ => Some(Bound::Excluded(key.as_bytes().to_vec())),
        }
    }

    /// The keys whose segments before the time have these values.
    fn siblings(&self, values: &[Value<'_>]) -> Option<KeyRange> {
        let segment = self.grammar.named().nth(self.place).and_then(Segment::name)?;
        let names = names_before(self.grammar, segment);
        let path =
            if names.is_empty() { AccessPath::all() } else { AccessPath::parse(names.join(",")).ok()? };
        self.grammar.access(&path).ok()?.keys(values).ok()
    }

    fn filter(&self) -> Option<KeyFilter> {
        let values: Vec<Option<Value<'_>>> = self.grammar.named().map(|_| None).collect();
        let mut filters = self.grammar.filters(&values).ok()?;
        if filters.len() == 1 { filters.pop() } else { None }
    }
}

fn time_of(now: Timestamp) -> Option<Time> {
    let micros = now.as_micros();
    let nanoseconds = u32::try_from(micros % 1_000_000).ok()? * 1000;
    Time::new(i64::try_from(micros / 1_000_000).ok()?, nanoseconds)
}

/// `event>t.acme.7` after that key, `event=t.acme.7` from there on, `event` from the beginning.
impl fmt::Display for RetainCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bytes) = match &self.from {
            Bound::Unbounded => ("", &[][..]),
            Bound::Excluded(bytes) => (">", &bytes[..]),
            Bound::Included(bytes) => ("=", &bytes[..]),
        };
        write!(f, "{}{sign}{}", self.keyspace, String::from_utf8_lossy(bytes))
    }
}

impl FromStr for RetainCursor {
    type Err = InvalidRetainCursor;

    fn from_str(text: &str) -> Result<Self, InvalidRetainCursor> {
        let at = text.find(['>', '=']);
        let (keyspace, rest) = text.split_at(at.unwrap_or(text.len()));
        let from = match rest.as_bytes() {
            [] => Bound::Unbounded,
            [b'>', key @ ..] => Bound::Excluded(key.to_vec()),
            [_, key @ ..] => Bound::Included(key.to_vec()),
        };
        if keyspace.is_empty() {
            return Err(InvalidRetainCursor);
        }
        Ok(Self { keyspace: keyspace.to_owned(), from })
    }
}
