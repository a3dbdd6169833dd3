use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pleach_engine::{Direction, EngineError, Revision};

use super::{Backlog, Index, IndexCursor, IndexHome, IndexStats, Pair, ReadAt, is_empty};
use crate::faults::SimDisk;

/// So many flushed runs are merged into one.
const MERGED_RUNS: usize = 4;

/// A home for an index in memory: what was flushed outlives a power cut, the rest does not. It fails and
/// forgets when it is told to.
#[derive(Clone, Debug)]
pub(crate) struct MemoryHome {
    /// Without power nothing is flushed.
    disk: SimDisk,
    state: Arc<Mutex<Home>>,
}

#[derive(Debug, Default)]
struct Home {
    flushed: Versions,
    runs: usize,
    /// Opening it says that it is damaged, until it is set aside.
    damaged: bool,
    /// How many reads until it turns out to be damaged.
    sound_reads: Option<usize>,
    /// How the next flush fails.
    flush_fault: Option<FlushFault>,
    /// How often it was opened: what was opened before is of no use.
    opened: usize,
}

/// How a flush fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushFault {
    /// No space is left.
    Full,
    /// The device reports an error.
    Io,
}

impl MemoryHome {
    /// An empty one, with the power of `disk`.
    pub(crate) fn new(disk: SimDisk) -> Self {
        Self { disk, state: Arc::default() }
    }

    /// Loses everything.
    pub(crate) fn lose(&self) {
        let mut home = self.lock();
        (home.flushed, home.runs) = (Versions::default(), 0);
    }

    /// Lets the next open find it damaged.
    pub(crate) fn damage(&self) {
        self.lock().damaged = true;
    }

    /// Lets it turn out to be damaged after so many more reads.
    pub(crate) fn damage_after(&self, reads: usize) {
        self.lock().sound_reads = Some(reads);
    }

    /// Whether damage was found or waits to be.
    pub(crate) fn is_damaged(&self) -> bool {
        let home = self.lock();
        home.damaged || home.sound_reads.is_some()
    }

    /// Whether flushes were told to fail.
    pub(crate) fn is_failing(&self) -> bool {
        self.lock().flush_fault.is_some()
    }

    /// Lets flushes fail, or succeed again.
    pub(crate) fn fail_flush(&self, fault: Option<FlushFault>) {
        self.lock().flush_fault = fault;
    }

    fn lock(&self) -> MutexGuard<'_, Home> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexHome for MemoryHome {
    fn open(&self, _cache_bytes: u64) -> Result<Arc<dyn Index>, EngineError> {
        let mut home = self.lock();
        if home.damaged {
            return Err(damaged());
        }
        home.opened += 1;
        let (versions, session) = (home.flushed.clone(), home.opened);
        let contents = Contents { versions, ..Contents::default() };
        drop(home);
        Ok(Arc::new(MemoryIndex { home: self.clone(), session, contents: Mutex::new(contents) }))
    }

    fn set_aside(&self) -> Result<Option<PathBuf>, EngineError> {
        let mut home = self.lock();
        // What was opened before must not write into what takes its place.
        *home = Home { opened: home.opened + 1, flush_fault: home.flush_fault, ..Home::default() };
        Ok(None)
    }
}

/// An index in memory: every version of every key, under one lock.
#[derive(Debug)]
pub(crate) struct MemoryIndex {
    home: MemoryHome,
    session: usize,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    versions: Versions,
    active: Stretch,
    sealed: Vec<Stretch>,
    /// Snapshots before this one were given up.
    oldest: Revision,
}

/// Changes that are flushed together.
#[derive(Debug, Default)]
struct Stretch {
    changes: Vec<(Bytes, Revision, Option<Bytes>)>,
    bytes: u64,
}

/// For each key its versions, oldest first; none where it was removed.
#[derive(Clone, Debug, Default)]
struct Versions(BTreeMap<Bytes, Vec<(Revision, Option<Bytes>)>>);

impl Versions {
    fn set(&mut self, key: Bytes, revision: Revision, value: Option<Bytes>) {
        let versions = self.0.entry(key).or_default();
        match versions.last_mut() {
            Some((last, present)) if *last == revision => *present = value,
            _ => versions.push((revision, value)),
        }
    }

    /// Forgets what nobody can see who reads as of `oldest` or later.
    fn forget(&mut self, oldest: Revision) {
        self.0.retain(|_, versions| {
            let visible = versions.iter().rposition(|(revision, _)| *revision <= oldest).unwrap_or(0);
            versions.drain(..visible);
            versions.len() > 1 || versions.iter().any(|(_, value)| value.is_some())
        });
    }
}

fn seen(versions: &[(Revision, Option<Bytes>)], at: ReadAt) -> Option<Bytes> {
    let newest = match at {
        ReadAt::Newest => versions.last(),
        ReadAt::Snapshot(at) => versions.iter().rev().find(|(revision, _)| *revision <= at),
    };
    newest.and_then(|(_, value)| value.clone())
}

