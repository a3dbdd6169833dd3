use std::collections::{BTreeMap, HashMap};

use pleach_contract::{Contract, Digest, Problems, StoreKind};
use pleach_engine::{
    Action, Batch, BucketName, EngineError, Entry, ErrorKind, Key, Operation, Revision, Timestamp,
};

use crate::compiled::CompiledResource;
use crate::contracts::Contracts;
use crate::envelope::Envelope;
use crate::error::AuthorityError;
use crate::guards::{Shared, uncompiled};
use crate::naming::{lineage_token, system_bucket};
use crate::record::{Authority, Materialised, Owner};
use crate::system::{STATE_OWNER_PREFIX, parsed};

/// What sessions may write: the rule of every lineage, by its token in keys.
///
/// This is the one place where a write of a session is judged by what the store has accepted. `Guarded` asks it for each
/// batch, while it holds on to the guards that this is part of.
#[derive(Debug, Default)]
pub(crate) struct StateRules {
    by_lineage: HashMap<String, StateRule>,
}

/// What the state stores of a lineage take.
#[derive(Debug)]
enum StateRule {
    /// What keeps each of these contracts: the one in force, and while a plan is carried out the accepted one, too.
    /// Plans that are about to be accepted claim the stores, and writes keep those contracts as well.
    Checked { lineage: String, contracts: Vec<CompiledState>, claims: Vec<StateClaim> },
    /// Nothing: a record that the rule depends on is damaged.
    Damaged { key: Key, revision: Revision, what: String },
}

/// The state stores of one contract, ready to check entries.
#[derive(Debug)]
pub(crate) struct CompiledState {
    digest: Digest,
    stores: BTreeMap<String, (StoreKind, CompiledResource)>,
}

/// A contract that is about to be accepted.
#[derive(Debug)]
pub(crate) struct StateClaim {
    pub(crate) contract: CompiledState,
    /// Until when it holds.
    pub(crate) until: Timestamp,
}

impl StateRules {
    /// Refuses a batch for the state bucket that breaks a contract in force, accepted or claimed. What was `checked` by the
    /// contract of some digest is not checked by it again. Deletes are free. A copy from another store may come before its
    /// contract, and then there is nothing to keep yet.
    pub(crate) fn check(
        &self,
        bucket: &BucketName,
        batch: &Batch,
        (now, is_copy): (Timestamp, bool),
        checked: Option<&Digest>,
    ) -> Result<(), EngineError> {
        for operation in batch.operations() {
            let Action::Put { value, .. } = &operation.action else { continue };
            let place = Place::of(&operation.key);
            let broken = |lineage: &str, reason: String| EngineError::BrokenContract {
                bucket: bucket.clone(),
                key: operation.key.clone(),
                lineage: lineage.to_owned(),
                reason,
            };
            let unknown = || broken(place.lineage, "this store has accepted no such contract".into());
            let Some(rule) = self.by_lineage.get(place.lineage).filter(|rule| rule.is_known()) else {
                if is_copy {
                    continue;
                }
                return Err(unknown());
            };
            match rule {
                StateRule::Checked { lineage, contracts, claims } => {
                    let held = claims.iter().filter(|claim| now < claim.until);
                    let demands = contracts.iter().chain(held.map(|claim| &claim.contract));
                    for contract in demands.filter(|contract| checked != Some(&contract.digest)) {
                        let verdict = contract.check(&place, operation, value);
                        verdict.map_err(|reason| broken(lineage, reason))?;
                    }
                }
                StateRule::Damaged { key, revision, what } => {
                    let (key, revision, what) = (key.clone(), *revision, what.clone());
                    return Err(EngineError::DamagedRecord { bucket: system_bucket(), key, revision, what });
                }
            }
        }
        Ok(())
    }

    /// Puts the claims on the stores of a lineage that its record demands.
    fn claim(&mut self, owner: &Owner, demanded: Vec<StateClaim>) {
        let lineage = owner.lineage.clone();
        let empty = || StateRule::Checked { lineage, contracts: Vec::new(), claims: Vec::new() };
        let rule = self.by_lineage.entry(lineage_token(&owner.lineage)).or_insert_with(empty);
        if let StateRule::Checked { claims, .. } = rule {
            *claims = demanded;
        }
    }
}

