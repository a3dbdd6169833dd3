use std::sync::Arc;

use pleach_contract::Digest;
use pleach_engine::{Batch, BucketName, CommitError, Committed, Engine as _, EngineError};

use crate::guarded::Guarded;
use crate::guards::{Fencing, Guards};
use crate::naming::is_reserved;

/// How often a commit is judged again because the contracts changed meanwhile.
const ATTEMPTS_MAX: usize = 64;

/// Commits on engines that other processes write to as well.
impl Guarded {
    /// Commits a batch with a check of its bucket's fence. If the fence was raised since the guards were read, the server
    /// refuses the commit; the batch is then judged again by the guards that hold now. The caller never sees that conflict.
    pub(crate) async fn commit_fenced(
        &self,
        mut guards: Arc<Guards>,
        bucket: &BucketName,
        batch: Batch,
        checked: Option<&Digest>,
    ) -> Result<Committed, CommitError> {
        // What is done past the guards is not judged by them.
        let is_free = is_reserved(bucket) || self.is_glass();
        for _ in 0..ATTEMPTS_MAX {
            let fencing = match is_free {
                true => Some(Fencing::Free),
                false => self.shared().fence(&guards, bucket).await?,
            };
            let Some(fencing) = fencing else {
                guards = self.renewed(guards).await?;
                continue;
            };
            let judged = match self.judged(&guards, bucket, batch.clone(), checked).await {
                Ok(judged) => judged,
                Err(error) if is_free => return Err(error.into()),
                // Nobody is refused by a contract that is no longer in force.
                Err(error) => {
                    let before = Arc::downgrade(&guards);
                    guards = self.renewed(guards).await?;
                    if std::ptr::eq(before.as_ptr(), Arc::as_ptr(&guards)) {
                        return Err(error.into());
                    }
                    continue;
                }
            };
            match self.commit_with(&guards, bucket, judged, fencing).await {
                Err(CommitError::Conflict(conflict)) if conflict.key.is_fence() => {
                    guards.forget_fence(bucket);
                    guards = self.renewed(guards).await?;
                }
                committed => return committed,
            }
        }
        Err(EngineError::Overloaded.into())
    }

    /// The guards that hold now. Whoever changes them waits for those who hold on to older ones, so these are let go first.
    async fn renewed(&self, guards: Arc<Guards>) -> Result<Arc<Guards>, EngineError> {
        drop(guards);
        self.shared().looked_up().await
    }

    async fn commit_with(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        judged: Batch,
        fencing: Fencing,
    ) -> Result<Committed, CommitError> {
        let inner = &self.shared().inner;
        let Fencing::Check(check) = fencing else { return inner.commit(bucket, judged).await };
        // The check takes a place in the batch.
        let (parts, limit) =
            (judged.operations().len() + judged.checks().len(), self.capabilities().batch_operations_max);
        if parts > limit {
            return Err(EngineError::BatchTooLong { operations: parts, limit }.into());
        }
        let fenced = judged.clone().checking(check);
        match inner.commit(bucket, fenced).await {
            // A bucket of another client may take no batches, and a write with an expectation of its own cannot carry the
            // check without one. What no contract owns is then written as it would be without contracts.
            Err(CommitError::Engine(EngineError::Unsupported { .. }))
                if judged.operations().len() == 1 && !guards.by_bucket.contains_key(bucket) =>
            {
                inner.commit(bucket, judged).await
            }
            committed => committed,
        }
    }
}
