use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use pleach_engine::EngineError;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::manifest::{Manifest, Table};
use crate::disk::io_error;

/// How much of the tables is read in full at every open, beyond what must be.
pub(crate) const CHECKED_BYTES: u64 = 16 * 1024 * 1024;

/// The end of a table that is looked at in any case. The library believes what it finds there, and takes what
/// makes no sense for a reason to ask for gigabytes of memory.
const TAIL_BYTES: u64 = 8 * 1024;

/// Tables are read in pieces of this size.
const PIECE_BYTES: usize = 1024 * 1024;

const FILE_NAME: &str = "SEAL";
const MAGIC: &[u8; 8] = b"PLseal01";
const CHECKSUM_BYTES: usize = 16;
const TABLE_BYTES: usize = 48;

/// What is known of the files of an index, so that they can be checked before the library opens them.
///
/// The chain begins at `current`, which has the checksum of the list of tables (the manifest), which has the
/// checksum of each table as it was written; the library looks at neither. So nothing but the tables themselves
/// says which index is right, and the seal, a file beside them, only saves reading them: a table that is in it
/// with the same checksum was written by a process that knew of it or has been read whole, and at the next open
/// its length and its last bytes are enough. All others are read in full. A crash between a flush and the seal
/// that follows it costs that, once, and a seal that is missing, old or damaged costs reading the tables; neither
/// is a reason to build the index anew.
///
/// What is damaged in the middle of a sealed table is found by the checksums of its blocks when it is read. To
/// find most of it sooner, the newest tables are read in full as far as a bounded amount of reading goes.
#[derive(Debug)]
pub(super) struct Seal {
    directory: PathBuf,
    tables: BTreeMap<u64, Sealed>,
}

/// A table that was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sealed {
    checksum: u128,
    len: u64,
    tail: u128,
}

impl Seal {
    /// Checks the files in `directory`, reading up to `checked_bytes` more of them than it must.
    ///
    /// # Errors
    /// `CorruptIndex` if the library must not open them, or what the disk says.
    pub(super) fn check(directory: &Path, checked_bytes: u64) -> Result<Self, EngineError> {
        let known = Self::load(directory).unwrap_or_default();
        let mut seal = Self { directory: directory.into(), tables: BTreeMap::new() };
        let Some(manifest) = Manifest::load(directory)? else { return Ok(seal) };
        let mut budget = checked_bytes;
        // The newest first: they are read most.
        for table in manifest.tables.iter().rev() {
            let sealed = known.get(&table.id).filter(|sealed| sealed.checksum == table.checksum);
            let path = seal.path_of(table);
            let checked = check_table(&path, table, sealed, &mut budget);
            let checked = checked.map_err(|error| match error.kind() {
                ErrorKind::NotFound => damaged(format!("its table {} is missing", table.id)),
                _ => io_error("read", &path)(error),
            })?;
            let Some(checked) = checked else {
                return Err(damaged(format!("its table {} is damaged", table.id)));
            };
            seal.tables.insert(table.id, checked);
        }
        if seal.tables != known {
            seal.save();
        }
        Ok(seal)
    }

    /// Takes up the tables that were made since, after a flush or a compaction.
    pub(super) fn renew(&mut self) {
        // Whatever goes wrong here is found at the next open, which then reads more.
        let Ok(Some(manifest)) = Manifest::load(&self.directory) else { return };
        let mut tables = BTreeMap::new();
        for table in &manifest.tables {
            let sealed = self.tables.get(&table.id).filter(|sealed| sealed.checksum == table.checksum);
            let sealed = sealed.copied().or_else(|| seal_table(&self.path_of(table), table).ok());
            tables.extend(sealed.map(|sealed| (table.id, sealed)));
        }
        if tables != self.tables {
            self.tables = tables;
            self.save();
        }
    }

    fn path_of(&self, table: &Table) -> PathBuf {
        self.directory.join("tables").join(table.id.to_string())
    }

    /// What the last seal says; none if it says nothing that could be believed.
    fn load(directory: &Path) -> Option<BTreeMap<u64, Sealed>> {
        let bytes = fs::read(directory.join(FILE_NAME)).ok()?;
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
        if xxh3_128(body) != u128::from_le_bytes(*checksum) {
            return None;
        }
        let (tables, rest) = body.strip_prefix(MAGIC)?.as_chunks::<TABLE_BYTES>();
        rest.is_empty().then(|| tables.iter().filter_map(decode_table).collect())
    }

    /// Replaces the last seal. If that fails, the next open reads more.
    fn save(&self) {
        let mut bytes = MAGIC.to_vec();
        for (id, sealed) in &self.tables {
            bytes.extend(id.to_le_bytes());
            bytes.extend(sealed.checksum.to_le_bytes());
            bytes.extend(sealed.len.to_le_bytes());
            bytes.extend(sealed.tail.to_le_bytes());
        }
        bytes.extend(xxh3_128(&bytes).to_le_bytes());
        let new = self.directory.join(format!("{FILE_NAME}.new"));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_data()
        });
        let _ = written.and_then(|()| fs::rename(&new, self.directory.join(FILE_NAME)));
    }
}

/// An index that is better built anew, and why.
pub(super) fn damaged(what: impl Into<String>) -> EngineError {
    EngineError::CorruptIndex { what: what.into() }
}

/// Checks a table, in full unless it is `sealed` and the budget is used up; none if it is damaged.
fn check_table(
    path: &Path,
    table: &Table,
    sealed: Option<&Sealed>,
    budget: &mut u64,
) -> io::Result<Option<Sealed>> {
    let found = seal_table(path, table)?;
    if sealed.is_some_and(|sealed| *sealed != found) {
        return Ok(None);
    }
    let affordable = found.len <= *budget;
    if sealed.is_some() && !affordable {
        return Ok(Some(found));
    }
    if sealed.is_some() {
        *budget -= found.len;
    }
    Ok((checksum(path)? == table.checksum).then_some(found))
}

/// What the seal is to say of a table that is as it should be.
fn seal_table(path: &Path, table: &Table) -> io::Result<Sealed> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(Sealed { checksum: table.checksum, len, tail: xxh3_128(&tail) })
}

fn checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.digest128()),
            Ok(read) => hasher.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn decode_table(bytes: &[u8; TABLE_BYTES]) -> Option<(u64, Sealed)> {
    let id = u64::from_le_bytes(*bytes.first_chunk()?);
    let checksum = u128::from_le_bytes(*bytes[8..].first_chunk()?);
    let len = u64::from_le_bytes(*bytes[24..].first_chunk()?);
    let tail = u128::from_le_bytes(*bytes[32..].first_chunk()?);
    Some((id, Sealed { checksum, len, tail }))
}
