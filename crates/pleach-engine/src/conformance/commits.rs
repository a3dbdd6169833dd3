use bytes::Bytes;

use super::case::{Case, key, put, put_new};
use super::refused;
use crate::{
    Batch, CommitError, EngineError, HEADERS_BYTES_MAX, Headers, KEY_BYTES_MAX, Op, Operation, ScanQuery,
    Selection, WatchStart,
};

pub(super) async fn revisions_only_grow(case: Case) {
    let (bucket, other) = (case.bucket().await, case.bucket().await);
    let mut seen = Vec::new();
    for round in 0..3 {
        seen.push(bucket.put("b", &round.to_string()).await);
        seen.push(bucket.put("a", "1").await);
        other.put("b", "1").await;
        seen.push(bucket.delete("b").await);
        seen.push(bucket.purge("c").await);
    }
    assert!(seen.is_sorted_by(|earlier, later| earlier < later), "{seen:?}");
}

pub(super) async fn a_commit_is_visible_to_the_next_read(case: Case) {
    let bucket = case.bucket().await;
    for round in 0..20_u64 {
        let (at, value) = (format!("k{round}"), round.to_string());
        let revision = bucket.put(&at, &value).await;
        assert_eq!(bucket.get(&at).await.map(|entry| entry.revision), Some(revision));
        assert_eq!(bucket.count(Selection::all()).await, round + 1);
        assert!(bucket.keys(Selection::all()).await.contains(&at));
        assert_eq!(bucket.history(&at).await, [format!("put {at}={value}")]);
    }
    bucket.delete("k3").await;
    assert_eq!(bucket.get("k3").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 19);
}

pub(super) async fn a_commit_tells_its_revision_and_time(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.commit(put("a", "1")).await;
    assert_eq!(first.first, first.last);
    case.advance(case.a_while(1)).await;
    let second = bucket.commit(put("b", "2")).await;
    assert!(second.first > first.last);
    assert!(second.time > first.time, "time had passed");
    for (at, committed) in [("a", first), ("b", second)] {
        let entry = bucket.get(at).await.unwrap();
        assert_eq!((entry.revision, entry.time), (committed.last, committed.time));
        assert_eq!((entry.op, entry.expires), (Op::Put, None));
    }
}

pub(super) async fn values_may_be_empty(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "").await;
    assert_eq!(bucket.text("a").await.as_deref(), Some(""));
    assert_eq!(bucket.count(Selection::all()).await, 1);
    assert_eq!(bucket.keys(Selection::all()).await, ["a"]);
    bucket.conflict(put_new("a", "1")).await;
}

pub(super) async fn values_come_back_byte_for_byte(case: Case) {
    let bucket = case.bucket().await;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let same = vec![7; 100_000];
    let mixed: Vec<u8> = (0..100_003_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    for (at, value) in [("every", every_byte), ("same", same), ("mixed", mixed)] {
        let value = Bytes::from(value);
        bucket.commit(Operation::put(key(at), value.clone())).await;
        assert!(bucket.get(at).await.unwrap().value == value, "{at}");
        assert!(bucket.records(at).await[0].value == value, "{at} in its history");
    }
}

pub(super) async fn a_value_of_exactly_the_limit_is_taken(case: Case) {
    for limit in [1, 1000] {
        let bucket = case.bucket_with(|config| config.value_bytes_max = limit).await;
        let value = "x".repeat(limit as usize);
        bucket.put("a", &value).await;
        assert_eq!(bucket.text("a").await, Some(value));
    }
}

pub(super) async fn a_value_over_the_limit_is_refused(case: Case) {
    let bucket = case.bucket_with(|config| config.value_bytes_max = 10).await;
    bucket.put("a", "old").await;
    let result = bucket.try_commit(put("a", "12345678901")).await;
    refused!(result, CommitError::Engine(EngineError::ValueTooLarge { key: at, bytes: 11, limit: 10, .. })
        if at == key("a"));
    if case.capabilities().batch_operations_max > 1 {
        let batch = Batch::from(put("b", "small")).with(put("c", "12345678901"));
        refused!(bucket.try_commit(batch).await, CommitError::Engine(EngineError::ValueTooLarge { .. }));
    }
    assert_eq!(bucket.history("a").await, ["put a=old"]);
    assert_eq!(bucket.history("b").await, [""; 0]);
}

pub(super) async fn lowering_the_value_limit_keeps_larger_values(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "12345").await;
    bucket.update(|config| config.value_bytes_max = 4).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("12345"));
    let result = bucket.try_commit(put("b", "12345")).await;
    refused!(result, CommitError::Engine(EngineError::ValueTooLarge { .. }));
    bucket.put("b", "1234").await;
}

pub(super) async fn the_largest_value_of_the_engine_is_taken(case: Case) {
    let limit = case.capabilities().value_bytes_max;
    let bucket = case.bucket_with(|config| config.value_bytes_max = limit).await;
    let mut value = vec![0; limit as usize];
    value[limit as usize - 1] = 1;
    let value = Bytes::from(value);
    bucket.commit(Operation::put(key("a"), value.clone())).await;
    assert!(bucket.get("a").await.unwrap().value == value);
    let larger = Bytes::from(vec![0; limit as usize + 1]);
    let result = bucket.try_commit(Operation::put(key("a"), larger)).await;
    refused!(result, CommitError::Engine(EngineError::ValueTooLarge { .. }));
    assert!(bucket.get("a").await.unwrap().value == value);
}