fn damaged() -> EngineError {
    EngineError::CorruptIndex { what: "it was told to be".into() }
}

impl MemoryIndex {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a read, and checks that it may be made.
    fn check(&self, contents: &Contents, at: ReadAt) -> Result<(), EngineError> {
        if let ReadAt::Snapshot(at) = at {
            assert!(at >= contents.oldest, "snapshot {at} is read, and {} was the oldest", contents.oldest);
        }
        let mut home = self.home.lock();
        if home.opened != self.session {
            return Ok(());
        }
        match &mut home.sound_reads {
            Some(0) => {
                home.damaged = true;
                Err(damaged())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// What was in a range.
struct Pairs {
    pairs: std::vec::IntoIter<Result<(Bytes, Bytes), EngineError>>,
    current: Option<(Bytes, Bytes)>,
}

impl IndexCursor for Pairs {
    fn next(&mut self) -> Result<Option<Pair<'_>>, EngineError> {
        self.current = self.pairs.next().transpose()?;
        Ok(self.current.as_ref().map(|(key, value)| (&key[..], &value[..])))
    }
}

impl Index for MemoryIndex {
    fn get(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError> {
        let contents = self.lock();
        self.check(&contents, at)?;
        Ok(contents.versions.0.get(key).and_then(|versions| seen(versions, at)))
    }

    fn peek(&self, key: &[u8], at: ReadAt) -> Result<Option<Bytes>, EngineError> {
        self.get(key, at)
    }

    fn cursor(
        &self,
        start: Bound<Bytes>,
        end: Bound<Bytes>,
        at: ReadAt,
        direction: Direction,
    ) -> Box<dyn IndexCursor> {
        let contents = self.lock();
        if let Err(error) = self.check(&contents, at) {
            return Box::new(Pairs { pairs: vec![Err(error)].into_iter(), current: None });
        }
        if is_empty(&start, &end) {
            return Box::new(Pairs { pairs: Vec::new().into_iter(), current: None });
        }
        let range = contents.versions.0.range::<Bytes, _>((start, end));
        let pairs = range.filter_map(|(key, versions)| Some(Ok((key.clone(), seen(versions, at)?))));
        let mut pairs: Vec<_> = pairs.collect();
        if direction == Direction::Backward {
            pairs.reverse();
        }
        Box::new(Pairs { pairs: pairs.into_iter(), current: None })
    }

    fn put(&self, revision: Revision, key: &[u8], value: Option<&[u8]>) {
        let mut contents = self.lock();
        let (key, value) = (Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice));
        contents.active.bytes += (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
        contents.active.changes.push((key.clone(), revision, value.clone()));
        contents.versions.set(key, revision, value);
    }

    fn unsealed_bytes(&self) -> u64 {
        self.lock().active.bytes
    }

    fn seal(&self) {
        let mut contents = self.lock();
        let stretch = std::mem::take(&mut contents.active);
        if !stretch.changes.is_empty() {
            contents.sealed.push(stretch);
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog { sealed: self.lock().sealed.len(), runs: self.home.lock().runs }
    }

    fn stats(&self) -> IndexStats {
        IndexStats { tables: self.backlog().runs as u64, ..IndexStats::default() }
    }

    fn flush(&self, count: usize, oldest: Revision) -> Result<(), EngineError> {
        let mut contents = self.lock();
        let off = self.home.disk.is_off();
        let mut home = self.home.lock();
        let path = PathBuf::from("the index");
        match home.flush_fault {
            Some(FlushFault::Full) => return Err(EngineError::DiskFull { path }),
            None if !off => {}
            _ => {
                home.flush_fault = None;
                let source = std::io::Error::other("the device failed");
                return Err(EngineError::Io { action: "use", path, source });
            }
        }
        assert_eq!(home.opened, self.session, "an index that was closed is flushed");
        let count = count.min(contents.sealed.len());
        if count == 0 {
            return Ok(());
        }
        for (key, revision, value) in contents.sealed.drain(..count).flat_map(|stretch| stretch.changes) {
            home.flushed.set(key, revision, value);
        }
        home.flushed.forget(oldest);
        home.runs += 1;
        contents.versions.forget(oldest);
        contents.oldest = contents.oldest.max(oldest);
        Ok(())
    }

    fn compact(&self, oldest: Revision, _is_busy: bool) -> Result<bool, EngineError> {
        let mut contents = self.lock();
        let mut home = self.home.lock();
        let is_due = home.runs >= MERGED_RUNS;
        if is_due {
            home.runs = 0;
            home.flushed.forget(oldest);
            contents.versions.forget(oldest);
            contents.oldest = contents.oldest.max(oldest);
        }
        Ok(is_due)
    }
}
