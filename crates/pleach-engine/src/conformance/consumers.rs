use super::case::{Bucket, Case, Task, at_once, consumer, told};
use super::refused;
use crate::{
    CONSUMERS_MAX, ConsumerInfo, ConsumerStart, Durability, EngineError, Revision, ScanQuery, Selection,
    WatchStart,
};

pub(super) async fn a_new_consumer_starts_where_it_was_told(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    let second = bucket.put("b", "1").await;
    let oldest = bucket.consume("oldest", ConsumerStart::Oldest).await;
    assert_eq!(oldest.name, consumer("oldest"));
    assert_eq!(oldest.next, bucket.info().await.feed_floor);
    assert!(oldest.next <= first);
    let at = bucket.consume("at", ConsumerStart::Revision(second)).await;
    assert_eq!(at.next, second);
    let now = bucket.consume("now", ConsumerStart::Now).await;
    assert!(now.next > second);
    let third = bucket.put("c", "1").await;
    assert!(now.next <= third);
    for info in [oldest, at, now] {
        assert_eq!(info.acknowledged, None);
        assert!(info.created >= bucket.info().await.created);
        assert_eq!(bucket.consumer(info.name.as_str()).await, info);
    }
}

pub(super) async fn a_consumer_starts_within_the_feed(case: Case) {
    case.bucket().await.put("a", "1").await;
    let bucket = case.bucket().await;
    let newest = bucket.put("a", "1").await;
    for far in [newest.plus(1_000_000), Revision::new(u64::MAX)] {
        let created = bucket.try_consume("far", ConsumerStart::Revision(far)).await;
        refused!(created, EngineError::FutureRevision { asked, .. } if asked == far);
    }
    let floor = bucket.info().await.feed_floor;
    if let Some(before) = floor.get().checked_sub(1) {
        let created = bucket.try_consume("past", ConsumerStart::Revision(Revision::new(before))).await;
        refused!(created, EngineError::Compacted { oldest } if oldest == floor);
    }
    assert_eq!(names(&bucket).await, [""; 0]);
    let next = bucket.consume("next", ConsumerStart::Revision(newest.next())).await.next;
    assert_eq!(next, newest.next());
}

pub(super) async fn creating_a_consumer_again_finds_it(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    bucket.consume("c", ConsumerStart::Oldest).await;
    bucket.acknowledge("c", first).await;
    let before = bucket.consumer("c").await;
    case.advance(case.a_while(1)).await;
    bucket.put("b", "1").await;
    let far = ConsumerStart::Revision(Revision::new(u64::MAX));
    for start in [ConsumerStart::Oldest, ConsumerStart::Now, far] {
        assert_eq!(bucket.consume("c", start).await, before);
    }
    assert_eq!(bucket.consumer("c").await, before);
}

pub(super) async fn consumers_are_listed_by_name(case: Case) {
    let bucket = case.bucket().await;
    assert_eq!(names(&bucket).await, [""; 0]);
    for name in ["b", "a", "a-b", "B", "a_b", "10", "9"] {
        bucket.consume(name, ConsumerStart::Now).await;
    }
    bucket.acknowledge("b", bucket.info().await.last_revision).await;
    bucket.engine.delete_consumer(&bucket.name, &consumer("a")).await.unwrap();
    assert_eq!(names(&bucket).await, ["10", "9", "B", "a-b", "a_b", "b"]);
    for info in listed(&bucket).await {
        assert_eq!(bucket.consumer(info.name.as_str()).await, info);
    }
}

pub(super) async fn acknowledging_moves_a_consumer_forward_only(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    let second = bucket.put("b", "1").await;
    let third = bucket.put("c", "1").await;
    let created = bucket.consume("c", ConsumerStart::Oldest).await;
    bucket.acknowledge("c", second).await;
    let moved = bucket.consumer("c").await;
    assert_eq!(moved.next, second.next());
    assert!(moved.acknowledged.is_some_and(|time| time >= created.created));
    assert_eq!((&moved.name, moved.created), (&created.name, created.created));
    case.advance(case.a_while(1)).await;
    for old in [Revision::ZERO, first, second] {
        bucket.acknowledge("c", old).await;
        assert_eq!(bucket.consumer("c").await, moved);
    }
    bucket.acknowledge("c", third).await;
    let again = bucket.consumer("c").await;
    assert_eq!(again.next, third.next());
    assert!(again.acknowledged > moved.acknowledged);
}

pub(super) async fn acknowledging_the_future_is_refused(case: Case) {
    let bucket = case.bucket().await;
    let newest = bucket.put("a", "1").await;
    bucket.consume("c", ConsumerStart::Oldest).await;
    let before = bucket.consumer("c").await;
    for far in [newest.plus(1_000_000), Revision::new(u64::MAX)] {
        let result = bucket.try_acknowledge("c", far).await;
        refused!(result, EngineError::FutureRevision { asked, newest: known } if asked == far && known >= newest);
    }
    assert_eq!(bucket.consumer("c").await, before);
}

