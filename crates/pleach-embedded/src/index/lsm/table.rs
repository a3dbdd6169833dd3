use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pleach_engine::EngineError;

use super::block::{Block, CHECKSUM_BYTES, unseal};
use super::filter::Filter;
use super::{Hash, Reading, Shared, damaged};
use crate::disk::{Disk, DiskFile, io_error};
use crate::fields::Fields;

/// What the list of tables says about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableInfo {
    pub(super) id: u64,
    /// How long its file is, and the checksum of all of it.
    pub(super) len: u64,
    pub(super) checksum: u128,
    /// Where the index of its blocks begins; the filter follows it.
    pub(super) index_at: u64,
    pub(super) filter_at: u64,
    pub(super) versions: u64,
    pub(super) removals: u64,
    pub(super) first: Bytes,
    pub(super) last: Bytes,
}

impl TableInfo {
    pub(super) fn file_name(&self) -> String {
        format!("{:016x}.table", self.id)
    }

    /// Whether it may have keys from `first` to `last`.
    pub(super) fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        self.first <= last && first <= self.last
    }
}

/// A file of sorted versions, which never changes. It is removed when nobody reads it any more and it is said to
/// be obsolete.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) info: TableInfo,
    path: PathBuf,
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    /// Read when they are first needed, so that opening an index does not depend on its size.
    index: OnceLock<BlockIndex>,
    filter: OnceLock<Filter>,
    obsolete: AtomicBool,
}

impl Table {
    /// Opens the file of a table, and looks at no more than its length.
    pub(super) fn open(disk: &Arc<dyn Disk>, directory: &Path, info: TableInfo) -> Result<Self, EngineError> {
        let path = directory.join(info.file_name());
        let missing = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged(format!("its table {:016x} is missing", info.id)),
            _ => io_error("open", &path)(error),
        };
        let file = disk.open(&path).map_err(missing)?;
        if file.len().map_err(io_error("read", &path))? != info.len {
            return Err(damaged(format!("its table {:016x} has the wrong length", info.id)));
        }
        Ok(Self::new(disk, path, file, info))
    }

    pub(super) fn new(disk: &Arc<dyn Disk>, path: PathBuf, file: Box<dyn DiskFile>, info: TableInfo) -> Self {
        let (index, filter, obsolete) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
        Self { info, path, disk: Arc::clone(disk), file, index, filter, obsolete }
    }

    /// Lets the file go as soon as nobody reads it.
    pub(super) fn set_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Whether the key with this hash may be in it.
    pub(super) fn may_contain(&self, hash: Hash) -> Result<bool, EngineError> {
        let filter = match self.filter.get() {
            Some(filter) => filter,
            None => {
                let len = self.info.len.saturating_sub(self.info.filter_at);
                let filter = Filter::decode(&self.read_sealed(self.info.filter_at, len)?)?;
                self.filter.get_or_init(|| filter)
            }
        };
        Ok(filter.may_contain(hash.0))
    }

    /// The newest version of `key` up to revision `at`: the block it is in, and where there; none if there is
    /// none. The value is none if the key was removed.
    pub(super) fn get(
        &self,
        key: &[u8],
        at: u64,
        shared: &Shared,
        reading: Reading,
    ) -> Result<Option<Option<Bytes>>, EngineError> {
        let index = self.index()?;
        let mut number = index.find(key);
        while number < index.count() {
            let block = self.block(number, shared, reading)?;
            let start = block.lower_bound(key)?;
            let rest = key.strip_prefix(block.prefix());
            for entry_number in start..block.count() {
                let entry = block.entry(entry_number)?;
                if Some(entry.rest) != rest {
                    return Ok(None);
                }
                if entry.revision <= at {
                    return Ok(Some(entry.value.map(|range| block.bytes().slice(range))));
                }
            }
            // Only if the block ends with newer versions of the key do older ones follow in the next.
            if start == block.count() {
                return Ok(None);
            }
            number += 1;
        }
        Ok(None)
    }

    /// A block, from the cache if it is there.
    pub(super) fn block(
        &self,
        number: usize,
        shared: &Shared,
        reading: Reading,
    ) -> Result<Block, EngineError> {
        let key = (self.info.id, u32::try_from(number).unwrap_or(u32::MAX));
        if let Some(block) = shared.cache.get(&key) {
            shared.counters.block_hits.add(1);
            return Ok(block);
        }
        shared.counters.block_reads.add(1);
        let block = self.read_block(number)?;
        if let Reading::Cached = reading {
            shared.cache.insert(key, block.clone());
        }
        Ok(block)
    }

    /// A block, from the file.
    pub(super) fn read_block(&self, number: usize) -> Result<Block, EngineError> {
        let (offset, len) = self.index()?.place(number).ok_or_else(|| damaged("a block is missing"))?;
        Block::decode(self.read_sealed(offset, len)?.into())
    }

    pub(super) fn index(&self) -> Result<&BlockIndex, EngineError> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let len = self.info.filter_at.saturating_sub(self.info.index_at);
        let index = BlockIndex::decode(&self.read_sealed(self.info.index_at, len)?, self.info.index_at)?;
        Ok(self.index.get_or_init(|| index))
    }

    fn read_sealed(&self, offset: u64, len: u64) -> Result<Vec<u8>, EngineError> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.info.len);
        let Some(len) = usize::try_from(len).ok().filter(|_| inside) else {
            return Err(damaged("a block lies outside of its table"));
        };
        let mut bytes = vec![0; len];
        let count = self.file.read_at(&mut bytes, offset).map_err(io_error("read", &self.path))?;
        bytes.truncate(count);
        unseal(bytes)
    }

    /// Reads the whole file, and says whether it is as it was written.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        while offset < self.info.len {
            let count = self.file.read_at(&mut piece, offset).map_err(io_error("read", &self.path))?;
            if count == 0 {
                break;
            }
            hasher.update(&piece[..count]);
            offset += count as u64;
        }
        if hasher.digest128() != self.info.checksum {
            return Err(damaged(format!("its table {:016x} is damaged", self.info.id)));
        }
        Ok(())
    }
}

