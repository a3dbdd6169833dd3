use super::case::Case;
use super::refused;
use crate::{At, EngineError, Revision};

pub(super) async fn a_read_at_a_revision_sees_the_value_of_then(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    let first = bucket.put("a", "1").await;
    let between = bucket.put("b", "1").await;
    let second = bucket.put("a", "2").await;
    let after = bucket.put("b", "2").await;
    for (revision, value) in [(first, "1"), (between, "1"), (second, "2"), (after, "2")] {
        assert_eq!(bucket.text_at("a", revision).await.as_deref(), Some(value), "at {revision}");
    }
    let read = bucket.try_read("a", At::Revision(between)).await.unwrap().unwrap();
    assert_eq!(read.revision, first, "an entry keeps its own revision");
}

pub(super) async fn a_read_at_a_marker_sees_nothing(case: Case) {
    let bucket = case.bucket_with_history(10).await;
    let first = bucket.put("a", "1").await;
    let deleted = bucket.delete("a").await;
    let between = bucket.put("b", "1").await;
    let second = bucket.put("a", "2").await;
    assert_eq!(bucket.text_at("a", first).await.as_deref(), Some("1"));
    assert_eq!(bucket.text_at("a", deleted).await, None);
    assert_eq!(bucket.text_at("a", between).await, None);
    assert_eq!(bucket.text_at("a", second).await.as_deref(), Some("2"));
}

pub(super) async fn a_read_at_a_forgotten_revision_says_compacted(case: Case) {
    let bucket = case.bucket_with_history(2).await;
    let forgotten = bucket.put("a", "1").await;
    let oldest = bucket.put("a", "2").await;
    let newest = bucket.put("a", "3").await;
    let read = bucket.try_read("a", At::Revision(forgotten)).await;
    refused!(read, EngineError::Compacted { oldest: kept } if kept == oldest);
    assert_eq!(bucket.text_at("a", oldest).await.as_deref(), Some("2"));
    bucket.compact("a", 1).await;
    let read = bucket.try_read("a", At::Revision(oldest)).await;
    refused!(read, EngineError::Compacted { oldest: kept } if kept == newest);
    let purged = bucket.purge("a").await;
    let read = bucket.try_read("a", At::Revision(newest)).await;
    refused!(read, EngineError::Compacted { oldest: kept } if kept == purged);
}

pub(super) async fn a_read_before_the_first_record_says_compacted(case: Case) {
    let bucket = case.bucket().await;
    let before = bucket.put("b", "1").await;
    let first = bucket.put("a", "1").await;
    for revision in [Revision::ZERO, before] {
        let read = bucket.try_read("a", At::Revision(revision)).await;
        refused!(read, EngineError::Compacted { oldest } if oldest == first);
    }
}

pub(super) async fn a_read_at_a_future_revision_is_refused(case: Case) {
    let bucket = case.bucket().await;
    let newest = bucket.put("a", "1").await;
    for asked in [newest.plus(1_000_000), Revision::new(u64::MAX)] {
        for at in ["a", "missing"] {
            let read = bucket.try_read(at, At::Revision(asked)).await;
            refused!(read, EngineError::FutureRevision { asked: said, newest: last }
                if said == asked && last >= newest && last < asked);
        }
    }
}

pub(super) async fn a_missing_key_was_never_there(case: Case) {
    let bucket = case.bucket().await;
    let newest = bucket.put("a", "1").await;
    for revision in [Revision::ZERO, newest] {
        assert_eq!(bucket.text_at("b", revision).await, None);
    }
    assert_eq!(bucket.get("b").await, None);
}
