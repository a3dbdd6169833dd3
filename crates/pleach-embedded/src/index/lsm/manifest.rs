use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::EngineError;
use xxhash_rust::xxh3::xxh3_128;

use super::damaged;
use super::levels::{LEVELS, Levels};
use super::table::TableInfo;
use crate::disk::{Disk, io_error};
use crate::fields::{Fields, put_varint};

const FILE_NAME: &str = "MANIFEST";
const NEW_FILE_NAME: &str = "MANIFEST.new";
const MAGIC: &[u8; 8] = b"PLindex1";
const CHECKSUM_BYTES: usize = 16;

/// The list of tables: what is in it is the index, other files are leftovers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// What the hashes of keys are made with, so that nobody can choose keys which all have the same.
    pub(super) seed: u64,
    /// The next table gets this number.
    pub(super) next_id: u64,
    /// The tables of each level, in order.
    pub(super) levels: [Vec<TableInfo>; LEVELS],
}

impl Manifest {
    pub(super) fn of(seed: u64, next_id: u64, levels: &Levels) -> Self {
        let infos = |level: usize| levels.0[level].iter().map(|table| table.info.clone()).collect();
        Self { seed, next_id, levels: std::array::from_fn(infos) }
    }

    /// Reads the list in `directory`; none if there is none.
    ///
    /// # Errors
    /// `CorruptIndex`, or what the disk says.
    pub(super) fn load(disk: &dyn Disk, directory: &Path) -> Result<Option<Self>, EngineError> {
        let path = directory.join(FILE_NAME);
        let file = match disk.open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io_error("open", &path))?,
        };
        let len = file.len().map_err(io_error("read", &path))?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
        let manifest = Self::decode(&bytes[..count]);
        manifest.map(Some).ok_or_else(|| damaged("its list of tables is damaged"))
    }

    /// Replaces the list in `directory`, durably, and with it makes the tables in it durable. If that fails, also says
    /// whether the new list may have taken the place of the old one.
    pub(super) fn save(&self, disk: &dyn Disk, directory: &Path) -> Result<(), Unsaved> {
        let (new, path) = (directory.join(NEW_FILE_NAME), directory.join(FILE_NAME));
        let mut replaced = false;
        let mut write = || {
            match disk.remove(&new) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = disk.create(&new)?;
            file.write_at(&self.encode(), 0)?;
            file.sync()?;
            // The tables have to be there before the list that names them.
            disk.sync_directory(directory)?;
            if let Err(error) = disk.rename(&new, &path) {
                // If it still has its old name, it has not the new one.
                replaced = disk.remove(&new).is_err();
                return Err(error);
            }
            replaced = true;
            disk.sync_directory(directory)
        };
        write().map_err(|error| Unsaved { error: io_error("write", &path)(error), replaced })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.seed.to_le_bytes());
        put_varint(&mut bytes, self.next_id);
        for level in &self.levels {
            put_varint(&mut bytes, level.len() as u64);
            for table in level {
                for number in [table.id, table.len, table.index_at, table.filter_at] {
                    put_varint(&mut bytes, number);
                }
                bytes.extend(table.checksum.to_le_bytes());
                put_varint(&mut bytes, table.versions);
                put_varint(&mut bytes, table.removals);
                for key in [&table.first, &table.last] {
                    put_varint(&mut bytes, key.len() as u64);
                    bytes.extend_from_slice(key);
                }
            }
        }
        bytes.extend(xxh3_128(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what [`Manifest::encode`] wrote; none for anything else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
        if xxh3_128(body) != u128::from_le_bytes(*checksum) {
            return None;
        }
        let mut fields = Fields(body.strip_prefix(MAGIC)?);
        let seed = fields.u64()?;
        let next_id = fields.varint()?;
        let mut levels: [Vec<TableInfo>; LEVELS] = Default::default();
        for level in &mut levels {
            for _ in 0..fields.varint()? {
                level.push(take_table(&mut fields)?);
            }
        }
        fields.0.is_empty().then_some(Self { seed, next_id, levels })
    }
}

/// Why a list was not saved.
#[derive(Debug)]
pub(super) struct Unsaved {
    pub(super) error: EngineError,
    /// Whether it may be there all the same.
    pub(super) replaced: bool,
}

fn take_key(fields: &mut Fields<'_>) -> Option<Bytes> {
    let len = fields.len()?;
    fields.take(len).map(Bytes::copy_from_slice)
}

fn take_table(fields: &mut Fields<'_>) -> Option<TableInfo> {
    let (id, len) = (fields.varint()?, fields.varint()?);
    let (index_at, filter_at) = (fields.varint()?, fields.varint()?);
    let checksum = fields.array().map(u128::from_le_bytes)?;
    let (versions, removals) = (fields.varint()?, fields.varint()?);
    let (first, last) = (take_key(fields)?, take_key(fields)?);
    Some(TableInfo { id, len, checksum, index_at, filter_at, versions, removals, first, last })
}

/// Whether a file is one that is about to become the list, which may be all that is left of making an index.
pub(super) fn is_temporary(name: &str) -> bool {
    name == NEW_FILE_NAME
}

/// Removes what an interrupted flush or merge has left behind: files with names of ours that are not listed.
/// Says which number the next table gets, which is not that of any file that could not be removed.
pub(super) fn remove_leftovers(disk: &Arc<dyn Disk>, directory: &Path, manifest: &Manifest) -> u64 {
    let Ok(names) = disk.list(directory) else { return manifest.next_id };
    let mut next_id = manifest.next_id;
    let listed: Vec<_> = manifest.levels.iter().flatten().map(TableInfo::file_name).collect();
    for name in names {
        if name == NEW_FILE_NAME || (name.ends_with(".table") && !listed.contains(&name)) {
            let number = name.strip_suffix(".table").and_then(|name| u64::from_str_radix(name, 16).ok());
            // If it stays, the next open tries again.
            if disk.remove(&directory.join(&name)).is_err() {
                next_id = next_id.max(number.map_or(0, |number| number.saturating_add(1)));
            }
        }
    }
    next_id
}
