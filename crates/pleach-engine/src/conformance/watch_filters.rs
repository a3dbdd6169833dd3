use super::case::{Case, filter, key, told};
use super::refused;
use crate::{Batch, BatchPart, EngineError, WATCH_FILTERS_MAX, WatchQuery, WatchStart};

pub(super) async fn a_watch_of_one_key_sees_that_key_only(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch_by(&["a.b"], WatchStart::Now).await;
    bucket.put_all(&["a", "a.b", "a.b.c", "a.bb", "A.b"]).await;
    bucket.delete("a").await;
    bucket.delete("a.b").await;
    bucket.purge("a.b").await;
    assert_eq!(watch.take(3).await, ["put a.b=a.b", "delete a.b", "purge a.b"]);
}

pub(super) async fn a_watch_takes_wildcards(case: Case) {
    let bucket = case.bucket().await;
    let mut one = bucket.watch_by(&["a.*.c"], WatchStart::Now).await;
    let mut more = bucket.watch_by(&["a.>"], WatchStart::Now).await;
    let mut all = bucket.watch_by(&[">"], WatchStart::Now).await;
    let mut unfiltered = bucket.watch(WatchStart::Now).await;
    let keys = ["a", "a.b", "a.b.c", "a.b.c.d", "b.b.c", "a.x.c"];
    bucket.put_all(&keys).await;
    let puts = |keys: &[&str]| keys.iter().map(|at| format!("put {at}={at}")).collect::<Vec<_>>();
    assert_eq!(one.take(2).await, puts(&["a.b.c", "a.x.c"]));
    assert_eq!(more.take(4).await, puts(&["a.b", "a.b.c", "a.b.c.d", "a.x.c"]));
    assert_eq!(all.take(6).await, puts(&keys));
    assert_eq!(unfiltered.take(6).await, puts(&keys));
}

pub(super) async fn overlapping_filters_deliver_once(case: Case) {
    let bucket = case.bucket().await;
    let filters = ["a.*", "a.>", "a.b", "*.b", "c"];
    let mut watch = bucket.watch_by(&filters, WatchStart::Now).await;
    bucket.put_all(&["a.b", "x", "a.c", "c", "c.d"]).await;
    bucket.put("a.b", "end").await;
    let seen = watch.take(4).await;
    assert_eq!(seen, ["put a.b=a.b", "put a.c=a.c", "put c=c", "put a.b=end"]);
    let mut latest = bucket.watch_by(&filters, WatchStart::Latest).await;
    assert_eq!(latest.initial_sorted().await, ["put a.b=end", "put a.c=a.c", "put c=c"]);
}

pub(super) async fn initial_values_pass_the_filters(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a.1", "b.1", "a.2", "c"]).await;
    for (start, at) in [(WatchStart::Latest, "x.1"), (WatchStart::History, "y.1")] {
        let mut some = bucket.watch_by(&["a.*", "c"], start).await;
        assert_eq!(some.initial_sorted().await, ["put a.1=a.1", "put a.2=a.2", "put c=c"]);
        let mut none = bucket.watch_by(&[at], start).await;
        assert_eq!(none.initial_sorted().await, [""; 0]);
        bucket.put(at, "1").await;
        assert_eq!(none.next().await, format!("put {at}=1"));
        bucket.put("c", "c").await;
        assert_eq!(some.next().await, "put c=c");
    }
    let from = bucket.info().await.last_revision;
    bucket.put_all(&["b.2", "a.3"]).await;
    let mut resumed = bucket.watch_by(&["a.*"], WatchStart::Revision(from)).await;
    assert_eq!(resumed.next().await, "put a.3=a.3");
}

pub(super) async fn a_filter_sees_its_parts_of_a_batch(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch_by(&["a.*"], WatchStart::Now).await;
    let batch =
        Batch::new().put(key("a.1"), "1").put(key("b.1"), "1").delete(key("a.2")).put(key("b.2"), "1");
    let committed = bucket.commit(batch).await;
    let (first, second) = (watch.change().await, watch.change().await);
    assert_eq!([told(&first.entry), told(&second.entry)], ["put a.1=1", "delete a.2"]);
    assert_eq!(first.batch, BatchPart { index: 0, size: 4 });
    assert_eq!(second.batch, BatchPart { index: 2, size: 4 });
    assert_eq!(second.entry.revision, committed.first.plus(2));
}

pub(super) async fn too_many_filters_are_refused(case: Case) {
    let bucket = case.bucket().await;
    let filters = |count: usize| (0..count).map(|n| filter(&format!("k{n}"))).collect();
    let most = WatchQuery { filters: filters(WATCH_FILTERS_MAX), start: WatchStart::Now };
    let mut watch = bucket.try_watch(most).await.unwrap();
    let more = WatchQuery { filters: filters(WATCH_FILTERS_MAX + 1), start: WatchStart::Now };
    refused!(bucket.try_watch(more).await, EngineError::TooManyFilters { limit: WATCH_FILTERS_MAX, count }
        if count == WATCH_FILTERS_MAX + 1);
    bucket.put_all(&["other", "k63"]).await;
    assert_eq!(watch.next().await, "put k63=k63");
}
