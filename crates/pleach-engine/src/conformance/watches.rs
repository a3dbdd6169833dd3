use super::case::{Case, key, put, told};
use super::refused;
use crate::{Batch, BatchPart, EngineError, Expiry, Headers, Revision, WatchEvent, WatchQuery, WatchStart};

pub(super) async fn a_watch_from_now_sees_what_is_committed_next(case: Case) {
    let bucket = case.bucket().await;
    for round in 0..20 {
        bucket.put("before", &round.to_string()).await;
        let mut watch = bucket.watch(WatchStart::Now).await;
        bucket.put("after", &round.to_string()).await;
        assert_eq!(watch.next().await, format!("put after={round}"));
    }
}

pub(super) async fn a_waiting_watch_is_woken(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch_by(&["a"], WatchStart::Latest).await;
    watch.initial().await;
    for round in 0..3 {
        let commit = async {
            bucket.put("b", "1").await;
            bucket.put("a", &round.to_string()).await;
        };
        let Some(Ok(WatchEvent::Change(change))) = watch.woken_by(commit).await else {
            panic!("a change comes")
        };
        assert_eq!(told(&change.entry), format!("put a={round}"));
    }
}

pub(super) async fn a_watch_sees_every_change_once_in_order(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let mut revisions = Vec::new();
    for round in 0..10 {
        revisions.push(bucket.put("a", &round.to_string()).await);
        revisions.push(bucket.delete("a").await);
        revisions.push(bucket.put("b", &round.to_string()).await);
        revisions.push(bucket.purge("c").await);
    }
    for round in 0..10 {
        for expected in
            [format!("put a={round}"), "delete a".into(), format!("put b={round}"), "purge c".into()]
        {
            let entry = watch.entry().await;
            assert_eq!(told(&entry), expected);
            assert_eq!(entry.revision, revisions.remove(0));
        }
    }
    bucket.put("end", "1").await;
    assert_eq!(watch.next().await, "put end=1");
}

pub(super) async fn a_change_shows_its_whole_record(case: Case) {
    let bucket = case.bucket_with_ttl(case.a_while(100)).await;
    let mut headers = Headers::new();
    headers.set("Origin", "here").unwrap();
    let mut watch = bucket.watch(WatchStart::Now).await;
    let operation = put("a", "1").with_headers(headers).expiring(Expiry::After(case.a_while(200)));
    bucket.commit(operation).await;
    let change = watch.change().await;
    assert_eq!(Some(change.entry), bucket.get("a").await);
    assert_eq!(change.batch, BatchPart::SINGLE);
    bucket.delete("a").await;
    assert_eq!(Some(watch.entry().await), bucket.records("a").await.pop());
}

pub(super) async fn a_watch_begins_with_the_latest_values(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c", "d"]).await;
    bucket.put("a", "2").await;
    bucket.delete("b").await;
    bucket.purge("c").await;
    let newest = bucket.info().await.last_revision;
    let mut watch = bucket.watch(WatchStart::Latest).await;
    let (mut values, revision) = watch.initial().await;
    values.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(values.iter().map(told).collect::<Vec<_>>(), ["put a=2", "put d=d"]);
    assert_eq!(Some(&values[0]), bucket.get("a").await.as_ref());
    assert!(revision >= newest);
    let next = bucket.put("d", "2").await;
    assert!(next > revision);
    assert_eq!(watch.next().await, "put d=2");
}

pub(super) async fn a_watch_of_an_empty_bucket_has_an_initial_end(case: Case) {
    let bucket = case.bucket().await;
    let mut latest = bucket.watch(WatchStart::Latest).await;
    let mut history = bucket.watch(WatchStart::History).await;
    for watch in [&mut latest, &mut history] {
        assert_eq!(watch.initial().await.0, []);
    }
    bucket.put("a", "1").await;
    for watch in [&mut latest, &mut history] {
        assert_eq!(watch.next().await, "put a=1");
    }
}

