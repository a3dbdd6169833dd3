use std::sync::Arc;

use pleach_engine::MemoryEngine;
use pleach_engine::conformance::Subject;

async fn open() -> Subject {
    Subject::with_real_clock(Arc::new(MemoryEngine::new()))
}

pleach_engine::conformance_suite!(open);
