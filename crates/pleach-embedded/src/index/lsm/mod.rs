//! The index as a log-structured merge tree: a part in memory, and tables of sorted versions on the disk, in
//! levels that grow tenfold.
//!
//! Readers and the writer never wait for the disk work of a flush or a merge: both make their tables and the new
//! list of tables on the side, and then exchange one pointer. Every byte that is read is checked against a
//! checksum, and what does not match is a reason to build the index anew from the log.

mod arena;
mod block;
mod block_cache;
mod counters;
mod cursor;
mod filter;
mod levels;
mod manifest;
mod memtable;
mod merge;
mod source;
mod table;
mod table_writer;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use pleach_engine::{Direction, EngineError, Revision};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::block_cache::{BlockCache, block_cache};
use self::counters::Counters;
use self::cursor::{Merged, VisibleCursor};
use self::levels::{Choice, LEVELS, Levels};
use self::manifest::{Manifest, remove_leftovers};
use self::memtable::Memtable;
use self::source::{MemorySource, Source, TableSource};
use self::table::Table;
use self::table_writer::TableWriter;
use super::{Backlog, Index, IndexCursor, IndexStats, LevelStats, Pair, ReadAt, is_empty};
use crate::disk::{Disk, io_error};

/// How much of the tables is read and checked at every open, the newest first. What is damaged elsewhere is found
/// when it is read.
const CHECKED_BYTES: u64 = 16 * 1024 * 1024;

/// Says that the index was found damaged, so that the next open builds it anew.
const DAMAGED_FILE_NAME: &str = "DAMAGED";

/// The index of a store.
pub(crate) struct LsmIndex {
    shared: Arc<Shared>,
    /// What readers read. Nobody holds this lock for longer than it takes to copy or exchange a pointer.
    view: RwLock<Arc<View>>,
    /// Held while the list of tables is changed.
    listing: Mutex<()>,
    /// Held while a memtable is flushed.
    flushing: Mutex<()>,
    /// Held while tables are merged; where the last merge of each level ended.
    merging: Mutex<[Bytes; LEVELS]>,
    /// Flushed memtables, until nobody reads them: freeing one takes long, and no reader shall have to do it.
    retired: Mutex<Vec<Arc<Memtable>>>,
}

/// What the parts of an index have in common.
struct Shared {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    seed: u64,
    next_id: AtomicU64,
    sizes: Sizes,
    cache: BlockCache,
    counters: Counters,
    /// Whether merges are to be given up.
    stopped: AtomicBool,
}

/// How large things become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A table that has grown past this is followed by another.
    pub(crate) table_bytes: u64,
    /// The second level; each further one is ten times as large.
    pub(crate) base_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { table_bytes: 32 * 1024 * 1024, base_bytes: 128 * 1024 * 1024 }
    }
}

/// The hash of a key.
#[derive(Clone, Copy, Debug)]
struct Hash(u64);

/// Whether what is read is likely to be read again.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Cached,
    Once,
}

/// Where everything is at one moment.
#[derive(Clone, Debug)]
struct View {
    active: Arc<Memtable>,
    /// The newest first.
    sealed: Vec<Arc<Memtable>>,
    levels: Levels,
}

impl LsmIndex {
    /// Opens the index in `directory`, or makes one.
    ///
    /// # Errors
    /// `CorruptIndex`, or what the disk says.
    pub(crate) fn open(disk: Arc<dyn Disk>, directory: &Path, cache_bytes: u64) -> Result<Self, EngineError> {
        Self::open_checking(disk, directory, cache_bytes, CHECKED_BYTES)
    }

    /// Opens the index in `directory`, or makes one, after checking up to `checked_bytes` of its tables.
    ///
    /// # Errors
    /// As [`LsmIndex::open`].
    pub(crate) fn open_checking(
        disk: Arc<dyn Disk>,
        directory: &Path,
        cache_bytes: u64,
        checked_bytes: u64,
    ) -> Result<Self, EngineError> {
        Self::open_sized(disk, directory, cache_bytes, checked_bytes, Sizes::default())
    }

