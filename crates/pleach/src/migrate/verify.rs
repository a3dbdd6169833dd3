use std::collections::VecDeque;
use std::num::NonZeroU8;
use std::time::Duration;

use futures_util::future::{BoxFuture, try_join};
use futures_util::{StreamExt as _, stream};
use pleach_engine::{
    BucketName, EngineError, Entry, Key, Op, PAGE_ENTRIES_MAX, ScanQuery, Selection, Timestamp,
};
use sha2::{Digest as _, Sha256};

use super::window::is_same;
use super::{MigrateError, Plan};
use crate::{Error, Store};

/// Values that expire this soon are not compared, besides what engines need to let them expire.
const EXPIRY_MARGIN: Duration = Duration::from_secs(2);

/// Keys that are compared at once.
const KEYS_AT_ONCE: usize = 256;

/// What was compared of both sides, and found to be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Live keys.
    pub keys: u64,
    /// Their records, as far as the target keeps them.
    pub records: u64,
    /// What keys, values and headers of these take.
    pub bytes: u64,
    /// SHA-256 of what was read from the source, in the order of keys.
    pub source_digest: String,
    /// SHA-256 of what was read from the target.
    pub target_digest: String,
}

/// A comparison of all live keys with their history, which holds only a few of them in memory.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) source: &'a Store,
    pub(super) target: &'a Store,
    pub(super) plan: &'a Plan,
    pub(super) reads: usize,
}

/// The records of a key in the source and in the target.
type BothSides = (Vec<Entry>, Vec<Entry>);

#[derive(Debug, Default)]
struct Tally {
    keys: u64,
    records: u64,
    bytes: u64,
    source: Sha256,
    target: Sha256,
}

impl Comparison<'_> {
    pub(super) async fn run(&self) -> Result<Verified, Error> {
        let (from, to) = (&self.plan.source.name, &self.plan.target);
        let (mut source, mut target) = (Cursor::new(self.source, from), Cursor::new(self.target, to));
        let mut tally = Tally::default();
        loop {
            let mut keys = Vec::new();
            while keys.len() < KEYS_AT_ONCE {
                let (one, other) = (source.peek().await?, target.peek().await?);
                match (one, other) {
                    (None, None) => break,
                    (Some(one), Some(other)) if one.key == other.key => {
                        keys.push(one.key.clone());
                        source.found.pop_front();
                        target.found.pop_front();
                    }
                    (Some(one), other) if other.is_none_or(|other| one.key < other.key) => {
                        self.check_missing(one)?;
                        source.found.pop_front();
                    }
                    (_, Some(other)) => {
                        self.check_extra(&other.key).await?;
                        target.found.pop_front();
                    }
                    (Some(_), None) => {}
                }
            }
            if keys.is_empty() {
                return Ok(tally.verified());
            }
            let mut reads: Vec<BoxFuture<'_, Result<BothSides, EngineError>>> = Vec::new();
            for key in &keys {
                let (one, other) = (self.source.engine(), self.target.engine());
                reads.push(Box::pin(try_join(one.history(from, key), other.history(to, key))));
            }
            let mut histories = stream::iter(reads).buffered(self.reads);
            for key in &keys {
                let Some(pair) = histories.next().await else { break };
                let (one, other) = pair?;
                if let Some(keep) = self.compare(key, &one, &other, &mut tally)? {
                    self.target.engine().compact_key(to, key, keep).await?;
                }
            }
        }
    }

    /// Compares the records of a live key. Says how many the target shall keep if it has older ones than the source.
    fn compare(
        &self,
        key: &Key,
        source: &[Entry],
        target: &[Entry],
        tally: &mut Tally,
    ) -> Result<Option<NonZeroU8>, Error> {
        let horizon = self.horizon();
        let lasts =
            |entry: &&Entry| entry.op != Op::Expire && entry.expires.is_none_or(|expires| expires > horizon);
        let mut one: Vec<&Entry> = source.iter().filter(lasts).collect();
        let mut other: Vec<&Entry> = target.iter().filter(lasts).collect();
        // One that is about to expire, or has just done so.
        if !source.last().is_some_and(|newest| lasts(&newest)) {
            return Ok(None);
        }
        let expiries = |entry: &Entry| entry.op == Op::Expire || entry.expires.is_some();
        let is_newest_only = !self.plan.keeps_expiry && source.iter().any(expiries);
        let is_shorter = self.plan.config.history < self.plan.source.config.history;
        let markers = target.iter().filter(|entry| entry.op == Op::Expire).count();
        let most = if is_newest_only { 1 } else { one.len().min(other.len()) };
        let (wanted, there) = (one.len(), other.len());
        one.drain(..one.len().saturating_sub(most));
        let older = other.drain(..other.len().saturating_sub(most)).count();
        let different = |what| self.different(key, what);
        if one.is_empty() || other.is_empty() {
            return Err(different("it is missing there"));
        }
        if !is_newest_only && !is_shorter && there + markers < wanted {
            return Err(different("it has fewer old records there"));
        }
        if !one.iter().zip(&other).all(|(one, other)| is_same(one, other)) {
            return Err(different("a value, a header or an operation differs"));
        }
        let newest = |entries: &[&Entry]| entries.last().and_then(|entry| entry.expires);
        if self.plan.keeps_expiry && !is_close(newest(&one), newest(&other), self.margin()) {
            return Err(different("it expires at another time"));
        }
        tally.add(key, &one, &other);
        let surplus = (older > 0 && !is_newest_only).then(|| {
            target
                .iter()
                .rev()
                .scan(0, |kept, entry| {
                    *kept += usize::from(lasts(&entry));
                    (*kept <= most).then_some(())
                })
                .count()
        });
        Ok(surplus.and_then(|keep| NonZeroU8::new(u8::try_from(keep).ok()?)))
    }

    /// A key that only the source has.
    fn check_missing(&self, entry: &Entry) -> Result<(), Error> {
        match entry.expires {
            Some(expires) if expires <= self.horizon() => Ok(()),
            _ => Err(self.different(&entry.key, "it is missing there")),
        }
    }

    /// A key that only the target has.
    async fn check_extra(&self, key: &Key) -> Result<(), Error> {
        let records = self.source.engine().history(&self.plan.source.name, key).await?;
        let horizon = self.horizon();
        let has_expired =
            |entry: &Entry| entry.op == Op::Expire || entry.expires.is_some_and(|expires| expires <= horizon);
        match records.last() {
            Some(newest) if has_expired(newest) => Ok(()),
            _ => Err(self.different(key, "it is only there")),
        }
    }

    fn different(&self, key: &Key, what: &'static str) -> Error {
        let (bucket, key) = (self.plan.target.clone(), key.clone());
        MigrateError::Different { bucket, key, what }.into()
    }

    fn margin(&self) -> Duration {
        let (one, other) = (self.source.capabilities(), self.target.capabilities());
        EXPIRY_MARGIN + one.ttl_resolution.max(other.ttl_resolution)
    }

    fn horizon(&self) -> Timestamp {
        self.source.now().saturating_add(self.margin())
    }
}