impl StateRule {
    /// Whether a contract of the lineage was accepted.
    fn is_known(&self) -> bool {
        match self {
            Self::Checked { contracts, .. } => !contracts.is_empty(),
            Self::Damaged { .. } => true,
        }
    }
}

/// The lineages that a batch puts entries of, each once. What is deleted breaks no contract.
pub(crate) fn lineages(batch: &Batch) -> Vec<String> {
    let puts = batch.operations().iter().filter(|operation| matches!(operation.action, Action::Put { .. }));
    let entries = puts.filter(|put| !put.key.is_reserved()).map(|put| Place::of(&put.key).lineage);
    let mut lineages: Vec<String> =
        entries.filter(|lineage| !lineage.is_empty()).map(str::to_owned).collect();
    lineages.sort();
    lineages.dedup();
    lineages
}

impl CompiledState {
    fn of(contract: &Contract, shared: &Shared) -> Result<Self, Problems> {
        let mut stores = BTreeMap::new();
        for (name, store) in &contract.state {
            if let Some(compiled) = CompiledResource::of_state(contract, name, &shared.validators)? {
                stores.insert(name.clone(), (store.kind, compiled));
            }
        }
        Ok(Self { digest: contract.digest(), stores })
    }

    fn check(&self, place: &Place<'_>, operation: &Operation, value: &[u8]) -> Result<(), String> {
        let Some((kind, store)) = self.stores.get(place.store) else {
            return Err(format!("it declares no state store `{}`", place.store));
        };
        if (*kind == StoreKind::Map) != place.is_in_a_map {
            return Err(format!("the state store `{}` has changed its kind", place.store));
        }
        let version = operation.headers.get(Envelope::VERSION).unwrap_or_default();
        let keyspace = store.keyspace_of(&operation.key).map_err(|misfit| misfit.to_string())?;
        keyspace.check(version, value).map(drop).map_err(|misfit| misfit.to_string())
    }
}

/// What a key of the state bucket says: after the two tokens of the owner come lineage and store, and in a map the key.
struct Place<'k> {
    lineage: &'k str,
    store: &'k str,
    is_in_a_map: bool,
}

impl<'k> Place<'k> {
    fn of(key: &'k Key) -> Self {
        let mut tokens = key.tokens().skip(2);
        let (lineage, store) = (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
        Self { lineage, store, is_in_a_map: tokens.next().is_some() }
    }
}

impl Shared {
    /// Reads the rules of all lineages, as if `ahead` were recorded already, with a claim of the contract. A damaged record
    /// costs its lineage all writes, and no other anything.
    pub(crate) async fn state_rules(
        &self,
        ahead: Option<(&Owner, &Contract)>,
    ) -> Result<StateRules, EngineError> {
        let mut rules = StateRules::default();
        for entry in self.system.entries("authority.").await? {
            let token = entry.key.as_str().strip_prefix("authority.").unwrap_or_default().to_owned();
            let rule = match parsed::<Authority>(&entry) {
                Ok(kept) => self.state_rule(&kept.value).await,
                Err(damage) => Err(damage.into()),
            };
            rules.by_lineage.insert(token, rule.or_else(|error| damaged(error, &entry))?);
        }
        for entry in self.system.entries(STATE_OWNER_PREFIX).await? {
            let token = entry.key.as_str().strip_prefix(STATE_OWNER_PREFIX).unwrap_or_default().to_owned();
            let claimed = match parsed::<Owner>(&entry) {
                Ok(kept) => self.state_claims(&kept.value, None).await.map(|claims| (kept.value, claims)),
                Err(damage) => Err(damage.into()),
            };
            match claimed {
                Ok((owner, claims)) => rules.claim(&owner, claims),
                Err(error) => drop(rules.by_lineage.insert(token, damaged(error, &entry)?)),
            }
        }
        if let Some((owner, contract)) = ahead {
            let bug = |error: AuthorityError| EngineError::Bug { what: error.to_string() };
            rules.claim(owner, self.state_claims(owner, Some(contract)).await.map_err(bug)?);
        }
        Ok(rules)
    }

