use pleach_contract::Contract;
use pleach_engine::{Batch, BucketName, CommitError};

use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::plan::{Plan, PlanRecord, PlanStatus, Step};
use crate::record::{Claim, Owner, OwnerState};
use crate::system::{Kept, unchanged};

/// A bucket that an apply has claimed: what its record was before, and what it is now.
pub(crate) struct Claimed {
    pub(crate) bucket: BucketName,
    pub(crate) before: Option<Owner>,
    pub(crate) now: Kept<Owner>,
}

impl Contracts {
    /// Puts the guards of the new contract on, so that from now on nothing is written that stands against it.
    ///
    /// In memory first, until no write judged by the old guards is under way; then in the records. A write whose caller
    /// went away is in the engine before those, so whoever reads after this has it.
    pub(crate) async fn claim(
        &self,
        plan: &Plan,
        contract: &Contract,
        claim: &Claim,
    ) -> Result<Vec<Claimed>, AuthorityError> {
        let system = &self.shared.system;
        let started = self.shared.clock.now();
        let (mut claims, mut guards, mut batch) = (Vec::new(), Vec::new(), Batch::new());
        for step in &plan.steps {
            if matches!(step, Step::SetAside { .. }) || claim.ahead && !is_bound(step) {
                continue;
            }
            let bucket = BucketName::parse(step.bucket())?;
            let before = system.owner(step.bucket()).await?;
            let owner = self.claimed(plan, step, before.as_ref(), claim)?;
            batch.push(system.put_owner(step.bucket(), &owner, unchanged(before.as_ref()))?);
            guards.push((bucket.clone(), owner));
            claims.push((bucket, before));
        }
        let state = self.claim_state(plan, contract, claim).await?;
        if claims.is_empty() && state.is_none() {
            return Ok(Vec::new());
        }
        let (state, put) = state.unzip();
        put.into_iter().for_each(|put| batch.push(put));
        self.shared.reload_with(&guards, state.as_ref(), contract).await?;
        if let Err(error) = system.commit(batch).await {
            self.shared.reload().await?;
            return Err(AuthorityError::of_commit(error, &plan.lineage));
        }
        let mut claimed = Vec::new();
        for (bucket, before) in claims {
            let now = system.owner(bucket.as_str()).await?;
            let now = now.filter(|now| now.value.claim.as_ref().is_some_and(|claim| claim.plan == plan.id));
            let moved = || self.moved(&plan.lineage, "someone else is applying another plan");
            claimed.push(Claimed {
                bucket,
                before: before.map(|kept| kept.value).filter(|before| !before.is_stale(started)),
                now: now.ok_or_else(moved)?,
            });
        }
        Ok(claimed)
    }

    /// The record of a bucket with a claim on it. What was accepted for it before gives way only if it has failed, and
    /// stays until this is accepted.
    fn claimed(
        &self,
        plan: &Plan,
        step: &Step,
        before: Option<&Kept<Owner>>,
        claim: &Claim,
    ) -> Result<Owner, AuthorityError> {
        let now = self.shared.clock.now();
        let before = before.map(|kept| &kept.value).filter(|owner| !owner.is_stale(now));
        let accepted = before.and_then(Owner::accepted).map(str::to_owned);
        if accepted.is_some() && accepted != claim.over {
            let what = "an apply was interrupted, and has to be brought to its end first";
            return Err(self.moved(&plan.lineage, what));
        }
        let claim = Some(Claim { over: accepted, ..claim.clone() });
        match before {
            Some(owner) if owner.lineage == plan.lineage && owner.alias == step.alias() => {
                Ok(Owner { claim, ..owner.clone() })
            }
            Some(owner) => Err(AuthorityError::Taken {
                bucket: BucketName::parse(step.bucket())?,
                alias: step.alias().to_owned(),
                owner: format!("{} as `{}`", owner.lineage, owner.alias),
            }),
            None => Ok(Owner {
                lineage: plan.lineage.clone(),
                alias: step.alias().to_owned(),
                digest: None,
                claim,
                state: OwnerState::Owned,
                adopted: matches!(step, Step::Adopt { .. }),
                unstamped: match step {
                    Step::Adopt { unstamped, .. } => Some(unstamped.clone()),
                    _ => None,
                },
            }),
        }
    }

