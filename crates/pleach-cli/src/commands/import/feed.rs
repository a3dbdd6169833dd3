use std::time::Duration;

use pleach::{
    Action, Bucket, EngineError, Entry, Error, Op, Operation, Revision, WatchEvent, WatchOptions, WatchStart,
};

use crate::wait::{self, Interrupt, Waited};

/// How long the feed may take to deliver what it already has.
const FEED_PATIENCE: Duration = Duration::from_secs(30);

/// Whether `batch` was committed to a bucket after the revision `after`.
///
/// The import that was interrupted had the bucket at `after` just before it committed the batch, so a batch
/// of this size that begins with this record is its own.
pub(super) async fn has_batch(bucket: &Bucket, batch: &[Operation], after: Revision) -> anyhow::Result<bool> {
    let newest = bucket.info().await?.last_revision;
    let Some(first) = batch.first().filter(|_| newest > after) else { return Ok(false) };
    let options = WatchOptions { start: WatchStart::Revision(after.next()), ..WatchOptions::default() };
    let mut watch = match bucket.watch_with(options).await {
        Err(Error::Engine(EngineError::Compacted { .. })) => return in_history(bucket, first, after).await,
        watch => watch?,
    };
    while let Waited::Item(event) = wait::next(&mut watch, Some(FEED_PATIENCE), &Interrupt::never()) {
        let change = match event {
            Err(Error::Engine(EngineError::Compacted { .. })) => {
                return in_history(bucket, first, after).await;
            }
            Ok(WatchEvent::InitialDone { .. }) => continue,
            Ok(WatchEvent::Change(change)) => change,
            Err(error) => return Err(error.into()),
        };
        let begins = change.batch.index == 0 && usize::from(change.batch.size) == batch.len();
        if begins && is_record_of(&change.entry, first) {
            return Ok(true);
        }
        if change.entry.revision >= newest {
            break;
        }
    }
    Ok(false)
}

/// The second best answer, where the feed no longer goes back that far.
async fn in_history(bucket: &Bucket, first: &Operation, after: Revision) -> anyhow::Result<bool> {
    let records = bucket.history(&first.key).await?;
    Ok(records.iter().any(|record| record.revision > after && is_record_of(record, first)))
}

fn is_record_of(entry: &Entry, operation: &Operation) -> bool {
    let done = match &operation.action {
        Action::Put { value, .. } => entry.op.is_put() && entry.value == *value,
        Action::Delete => entry.op == Op::Delete,
        Action::Purge => entry.op == Op::Purge,
    };
    done && entry.key == operation.key && entry.headers == operation.headers
}

#[cfg(test)]
mod tests {
    use pleach::{Batch, Key, Store};

    use super::*;

    fn put(key: &str, value: &'static str) -> Operation {
        Operation::put(Key::parse(key).unwrap(), value)
    }

    #[test]
    fn only_the_batch_itself_is_recognised() {
        pollster::block_on(async {
            let bucket = Store::in_memory().create_bucket("b").await.unwrap();
            bucket.put("a", "0").await.unwrap();
            let after = bucket.info().await.unwrap().last_revision;
            let batch = [put("a", "1"), put("b", "1")];
            assert!(!has_batch(&bucket, &batch, after).await.unwrap());
            bucket.put("a", "1").await.unwrap();
            assert!(!has_batch(&bucket, &batch, after).await.unwrap(), "alone, it is not the batch");
            bucket.commit(batch.iter().cloned().collect::<Batch>()).await.unwrap();
            bucket.put("a", "2").await.unwrap();
            assert!(has_batch(&bucket, &batch, after).await.unwrap());
            let newest = bucket.info().await.unwrap().last_revision;
            assert!(!has_batch(&bucket, &batch, newest).await.unwrap(), "it is older than that");
        });
    }
}