    async fn state_rule(&self, authority: &Authority) -> Result<StateRule, AuthorityError> {
        let lineage = &authority.lineage;
        let mut digests = vec![authority.digest.clone()];
        if authority.status != Materialised::Current {
            // The accepted contract is not in force yet, and programs of the one in force go on.
            let decisions = self.system.decisions(lineage).await?;
            let before = decisions.iter().rev().find(|decision| decision.version < authority.version);
            let before = before.map(|decision| decision.digest.clone());
            digests.extend(authority.in_force().map(str::to_owned).or(before));
        }
        let mut contracts = Vec::with_capacity(digests.len());
        for digest in digests {
            let compile = |contract: &Contract| CompiledState::of(contract, self);
            contracts.push(self.system.compiled(lineage, &digest, compile).await?);
        }
        Ok(StateRule::Checked { lineage: lineage.clone(), contracts, claims: Vec::new() })
    }

    /// What the claims of a record demand that are not accepted yet, as if the newest were of the contract `claimed`, if
    /// there is one. What was accepted is in the rule by its authority.
    async fn state_claims(
        &self,
        owner: &Owner,
        claimed: Option<&Contract>,
    ) -> Result<Vec<StateClaim>, AuthorityError> {
        let mut claims = Vec::new();
        for claim in owner.claims(self.clock.now()) {
            let Some(until) = claim.until else { continue };
            let is_newest = owner.claim.as_ref().is_some_and(|newest| newest.plan == claim.plan);
            let compile = |contract: &Contract| {
                CompiledState::of(contract, self).map_err(|problems| uncompiled("state", problems))
            };
            let contract = match claimed.filter(|_| is_newest) {
                Some(contract) => compile(contract)?,
                None => match self.system.planned(&owner.lineage, &claim.plan).await {
                    Ok(kept) => compile(&kept.value)?,
                    // The plan is gone, and was never accepted: it demands nothing.
                    Err(AuthorityError::Damaged { revision: Revision::ZERO, .. }) => continue,
                    Err(error) => return Err(error),
                },
            };
            claims.push(StateClaim { contract, until });
        }
        Ok(claims)
    }
}

/// The rule of a lineage with a record that cannot be read; what the engine could not do stays an error.
fn damaged(error: AuthorityError, entry: &Entry) -> Result<StateRule, EngineError> {
    match error {
        AuthorityError::Engine(error) if error.kind() != ErrorKind::Bug => Err(error),
        AuthorityError::Damaged { key, revision, what } => Ok(StateRule::Damaged { key, revision, what }),
        other => {
            let (key, revision) = (entry.key.clone(), entry.revision);
            Ok(StateRule::Damaged { key, revision, what: other.to_string() })
        }
    }
}

impl Contracts {
    /// Whether sessions of a program with this contract may be opened: the rule of [`Contracts::bind`], for state stores.
    /// The contract is in force, or it was accepted before and what it writes is still accepted.
    pub(crate) async fn bind_state(&self, contract: &Contract) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let lineage = contract.id.as_str();
        let unknown = || AuthorityError::UnknownLineage { lineage: lineage.to_owned() };
        let authority = system.authority(lineage).await?.ok_or_else(unknown)?.value;
        let in_force = self.digest_in_force(&authority).await?;
        let Some(other) = self.other_in_force(contract, in_force.as_deref()).await? else { return Ok(()) };
        let refused = contract.state.iter().find(|(name, old)| {
            !other.state.get(*name).is_some_and(|new| {
                let version = &old.state_version;
                let knows = new.state_version == *version || new.accepted_versions.contains_key(version);
                new.kind == old.kind && knows
            })
        });
        match refused {
            Some((store, _)) => {
                Err(AuthorityError::Outdated { lineage: lineage.to_owned(), alias: store.clone() })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records and keys name a lineage alike, so that a rule is found by the key of an entry.
    #[test]
    fn a_key_names_the_lineage_as_the_records_do() {
        let key = Key::parse(format!("u.x.{}.drafts.y", lineage_token("acme.notes@v1"))).unwrap();
        let place = Place::of(&key);
        assert_eq!((place.lineage, place.store, place.is_in_a_map), ("acme/notes=v1", "drafts", true));
    }
}