    /// Takes claims back, unless someone else has them by now.
    pub(crate) async fn release(&self, lineage: &str, claimed: &[Claimed]) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        for claim in claimed {
            let expect = unchanged(Some(&claim.now));
            let back = match &claim.before {
                Some(before) => system.put_owner(claim.bucket.as_str(), before, expect)?,
                None => system.delete_owner(claim.bucket.as_str(), expect)?,
            };
            match system.commit(back.into()).await {
                Ok(()) | Err(CommitError::Conflict(_)) => {}
                Err(error) => {
                    self.shared.forget().await;
                    return Err(AuthorityError::of_commit(error, lineage));
                }
            }
        }
        if let Err(error) = self.release_state(lineage, claimed).await {
            self.shared.forget().await;
            return Err(error);
        }
        Ok(self.shared.reload().await?)
    }

    /// Takes off the guards of an apply of which nothing else is left.
    pub(crate) async fn release_leftovers(&self, lineage: &str) -> Result<(), AuthorityError> {
        let left = |claim: &Claim| !claim.is_accepted() && !claim.ahead;
        self.release_claims(lineage, left).await
    }

    /// Takes off the claims that `is_over` says of that they are.
    async fn release_claims(
        &self,
        lineage: &str,
        is_over: impl Fn(&Claim) -> bool,
    ) -> Result<(), AuthorityError> {
        let batch = self.releases(lineage, is_over).await?;
        if !batch.operations().is_empty() {
            self.change_guards(lineage, batch).await?;
        }
        Ok(())
    }

    /// What takes off the claims that `is_over` says of that they are.
    async fn releases(
        &self,
        lineage: &str,
        is_over: impl Fn(&Claim) -> bool,
    ) -> Result<Batch, AuthorityError> {
        let system = &self.shared.system;
        let mut batch = Batch::new();
        for (bucket, kept) in system.owners(lineage).await? {
            if !kept.value.claim.as_ref().is_some_and(&is_over) {
                continue;
            }
            let expect = unchanged(Some(&kept));
            batch.push(match kept.value.released() {
                Some(owner) => system.put_owner(&bucket, &owner, expect)?,
                None => system.delete_owner(&bucket, expect)?,
            });
        }
        let state = self.release_of_state(lineage, is_over).await?;
        state.into_iter().for_each(|release| batch.push(release));
        Ok(batch)
    }

    /// Commits what changes guards. Whatever becomes of it, those in memory are not what they were.
    pub(crate) async fn change_guards(&self, lineage: &str, batch: Batch) -> Result<(), AuthorityError> {
        if let Err(error) = self.shared.system.commit(batch).await {
            self.shared.forget().await;
            return Err(AuthorityError::of_commit(error, lineage));
        }
        Ok(self.shared.reload().await?)
    }

    /// Puts the guards of a plan on before anyone applies it.
    pub(crate) async fn guard_ahead(&self, plan: &Plan, contract: &Contract) -> Result<(), AuthorityError> {
        let claim = Claim { plan: plan.id.clone(), ahead: true, until: Some(plan.expires), over: None };
        let claimed = self.claim(plan, contract, &claim).await?;
        if let Err(error) = self.look_again(plan, contract, &claimed).await {
            self.release(&plan.lineage, &claimed).await?;
            return Err(error);
        }
        Ok(())
    }

    pub(crate) async fn reject_plan(&self, lineage: &str, plan: &str) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let unknown = || AuthorityError::UnknownPlan { plan: plan.to_owned(), lineage: lineage.to_owned() };
        let kept = system.plan(lineage, plan).await?.ok_or_else(unknown)?;
        let status = kept.value.status(self.shared.clock.now());
        if status != PlanStatus::Pending {
            let (plan, lineage) = (plan.to_owned(), lineage.to_owned());
            return Err(AuthorityError::PlanOver { plan, lineage, status: status.as_str() });
        }
        // All or nothing: a plan that was rejected has no guard.
        let mut batch = self.releases(lineage, |claim| claim.plan == plan && !claim.is_accepted()).await?;
        let record = PlanRecord { status: PlanStatus::Rejected, plan: kept.value.plan.clone() };
        batch.push(system.put_plan(&record, unchanged(Some(&kept)))?);
        self.change_guards(lineage, batch).await
    }
}

/// Whether the bucket of a step is bound already.
fn is_bound(step: &Step) -> bool {
    matches!(step, Step::Keep { .. } | Step::Configure { .. })
}
