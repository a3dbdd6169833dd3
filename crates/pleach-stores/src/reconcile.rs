use std::collections::BTreeMap;
use std::time::Duration;

use pleach_contract::Contract;
use pleach_engine::{Batch, BucketName, CommitError, EngineError, Timestamp};

use crate::binding::Binding;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::plan::{PLAN_FORMAT, Plan, Step};
use crate::record::{Authority, Materialised, Owner, OwnerState};
use crate::system::{Kept, contract_of, unchanged};

/// How long a bucket whose alias was removed can be restored.
pub const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How often someone else may be faster before it is given up.
const RACES_MAX: usize = 8;

impl Contracts {
    /// Brings the plan that was accepted last to its end, unless that is not the `only` one. Every step can be done again,
    /// so it does not matter who has begun with it, nor how often.
    pub(crate) async fn finish(&self, lineage: &str, only: Option<&str>) -> Result<(), AuthorityError> {
        let authority = self.shared.system.authority(lineage).await?;
        if authority.is_none_or(|kept| kept.value.status.unfinished().is_none()) {
            return Ok(());
        }
        // What is written from here on keeps the contract as one that was accepted.
        self.shared.reload().await?;
        let finished = self.take_steps(lineage, only).await;
        if finished.is_err() {
            self.shared.forget().await;
            return finished;
        }
        Ok(self.shared.reload().await?)
    }