    pub(crate) fn open_sized(
        disk: Arc<dyn Disk>,
        directory: &Path,
        cache_bytes: u64,
        checked_bytes: u64,
        sizes: Sizes,
    ) -> Result<Self, EngineError> {
        disk.create_directory(directory).map_err(io_error("create", directory))?;
        let names = disk.list(directory).map_err(io_error("list", directory))?;
        if names.iter().any(|name| name == DAMAGED_FILE_NAME) {
            return Err(damaged("it was found damaged before"));
        }
        let manifest = match Manifest::load(&*disk, directory)? {
            Some(manifest) => manifest,
            None if names.iter().any(|name| !manifest::is_temporary(name)) => {
                return Err(damaged("its list of tables is missing"));
            }
            None => {
                let manifest = Manifest { seed: crate::random::word()?, next_id: 1, ..Manifest::default() };
                manifest.save(&*disk, directory).map_err(|unsaved| unsaved.error)?;
                manifest
            }
        };
        let levels = open_tables(&disk, directory, &manifest, checked_bytes)?;
        let next_id = remove_leftovers(&disk, directory, &manifest);
        let shared = Shared {
            disk,
            directory: directory.into(),
            seed: manifest.seed,
            next_id: AtomicU64::new(next_id),
            sizes,
            cache: block_cache(cache_bytes),
            counters: Counters::default(),
            stopped: AtomicBool::new(false),
        };
        let view = View { active: Arc::default(), sealed: Vec::new(), levels };
        Ok(Self {
            shared: Arc::new(shared),
            view: RwLock::new(Arc::new(view)),
            listing: Mutex::default(),
            flushing: Mutex::default(),
            merging: Mutex::default(),
            retired: Mutex::default(),
        })
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change_view(&self, change: impl FnOnce(&View) -> View) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let new = Arc::new(change(&view));
        let old = std::mem::replace(&mut *view, new);
        drop(view);
        drop(old);
    }

    /// Takes other levels into use, with `new` tables, first on the disk and then for readers, without `flushed`.
    fn install(
        &self,
        new: &[Arc<Table>],
        levels: impl FnOnce(&Levels) -> Levels,
        flushed: Option<&Arc<Memtable>>,
    ) -> Result<(), EngineError> {
        let _listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        let levels = levels(&self.view().levels);
        let shared = &*self.shared;
        let manifest = Manifest::of(shared.seed, shared.next_id.load(Ordering::Acquire), &levels);
        if let Err(unsaved) = manifest.save(&*shared.disk, &shared.directory) {
            // What no list names would take space for nothing.
            if !unsaved.replaced {
                new.iter().for_each(|table| table.set_obsolete());
            }
            return Err(unsaved.error);
        }
        self.change_view(|view| {
            let stays = |memtable: &&Arc<Memtable>| !flushed.is_some_and(|gone| Arc::ptr_eq(gone, memtable));
            let sealed = view.sealed.iter().filter(stays).cloned().collect();
            View { active: Arc::clone(&view.active), sealed, levels }
        });
        Ok(())
    }

    fn flush_one(&self, memtable: &Arc<Memtable>, oldest: Revision) -> Result<(), EngineError> {
        let counters = &self.shared.counters;
        let table = merge::flush(&self.shared, memtable, oldest.get())?.map(Arc::new);
        let len = table.as_ref().map_or(0, |table| table.info.len);
        let add = |levels: &Levels| match &table {
            Some(table) => levels.with_flushed(Arc::clone(table)),
            None => levels.clone(),
        };
        self.install(table.as_slice(), add, Some(memtable))?;
        counters.flushes.add(1);
        counters.flushed_bytes.add(len);
        Ok(())
    }

    fn merge_chosen(&self, choice: &Choice, oldest: Revision) -> Result<(), EngineError> {
        let counters = &self.shared.counters;
        let chosen = || choice.upper.iter().chain(&choice.lower);
        // A table that meets nothing just moves down.
        let moves = choice.upper.len() == 1 && choice.lower.is_empty() && !choice.is_last;
        let merged =
            if moves { choice.upper.clone() } else { merge::merge(&self.shared, choice, oldest.get())? };
        let bytes = |tables: &[Arc<Table>]| tables.iter().map(|table| table.info.len).sum::<u64>();
        let written = if moves { 0 } else { bytes(&merged) };
        let new = if moves { &[][..] } else { &merged[..] };
        self.install(new, |levels| levels.with_merged(choice, merged.clone()), None)?;
        if !moves {
            chosen().for_each(|table| table.set_obsolete());
            counters.merge_read_bytes.add(bytes(&choice.upper) + bytes(&choice.lower));
            counters.merge_written_bytes.add(written);
        }
        counters.merges.add(1);
        Ok(())
    }

    /// Frees memtables that nobody reads any more.
    fn free_retired(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let (free, read): (Vec<_>, Vec<_>) =
            retired.drain(..).partition(|memtable| Arc::strong_count(memtable) == 1);
        *retired = read;
        drop(retired);
        drop(free);
    }

