use std::collections::BTreeMap;

use pleach_contract::{Contract, KvResource};

use crate::binding::Binding;
use crate::contracts::Contracts;
use crate::error::AuthorityError;

impl Contracts {
    /// The buckets of the resources that code was written for, by alias, if it may use them: its contract is the one
    /// in force, or was accepted before and what it writes is still accepted, as while a new version is rolled out.
    ///
    /// # Errors
    /// [`AuthorityError::UnknownLineage`], [`AuthorityError::NotAccepted`], [`AuthorityError::Outdated`], or what the engine
    /// could not do.
    pub async fn bind(&self, contract: &Contract) -> Result<BTreeMap<String, Binding>, AuthorityError> {
        let system = &self.shared.system;
        let lineage = contract.id.as_str();
        let unknown = || AuthorityError::UnknownLineage { lineage: lineage.to_owned() };
        let authority = system.authority(lineage).await?.ok_or_else(unknown)?.value;
        if !contract.is_called(&authority.digest) {
            let decisions = system.decisions(lineage).await?;
            if !decisions.iter().any(|decision| contract.is_called(&decision.digest)) {
                let digest = contract.digest().to_string();
                return Err(AuthorityError::NotAccepted { lineage: lineage.to_owned(), digest });
            }
            let desired = system.contract(lineage, &authority.digest).await?;
            for (alias, resource) in &contract.resources.kv {
                let is_accepted = desired.resources.kv.get(alias).is_some_and(|new| accepts(new, resource));
                if !is_accepted {
                    let (lineage, alias) = (lineage.to_owned(), alias.clone());
                    return Err(AuthorityError::Outdated { lineage, alias });
                }
            }
        }
        let mut bindings = authority.bindings;
        bindings.retain(|alias, _| contract.resources.kv.contains_key(alias));
        let missing = contract.resources.kv.keys().find(|alias| !bindings.contains_key(*alias));
        match missing {
            // Accepted, and its bucket is not made yet.
            Some(_) => Err(self.moved(lineage, "it is not in force yet")),
            None => Ok(bindings),
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
