use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{Direction, EngineError};

use super::block::Block;
use super::memtable::{Memtable, SlotId, Version};
use super::table::Table;
use super::{Reading, Shared};
use crate::index::is_empty;

/// How many keys of a memtable are taken at once: few at first, because many scans are short.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 256;

/// One of the places where an index keeps versions, read in one direction: keys in order, and of each key the
/// versions from the newest to the oldest, or from the oldest to the newest when it is read backwards.
pub(super) enum Source {
    /// A part in memory, of which only the versions that were asked for are seen.
    Memory(MemorySource),
    /// A table of the first level, or a whole level.
    Tables(TableSource),
}

impl Source {
    /// The current key; none at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(source) => source.current.as_ref().map(|(key, _)| &key[..]),
            Self::Tables(source) => source.at.is_some().then_some(&source.key[..]),
        }
    }

    /// The revision of the current version.
    pub(super) fn revision(&self) -> u64 {
        match self {
            Self::Memory(source) => source.current.as_ref().map_or(0, |(_, version)| version.revision),
            Self::Tables(source) => source.revision,
        }
    }

    /// The value of the current version; none if the key was removed.
    pub(super) fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(source) => source.current.as_ref()?.1.value.as_deref(),
            Self::Tables(source) => source.value.clone().map(|range| &source.block.bytes()[range]),
        }
    }

    /// Goes to the next version.
    pub(super) fn advance(&mut self) -> Result<(), EngineError> {
        match self {
            Self::Memory(source) => {
                source.advance();
                Ok(())
            }
            Self::Tables(source) => source.advance(),
        }
    }
}

/// Reads a memtable, a chunk at a time.
pub(super) struct MemorySource {
    memtable: Arc<Memtable>,
    at: u64,
    direction: Direction,
    /// What is left to read after this chunk.
    range: (Bound<Bytes>, Bound<Bytes>),
    chunk: std::vec::IntoIter<(Arc<[u8]>, SlotId)>,
    chunk_limit: usize,
    /// Whether there may be more after this chunk.
    more: bool,
    current: Option<(Arc<[u8]>, Version)>,
}

