use pleach::{BucketConfig, EngineError, Error, ErrorKind, Origin, Store, StoreUrl, WriteError};

use crate::Given;

pub(crate) async fn a_bucket_is_found_once_it_was_created(given: Given) {
    let error = given.store.bucket("carts").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    given.store.create_bucket("carts").await.unwrap();
    assert_eq!(given.store.bucket("carts").await.unwrap().name().as_str(), "carts");
}

pub(crate) async fn creating_a_bucket_again_is_fine_unless_it_differs(given: Given) {
    let carts = given.store.create_bucket("carts").await.unwrap();
    carts.put("a", "1").await.unwrap();
    let again = given.store.create_bucket("carts").await.unwrap();
    assert_eq!(again.get("a").await.unwrap().unwrap().value, "1");
    let config = BucketConfig { value_bytes_max: 10, ..BucketConfig::default() };
    let error = given.store.create_bucket_with("carts", config).await.unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::BucketExists { .. })), "{error}");
}

pub(crate) async fn buckets_are_listed_updated_and_deleted(given: Given) {
    let store = given.store;
    store.create_bucket("b").await.unwrap();
    store.create_bucket("a").await.unwrap();
    let names = async || -> Vec<String> {
        store.buckets().await.unwrap().into_iter().map(|info| info.name.to_string()).collect()
    };
    assert_eq!(names().await, ["a", "b"]);

    let config = BucketConfig { history: 7.try_into().unwrap(), ..BucketConfig::default() };
    let info = store.update_bucket("a", config.clone()).await.unwrap();
    assert_eq!(info.config, config);
    assert_eq!(store.bucket("a").await.unwrap().config().await.unwrap(), config);

    store.delete_bucket("a").await.unwrap();
    assert_eq!(names().await, ["b"]);
    assert_eq!(store.delete_bucket("a").await.unwrap_err().kind(), ErrorKind::NotFound);
}

