use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::EngineError;
use xxhash_rust::xxh3::Xxh3;

use super::Hash;
use super::block::{BlockBuilder, common_prefix, seal};
use super::filter::Filter;
use super::table::{Table, TableInfo};
use crate::disk::{Disk, DiskFile, io_error};
use crate::fields::put_varint;

/// A block is ended when it has grown past this.
const BLOCK_BYTES: usize = 4 * 1024;

/// So much is written at once.
const WRITE_BYTES: usize = 256 * 1024;

/// So much is synced at once: a sync of a whole table would keep those of the log waiting.
const SYNC_BYTES: u64 = 2 * 1024 * 1024;

/// Writes a table. One that is not finished is removed.
pub(super) struct TableWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Option<Box<dyn DiskFile>>,
    id: u64,
    block: BlockBuilder,
    /// Encoded blocks that are not written yet.
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
    checksum: Xxh3,
    /// The index of the blocks so far, but for the separator of the last one, which depends on what follows.
    index: Vec<u8>,
    open_separator: Option<Vec<u8>>,
    hashes: Vec<u64>,
    versions: u64,
    removals: u64,
    first: Bytes,
}

impl TableWriter {
    pub(super) fn create(disk: &Arc<dyn Disk>, directory: &Path, id: u64) -> Result<Self, EngineError> {
        let path = directory.join(format!("{id:016x}.table"));
        let file = disk.create(&path).map_err(io_error("create", &path))?;
        Ok(Self {
            disk: Arc::clone(disk),
            path,
            file: Some(file),
            id,
            block: BlockBuilder::default(),
            buffer: Vec::with_capacity(WRITE_BYTES + 2 * BLOCK_BYTES),
            written: 0,
            synced: 0,
            checksum: Xxh3::new(),
            index: Vec::new(),
            open_separator: None,
            hashes: Vec::new(),
            versions: 0,
            removals: 0,
            first: Bytes::new(),
        })
    }

    /// Adds a version: keys come upwards, the versions of a key from the newest to the oldest.
    pub(super) fn push(
        &mut self,
        hash: Hash,
        key: &[u8],
        revision: u64,
        value: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        if self.block.is_empty() {
            self.close_separator(Some(key));
        }
        if self.versions == 0 {
            self.first = Bytes::copy_from_slice(key);
        }
        if self.hashes.last() != Some(&hash.0) {
            self.hashes.push(hash.0);
        }
        self.block.push(key, revision, value);
        self.versions += 1;
        self.removals += u64::from(value.is_none());
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    /// How long it is so far.
    pub(super) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64 + self.block.len() as u64
    }

    /// Writes what is left and makes the table durable, but for its name in the directory.
    pub(super) fn finish(mut self) -> Result<Table, EngineError> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let last = Bytes::from(self.open_separator.clone().unwrap_or_default());
        self.close_separator(None);
        let index_at = self.len();
        let mut index = std::mem::take(&mut self.index);
        seal(&mut index);
        self.buffer.extend_from_slice(&index);
        let filter_at = self.len();
        let mut filter = Filter::of(&self.hashes).encode();
        seal(&mut filter);
        self.buffer.extend_from_slice(&filter);
        self.write()?;
        self.sync()?;
        let (len, checksum) = (self.written, self.checksum.digest128());
        let (versions, removals, first) = (self.versions, self.removals, self.first.clone());
        let info =
            TableInfo { id: self.id, len, checksum, index_at, filter_at, versions, removals, first, last };
        let file =
            self.file.take().ok_or_else(|| EngineError::Bug { what: "a table is finished twice".into() })?;
        Ok(Table::new(&self.disk, self.path.clone(), file, info))
    }

    fn end_block(&mut self) -> Result<(), EngineError> {
        self.open_separator = Some(self.block.last_key().to_vec());
        let mut block = self.block.finish();
        seal(&mut block);
        put_varint(&mut self.index, block.len() as u64);
        self.buffer.extend_from_slice(&block);
        if self.buffer.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    /// Puts the separator of the block that was ended last into the index: the shortest that serves, which is
    /// not before its last key and before `next`.
    fn close_separator(&mut self, next: Option<&[u8]>) {
        let Some(mut separator) = self.open_separator.take() else { return };
        if let Some(next) = next {
            let common = common_prefix(&separator, next);
            // One byte more than they have in common, raised by one, if that is still before `next`.
            if let (Some(byte), Some(limit)) = (separator.get(common).copied(), next.get(common).copied())
                && byte + 1 < limit
            {
                separator.truncate(common);
                separator.push(byte + 1);
            }
        }
        put_varint(&mut self.index, separator.len() as u64);
        self.index.extend_from_slice(&separator);
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_at(&self.buffer, self.written).map_err(io_error("write", &self.path))?;
        self.checksum.update(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if self.written - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync().map_err(io_error("sync", &self.path))?;
        self.synced = self.written;
        Ok(())
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = self.disk.remove(&self.path);
        }
    }
}
