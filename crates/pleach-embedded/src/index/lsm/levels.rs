use std::sync::Arc;

use bytes::Bytes;

use super::table::Table;

/// So many tables of the first level are merged into the next, for the sake of reads, and while much is written only
/// so many: the more are merged at once, the less is written again.
const RUNS_MERGED: usize = 4;
const RUNS_MERGED_BUSY: usize = 8;

/// How much larger each level is than the one before.
const GROWTH: u64 = 10;

/// There are no more levels than these: the last takes a thousand times what the second does.
pub(super) const LEVELS: usize = 7;

/// The tables of an index. Those of the first level are as they were flushed, the newest first, and may overlap;
/// those of each other level follow one another by their keys, and are older than those of the levels above.
#[derive(Clone, Debug)]
pub(super) struct Levels(pub(super) [Arc<Vec<Arc<Table>>>; LEVELS]);

impl Default for Levels {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

/// Tables to be merged.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) from: usize,
    /// Tables of the level `from`, the newest first if it is the first.
    pub(super) upper: Vec<Arc<Table>>,
    /// Those of the next level which they overlap.
    pub(super) lower: Vec<Arc<Table>>,
    /// Whether nothing of their keys is below.
    pub(super) is_last: bool,
}

impl Levels {
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.0.iter().flat_map(|level| level.iter())
    }

    /// The tables that may have `key`, those with newer versions first.
    pub(super) fn candidates<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Arc<Table>> {
        let first = self.0[0].iter().filter(move |table| table.info.overlaps(key, key));
        let deeper = self.0[1..].iter().filter_map(move |level| {
            let number = level.partition_point(|table| table.info.last < key);
            level.get(number).filter(|table| table.info.first <= key)
        });
        first.chain(deeper)
    }

    /// How many bytes a level has.
    pub(super) fn bytes(&self, level: usize) -> u64 {
        self.0[level].iter().map(|table| table.info.len).sum()
    }

    /// With a table more, which is newer than all.
    pub(super) fn with_flushed(&self, table: Arc<Table>) -> Self {
        let mut levels = self.clone();
        let mut first = vec![table];
        first.extend(self.0[0].iter().cloned());
        levels.0[0] = Arc::new(first);
        levels
    }

    /// With `merged` in place of what was chosen.
    pub(super) fn with_merged(&self, choice: &Choice, merged: Vec<Arc<Table>>) -> Self {
        let without = |level: usize, gone: &[Arc<Table>]| {
            let stays = |table: &&Arc<Table>| !gone.iter().any(|gone| Arc::ptr_eq(gone, table));
            self.0[level].iter().filter(stays).cloned().collect::<Vec<_>>()
        };
        let mut levels = self.clone();
        levels.0[choice.from] = Arc::new(without(choice.from, &choice.upper));
        let mut lower = without(choice.from + 1, &choice.lower);
        lower.extend(merged);
        lower.sort_by(|a, b| a.info.first.cmp(&b.info.first));
        levels.0[choice.from + 1] = Arc::new(lower);
        levels
    }

    /// How many bytes would have to be merged for every level to be within its size.
    pub(super) fn pending_bytes(&self, base: u64) -> u64 {
        let first = if self.0[0].len() < RUNS_MERGED { 0 } else { self.bytes(0) };
        let deeper = (1..LEVELS - 1).map(|level| self.bytes(level).saturating_sub(target(level, base)));
        first + deeper.sum::<u64>()
    }

    /// What to merge next, if anything: from the level that is furthest past its size. `base` is the size of the
    /// second level, `cursors` where the last merge of each level ended.
    pub(super) fn choose(&self, base: u64, cursors: &[Bytes; LEVELS], is_busy: bool) -> Option<Choice> {
        let runs_merged = if is_busy { RUNS_MERGED_BUSY } else { RUNS_MERGED };
        let fullness = |level: usize| match level {
            0 => self.0[0].len() as u64 * 100 / runs_merged as u64,
            _ => self.bytes(level) * 100 / target(level, base),
        };
        let fullest = (0..LEVELS - 1).max_by_key(|level| (fullness(*level), std::cmp::Reverse(*level)))?;
        if fullness(fullest) < 100 {
            return None;
        }
        let upper = match fullest {
            0 => self.0[0].to_vec(),
            // One after another, so that each is merged with as much as has gathered meanwhile.
            level => {
                let tables = &self.0[level];
                let next = tables.iter().find(|table| table.info.first > cursors[level]);
                next.or_else(|| tables.first()).cloned().into_iter().collect()
            }
        };
        Some(self.choice(fullest, upper))
    }

    pub(super) fn choice(&self, from: usize, upper: Vec<Arc<Table>>) -> Choice {
        let (first, last) = reach(upper.iter());
        let overlaps = |table: &&Arc<Table>| table.info.overlaps(&first, &last);
        let lower: Vec<_> = self.0[from + 1].iter().filter(overlaps).cloned().collect();
        // All of `lower` is written anew, also where it goes beyond `upper`.
        let (first, last) = reach(upper.iter().chain(&lower));
        let mut below = self.0[from + 2..].iter().flat_map(|level| level.iter());
        let is_last = !below.any(|table| table.info.overlaps(&first, &last));
        Choice { from, upper, lower, is_last }
    }
}

/// The first and the last key of tables.
fn reach<'a>(tables: impl Iterator<Item = &'a Arc<Table>> + Clone) -> (Bytes, Bytes) {
    let first = tables.clone().map(|table| &table.info.first).min();
    let last = tables.map(|table| &table.info.last).max();
    (first.cloned().unwrap_or_default(), last.cloned().unwrap_or_default())
}

fn target(level: usize, base: u64) -> u64 {
    let deeper = u32::try_from(level - 1).unwrap_or_default();
    base.saturating_mul(GROWTH.saturating_pow(deeper))
}
