use pleach::{ErrorKind, Store, doctor};
use pollster::block_on;

#[test]
fn a_store_in_a_directory_tells_how_it_is_doing() {
    let directory = tempfile::tempdir().unwrap();
    let store = block_on(Store::open(directory.path().join("store"))).unwrap();
    let carts = block_on(store.create_bucket("carts")).unwrap();
    block_on(carts.put("user.42", "3 apples")).unwrap();
    block_on(carts.get("user.42")).unwrap();

    let status = block_on(store.clone().status()).unwrap();
    assert_eq!((status.puts.count, status.gets.count, status.buckets[0].name.as_str()), (1, 1, "carts"));
    let serious = doctor::examine(&status).into_iter().filter(|finding| finding.rule != "disk_nearly_full");
    assert_eq!(serious.count(), 0);

    block_on(store.close()).unwrap();
    assert!(pleach::blocking::Store::from(store).status().unwrap().closed);
}

#[test]
fn a_store_in_memory_has_no_status() {
    let error = block_on(Store::in_memory().status()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "this engine has no status");
}
