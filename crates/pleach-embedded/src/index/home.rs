use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_engine::EngineError;

use super::{Index, LsmIndex};
use crate::disk::{RealDisk, io_error};
use crate::file_pool::{FilePool, OPEN_FILES_MAX};

/// Where the index of a store lives.
pub(crate) trait IndexHome: fmt::Debug + Send + Sync {
    /// Opens the index, or makes an empty one. Of one home there is only one index open at a time.
    ///
    /// # Errors
    /// `CorruptIndex` if what is there is of no use, or what the disk says.
    fn open(&self, cache_bytes: u64) -> Result<Arc<dyn Index>, EngineError>;

    /// Puts the index that is there, if any, out of the way, for a person to look at later, and says where.
    /// Nothing is deleted on suspicion.
    fn set_aside(&self) -> Result<Option<PathBuf>, EngineError>;
}

/// A directory with a log-structured merge tree in it.
#[derive(Debug)]
pub(crate) struct IndexDirectory(PathBuf);

impl IndexDirectory {
    /// The index of the store in `directory`.
    pub(crate) fn of(directory: &Path) -> Self {
        Self(directory.join("index"))
    }
}

impl IndexHome for IndexDirectory {
    fn open(&self, cache_bytes: u64) -> Result<Arc<dyn Index>, EngineError> {
        let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
        match LsmIndex::open(disk, &self.0, cache_bytes) {
            Ok(index) => Ok(Arc::new(index)),
            // A file that cannot be found is one way for an index to be damaged; other errors deserve a look.
            Err(EngineError::Io { source, .. }) if is_damage(&source) && self.0.exists() => {
                Err(EngineError::CorruptIndex { what: source.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    fn set_aside(&self) -> Result<Option<PathBuf>, EngineError> {
        let path = &self.0;
        if !path.exists() {
            return Ok(None);
        }
        let named = |number: u32| PathBuf::from(format!("{}.set-aside-{number}", path.display()));
        let free = (1..).map(named).find(|aside| !aside.exists()).unwrap_or_else(|| named(0));
        fs::rename(path, &free).map_err(io_error("rename", path))?;
        Ok(Some(free))
    }
}

fn is_damage(error: &std::io::Error) -> bool {
    use ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | InvalidData | InvalidInput | UnexpectedEof)
}
