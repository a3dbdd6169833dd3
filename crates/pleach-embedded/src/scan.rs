use std::ops::Bound;
use std::sync::Arc;

use pleach_engine::{
    BucketConfig, Direction, EngineError, Entry, Key, KeyRange, PAGE_BYTES_MAX, Selection, Timestamp,
};

use crate::catalog::Bucket;
use crate::core::{Core, damaged_head, has_expired};
use crate::index::{Head, IndexCursor, IndexKey, ReadAt, key_of_head};
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
    selection: Selection,
    heads: Box<dyn IndexCursor>,
}

impl HeadScan {
    /// A scan of those keys in `range` that `selection` contains.
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
        Self { core: Arc::clone(core), bucket: Arc::clone(bucket), config, snapshot, selection, heads }
    }

    /// The entry of a head that this scan has read.
    pub(crate) fn entry(&self, key: Key, head: Head, keys_only: bool) -> Result<Entry, EngineError> {
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
            if self.selection.contains(&key) {
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

/// A page that is being read.
pub(crate) struct PageScan {
    pub(crate) scan: HeadScan,
    now: Timestamp,
    pub(crate) limit: usize,
    pub(crate) keys_only: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    /// An entry whose value was too large to be read within the budget.
    pub(crate) put_off: Option<(Key, Head)>,
    /// Whether there is a live entry after the last one of the page.
    pub(crate) more: bool,
}

impl PageScan {
    pub(crate) fn new(scan: HeadScan, now: Timestamp, limit: usize, keys_only: bool) -> Self {
        Self { scan, now, limit, keys_only, entries: Vec::new(), bytes: 0, put_off: None, more: false }
    }

    /// Reads on, and says whether the page is complete; if not, the budget was used up.
    pub(crate) fn run(&mut self, budget: Budget) -> Result<bool, EngineError> {
        let Budget { mut heads, mut bytes } = budget;
        loop {
            let (key, head) = match self.put_off.take() {
                Some(put_off) => put_off,
                None => match self.scan.next(&mut heads)? {
                    Step::Head(key, head) => (key, head),
                    Step::End => return Ok(true),
                    Step::OutOfBudget => return Ok(false),
                },
            };
            if !self.scan.is_live(&head, self.now) {
                continue;
            }
            self.more = self.entries.len() == self.limit;
            if self.more {
                return Ok(true);
            }
            if !self.keys_only && !head.inline {
                let Some(left) = bytes.checked_sub(head.position.len as usize) else {
                    self.put_off = Some((key, head));
                    return Ok(false);
                };
                bytes = left;
            }
            let entry = self.scan.entry(key, head, self.keys_only)?;
            self.bytes += entry.value.len();
            self.more = self.bytes > PAGE_BYTES_MAX && !self.entries.is_empty();
            if self.more {
                return Ok(true);
            }
            self.entries.push(entry);
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
