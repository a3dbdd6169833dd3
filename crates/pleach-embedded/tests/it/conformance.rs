use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::conformance::Subject;
use pleach_engine::{Clock, ManualClock, Timestamp};

async fn open() -> Subject {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    // Small segments and memtables, so that short tests cross their borders.
    let settings = Settings { segment_bytes: 16 * 1024, memtable_bytes: 32 * 1024, ..Settings::default() };
    let engine = EmbeddedEngine::open_with(
        directory.path().join("store"),
        settings,
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    Subject::with_manual_clock(Arc::new(engine.expect("the store opens")), clock).keeping(directory)
}

pleach_engine::conformance_suite!(open);
