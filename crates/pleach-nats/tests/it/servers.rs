use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pleach_nats::NatsOptions;
use pleach_nats_testing::{Cluster, Server};

/// The server that all tests share which leave it running.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// The cluster that all tests share which leave it running.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start)
}

/// A store of its own on the servers at `urls`.
pub(crate) fn options(urls: Vec<String>) -> NatsOptions {
    static STORES: AtomicU32 = AtomicU32::new(0);
    let namespace = format!("s{}_", STORES.fetch_add(1, Ordering::Relaxed));
    NatsOptions { servers: urls, namespace, ..NatsOptions::default() }
}
