//! The guarded engine keeps every promise of the engine below it.

use std::sync::Arc;

use pleach_engine::conformance::Subject;
use pleach_engine::{Clock, ManualClock, MemoryEngine, Timestamp};
use pleach_stores::{Guarded, Keeper};

async fn open() -> Subject {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let engine = MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let guarded = Guarded::new(Arc::new(engine), Arc::clone(&clock) as Arc<dyn Clock>);
    Subject::with_manual_clock(Arc::new(guarded.keeping(Keeper::All)), clock)
}

pleach_engine::conformance_suite!(open);
