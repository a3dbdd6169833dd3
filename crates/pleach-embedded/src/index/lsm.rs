use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, Guard, Memtable, SequenceNumberCounter};
use pleach_engine::{EngineError, Revision};
use xxhash_rust::xxh3::xxh3_128;

use super::{Backlog, Index, IndexChange, IndexIter, ReadAt};
use crate::disk::io_error;

/// The index as a log-structured merge tree.
///
/// A revision `r` is written under sequence number `r << 10`; flushes and compactions take the numbers
/// after it. A read as of `r` uses the last number before `r + 1`: with an earlier one, an idle tree would go
/// on reading as of before its last flush and compaction, several times slower.
pub(crate) struct LsmIndex {
    doubt: Doubt,
    tree: AnyTree,
    numbers: SequenceNumberCounter,
    strategy: Arc<Leveled>,
    /// Sealed memtables, held until after their flush: freeing one takes long, and must not happen inside the
    /// tree's lock, which every read takes.
    sealed: Mutex<Vec<Arc<Memtable>>>,
}

const REVISION_SHIFT: u32 = 10;

/// A read with this number sees everything.
const NEWEST: u64 = (1 << 63) - 1;

impl LsmIndex {
    /// Opens the tree in `directory`, or makes one.
    ///
    /// # Errors
    /// `CorruptIndex`, also where the library panics on what it finds.
    pub(crate) fn open(directory: &Path, cache_bytes: u64) -> Result<Self, EngineError> {
        let doubt = Doubt(directory.join("DAMAGED").into());
        if doubt.0.exists() {
            return Err(EngineError::CorruptIndex { what: "it was found damaged before".into() });
        }
        check_manifest(directory)?;
        let numbers = SequenceNumberCounter::default();
        let config = Config::new(directory, numbers.clone(), SequenceNumberCounter::default())
            .use_cache(Arc::new(Cache::with_capacity_bytes(cache_bytes)));
        let opened = catch_unwind(AssertUnwindSafe(|| config.open()));
        let tree = match opened {
            Ok(tree) => tree.map_err(|error| index_error(&error))?,
            Err(_) => return Err(EngineError::CorruptIndex { what: "its files make no sense".into() }),
        };
        numbers.fetch_max(tree.get_highest_persisted_seqno().map_or(1, |highest| highest + 1));
        let strategy = Arc::new(Leveled::default());
        Ok(Self { doubt, tree, numbers, strategy, sealed: Mutex::default() })
    }
}

impl fmt::Debug for LsmIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmIndex").finish_non_exhaustive()
    }
}

impl Index for LsmIndex {
    fn get(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError> {
        let value = self.tree.get(key, number(at)).map_err(|error| self.doubt.raise(&error))?;
        Ok(value.map(Bytes::from))
    }

    fn range(&self, start: Bound<Bytes>, end: Bound<Bytes>, at: ReadAt) -> IndexIter {
        let items = self.tree.range::<Bytes, _>((start, end), number(at), None);
        let doubt = self.doubt.clone();
        Box::new(items.map(move |item| {
            let (key, value) = item.into_inner().map_err(|error| doubt.raise(&error))?;
            Ok((key.into(), value.into()))
        }))
    }

    fn write(&self, revision: Revision, changes: Vec<IndexChange>) {
        let number = revision.get() << REVISION_SHIFT;
        // A flush or compaction that begins from now on must come after these changes.
        self.numbers.fetch_max(number + 1);
        for change in changes {
            match change {
                IndexChange::Insert(key, value) => self.tree.insert(key, value, number),
                IndexChange::Remove(key) => self.tree.remove(key, number),
            };
        }
    }

    fn unsealed_bytes(&self) -> u64 {
        self.tree.active_memtable().size()
    }

    fn seal(&self) {
        let sealed = self.tree.rotate_memtable();
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner).extend(sealed);
    }

    fn backlog(&self) -> Backlog {
        Backlog { sealed: self.tree.sealed_memtable_count(), runs: self.tree.l0_run_count() }
    }

    fn flush(&self, oldest: Revision) -> Result<(), EngineError> {
        let lock = self.tree.get_flush_lock();
        let flushing = self.sealed.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.tree.flush(&lock, watermark(oldest)).map_err(|error| self.doubt.raise(&error))?;
        drop(lock);
        let flushed: Vec<_> = {
            let mut sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
            sealed.drain(..flushing).collect()
        };
        drop(flushed);
        Ok(())
    }

    fn compact(&self, oldest: Revision) -> Result<(), EngineError> {
        let strategy = Arc::clone(&self.strategy);
        self.tree.compact(strategy, watermark(oldest)).map_err(|error| self.doubt.raise(&error))
    }
}

/// A file that says the index was found damaged, so that the next open builds it anew.
#[derive(Clone)]
struct Doubt(Arc<Path>);

impl Doubt {
    /// Says what went wrong, and leaves the file if that was damage.
    fn raise(&self, error: &lsm_tree::Error) -> EngineError {
        let error = index_error(error);
        if let EngineError::CorruptIndex { what } = &error {
            // Without the file the next open meets the same damage, and says so again.
            let _ = fs::write(&self.0, what);
        }
        error
    }
}

/// The tree's own list of its files has a checksum that the library does not look at. A list that was changed
/// would make it forget keys, and delete the files they are in: so this comes before it opens anything.
fn check_manifest(directory: &Path) -> Result<(), EngineError> {
    let damaged = |what: &str| EngineError::CorruptIndex { what: what.into() };
    let current = match fs::read(directory.join("current")) {
        Ok(current) => current,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("read", directory)(error)),
    };
    let (Some(id), Some(checksum)) = (current.first_chunk::<8>(), current.get(8..24)) else {
        return Err(damaged("it does not say which list of files is the current one"));
    };
    let name = format!("v{}", u64::from_le_bytes(*id));
    let list = fs::read(directory.join(name)).map_err(|_| damaged("its list of files is missing"))?;
    if xxh3_128(&list).to_le_bytes() != checksum {
        return Err(damaged("the checksum of its list of files does not match"));
    }
    Ok(())
}

fn number(at: ReadAt) -> u64 {
    match at {
        ReadAt::Newest => NEWEST,
        ReadAt::Snapshot(revision) => watermark(revision),
    }
}

/// The last number that belongs to `revision`.
fn watermark(revision: Revision) -> u64 {
    ((revision.get() + 1) << REVISION_SHIFT) - 1
}

fn index_error(error: &lsm_tree::Error) -> EngineError {
    match error {
        lsm_tree::Error::Io(source) => {
            let source = std::io::Error::new(source.kind(), source.to_string());
            io_error("use", Path::new("the index"))(source)
        }
        other => EngineError::CorruptIndex { what: other.to_string() },
    }
}