    async fn take_steps(&self, lineage: &str, only: Option<&str>) -> Result<(), AuthorityError> {
        for _ in 0..RACES_MAX {
            let Some(authority) = self.shared.system.authority(lineage).await? else { return Ok(()) };
            let Some((id, done)) = authority.value.status.unfinished() else { return Ok(()) };
            if only.is_some_and(|only| only != id) {
                return Ok(());
            }
            let unknown = || AuthorityError::UnknownPlan { plan: id.to_owned(), lineage: lineage.to_owned() };
            let plan = self.shared.system.plan(lineage, id).await?.ok_or_else(unknown)?.value.plan;
            let done = done.min(plan.steps.len());
            match self.go_on(&plan, authority, done).await {
                Ok(()) => return Ok(()),
                // Someone else goes on with it too: see how far it is now.
                Err(AuthorityError::Moved { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(self.moved(lineage, "others go on with it at the same time"))
    }

    async fn go_on(
        &self,
        plan: &Plan,
        mut authority: Kept<Authority>,
        done: usize,
    ) -> Result<(), AuthorityError> {
        for (index, step) in plan.steps.iter().enumerate().skip(done) {
            let taken = match self.look_before(plan, step).await {
                Ok(()) => self.take(step).await,
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                return Err(self.fail(plan, &mut authority, index, error).await);
            }
            if step.changes_something() {
                self.note(&mut authority, Materialised::Pending { plan: plan.id.clone(), done: index + 1 })
                    .await?;
            }
        }
        match self.look_at_accepted_state(plan).await {
            Err(error @ AuthorityError::Violators { .. }) => {
                Err(self.fail(plan, &mut authority, plan.steps.len(), error).await)
            }
            Err(error) => Err(error),
            Ok(()) => self.put_in_force(plan, &authority).await,
        }
    }

    /// Looks at the state that was written before sessions had to keep the accepted contract. What it refuses is corrected
    /// by its owners, and then the plan is brought to its end: an apply does not return while such an entry is there.
    async fn look_at_accepted_state(&self, plan: &Plan) -> Result<(), AuthorityError> {
        match accepted_contract(plan)? {
            Some(contract) => self.look_at_state(plan, &contract).await,
            None => Ok(()),
        }
    }

    /// Looks at what a step would lose right before it: between the acceptance and the step, a killed apply may have left
    /// any length of time.
    async fn look_before(&self, plan: &Plan, step: &Step) -> Result<(), AuthorityError> {
        match accepted_contract(plan)? {
            Some(contract) => self.look_at_losses(plan, &contract, step).await,
            None => Ok(()),
        }
    }

    /// Notes that a plan could not be carried on after so many steps.
    async fn fail(
        &self,
        plan: &Plan,
        authority: &mut Kept<Authority>,
        done: usize,
        error: AuthorityError,
    ) -> AuthorityError {
        let status = Materialised::Failed { plan: plan.id.clone(), done, why: error.to_string() };
        // Whether this can be written or not, what the caller is told is what went wrong.
        let _ = self.note(authority, status).await;
        let (lineage, steps) = (plan.lineage.clone(), plan.steps.len());
        let step = (done + 1).min(steps.max(1));
        AuthorityError::Unfinished { lineage, step, steps, source: Box::new(error) }
    }

    /// Does what a step does to its bucket. Nothing is ever deleted here.
    async fn take(&self, step: &Step) -> Result<(), AuthorityError> {
        let engine = self.shared.system.engine();
        let bucket = BucketName::parse(step.bucket())?;
        match step {
            Step::Create { config, .. } => match engine.create_bucket(&bucket, config.clone()).await {
                Ok(_) => Ok(()),
                // It is ours since it was claimed, so an earlier plan that did not come to its end has made it.
                Err(EngineError::BucketExists { .. }) => {
                    Ok(engine.update_bucket(&bucket, config.clone()).await.map(drop)?)
                }
                Err(error) => Err(error.into()),
            },
            Step::Adopt { config, .. } | Step::TakeBack { config, .. } | Step::Configure { config, .. } => {
                Ok(engine.update_bucket(&bucket, config.clone()).await.map(drop)?)
            }
            // These are in the records alone: see `put_in_force`.
            Step::Keep { .. } | Step::SetAside { .. } => Ok(()),
        }
    }

    async fn note(
        &self,
        authority: &mut Kept<Authority>,
        status: Materialised,
    ) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let lineage = authority.value.lineage.clone();
        let noted = Authority { status, ..authority.value.clone() };
        let put = system.put_authority(&noted, unchanged(Some(authority)))?;
        system.commit(put.into()).await.map_err(|error| AuthorityError::of_commit(error, &lineage))?;
        let read = system.authority(&lineage).await?;
        let moved = || self.moved(&lineage, "its record is gone");
        *authority = read.filter(|read| read.value == noted).ok_or_else(moved)?;
        Ok(())
    }

    /// Puts the contract in force, in one batch: the digests of the buckets, what is set aside, and the bindings.
    async fn put_in_force(&self, plan: &Plan, authority: &Kept<Authority>) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let now = self.shared.clock.now();
        let mut batch = Batch::new();
        let mut bindings = BTreeMap::new();
        for step in &plan.steps {
            let kept = system.owner(step.bucket()).await?;
            let Some(kept) = kept.filter(|kept| kept.value.lineage == plan.lineage) else {
                return Err(self.moved(&plan.lineage, "a bucket of it has no record any more"));
            };
            let owner = kept.value.clone();
            let owner = if let Step::SetAside { .. } = step {
                self.left(owner, now).await?
            } else {
                let (bucket, unstamped) = (step.bucket().to_owned(), owner.unstamped.clone());
                bindings.insert(step.alias().to_owned(), Binding { bucket, unstamped });
                let digest = Some(plan.target.clone());
                Owner { digest, claim: None, state: OwnerState::Owned, ..owner }
            };
            batch.push(system.put_owner(step.bucket(), &owner, unchanged(Some(&kept)))?);
        }
        let state = self.state_in_force(plan).await?;
        state.into_iter().for_each(|put| batch.push(put));
        let status = Materialised::Current;
        let current = Authority { status, in_force: None, bindings, ..authority.value.clone() };
        batch.push(system.put_authority(&current, unchanged(Some(authority)))?);
        system.commit(batch).await.map_err(|error| AuthorityError::of_commit(error, &plan.lineage))
    }

    /// The record of a bucket whose alias is gone. It keeps the contract that was in force in it; in one that only a failed
    /// plan has made, that is what was accepted for it.
    async fn left(&self, owner: Owner, now: Timestamp) -> Result<Owner, AuthorityError> {
        let digest = match (&owner.digest, owner.accepted()) {
            (None, Some(plan)) => {
                let accepted = self.shared.system.planned(&owner.lineage, plan).await?.value;
                Some(accepted.digest().to_string())
            }
            (digest, _) => digest.clone(),
        };
        let state = OwnerState::SetAside { since: now, until: now.saturating_add(GRACE) };
        Ok(Owner { digest, claim: None, state, ..owner })
    }

    pub(crate) async fn restore_bucket(
        &self,
        lineage: &str,
        alias: &str,
    ) -> Result<BucketName, AuthorityError> {
        let system = &self.shared.system;
        let owners = system.owners(lineage).await?;
        let is_aside =
            |owner: &Owner| owner.alias == alias && matches!(owner.state, OwnerState::SetAside { .. });
        let Some((bucket, kept)) = owners.into_iter().find(|(_, kept)| is_aside(&kept.value)) else {
            let (lineage, alias) = (lineage.to_owned(), alias.to_owned());
            return Err(AuthorityError::NotSetAside { lineage, alias });
        };
        let owner = Owner { state: OwnerState::Restored, ..kept.value.clone() };
        let put = system.put_owner(&bucket, &owner, unchanged(Some(&kept)))?;
        self.change_guards(lineage, put.into()).await?;
        Ok(BucketName::parse(bucket)?)
    }

    /// Sweeps the buckets of a lineage, or of all of them.
    pub(crate) async fn sweep_buckets(
        &self,
        lineage: Option<&str>,
    ) -> Result<Vec<BucketName>, AuthorityError> {
        let swept = self.let_all_go(lineage).await;
        // However far it came, the guards of what is gone are gone too.
        self.shared.forget().await;
        swept
    }

    async fn let_all_go(&self, lineage: Option<&str>) -> Result<Vec<BucketName>, AuthorityError> {
        let now = self.shared.clock.now();
        let mut swept = Vec::new();
        let owners = self.shared.system.all_owners().await?;
        let chosen = |owner: &Owner| lineage.is_none_or(|lineage| owner.lineage == lineage);
        for (bucket, kept) in owners.into_iter().filter(|(_, kept)| chosen(&kept.value)) {
            let is_over = match kept.value.state {
                OwnerState::SetAside { until, .. } => now >= until,
                // Someone has begun with it and not come to its end.
                OwnerState::Going => true,
                OwnerState::Owned | OwnerState::Restored | OwnerState::Arriving => false,
            };
            // One that a plan is taking back stays.
            let is_claimed = !kept.value.claims(now).is_empty();
            if is_over && !is_claimed {
                self.let_go(&bucket, kept).await?;
                swept.push(BucketName::parse(bucket)?);
            }
        }
        Ok(swept)
    }

    /// Deletes a bucket and then its record, so that it is never there without one. What was adopted is given back.
    async fn let_go(&self, bucket: &str, kept: Kept<Owner>) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let lineage = kept.value.lineage.clone();
        let failed = |error: CommitError| AuthorityError::of_commit(error, &lineage);
        let going = Owner { state: OwnerState::Going, ..kept.value.clone() };
        let put = system.put_owner(bucket, &going, unchanged(Some(&kept)))?;
        system.commit(put.into()).await.map_err(failed)?;
        let name = BucketName::parse(bucket)?;
        if !going.adopted {
            match system.engine().delete_bucket(&name).await {
                Ok(()) | Err(EngineError::BucketNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let noted = system.owner(bucket).await?;
        let delete = system.delete_owner(bucket, unchanged(noted.as_ref()))?;
        system.commit(delete.into()).await.map_err(failed)
    }
}

/// The contract of an accepted plan; none if the plan is of an older format, which shows no records.
fn accepted_contract(plan: &Plan) -> Result<Option<Contract>, AuthorityError> {
    if plan.format != PLAN_FORMAT {
        return Ok(None);
    }
    let edited = |_| AuthorityError::EditedPlan { plan: plan.id.clone() };
    contract_of(&plan.contract, &plan.target).map(Some).map_err(edited)
}