pub(super) async fn a_watch_begins_with_history(case: Case) {
    let bucket = case.bucket_with_history(3).await;
    for value in ["1", "2", "3", "4"] {
        bucket.put("a", value).await;
    }
    bucket.put("b", "1").await;
    bucket.delete("b").await;
    bucket.put("c", "1").await;
    bucket.purge("c").await;
    let mut watch = bucket.watch(WatchStart::History).await;
    let (records, _) = watch.initial().await;
    for (at, kept) in [("a", 3), ("b", 2), ("c", 1)] {
        let of_key: Vec<_> = records.iter().filter(|entry| entry.key == key(at)).cloned().collect();
        assert_eq!(of_key, bucket.records(at).await);
        assert_eq!(of_key.len(), kept);
    }
    assert_eq!(records.len(), 6);
    bucket.put("a", "5").await;
    assert_eq!(watch.next().await, "put a=5");
}

pub(super) async fn a_watch_from_a_revision_includes_it(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let from = bucket.put("b", "1").await;
    bucket.put("c", "1").await;
    let mut watch = bucket.watch(WatchStart::Revision(from)).await;
    assert_eq!(watch.take(2).await, ["put b=1", "put c=1"]);
    bucket.put("d", "1").await;
    assert_eq!(watch.next().await, "put d=1");
}

pub(super) async fn a_watch_from_a_gap_begins_after_it(case: Case) {
    let (bucket, other) = (case.bucket().await, case.bucket().await);
    let before = bucket.put("a", "1").await;
    other.put("x", "1").await;
    bucket.update(|config| config.value_bytes_max = 1000).await;
    bucket.put("b", "1").await;
    let mut watch = bucket.watch(WatchStart::Revision(before.next())).await;
    assert_eq!(watch.next().await, "put b=1");
}

pub(super) async fn a_watch_from_the_next_revision_waits_for_it(case: Case) {
    let bucket = case.bucket().await;
    let newest = bucket.put("a", "1").await;
    let mut watch = bucket.watch(WatchStart::Revision(newest.next())).await;
    bucket.put("b", "1").await;
    assert_eq!(watch.next().await, "put b=1");
    for far in [newest.plus(1_000_000), Revision::new(u64::MAX)] {
        let query = WatchQuery { start: WatchStart::Revision(far), ..WatchQuery::default() };
        refused!(bucket.try_watch(query).await, EngineError::FutureRevision { asked, .. } if asked == far);
    }
}

pub(super) async fn a_watch_from_a_revision_sees_what_is_no_longer_kept(case: Case) {
    let bucket = case.bucket().await;
    let from = bucket.put("a", "1").await;
    bucket.put("a", "2").await;
    bucket.delete("a").await;
    bucket.put("b", "1").await;
    bucket.purge("b").await;
    bucket.put("a", "3").await;
    let mut watch = bucket.watch(WatchStart::Revision(from)).await;
    let seen = watch.take(6).await;
    assert_eq!(seen, ["put a=1", "put a=2", "delete a", "put b=1", "purge b", "put a=3"]);
}

pub(super) async fn a_watch_from_before_the_feed_says_compacted(case: Case) {
    case.bucket().await.put("a", "1").await;
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let floor = bucket.info().await.feed_floor;
    let mut watch = bucket.watch(WatchStart::Revision(floor)).await;
    assert_eq!(watch.next().await, "put a=1", "nothing before it has been forgotten");
    let Some(before) = floor.get().checked_sub(1) else { return };
    let oldest = compacted(&bucket, Revision::new(before)).await;
    assert_eq!(oldest, floor);
}

pub(super) async fn a_watch_resumed_in_a_recreated_bucket_says_compacted(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let last = bucket.put("b", "1").await;
    bucket.recreate().await;
    let first = bucket.put("c", "1").await;
    let oldest = compacted(&bucket, last).await;
    assert!(oldest > last && oldest <= first);
    let mut watch = bucket.watch(WatchStart::Revision(oldest)).await;
    assert_eq!(watch.next().await, "put c=1");
}

pub(super) async fn a_batch_is_delivered_together_and_marked(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let keys: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
    bucket.put("before", "1").await;
    let committed = bucket.commit(keys.iter().map(|at| put(at, "1")).collect::<Batch>()).await;
    bucket.put("after", "1").await;
    assert_eq!(watch.change().await.batch, BatchPart::SINGLE);
    for (index, at) in (0..).zip(&keys) {
        let change = watch.change().await;
        assert_eq!(change.batch, BatchPart { index, size: 100 });
        assert_eq!((change.entry.key.as_str(), change.entry.time), (at.as_str(), committed.time));
        assert_eq!(change.entry.revision, committed.first.plus(u64::from(index)));
        assert_eq!(change.batch.is_last(), index == 99);
    }
    assert_eq!(watch.change().await.batch, BatchPart::SINGLE);
}

