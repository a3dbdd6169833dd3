use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::time::Duration;

use super::case::{Case, key, put};
use super::refused;
use crate::{
    At, Batch, CommitError, Compression, Durability, EngineError, METADATA_BYTES_MAX, Revision, ScanQuery,
    Selection, TTL_MAX, WatchQuery,
};

pub(super) async fn a_new_bucket_is_empty(case: Case) {
    let bucket = case.bucket().await;
    assert_eq!(bucket.count(Selection::all()).await, 0);
    assert_eq!(bucket.keys(Selection::all()).await, [""; 0]);
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.history("a").await, [""; 0]);
    let info = bucket.info().await;
    assert!(info.last_revision > Revision::ZERO, "creating it took a revision");
    assert_eq!(info.watches, 0);
    assert!(bucket.put("a", "1").await > info.last_revision);
}

pub(super) async fn a_bucket_remembers_its_configuration(case: Case) {
    let ttl = case.a_while(100);
    let bucket = case
        .bucket_with(|config| {
            config.ttl = Some(ttl);
            config.value_bytes_max = 4321;
            config.compression = Compression::Lz4;
            config.marker_ttl = None;
            config.feed_time = Some(Duration::from_secs(90));
            config.feed_bytes = Some(u64::MAX);
            config.metadata = BTreeMap::from([("owner".into(), "billing – überall".into())]);
        })
        .await;
    let info = bucket.info().await;
    assert_eq!(info.name, bucket.name);
    assert_eq!((info.config.ttl, info.config.value_bytes_max), (Some(ttl), 4321));
    assert_eq!(info.config.compression, Compression::Lz4);
    assert_eq!(info.config.marker_ttl, None);
    assert_eq!(info.config.feed_time, Some(Duration::from_secs(90)));
    assert_eq!(info.config.feed_bytes, Some(u64::MAX));
    assert_eq!(info.config.metadata["owner"], "billing – überall");
    assert_eq!(case.engine().buckets().await.unwrap(), [info]);
}

