use std::ops::Bound;
use std::sync::Arc;

use pleach_engine::{
    BucketConfig, Direction, EngineError, Entry, Key, KeyFilter, KeyRange, PAGE_BYTES_MAX, Selection,
    Timestamp,
};

use crate::catalog::Bucket;
use crate::core::{Core, damaged_head, has_expired};
use crate::index::{Head, HeadView, IndexCursor, IndexKey, ReadAt, text_of_head};
use crate::log::{Position, Wanted};
use crate::snapshots::Snapshot;

/// How much may be done before the work goes to another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Heads to look at.
    heads: usize,
    /// Bytes of values to read from the log.
    bytes: usize,
}

impl Budget {
    /// What a caller's thread can do without keeping others waiting.
    pub(crate) const INLINE: Self = Self { heads: 256, bytes: 256 * 1024 };
    /// As much as it takes.
    pub(crate) const UNLIMITED: Self = Self { heads: usize::MAX, bytes: usize::MAX };
}

/// Reads the heads of a bucket in order, from one snapshot.
pub(crate) struct HeadScan {
    pub(crate) core: Arc<Core>,
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) config: Arc<BucketConfig>,
    pub(crate) snapshot: Snapshot,
    filter: Option<KeyFilter>,
    heads: Box<dyn IndexCursor>,
}

impl HeadScan {
    /// A scan of those keys in `range`, which is part of what `selection` covers, that it contains.
    pub(crate) fn new(
        core: &Arc<Core>,
        bucket: &Arc<Bucket>,
        snapshot: Snapshot,
        selection: Selection,
        range: &KeyRange,
        direction: Direction,
    ) -> Self {
        let prefix = IndexKey::head(bucket.id, &[]);
        let head = |key: &Vec<u8>| IndexKey::head(bucket.id, key);
        let start = match &range.start {
            Bound::Included(key) => Bound::Included(head(key)),
            Bound::Excluded(key) => Bound::Excluded(head(key)),
            Bound::Unbounded => Bound::Included(prefix.clone()),
        };
        let end = match &range.end {
            Bound::Included(key) => Bound::Included(head(key)),
            Bound::Excluded(key) => Bound::Excluded(head(key)),
            Bound::Unbounded => Bound::Excluded(IndexKey::after(&prefix)),
        };
        let heads = core.index.cursor(start, end, ReadAt::Snapshot(snapshot.revision), direction);
        let config = bucket.config();
        Self {
            core: Arc::clone(core),
            bucket: Arc::clone(bucket),
            config,
            snapshot,
            filter: selection.filter,
            heads,
        }
    }

    /// The entry of a head that was read from the same snapshot.
    pub(crate) fn entry(&self, key: Key, head: Head) -> Result<Entry, EngineError> {
        let name = key.clone();
        let entry = self.core.entry(&self.config, key, head, false)?;
        entry.ok_or_else(|| self.core.missing(&name))
    }

    /// The next key and head, live or not. At a `budget` of zero heads, which it counts down, it returns
    /// `OutOfBudget`.
    pub(crate) fn next(&mut self, budget: &mut usize) -> Result<Step<'_>, EngineError> {
        if *budget == 0 {
            return Ok(Step::OutOfBudget);
        }
        *budget -= 1;
        let Some((index_key, bytes)) = self.heads.next()? else { return Ok(Step::End) };
        let damaged = || damaged_head(&self.bucket, &String::from_utf8_lossy(index_key));
        let key = text_of_head(index_key).ok_or_else(damaged)?;
        if self.filter.as_ref().is_some_and(|filter| !filter.matches_text(key)) {
            return Ok(Step::Skipped);
        }
        Ok(Step::Head(key, HeadView::parse(bytes).ok_or_else(damaged)?))
    }
}

/// What [`HeadScan::next`] found.
pub(crate) enum Step<'a> {
    Head(&'a str, HeadView<'a>),
    /// One that does not pass the filter.
    Skipped,
    End,
    OutOfBudget,
}

/// Whether `head` is a live value at `now`.
pub(crate) fn is_live(config: &BucketConfig, head: &HeadView<'_>, now: Timestamp) -> bool {
    head.op.is_put() && !has_expired(config, head.time, head.expires, || now)
}

/// A head of `bucket` as an entry, with its value if it is inline and wanted.
fn entry_of(
    bucket: &Bucket,
    config: &BucketConfig,
    key: &str,
    head: &HeadView<'_>,
    with_value: bool,
) -> Result<Entry, EngineError> {
    let damaged = || damaged_head(bucket, key);
    let payload = head.payload(with_value && head.is_inline()).ok_or_else(damaged)?;
    let (headers, value) = payload.into_value().ok_or_else(damaged)?;
    let key = Key::parse_reserved(key).map_err(|_| damaged())?;
    let expires = config.expiry(head.time, head.expires);
    Ok(Entry { key, value, revision: head.revision, time: head.time, expires, op: head.op, headers })
}

/// So many values of a page are read from the log together.
const GATHERED_MAX: usize = 128;