pub(super) async fn headers_travel_with_their_records(case: Case) {
    let bucket = case.bucket().await;
    let mut headers = Headers::new();
    headers.set("Origin", "till 3, Zürich").unwrap();
    headers.set("Trace-Id", "").unwrap();
    let mut watch = bucket.watch(WatchStart::Now).await;
    let query = ScanQuery::default();
    bucket.commit(put("a", "1").with_headers(headers.clone())).await;
    assert_eq!(watch.entry().await.headers, headers);
    assert_eq!(bucket.get("a").await.unwrap().headers, headers);
    assert_eq!(bucket.scan(query).await.entries[0].headers, headers);
    assert_eq!(bucket.records("a").await[0].headers, headers);
    bucket.commit(Operation::delete(key("a")).with_headers(headers.clone())).await;
    assert_eq!(watch.entry().await.headers, headers);
    assert_eq!(bucket.records("a").await.last().unwrap().headers, headers);
    bucket.commit(Operation::purge(key("a")).with_headers(headers.clone())).await;
    assert_eq!(watch.entry().await.headers, headers);
    bucket.put("a", "2").await;
    assert!(bucket.get("a").await.unwrap().headers.is_empty(), "headers are those of a record, not of a key");
}

pub(super) async fn the_largest_headers_are_kept(case: Case) {
    let bucket = case.bucket().await;
    let mut headers = Headers::new();
    headers.set("a", &"x".repeat(HEADERS_BYTES_MAX / 2 - 1)).unwrap();
    headers.set("b", &"y".repeat(HEADERS_BYTES_MAX / 2 - 1)).unwrap();
    assert_eq!(headers.bytes(), HEADERS_BYTES_MAX);
    bucket.commit(put("a", "1").with_headers(headers.clone())).await;
    assert_eq!(bucket.get("a").await.unwrap().headers, headers);
}

pub(super) async fn the_longest_key_is_a_key_like_others(case: Case) {
    let bucket = case.bucket().await;
    let long = "k".repeat(KEY_BYTES_MAX);
    let dotted = ["t"; KEY_BYTES_MAX / 2].join(".");
    let mut watch = bucket.watch(WatchStart::Now).await;
    for at in [&long, &dotted] {
        bucket.put(at, "1").await;
        assert_eq!(watch.next().await, format!("put {at}=1"));
        assert_eq!(bucket.text(at).await.as_deref(), Some("1"));
    }
    bucket.put("z", "1").await;
    let mut query = ScanQuery { limit: 1, ..ScanQuery::default() };
    for at in [&*long, &*dotted, "z"] {
        let page = bucket.scan(query.clone()).await;
        assert_eq!(page.entries[0].key.as_str(), at);
        query.page = page.next;
    }
    assert_eq!(query.page, None);
    bucket.delete(&long).await;
    assert_eq!(bucket.get(&long).await, None);
}

pub(super) async fn keys_that_differ_in_one_byte_differ(case: Case) {
    let bucket = case.bucket().await;
    let keys = ["a", "A", "a.a", "a/a", "a=a", "a-a", "a_a", "aa", "a.a.a", "a0", "-", "_", "=", "/"];
    bucket.put_all(&keys).await;
    for at in keys {
        assert_eq!(bucket.text(at).await.as_deref(), Some(at));
    }
    bucket.delete("a").await;
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, keys.len() as u64 - 1);
}

pub(super) async fn reserved_keys_are_keys_like_others(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("_kv.lease.1", "1").await;
    bucket.put("a", "1").await;
    assert_eq!(bucket.text("_kv.lease.1").await.as_deref(), Some("1"));
    assert_eq!(bucket.keys(Selection::all()).await, ["_kv.lease.1", "a"]);
    assert_eq!(bucket.keys(Selection::prefix("_kv.")).await, ["_kv.lease.1"]);
}

pub(super) async fn deleting_leaves_a_marker(case: Case) {
    let bucket = case.bucket().await;
    let written = bucket.put("a", "1").await;
    let deleted = bucket.delete("a").await;
    assert!(deleted > written);
    assert_eq!(bucket.get("a").await, None);
    let marker = bucket.records("a").await.pop().unwrap();
    assert_eq!((marker.op, marker.revision, marker.expires), (Op::Delete, deleted, None));
    assert!(marker.value.is_empty());
}

pub(super) async fn deleting_an_absent_key_commits(case: Case) {
    let bucket = case.bucket().await;
    let once = bucket.delete("a").await;
    let twice = bucket.delete("a").await;
    assert!(twice > once);
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(
        bucket.records("a").await.last().map(|marker| (marker.op, marker.revision)),
        Some((Op::Delete, twice))
    );
}

pub(super) async fn purging_an_absent_key_commits(case: Case) {
    let bucket = case.bucket().await;
    let once = bucket.purge("a").await;
    let twice = bucket.purge("a").await;
    assert!(twice > once);
    let records = bucket.records("a").await;
    assert_eq!(
        records.iter().map(|marker| (marker.op, marker.revision)).collect::<Vec<_>>(),
        [(Op::Purge, twice)]
    );
}

pub(super) async fn a_deleted_key_can_be_written_again(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    bucket.delete("a").await;
    bucket.put("a", "2").await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    bucket.purge("a").await;
    bucket.put("a", "3").await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("3"));
    assert_eq!(bucket.count(Selection::all()).await, 1);
}