impl Tally {
    fn add(&mut self, key: &Key, source: &[&Entry], target: &[&Entry]) {
        self.keys += 1;
        self.records += source.len() as u64;
        for entry in source {
            let bytes = key.as_bytes().len() + entry.value.len() + entry.headers.bytes();
            self.bytes += bytes as u64;
            digest(&mut self.source, entry);
        }
        target.iter().for_each(|entry| digest(&mut self.target, entry));
    }

    fn verified(self) -> Verified {
        let text = |hasher: Sha256| hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Verified {
            keys: self.keys,
            records: self.records,
            bytes: self.bytes,
            source_digest: text(self.source),
            target_digest: text(self.target),
        }
    }
}

/// Adds what a record and its copy have in common. Every part has its length before it, so that none runs into the next.
fn digest(hasher: &mut Sha256, entry: &Entry) {
    let mut part = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(entry.key.as_bytes());
    part(entry.op.as_str().as_bytes());
    part(&entry.value);
    for (name, value) in entry.headers.iter() {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    // Where the headers end.
    part(&[]);
}

fn is_close(one: Option<Timestamp>, other: Option<Timestamp>, margin: Duration) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.since(other).max(other.since(one)) <= margin,
        (one, other) => one == other,
    }
}

/// The live keys of a bucket in order.
struct Cursor<'a> {
    store: &'a Store,
    bucket: &'a BucketName,
    query: ScanQuery,
    found: VecDeque<Entry>,
    ended: bool,
}

impl<'a> Cursor<'a> {
    fn new(store: &'a Store, bucket: &'a BucketName) -> Self {
        let query = ScanQuery { limit: PAGE_ENTRIES_MAX, keys_only: true, ..ScanQuery::default() };
        Self { store, bucket, query, found: VecDeque::new(), ended: false }
    }

    /// The next key, which stays the next until it is taken.
    async fn peek(&mut self) -> Result<Option<&Entry>, Error> {
        while self.found.is_empty() && !self.ended {
            let page = self.store.engine().scan(self.bucket, self.query.clone()).await?;
            self.ended = page.next.is_none();
            // By range, not by token: the comparison may take longer than a snapshot is kept.
            let last = page.entries.last().map(|entry| entry.key.clone());
            self.query.selection = Selection::range(self.query.range_after(last.as_ref()));
            self.found.extend(page.entries.into_iter().filter(|entry| !entry.key.is_reserved()));
        }
        Ok(self.found.front())
    }
}
