use std::time::Duration;

use super::case::{Case, key, put, put_new, put_over};
use super::refused;
use crate::{CommitError, EngineError, Expectation, Expiry, Operation, Selection, TTL_MAX, Timestamp};

pub(super) async fn a_value_is_gone_at_exactly_its_moment(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(2));
    let committed = bucket.commit(put("a", "1").expiring(Expiry::After(ttl))).await;
    bucket.put("b", "1").await;
    assert_eq!(bucket.get("a").await.unwrap().expires, Some(committed.time.saturating_add(ttl)));
    if case.is_exact() {
        case.advance(ttl - Duration::from_micros(1)).await;
        assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
        assert_eq!(bucket.count(Selection::all()).await, 2);
        bucket.conflict(put_new("a", "2")).await;
        case.advance(Duration::from_micros(1)).await;
    } else {
        case.advance(ttl).await;
    }
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 1);
    assert_eq!(bucket.keys(Selection::all()).await, ["b"]);
    bucket.commit(put_new("a", "2")).await;
}

pub(super) async fn a_bucket_ttl_expires_its_values(case: Case) {
    let ttl = case.a_while(4);
    let bucket = case.bucket_with_ttl(ttl).await;
    let committed = bucket.commit(put("a", "1")).await;
    assert_eq!(bucket.get("a").await.unwrap().expires, Some(committed.time.saturating_add(ttl)));
    case.advance(case.a_while(2)).await;
    bucket.put("b", "1").await;
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "b"]);
    case.advance(case.a_while(2)).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["b"]);
    case.advance(case.a_while(2)).await;
    assert_eq!(bucket.keys(Selection::all()).await, [""; 0]);
}

pub(super) async fn the_earlier_of_two_expiries_holds(case: Case) {
    let (short, long) = (case.a_while(2), case.a_while(50));
    for (by_bucket, by_entry) in [(short, long), (long, short)] {
        let bucket = case.bucket_with_ttl(by_bucket).await;
        let committed = bucket.commit(put("a", "1").expiring(Expiry::After(by_entry))).await;
        let expires = Some(committed.time.saturating_add(short));
        assert_eq!(bucket.get("a").await.unwrap().expires, expires);
        assert_eq!(bucket.records("a").await[0].expires, expires);
        case.advance(short).await;
        assert_eq!(bucket.get("a").await, None);
    }
}

pub(super) async fn an_expiry_can_be_a_moment(case: Case) {
    let bucket = case.bucket().await;
    let now = bucket.commit(put("clock", "1")).await.time;
    let soon = now.saturating_add(case.a_while(3));
    bucket.commit(put("a", "1").expiring(Expiry::At(soon))).await;
    assert_eq!(bucket.get("a").await.unwrap().expires, Some(soon));
    for passed in [now, Timestamp::default()] {
        bucket.commit(put("late", "1").expiring(Expiry::At(passed))).await;
        assert_eq!(bucket.get("late").await, None);
    }
    bucket.commit(put("last", "1").expiring(Expiry::At(Timestamp::MAX))).await;
    case.advance(case.a_while(3)).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["clock", "last"]);
}

pub(super) async fn an_expired_value_is_absent(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let first = bucket.put_for("a", "1", ttl).await;
    case.advance(ttl).await;
    let second = bucket.commit(put_new("a", "2")).await.last;
    assert!(second > first);
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    bucket.put_for("b", "1", ttl).await;
    case.advance(ttl).await;
    bucket.commit(Operation::delete(key("b")).expecting(Expectation::Absent)).await;
}

pub(super) async fn an_expired_value_matches_no_revision(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    let written = bucket.put_for("a", "1", ttl).await;
    case.advance(ttl).await;
    // Again and again, so that the engine may have recorded the expiry in between.
    for _ in 0..3 {
        assert_eq!(bucket.conflict(put_over("a", "2", written)).await.actual, None);
        assert_eq!(bucket.get("a").await, None);
    }
    case.advance(ttl).await;
    assert_eq!(bucket.conflict(put_over("a", "2", written)).await.actual, None);
}

pub(super) async fn an_expired_value_never_shows_an_older_one(case: Case) {
    let (bucket, ttl) = (case.bucket_with_history(10).await, case.a_while(1));
    bucket.put("a", "1").await;
    bucket.put_for("a", "2", ttl).await;
    case.advance(ttl).await;
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 0);
    assert_eq!(bucket.keys(Selection::all()).await, [""; 0]);
    assert_eq!(bucket.history("a").await[..2], ["put a=1", "put a=2"], "history shows both");
}

pub(super) async fn an_expired_value_is_gone_at_its_revision_too(case: Case) {
    let (bucket, ttl) = (case.bucket_with_history(10).await, case.a_while(2));
    let lasting = bucket.put("a", "1").await;
    let written = bucket.put_for("a", "2", ttl).await;
    assert_eq!(bucket.text_at("a", written).await.as_deref(), Some("2"));
    case.advance(ttl).await;
    assert_eq!(bucket.text_at("a", written).await, None);
    assert_eq!(bucket.text_at("a", lasting).await.as_deref(), Some("1"));
}