pub(super) async fn of_concurrent_acknowledgements_the_furthest_holds(case: Case) {
    const WRITERS: usize = 4;
    let bucket = case.bucket_with(|config| config.durability = Durability::Buffered).await;
    bucket.consume("c", ConsumerStart::Oldest).await;
    let mut revisions = Vec::new();
    for round in 0..100 {
        revisions.push(bucket.put("a", &round.to_string()).await);
    }
    let acknowledge = |writer: usize| {
        let (bucket, revisions) = (bucket.clone(), revisions.clone());
        let task: Task<()> = Box::pin(async move {
            for revision in revisions.iter().skip(writer).step_by(WRITERS) {
                bucket.acknowledge("c", *revision).await;
                assert!(bucket.consumer("c").await.next > *revision, "it does not go back");
            }
        });
        task
    };
    at_once((0..WRITERS).map(acknowledge).collect()).await;
    assert_eq!(Some(bucket.consumer("c").await.next), revisions.last().map(|last| last.next()));
}

pub(super) async fn a_watch_from_a_consumer_misses_nothing(case: Case) {
    let bucket = case.bucket().await;
    bucket.consume("c", ConsumerStart::Now).await;
    let first = bucket.put("a", "1").await;
    bucket.delete("a").await;
    bucket.put("a", "2").await;
    assert_eq!(watched(&bucket, "c", 3).await, ["put a=1", "delete a", "put a=2"]);
    bucket.acknowledge("c", first).await;
    bucket.consume("other", ConsumerStart::Now).await;
    assert_eq!(watched(&bucket, "c", 2).await, ["delete a", "put a=2"]);
    bucket.acknowledge("c", bucket.info().await.last_revision).await;
    bucket.put("b", "1").await;
    assert_eq!(watched(&bucket, "c", 1).await, ["put b=1"]);
}

pub(super) async fn resetting_a_consumer_may_go_back(case: Case) {
    case.bucket().await.put("a", "1").await;
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    let second = bucket.put("b", "1").await;
    let created = bucket.consume("c", ConsumerStart::Now).await.created;
    bucket.acknowledge("c", bucket.put("c", "1").await).await;
    let floor = bucket.info().await.feed_floor;
    for (start, expected) in [
        (ConsumerStart::Revision(second), second),
        (ConsumerStart::Oldest, floor),
        (ConsumerStart::Revision(first), first),
    ] {
        let reset = bucket.try_reset("c", start).await.unwrap();
        assert_eq!((reset.next, reset.created, reset.acknowledged), (expected, created, None));
        assert_eq!(bucket.consumer("c").await, reset);
    }
    let last = bucket.info().await.last_revision;
    assert!(bucket.try_reset("c", ConsumerStart::Now).await.unwrap().next > last);
    let before = bucket.consumer("c").await;
    let far = Revision::new(u64::MAX);
    refused!(
        bucket.try_reset("c", ConsumerStart::Revision(far)).await,
        EngineError::FutureRevision { asked, .. } if asked == far
    );
    if let Some(past) = floor.get().checked_sub(1) {
        let reset = bucket.try_reset("c", ConsumerStart::Revision(Revision::new(past))).await;
        refused!(reset, EngineError::Compacted { oldest } if oldest == floor);
    }
    assert_eq!(bucket.consumer("c").await, before);
}

pub(super) async fn a_missing_consumer_is_not_found(case: Case) {
    let bucket = case.bucket().await;
    bucket.consume("c", ConsumerStart::Now).await;
    let (engine, name, missing) = (case.engine(), &bucket.name, consumer("missing"));
    let described = engine.consumer(name, &missing).await;
    refused!(described, EngineError::ConsumerNotFound { bucket: of, consumer } if of == *name && consumer == missing);
    let newest = bucket.info().await.last_revision;
    for revision in [newest, Revision::new(u64::MAX)] {
        refused!(engine.acknowledge(name, &missing, revision).await, EngineError::ConsumerNotFound { .. });
    }
    refused!(
        engine.reset_consumer(name, &missing, ConsumerStart::Oldest).await,
        EngineError::ConsumerNotFound { .. }
    );
    refused!(engine.delete_consumer(name, &missing).await, EngineError::ConsumerNotFound { .. });
    assert_eq!(names(&bucket).await, ["c"], "none of that created it");

    let (nowhere, at) = (case.named("missing").name, consumer("c"));
    let created = engine.create_consumer(&nowhere, &at, ConsumerStart::Now).await;
    refused!(created, EngineError::BucketNotFound { bucket } if bucket == nowhere);
    refused!(engine.consumers(&nowhere).await, EngineError::BucketNotFound { .. });
    refused!(engine.consumer(&nowhere, &at).await, EngineError::BucketNotFound { .. });
    refused!(engine.acknowledge(&nowhere, &at, newest).await, EngineError::BucketNotFound { .. });
    let reset = engine.reset_consumer(&nowhere, &at, ConsumerStart::Now).await;
    refused!(reset, EngineError::BucketNotFound { .. });
    refused!(engine.delete_consumer(&nowhere, &at).await, EngineError::BucketNotFound { .. });
}

