use std::collections::BTreeMap;

use pleach_contract::{Contract, ContractId, KvResource};

use crate::binding::Binding;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::record::Authority;

impl Contracts {
    /// The buckets of the resources that code was written for, by alias, if it may use them: its contract is the one
    /// in force, or was accepted at some time and the one in force accepts what it writes, as while a new version is
    /// rolled out. A contract that was accepted and whose apply has not come to its end is not in force.
    ///
    /// # Errors
    /// [`AuthorityError::UnknownLineage`], [`AuthorityError::NotAccepted`], [`AuthorityError::NotInForce`],
    /// [`AuthorityError::Outdated`], or what the engine could not do.
    pub async fn bind(&self, contract: &Contract) -> Result<BTreeMap<String, Binding>, AuthorityError> {
        let system = &self.shared.system;
        let lineage = contract.id.as_str();
        let unknown = || AuthorityError::UnknownLineage { lineage: lineage.to_owned() };
        let authority = system.authority(lineage).await?.ok_or_else(unknown)?.value;
        let in_force = self.digest_in_force(&authority).await?;
        if let Some(other) = self.other_in_force(contract, in_force.as_deref()).await? {
            for (alias, resource) in &contract.resources.kv {
                let new = other.resources.kv.get(alias);
                if !new.is_some_and(|new| accepts(new, resource)) {
                    let (lineage, alias) = (lineage.to_owned(), alias.clone());
                    return Err(AuthorityError::Outdated { lineage, alias });
                }
            }
        }
        let mut bindings = authority.bindings;
        bindings.retain(|alias, _| contract.resources.kv.contains_key(alias));
        let missing = contract.resources.kv.keys().find(|alias| !bindings.contains_key(*alias));
        match missing {
            Some(_) => {
                let (lineage, digest) = (lineage.to_owned(), contract.digest().to_string());
                Err(AuthorityError::NotInForce { lineage, digest, in_force })
            }
            None => Ok(bindings),
        }
    }

    /// The contract in force: what stored values keep, and what writes are checked by. It is another than the
    /// [desired](Contracts::desired) one while an apply is under way, was interrupted or has failed. None before the
    /// first contract came into force.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn in_force(&self, lineage: &ContractId) -> Result<Option<Contract>, AuthorityError> {
        let Some(kept) = self.shared.system.authority(lineage.as_str()).await? else { return Ok(None) };
        match self.digest_in_force(&kept.value).await? {
            Some(digest) => self.contract(lineage, &digest).await.map(Some),
            None => Ok(None),
        }
    }

    /// The digest of the contract in force. An older record that does not name it has bound the buckets, which do.
    pub(crate) async fn digest_in_force(
        &self,
        authority: &Authority,
    ) -> Result<Option<String>, AuthorityError> {
        if let Some(digest) = authority.in_force() {
            return Ok(Some(digest.to_owned()));
        }
        let system = &self.shared.system;
        for binding in authority.bindings.values() {
            let owner = system.owner(&binding.bucket).await?;
            if let Some(digest) = owner.and_then(|kept| kept.value.digest) {
                return Ok(Some(digest));
            }
        }
        // One without buckets has no step that could fail, so only the last can be unfinished.
        let decisions = system.decisions(&authority.lineage).await?;
        let before = decisions.into_iter().find(|decision| decision.version + 1 == authority.version);
        Ok(before.filter(|_| authority.bindings.is_empty()).map(|decision| decision.digest))
    }

    /// The contract in force, if that is another than the one that code was written for, which must have been accepted
    /// before it.
    pub(crate) async fn other_in_force(
        &self,
        contract: &Contract,
        in_force: Option<&str>,
    ) -> Result<Option<Contract>, AuthorityError> {
        if in_force.is_some_and(|digest| contract.is_called(digest)) {
            return Ok(None);
        }
        let system = &self.shared.system;
        let (lineage, digest) = (contract.id.to_string(), contract.digest().to_string());
        let decisions = system.decisions(&lineage).await?;
        let accepted = decisions.iter().position(|decision| contract.is_called(&decision.digest));
        let Some(accepted) = accepted else {
            return Err(AuthorityError::NotAccepted { lineage, digest });
        };
        let current = in_force.and_then(|digest| decisions.iter().rposition(|one| one.digest == digest));
        match (in_force, current) {
            (Some(in_force), Some(current)) if accepted < current => {
                system.contract(&lineage, in_force).await.map(Some)
            }
            // It was accepted after the one in force, and has never been in force itself.
            (in_force, _) => {
                Err(AuthorityError::NotInForce { lineage, digest, in_force: in_force.map(str::to_owned) })
            }
        }
    }
}

/// Whether what code for `old` writes is accepted by `new`: every keyspace is there, and knows the version.
fn accepts(new: &KvResource, old: &KvResource) -> bool {
    let knows = |current: &str, accepted: bool, version: &str| current == version || accepted;
    if old.keyspaces.is_empty() || new.keyspaces.is_empty() {
        return old.keyspaces.is_empty() == new.keyspaces.is_empty()
            && knows(&new.version, new.accepted_versions.contains_key(&old.version), &old.version);
    }
    old.keyspaces.iter().all(|(name, old)| {
        new.keyspaces.get(name).is_some_and(|new| {
            knows(&new.version, new.accepted_versions.contains_key(&old.version), &old.version)
        })
    })
}
