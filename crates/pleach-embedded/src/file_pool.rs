use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::disk::{Disk, DiskFile};

/// The most files of a log that are open at once.
pub(crate) const OPEN_FILES_MAX: usize = 128;

/// A disk that keeps a bounded number of files open: a file that was closed is opened again when it is used.
/// One that was written and not yet synced stays open, because only who wrote it hears that it could not be.
#[derive(Debug)]
pub(crate) struct FilePool {
    disk: Arc<dyn Disk>,
    limit: usize,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The files that may be open, those opened longest ago first.
    open: Mutex<VecDeque<Weak<PooledFile>>>,
    /// The files that were created and not yet renamed, open or not.
    created: Mutex<Vec<Weak<PooledFile>>>,
}

#[derive(Debug)]
struct PooledFile {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    limit: usize,
    state: Mutex<FileState>,
}

#[derive(Debug)]
struct FileState {
    path: PathBuf,
    file: Option<Arc<dyn DiskFile>>,
    /// How often it was written, and how many of these writes were synced.
    writes: u64,
    synced: u64,
}

impl FilePool {
    pub(crate) fn new(disk: Arc<dyn Disk>, limit: usize) -> Self {
        Self { disk, limit, shared: Arc::default() }
    }

    fn adopt(&self, path: &Path, file: Box<dyn DiskFile>) -> Arc<PooledFile> {
        let state = FileState { path: path.into(), file: Some(Arc::from(file)), writes: 0, synced: 0 };
        let (disk, shared) = (Arc::clone(&self.disk), Arc::clone(&self.shared));
        let file = Arc::new(PooledFile { disk, shared, limit: self.limit, state: Mutex::new(state) });
        self.shared.opened(&file, self.limit);
        file
    }
}

impl Disk for FilePool {
    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.disk.list(directory)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.create_directory(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.adopt(path, self.disk.create(path)?);
        let mut created = self.shared.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.retain(|file| file.strong_count() > 0);
        created.push(Arc::downgrade(&file));
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.adopt(path, self.disk.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)?;
        // Whoever has the file finds it under its new name when it is opened again, also if it was closed since
        // it was created.
        let mut created = self.shared.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.retain(|file| {
            let Some(file) = file.upgrade() else { return false };
            let mut state = file.lock();
            let is_meant = state.path == from;
            if is_meant {
                state.path = to.into();
            }
            !is_meant
        });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(path)
    }
}

impl Shared {
    /// Notes that `file` was opened, and closes those opened longest ago if there are too many.
    fn opened(&self, file: &Arc<PooledFile>, limit: usize) {
        let mut open = self.lock();
        open.push_back(Arc::downgrade(file));
        // Each is looked at once: those that must stay open go to the end of the line.
        for _ in 0..open.len() {
            if open.len() <= limit {
                return;
            }
            let Some(oldest) = open.pop_front().as_ref().and_then(Weak::upgrade) else { continue };
            if Arc::ptr_eq(&oldest, file) || !oldest.close() {
                open.push_back(Arc::downgrade(&oldest));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<PooledFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PooledFile {
    /// The file, open.
    fn file(self: &Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock();
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        let file: Arc<dyn DiskFile> = Arc::from(self.disk.open(&state.path)?);
        state.file = Some(Arc::clone(&file));
        drop(state);
        self.shared.opened(self, self.limit);
        Ok(file)
    }

    /// Closes it, unless something was written and not synced; says whether it is closed.
    fn close(&self) -> bool {
        let mut state = self.lock();
        if state.writes == state.synced {
            state.file = None;
        }
        state.file.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for Arc<PooledFile> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file()?.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        // Counted first, so that it is not closed between the write and its sync.
        self.lock().writes += 1;
        self.file()?.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let writes = self.lock().writes;
        self.file()?.sync()?;
        let mut state = self.lock();
        state.synced = state.synced.max(writes);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.file()?.len()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.lock().writes += 1;
        self.file()?.truncate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn pool(limit: usize) -> (tempfile::TempDir, FilePool) {
        (tempfile::tempdir().unwrap(), FilePool::new(Arc::new(RealDisk), limit))
    }

    fn is_open(pool: &FilePool, path: &Path) -> bool {
        let files = pool.shared.lock().iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        files.iter().any(|file| file.lock().path == path && file.lock().file.is_some())
    }

    fn read(file: &dyn DiskFile) -> Vec<u8> {
        let mut bytes = [0; 8];
        let count = file.read_at(&mut bytes, 0).unwrap();
        bytes[..count].to_vec()
    }

    #[test]
    fn a_file_that_was_closed_before_it_is_renamed_is_found_under_its_new_name() {
        let (directory, pool) = pool(1);
        let path = |name: &str| directory.path().join(name);
        let file = pool.create(&path("a.tmp")).unwrap();
        file.write_at(b"a", 0).unwrap();
        file.sync().unwrap();
        let _other = pool.create(&path("b")).unwrap();
        assert!(!is_open(&pool, &path("a.tmp")));
        pool.rename(&path("a.tmp"), &path("a")).unwrap();
        assert_eq!(read(&*file), b"a");
    }

    #[test]
    fn files_are_closed_past_the_limit_and_opened_again_when_used() {
        let (directory, pool) = pool(3);
        let path = |number: u8| directory.path().join(number.to_string());
        let files: Vec<_> = (0..10)
            .map(|number| {
                let file = pool.create(&path(number)).unwrap();
                file.write_at(&[number], 0).unwrap();
                file.sync().unwrap();
                file
            })
            .collect();
        for (number, file) in (0..).zip(&files) {
            assert_eq!(read(&**file), [number]);
        }
        assert_eq!((0..10).filter(|number| is_open(&pool, &path(*number))).count(), 3);
    }

    #[test]
    fn a_file_with_unsynced_writes_stays_open() {
        let (directory, pool) = pool(2);
        let path = |number: u8| directory.path().join(number.to_string());
        let unsynced = pool.create(&path(0)).unwrap();
        unsynced.write_at(b"x", 0).unwrap();
        let _others: Vec<_> = (1..9).map(|number| pool.create(&path(number)).unwrap()).collect();
        assert!(is_open(&pool, &path(0)));
        unsynced.sync().unwrap();
        let _more: Vec<_> = (10..20).map(|number| pool.create(&path(number)).unwrap()).collect();
        assert!(!is_open(&pool, &path(0)));
        assert_eq!(read(&*unsynced), b"x");
    }

    #[test]
    fn a_renamed_file_is_found_again() {
        let (directory, pool) = pool(1);
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let file = pool.create(&from).unwrap();
        file.write_at(b"y", 0).unwrap();
        file.sync().unwrap();
        pool.rename(&from, &to).unwrap();
        let _other = pool.create(&directory.path().join("other")).unwrap();
        assert!(!is_open(&pool, &to));
        assert_eq!(read(&*file), b"y");
    }

    #[test]
    fn a_file_that_was_dropped_leaves_the_pool() {
        let (directory, pool) = pool(2);
        for number in 0..50 {
            drop(pool.create(&directory.path().join(number.to_string())).unwrap());
        }
        assert!(pool.shared.lock().len() <= 3);
    }
}
