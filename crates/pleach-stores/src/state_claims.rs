use pleach_contract::Contract;
use pleach_engine::{CommitError, Expectation, Operation, Revision};

use crate::claims::Claimed;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::lineage_token;
use crate::plan::Plan;
use crate::record::{Claim, Owner, OwnerState};
use crate::system::{Kept, unchanged};

/// The claims of plans on what is stored for users and devices. They stand in a record of the lineage, and are put on and
/// taken off in the same batches as those on its buckets.
impl Contracts {
    /// The record with the claim of a plan, and what puts it; none if neither the plan nor what is in force has state.
    pub(crate) async fn claim_state(
        &self,
        plan: &Plan,
        contract: &Contract,
        claim: &Claim,
    ) -> Result<Option<(Owner, Operation)>, AuthorityError> {
        let system = &self.shared.system;
        let before = system.state_owner(&plan.lineage).await?;
        if before.is_none() && (contract.state.is_empty() || claim.ahead) {
            return Ok(None);
        }
        let accepted = before.as_ref().and_then(|kept| kept.value.accepted()).map(str::to_owned);
        let claim = Some(Claim { over: accepted, ..claim.clone() });
        let owner = match &before {
            Some(kept) => Owner { claim, ..kept.value.clone() },
            None => state_owner(&plan.lineage, None, claim),
        };
        let put = system.put_state_owner(&owner, unchanged(before.as_ref()))?;
        Ok(Some((owner, put)))
    }

    /// What turns the claim of a plan into one that was accepted.
    pub(crate) async fn accept_state(&self, plan: &Plan) -> Result<Option<Operation>, AuthorityError> {
        let system = &self.shared.system;
        let Some(kept) = system.state_owner(&plan.lineage).await? else { return Ok(None) };
        let is_ours = kept.value.claim.as_ref().is_some_and(|claim| claim.plan == plan.id);
        // No record has that revision: an apply whose claim someone else took over is not accepted.
        let expect = if is_ours { unchanged(Some(&kept)) } else { Expectation::Revision(Revision::ZERO) };
        let owner = Owner { claim: Some(Claim::accepted(&plan.id)), ..kept.value.clone() };
        Ok(Some(system.put_state_owner(&owner, expect)?))
    }

    /// What puts the contract of a plan in force for what is stored for users and devices.
    pub(crate) async fn state_in_force(&self, plan: &Plan) -> Result<Option<Operation>, AuthorityError> {
        let system = &self.shared.system;
        let kept = system.state_owner(&plan.lineage).await?;
        let Some(kept) = kept.filter(|kept| kept.value.claim.is_some()) else { return Ok(None) };
        let owner = state_owner(&plan.lineage, Some(plan.target.clone()), None);
        Ok(Some(system.put_state_owner(&owner, unchanged(Some(&kept)))?))
    }

    /// What takes off the claim of a lineage if `is_over` says so.
    pub(crate) async fn release_of_state(
        &self,
        lineage: &str,
        is_over: impl Fn(&Claim) -> bool,
    ) -> Result<Option<Operation>, AuthorityError> {
        let system = &self.shared.system;
        let Some(kept) = system.state_owner(lineage).await? else { return Ok(None) };
        if !kept.value.claim.as_ref().is_some_and(is_over) {
            return Ok(None);
        }
        let expect = unchanged(Some(&kept));
        let Kept { value, .. } = kept;
        Ok(Some(match value.released() {
            Some(owner) => system.put_state_owner(&owner, expect)?,
            None => system.delete_state_owner(lineage, expect)?,
        }))
    }

    /// Takes off the claim of an apply that was not accepted, unless someone else has changed it by now.
    pub(crate) async fn release_state(
        &self,
        lineage: &str,
        claimed: &[Claimed],
    ) -> Result<(), AuthorityError> {
        let plan = claimed.iter().find_map(|claimed| Some(&claimed.now.value.claim.as_ref()?.plan));
        let is_ours = |claim: &Claim| !claim.is_accepted() && plan.is_none_or(|plan| claim.plan == *plan);
        let Some(release) = self.release_of_state(lineage, is_ours).await? else {
            return Ok(());
        };
        match self.shared.system.commit(release.into()).await {
            Ok(()) | Err(CommitError::Conflict(_)) => Ok(()),
            Err(error) => Err(AuthorityError::of_commit(error, lineage)),
        }
    }
}

fn state_owner(lineage: &str, digest: Option<String>, claim: Option<Claim>) -> Owner {
    Owner {
        lineage: lineage.to_owned(),
        alias: lineage_token(lineage),
        digest,
        claim,
        state: OwnerState::Owned,
        adopted: false,
        unstamped: None,
    }
}
