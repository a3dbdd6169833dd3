use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_contract::Contract;
use pleach_engine::{
    Action, Batch, BucketName, CommitError, EngineError, Entry, ErrorKind, Expectation, Key, Operation,
    Revision, Timestamp,
};

use crate::claims::Claimed;
use crate::compiled::CompiledResource;
use crate::contracts::Contracts;
use crate::envelope::Envelope;
use crate::error::AuthorityError;
use crate::guards::Shared;
use crate::naming::lineage_token;
use crate::plan::Plan;
use crate::record::{Claim, Owner, OwnerState};
use crate::state::STATE_BUCKET;
use crate::system::{Kept, parsed, unchanged};

/// What refuses writes to what a lineage keeps for users and devices.
#[derive(Debug)]
pub(crate) struct StateGuard {
    lineage: String,
    rule: StateRule,
}

#[derive(Debug)]
enum StateRule {
    /// What keeps all of these.
    Checked(Vec<StateDemand>),
    /// Nothing: the record of the lineage, or what it leads to, cannot be read.
    Damaged { key: Key, revision: Revision, what: String },
}

/// The state stores of a contract that writes have to keep.
#[derive(Debug)]
pub(crate) struct StateDemand {
    stores: BTreeMap<String, Arc<CompiledResource>>,
    /// Until when; none if the contract is in force or accepted.
    until: Option<Timestamp>,
}

/// The lineage and the store of an entry, as its key has them: an owner is two tokens, and what follows is a key in the
/// store, or nothing.
pub(crate) fn place_of(key: &Key) -> Option<(&str, &str)> {
    let mut tokens = key.tokens().skip(2);
    Some((tokens.next()?, tokens.next()?))
}

/// The lineages that a batch puts entries of, each once. What is deleted breaks no contract.
pub(crate) fn lineages(batch: &Batch) -> Vec<String> {
    let puts = batch.operations().iter().filter(|operation| matches!(operation.action, Action::Put { .. }));
    let mut lineages: Vec<String> = puts.filter_map(|put| Some(place_of(&put.key)?.0.to_owned())).collect();
    lineages.sort();
    lineages.dedup();
    lineages
}

impl StateGuard {
    /// Whether an operation keeps the contracts of its lineage.
    pub(crate) fn check(&self, operation: &Operation, now: Timestamp) -> Result<(), EngineError> {
        let Action::Put { value, .. } = &operation.action else { return Ok(()) };
        let demands = match &self.rule {
            StateRule::Checked(demands) => demands,
            StateRule::Damaged { key, revision, what } => {
                return Err(EngineError::DamagedRecord {
                    bucket: crate::naming::system_bucket(),
                    key: key.clone(),
                    revision: *revision,
                    what: what.clone(),
                });
            }
        };
        let store = place_of(&operation.key).map_or("", |(_, store)| store);
        for demand in demands.iter().filter(|demand| demand.until.is_none_or(|until| now < until)) {
            let Some(keyspace) = demand.stores.get(store).and_then(|store| store.keyspaces().first()) else {
                return Err(self.broken(&operation.key, &format!("it has no state store `{store}`")));
            };
            let version = operation.headers.get(Envelope::VERSION).unwrap_or(keyspace.version());
            let checked = keyspace.check(version, value);
            checked.map_err(|misfit| self.broken(&operation.key, &misfit.to_string()))?;
        }
        Ok(())
    }

    fn broken(&self, key: &Key, reason: &str) -> EngineError {
        match BucketName::parse(STATE_BUCKET) {
            Ok(bucket) => EngineError::BrokenContract {
                bucket,
                key: key.clone(),
                lineage: self.lineage.clone(),
                reason: reason.to_owned(),
            },
            Err(error) => EngineError::Bug { what: error.to_string() },
        }
    }
}

/// Loading what writes of state have to keep.
impl Shared {
    /// The guard that the record of a lineage leads to.
    pub(crate) async fn state_guard_of(&self, entry: &Entry) -> Result<StateGuard, EngineError> {
        let owner = parsed::<Owner>(entry);
        let lineage = owner.as_ref().map_or("a contract", |kept| &kept.value.lineage).to_owned();
        let demands = match owner {
            Ok(kept) => self.state_demands(&kept.value, None).await,
            Err(damage) => Err(damage.into()),
        };
        let rule = match demands {
            Ok(demands) => StateRule::Checked(demands),
            Err(AuthorityError::Damaged { key, revision, what }) => {
                StateRule::Damaged { key, revision, what }
            }
            Err(AuthorityError::Engine(error)) if error.kind() != ErrorKind::Bug => return Err(error),
            Err(other) => {
                let (key, revision) = (entry.key.clone(), entry.revision);
                StateRule::Damaged { key, revision, what: other.to_string() }
            }
        };
        Ok(StateGuard { lineage, rule })
    }

    /// The guard of a record that is about to be written, with a claim of `contract`.
    pub(crate) async fn state_guard_ahead(
        &self,
        owner: &Owner,
        contract: &Contract,
    ) -> Result<StateGuard, AuthorityError> {
        let rule = StateRule::Checked(self.state_demands(owner, Some(contract)).await?);
        Ok(StateGuard { lineage: owner.lineage.clone(), rule })
    }

    async fn state_demands(
        &self,
        owner: &Owner,
        claimed: Option<&Contract>,
    ) -> Result<Vec<StateDemand>, AuthorityError> {
        let mut demands = Vec::new();
        if let Some(digest) = &owner.digest {
            let contract = self.system.contract(&owner.lineage, digest).await?;
            demands.push(self.state_demand(&contract, None)?);
        }
        for claim in owner.claims(self.clock.now()) {
            let is_newest = owner.claim.as_ref().is_some_and(|newest| newest.plan == claim.plan);
            match claimed.filter(|_| is_newest) {
                Some(contract) => demands.push(self.state_demand(contract, claim.until)?),
                None => match self.system.planned(&owner.lineage, &claim.plan).await {
                    Ok(kept) => demands.push(self.state_demand(&kept.value, claim.until)?),
                    // The plan is gone, and was never accepted: it asks for nothing.
                    Err(AuthorityError::Damaged { revision: Revision::ZERO, .. }) if !claim.is_accepted() => {
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(demands)
    }

    fn state_demand(
        &self,
        contract: &Contract,
        until: Option<Timestamp>,
    ) -> Result<StateDemand, AuthorityError> {
        let mut stores = BTreeMap::new();
        for store in contract.state.keys() {
            if let Some(compiled) = self.compiled_state(contract, store)? {
                stores.insert(store.clone(), compiled);
            }
        }
        Ok(StateDemand { stores, until })
    }
}

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
