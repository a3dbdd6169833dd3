//! Moving contracts between stores: which records of the system bucket travel, and how a store takes them.
//!
//! A move has three steps. [`Contracts::records`] reads what travels. [`Contracts::hold`] reserves the buckets in the
//! other store: they take copies and nothing else. [`Contracts::put_records`] writes the records when the data is
//! complete, and from then on the contracts are in force there. Each step can be repeated.

mod check;
mod error;
mod lines;
mod put;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use pleach_contract::canonical;
use pleach_engine::BucketName;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::record::{Authority, Decision, GlassAct, Owner, OwnerState};

pub use check::Arrival;
pub use error::TransferError;
pub use lines::TransferLine;

/// The part of a store that is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Store,
    /// These buckets, which must be all the buckets of the contracts that own them.
    Buckets(BTreeSet<BucketName>),
}

impl Extent {
    fn has(&self, bucket: &str) -> bool {
        match self {
            Self::Store => true,
            Self::Buckets(names) => names.iter().any(|name| name.as_str() == bucket),
        }
    }
}

/// The records about contracts that move with buckets to another store.
///
/// None of them names a store, a plan that could still be applied, or a revision: these belong to the store they were
/// made in, and stay there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContractRecords {
    /// Every lineage with all its records, by name.
    pub lineages: Vec<LineageRecords>,
    /// What was done to these buckets past the guards, the oldest first.
    pub overrides: Vec<GlassAct>,
}

/// The records of one lineage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineageRecords {
    /// What is accepted and in force.
    pub authority: Authority,
    /// Every contract that was accepted, by digest.
    pub contracts: BTreeMap<String, Value>,
    /// Who accepted them, the oldest first.
    pub decisions: Vec<Decision>,
    /// The buckets, those that were set aside included. Claims of plans that are not accepted are left out.
    pub buckets: BTreeMap<String, Owner>,
    /// The contract in force for what users and devices have stored; none if that has no record of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Owner>,
}

impl ContractRecords {
    /// Whether there is nothing to move.
    pub fn is_empty(&self) -> bool {
        self.lineages.is_empty() && self.overrides.is_empty()
    }

    /// The same records for buckets that have other names in the other store.
    #[must_use]
    pub fn renamed(mut self, names: &BTreeMap<BucketName, BucketName>) -> Self {
        let new = |old: &str| {
            let found = names.iter().find(|(from, _)| from.as_str() == old);
            found.map_or_else(|| old.to_owned(), |(_, to)| to.to_string())
        };
        for lineage in &mut self.lineages {
            let buckets = std::mem::take(&mut lineage.buckets);
            lineage.buckets = buckets.into_iter().map(|(bucket, owner)| (new(&bucket), owner)).collect();
            for binding in lineage.authority.bindings.values_mut() {
                binding.bucket = new(&binding.bucket);
            }
        }
        for act in &mut self.overrides {
            act.bucket = new(&act.bucket);
        }
        self
    }

    /// All buckets that contracts own, with their owners.
    pub fn buckets(&self) -> impl Iterator<Item = (&str, &Owner)> {
        let all = self.lineages.iter().flat_map(|lineage| &lineage.buckets);
        all.map(|(bucket, owner)| (bucket.as_str(), owner))
    }

    /// How many records there are.
    pub fn count(&self) -> usize {
        let of_lineage = |one: &LineageRecords| {
            let state = usize::from(one.state.is_some());
            1 + one.contracts.len() + one.decisions.len() + one.buckets.len() + state
        };
        self.lineages.iter().map(of_lineage).sum::<usize>() + self.overrides.len()
    }

    /// SHA-256 of the canonical form of all records, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        Sha256::digest(canonical(&value).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Owner {
    /// The record of the bucket while it is being filled in another store.
    pub(crate) fn arriving(&self) -> Self {
        Self { claim: None, state: OwnerState::Arriving, ..self.clone() }
    }
}
