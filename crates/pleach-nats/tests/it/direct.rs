use std::sync::Arc;

use pleach_engine::conformance::Subject;
use pleach_nats::{NatsEngine, NatsOptions, Scans};

use crate::servers;

/// Scans without an ordered copy in memory.
async fn open() -> Subject {
    let options = servers::options(vec![servers::server().url()]);
    let options = NatsOptions { scans: Scans::Direct, ..options };
    Subject::with_real_clock(Arc::new(NatsEngine::connect(options).await.expect("the server is there")))
}

pleach_engine::conformance_suite!(open);
