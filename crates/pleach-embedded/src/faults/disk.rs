use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// A disk in memory that fails when it is told to, and forgets what was not synced when its power is cut.
///
/// A failed sync loses the writes that it should have made durable, and the next one succeeds without it: what some
/// kernels do. Until the power is cut, readers still see everything that was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimDisk {
    state: Arc<Mutex<State>>,
    /// How many writes were begun, also those that wait for [`SimDisk::hold`].
    writes: Arc<AtomicUsize>,
}

/// Keeps the disk from doing anything while it lives.
pub(crate) struct Hold<'a> {
    _state: MutexGuard<'a, State>,
}

/// What the disk is asked to do, as far as it changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskOp {
    Create,
    Write,
    Sync,
    Truncate,
    Rename,
    Remove,
    SyncDirectory,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The device reports an error.
    Io,
    /// No space is left; a write has written a part.
    Full,
    /// The thread that asked panics, which no disk should make it do.
    Panic,
}

/// What of the unsynced is still there after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survival {
    /// Nothing.
    Synced,
    /// Everything up to some moment, different for each file; the last write may be torn.
    Prefix(u64),
    /// Any part of any write, and any truncation.
    Any(u64),
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    /// Which operations fail: the operation or any, how many of it still succeed, and how the one after fails.
    rules: Vec<(Option<DiskOp>, usize, Fault)>,
    full: bool,
    /// How many operations there were, and after how many the power is cut.
    operations: usize,
    cut_after: Option<usize>,
    off: bool,
    /// How often the power was cut: files opened before are of no use after.
    cuts: usize,
}

#[derive(Debug, Default)]
struct Contents {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl SimDisk {
    /// Lets the operation after the next `skip` of its kind fail, once.
    pub(crate) fn fail(&self, op: DiskOp, skip: usize, fault: Fault) {
        self.lock().rules.push((Some(op), skip, fault));
    }

    /// Lets the operation after the next `skip` of any kind fail, once.
    pub(crate) fn fail_any(&self, skip: usize, fault: Fault) {
        self.lock().rules.push((None, skip, fault));
    }

    /// Whether everything failed that should.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().rules.is_empty()
    }

    /// Leaves no space, or some again.
    pub(crate) fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Cuts the power during the operation after the next `count`.
    pub(crate) fn cut_power_after(&self, count: usize) {
        let mut state = self.lock();
        state.cut_after = Some(state.operations + count);
    }

    /// Whether the power was cut.
    pub(crate) fn is_off(&self) -> bool {
        self.lock().off
    }

    /// Whether nothing was told to fail any more.
    pub(crate) fn is_calm(&self) -> bool {
        let state = self.lock();
        state.rules.is_empty() && !state.full && state.cut_after.is_none() && !state.off
    }

    /// Lets `look` read what the disk holds, also if the power was cut.
    pub(crate) fn peek<T>(&self, look: impl FnOnce() -> T) -> T {
        let off = std::mem::take(&mut self.lock().off);
        let seen = look();
        self.lock().off = off;
        seen
    }

    /// A number that follows from everything on the disk.
    pub(crate) fn fingerprint(&self) -> u64 {
        let state = self.lock();
        let mut hasher = crc32fast::Hasher::new();
        for (path, id) in &state.names {
            hasher.update(path.file_name().unwrap_or_default().as_encoded_bytes());
            hasher.update(&state.files[*id].live);
        }
        u64::from(hasher.finalize()) << 32 | state.operations as u64
    }

    /// Turns the power off and on again.
    pub(crate) fn power_cycle(&self, survival: Survival) {
        let mut state = self.lock();
        state.lose_power(survival);
        (state.rules, state.full, state.cut_after, state.off) = (Vec::new(), false, None, false);
        state.cuts += 1;
    }

    /// Lets everyone who asks for something wait.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _state: self.lock() }
    }

    /// How many writes were begun.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.lock().names.contains_key(path)
    }

    /// The bytes of a file, as readers see them.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.lock();
        state.files[state.names[path]].live.clone()
    }

    /// Puts a file on the disk, synced.
    pub(crate) fn place(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock();
        let id = state.files.len();
        state.files.push(Contents { live: bytes.into(), durable: bytes.into(), unsynced: Vec::new() });
        state.names.insert(path.into(), id);
        state.durable_names.insert(path.into(), id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: usize) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), id, cuts: self.lock().cuts })
    }
}

fn device_error() -> io::Error {
    const EIO: i32 = 5;
    io::Error::from_raw_os_error(EIO)
}

impl State {
    /// Counts an operation and decides how it fails; none if it does not.
    fn begin(&mut self, op: DiskOp) -> Option<io::Error> {
        if self.off {
            return Some(device_error());
        }
        self.operations += 1;
        if self.cut_after.is_some_and(|after| self.operations > after) {
            self.off = true;
            return Some(device_error());
        }
        let due = self.rules.iter_mut().position(|(kind, skip, _)| {
            let meant = kind.is_none_or(|kind| kind == op);
            let due = meant && *skip == 0;
            *skip = skip.saturating_sub(usize::from(meant));
            due
        });
        match due.map(|at| self.rules.remove(at).2) {
            Some(Fault::Io) => Some(device_error()),
            Some(Fault::Full) => Some(io::ErrorKind::StorageFull.into()),
            Some(Fault::Panic) => panic!("the disk was told to panic"),
            None if self.full && matches!(op, DiskOp::Write | DiskOp::Create) => {
                Some(io::ErrorKind::StorageFull.into())
            }
            None => None,
        }
    }

