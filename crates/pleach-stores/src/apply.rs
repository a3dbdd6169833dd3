use std::time::Duration;

use pleach_contract::Contract;
use pleach_engine::{Batch, CommitError, EngineError};

use crate::claims::Claimed;
use crate::contracts::{Applied, Contracts, applied};
use crate::error::AuthorityError;
use crate::plan::{PLAN_FORMAT, PLAN_FORMAT_BEFORE, Plan, PlanRecord, PlanStatus};
use crate::record::{Authority, Claim, Decision, Materialised, Owner};
use crate::system::{Kept, unchanged};

/// How long the guards of an apply hold unless it is accepted: if it dies before, writers are free again after this.
const CLAIM_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Who applies a plan, and what that person has to say.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Who applies it: kept in the history.
    pub who: String,
    /// Why what is dangerous about it is accepted: kept in the history.
    pub acknowledgement: Option<String>,
}

impl ApplyOptions {
    /// By someone, acknowledging nothing.
    pub fn by(who: impl Into<String>) -> Self {
        Self { who: who.into(), acknowledgement: None }
    }

    /// The same, acknowledging what is dangerous for a reason.
    #[must_use]
    pub fn acknowledging(self, why: impl Into<String>) -> Self {
        Self { acknowledgement: Some(why.into()), ..self }
    }
}

impl Contracts {
    /// What [`Contracts::apply`] does, in the order that makes it safe: guards on, then a look at what was written since
    /// the plan, then acceptance in one batch, then the steps.
    pub(crate) async fn apply_plan(
        &self,
        plan: &Plan,
        options: &ApplyOptions,
    ) -> Result<Applied, AuthorityError> {
        let contract = self.as_it_was_made(plan).await?;
        if let Some(finished) = self.finished(plan).await? {
            return Ok(finished);
        }
        if let Some(authority) = self.already_in_force(plan).await? {
            return Ok(Applied { was_in_force: true, ..applied(authority) });
        }
        let record = self.checked(plan, options).await?;
        let authority = self.base(plan).await?;
        if let Some(authority) = authority.as_ref().filter(|authority| is_in_force(plan, &authority.value)) {
            self.shared.system.raise_fences(&plan.lineage).await?;
            return Ok(Applied { was_in_force: true, ..applied(authority.value.clone()) });
        }
        let until = self.shared.clock.now().saturating_add(CLAIM_LIFETIME);
        let over = authority.as_ref().and_then(|kept| kept.value.status.failed()).map(str::to_owned);
        let claim = Claim { plan: plan.id.clone(), ahead: false, until: Some(until), over };
        let claimed = self.claim(plan, &contract, &claim).await?;
        let looked = self.look_again(plan, &contract, &claimed).await.and_then(|()| {
            let is_late = self.shared.clock.now() >= until;
            if is_late { Err(self.moved(&plan.lineage, "the guards have run out meanwhile")) } else { Ok(()) }
        });
        if let Err(error) = looked {
            self.release(&plan.lineage, &claimed).await?;
            return Err(error);
        }
        if let Err(error) = self.accept(&record, authority.as_ref(), &claimed, options).await {
            self.after_failed_acceptance(plan, &claimed, error).await?;
        }
        self.bring_to_its_end(plan).await
    }

    /// Takes the steps of a plan that was accepted. Whoever finds that another was accepted after it is told.
    async fn bring_to_its_end(&self, plan: &Plan) -> Result<Applied, AuthorityError> {
        self.finish(&plan.lineage, Some(&plan.id)).await?;
        let authority = self.shared.system.authority(&plan.lineage).await?;
        let lost = || AuthorityError::UnknownLineage { lineage: plan.lineage.clone() };
        let authority = authority.ok_or_else(lost)?.value;
        if authority.version != plan.base.version + 1 {
            let what = format!("version {} was accepted after this one", authority.version);
            return Err(self.moved(&plan.lineage, &what));
        }
        Ok(applied(authority))
    }

