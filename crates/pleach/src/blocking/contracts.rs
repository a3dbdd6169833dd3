use std::collections::BTreeMap;

use pleach_contract::{Contract, ContractId};
use pleach_engine::BucketName;
use pleach_stores::{
    Applied, ApplyOptions, AuthorityError, Binding, Decision, GlassAct, LineageStatus, Owner, Plan,
    PlanOptions, PlanStatus,
};

use super::block_on;

/// The blocking form of [`Contracts`](crate::Contracts).
#[derive(Clone, Debug)]
pub struct Contracts {
    contracts: crate::Contracts,
}

impl Contracts {
    /// See [`Contracts::plan`](crate::Contracts::plan).
    pub fn plan(&self, contract: &Contract, options: PlanOptions) -> Result<Plan, AuthorityError> {
        block_on(self.contracts.plan(contract, options))
    }

    /// See [`Contracts::apply`](crate::Contracts::apply).
    pub fn apply(&self, plan: &Plan, options: ApplyOptions) -> Result<Applied, AuthorityError> {
        block_on(self.contracts.apply(plan, options))
    }

    /// See [`Contracts::resume`](crate::Contracts::resume).
    pub fn resume(&self, lineage: &ContractId) -> Result<Option<Applied>, AuthorityError> {
        block_on(self.contracts.resume(lineage))
    }

    /// See [`Contracts::bind`](crate::Contracts::bind).
    pub fn bind(&self, contract: &Contract) -> Result<BTreeMap<String, Binding>, AuthorityError> {
        block_on(self.contracts.bind(contract))
    }

    /// See [`Contracts::planned`](crate::Contracts::planned).
    pub fn planned(&self, lineage: &ContractId, plan: &str) -> Result<(Plan, PlanStatus), AuthorityError> {
        block_on(self.contracts.planned(lineage, plan))
    }

    /// See [`Contracts::reject`](crate::Contracts::reject).
    pub fn reject(&self, lineage: &ContractId, plan: &str) -> Result<(), AuthorityError> {
        block_on(self.contracts.reject(lineage, plan))
    }

    /// See [`Contracts::status`](crate::Contracts::status).
    pub fn status(&self, lineage: &ContractId) -> Result<Option<LineageStatus>, AuthorityError> {
        block_on(self.contracts.status(lineage))
    }

    /// See [`Contracts::lineages`](crate::Contracts::lineages).
    pub fn lineages(&self) -> Result<Vec<LineageStatus>, AuthorityError> {
        block_on(self.contracts.lineages())
    }

    /// See [`Contracts::history`](crate::Contracts::history).
    pub fn history(&self, lineage: &ContractId) -> Result<Vec<Decision>, AuthorityError> {
        block_on(self.contracts.history(lineage))
    }

    /// See [`Contracts::desired`](crate::Contracts::desired).
    pub fn desired(&self, lineage: &ContractId) -> Result<Option<Contract>, AuthorityError> {
        block_on(self.contracts.desired(lineage))
    }

    /// See [`Contracts::contract`](crate::Contracts::contract).
    pub fn contract(&self, lineage: &ContractId, digest: &str) -> Result<Contract, AuthorityError> {
        block_on(self.contracts.contract(lineage, digest))
    }

    /// See [`Contracts::owner`](crate::Contracts::owner).
    pub fn owner(&self, bucket: &BucketName) -> Result<Option<Owner>, AuthorityError> {
        block_on(self.contracts.owner(bucket))
    }

    /// See [`Contracts::broken_glass`](crate::Contracts::broken_glass).
    pub fn broken_glass(&self) -> Result<Vec<GlassAct>, AuthorityError> {
        block_on(self.contracts.broken_glass())
    }

    /// See [`Contracts::restore`](crate::Contracts::restore).
    pub fn restore(&self, lineage: &ContractId, alias: &str) -> Result<BucketName, AuthorityError> {
        block_on(self.contracts.restore(lineage, alias))
    }

    /// See [`Contracts::sweep`](crate::Contracts::sweep).
    pub fn sweep(&self) -> Result<Vec<BucketName>, AuthorityError> {
        block_on(self.contracts.sweep())
    }
}

impl From<crate::Contracts> for Contracts {
    fn from(contracts: crate::Contracts) -> Self {
        Self { contracts }
    }
}
