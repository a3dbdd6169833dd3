use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pleach_engine::{Direction, EngineError};

use super::cursor::Merged;
use super::levels::Choice;
use super::memtable::Memtable;
use super::source::{Source, TableSource};
use super::table::Table;
use super::table_writer::TableWriter;
use super::{Hash, Reading, Shared};

/// After so many versions a merge looks whether it is to be given up.
const STOP_EVERY: usize = 4096;

/// Decides which versions are written to a new table. They come in order, those of a key from the newest on.
struct Keeper {
    /// Nobody reads as of before this revision.
    oldest: u64,
    /// Whether nothing is below that a removal would have to hide.
    is_last: bool,
    key: Vec<u8>,
    revision: Option<u64>,
    /// Whether a version of the key was seen that hides all older ones.
    hidden: bool,
}

impl Keeper {
    fn new(oldest: u64, is_last: bool) -> Self {
        Self { oldest, is_last, key: Vec::new(), revision: None, hidden: false }
    }

    fn keeps(&mut self, key: &[u8], revision: u64, is_removal: bool) -> bool {
        if self.revision.is_none() || self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.hidden = false;
        } else if self.revision == Some(revision) {
            // The same revision from an older place.
            return false;
        }
        self.revision = Some(revision);
        if self.hidden {
            return false;
        }
        self.hidden = revision <= self.oldest;
        !(self.hidden && is_removal && self.is_last)
    }
}

/// Writes what a memtable has into a table; none if nothing of it is worth keeping.
pub(super) fn flush(shared: &Shared, memtable: &Memtable, oldest: u64) -> Result<Option<Table>, EngineError> {
    let mut keeper = Keeper::new(oldest, false);
    let mut writer = shared.create_table()?;
    let mut versions = 0_u64;
    memtable.each(|hash, key, revision, value| {
        if keeper.keeps(key, revision, value.is_none()) {
            versions += 1;
            writer.push(hash, key, revision, value)?;
        }
        Ok::<_, EngineError>(())
    })?;
    if versions == 0 { Ok(None) } else { writer.finish().map(Some) }
}

/// Writes what the chosen tables have into new ones.
pub(super) fn merge(
    shared: &Arc<Shared>,
    choice: &Choice,
    oldest: u64,
) -> Result<Vec<Arc<Table>>, EngineError> {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let source = |tables: Vec<Arc<Table>>| {
        let (tables, direction) = (Arc::new(tables), Direction::Forward);
        TableSource::new(shared, &tables, &everything, direction, Reading::Once).map(Source::Tables)
    };
    let mut sources = Vec::new();
    if choice.from == 0 {
        for table in &choice.upper {
            sources.push(source(vec![Arc::clone(table)])?);
        }
    } else {
        sources.push(source(choice.upper.clone())?);
    }
    sources.push(source(choice.lower.clone())?);
    let mut merged = Merged::new(sources, Direction::Forward);
    let mut keeper = Keeper::new(oldest, choice.is_last);
    let mut output = Output { shared, writer: None, key: Vec::new(), hash: Hash(0), tables: Vec::new() };
    let mut versions = 0_usize;
    while let Some(source) = merged.current() {
        versions += 1;
        if versions.is_multiple_of(STOP_EVERY) && shared.stopped.load(Ordering::Acquire) {
            return Err(EngineError::Closed);
        }
        let key = source.key().unwrap_or_default();
        if keeper.keeps(key, source.revision(), source.value().is_none()) {
            output.push(key, source.revision(), source.value())?;
        }
        merged.advance()?;
    }
    output.finish()
}

/// Tables of a bounded size, all versions of a key in one.
struct Output<'a> {
    shared: &'a Shared,
    writer: Option<TableWriter>,
    key: Vec<u8>,
    hash: Hash,
    tables: Vec<Arc<Table>>,
}

impl Output<'_> {
    fn push(&mut self, key: &[u8], revision: u64, value: Option<&[u8]>) -> Result<(), EngineError> {
        if self.key != key || self.writer.is_none() {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.hash = self.shared.hash(key);
            let is_full = |writer: &mut TableWriter| writer.len() >= self.shared.sizes.table_bytes;
            if let Some(writer) = self.writer.take_if(is_full) {
                self.tables.push(Arc::new(writer.finish()?));
            }
        }
        if self.writer.is_none() {
            self.writer = Some(self.shared.create_table()?);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.push(self.hash, key, revision, value)
    }

    fn finish(mut self) -> Result<Vec<Arc<Table>>, EngineError> {
        if let Some(writer) = self.writer.take() {
            self.tables.push(Arc::new(writer.finish()?));
        }
        Ok(std::mem::take(&mut self.tables))
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // What was finished before the merge failed would take space for nothing.
        self.tables.iter().for_each(|table| table.set_obsolete());
    }
}
