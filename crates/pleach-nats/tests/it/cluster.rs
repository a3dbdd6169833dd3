use std::num::NonZeroU8;
use std::sync::Arc;

use pleach_engine::conformance::Subject;
use pleach_nats::{NatsEngine, NatsOptions};

use crate::servers;

/// Every bucket is on all three servers.
async fn open() -> Subject {
    let options = servers::options(servers::cluster().urls());
    let options = NatsOptions { replicas: NonZeroU8::new(3).expect("three is not zero"), ..options };
    Subject::with_real_clock(Arc::new(NatsEngine::connect(options).await.expect("the servers are there")))
}

pleach_engine::conformance_suite!(open);
