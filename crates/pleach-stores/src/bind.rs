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
        let digest = contract.digest().to_string();
        let in_force = self.digest_in_force(&authority).await?;
        if in_force.as_ref() != Some(&digest) {
            self.check_accepted(contract, &digest, in_force.as_deref()).await?;
        }
        let mut bindings = authority.bindings;
        bindings.retain(|alias, _| contract.resources.kv.contains_key(alias));
        let missing = contract.resources.kv.keys().find(|alias| !bindings.contains_key(*alias));
        match missing {
            Some(_) => Err(AuthorityError::NotInForce { lineage: lineage.to_owned(), digest, in_force }),
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
        for binding in authority.bindings.values() {
            let owner = self.shared.system.owner(&binding.bucket).await?;
            if let Some(digest) = owner.and_then(|kept| kept.value.digest) {
                return Ok(Some(digest));
            }
        }
        Ok(None)
    }

    /// Refuses a contract that is not in force, unless it was accepted and the one in force accepts what it writes.
    async fn check_accepted(
        &self,
        contract: &Contract,
        digest: &str,
        in_force: Option<&str>,
    ) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let lineage = contract.id.as_str();
        let decisions = system.decisions(lineage).await?;
        let last_version = |digest: &str| decisions.iter().rposition(|decision| decision.digest == digest);
        let Some(accepted) = last_version(digest) else {
            return Err(AuthorityError::NotAccepted {
                lineage: lineage.to_owned(),
                digest: digest.to_owned(),
            });
        };
        let not_in_force = || AuthorityError::NotInForce {
            lineage: lineage.to_owned(),
            digest: digest.to_owned(),
            in_force: in_force.map(str::to_owned),
        };
        let Some(current) = in_force else { return Err(not_in_force()) };
        let is_later = last_version(current).is_none_or(|current| current < accepted);
        let current = system.contract(lineage, current).await?;
        for (alias, resource) in &contract.resources.kv {
            let is_accepted = current.resources.kv.get(alias).is_some_and(|new| accepts(new, resource));
            if !is_accepted && is_later {
                return Err(not_in_force());
            }
            if !is_accepted {
                let (lineage, alias) = (lineage.to_owned(), alias.clone());
                return Err(AuthorityError::Outdated { lineage, alias });
            }
        }
        Ok(())
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
