use std::time::Duration;

use pleach::{
    Batch, CreateOptions, DeleteOptions, EngineError, Error, Expectation, Expiry, Headers, Key, Operation,
    PurgeOptions, PutOptions, Revision, UpdateOptions, WriteError,
};

use crate::Given;

const MINUTE: Duration = Duration::from_secs(60);

/// The conflict that a write must have met.
fn conflict(result: Result<Revision, WriteError>) -> pleach::Conflict {
    match result {
        Err(WriteError::Conflict(conflict)) => conflict,
        other => panic!("no conflict: {other:?}"),
    }
}

pub(crate) async fn creating_a_live_key_is_a_conflict(given: Given) {
    let carts = given.bucket().await;
    let first = carts.create("a", "1").await.unwrap();
    let lost = conflict(carts.create("a", "2").await);
    assert_eq!((lost.key.as_str(), lost.expected, lost.actual), ("a", Expectation::Absent, Some(first)));
    assert_eq!(carts.get("a").await.unwrap().unwrap().value, "1");
    carts.delete("a").await.unwrap();
    carts.create("a", "3").await.unwrap();
}

pub(crate) async fn an_update_wins_only_from_the_newest_revision(given: Given) {
    let carts = given.bucket().await;
    let first = carts.put("a", "1").await.unwrap();
    let second = carts.update("a", "2", first).await.unwrap();
    let lost = conflict(carts.update("a", "3", first).await);
    assert_eq!((lost.expected, lost.actual), (Expectation::Revision(first), Some(second)));
    assert_eq!(lost.help(), "read the key again and retry with the revision you get");
    let marker = carts.delete("a").await.unwrap();
    carts.update("a", "4", marker).await.unwrap();
}

pub(crate) async fn options_expect_and_expire(given: Given) {
    let carts = given.bucket().await;
    let a = carts.put_with("a", "1", PutOptions::ttl(MINUTE)).await.unwrap();
    carts.create_with("b", "1", CreateOptions::ttl(MINUTE)).await.unwrap();
    let c = carts.put("c", "1").await.unwrap();
    carts.update_with("c", "2", c, UpdateOptions::ttl(MINUTE)).await.unwrap();
    let expiry = Expiry::At(given.store.now().saturating_add(MINUTE));
    carts.put_with("d", "1", PutOptions { expiry, ..PutOptions::default() }).await.unwrap();
    let expect = Expectation::Revision(a.plus(1000));
    conflict(carts.put_with("a", "2", PutOptions { expect, ..PutOptions::default() }).await);

    let expires = carts.get("a").await.unwrap().unwrap().expires.unwrap();
    assert_eq!(expires, given.store.now().saturating_add(MINUTE));
    given.clock.advance(MINUTE - Duration::from_micros(1));
    assert_eq!(carts.count(">").await.unwrap(), 4);
    given.clock.advance(Duration::from_micros(1));
    assert_eq!(carts.count(">").await.unwrap(), 0);
}

pub(crate) async fn deletes_and_purges_take_expectations(given: Given) {
    let carts = given.bucket().await;
    let revision = carts.put("a", "1").await.unwrap();
    let expect = Expectation::Revision(revision.plus(1000));
    conflict(carts.delete_with("a", DeleteOptions { expect, ..DeleteOptions::default() }).await);
    conflict(carts.purge_with("a", PurgeOptions { expect, ..PurgeOptions::default() }).await);
    assert!(carts.get("a").await.unwrap().is_some());

    let expect = Expectation::Revision(revision);
    let marker = carts.delete_with("a", DeleteOptions { expect, ..DeleteOptions::default() }).await.unwrap();
    let expect = Expectation::Revision(marker);
    carts.purge_with("a", PurgeOptions { expect, ..PurgeOptions::default() }).await.unwrap();
    assert_eq!(carts.history("a").await.unwrap().len(), 1);
}

pub(crate) async fn headers_travel_with_entries_and_markers(given: Given) {
    let carts = given.bucket().await;
    let mut headers = Headers::new();
    headers.set("Trace-Id", "7").unwrap();
    carts.put_with("a", "1", PutOptions { headers: headers.clone(), ..Default::default() }).await.unwrap();
    carts.delete_with("a", DeleteOptions { headers: headers.clone(), ..Default::default() }).await.unwrap();
    let options = CreateOptions { headers: headers.clone(), ..Default::default() };
    let seen = carts.create_with("a", "2", options).await.unwrap();
    let options = UpdateOptions { headers: headers.clone(), ..Default::default() };
    carts.update_with("a", "3", seen, options).await.unwrap();
    for record in carts.history("a").await.unwrap() {
        assert_eq!(record.headers, headers);
    }
    let options = PurgeOptions { headers: headers.clone(), ..Default::default() };
    carts.purge_with("a", options).await.unwrap();
    assert_eq!(carts.history("a").await.unwrap()[0].headers, headers);
}

pub(crate) async fn a_batch_is_committed_whole_or_not_at_all(given: Given) {
    let carts = given.bucket().await;
    let seen = carts.put("a", "1").await.unwrap();
    let result = carts.batch().put("b", "1").update("a", "2", seen.plus(1000)).commit().await;
    assert_eq!(conflict(result.map(|committed| committed.last)).key.as_str(), "a");
    assert!(carts.get("b").await.unwrap().is_none());

    let committed = carts
        .batch()
        .update("a", "2", seen)
        .create_with("b", "1", CreateOptions::ttl(MINUTE))
        .put("c", "1")
        .delete("d")
        .purge("e")
        .commit()
        .await
        .unwrap();
    assert_eq!(committed.last, committed.first.plus(4));
    assert_eq!(carts.get("b").await.unwrap().unwrap().revision, committed.first.plus(1));
    assert_eq!(carts.count(">").await.unwrap(), 3);
    given.clock.advance(MINUTE);
    assert_eq!(carts.count(">").await.unwrap(), 2);
}

pub(crate) async fn a_bad_operation_keeps_its_batch_from_being_committed(given: Given) {
    let carts = given.bucket().await;
    let result = carts.batch().put("a", "1").put("not a key", "2").delete("..").commit().await;
    let Err(WriteError::Failed(Error::Key(error))) = result else { panic!("committed: {result:?}") };
    assert!(error.to_string().contains("not a key"), "{error}");
    let result = carts.batch().put("a", "1").put("a", "2").commit().await;
    assert!(matches!(result, Err(WriteError::Failed(Error::Engine(EngineError::DuplicateKey { .. })))));
    let result = carts.batch().commit().await;
    assert!(matches!(result, Err(WriteError::Failed(Error::Engine(EngineError::BatchEmpty)))));
    assert_eq!(carts.count(">").await.unwrap(), 0);
}

pub(crate) async fn a_batch_that_is_already_made_is_committed(given: Given) {
    let carts = given.bucket().await;
    let key = |text| Key::parse(text).unwrap();
    let operation = Operation::put(key("b"), "2").expecting(Expectation::Absent);
    carts.commit(Batch::new().put(key("a"), "1").with(operation.clone())).await.unwrap();
    conflict(carts.batch().with(operation).commit().await.map(|committed| committed.last));
    assert_eq!(carts.count(">").await.unwrap(), 2);
}
