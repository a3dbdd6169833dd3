use std::collections::BTreeMap;

use pleach_contract::{Contract, KvResource};
use pleach_engine::Key;

use crate::binding::Binding;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::plan::{Plan, PlanRecord, PlanStatus};
use crate::system::parsed;

impl Contracts {
    /// The buckets of a contract's resources, for code that was written for it.
    ///
    /// The contract must be the one in force, or one that was accepted before and whose versions are accepted still:
    /// so programs of before go on while they are replaced.
    ///
    /// # Errors
    /// [`AuthorityError::UnknownLineage`] before the first contract, [`AuthorityError::NotAccepted`] if this one never
    /// was, [`AuthorityError::Outdated`] if what it would write is not accepted any more, or what the engine could not do.
    pub async fn bindings(&self, contract: &Contract) -> Result<BTreeMap<String, Binding>, AuthorityError> {
        let (lineage, digest) = (contract.id.as_str(), contract.digest());
        let unknown = || AuthorityError::UnknownLineage { lineage: lineage.to_owned() };
        let authority = self.shared.system.authority(lineage).await?.ok_or_else(unknown)?.value;
        if authority.digest != digest.as_str() {
            let decisions = self.shared.system.decisions(lineage).await?;
            if !decisions.iter().any(|decision| decision.digest == digest.as_str()) {
                return Err(AuthorityError::NotAccepted {
                    lineage: lineage.to_owned(),
                    digest: digest.to_string(),
                });
            }
            let desired = self.shared.system.contract(lineage, &authority.digest).await?;
            check_versions(contract, &desired)?;
        }
        let mut bindings = authority.bindings;
        bindings.retain(|alias, _| contract.resources.kv.contains_key(alias));
        match contract.resources.kv.keys().find(|alias| !bindings.contains_key(*alias)) {
            Some(alias) => Err(AuthorityError::Outdated {
                lineage: lineage.to_owned(),
                what: format!("the resource `{alias}` has no bucket"),
            }),
            None => Ok(bindings),
        }
    }

    /// The pending plans of all lineages whose ids begin like this, by lineage.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn pending(&self, beginning: &str) -> Result<Vec<Plan>, AuthorityError> {
        let now = self.shared.clock.now();
        let mut found = Vec::new();
        for entry in self.shared.system.entries("plan.").await? {
            // The id is the last token of the key, so most plans need not be read.
            if id_of(&entry.key).starts_with(beginning) {
                let record: PlanRecord = parsed(&entry)?.value;
                if record.status(now) == PlanStatus::Pending {
                    found.push(record.plan);
                }
            }
        }
        Ok(found)
    }
}

fn id_of(key: &Key) -> &str {
    key.as_str().rsplit('.').next().unwrap_or_default()
}

/// Whether what code of an old contract writes is accepted by the one in force.
fn check_versions(old: &Contract, desired: &Contract) -> Result<(), AuthorityError> {
    for (alias, resource) in &old.resources.kv {
        let Some(now) = desired.resources.kv.get(alias) else { continue };
        for (name, version) in written(resource) {
            if !knows(now, name, version) {
                let place = name.map_or_else(|| alias.clone(), |name| format!("{alias}/{name}"));
                return Err(AuthorityError::Outdated {
                    lineage: old.id.to_string(),
                    what: format!("the version `{version}` of {place} is not accepted any more"),
                });
            }
        }
    }
    Ok(())
}

/// The versions that a program writes, by keyspace.
fn written(resource: &KvResource) -> Vec<(Option<&str>, &str)> {
    if resource.keyspaces.is_empty() {
        return vec![(None, &resource.version)];
    }
    resource
        .keyspaces
        .iter()
        .map(|(name, keyspace)| (Some(name.as_str()), keyspace.version.as_str()))
        .collect()
}

fn knows(resource: &KvResource, keyspace: Option<&str>, version: &str) -> bool {
    match keyspace {
        None => {
            resource.keyspaces.is_empty()
                && (resource.version == version || resource.accepted_versions.contains_key(version))
        }
        Some(name) => resource.keyspaces.get(name).is_some_and(|keyspace| {
            keyspace.version == version || keyspace.accepted_versions.contains_key(version)
        }),
    }
}