    /// What is in force once a plan was brought to its end that had been accepted, and was interrupted.
    async fn finished(&self, plan: &Plan) -> Result<Option<Applied>, AuthorityError> {
        let system = &self.shared.system;
        let authority = system.authority(&plan.lineage).await?;
        let unfinished = authority.as_ref().and_then(|kept| kept.value.status.unfinished());
        if unfinished.is_none_or(|(id, _)| id != plan.id) {
            return Ok(None);
        }
        self.bring_to_its_end(plan).await.map(Some)
    }

    /// The authority, if this very plan was accepted last and came to its end: whoever was killed before the answer
    /// came, and applies it again, has nothing left to do.
    async fn already_in_force(&self, plan: &Plan) -> Result<Option<Authority>, AuthorityError> {
        let system = &self.shared.system;
        let Some(authority) = system.authority(&plan.lineage).await? else { return Ok(None) };
        let authority = authority.value;
        if authority.status != Materialised::Current || authority.version != plan.base.version + 1 {
            return Ok(None);
        }
        let decisions = system.decisions(&plan.lineage).await?;
        let is_ours = decisions.last().is_some_and(|decision| decision.plan == plan.id);
        Ok(is_ours.then_some(authority))
    }

    /// The contract of a plan, if it was made for this store and nobody has changed it. It may come from a file that
    /// anyone has written, so nothing in it is believed before this.
    async fn as_it_was_made(&self, plan: &Plan) -> Result<Contract, AuthorityError> {
        let store = self.shared.system.store_id().await?;
        if plan.store != store {
            return Err(AuthorityError::OtherStore { planned: plan.store.clone(), store });
        }
        let edited = || AuthorityError::EditedPlan { plan: plan.id.clone() };
        let contract = self.shared.system.known().read(&plan.contract, &plan.target).map_err(|_| edited())?;
        let is_known = [PLAN_FORMAT, PLAN_FORMAT_BEFORE].contains(&plan.format.as_str());
        let is_whole = is_known && plan.content_id() == plan.id;
        if is_whole && contract.id.as_str() == plan.lineage { Ok(contract) } else { Err(edited()) }
    }

    /// The plan as this store keeps it, if it may be applied.
    async fn checked(&self, plan: &Plan, options: &ApplyOptions) -> Result<Kept<PlanRecord>, AuthorityError> {
        let unknown = || AuthorityError::UnknownPlan { plan: plan.id.clone(), lineage: plan.lineage.clone() };
        let record = self.shared.system.plan(&plan.lineage, &plan.id).await?.ok_or_else(unknown)?;
        let status = record.value.status(self.shared.clock.now());
        if status != PlanStatus::Pending {
            let (plan, lineage) = (plan.id.clone(), plan.lineage.clone());
            return Err(AuthorityError::PlanOver { plan, lineage, status: status.as_str() });
        }
        if plan.format != PLAN_FORMAT {
            let (plan, format) = (plan.id.clone(), plan.format.clone());
            return Err(AuthorityError::OldPlan { plan, format });
        }
        if let Some(shortfall) = plan.shortfalls.iter().find(|shortfall| shortfall.blocks) {
            return Err(AuthorityError::Incapable {
                first: format!("{}: {}", shortfall.path, shortfall.message),
            });
        }
        if options.who.trim().is_empty() {
            return Err(AuthorityError::Missing { what: "who applies the plan" });
        }
        let is_acknowledged = options.acknowledgement.as_ref().is_some_and(|why| !why.trim().is_empty());
        match plan.dangers().next() {
            Some(first) if !is_acknowledged => {
                let (count, first) = (plan.dangers().count(), first.to_string());
                Err(AuthorityError::Unacknowledged { count, first })
            }
            _ => Ok(record),
        }
    }

    /// What was accepted last, if that is what the plan was made on. If its steps were interrupted, or are under way, they
    /// are taken first.
    async fn base(&self, plan: &Plan) -> Result<Option<Kept<Authority>>, AuthorityError> {
        let mut authority = self.shared.system.authority(&plan.lineage).await?;
        let is_pending = |kept: &Kept<Authority>| matches!(kept.value.status, Materialised::Pending { .. });
        if authority.as_ref().is_some_and(is_pending) {
            self.finish(&plan.lineage, None).await?;
            authority = self.shared.system.authority(&plan.lineage).await?;
        }
        let (version, digest) = match &authority {
            Some(kept) => (kept.value.version, Some(kept.value.digest.clone())),
            None => (0, None),
        };
        if version == plan.base.version && digest == plan.base.digest {
            return Ok(authority);
        }
        let what =
            format!("the plan was made on version {}, and version {version} is accepted", plan.base.version);
        Err(AuthorityError::Moved { lineage: plan.lineage.clone(), what })
    }

