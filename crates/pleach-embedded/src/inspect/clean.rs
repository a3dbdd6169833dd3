use std::path::Path;
use std::sync::Arc;

use pleach_engine::{EngineError, SystemClock};

use super::report::{CleanReport, Progress, Step};
use crate::{EmbeddedEngine, Settings, Status};

/// Cleans the log of the store in `directory` as far as that is possible.
///
/// A store that is open cleans itself; this is for stores that are only ever open for a moment, and for whoever
/// wants the space back at once.
///
/// # Errors
/// `Locked` if the store is in use, `NotAStore`, `Corrupt`, or what the disk says.
pub fn clean(
    directory: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CleanReport, EngineError> {
    let settings = Settings { create: false, ..Settings::default() };
    let engine = EmbeddedEngine::open_with(directory, settings, Arc::new(SystemClock::new()))?;
    let bytes = |status: &Status| status.log.bytes + status.log.replaced_bytes;
    let before = bytes(&engine.status());
    let status = engine.clean_and_close(&mut |cleaned| {
        let done = cleaned.min(before);
        progress(Progress { step: Step::CleanLog, done, total: before });
    })?;
    Ok(CleanReport { before, after: bytes(&status) })
}
