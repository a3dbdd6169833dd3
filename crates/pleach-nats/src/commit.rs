use std::collections::HashMap;
use std::time::Duration;

use pleach_engine::{
    Action, Batch, BucketName, CommitError, Committed, Conflict, EngineError, Entry, Expectation, Expiry,
    Key, Operation, Revision, Timestamp,
};

use crate::bucket::Bucket;
use crate::config::Settings;
use crate::engine::Shared;
use crate::publish::{Publication, Published};
use crate::runtime::pause;

/// How long to wait before expectations are judged again while servers agree on an earlier commit.
const AGREE_EVERY: Duration = Duration::from_millis(3);

/// The one way in which anything is written.
impl Shared {
    pub(crate) async fn commit(&self, name: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        let bucket = self.bucket(name).await?;
        self.commit_to(&bucket, batch).await
    }

    pub(crate) async fn commit_to(&self, bucket: &Bucket, batch: Batch) -> Result<Committed, CommitError> {
        let settings = bucket.settings();
        let batch = batch.check(&bucket.name, &settings.config, &self.capabilities)?;
        let operations = batch.into_operations();
        check_possible(&settings, &operations)?;
        // A key that was never written has no revision, and revision zero is none: the server would take it for that.
        let hopeless = |operation: &Operation| operation.expect == Expectation::Revision(Revision::ZERO);
        if operations.iter().any(hopeless) {
            Box::pin(self.judge(bucket, &operations)).await?;
        }
        let mut guards: Vec<Option<u64>> =
            operations.iter().map(|operation| guard(operation, None)).collect();
        let started = self.clock.elapsed();
        loop {
            // What failed for certain is tried again as something new.
            let (id, time) = (self.next_id(), self.clock.now());
            let (operations, guarded) = (&operations[..], &guards[..]);
            let publication =
                Publication { bucket, settings: &settings, operations, guards: guarded, id: &id, time };
            let last = match self.publish(&publication).await? {
                Published::Stored(last) => last,
                Published::StoredBefore => {
                    let replaced = "it happened, but everything it wrote has been replaced since";
                    Box::pin(self.find_stored(&publication, replaced)).await?
                }
                Published::InDoubt(reason) => Box::pin(self.find_stored(&publication, &reason)).await?,
                Published::Conflict => {
                    let judged = Box::pin(self.judge(bucket, operations)).await?;
                    let is_in_doubt = judged == guards;
                    guards = judged;
                    if self.clock.elapsed().saturating_sub(started) > self.options.patience {
                        return Err(EngineError::Overloaded.into());
                    }
                    // What was true all along is being agreed on; what is known better by now can be tried at once.
                    if is_in_doubt {
                        pause(AGREE_EVERY).await;
                    }
                    continue;
                }
            };
            bucket.see(last);
            let first = (last + 1).saturating_sub(operations.len() as u64);
            return Ok(Committed { first: Revision::new(first), last: Revision::new(last), time });
        }
    }

    /// Checks what operations expect against what is there. Returns the guards under which it stays true.
    async fn judge(
        &self,
        bucket: &Bucket,
        operations: &[Operation],
    ) -> Result<Vec<Option<u64>>, CommitError> {
        let guarded = operations.iter().filter(|operation| operation.expect != Expectation::Any);
        let keys: Vec<Key> = guarded.map(|operation| operation.key.clone()).collect();
        // One is asked of the leader at once; of many, only those that seem to fail.
        let is_many = keys.len() > 1;
        let many = if is_many { self.newest_of(bucket, &keys).await? } else { HashMap::new() };
        let mut guards = Vec::with_capacity(operations.len());
        for operation in operations {
            if operation.expect == Expectation::Any {
                guards.push(None);
                continue;
            }
            let holds = |newest: Option<&Entry>| check(bucket, operation, newest, self.clock.now());
            let mut newest = many.get(&operation.key).cloned();
            if !is_many || holds(newest.as_ref()).is_err() {
                let record = self.newest_at_leader(bucket, &operation.key).await?;
                newest = record.and_then(|record| Some(record.into_change(&bucket.names)?.entry));
            }
            holds(newest.as_ref()).map_err(CommitError::Conflict)?;
            guards.push(guard(operation, newest.as_ref()));
        }
        Ok(guards)
    }

    /// The last revision of a commit that an earlier attempt has made, found by the name of any of its messages. If none is
    /// there, nobody knows what became of it, for this reason.
    async fn find_stored(&self, publication: &Publication<'_>, reason: &str) -> Result<u64, EngineError> {
        let last = publication.operations.len() - 1;
        for (index, operation) in publication.operations.iter().enumerate().rev() {
            let record = self.newest_at_leader(publication.bucket, &operation.key).await?;
            let Some(record) = record else { continue };
            if record.name() == Some(&publication.name(index)) {
                return Ok(record.sequence + (last - index) as u64);
            }
        }
        Err(EngineError::UnknownOutcome {
            bucket: publication.bucket.name.clone(),
            reason: reason.to_owned(),
        })
    }
}

/// Refuses what the bucket's stream cannot do, before anything is written.
fn check_possible(settings: &Settings, operations: &[Operation]) -> Result<(), EngineError> {
    let expires = |operation: &Operation| matches!(&operation.action, Action::Put { expiry, .. } if *expiry != Expiry::Bucket);
    if operations.len() > 1 && !settings.is_atomic {
        return Err(EngineError::Unsupported {
            what: "batches in this bucket: its stream has no allow_atomic",
        });
    }
    if operations.iter().any(expires) {
        if settings.config.history.get() > 1 {
            let what = "values with an expiry of their own in a bucket that keeps history";
            return Err(EngineError::Unsupported { what });
        }
        if !settings.takes_ttl {
            let what = "values with an expiry of their own in this bucket: its stream has no allow_msg_ttl";
            return Err(EngineError::Unsupported { what });
        }
    }
    Ok(())
}

/// What the server shall check of the newest record of a key.
fn guard(operation: &Operation, newest: Option<&Entry>) -> Option<u64> {
    match operation.expect {
        Expectation::Any => None,
        Expectation::Absent => Some(newest.map_or(0, |newest| newest.revision.get())),
        Expectation::Revision(revision) => Some(revision.get()),
    }
}

/// Whether what an operation expects of its key is true.
fn check(
    bucket: &Bucket,
    operation: &Operation,
    newest: Option<&Entry>,
    now: Timestamp,
) -> Result<(), Conflict> {
    let newest = newest.filter(|newest| !newest.op.is_put() || bucket.is_live(newest, now));
    operation.check(&bucket.name, newest.map(|newest| (newest.revision, newest.op)))
}