    fn find(&self, key: &[u8], at: u64, reading: Reading) -> Result<Option<Bytes>, EngineError> {
        let (view, shared) = (self.view(), &*self.shared);
        let (hash, counters) = (shared.hash(key), &shared.counters);
        counters.gets.add(1);
        for memtable in std::iter::once(&view.active).chain(&view.sealed) {
            if let Some(version) = memtable.get(hash, key, at) {
                return Ok(version.value);
            }
        }
        for table in view.levels.candidates(key) {
            if !table.may_contain(hash)? {
                counters.filter_skips.add(1);
                continue;
            }
            counters.tables_looked_at.add(1);
            if let Some(value) = table.get(key, at, shared, reading)? {
                return Ok(value);
            }
            counters.filter_false_passes.add(1);
        }
        Ok(None)
    }

    fn visible(
        &self,
        range: (Bound<Bytes>, Bound<Bytes>),
        at: u64,
        direction: Direction,
    ) -> Result<VisibleCursor, EngineError> {
        let (view, shared) = (self.view(), &self.shared);
        let mut sources = Vec::new();
        if !is_empty(&range.0, &range.1) {
            for memtable in std::iter::once(&view.active).chain(&view.sealed) {
                if !memtable.is_empty() {
                    let source = MemorySource::new(memtable, range.clone(), direction, at);
                    sources.push(Source::Memory(source));
                }
            }
            let single = view.levels.0[0].iter().map(|table| Arc::new(vec![Arc::clone(table)]));
            let levels = view.levels.0[1..].iter().filter(|level| !level.is_empty()).cloned();
            for tables in single.chain(levels) {
                let source = TableSource::new(shared, &tables, &range, direction, Reading::Cached)?;
                sources.push(Source::Tables(source));
            }
        }
        let end = match direction {
            Direction::Forward => range.1,
            Direction::Backward => range.0,
        };
        Ok(VisibleCursor::new(Merged::new(sources, direction), at, direction, end))
    }
}

impl fmt::Debug for LsmIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmIndex").field("directory", &self.shared.directory).finish_non_exhaustive()
    }
}

impl Index for LsmIndex {
    fn get(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError> {
        self.find(key, number(at), Reading::Cached).map_err(|error| self.shared.doubt(error))
    }

    fn peek(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError> {
        self.find(key, number(at), Reading::Once).map_err(|error| self.shared.doubt(error))
    }

    fn cursor(
        &self,
        start: Bound<Bytes>,
        end: Bound<Bytes>,
        at: ReadAt,
        direction: Direction,
    ) -> Box<dyn IndexCursor> {
        let cursor = self.visible((start, end), number(at), direction);
        Box::new(Checked { shared: Arc::clone(&self.shared), cursor: Some(cursor) })
    }

    fn put(&self, revision: Revision, key: &[u8], value: Option<&[u8]>) {
        let active = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner).active);
        active.write(self.shared.hash(key), key, revision.get(), value);
    }

    fn unsealed_bytes(&self) -> u64 {
        self.view.read().unwrap_or_else(PoisonError::into_inner).active.bytes()
    }

    fn seal(&self) {
        self.change_view(|view| {
            let mut view = view.clone();
            if !view.active.is_empty() {
                view.sealed.insert(0, std::mem::take(&mut view.active));
            }
            view
        });
    }

    fn backlog(&self) -> Backlog {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        Backlog { sealed: view.sealed.len(), runs: view.levels.0[0].len() }
    }

    fn flush(&self, count: usize, oldest: Revision) -> Result<(), EngineError> {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let sealed = self.view().sealed.clone();
        // The oldest first, so that what is on the disk is always a beginning of what was written.
        for memtable in sealed.into_iter().rev().take(count) {
            self.flush_one(&memtable, oldest).map_err(|error| self.shared.doubt(error))?;
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(memtable);
        }
        self.free_retired();
        Ok(())
    }

    fn compact(&self, oldest: Revision, is_busy: bool) -> Result<bool, EngineError> {
        let mut cursors = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let choice = self.view().levels.choose(self.shared.sizes.base_bytes, &cursors, is_busy);
        let Some(choice) = choice else {
            drop(cursors);
            self.free_retired();
            return Ok(false);
        };
        match self.merge_chosen(&choice, oldest) {
            Err(EngineError::Closed) => return Ok(false),
            merged => merged.map_err(|error| self.shared.doubt(error))?,
        }
        let reached = choice.upper.iter().map(|table| &table.info.first).max();
        cursors[choice.from] = reached.cloned().unwrap_or_default();
        drop(cursors);
        self.free_retired();
        Ok(true)
    }

