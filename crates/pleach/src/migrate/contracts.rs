use std::collections::BTreeMap;

use pleach_engine::BucketName;
use pleach_stores::{Arrival, ContractRecords, Extent, TransferError};

use crate::{Error, Store};

/// A move of the contracts that own buckets, with their history, to the store that the buckets move to.
///
/// [`ContractMove::plan`] comes before the first bucket and writes nothing. [`ContractMove::begin`] reserves the buckets in
/// the target: they take copies and nothing else. When every bucket is complete, [`ContractMove::finish`] writes the records
/// and puts the contracts in force.
#[derive(Debug)]
pub struct ContractMove {
    source: Store,
    target: Store,
    extent: Extent,
    names: BTreeMap<BucketName, BucketName>,
    records: ContractRecords,
    arrival: Arrival,
}

/// What was compared of the contracts on both sides, and found to be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedContracts {
    /// How many lineages there are.
    pub lineages: usize,
    /// How many contracts were accepted.
    pub contracts: usize,
    /// How many decisions the histories have.
    pub decisions: usize,
    /// How many buckets the contracts own.
    pub buckets: usize,
    /// How many records there are of what was done past the guards.
    pub overrides: usize,
    /// SHA-256 of the records of the source.
    pub source_digest: String,
    /// SHA-256 of the records of the target.
    pub target_digest: String,
}

impl ContractMove {
    /// Looks at the contracts of both sides. `buckets` are all that are moved, with their names in the target; `extent` says
    /// whether they are the whole store.
    ///
    /// # Errors
    /// [`TransferError`] if a bucket of a contract is left out, an apply is not finished, the target has another contract of
    /// the lineage, or its engine cannot keep what a contract promises.
    pub async fn plan(
        source: &Store,
        target: &Store,
        extent: Extent,
        buckets: impl IntoIterator<Item = (BucketName, BucketName)>,
    ) -> Result<Self, Error> {
        let names: BTreeMap<_, _> = buckets.into_iter().collect();
        let records = source.contracts().records(&extent).await?.renamed(&names);
        let arrival = target.contracts().can_take(&records).await?;
        Ok(Self { source: source.clone(), target: target.clone(), extent, names, records, arrival })
    }

    /// What is moved.
    pub fn records(&self) -> &ContractRecords {
        &self.records
    }

    /// Whether the target has all of it: then it is only compared.
    pub fn is_done(&self) -> bool {
        self.arrival == Arrival::Done
    }

    /// Reserves the buckets in the target.
    ///
    /// # Errors
    /// Those of [`ContractMove::plan`], or what the target could not do.
    pub async fn begin(&self) -> Result<(), Error> {
        Ok(self.target.contracts().hold(&self.records).await?)
    }

    /// Writes the records to the target, puts the contracts in force there, and compares both sides.
    ///
    /// # Errors
    /// [`TransferError::Moved`] if the contracts of the source have changed since [`ContractMove::plan`]: plan, copy what is new
    /// and finish again. What an engine could not do.
    pub async fn finish(self) -> Result<VerifiedContracts, Error> {
        let Self { source, target, extent, names, records, .. } = &self;
        let is_current = async || {
            let now = source.contracts().records(extent).await?.renamed(names);
            Ok(now == *records)
        };
        if !is_current().await.map_err(Error::Contract)? {
            return Err(Error::Contract(TransferError::Moved.into()));
        }
        let target_digest = target.contracts().put_records(records, is_current).await?;
        let count = |of: fn(&pleach_stores::LineageRecords) -> usize| records.lineages.iter().map(of).sum();
        Ok(VerifiedContracts {
            lineages: records.lineages.len(),
            contracts: count(|lineage| lineage.contracts.len()),
            decisions: count(|lineage| lineage.decisions.len()),
            buckets: count(|lineage| lineage.buckets.len()),
            overrides: records.overrides.len(),
            source_digest: records.digest(),
            target_digest,
        })
    }
}
