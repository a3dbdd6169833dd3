use std::path::PathBuf;
use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};

use crate::{Error, OpenOptions};

/// Opens the engine in the directory `path`, away from the async executor's threads: that reads the disk.
pub(crate) async fn open(path: PathBuf, options: OpenOptions) -> Result<Arc<EmbeddedEngine>, Error> {
    let OpenOptions { create, clock, progress } = options;
    let settings = Settings { create, ..Settings::default() };
    let open = move || {
        let mut report = |bytes| {
            if let Some(progress) = &progress {
                progress.report(bytes);
            }
        };
        EmbeddedEngine::open_with_progress(path, settings, clock, &mut report)
    };
    let engine = ::blocking::unblock(open).await?;
    Ok(Arc::new(engine))
}
