use std::sync::Arc;

use pleach_contract::Digest;
use pleach_engine::{Batch, BucketName, Check, CommitError, Committed, EngineError};

use crate::fence::Scope;
use crate::guarded::Guarded;
use crate::guards::{Fencing, Guards};
use crate::naming::is_reserved;
use crate::state::STATE_BUCKET;
use crate::state_rule::lineages;

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
        let scopes = self.scopes(bucket, &batch);
        for _ in 0..ATTEMPTS_MAX {
            // Kept until the commit is done.
            let turn = self.shared().lanes.take();
            let Some(checks) = self.checks(&guards, bucket, &scopes, turn.lane).await? else {
                guards = self.renewed(guards).await?;
                continue;
            };
            let judged = match self.judged(&guards, bucket, batch.clone(), checked).await {
                Ok(judged) => judged,
                Err(error) if scopes.is_empty() => return Err(error.into()),
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
            match self.commit_with(&guards, bucket, judged, checks).await {
                Err(CommitError::Conflict(conflict)) if conflict.key.is_fence() => {
                    guards.forget_fences(bucket);
                    guards = self.renewed(guards).await?;
                }
                committed => return committed,
            }
        }
        Err(EngineError::Overloaded.into())
    }

    /// Whose fences a batch has to check: none if it is not judged by guards.
    fn scopes(&self, bucket: &BucketName, batch: &Batch) -> Vec<Option<String>> {
        match (self.is_glass(), bucket.as_str() == STATE_BUCKET) {
            (true, _) => Vec::new(),
            (false, true) => lineages(batch).into_iter().map(Some).collect(),
            (false, false) if is_reserved(bucket) => Vec::new(),
            (false, false) => vec![None],
        }
    }

    /// The checks of the fences under which `guards` judge; none if those are no longer current.
    async fn checks(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        scopes: &[Option<String>],
        lane: usize,
    ) -> Result<Option<Vec<Check>>, EngineError> {
        let mut checks = Vec::with_capacity(scopes.len());
        for scope in scopes {
            let scope = scope.as_deref().map_or(Scope::Bucket, Scope::Lineage);
            match self.shared().fence(guards, bucket, scope, lane).await? {
                Fencing::Stale => return Ok(None),
                Fencing::Free => {}
                Fencing::Check(check) => checks.push(check),
            }
        }
        Ok(Some(checks))
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
        checks: Vec<Check>,
    ) -> Result<Committed, CommitError> {
        let inner = &self.shared().inner;
        if checks.is_empty() {
            return inner.commit(bucket, judged).await;
        }
        // The checks take places in the batch.
        let most = inner.capabilities().batch_operations_max;
        let (parts, limit) =
            (judged.operations().len() + judged.checks().len(), most.saturating_sub(checks.len()));
        if parts > limit {
            return Err(EngineError::BatchTooLong { operations: parts, limit }.into());
        }
        let fenced = checks.into_iter().fold(judged.clone(), Batch::checking);
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