    /// Accepts the plan: the new desired state, the decision, the contract, the plan and the claims, all or nothing.
    async fn accept(
        &self,
        record: &Kept<PlanRecord>,
        authority: Option<&Kept<Authority>>,
        claimed: &[Claimed],
        options: &ApplyOptions,
    ) -> Result<(), CommitError> {
        let of_engine = |error| match error {
            AuthorityError::Engine(error) => error,
            other => EngineError::Bug { what: other.to_string() },
        };
        let in_force = match authority {
            Some(kept) => self.digest_in_force(&kept.value).await.map_err(of_engine)?,
            None => None,
        };
        let mut batch = self.acceptance(record, authority, in_force, claimed, options).map_err(of_engine)?;
        let state = self.accept_state(&record.value.plan).await.map_err(of_engine)?;
        state.into_iter().for_each(|put| batch.push(put));
        self.shared.system.commit(batch).await
    }

    fn acceptance(
        &self,
        record: &Kept<PlanRecord>,
        authority: Option<&Kept<Authority>>,
        in_force: Option<String>,
        claimed: &[Claimed],
        options: &ApplyOptions,
    ) -> Result<Batch, AuthorityError> {
        let system = &self.shared.system;
        let plan = &record.value.plan;
        let desired = Authority {
            lineage: plan.lineage.clone(),
            service: plan.service.clone(),
            version: plan.base.version + 1,
            digest: plan.target.clone(),
            status: Materialised::Pending { plan: plan.id.clone(), done: 0 },
            in_force,
            bindings: authority.map(|kept| kept.value.bindings.clone()).unwrap_or_default(),
        };
        let decision = Decision {
            version: desired.version,
            digest: plan.target.clone(),
            plan: plan.id.clone(),
            who: options.who.clone(),
            acknowledgement: options.acknowledgement.clone().filter(|why| !why.trim().is_empty()),
            time: self.shared.clock.now(),
        };
        let accepted = PlanRecord { status: PlanStatus::Accepted, plan: plan.clone() };
        let mut batch = Batch::new();
        batch.push(system.put_authority(&desired, unchanged(authority))?);
        batch.push(system.put_decision(&plan.lineage, &decision)?);
        batch.push(system.put_contract(plan)?);
        batch.push(system.put_plan(&accepted, unchanged(Some(record)))?);
        for claim in claimed {
            let owner = Owner { claim: Some(Claim::accepted(&plan.id)), ..claim.now.value.clone() };
            batch.push(system.put_owner(claim.bucket.as_str(), &owner, unchanged(Some(&claim.now)))?);
        }
        Ok(batch)
    }

    /// Finds out what became of an acceptance that seems to have failed. Its claims are taken back: if that succeeds it
    /// has not happened and cannot happen any more, since it expects them.
    async fn after_failed_acceptance(
        &self,
        plan: &Plan,
        claimed: &[Claimed],
        error: CommitError,
    ) -> Result<(), AuthorityError> {
        let error = AuthorityError::of_commit(error, &plan.lineage);
        if self.release(&plan.lineage, claimed).await.is_err() {
            return Err(error);
        }
        let authority = self.shared.system.authority(&plan.lineage).await?;
        let is_ours = authority.is_some_and(|kept| {
            kept.value.version == plan.base.version + 1
                && kept.value.status.unfinished().is_some_and(|(id, _)| id == plan.id)
        });
        if is_ours { Ok(()) } else { Err(error) }
    }

    pub(crate) fn moved(&self, lineage: &str, what: &str) -> AuthorityError {
        AuthorityError::Moved { lineage: lineage.to_owned(), what: what.to_owned() }
    }
}

/// Whether there is nothing to apply.
fn is_in_force(plan: &Plan, authority: &Authority) -> bool {
    plan.is_nothing() && authority.status == Materialised::Current
}
