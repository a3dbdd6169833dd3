use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pleach_nats::NatsOptions;
use pleach_nats_testing::{Cluster, Server};
use serde_json::Value;

/// How long something that must come may take: far longer than on a machine that is only busy.
pub(crate) const SOON: Duration = Duration::from_secs(180);

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
    NatsOptions { servers: urls, namespace, patience: SOON, ..NatsOptions::default() }
}

/// Another client of the shared server.
pub(crate) async fn client() -> async_nats::Client {
    let options = async_nats::ConnectOptions::new().request_timeout(Some(SOON)).connection_timeout(SOON);
    options.connect(server().url()).await.unwrap()
}

/// Waits until the server has done everything that this client sent it before, such as a subscription.
pub(crate) async fn settle(client: &async_nats::Client) {
    client.request("$JS.API.INFO", "".into()).await.unwrap();
}

/// JetStream as another client of the shared server sees it.
pub(crate) async fn context() -> async_nats::jetstream::Context {
    let mut context = async_nats::jetstream::new(client().await);
    context.set_timeout(SOON);
    context
}

/// Asks the shared server something by the API of JetStream, as another client would.
pub(crate) async fn ask(rest: &str, asked: &Value) -> Value {
    let answer = client().await.request(format!("$JS.API.{rest}"), asked.to_string().into()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}
