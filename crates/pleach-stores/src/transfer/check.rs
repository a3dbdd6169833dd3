use pleach_contract::Contract;
use pleach_engine::{BucketConfig, Capabilities};

use super::read::Snapshot;
use super::{ContractRecords, LineageRecords, TransferError};
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::lineage_token;
use crate::plan::Shortfall;
use crate::record::{Owner, OwnerState};
use crate::shortfalls::shortfalls;
use crate::system::contract_of;

/// How much of some records a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing, or a part of them that an earlier attempt left.
    Open,
    /// All of them: the contracts are in force.
    Done,
}

impl Contracts {
    /// Checks that this store can take records of another, and writes nothing.
    ///
    /// # Errors
    /// [`AuthorityError::Transfer`] if it has another contract of a lineage, a bucket belongs to someone else, or its engine
    /// cannot keep what a contract promises. A damaged record, or what the engine could not do.
    pub async fn can_take(&self, records: &ContractRecords) -> Result<Arrival, AuthorityError> {
        let snapshot = Snapshot::take(&self.shared.system).await?;
        let can = self.shared.system.engine().capabilities();
        let mut arrival = Arrival::Done;
        for lineage in &records.lineages {
            if can_take_one(&snapshot, lineage)? == Arrival::Open {
                check_promises(lineage, can)?;
                arrival = Arrival::Open;
            }
        }
        if !records.overrides.iter().all(|act| snapshot.acts.contains(act)) {
            arrival = Arrival::Open;
        }
        Ok(arrival)
    }

    /// The configuration that the bucket of a contract has on an engine that can do `can`. A contract that sets no limit for
    /// values leaves it to the engine.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn moved_config(
        &self,
        owner: &Owner,
        config: BucketConfig,
        can: &Capabilities,
    ) -> Result<BucketConfig, AuthorityError> {
        let (Some(digest), OwnerState::Owned) = (&owner.digest, &owner.state) else { return Ok(config) };
        let contract = self.shared.system.contract(&owner.lineage, digest).await?;
        Ok(fitted(&contract, &owner.alias, config, can))
    }
}

impl ContractRecords {
    /// The configuration of a bucket on an engine that can do `can`: see [`Contracts::moved_config`].
    pub fn config_of(&self, bucket: &str, config: BucketConfig, can: &Capabilities) -> BucketConfig {
        let of_lineage = |lineage: &LineageRecords| {
            let owner = lineage.buckets.get(bucket).filter(|owner| owner.state == OwnerState::Owned)?;
            let digest = owner.digest.as_ref()?;
            let contract = contract_of(lineage.contracts.get(digest)?, digest).ok()?;
            Some(fitted(&contract, &owner.alias, config.clone(), can))
        };
        self.lineages.iter().find_map(of_lineage).unwrap_or(config)
    }
}

fn fitted(contract: &Contract, alias: &str, config: BucketConfig, can: &Capabilities) -> BucketConfig {
    match contract.resources.kv.get(alias) {
        Some(resource) if resource.max_value_bytes.is_none() => {
            BucketConfig { value_bytes_max: can.value_bytes_max, ..config }
        }
        _ => config,
    }
}

pub(super) fn can_take_one(snapshot: &Snapshot, lineage: &LineageRecords) -> Result<Arrival, AuthorityError> {
    let name = &lineage.authority.lineage;
    let token = lineage_token(name);
    if let Some(theirs) = snapshot.lineage(&token)? {
        if theirs == *lineage {
            return Ok(Arrival::Done);
        }
        let is_same = theirs.authority.digest == lineage.authority.digest;
        let (mut theirs, ours) = (described(&theirs), described(lineage));
        if is_same {
            theirs.push_str(" with other buckets or decisions");
        }
        return Err(TransferError::Clash { lineage: name.clone(), theirs, ours }.into());
    }
    for (bucket, ours) in &lineage.buckets {
        let Some(theirs) = snapshot.owners.get(bucket) else { continue };
        let is_held = theirs.state == OwnerState::Arriving
            && (&theirs.lineage, &theirs.alias) == (&ours.lineage, &ours.alias);
        if !is_held {
            let (bucket, owner) = (bucket.clone(), theirs.lineage.clone());
            return Err(TransferError::Taken { bucket, lineage: name.clone(), owner }.into());
        }
    }
    // An earlier attempt may have written some of them.
    if !snapshot.decisions(&token).iter().all(|decision| lineage.decisions.contains(decision)) {
        let theirs = "with other decisions".to_owned();
        return Err(TransferError::Clash { lineage: name.clone(), theirs, ours: described(lineage) }.into());
    }
    Ok(Arrival::Open)
}

fn check_promises(lineage: &LineageRecords, can: &Capabilities) -> Result<(), AuthorityError> {
    let (name, digest) = (&lineage.authority.lineage, &lineage.authority.digest);
    let invalid = |what| TransferError::Invalid { what };
    let document = lineage.contracts.get(digest).ok_or_else(|| invalid(format!("no contract {digest}")))?;
    let contract = contract_of(document, digest).map_err(invalid)?;
    // What no engine keeps yet is a warning of plans, and the source does not keep it either.
    let mut shortfalls = shortfalls(&contract, can);
    shortfalls.retain(|shortfall| shortfall.blocks);
    for (digest, document) in &lineage.contracts {
        let bytes = document.to_string().len();
        if bytes > can.value_bytes_max as usize {
            let limit = can.value_bytes_max;
            let message = format!("the document {digest} has {bytes} bytes, and the engine takes {limit}");
            let fix = "raise the limit of the target".to_owned();
            shortfalls.push(Shortfall { path: "/".to_owned(), message, fix, blocks: true });
        }
    }
    if shortfalls.is_empty() {
        return Ok(());
    }
    Err(TransferError::Incapable { lineage: name.clone(), shortfalls }.into())
}

fn described(lineage: &LineageRecords) -> String {
    let digest: String = lineage.authority.digest.chars().take(20).collect();
    format!("version {} ({digest}…)", lineage.authority.version)
}