pub(super) async fn a_change_can_be_read_once_it_is_delivered(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let writer = bucket.clone();
    let writing = super::case::start_together(vec![Box::pin(async move {
        for round in 0..100 {
            writer.put("a", &round.to_string()).await;
        }
    })]);
    for _ in 0..100 {
        let seen = watch.entry().await;
        let read = bucket.get("a").await.expect("it was written");
        assert!(read.revision >= seen.revision);
    }
    super::case::finish(writing).await;
}

pub(super) async fn watches_do_not_disturb_each_other(case: Case) {
    let bucket = case.bucket().await;
    let mut first = bucket.watch(WatchStart::Now).await;
    bucket.put("a", "1").await;
    let mut second = bucket.watch(WatchStart::Now).await;
    let third = bucket.watch(WatchStart::Latest).await;
    bucket.put("b", "1").await;
    drop(third);
    bucket.put("c", "1").await;
    assert_eq!(second.take(2).await, ["put b=1", "put c=1"]);
    assert_eq!(first.take(3).await, ["put a=1", "put b=1", "put c=1"]);
}

pub(super) async fn a_watch_sees_its_own_bucket_only(case: Case) {
    let (bucket, other) = (case.bucket().await, case.bucket().await);
    let mut watch = bucket.watch(WatchStart::Now).await;
    other.put("a", "other").await;
    other.purge("a").await;
    bucket.put("a", "own").await;
    other.remove().await;
    bucket.put("b", "own").await;
    assert_eq!(watch.take(2).await, ["put a=own", "put b=own"]);
}

pub(super) async fn a_watch_ends_when_its_bucket_is_deleted(case: Case) {
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let mut other = bucket.watch(WatchStart::Now).await;
    let ended = watch.woken_by(bucket.remove()).await;
    assert!(matches!(ended, Some(Err(EngineError::BucketNotFound { .. }))), "{ended:?}");
    assert!(watch.item().await.is_none());
    case.engine().create_bucket(&bucket.name, case.config()).await.unwrap();
    bucket.put("a", "1").await;
    assert!(matches!(other.end().await, EngineError::BucketNotFound { .. }));
}

pub(super) async fn dropping_a_watch_frees_it(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let starts = [WatchStart::Now, WatchStart::Latest, WatchStart::History];
    let mut open = Vec::new();
    for start in starts {
        open.push(bucket.watch(start).await);
    }
    assert_eq!(bucket.info().await.watches, 3);
    assert_eq!(open[1].next().await, "put a=1");
    drop(open);
    // The engine may take a moment to notice, but then it is so.
    let freed = async {
        while bucket.info().await.watches > 0 {
            tokio::task::yield_now().await;
        }
    };
    let freed = tokio::time::timeout(std::time::Duration::from_secs(120), freed).await;
    assert!(freed.is_ok(), "{} watches are still counted", bucket.info().await.watches);
    bucket.put("a", "2").await;
}

pub(super) async fn a_slow_watch_misses_nothing_or_is_told(case: Case) {
    const BATCHES: u64 = 200;
    const BATCH: u64 = 100;
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    for batch in 0..BATCHES {
        let puts = (0..BATCH).map(|n| put(&format!("k{n}"), &(batch * BATCH + n).to_string()));
        bucket.commit(puts.collect::<Batch>()).await;
    }
    for expected in 0..BATCHES * BATCH {
        match watch.item().await {
            Some(Ok(WatchEvent::Change(change))) => {
                assert_eq!(super::case::value_text(&change.entry), expected.to_string(), "there is a gap");
            }
            Some(Err(EngineError::Compacted { oldest })) => {
                let mut resumed = bucket.watch(WatchStart::Revision(oldest)).await;
                resumed.entry().await;
                return;
            }
            other => panic!("expected change {expected} or Compacted, got {other:?}"),
        }
    }
}

/// The oldest revision that watching from `from` must name, at once or as the first event.
async fn compacted(bucket: &super::case::Bucket, from: Revision) -> Revision {
    let query = WatchQuery { start: WatchStart::Revision(from), ..WatchQuery::default() };
    let error = match bucket.try_watch(query).await {
        Ok(mut watch) => watch.end().await,
        Err(error) => error,
    };
    let EngineError::Compacted { oldest } = error else { panic!("expected Compacted, got {error:?}") };
    oldest
}