pub(super) async fn a_deleted_consumer_is_forgotten(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    bucket.consume("c", ConsumerStart::Oldest).await;
    bucket.acknowledge("c", first).await;
    case.engine().delete_consumer(&bucket.name, &consumer("c")).await.unwrap();
    refused!(bucket.try_acknowledge("c", first).await, EngineError::ConsumerNotFound { .. });
    assert_eq!(names(&bucket).await, [""; 0]);
    let again = bucket.consume("c", ConsumerStart::Revision(first)).await;
    assert_eq!((again.next, again.acknowledged), (first, None));
}

pub(super) async fn deleting_a_bucket_deletes_its_consumers(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    bucket.consume("c", ConsumerStart::Oldest).await;
    bucket.acknowledge("c", first).await;
    bucket.recreate().await;
    assert_eq!(names(&bucket).await, [""; 0]);
    refused!(bucket.try_acknowledge("c", first).await, EngineError::ConsumerNotFound { .. });
    let again = bucket.consume("c", ConsumerStart::Oldest).await;
    assert!(again.next > first && again.acknowledged.is_none());
}

pub(super) async fn consumers_of_two_buckets_are_apart(case: Case) {
    let (one, other) = (case.bucket().await, case.bucket().await);
    let first = one.put("a", "1").await;
    one.consume("c", ConsumerStart::Oldest).await;
    refused!(other.try_acknowledge("c", first).await, EngineError::ConsumerNotFound { .. });
    let untouched = other.consume("c", ConsumerStart::Oldest).await;
    one.acknowledge("c", first).await;
    assert_eq!(other.consumer("c").await, untouched);
    let moved = one.consumer("c").await;
    other.remove().await;
    assert_eq!(listed(&one).await, [moved]);
}

pub(super) async fn a_consumer_leaves_no_trace_in_its_bucket(case: Case) {
    let bucket = case.bucket().await;
    let first = bucket.put("a", "1").await;
    let before = bucket.info().await;
    let mut watch = bucket.watch(WatchStart::Revision(first)).await;
    assert_eq!(told(&watch.entry().await), "put a=1");
    bucket.consume("c", ConsumerStart::Oldest).await;
    bucket.acknowledge("c", first).await;
    bucket.try_reset("c", ConsumerStart::Oldest).await.unwrap();
    bucket.engine.delete_consumer(&bucket.name, &consumer("c")).await.unwrap();
    let after = bucket.info().await;
    assert_eq!((after.last_revision, after.feed_floor), (before.last_revision, before.feed_floor));
    assert_eq!(after.config, before.config);
    let page = bucket.scan(ScanQuery::default()).await;
    assert_eq!(page.entries.iter().map(told).collect::<Vec<_>>(), ["put a=1"]);
    assert_eq!(bucket.count(Selection::all()).await, 1);
    bucket.put("b", "1").await;
    assert_eq!(watch.next().await, "put b=1");
}

pub(super) async fn too_many_consumers_are_refused(case: Case) {
    let bucket = case.bucket_with(|config| config.durability = Durability::Buffered).await;
    for number in 0..CONSUMERS_MAX {
        bucket.consume(&format!("c{number}"), ConsumerStart::Now).await;
    }
    let create = async |name| bucket.try_consume(name, ConsumerStart::Now).await;
    refused!(create("more").await, EngineError::TooManyConsumers { bucket: of, limit: CONSUMERS_MAX } if of == bucket.name);
    assert_eq!(listed(&bucket).await.len(), CONSUMERS_MAX);
    assert!(create("c1").await.is_ok(), "it is there already");
    case.bucket().await.consume("elsewhere", ConsumerStart::Now).await;
    case.engine().delete_consumer(&bucket.name, &consumer("c1")).await.unwrap();
    assert!(create("more").await.is_ok(), "there is room again");
}

async fn listed(bucket: &Bucket) -> Vec<ConsumerInfo> {
    bucket.engine.consumers(&bucket.name).await.expect("consumers can be listed")
}

async fn names(bucket: &Bucket) -> Vec<String> {
    listed(bucket).await.iter().map(|info| info.name.to_string()).collect()
}

/// The first changes of a watch from where a consumer stands.
async fn watched(bucket: &Bucket, name: &str, count: usize) -> Vec<String> {
    let next = bucket.consumer(name).await.next;
    bucket.watch(WatchStart::Revision(next)).await.take(count).await
}
