use std::collections::BTreeSet;

use super::{Need, PROMISES};
use crate::Capabilities;

#[test]
fn the_documentation_of_the_engine_lists_the_promises() {
    let mut listed = String::new();
    let mut heading = "";
    for promise in PROMISES {
        if promise.heading != heading {
            heading = promise.heading;
            listed += &format!("/// # {heading}\n");
        }
        listed += &format!("/// {}. `{}`: {}\n", promise.number, promise.name, promise.text);
    }
    let source = include_str!("../engine.rs");
    let is_listed = |line: &&str| {
        let text = line.strip_prefix("/// ").unwrap_or_default();
        text.starts_with("# ") || text.starts_with(|first: char| first.is_ascii_digit())
    };
    let documented: String = source.lines().filter(is_listed).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(documented, listed, "the documentation of `Engine` must hold this list:\n{listed}");
}

#[test]
fn promises_have_names_and_numbers_of_their_own() {
    let names: BTreeSet<&str> = PROMISES.iter().map(|promise| promise.name).collect();
    assert_eq!(names.len(), PROMISES.len());
    assert!((1..).zip(PROMISES).all(|(number, promise)| promise.number == number));
    assert!(PROMISES.iter().all(|promise| promise.text.ends_with('.') && !promise.text.contains('\n')));
}

#[test]
fn a_complete_engine_skips_nothing() {
    let complete = Capabilities::complete("complete");
    assert!(PROMISES.iter().flat_map(|promise| promise.needs).all(|need| need.is_met_by(&complete)));
}

#[test]
fn a_missing_capability_is_a_need_not_met() {
    let complete = Capabilities::complete("lacking");
    let lacking = [
        (Need::ReadsOwnWrites, Capabilities { reads_own_writes: false, ..complete.clone() }),
        (Need::ExpiredHistory, Capabilities { expired_history: false, ..complete.clone() }),
        (Need::SnapshotScans, Capabilities { snapshot_scans: false, ..complete.clone() }),
        (Need::CompleteFeed, Capabilities { complete_feed: false, ..complete.clone() }),
        (Need::Batches, Capabilities { batch_operations_max: 1, ..complete.clone() }),
        (Need::History, Capabilities { history_max: 1, ..complete.clone() }),
        (Need::Consumers, Capabilities { consumers: false, ..complete }),
    ];
    for (need, capabilities) in &lacking {
        assert!(!need.is_met_by(capabilities), "{need}");
        let others = lacking.iter().filter(|(other, _)| other != need);
        assert!(others.into_iter().all(|(other, _)| other.is_met_by(capabilities)), "{need}");
    }
}

/// An engine that keeps every promise but one.
mod broken {
    use std::num::NonZeroU8;
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use async_trait::async_trait;

    use crate::conformance::{Subject, check};
    use crate::*;

    #[derive(Debug)]
    struct Forgetful(MemoryEngine);

    #[async_trait]
    impl Engine for Forgetful {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }
        async fn create_bucket(
            &self,
            bucket: &BucketName,
            config: BucketConfig,
        ) -> Result<BucketInfo, EngineError> {
            self.0.create_bucket(bucket, config).await
        }
        async fn update_bucket(
            &self,
            bucket: &BucketName,
            config: BucketConfig,
        ) -> Result<BucketInfo, EngineError> {
            self.0.update_bucket(bucket, config).await
        }
        async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
            self.0.delete_bucket(bucket).await
        }
        async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
            self.0.bucket(bucket).await
        }
        async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
            self.0.buckets().await
        }
        async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
            // Headers are lost.
            let bare = |operation: &Operation| operation.clone().with_headers(Headers::new());
            self.0.commit(bucket, batch.operations().iter().map(bare).collect()).await
        }
        async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
            self.0.read(bucket, key, at).await
        }
        async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
            self.0.history(bucket, key).await
        }
        async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
            self.0.scan(bucket, query).await
        }
        async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
            self.0.count(bucket, selection).await
        }
        async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
            self.0.watch(bucket, query).await
        }
        async fn compact_key(
            &self,
            bucket: &BucketName,
            key: &Key,
            keep: NonZeroU8,
        ) -> Result<(), EngineError> {
            self.0.compact_key(bucket, key, keep).await
        }
        async fn create_consumer(
            &self,
            bucket: &BucketName,
            consumer: &ConsumerName,
            start: ConsumerStart,
        ) -> Result<ConsumerInfo, EngineError> {
            self.0.create_consumer(bucket, consumer, start).await
        }
        async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
            self.0.consumers(bucket).await
        }
        async fn consumer(
            &self,
            bucket: &BucketName,
            consumer: &ConsumerName,
        ) -> Result<ConsumerInfo, EngineError> {
            self.0.consumer(bucket, consumer).await
        }
        async fn acknowledge(
            &self,
            bucket: &BucketName,
            consumer: &ConsumerName,
            revision: Revision,
        ) -> Result<(), EngineError> {
            self.0.acknowledge(bucket, consumer, revision).await
        }
        async fn reset_consumer(
            &self,
            bucket: &BucketName,
            consumer: &ConsumerName,
            start: ConsumerStart,
        ) -> Result<ConsumerInfo, EngineError> {
            self.0.reset_consumer(bucket, consumer, start).await
        }
        async fn delete_consumer(
            &self,
            bucket: &BucketName,
            consumer: &ConsumerName,
        ) -> Result<(), EngineError> {
            self.0.delete_consumer(bucket, consumer).await
        }
        async fn close(&self) -> Result<(), EngineError> {
            self.0.close().await
        }
    }

    async fn open() -> Subject {
        Subject::with_real_clock(Arc::new(Forgetful(MemoryEngine::new())))
    }

    #[test]
    fn a_broken_promise_fails_and_the_others_do_not() {
        assert!(catch_unwind(|| check("headers_travel_with_their_records", open)).is_err());
        check("values_may_be_empty", open);
    }
}