pub(super) async fn creating_a_bucket_again_finds_it(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let before = bucket.info().await;
    case.advance(case.a_while(1)).await;
    let found = case.engine().create_bucket(&bucket.name, before.config.clone()).await.unwrap();
    assert_eq!(found, before);
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn creating_a_bucket_with_another_configuration_is_refused(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let before = bucket.info().await;
    let mut other = before.config.clone();
    other.ttl = Some(case.a_while(100));
    other.value_bytes_max = 77;
    let result = case.engine().create_bucket(&bucket.name, other).await;
    refused!(result, EngineError::BucketExists { bucket: name, differences }
        if name == bucket.name && differences == ["ttl", "value_bytes_max"]);
    assert_eq!(bucket.info().await, before);
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn updating_a_bucket_replaces_its_configuration(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let (history, ttl) = (NonZeroU8::new(case.capabilities().history_max).unwrap(), case.a_while(100));
    let updated = bucket
        .update(|config| {
            config.history = history;
            config.ttl = Some(ttl);
            config.value_bytes_max = 9;
            config.durability = Durability::Buffered;
            config.compression = Compression::Lz4;
            config.marker_ttl = Some(TTL_MAX);
            config.feed_time = Some(TTL_MAX);
            config.feed_bytes = Some(1);
            config.metadata = BTreeMap::from([("a".into(), "b".into())]);
        })
        .await;
    assert_eq!(updated.config, bucket.info().await.config);
    assert_eq!(
        (updated.config.history, updated.config.ttl, updated.config.value_bytes_max),
        (history, Some(ttl), 9)
    );
    assert_eq!(
        (updated.config.durability, updated.config.compression),
        (Durability::Buffered, Compression::Lz4)
    );
    assert_eq!(updated.config.marker_ttl, Some(TTL_MAX));
    assert_eq!((updated.config.feed_time, updated.config.feed_bytes), (Some(TTL_MAX), Some(1)));
    assert_eq!(updated.config.metadata.len(), 1);
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
    bucket.put("b", "123456789").await;
    assert!(bucket.try_commit(put("c", "1234567890")).await.is_err());

    let plain = case.config();
    bucket.update(|config| *config = plain.clone()).await;
    assert_eq!(bucket.info().await.config, plain);
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn buckets_are_listed_by_name(case: Case) {
    assert_eq!(case.engine().buckets().await.unwrap(), []);
    for name in ["b", "a", "a-b", "B", "a_b", "10", "9"] {
        case.engine().create_bucket(&case.named(name).name, case.config()).await.unwrap();
    }
    case.named("a").remove().await;
    let listed = case.engine().buckets().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["10", "9", "B", "a-b", "a_b", "b"]);
}

pub(super) async fn deleting_a_bucket_deletes_everything_in_it(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b"]).await;
    bucket.delete("b").await;
    bucket.recreate().await;
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.history("a").await, [""; 0]);
    assert_eq!(bucket.history("b").await, [""; 0]);
    assert_eq!(bucket.count(Selection::all()).await, 0);
    bucket.put("c", "3").await;
    assert_eq!(bucket.keys(Selection::all()).await, ["c"]);
}

pub(super) async fn a_recreated_bucket_goes_on_with_higher_revisions(case: Case) {
    let bucket = case.bucket().await;
    let before = bucket.put_all(&["a", "b", "c"]).await;
    bucket.recreate().await;
    assert!(bucket.info().await.last_revision > before);
    assert!(bucket.put("a", "1").await > before);
    let conflict = bucket.conflict(super::case::put_over("a", "2", before)).await;
    assert!(conflict.actual > Some(before));
}

pub(super) async fn a_missing_bucket_is_not_found(case: Case) {
    case.bucket().await;
    let (engine, missing, at) = (case.engine(), case.named("missing").name, key("a"));
    let updated = engine.update_bucket(&missing, case.config()).await;
    refused!(updated, EngineError::BucketNotFound { bucket } if bucket == missing);
    refused!(engine.delete_bucket(&missing).await, EngineError::BucketNotFound { .. });
    refused!(engine.bucket(&missing).await, EngineError::BucketNotFound { .. });
    let batch = Batch::from(put("a", "1"));
    refused!(engine.commit(&missing, batch).await, CommitError::Engine(EngineError::BucketNotFound { .. }));
    refused!(engine.read(&missing, &at, At::Latest).await, EngineError::BucketNotFound { .. });
    refused!(
        engine.read(&missing, &at, At::Revision(Revision::new(1))).await,
        EngineError::BucketNotFound { .. }
    );
    refused!(engine.history(&missing, &at).await, EngineError::BucketNotFound { .. });
    refused!(engine.scan(&missing, ScanQuery::default()).await, EngineError::BucketNotFound { .. });
    refused!(engine.count(&missing, Selection::all()).await, EngineError::BucketNotFound { .. });
    let watch = engine.watch(&missing, WatchQuery::default()).await.map(|_| "a watch");
    refused!(watch, EngineError::BucketNotFound { .. });
    refused!(engine.compact_key(&missing, &at, NonZeroU8::MIN).await, EngineError::BucketNotFound { .. });
    assert_eq!(engine.buckets().await.unwrap().len(), 1, "none of that created it");
}

pub(super) async fn buckets_do_not_share_entries(case: Case) {
    let (one, other) = (case.bucket().await, case.bucket().await);
    one.put("a", "one").await;
    other.put("a", "other").await;
    other.put("b", "other").await;
    assert_eq!(one.text("a").await.as_deref(), Some("one"));
    assert_eq!(one.keys(Selection::all()).await, ["a"]);
    other.purge("a").await;
    assert_eq!(one.text("a").await.as_deref(), Some("one"));
    other.remove().await;
    assert_eq!(one.history("a").await, ["put a=one"]);
}

pub(super) async fn bad_configurations_are_refused(case: Case) {
    let (engine, name) = (case.engine(), case.named("bad").name);
    let create = async |change: fn(&mut crate::BucketConfig, &crate::Capabilities)| {
        let mut config = case.config();
        change(&mut config, case.capabilities());
        engine.create_bucket(&name, config).await
    };
    let history = create(|config, able| config.history = NonZeroU8::new(able.history_max + 1).unwrap());
    refused!(history.await, EngineError::InvalidConfig { field: "history", .. });
    let no_bytes = create(|config, _| config.value_bytes_max = 0);
    refused!(no_bytes.await, EngineError::InvalidConfig { field: "value_bytes_max", .. });
    let many_bytes = create(|config, able| config.value_bytes_max = able.value_bytes_max + 1);
    refused!(many_bytes.await, EngineError::InvalidConfig { field: "value_bytes_max", .. });
    let metadata = create(|config, _| {
        config.metadata.insert("a".into(), "x".repeat(METADATA_BYTES_MAX));
    });
    refused!(metadata.await, EngineError::InvalidConfig { field: "metadata", .. });
    let short = create(|config, able| config.ttl = Some(able.ttl_resolution - Duration::from_nanos(1)));
    refused!(short.await, EngineError::TtlOutOfRange { .. });
    let long = create(|config, _| config.ttl = Some(TTL_MAX + Duration::from_secs(1)));
    refused!(long.await, EngineError::TtlOutOfRange { .. });
    let markers = create(|config, _| config.marker_ttl = Some(Duration::ZERO));
    refused!(markers.await, EngineError::InvalidConfig { field: "marker_ttl", .. });
    let feed = create(|config, _| config.feed_time = Some(TTL_MAX + Duration::from_secs(1)));
    refused!(feed.await, EngineError::InvalidConfig { field: "feed_time", .. });
    assert_eq!(engine.buckets().await.unwrap(), []);
}

pub(super) async fn a_refused_update_changes_nothing(case: Case) {
    let bucket = case.bucket().await;
    bucket.put("a", "1").await;
    let before = bucket.info().await;
    let mut bad = before.config.clone();
    bad.metadata.insert("a".into(), "b".into());
    bad.value_bytes_max = 0;
    let result = case.engine().update_bucket(&bucket.name, bad).await;
    refused!(result, EngineError::InvalidConfig { field: "value_bytes_max", .. });
    assert_eq!(bucket.info().await, before);
    assert_eq!(bucket.text("a").await.as_deref(), Some("1"));
}

pub(super) async fn a_bucket_tells_its_newest_revision(case: Case) {
    let (bucket, other) = (case.bucket().await, case.bucket().await);
    let put = bucket.put("a", "1").await;
    assert_eq!(bucket.info().await.last_revision, put);
    other.put("a", "1").await;
    assert_eq!(bucket.info().await.last_revision, put);
    let deleted = bucket.delete("a").await;
    assert_eq!(bucket.info().await.last_revision, deleted);
    let purged = bucket.purge("never").await;
    assert_eq!(bucket.info().await.last_revision, purged);
}