pub(crate) async fn a_closed_store_says_so(given: Given) {
    let carts = given.bucket().await;
    given.store.close().await.unwrap();
    assert_eq!(carts.get("a").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(carts.put("a", "1").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(given.store.bucket("carts").await.unwrap_err().kind(), ErrorKind::Closed);
}

pub(crate) async fn what_is_no_name_is_refused_with_its_rule(given: Given) {
    let carts = given.bucket().await;
    assert!(matches!(given.store.create_bucket("no name").await, Err(Error::BucketName(_))));
    assert!(matches!(carts.get("no key").await, Err(Error::Key(_))));
    assert!(matches!(carts.put("_kv.x", "").await, Err(Error::Key(_))));
    assert!(matches!(carts.create("", "").await, Err(WriteError::Failed(Error::Key(_)))));
    assert!(matches!(carts.scan("a.>.b"), Err(Error::Filter(_))));
    assert!(matches!(carts.watch("a**").await, Err(Error::Filter(_))));
    let error = carts.count("a..b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.help(), "put something between the dots, and none at the ends");
}

pub(crate) async fn an_origin_travels_with_every_write(given: Given) {
    given.bucket().await;
    let origin = Origin { address: Some("10.0.0.7".into()), server: Some("n1".into()), cluster: None };
    let store = given.store.with_origin(&origin).unwrap();
    let carts = store.bucket("carts").await.unwrap();
    carts.put("a", "1").await.unwrap();
    carts.delete("a").await.unwrap();
    carts.batch().put("b", "1").commit().await.unwrap();
    let mut records = carts.history("a").await.unwrap();
    records.extend(carts.history("b").await.unwrap());
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record.headers.get("KV-Origin"), Some("10.0.0.7"));
        assert_eq!(record.headers.get("KV-Origin-Server"), Some("n1"));
        assert_eq!(record.headers.get("KV-Origin-Cluster"), None);
        assert_eq!(Origin::of(&record.headers), origin);
    }

    // A copied entry keeps the origin it had, and other handles add none.
    let options = pleach::PutOptions { headers: origin.headers().unwrap(), ..Default::default() };
    let elsewhere = Origin { address: Some("10.0.0.8".into()), ..Origin::default() };
    carts.with_origin(&elsewhere).unwrap().put_with("c", "1", options).await.unwrap();
    assert_eq!(Origin::of(&carts.get("c").await.unwrap().unwrap().headers), origin);
    let options = pleach::PutOptions { headers: elsewhere.headers().unwrap(), ..Default::default() };
    carts.put_with("c", "2", options).await.unwrap(); // it knew of no server, and is given none
    assert_eq!(Origin::of(&carts.get("c").await.unwrap().unwrap().headers), elsewhere);
    let carts = given.store.bucket("carts").await.unwrap();
    carts.put("d", "1").await.unwrap();
    assert!(carts.get("d").await.unwrap().unwrap().headers.is_empty());
}

pub(crate) async fn an_origin_that_cannot_be_a_header_is_refused(given: Given) {
    let origin = Origin { server: Some("two\nlines".into()), ..Origin::default() };
    assert!(matches!(given.store.with_origin(&origin), Err(Error::Header(_))));

    // What is too long only together with the headers of a write is refused with that write.
    let origin = Origin { server: Some("x".repeat(3000)), ..Origin::default() };
    let carts = given.bucket().await.with_origin(&origin).unwrap();
    let mut headers = pleach::Headers::new();
    headers.set("Trace", &"y".repeat(2000)).unwrap();
    let options = pleach::PutOptions { headers, ..Default::default() };
    let error = carts.put_with("a", "1", options).await.unwrap_err();
    assert!(matches!(error, WriteError::Failed(Error::Header(_))), "{error}");
    assert!(carts.get("a").await.unwrap().is_none());
}

#[test]
fn a_store_in_memory_is_connected_to_by_url() {
    crate::run(async {
        let store = Store::connect("mem:").await.unwrap();
        assert_eq!(store.capabilities().engine, Store::in_memory().capabilities().engine);
        let error = Store::connect("redis://localhost").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("mem:"), "{error}");
        assert!(Store::connect(StoreUrl::Memory).await.is_ok());
    });
}

#[cfg(not(feature = "embedded"))]
#[test]
fn a_directory_is_refused_where_no_engine_for_it_is_compiled_in() {
    crate::run(async {
        for error in [
            Store::connect("file:data").await.unwrap_err(),
            Store::connect(StoreUrl::File("data".into())).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    });
}

#[cfg(feature = "embedded")]
#[test]
fn what_was_put_is_there_when_the_store_is_opened_again() {
    crate::run(async {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file:{}", directory.path().join("store").display());
        let options = || pleach::OpenOptions { create: false, ..Default::default() };
        assert!(Store::connect_with(&url, options()).await.is_err());
        let store = Store::connect(&url).await.unwrap();
        let revision = store.create_bucket("carts").await.unwrap().put("a", "1").await.unwrap();
        store.close().await.unwrap();
        drop(store);

        let store = Store::connect_with(&url, options()).await.unwrap();
        let entry = store.bucket("carts").await.unwrap().get("a").await.unwrap().unwrap();
        assert_eq!((entry.value.as_ref(), entry.revision), (&b"1"[..], revision));
    });
}

#[cfg(feature = "embedded")]
#[test]
fn a_store_is_free_once_its_last_handle_is_dropped() {
    crate::run(async {
        let directory = tempfile::tempdir().unwrap();
        for value in ["1", "2", "3"] {
            let store = Store::open(directory.path()).await.unwrap();
            let cached = store.create_bucket("carts").await.unwrap().cached().await.unwrap();
            cached.put("a", value).await.unwrap();
            assert!(
                Store::open(directory.path())
                    .await
                    .is_err_and(|error| error.kind() == ErrorKind::Unavailable)
            );
            drop(store);
            assert_eq!(cached.get("a").await.unwrap().unwrap().value, value);
        }
    });
}