pub(super) async fn rewriting_renews_expiry(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(4));
    bucket.put_for("a", "1", ttl).await;
    case.advance(case.a_while(2)).await;
    bucket.put_for("a", "2", ttl).await;
    case.advance(case.a_while(2)).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    case.advance(case.a_while(2)).await;
    assert_eq!(bucket.get("a").await, None);
}

pub(super) async fn rewriting_without_a_ttl_clears_expiry(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(2));
    bucket.put_for("a", "1", ttl).await;
    bucket.put("a", "2").await;
    assert_eq!(bucket.get("a").await.unwrap().expires, None);
    case.advance(2 * ttl).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
}

pub(super) async fn an_expired_key_can_be_written_again(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(1));
    bucket.put_for("a", "1", ttl).await;
    case.advance(ttl).await;
    bucket.put("a", "2").await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    case.advance(2 * ttl).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    assert_eq!(bucket.history("a").await.last().map(String::as_str), Some("put a=2"));
}

pub(super) async fn a_ttl_of_zero_is_refused(case: Case) {
    let bucket = case.bucket().await;
    let too_short = case.capabilities().ttl_resolution - Duration::from_nanos(1);
    for ttl in [Duration::ZERO, too_short] {
        let result = bucket.try_commit(put("a", "1").expiring(Expiry::After(ttl))).await;
        refused!(result, CommitError::Engine(EngineError::TtlOutOfRange { ttl: said, .. }) if said == ttl);
        let mut config = bucket.info().await.config;
        config.ttl = Some(ttl);
        let result = case.engine().update_bucket(&bucket.name, config).await;
        refused!(result, EngineError::TtlOutOfRange { .. });
    }
    assert_eq!(bucket.history("a").await, [""; 0]);
}

pub(super) async fn an_absurd_ttl_is_refused(case: Case) {
    let bucket = case.bucket().await;
    for ttl in [TTL_MAX + Duration::from_nanos(1), Duration::from_secs(u64::MAX / 1_000_000), Duration::MAX] {
        let result = bucket.try_commit(put("a", "1").expiring(Expiry::After(ttl))).await;
        refused!(result, CommitError::Engine(EngineError::TtlOutOfRange { max: TTL_MAX, .. }));
        let mut config = bucket.info().await.config;
        config.ttl = Some(ttl);
        let result = case.engine().update_bucket(&bucket.name, config).await;
        refused!(result, EngineError::TtlOutOfRange { .. });
    }
    assert_eq!(bucket.history("a").await, [""; 0]);
}

pub(super) async fn the_shortest_and_longest_ttl_are_taken(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_for("short", "1", case.capabilities().ttl_resolution).await;
    let committed = bucket.commit(put("long", "1").expiring(Expiry::After(TTL_MAX))).await;
    case.advance(case.a_while(1)).await;
    assert_eq!(bucket.get("short").await, None);
    assert_eq!(bucket.get("long").await.unwrap().expires, Some(committed.time.saturating_add(TTL_MAX)));
}

pub(super) async fn shortening_the_bucket_ttl_expires_what_is_there(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("old", "1").await;
    case.advance(case.a_while(3)).await;
    let young = bucket.commit(put("young", "1")).await;
    let ttl = case.a_while(3);
    bucket.update(|config| config.ttl = Some(ttl)).await;
    assert_eq!(bucket.get("old").await, None);
    assert_eq!(bucket.keys(Selection::all()).await, ["young"]);
    bucket.conflict(put_new("young", "2")).await;
    bucket.commit(put_new("old", "2")).await;
    assert_eq!(bucket.get("young").await.unwrap().expires, Some(young.time.saturating_add(ttl)));
}

pub(super) async fn lengthening_the_bucket_ttl_keeps_what_is_there(case: Case) {
    let (short, long) = (case.a_while(3), case.a_while(100));
    let bucket = case.bucket_with_ttl(short).await;
    let committed = bucket.commit(put("a", "1")).await;
    bucket.update(|config| config.ttl = Some(long)).await;
    case.advance(short).await;
    assert_eq!(bucket.get("a").await.unwrap().expires, Some(committed.time.saturating_add(long)));
    bucket.update(|config| config.ttl = None).await;
    assert_eq!(bucket.get("a").await.unwrap().expires, None);
    if case.is_exact() {
        case.advance(long).await;
    }
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn a_longer_bucket_ttl_revives_nothing(case: Case) {
    let ttl = case.a_while(1);
    let bucket = case.bucket_with_ttl(ttl).await;
    bucket.put("a", "1").await;
    case.advance(ttl).await;
    bucket.update(|config| config.ttl = None).await;
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 0);
    bucket.commit(put_new("a", "2")).await;
}

pub(super) async fn expiry_does_not_reach_into_a_recreated_bucket(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(2));
    bucket.put_for("a", "1", ttl).await;
    bucket.put_for("b", "1", ttl).await;
    bucket.recreate().await;
    bucket.put("a", "2").await;
    case.advance(2 * ttl).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    assert_eq!(bucket.history("a").await, ["put a=2"]);
    assert_eq!(bucket.history("b").await, [""; 0]);
}
