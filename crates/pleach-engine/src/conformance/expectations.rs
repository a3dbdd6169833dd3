use super::case::{Case, key, put, put_new, put_over};
use crate::{Batch, Expectation, Operation, Revision};

pub(super) async fn any_always_holds(case: Case) {
    let bucket = case.bucket().await;
    let any = |value| put("a", value).expecting(Expectation::Any);
    bucket.commit(any("missing")).await;
    bucket.commit(any("live")).await;
    bucket.delete("a").await;
    bucket.commit(any("deleted")).await;
    bucket.purge("a").await;
    bucket.commit(any("purged")).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("purged"));
}

pub(super) async fn absent_holds_without_a_live_value(case: Case) {
    let bucket = case.bucket().await;
    bucket.commit(put_new("a", "missing")).await;
    bucket.delete("a").await;
    bucket.commit(put_new("a", "deleted")).await;
    bucket.purge("a").await;
    bucket.commit(put_new("a", "purged")).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("purged"));
}

pub(super) async fn absent_fails_on_a_live_value(case: Case) {
    let bucket = case.bucket().await;
    let live = bucket.put("a", "1").await;
    let conflict = bucket.conflict(put_new("a", "2")).await;
    assert_eq!((conflict.bucket, conflict.key), (bucket.name.clone(), key("a")));
    assert_eq!((conflict.expected, conflict.actual), (Expectation::Absent, Some(live)));
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn a_revision_holds_for_the_newest_value(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    bucket.put("b", "1").await;
    let second = bucket.commit(put_over("a", "2", first)).await.last;
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
    let conflict = bucket.conflict(put_over("a", "3", first)).await;
    assert_eq!((conflict.expected, conflict.actual), (Expectation::Revision(first), Some(second)));
    bucket.commit(put_over("a", "3", second)).await;
}

pub(super) async fn a_revision_holds_for_the_newest_marker(case: Case) {
    let bucket = case.bucket().await;
    let written = bucket.put("a", "1").await;
    let deleted = bucket.delete("a").await;
    assert_eq!(bucket.conflict(put_over("a", "2", written)).await.actual, Some(deleted));
    bucket.commit(put_over("a", "2", deleted)).await;
    let purged = bucket.purge("a").await;
    assert_eq!(bucket.conflict(put_over("a", "3", deleted)).await.actual, Some(purged));
    bucket.commit(put_over("a", "3", purged)).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("3"));
}

pub(super) async fn a_revision_that_is_not_the_newest_fails(case: Case) {
    let bucket = case.bucket().await;
    let older = bucket.put("a", "1").await;
    let newest = bucket.put("a", "2").await;
    let never = [Revision::ZERO, newest.next(), Revision::new(u64::MAX)];
    for wrong in [older].into_iter().chain(never) {
        let conflict = bucket.conflict(put_over("a", "3", wrong)).await;
        assert_eq!((conflict.expected, conflict.actual), (Expectation::Revision(wrong), Some(newest)));
    }
    assert_eq!(bucket.text("a").await.as_deref(), Some("2"));
}

pub(super) async fn a_revision_fails_on_a_missing_key(case: Case) {
    let bucket = case.bucket().await;
    let other = bucket.put("b", "1").await;
    for wrong in [Revision::ZERO, other, other.next()] {
        assert_eq!(bucket.conflict(put_over("a", "1", wrong)).await.actual, None);
    }
    assert_eq!(bucket.get("a").await, None);
}

pub(super) async fn a_revision_of_another_key_fails(case: Case) {
    let (bucket, elsewhere) = (case.bucket().await, case.bucket().await);
    let one = bucket.put("a", "1").await;
    let other = bucket.put("b", "1").await;
    // Each bucket may count for itself, so that the first revisions of two would be the same number.
    elsewhere.put("b", "1").await;
    let foreign = elsewhere.put("a", "1").await;
    assert_ne!(foreign, one);
    assert_eq!(bucket.conflict(put_over("a", "2", other)).await.actual, Some(one));
    assert_eq!(bucket.conflict(put_over("a", "2", foreign)).await.actual, Some(one));
}

pub(super) async fn deletes_and_purges_have_expectations_too(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    let absent = Expectation::Absent;
    for operation in [Operation::delete(key("a")), Operation::purge(key("a"))] {
        assert_eq!(bucket.conflict(operation.clone().expecting(absent)).await.actual, Some(first));
        let wrong = Expectation::Revision(first.next());
        assert_eq!(bucket.conflict(operation.expecting(wrong)).await.actual, Some(first));
    }
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
    let deleted =
        bucket.commit(Operation::delete(key("a")).expecting(Expectation::Revision(first))).await.last;
    let purge = Operation::purge(key("a")).expecting(Expectation::Revision(deleted));
    bucket.commit(purge).await;
    bucket.commit(Operation::delete(key("a")).expecting(absent)).await;
    assert_eq!(bucket.history("a").await.last().map(String::as_str), Some("delete a"));
}

pub(super) async fn the_conflict_names_the_first_that_fails(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c"]).await;
    let newest = bucket.get("b").await.unwrap().revision;
    let batch = Batch::new().with(put_new("z", "1")).with(put_new("b", "1")).with(put_new("a", "1"));
    let conflict = bucket.conflict(batch.with(put_over("c", "1", Revision::ZERO))).await;
    assert_eq!((conflict.key, conflict.actual), (key("b"), Some(newest)));
}

pub(super) async fn expectations_are_judged_before_the_batch(case: Case) {
    let bucket = case.bucket().await;
    let before = bucket.put("a", "0").await;
    // The batch would give these very revisions to its own records.
    for steps in 1..=2 {
        let batch = Batch::from(put("a", "1")).with(put_over("b", "1", before.plus(steps)));
        assert_eq!(bucket.conflict(batch).await.actual, None);
    }
    bucket.commit(Batch::from(put_new("b", "1")).with(put_over("a", "1", before))).await;
}
