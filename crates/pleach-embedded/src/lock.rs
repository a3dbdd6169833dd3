use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use pleach_engine::EngineError;

use crate::disk::io_error;

/// Keeps other processes out of a store's directory for as long as it lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    /// The operating system lets go of the lock when this is closed, however the process ends.
    file: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Said aloud, because a child process that is just being started may hold the file a moment longer.
        let _ = self.file.unlock();
    }
}

const FILE_NAME: &str = "LOCK";

impl DirectoryLock {
    /// Locks `directory`.
    ///
    /// # Errors
    /// `Locked`, naming who holds it.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, EngineError> {
        let path = directory.join(FILE_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io_error("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(EngineError::Locked { path: directory.into(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
        }
        // Who holds it is written for people to read; the lock holds without it.
        let name = std::env::current_exe().ok();
        let name = name.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let process = process_text(std::process::id());
        let text = format!("{process} ({})\n", name.as_deref().unwrap_or("unknown"));
        let note =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        match note.map_err(io_error("write", &path)) {
            Ok(()) | Err(EngineError::DiskFull { .. }) => Ok(Self { file }),
            Err(error) => Err(error),
        }
    }
}

/// Who has the store in `directory` open, if anyone has. The lock is tried for an instant, in which an open by another
/// process may find it taken.
pub(crate) fn holder_of(directory: &Path) -> Option<String> {
    let mut file = File::open(directory.join(FILE_NAME)).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            None
        }
        Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
        Err(TryLockError::Error(_)) => None,
    }
}

/// How the description of a process with this number begins.
pub(crate) fn process_text(id: u32) -> String {
    format!("process {id}")
}

fn holder(file: &mut File) -> String {
    const HOLDER_BYTES_MAX: u64 = 256;
    let mut text = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "another process".to_owned(),
    }
}
