use super::case::{Case, put_new, put_over, told};
use crate::{BatchPart, Op, WatchEvent, WatchStart};

pub(super) async fn expiry_is_delivered_as_a_change(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let mut watch = bucket.watch(WatchStart::Now).await;
    let written = bucket.put_for("a", "1", ttl).await;
    assert_eq!(watch.next().await, "put a=1");
    let expiry = watch.woken_by(case.advance(ttl)).await;
    let Some(Ok(WatchEvent::Change(change))) = expiry else { panic!("expected the expiry, got {expiry:?}") };
    assert_eq!(told(&change.entry), "expire a");
    assert!(change.entry.revision > written);
    assert_eq!((change.entry.expires, change.batch), (None, BatchPart::SINGLE));
    assert_eq!(bucket.info().await.last_revision, change.entry.revision);
}

pub(super) async fn expiry_is_delivered_once(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let mut watch = bucket.watch(WatchStart::Now).await;
    bucket.put_for("rewritten", "1", ttl).await;
    bucket.put("rewritten", "2").await;
    bucket.put_for("a", "1", ttl).await;
    bucket.put_for("renewed", "1", ttl).await;
    bucket.put_for("renewed", "2", 100 * ttl).await;
    case.advance(ttl).await;
    bucket.put_for("last", "1", ttl).await;
    case.advance(2 * ttl).await;
    let seen = watch.until("expire last").await;
    let expired: Vec<&String> = seen.iter().filter(|seen| seen.starts_with("expire")).collect();
    assert_eq!(expired, ["expire a", "expire last"]);
}

pub(super) async fn a_deleted_value_does_not_expire(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let mut watch = bucket.watch(WatchStart::Now).await;
    for at in ["deleted", "purged", "last"] {
        bucket.put_for(at, "1", ttl).await;
    }
    bucket.delete("deleted").await;
    bucket.purge("purged").await;
    case.advance(2 * ttl).await;
    let seen = watch.until("expire last").await;
    assert_eq!(seen[3..], ["delete deleted", "purge purged", "expire last"]);
    bucket.put("end", "1").await;
    assert_eq!(watch.next().await, "put end=1");
    assert_eq!(bucket.history("deleted").await, ["delete deleted"]);

    let bucket = case.bucket_with_ttl(case.a_while(2)).await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    bucket.put("deleted", "1").await;
    bucket.delete("deleted").await;
    bucket.put("last", "1").await;
    case.advance(case.a_while(2)).await;
    let seen = watch.until("expire last").await;
    assert_eq!(seen, ["put deleted=1", "delete deleted", "put last=1", "expire last"]);
}

pub(super) async fn every_expired_value_is_delivered(case: Case) {
    let ttl = case.a_while(2);
    let bucket = case.bucket_with_ttl(ttl).await;
    let keys: Vec<String> = (0..30).map(|n| format!("k{n:02}")).collect();
    for at in &keys {
        bucket.put(at, "1").await;
    }
    let mut watch = bucket.watch(WatchStart::Now).await;
    case.advance(ttl).await;
    let mut seen = watch.take(keys.len()).await;
    seen.sort();
    assert_eq!(seen, keys.iter().map(|at| format!("expire {at}")).collect::<Vec<_>>());
    bucket.put("end", "1").await;
    assert_eq!(watch.next().await, "put end=1");
}

pub(super) async fn expiry_is_recorded_in_history(case: Case) {
    let (bucket, ttl) = (case.bucket_with_history(2).await, case.a_while(1));
    let mut watch = bucket.watch(WatchStart::Now).await;
    bucket.put("a", "1").await;
    bucket.put_for("a", "2", ttl).await;
    case.advance(ttl).await;
    watch.until("expire a").await;
    assert_eq!(bucket.history("a").await, ["put a=2", "expire a"]);
    assert_eq!(bucket.records("a").await.last().unwrap().op, Op::Expire);
    bucket.put("a", "3").await;
    assert_eq!(bucket.history("a").await, ["expire a", "put a=3"]);
}

pub(super) async fn an_expiry_marker_is_the_newest_record(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let mut watch = bucket.watch(WatchStart::Now).await;
    for at in ["a", "b"] {
        bucket.put_for(at, "1", ttl).await;
    }
    watch.take(2).await;
    case.advance(ttl).await;
    let mut markers = [watch.entry().await, watch.entry().await];
    markers.sort_by(|one, other| one.key.cmp(&other.key));
    bucket.commit(put_over("a", "2", markers[0].revision)).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    bucket.commit(put_new("b", "2")).await;
    bucket.conflict(put_over("b", "3", markers[1].revision)).await;
}

pub(super) async fn a_bucket_ttl_that_shortens_delivers_expiry(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    case.advance(case.a_while(2)).await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    bucket.update(|config| config.ttl = Some(case.a_while(1))).await;
    assert_eq!(watch.next().await, "expire a");
    bucket.put("b", "1").await;
    assert_eq!(watch.next().await, "put b=1");
    case.advance(case.a_while(1)).await;
    assert_eq!(watch.next().await, "expire b");
}

pub(super) async fn expired_values_are_no_latest_values(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    bucket.put_for("a", "1", ttl).await;
    bucket.put("b", "1").await;
    case.advance(ttl).await;
    let mut watch = bucket.watch(WatchStart::Latest).await;
    assert_eq!(watch.initial_sorted().await, ["put b=1"]);
}
