use std::fs;
use std::path::Path;
use std::sync::Arc;

use pleach_engine::{EngineError, Revision, SystemClock};

use super::Closed;
use super::report::{Progress, RebuildReport, Step};
use super::verify::read;
use crate::apply::seal_index;
use crate::disk::io_error;
use crate::index::{IndexDirectory, IndexHome as _};
use crate::lock::DirectoryLock;
use crate::recovery::{self, Media, Opened};
use crate::settings::Settings;

/// What becomes of the old index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildOptions {
    /// Deletes the old index once the new one is complete. Otherwise it stays beside it under another name.
    pub discard_old: bool,
}

/// Builds the index of the store in `directory` anew from its log.
///
/// The log is read before, and if it is damaged nothing is done: an index that knows more than a damaged log is
/// the only witness of what was lost. A torn tail is cut off as at any open. If the index cannot be built, the
/// old one is put back.
///
/// # Errors
/// `Corrupt` if the log is damaged, `Locked` if the store is in use, `NotAStore`, or what the disk says.
pub fn rebuild(
    directory: impl AsRef<Path>,
    options: RebuildOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<RebuildReport, EngineError> {
    let directory = directory.as_ref();
    let closed = Closed::lock(directory)?;
    let (scanned, opening) = read(directory, &closed, progress, &mut |_| {})?;
    drop(opening);
    if let Some(damage) = scanned.report.damages.into_iter().next() {
        return Err(EngineError::Corrupt { path: damage.path, offset: damage.offset, what: damage.what });
    }
    let index = directory.join("index");
    let set_aside = IndexDirectory::of(directory).set_aside()?;
    let log_bytes = scanned.report.bytes;
    let applied = match build_index(directory, closed.lock, log_bytes, progress) {
        Ok(applied) => applied,
        Err(error) => {
            if let Some(old) = &set_aside {
                put_back(directory, &index, old);
            }
            return Err(error);
        }
    };
    match set_aside {
        Some(old) if options.discard_old => {
            fs::remove_dir_all(&old).map_err(io_error("remove", &old))?;
            Ok(RebuildReport { applied, log_bytes, set_aside: None })
        }
        set_aside => Ok(RebuildReport { applied, log_bytes, set_aside }),
    }
}

/// Opens the store in `directory`, which has no index, writes its index out, and closes it.
pub(super) fn build_index(
    directory: &Path,
    lock: DirectoryLock,
    total: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Revision, EngineError> {
    let settings = Settings { create: false, ..Settings::default() };
    let clock = Arc::new(SystemClock::new());
    let mut watch = |done: u64| progress(Progress { step: Step::BuildIndex, done, total });
    let opened = recovery::open_locked(directory, lock, settings, clock, Media::real(directory), &mut watch)?;
    let Opened { core, mut writer, lock } = opened;
    writer.close()?;
    let applied = core.snapshots.visible();
    seal_index(&core, applied, core.clock.now())?;
    core.index.flush(usize::MAX, applied)?;
    progress(Progress { step: Step::BuildIndex, done: total, total });
    drop(core);
    drop(lock);
    Ok(applied)
}

/// Gives the old index its name back. If that fails, the next open builds one.
pub(super) fn put_back(directory: &Path, index: &Path, old: &Path) {
    // Someone else may have opened the store by now, and uses what is there.
    let Ok(_lock) = DirectoryLock::acquire(directory) else { return };
    // What was built so far is worth nothing, and may fill the disk.
    let _ = fs::remove_dir_all(index);
    let _ = fs::rename(old, index);
}
