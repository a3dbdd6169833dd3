use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use pleach_engine::EngineError;
use xxhash_rust::xxh3::xxh3_128;

use super::seal::damaged;
use crate::disk::io_error;

/// The end of the list: a magic, two bytes, a checksum, and where its table of contents is.
const TRAILER_BYTES: usize = 38;
const TRAILER_MAGIC: &[u8] = b"SFA!";
const CONTENTS_MAGIC: &[u8] = b"TOC!";

/// The tree's own list of its files. It has a checksum that the library does not look at; a list that was
/// changed would make it forget keys, and delete the files they are in.
#[derive(Debug)]
pub(super) struct Manifest {
    /// By their ids.
    pub(super) tables: Vec<Table>,
}

/// A file of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Table {
    /// Its name.
    pub(super) id: u64,
    /// Of the whole file, as it was written.
    pub(super) checksum: u128,
}

impl Manifest {
    /// Reads the list that `current` names; none if there is no index yet.
    ///
    /// # Errors
    /// `CorruptIndex` if it cannot be believed.
    pub(super) fn load(directory: &Path) -> Result<Option<Self>, EngineError> {
        let current = match fs::read(directory.join("current")) {
            Ok(current) => current,
            Err(error) if error.kind() == ErrorKind::NotFound => return no_manifest(directory),
            Err(error) => return Err(io_error("read", directory)(error)),
        };
        let (Some(id), Some(checksum)) = (current.first_chunk::<8>(), current.get(8..24)) else {
            return Err(damaged("it does not say which list of files is the current one"));
        };
        let name = format!("v{}", u64::from_le_bytes(*id));
        let list = match fs::read(directory.join(name)) {
            Ok(list) => list,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(damaged("its list of files is missing"));
            }
            Err(error) => return Err(io_error("read", directory)(error)),
        };
        if xxh3_128(&list).to_le_bytes() != checksum {
            return Err(damaged("the checksum of its list of files does not match"));
        }
        let tables = section(&list, b"tables").and_then(Bytes::tables);
        let mut tables = tables.ok_or_else(|| damaged("its list of files is of an unknown form"))?;
        tables.sort_unstable();
        Ok(Some(Self { tables }))
    }
}

/// Without a list the library makes a new tree, over the files of an old one if there are any.
fn no_manifest(directory: &Path) -> Result<Option<Manifest>, EngineError> {
    let tables = directory.join("tables");
    match fs::read_dir(&tables).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(None),
        Ok(false) => Err(damaged("it has files, and no list of them")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", &tables)(error)),
    }
}

/// A section of the list, which is an archive of named sections with a table of contents.
fn section<'a>(list: &'a [u8], name: &[u8]) -> Option<Bytes<'a>> {
    let trailer = list.get(list.len().checked_sub(TRAILER_BYTES)?..)?;
    let contents_at = u64::from_le_bytes(*trailer.strip_prefix(TRAILER_MAGIC)?.get(18..)?.first_chunk()?);
    let contents = list.get(usize::try_from(contents_at).ok()?..)?;
    let mut contents = Bytes(contents.strip_prefix(CONTENTS_MAGIC)?);
    for _ in 0..contents.u32()? {
        let (start, len) = (usize::try_from(contents.u64()?).ok()?, usize::try_from(contents.u64()?).ok()?);
        let name_len = u16::from_le_bytes(contents.take()?);
        let (found, rest) = contents.0.split_at_checked(name_len.into())?;
        contents.0 = rest;
        if found == name {
            return list.get(start..start.checked_add(len)?).map(Bytes);
        }
    }
    None
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// Levels of runs of tables.
    fn tables(mut self) -> Option<Vec<Table>> {
        let mut tables = Vec::new();
        for _ in 0..self.u8()? {
            for _ in 0..self.u8()? {
                for _ in 0..self.u32()? {
                    let (id, checksum_kind) = (self.u64()?, self.u8()?);
                    let checksum = u128::from_le_bytes(self.take()?);
                    let _first_number = self.u64()?;
                    (checksum_kind == 0).then(|| tables.push(Table { id, checksum }))?;
                }
            }
        }
        self.0.is_empty().then_some(tables)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
}
