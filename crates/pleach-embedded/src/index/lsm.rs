mod manifest;
mod seal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, Guard, Memtable, SequenceNumberCounter};
use pleach_engine::{EngineError, Revision};

use self::seal::{CHECKED_BYTES, Seal};
use super::{Backlog, Index, IndexChange, IndexIter, IndexStats, LevelStats, ReadAt};
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
    /// What is known of its files.
    seal: Mutex<Seal>,
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
        Self::open_checking(directory, cache_bytes, CHECKED_BYTES)
    }

    /// Opens the tree in `directory`, or makes one, after reading `checked_bytes` of its tables more than it must.
    ///
    /// # Errors
    /// As [`LsmIndex::open`].
    pub(crate) fn open_checking(
        directory: &Path,
        cache_bytes: u64,
        checked_bytes: u64,
    ) -> Result<Self, EngineError> {
        let doubt = Doubt(directory.join("DAMAGED").into());
        if doubt.0.exists() {
            return Err(EngineError::CorruptIndex { what: "it was found damaged before".into() });
        }
        // The library believes its files, and deletes those that its list does not have: so this comes first.
        let seal = Seal::check(directory, checked_bytes)?;
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
        let seal = Mutex::new(seal);
        Ok(Self { doubt, tree, numbers, strategy, sealed: Mutex::default(), seal })
    }

    fn renew_seal(&self) {
        self.seal.lock().unwrap_or_else(PoisonError::into_inner).renew();
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
        self.renew_seal();
        Ok(())
    }

    fn compact(&self, oldest: Revision) -> Result<(), EngineError> {
        let strategy = Arc::clone(&self.strategy);
        self.tree.compact(strategy, watermark(oldest)).map_err(|error| self.doubt.raise(&error))?;
        self.renew_seal();
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let count = |number: usize| number as u64;
        let level =
            |at| self.tree.level_table_count(at).map(|tables| LevelStats { tables: count(tables), bytes: 0 });
        IndexStats {
            tables: count(self.tree.table_count()),
            table_bytes: self.tree.disk_space(),
            entries: count(self.tree.approximate_len()),
            tombstones: self.tree.tombstone_count(),
            memory_bytes: self.tree.version_memtable_size_sum(),
            levels: (0..).map_while(level).collect(),
            ..IndexStats::default()
        }
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