/// Tables are checked in pieces of this size.
const PIECE_BYTES: usize = 1024 * 1024;

impl Drop for Table {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            // What stays behind is removed when the index is opened.
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// Where the blocks of a table are, and which keys they have.
#[derive(Debug)]
pub(super) struct BlockIndex {
    /// Where each block begins, and where the last one ends.
    offsets: Vec<u64>,
    /// A key for each block that is not before any of its own and before all of the next one, one after another.
    separators: Vec<u8>,
    separator_ends: Vec<u32>,
}

impl BlockIndex {
    pub(super) fn count(&self) -> usize {
        self.separator_ends.len()
    }

    /// The number of the only block that may have the newest version of `key`.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.separator(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn separator(&self, number: usize) -> &[u8] {
        let end = |number: usize| self.separator_ends[number] as usize;
        let start = number.checked_sub(1).map_or(0, end);
        &self.separators[start..end(number)]
    }

    /// Offset and length of a block with its checksum.
    fn place(&self, number: usize) -> Option<(u64, u64)> {
        let (start, end) = (*self.offsets.get(number)?, *self.offsets.get(number + 1)?);
        Some((start, end - start))
    }

    /// Reads what the table writer wrote: for each block its length, and length and bytes of its separator.
    fn decode(bytes: &[u8], blocks_end: u64) -> Result<Self, EngineError> {
        let index = Self::parse(bytes).filter(|index| index.offsets.last() == Some(&blocks_end));
        index.ok_or_else(|| damaged("the index of a table makes no sense"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut index = Self { offsets: vec![0], separators: Vec::new(), separator_ends: Vec::new() };
        let (mut fields, mut offset) = (Fields(bytes), 0_u64);
        while !fields.0.is_empty() {
            let len = fields.varint()?;
            if len < CHECKSUM_BYTES as u64 {
                return None;
            }
            offset = offset.checked_add(len)?;
            index.offsets.push(offset);
            let len = fields.len()?;
            index.separators.extend_from_slice(fields.take(len)?);
            index.separator_ends.push(u32::try_from(index.separators.len()).ok()?);
        }
        Some(index)
    }
}
