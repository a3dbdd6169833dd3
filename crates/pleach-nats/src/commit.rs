use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use pleach_engine::{
    Action, Batch, BucketName, Check, CommitError, Committed, Conflict, Demand, EngineError, Entry,
    Expectation, Expiry, Key, Operation, Revision, Timestamp,
};

use crate::bucket::Bucket;
use crate::config::Settings;
use crate::engine::Shared;
use crate::names::Names;
use crate::publish::{Publication, Published};
use crate::runtime::pause;

/// How long to wait before expectations are judged again while servers agree on an earlier commit.
const AGREE_EVERY: Duration = Duration::from_millis(3);

/// The oldest server that judges several checks of keys of one length in a batch each by its own key. Older ones may take
/// one for another, and let pass what they should refuse (nats-server #8376).
const SEVERAL_CHECKS_MIN: (i64, i64, i64) = (2, 14, 4);

/// The oldest server of the series before it that does, and the first that is not of that series.
const SEVERAL_CHECKS_BACKPORT: [(i64, i64, i64); 2] = [(2, 12, 14), (2, 13, 0)];

/// The one way in which anything is written.
impl Shared {
    pub(crate) async fn commit(&self, name: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        let bucket = self.bucket(name).await?;
        self.commit_to(&bucket, batch).await
    }

    pub(crate) async fn commit_to(&self, bucket: &Bucket, batch: Batch) -> Result<Committed, CommitError> {
        let settings = bucket.settings();
        let batch = batch.check(&bucket.name, &settings.config, &self.capabilities)?;
        let (operations, checks) = batch.into_parts();
        self.check_possible(bucket, &settings, &operations, &checks)?;
        let subjects: Vec<String> = checks.iter().map(|check| bucket.names.subject(check.key())).collect();
        let demands: Vec<Demand<'_>> =
            operations.iter().map(Operation::demand).chain(checks.iter().map(Check::demand)).collect();
        // A key that was never written has no revision, and revision zero is none: the server would take it for that.
        let hopeless = |demand: &Demand<'_>| demand.expect == Expectation::Revision(Revision::ZERO);
        if demands.iter().any(hopeless) {
            Box::pin(self.judge(bucket, &demands)).await?;
        }
        let mut guards: Vec<Option<u64>> = demands.iter().map(|demand| guard(*demand, None)).collect();
        let started = self.clock.elapsed();
        loop {
            // What failed for certain is tried again as something new.
            let (id, time) = (self.next_id(), self.clock.now());
            let (guarded, checked) = guards.split_at(operations.len());
            let checked = checked.iter().map(|guard| guard.unwrap_or_default());
            let checked: Vec<(String, u64)> = subjects.iter().cloned().zip(checked).collect();
            let publication = Publication {
                bucket,
                settings: &settings,
                operations: &operations,
                guards: guarded,
                checks: &checked,
                id: &id,
                time,
            };
            let last = match self.publish(&publication).await? {
                Published::Stored(last) => last,
                Published::StoredBefore => {
                    let replaced = "it happened, but everything it wrote has been replaced since";
                    Box::pin(self.find_stored(&publication, replaced)).await?
                }
                Published::InDoubt(reason) => Box::pin(self.find_stored(&publication, &reason)).await?,
                Published::Conflict => {
                    let judged = Box::pin(self.judge(bucket, &demands)).await?;
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

    /// Judges what operations and checks demand by what is there. Returns the guards under which that stays true.
    async fn judge(&self, bucket: &Bucket, demands: &[Demand<'_>]) -> Result<Vec<Option<u64>>, CommitError> {
        let guarded = demands.iter().filter(|demand| demand.expect != Expectation::Any);
        let keys: Vec<Key> = guarded.map(|demand| demand.key.clone()).collect();
        // One is asked of the leader at once; of many, only those that seem to fail.
        let is_many = keys.len() > 1;
        let many = if is_many { self.newest_of(bucket, &keys).await? } else { HashMap::new() };
        let mut guards = Vec::with_capacity(demands.len());
        for demand in demands {
            if demand.expect == Expectation::Any {
                guards.push(None);
                continue;
            }
            let holds = |newest: Option<&Entry>| check(bucket, *demand, newest, self.clock.now());
            let mut newest = many.get(demand.key).cloned();
            if !is_many || holds(newest.as_ref()).is_err() {
                let record = self.newest_at_leader(bucket, demand.key).await?;
                newest = record.and_then(|record| Some(record.into_change(&bucket.names)?.entry));
            }
            holds(newest.as_ref()).map_err(CommitError::Conflict)?;
            guards.push(guard(*demand, newest.as_ref()));
        }
        Ok(guards)
    }

    /// Refuses what the bucket's stream or its server cannot do, before anything is written.
    fn check_possible(
        &self,
        bucket: &Bucket,
        settings: &Settings,
        operations: &[Operation],
        checks: &[Check],
    ) -> Result<(), EngineError> {
        if operations.iter().any(|operation| Names::is_taken(&operation.key)) {
            let action = format!("write to bucket {}", bucket.name);
            let reason = "the engine keeps the messages of checks under that key".to_owned();
            return Err(EngineError::Refused { action, reason });
        }
        let free = operations.iter().filter(|operation| operation.expect == Expectation::Any).count();
        if (operations.len() > 1 || checks.len() > free) && !settings.is_atomic {
            return Err(EngineError::Unsupported {
                what: "batches in this bucket: its stream has no allow_atomic",
            });
        }
        let is_at_least = |(major, minor, patch)| self.api.client.is_server_compatible(major, minor, patch);
        let [backport, end] = SEVERAL_CHECKS_BACKPORT.map(is_at_least);
        let tells_apart = is_at_least(SEVERAL_CHECKS_MIN) || backport && !end;
        if have_equal_length(checks) && !tells_apart {
            let (major, minor, patch) = SEVERAL_CHECKS_MIN;
            return Err(EngineError::Refused {
                action: format!("commit several checks to bucket {}", bucket.name),
                reason: format!(
                    "nats-server {} confuses checks of keys of one length; {major}.{minor}.{patch} does not",
                    self.api.client.server_info().version
                ),
            });
        }
        check_expiries(settings, operations)
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

fn check_expiries(settings: &Settings, operations: &[Operation]) -> Result<(), EngineError> {
    let expires = |operation: &Operation| matches!(&operation.action, Action::Put { expiry, .. } if *expiry != Expiry::Bucket);
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

/// Whether two checks are of keys of one length, which some servers take for one another.
fn have_equal_length(checks: &[Check]) -> bool {
    let mut lengths = BTreeSet::new();
    !checks.iter().all(|check| lengths.insert(check.key().as_str().len()))
}

/// What the server shall check of the newest record of a key.
fn guard(demand: Demand<'_>, newest: Option<&Entry>) -> Option<u64> {
    match demand.expect {
        Expectation::Any => None,
        Expectation::Absent => Some(newest.map_or(0, |newest| newest.revision.get())),
        Expectation::Revision(revision) => Some(revision.get()),
    }
}

/// Whether what an operation or a check demands of its key is true.
fn check(
    bucket: &Bucket,
    demand: Demand<'_>,
    newest: Option<&Entry>,
    now: Timestamp,
) -> Result<(), Conflict> {
    let newest = newest.filter(|newest| !newest.op.is_put() || bucket.is_live(newest, now));
    demand.judge(&bucket.name, newest.map(|newest| (newest.revision, newest.op)))
}
