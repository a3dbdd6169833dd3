//! What stores on NATS servers have and others have not. What all have in common is tested on them too: see `main.rs`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pleach::nats::{BucketPlace, NatsOptions};
use pleach::{Error, ErrorKind, GetOptions, Origin, OriginAddress, Reads, Revision, Store};
use pleach_nats_testing::{Cluster, Server, Settings};

/// The server that all tests share. It takes values of a MiB, as the default configuration of a bucket does.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_with(Settings { more: "max_payload: 2MB", ..Settings::default() }))
}

/// A store of its own on it, said to sync its commits, as the default configuration of a bucket asks for.
pub(crate) fn options() -> NatsOptions {
    static STORES: AtomicU32 = AtomicU32::new(0);
    let namespace = format!("s{}_", STORES.fetch_add(1, Ordering::Relaxed));
    NatsOptions { namespace, servers_sync: true, ..NatsOptions::server(server().url()) }
}

fn reading(reads: Reads) -> GetOptions {
    GetOptions { reads: Some(reads) }
}

#[test]
fn a_store_on_nats_is_connected_to_by_url() {
    crate::run(async {
        let store = Store::connect(format!("{}/url_?timeout=2", server().url())).await.unwrap();
        let carts = store.create_bucket("carts").await.unwrap();
        carts.put("user.42", "3 apples").await.unwrap();
        drop((carts, store));
        let store = pleach::blocking::Store::connect(format!("{}/url_", server().url())).unwrap();
        let carts = store.bucket("carts").unwrap();
        assert_eq!(carts.get("user.42").unwrap().unwrap().value, "3 apples");
        store.close().unwrap();
        assert_eq!(carts.get("user.42").unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn servers_that_are_away_are_told_without_the_password() {
    crate::run(async {
        let error = Store::connect("nats://ann:hunter2@127.0.0.1:1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    });
}

#[test]
fn a_read_sees_what_it_asks_for_on_every_engine() {
    crate::run(async {
        let (nats, memory) = (Store::connect_nats(options()).await.unwrap(), Store::in_memory());
        for store in [nats, memory] {
            let carts = store.create_bucket("carts").await.unwrap();
            let written = carts.put("a", "1").await.unwrap();
            let all = [Reads::Any, Reads::OwnWrites, Reads::AtLeast(written), Reads::Leader];
            for reads in all {
                let found = carts.get_with("a", reading(reads)).await.unwrap().unwrap();
                assert_eq!(found.revision, written, "{reads:?} on {store:?}");
            }
            assert!(carts.get_with("a", GetOptions::default()).await.unwrap().is_some());
            let future = reading(Reads::AtLeast(Revision::new(written.get() + 100)));
            let error = carts.get_with("a", future).await.unwrap_err();
            assert!(matches!(error, Error::Engine(pleach::EngineError::FutureRevision { .. })), "{error:?}");
        }
    });
}

#[test]
fn a_replica_is_read_in_the_place_of_its_bucket() {
    crate::run(async {
        let options = options();
        let store = Store::connect_nats(options.clone()).await.unwrap();
        let carts = store.create_bucket("carts").await.unwrap();
        let (stream, subjects) =
            (format!("{}replica", options.namespace), format!("$KV.{}carts", options.namespace));
        store.create_replica("carts", &stream).await.unwrap();
        let mut placed = options.clone();
        placed.places.insert(carts.name().clone(), BucketPlace { stream, subjects });
        let reader = Store::connect_nats(placed).await.unwrap();
        let copy = reader.bucket("carts").await.unwrap();
        let written = carts.put("a", "1").await.unwrap();
        // The replica knows of the revision only once it has come so far.
        crate::given::eventually(|| async {
            match copy.get_with("a", reading(Reads::AtLeast(written))).await {
                Ok(found) => found.is_some_and(|entry| entry.value == "1"),
                Err(error) => panic!("{error}"),
            }
        })
        .await;
        copy.put("a", "2").await.unwrap();
        assert_eq!(carts.get("a").await.unwrap().unwrap().value, "2", "it went to the bucket itself");
        let error = Store::in_memory().create_replica("carts", "copy").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn what_is_written_says_through_which_server() {
    crate::run(async {
        let cluster = Cluster::start();
        let store = Store::connect(&cluster.urls()[1]).await.unwrap();
        store.create_bucket("carts").await.unwrap();
        let origin = async |address| {
            let store = store.with_connection_origin(address).unwrap();
            let carts = store.bucket("carts").await.unwrap();
            carts.put("a", "1").await.unwrap();
            Origin::of(&carts.get("a").await.unwrap().unwrap().headers)
        };
        let (server, cluster) = (Some("node-1".to_owned()), Some("test".to_owned()));
        let hidden = Origin { address: None, server, cluster };
        assert_eq!(origin(OriginAddress::Hidden).await, hidden);
        let shown = Origin { address: Some("127.0.0.1".to_owned()), ..hidden };
        assert_eq!(origin(OriginAddress::Shown).await, shown);
        let error = Store::in_memory().with_connection_origin(OriginAddress::Hidden).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}