/// A page that is being read.
pub(crate) struct PageScan {
    pub(crate) scan: HeadScan,
    bucket: Arc<Bucket>,
    config: Arc<BucketConfig>,
    now: Timestamp,
    limit: usize,
    keys_only: bool,
    pub(crate) entries: Vec<Entry>,
    bytes: usize,
    /// Those of `entries` whose values are yet to be read from the log, and where they are.
    pending: Vec<(usize, Position)>,
    /// What they take in the log.
    pending_bytes: usize,
    /// Bytes of values that may still be read.
    budget: usize,
    /// Whether there is a live entry after the last one of the page.
    pub(crate) more: bool,
}

impl PageScan {
    pub(crate) fn new(scan: HeadScan, now: Timestamp, limit: usize, keys_only: bool) -> Self {
        let (bucket, config) = (Arc::clone(&scan.bucket), Arc::clone(&scan.config));
        let (entries, pending) = (Vec::with_capacity(limit.min(GATHERED_MAX * 2)), Vec::new());
        let (bytes, pending_bytes, budget, more) = (0, 0, 0, false);
        Self {
            scan,
            bucket,
            config,
            now,
            limit,
            keys_only,
            entries,
            bytes,
            pending,
            pending_bytes,
            budget,
            more,
        }
    }

    /// Reads on, and says whether the page is complete; if not, the budget was used up.
    pub(crate) fn run(&mut self, budget: Budget) -> Result<bool, EngineError> {
        let mut heads = budget.heads;
        self.budget = budget.bytes;
        // What was put off the last time.
        if !self.pending.is_empty() && !self.gather()? {
            return Ok(false);
        }
        while !self.more {
            let (key, head) = match self.scan.next(&mut heads)? {
                Step::Head(key, head) if is_live(&self.config, &head, self.now) => (key, head),
                Step::Head(..) | Step::Skipped => continue,
                Step::End => return self.gather(),
                Step::OutOfBudget => return self.gather().map(|_| self.more),
            };
            if self.entries.len() == self.limit {
                self.more = true;
                break;
            }
            if !self.keys_only && !head.is_inline() {
                let position = head.position().ok_or_else(|| damaged_head(&self.bucket, key))?;
                self.pending_bytes += position.len as usize;
                self.pending.push((self.entries.len(), position));
            }
            self.entries.push(entry_of(&self.bucket, &self.config, key, &head, !self.keys_only)?);
            self.weigh(self.entries.len() - 1);
            // Not more than fits into the page, or one: values may be large.
            let is_enough =
                self.pending.len() >= GATHERED_MAX || self.bytes + self.pending_bytes > PAGE_BYTES_MAX;
            if is_enough && !self.gather()? {
                return Ok(false);
            }
        }
        self.gather()
    }

    /// Reads the values that were left in the log, and says whether the budget was enough for all of them.
    fn gather(&mut self) -> Result<bool, EngineError> {
        // What did not fit into the page is not read.
        self.pending.retain(|(number, _)| *number < self.entries.len());
        let mut affordable = 0;
        for (_, position) in &self.pending {
            let Some(left) = self.budget.checked_sub(position.len as usize) else { break };
            self.budget = left;
            affordable += 1;
        }
        let later = self.pending.split_off(affordable);
        let pending = std::mem::replace(&mut self.pending, later);
        let wanted = |(number, position): &(usize, Position)| {
            let entry = &self.entries[*number];
            Wanted { position: *position, key: entry.key.clone(), revision: entry.revision }
        };
        let wanted: Vec<_> = pending.iter().map(wanted).collect();
        let payloads = self.scan.core.log.gather(wanted)?;
        for ((number, position), payload) in pending.into_iter().zip(payloads) {
            let Some(entry) = self.entries.get_mut(number) else { break };
            let payload = payload.ok_or_else(|| self.scan.core.missing(&entry.key))?;
            let value = payload.into_value();
            let value = value.ok_or_else(|| self.scan.core.damaged_value(&position, &entry.key))?;
            (entry.headers, entry.value) = value;
            self.weigh(number);
        }
        self.pending.retain(|(number, _)| *number < self.entries.len());
        self.pending_bytes = self.pending.iter().map(|(_, position)| position.len as usize).sum();
        Ok(self.pending.is_empty())
    }

    /// Takes account of the value of an entry; if it is too much for the page, it ends before it.
    fn weigh(&mut self, number: usize) {
        self.bytes += self.entries[number].value.len();
        if self.bytes > PAGE_BYTES_MAX && number > 0 {
            self.entries.truncate(number);
            self.more = true;
        }
    }
}

/// Live entries that are being counted.
pub(crate) struct CountScan {
    scan: HeadScan,
    config: Arc<BucketConfig>,
    now: Timestamp,
    pub(crate) count: u64,
}

impl CountScan {
    pub(crate) fn new(scan: HeadScan, now: Timestamp) -> Self {
        let config = Arc::clone(&scan.config);
        Self { scan, config, now, count: 0 }
    }

    /// Counts on, and says whether that was all; if not, the budget was used up.
    pub(crate) fn run(&mut self, mut budget: Budget) -> Result<bool, EngineError> {
        loop {
            match self.scan.next(&mut budget.heads)? {
                Step::Head(_, head) => self.count += u64::from(is_live(&self.config, &head, self.now)),
                Step::Skipped => {}
                Step::End => return Ok(true),
                Step::OutOfBudget => return Ok(false),
            }
        }
    }
}
