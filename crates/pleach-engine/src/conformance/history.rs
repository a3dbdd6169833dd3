use std::num::NonZeroU8;

use super::case::{Case, put_new, put_over};
use crate::{HISTORY_MAX, Selection, WatchStart};

pub(super) async fn history_is_oldest_first_with_markers(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    bucket.put("b", "1").await;
    bucket.put("a", "2").await;
    bucket.delete("a").await;
    bucket.put("a", "3").await;
    assert_eq!(bucket.history("a").await, ["put a=1", "put a=2", "delete a", "put a=3"]);
    let records = bucket.records("a").await;
    assert!(records.is_sorted_by(|older, newer| older.revision < newer.revision && older.time <= newer.time));
}

pub(super) async fn history_keeps_the_newest_records(case: Case) {
    let bucket = case.bucket_with_history(3).await;
    for value in ["1", "2", "3", "4"] {
        bucket.put("a", value).await;
        bucket.put("b", value).await;
    }
    assert_eq!(bucket.history("a").await, ["put a=2", "put a=3", "put a=4"]);
    bucket.delete("a").await;
    bucket.delete("a").await;
    assert_eq!(bucket.history("a").await, ["put a=4", "delete a", "delete a"]);
    assert_eq!(bucket.history("b").await, ["put b=2", "put b=3", "put b=4"]);
}

pub(super) async fn a_history_of_one_keeps_only_the_newest(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    bucket.put("a", "2").await;
    assert_eq!(bucket.history("a").await, ["put a=2"]);
    bucket.delete("a").await;
    assert_eq!(bucket.history("a").await, ["delete a"]);
}

pub(super) async fn the_longest_history_is_kept(case: Case) {
    let bucket = case.bucket_with_history(HISTORY_MAX).await;
    for value in 0..=HISTORY_MAX {
        bucket.put("a", &value.to_string()).await;
    }
    let kept: Vec<String> = (1..=HISTORY_MAX).map(|value| format!("put a={value}")).collect();
    assert_eq!(bucket.history("a").await, kept);
}

pub(super) async fn history_of_a_missing_key_is_empty(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a.b", "1").await;
    assert_eq!(bucket.history("a").await, [""; 0]);
    assert_eq!(bucket.history("a.b.c").await, [""; 0]);
}

pub(super) async fn a_purge_leaves_one_marker_and_no_history(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    bucket.put("a", "2").await;
    bucket.put("b", "1").await;
    bucket.purge("a").await;
    assert_eq!(bucket.history("a").await, ["purge a"]);
    assert_eq!(bucket.get("a").await, None);
    bucket.put("a", "3").await;
    bucket.delete("a").await;
    assert_eq!(bucket.history("a").await, ["purge a", "put a=3", "delete a"]);
    assert_eq!(bucket.history("b").await, ["put b=1"]);
}

pub(super) async fn a_deleted_value_never_shows_an_older_one(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    bucket.put("a", "2").await;
    bucket.delete("a").await;
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 0);
    assert_eq!(bucket.keys(Selection::all()).await, [""; 0]);
    bucket.commit(put_new("a", "3")).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("3"));
}

pub(super) async fn lowering_history_trims_at_once(case: Case) {
    let bucket = case.bucket_with_history(5).await;
    for value in ["1", "2", "3", "4"] {
        bucket.put("a", value).await;
    }
    bucket.put("b", "1").await;
    bucket.put("b", "2").await;
    bucket.delete("b").await;
    bucket.update(|config| config.history = NonZeroU8::new(2).unwrap()).await;
    assert_eq!(bucket.history("a").await, ["put a=3", "put a=4"]);
    assert_eq!(bucket.history("b").await, ["put b=2", "delete b"]);
    assert_eq!(bucket.get("b").await, None);
    bucket.put("a", "5").await;
    assert_eq!(bucket.history("a").await, ["put a=4", "put a=5"]);
}

pub(super) async fn raising_history_brings_nothing_back(case: Case) {
    let bucket = case.bucket_with_history(5).await;
    for value in ["1", "2", "3"] {
        bucket.put("a", value).await;
    }
    bucket.update(|config| config.history = NonZeroU8::MIN).await;
    bucket.update(|config| config.history = NonZeroU8::new(5).unwrap()).await;
    assert_eq!(bucket.history("a").await, ["put a=3"]);
    bucket.put("a", "4").await;
    bucket.put("a", "5").await;
    assert_eq!(bucket.history("a").await, ["put a=3", "put a=4", "put a=5"]);
}

pub(super) async fn compacting_keeps_the_newest_records(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    for value in ["1", "2", "3", "4"] {
        bucket.put("a", value).await;
        bucket.put("b", value).await;
    }
    bucket.compact("a", 2).await;
    assert_eq!(bucket.history("a").await, ["put a=3", "put a=4"]);
    assert_eq!(bucket.history("b").await.len(), 4);
    bucket.compact("a", 1).await;
    assert_eq!(bucket.history("a").await, ["put a=4"]);
    assert_eq!(bucket.text("a").await.as_deref(), Some("4"));
    bucket.put("a", "5").await;
    assert_eq!(bucket.history("a").await, ["put a=4", "put a=5"]);
}

pub(super) async fn compacting_with_few_records_changes_nothing(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    let newest = bucket.put("a", "2").await;
    bucket.compact("a", 2).await;
    bucket.compact("a", HISTORY_MAX).await;
    bucket.compact("missing", 1).await;
    assert_eq!(bucket.history("a").await, ["put a=1", "put a=2"]);
    assert_eq!(bucket.history("missing").await, [""; 0]);
    assert_eq!(bucket.info().await.last_revision, newest);
    bucket.commit(put_over("a", "3", newest)).await;
}

pub(super) async fn compacting_a_deleted_key_revives_nothing(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    let marker = bucket.delete("a").await;
    bucket.compact("a", 1).await;
    assert_eq!(bucket.history("a").await, ["delete a"]);
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 0);
    bucket.commit(put_over("a", "2", marker)).await;
    assert_eq!(bucket.history("a").await, ["delete a", "put a=2"]);
}

pub(super) async fn compacting_delivers_no_change(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    bucket.put("a", "1").await;
    bucket.put("a", "2").await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    bucket.compact("a", 1).await;
    bucket.compact("missing", 1).await;
    bucket.put("b", "1").await;
    assert_eq!(watch.next().await, "put b=1");
}
