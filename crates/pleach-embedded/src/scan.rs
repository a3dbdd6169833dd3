use std::ops::Bound;
use std::sync::Arc;

use pleach_engine::{
    BucketConfig, Direction, EngineError, Entry, Key, KeyFilter, KeyRange, PAGE_BYTES_MAX, Selection,
    Timestamp,
};

use crate::catalog::Bucket;
use crate::core::{Core, damaged_head, has_expired};
use crate::index::{Head, IndexCursor, IndexKey, ReadAt, key_of_head};
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

    /// The entry of a head that this scan has read.
    pub(crate) fn entry(&self, key: Key, head: Head, keys_only: bool) -> Result<Entry, EngineError> {
        if keys_only || head.inline {
            let entry = self.core.entry(&self.config, key, head, keys_only)?;
            return entry.ok_or_else(|| EngineError::Bug { what: "an inline value is not there".into() });
        }
        let name = key.clone();
        let entry = self.core.entry(&self.config, key, head, keys_only)?;
        entry.ok_or_else(|| self.core.missing(&name))
    }

    /// The next key and head, live or not; none at the end. Skips what the selection does not contain, up to
    /// `budget` heads, which it counts down: at zero it returns `OutOfBudget`.
    pub(crate) fn next(&mut self, budget: &mut usize) -> Result<Step, EngineError> {
        loop {
            if *budget == 0 {
                return Ok(Step::OutOfBudget);
            }
            *budget -= 1;
            let Some((index_key, bytes)) = self.heads.next()? else { return Ok(Step::End) };
            let key = key_of_head(index_key).ok_or_else(|| EngineError::CorruptIndex {
                what: format!("a key of bucket {} is unreadable", self.bucket.name),
            })?;
            if self.filter.as_ref().is_none_or(|filter| filter.matches(&key)) {
                let head = Head::decode_copy(bytes).ok_or_else(|| damaged_head(&self.bucket, &key))?;
                return Ok(Step::Head(key, head));
            }
        }
    }

    /// Whether `head` is a live value at `now`.
    pub(crate) fn is_live(&self, head: &Head, now: Timestamp) -> bool {
        head.op.is_put() && !has_expired(&self.config, head.time, head.expires, || now)
    }
}

/// What [`HeadScan::next`] found.
pub(crate) enum Step {
    Head(Key, Head),
    End,
    OutOfBudget,
}

/// So many values of a page are read from the log together.
const GATHERED_MAX: usize = 64;

/// A page that is being read.
pub(crate) struct PageScan {
    pub(crate) scan: HeadScan,
    now: Timestamp,
    pub(crate) limit: usize,
    pub(crate) keys_only: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    /// Those of `entries` whose values are yet to be read from the log, and where they are.
    pending: Vec<(usize, Position)>,
    /// An entry whose value was too large to be read within the budget.
    pub(crate) put_off: Option<(Key, Head)>,
    /// Whether there is a live entry after the last one of the page.
    pub(crate) more: bool,
}

impl PageScan {
    pub(crate) fn new(scan: HeadScan, now: Timestamp, limit: usize, keys_only: bool) -> Self {
        let (entries, pending) = (Vec::with_capacity(limit.min(GATHERED_MAX * 2)), Vec::new());
        Self { scan, now, limit, keys_only, entries, bytes: 0, pending, put_off: None, more: false }
    }

    /// Reads on, and says whether the page is complete; if not, the budget was used up.
    pub(crate) fn run(&mut self, budget: Budget) -> Result<bool, EngineError> {
        let Budget { mut heads, mut bytes } = budget;
        while !self.more {
            let (key, head) = match self.put_off.take() {
                Some(put_off) => put_off,
                None => match self.scan.next(&mut heads)? {
                    Step::Head(key, head) => (key, head),
                    Step::End => return self.gather().map(|()| true),
                    Step::OutOfBudget => return self.gather().map(|()| self.more),
                },
            };
            if !self.scan.is_live(&head, self.now) {
                continue;
            }
            if self.entries.len() == self.limit {
                self.more = true;
                break;
            }
            let in_log = !self.keys_only && !head.inline;
            if in_log {
                let Some(left) = bytes.checked_sub(head.position.len as usize) else {
                    self.put_off = Some((key, head));
                    return self.gather().map(|()| self.more);
                };
                bytes = left;
                self.pending.push((self.entries.len(), head.position));
            }
            let entry = self.scan.entry(key, head, self.keys_only || in_log)?;
            self.entries.push(entry);
            self.weigh(self.entries.len() - 1);
            if self.pending.len() >= GATHERED_MAX {
                self.gather()?;
            }
        }
        self.gather().map(|()| true)
    }

    /// Reads the values that were left in the log.
    fn gather(&mut self) -> Result<(), EngineError> {
        let pending = std::mem::take(&mut self.pending);
        // What did not fit into the page is not read.
        let pending: Vec<_> =
            pending.into_iter().filter(|(number, _)| *number < self.entries.len()).collect();
        let wanted = |(number, position): &(usize, Position)| {
            let entry = &self.entries[*number];
            Wanted { position: *position, key: &entry.key, revision: entry.revision }
        };
        let wanted: Vec<_> = pending.iter().map(wanted).collect();
        let payloads = self.scan.core.log.gather(&wanted)?;
        for ((number, position), payload) in pending.into_iter().zip(payloads) {
            let Some(entry) = self.entries.get_mut(number) else { break };
            let payload = payload.ok_or_else(|| self.scan.core.missing(&entry.key))?;
            let value = payload.into_value();
            let value = value.ok_or_else(|| self.scan.core.damaged_value(&position, &entry.key))?;
            (entry.headers, entry.value) = value;
            self.weigh(number);
        }
        Ok(())
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
    pub(crate) scan: HeadScan,
    pub(crate) now: Timestamp,
    pub(crate) count: u64,
}

impl CountScan {
    /// Counts on, and says whether that was all; if not, the budget was used up.
    pub(crate) fn run(&mut self, mut budget: Budget) -> Result<bool, EngineError> {
        loop {
            match self.scan.next(&mut budget.heads)? {
                Step::Head(_, head) => self.count += u64::from(self.scan.is_live(&head, self.now)),
                Step::End => return Ok(true),
                Step::OutOfBudget => return Ok(false),
            }
        }
    }
}
