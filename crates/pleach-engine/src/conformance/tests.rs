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
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use async_trait::async_trait;

    use crate::conformance::{Subject, check};
    use crate::*;

    #[derive(Debug)]
    struct Forgetful(MemoryEngine);

    #[async_trait]
    impl Engine for Forgetful {
        async fn commit(&self, bucket: &BucketName, mut batch: Batch) -> Result<Committed, CommitError> {
            // Headers are lost.
            for operation in batch.operations_mut() {
                operation.headers = Headers::new();
            }
            self.0.commit(bucket, batch).await
        }

        hand_on!([0] capabilities create_bucket update_bucket delete_bucket bucket buckets read history scan);
        hand_on!([0] count watch compact_key create_consumer consumers consumer acknowledge reset_consumer);
        hand_on!([0] delete_consumer close);
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
