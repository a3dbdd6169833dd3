//! Several processes on one store: each has its own engine and its own guards, and they share nothing but the servers.

use std::num::NonZeroU8;
use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{Clock, Engine, MemoryEngine, SystemClock};
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::{Cluster, Server};
use pleach_stores::{Contracts, Guarded};

use crate::watched::Watched;

/// Where a store is that processes share.
pub(crate) enum Shared {
    /// In one process: all have its engine and its guards.
    Alone(
        Process,
        #[allow(dead_code, reason = "the store is there as long as this is")] Option<tempfile::TempDir>,
    ),
    /// In memory, as if other processes wrote to it as well.
    Memory(Arc<dyn Engine>),
    One(Server),
    Three(Cluster),
}

/// A process that uses the store.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) engine: Guarded,
    /// The engine below the guards, whose commits can be held up.
    pub(crate) below: Arc<Watched>,
    pub(crate) contracts: Contracts,
}

impl Process {
    fn on(below: Arc<Watched>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let engine = Guarded::new(Arc::clone(&below) as Arc<dyn Engine>, clock);
        let contracts = Contracts::of(&engine);
        Self { engine, below, contracts }
    }
}

impl Shared {
    pub(crate) fn alone_in_memory() -> Self {
        Self::Alone(Process::on(Watched::new(Arc::new(MemoryEngine::new()))), None)
    }

    pub(crate) fn alone_embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let engine = EmbeddedEngine::open_with(directory.path().join("store"), Settings::default(), clock);
        Self::Alone(Process::on(Watched::new(Arc::new(engine.unwrap()))), Some(directory))
    }

    pub(crate) fn in_memory() -> Self {
        Self::Memory(Arc::new(MemoryEngine::new()))
    }

    pub(crate) fn one_server() -> Self {
        Self::One(Server::start())
    }

    pub(crate) fn three_servers() -> Self {
        Self::Three(Cluster::start())
    }

    /// Another process that uses it.
    pub(crate) async fn process(&self) -> Process {
        match self {
            Self::Alone(process, _) => process.clone(),
            Self::Memory(engine) => {
                let mut capabilities = engine.capabilities().clone();
                capabilities.sole_writer = false;
                Process::on(Watched::with_capabilities(Arc::clone(engine), capabilities))
            }
            Self::One(server) => connect(vec![server.url()], 1).await,
            Self::Three(cluster) => connect(cluster.urls(), 3).await,
        }
    }
}

async fn connect(servers: Vec<String>, replicas: u8) -> Process {
    let replicas = NonZeroU8::new(replicas).unwrap();
    let options = NatsOptions { servers, replicas, ..NatsOptions::default() };
    Process::on(Watched::new(Arc::new(NatsEngine::connect(options).await.unwrap())))
}
