use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pleach_nats::NatsOptions;
use pleach_nats_testing::{Cluster, Server};
use serde_json::Value;

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

/// Asks the shared server something by the API of JetStream, as another client would.
pub(crate) async fn ask(rest: &str, asked: &Value) -> Value {
    let client = async_nats::connect(server().url()).await.unwrap();
    let answer = client.request(format!("$JS.API.{rest}"), asked.to_string().into()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}