    fn stop_merging(&self) {
        self.shared.stopped.store(true, Ordering::Release);
    }

    fn stats(&self) -> IndexStats {
        let (view, counters) = (self.view(), &self.shared.counters);
        let infos = || view.levels.tables().map(|table| &table.info);
        let level = |level: &Arc<Vec<Arc<Table>>>| LevelStats {
            tables: level.len() as u64,
            bytes: level.iter().map(|table| table.info.len).sum(),
        };
        IndexStats {
            flushes: counters.flushes.total(),
            flushed_bytes: counters.flushed_bytes.total(),
            merges: counters.merges.total(),
            merge_read_bytes: counters.merge_read_bytes.total(),
            merge_written_bytes: counters.merge_written_bytes.total(),
            block_hits: counters.block_hits.total(),
            block_reads: counters.block_reads.total(),
            filter_skips: counters.filter_skips.total(),
            filter_false_passes: counters.filter_false_passes.total(),
            gets: counters.gets.total(),
            tables_looked_at: counters.tables_looked_at.total(),
            tables: infos().count() as u64,
            table_bytes: infos().map(|info| info.len).sum(),
            entries: infos().map(|info| info.versions).sum(),
            tombstones: infos().map(|info| info.removals).sum(),
            memory_bytes: view.active.bytes() + view.sealed.iter().map(|sealed| sealed.bytes()).sum::<u64>(),
            levels: view.levels.0.iter().map(level).collect(),
            pending_merge_bytes: view.levels.pending_bytes(self.shared.sizes.base_bytes),
        }
    }
}

impl Shared {
    fn hash(&self, key: &[u8]) -> Hash {
        Hash(xxh3_64_with_seed(key, self.seed))
    }

    fn create_table(&self) -> Result<TableWriter, EngineError> {
        let id = self.next_id.fetch_add(1, Ordering::AcqRel);
        TableWriter::create(&self.disk, &self.directory, id)
    }

    /// Leaves a note if `error` is damage.
    fn doubt(&self, error: EngineError) -> EngineError {
        if let EngineError::CorruptIndex { what } = &error {
            // Without it the next open meets the same damage, and says so again.
            let note = self.disk.create(&self.directory.join(DAMAGED_FILE_NAME));
            let _ = note.and_then(|file| file.write_at(what.as_bytes(), 0));
        }
        error
    }
}

/// A cursor that leaves a note when it finds damage.
struct Checked {
    shared: Arc<Shared>,
    /// None after an error, which ends it.
    cursor: Option<Result<VisibleCursor, EngineError>>,
}

impl IndexCursor for Checked {
    fn next(&mut self) -> Result<Option<Pair<'_>>, EngineError> {
        if let Some(Err(_)) = &self.cursor {
            let failed = self.cursor.take().map_or(Ok(None), |failed| failed.map(|_| None));
            return failed.map_err(|error| self.shared.doubt(error));
        }
        match &mut self.cursor {
            Some(Ok(cursor)) => cursor.next().map_err(|error| self.shared.doubt(error)),
            _ => Ok(None),
        }
    }
}

fn open_tables(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    manifest: &Manifest,
    mut checked_bytes: u64,
) -> Result<Levels, EngineError> {
    let mut levels = Levels::default();
    let mut newest = Vec::new();
    for (level, infos) in levels.0.iter_mut().zip(&manifest.levels) {
        let open = |info: &table::TableInfo| Table::open(disk, directory, info.clone()).map(Arc::new);
        *level = Arc::new(infos.iter().map(open).collect::<Result<_, _>>()?);
        newest.extend(level.iter().cloned());
    }
    newest.sort_by_key(|table| std::cmp::Reverse(table.info.id));
    for table in newest {
        let Some(left) = checked_bytes.checked_sub(table.info.len) else { continue };
        checked_bytes = left;
        table.check()?;
    }
    Ok(levels)
}

fn number(at: ReadAt) -> u64 {
    match at {
        ReadAt::Newest => u64::MAX,
        ReadAt::Snapshot(revision) => revision.get(),
    }
}

/// An index that is better built anew, and why.
fn damaged(what: impl Into<String>) -> EngineError {
    EngineError::CorruptIndex { what: what.into() }
}