impl MemorySource {
    pub(super) fn new(
        memtable: &Arc<Memtable>,
        range: (Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
        at: u64,
    ) -> Self {
        let (memtable, chunk) = (Arc::clone(memtable), Vec::new().into_iter());
        let (chunk_limit, more, current) = (CHUNK_MIN, true, None);
        let mut source = Self { memtable, at, direction, range, chunk, chunk_limit, more, current };
        source.advance();
        source
    }

    fn advance(&mut self) {
        loop {
            for (key, slot) in self.chunk.by_ref() {
                if let Some(version) = self.memtable.version(slot, self.at) {
                    self.current = Some((key, version));
                    return;
                }
            }
            if !self.more {
                self.current = None;
                return;
            }
            let range = (as_slice(&self.range.0), as_slice(&self.range.1));
            let chunk = self.memtable.chunk(range, self.direction, self.chunk_limit);
            self.more = chunk.len() == self.chunk_limit;
            self.chunk_limit = (self.chunk_limit * 2).min(CHUNK_MAX);
            if let Some((last, _)) = chunk.last().filter(|_| self.more) {
                let last = Bound::Excluded(Bytes::copy_from_slice(last));
                match self.direction {
                    Direction::Forward => self.range.0 = last,
                    Direction::Backward => self.range.1 = last,
                }
                // A range without anything between its ends must not be asked for.
                self.more = !is_empty(&self.range.0, &self.range.1);
            }
            self.chunk = chunk.into_iter();
        }
    }
}

fn as_slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Reads tables that follow one another by their keys. Where it begins it keeps to the range; where to end is for
/// the reader to know.
pub(super) struct TableSource {
    shared: Arc<Shared>,
    tables: Arc<Vec<Arc<Table>>>,
    reading: Reading,
    direction: Direction,
    /// Table, block and version; none at the end.
    at: Option<(usize, usize, usize)>,
    block: Block,
    key: Vec<u8>,
    /// How much of the key is the prefix of the block.
    prefix: usize,
    revision: u64,
    value: Option<Range<usize>>,
}

impl TableSource {
    /// Reads `tables` from the first version in the range on, in the direction.
    pub(super) fn new(
        shared: &Arc<Shared>,
        tables: &Arc<Vec<Arc<Table>>>,
        range: &(Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
        reading: Reading,
    ) -> Result<Self, EngineError> {
        let mut source = Self {
            shared: Arc::clone(shared),
            tables: Arc::clone(tables),
            reading,
            direction,
            at: None,
            block: Block::default(),
            key: Vec::new(),
            prefix: 0,
            revision: 0,
            value: None,
        };
        match direction {
            Direction::Forward => source.seek_forward(&range.0)?,
            Direction::Backward => source.seek_backward(&range.1)?,
        }
        Ok(source)
    }

    fn seek_forward(&mut self, start: &Bound<Bytes>) -> Result<(), EngineError> {
        let (Bound::Included(key) | Bound::Excluded(key)) = start else { return self.enter(0, 0, 0) };
        let table = self.tables.partition_point(|table| table.info.last < *key);
        if table == self.tables.len() {
            return Ok(());
        }
        let number = self.tables[table].index()?.find(key);
        if number == self.tables[table].index()?.count() {
            return self.enter(table + 1, 0, 0);
        }
        self.load_block(table, number)?;
        let version = self.block.lower_bound(key)?;
        self.enter(table, number, version)?;
        while matches!(start, Bound::Excluded(_)) && self.at.is_some() && self.key == *key {
            self.advance()?;
        }
        Ok(())
    }

    fn seek_backward(&mut self, end: &Bound<Bytes>) -> Result<(), EngineError> {
        // To the first version past the end, and one back.
        match end {
            Bound::Unbounded => self.enter_last(self.tables.len()),
            Bound::Excluded(key) => {
                self.seek_forward(&Bound::Included(key.clone()))?;
                self.step_back_from_here()
            }
            Bound::Included(key) => {
                self.direction = Direction::Forward;
                self.seek_forward(&Bound::Excluded(key.clone()))?;
                self.direction = Direction::Backward;
                self.step_back_from_here()
            }
        }
    }

    fn step_back_from_here(&mut self) -> Result<(), EngineError> {
        match self.at {
            Some(_) => self.step_back(),
            None => self.enter_last(self.tables.len()),
        }
    }

    fn advance(&mut self) -> Result<(), EngineError> {
        let Some((table, block, version)) = self.at else { return Ok(()) };
        match self.direction {
            Direction::Forward if version + 1 < self.block.count() => self.load(table, block, version + 1),
            Direction::Forward => self.enter(table, block, version + 1),
            Direction::Backward => self.step_back(),
        }
    }

    /// Goes to a version, or to the first one after the end of its block or table.
    fn enter(&mut self, mut table: usize, mut block: usize, mut version: usize) -> Result<(), EngineError> {
        loop {
            let Some(current) = self.tables.get(table) else {
                self.at = None;
                return Ok(());
            };
            if block >= current.index()?.count() {
                (table, block, version) = (table + 1, 0, 0);
                continue;
            }
            self.load_block(table, block)?;
            if version < self.block.count() {
                return self.load(table, block, version);
            }
            (block, version) = (block + 1, 0);
        }
    }

    fn step_back(&mut self) -> Result<(), EngineError> {
        let Some((table, block, version)) = self.at else { return Ok(()) };
        if let Some(version) = version.checked_sub(1) {
            return self.load(table, block, version);
        }
        if let Some(block) = block.checked_sub(1) {
            self.load_block(table, block)?;
            return self.load(table, block, self.block.count() - 1);
        }
        self.enter_last(table)
    }

    /// Goes to the last version of the tables before number `end`.
    fn enter_last(&mut self, end: usize) -> Result<(), EngineError> {
        let Some(table) = end.checked_sub(1) else {
            self.at = None;
            return Ok(());
        };
        let Some(block) = self.tables[table].index()?.count().checked_sub(1) else {
            return self.enter_last(table);
        };
        self.load_block(table, block)?;
        self.load(table, block, self.block.count() - 1)
    }

    fn load_block(&mut self, table: usize, block: usize) -> Result<(), EngineError> {
        if self.at.is_some_and(|(t, b, _)| (t, b) == (table, block)) {
            return Ok(());
        }
        let source = &self.tables[table];
        self.block = match self.reading {
            Reading::Cached => source.block(block, &self.shared, self.reading)?,
            Reading::Once => source.read_block(block)?,
        };
        self.at = Some((table, block, 0));
        self.key.clear();
        self.key.extend_from_slice(self.block.prefix());
        self.prefix = self.key.len();
        Ok(())
    }

    fn load(&mut self, table: usize, block: usize, version: usize) -> Result<(), EngineError> {
        let entry = self.block.entry(version)?;
        self.key.truncate(self.prefix);
        self.key.extend_from_slice(entry.rest);
        self.revision = entry.revision;
        self.value = entry.value;
        self.at = Some((table, block, version));
        Ok(())
    }
}