    fn check(&mut self, op: DiskOp) -> io::Result<()> {
        self.begin(op).map_or(Ok(()), Err)
    }

    fn rename_all(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
        match change {
            NameChange::Set(path, id) => drop(names.insert(path.clone(), *id)),
            NameChange::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            NameChange::Remove(path) => drop(names.remove(path)),
        }
    }

    fn change_name(&mut self, change: NameChange) {
        Self::rename_all(&mut self.names, &change);
        self.unsynced_names.push(change);
    }

    fn lose_power(&mut self, survival: Survival) {
        let mut dice = Dice(match survival {
            Survival::Synced => 1,
            Survival::Prefix(seed) | Survival::Any(seed) => seed.wrapping_mul(2).wrapping_add(1),
        });
        for file in &mut self.files {
            let unsynced = std::mem::take(&mut file.unsynced);
            let survivors = match survival {
                Survival::Synced => Vec::new(),
                Survival::Prefix(_) => prefix(unsynced, &mut dice),
                Survival::Any(_) => unsynced.iter().flat_map(|change| parts(change, &mut dice)).collect(),
            };
            survivors.iter().for_each(|change| change.apply(&mut file.durable));
            file.live = file.durable.clone();
        }
        // Names are changed in order, as by a file system with a journal.
        let changes = std::mem::take(&mut self.unsynced_names);
        let kept = if survival == Survival::Synced { 0 } else { dice.below(changes.len() + 1) };
        changes[..kept].iter().for_each(|change| Self::rename_all(&mut self.durable_names, change));
        self.names = self.durable_names.clone();
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, written) => {
                let end = offset + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(written);
            }
            Self::Truncate(len) => bytes.truncate(*len),
        }
    }
}

fn prefix(mut changes: Vec<Change>, dice: &mut Dice) -> Vec<Change> {
    changes.truncate(dice.below(changes.len() + 1));
    if let Some(Change::Write(_, bytes)) = changes.last_mut() {
        let len = bytes.len();
        bytes.truncate(len - if dice.below(2) == 0 { 0 } else { dice.below(len + 1) });
    }
    changes
}

/// The parts of a change that a coin is in favour of.
fn parts(change: &Change, dice: &mut Dice) -> Vec<Change> {
    const PART_BYTES: usize = 64;
    let all = match change {
        Change::Write(offset, bytes) => {
            let part = |(at, part): (usize, &[u8])| Change::Write(offset + at * PART_BYTES, part.into());
            bytes.chunks(PART_BYTES).enumerate().map(part).collect()
        }
        Change::Truncate(_) => vec![change.clone()],
    };
    all.into_iter().filter(|_| dice.below(2) == 0).collect()
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("thirty-one bits") % limit
    }
}

impl Disk for SimDisk {
    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        let inside = state.names.keys().filter(|path| path.parent() == Some(directory));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        // A real one: the lock and the index are no part of this disk.
        std::fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        state.check(DiskOp::Create)?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = state.files.len();
        state.files.push(Contents::default());
        state.change_name(NameChange::Set(path.into(), id));
        drop(state);
        Ok(self.file(id))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let found = self.lock().names.get(path).copied();
        found.map(|id| self.file(id)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.check(DiskOp::Rename)?;
        state.change_name(NameChange::Rename(from.into(), to.into()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if !state.off && !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.check(DiskOp::Remove)?;
        state.change_name(NameChange::Remove(path.into()));
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.check(DiskOp::SyncDirectory)?;
        let inside = |change: &NameChange| match change {
            NameChange::Set(name, _) | NameChange::Rename(_, name) | NameChange::Remove(name) => {
                name.parent() == Some(path)
            }
        };
        let (synced, rest): (Vec<_>, _) =
            std::mem::take(&mut state.unsynced_names).into_iter().partition(inside);
        synced.iter().for_each(|change| State::rename_all(&mut state.durable_names, change));
        state.unsynced_names = rest;
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: usize,
    cuts: usize,
}

impl SimFile {
    /// The disk, unless the power was cut since the file was opened.
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.lock();
        if state.off || state.cuts != self.cuts { Err(device_error()) } else { Ok(state) }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state()?;
        let live = &state.files[self.id].live;
        let rest = &live[usize::try_from(offset).expect("small").min(live.len())..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.writes.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state()?;
        let error = state.begin(DiskOp::Write);
        // A write that fails has written something, and a whole frame perhaps.
        let written = if error.is_some() { bytes.len() * 3 / 4 } else { bytes.len() };
        let change = Change::Write(usize::try_from(offset).expect("small"), bytes[..written].into());
        let file = &mut state.files[self.id];
        change.apply(&mut file.live);
        file.unsynced.push(change);
        error.map_or(Ok(()), Err)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let error = state.begin(DiskOp::Sync);
        if state.off {
            return Err(device_error());
        }
        let file = &mut state.files[self.id];
        if let Some(error) = error {
            // The length of a file is the file system's own: it forgets what was written, not that.
            file.unsynced.retain(|change| matches!(change, Change::Truncate(_)));
            return Err(error);
        }
        let unsynced = std::mem::take(&mut file.unsynced);
        unsynced.iter().for_each(|change| change.apply(&mut file.durable));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.files[self.id].live.len() as u64)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.check(DiskOp::Truncate)?;
        let change = Change::Truncate(usize::try_from(len).expect("small"));
        let file = &mut state.files[self.id];
        change.apply(&mut file.live);
        file.unsynced.push(change);
        Ok(())
    }
}
