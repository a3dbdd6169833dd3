use bytes::Bytes;

use super::case::{Case, key, put, put_new};
use super::refused;
use crate::{Batch, CommitError, EngineError, Expectation, Operation, Revision, Selection, WatchStart};

pub(super) async fn every_operation_of_a_batch_has_its_own_revision(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("b", "0").await;
    // The order is that of the batch, which is not that of the keys.
    let batch = Batch::new().put(key("c"), "1").delete(key("b")).purge(key("d")).put(key("a"), "1");
    let committed = bucket.commit(batch).await;
    assert_eq!(committed.last, committed.first.plus(3));
    for (index, at) in (0..).zip(["c", "b", "d", "a"]) {
        let newest = bucket.records(at).await.pop().unwrap();
        assert_eq!(newest.revision, committed.first.plus(index), "{at}");
    }
}

pub(super) async fn all_records_of_a_batch_have_one_time(case: Case) {
    let bucket = case.bucket().await;
    let keys: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let committed = bucket.commit(keys.iter().map(|at| put(at, "1")).collect::<Batch>()).await;
    for at in &keys {
        assert_eq!(bucket.get(at).await.unwrap().time, committed.time);
    }
}

pub(super) async fn a_batch_may_mix_operations(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c"]).await;
    let batch =
        Batch::new().put(key("a"), "new").delete(key("b")).purge(key("c")).delete(key("x")).purge(key("y"));
    bucket.commit(batch.put(key("z"), "new")).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "z"]);
    for (at, last) in
        [("a", "put a=new"), ("b", "delete b"), ("c", "purge c"), ("x", "delete x"), ("y", "purge y")]
    {
        assert_eq!(bucket.history(at).await.last().map(String::as_str), Some(last));
    }
}

pub(super) async fn a_batch_with_a_failing_expectation_writes_nothing(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b"]).await;
    let before = bucket.info().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let batch = Batch::new().put(key("new"), "1").purge(key("a")).delete(key("x")).with(put_new("b", "1"));
    bucket.conflict(batch).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "b"]);
    assert_eq!(bucket.history("a").await, ["put a=a"]);
    assert_eq!(bucket.history("x").await, [""; 0]);
    assert_eq!(bucket.info().await.last_revision, before.last_revision);
    bucket.put("end", "1").await;
    assert_eq!(watch.next().await, "put end=1");
}

pub(super) async fn an_empty_batch_is_refused(case: Case) {
    let bucket = case.bucket().await;
    refused!(bucket.try_commit(Batch::new()).await, CommitError::Engine(EngineError::BatchEmpty));
}

pub(super) async fn the_longest_batch_commits(case: Case) {
    let bucket = case.bucket().await;
    let longest = case.capabilities().batch_operations_max;
    let keys: Vec<String> = (0..longest).map(|n| format!("k{n:05}")).collect();
    let committed = bucket.commit(keys.iter().map(|at| put_new(at, at)).collect::<Batch>()).await;
    assert_eq!(committed.last.get() - committed.first.get() + 1, longest as u64);
    assert_eq!(bucket.count(Selection::all()).await, longest as u64);
    assert_eq!(bucket.keys(Selection::all()).await, keys);
    for at in [&keys[0], &keys[longest / 2], &keys[longest - 1]] {
        assert_eq!(bucket.text(at).await.as_ref(), Some(at));
    }
}

pub(super) async fn a_longer_batch_is_refused_whole(case: Case) {
    let bucket = case.bucket().await;
    let limit = case.capabilities().batch_operations_max;
    let batch: Batch = (0..=limit).map(|n| put(&format!("k{n}"), "1")).collect();
    let result = bucket.try_commit(batch).await;
    refused!(result, CommitError::Engine(EngineError::BatchTooLong { operations, limit: most })
        if operations == limit + 1 && most == limit);
    assert_eq!(bucket.count(Selection::all()).await, 0);
}

pub(super) async fn a_key_twice_in_a_batch_is_refused(case: Case) {
    let bucket = case.bucket().await;
    let batch = Batch::new().put(key("a"), "1").put(key("b"), "1").delete(key("a"));
    refused!(bucket.try_commit(batch).await, CommitError::Engine(EngineError::DuplicateKey { key: at })
        if at == key("a"));
    assert_eq!(bucket.count(Selection::all()).await, 0);
    assert_eq!(bucket.history("a").await, [""; 0]);
    // Also if the second could never be reached.
    let hopeless = Operation::delete(key("a")).expecting(Expectation::Revision(Revision::new(u64::MAX)));
    let batch = Batch::from(hopeless).delete(key("a"));
    refused!(bucket.try_commit(batch).await, CommitError::Engine(EngineError::DuplicateKey { .. }));
}

pub(super) async fn a_batch_of_too_many_bytes_is_refused(case: Case) {
    let able = case.capabilities();
    let value = Bytes::from(vec![0; able.value_bytes_max as usize]);
    let count = able.batch_bytes_max / value.len() + 1;
    let bucket = case.bucket_with(|config| config.value_bytes_max = able.value_bytes_max).await;
    let batch: Batch = (0..count).map(|n| Operation::put(key(&format!("k{n}")), value.clone())).collect();
    let result = bucket.try_commit(batch).await;
    refused!(result, CommitError::Engine(EngineError::BatchTooLarge { limit, .. }) if limit == able.batch_bytes_max);
    assert_eq!(bucket.count(Selection::all()).await, 0);
}
