use std::collections::BTreeMap;

use pleach_contract::{Contract, ContractId};
use pleach_engine::BucketName;
use pleach_stores::{
    Applied, ApplyOptions, AuthorityError, Binding, Breach, Damage, Decision, GlassAct, LineageStatus,
    OnProgress, Owner, Plan, PlanOptions, PlanStatus, Verified,
};

use super::block_on;

/// The blocking form of [`Contracts`](pleach_stores::Contracts).
#[derive(Clone, Debug)]
pub struct Contracts {
    contracts: pleach_stores::Contracts,
}

impl Contracts {
    /// See [`Contracts::plan`](pleach_stores::Contracts::plan).
    pub fn plan(&self, contract: &Contract, options: PlanOptions) -> Result<Plan, AuthorityError> {
        block_on(self.contracts.plan(contract, options))
    }

    /// See [`Contracts::apply`](pleach_stores::Contracts::apply).
    pub fn apply(&self, plan: &Plan, options: ApplyOptions) -> Result<Applied, AuthorityError> {
        block_on(self.contracts.apply(plan, options))
    }

    /// See [`Contracts::resume`](pleach_stores::Contracts::resume).
    pub fn resume(&self, lineage: &ContractId) -> Result<Option<Applied>, AuthorityError> {
        block_on(self.contracts.resume(lineage))
    }

    /// See [`Contracts::bind`](pleach_stores::Contracts::bind).
    pub fn bind(&self, contract: &Contract) -> Result<BTreeMap<String, Binding>, AuthorityError> {
        block_on(self.contracts.bind(contract))
    }

    /// See [`Contracts::planned`](pleach_stores::Contracts::planned).
    pub fn planned(&self, lineage: &ContractId, plan: &str) -> Result<(Plan, PlanStatus), AuthorityError> {
        block_on(self.contracts.planned(lineage, plan))
    }

    /// See [`Contracts::pending`](pleach_stores::Contracts::pending).
    pub fn pending(&self, beginning: &str) -> Result<Vec<Plan>, AuthorityError> {
        block_on(self.contracts.pending(beginning))
    }

    /// See [`Contracts::applied_plans`](pleach_stores::Contracts::applied_plans).
    pub fn applied_plans(&self, beginning: &str) -> Result<Vec<Plan>, AuthorityError> {
        block_on(self.contracts.applied_plans(beginning))
    }

    /// See [`Contracts::reject`](pleach_stores::Contracts::reject).
    pub fn reject(&self, lineage: &ContractId, plan: &str) -> Result<(), AuthorityError> {
        block_on(self.contracts.reject(lineage, plan))
    }

    /// See [`Contracts::status`](pleach_stores::Contracts::status).
    pub fn status(&self, lineage: &ContractId) -> Result<Option<LineageStatus>, AuthorityError> {
        block_on(self.contracts.status(lineage))
    }

    /// See [`Contracts::lineages`](pleach_stores::Contracts::lineages).
    pub fn lineages(&self) -> Result<Vec<LineageStatus>, AuthorityError> {
        block_on(self.contracts.lineages())
    }

    /// See [`Contracts::damages`](pleach_stores::Contracts::damages).
    pub fn damages(&self) -> Result<Vec<Damage>, AuthorityError> {
        block_on(self.contracts.damages())
    }

    /// See [`Contracts::history`](pleach_stores::Contracts::history).
    pub fn history(&self, lineage: &ContractId) -> Result<Vec<Decision>, AuthorityError> {
        block_on(self.contracts.history(lineage))
    }

    /// See [`Contracts::desired`](pleach_stores::Contracts::desired).
    pub fn desired(&self, lineage: &ContractId) -> Result<Option<Contract>, AuthorityError> {
        block_on(self.contracts.desired(lineage))
    }

    /// See [`Contracts::in_force`](pleach_stores::Contracts::in_force).
    pub fn in_force(&self, lineage: &ContractId) -> Result<Option<Contract>, AuthorityError> {
        block_on(self.contracts.in_force(lineage))
    }

    /// See [`Contracts::contract`](pleach_stores::Contracts::contract).
    pub fn contract(&self, lineage: &ContractId, digest: &str) -> Result<Contract, AuthorityError> {
        block_on(self.contracts.contract(lineage, digest))
    }

    /// See [`Contracts::owner`](pleach_stores::Contracts::owner).
    pub fn owner(&self, bucket: &BucketName) -> Result<Option<Owner>, AuthorityError> {
        block_on(self.contracts.owner(bucket))
    }

    /// See [`Contracts::broken_glass`](pleach_stores::Contracts::broken_glass).
    pub fn broken_glass(&self) -> Result<Vec<GlassAct>, AuthorityError> {
        block_on(self.contracts.broken_glass())
    }

    /// See [`Contracts::overrides`](pleach_stores::Contracts::overrides).
    pub fn overrides(&self, lineage: &ContractId) -> Result<Vec<GlassAct>, AuthorityError> {
        block_on(self.contracts.overrides(lineage))
    }

    /// See [`Contracts::verify`](pleach_stores::Contracts::verify).
    pub fn verify(
        &self,
        lineage: &ContractId,
        progress: Option<OnProgress>,
    ) -> Result<Option<Verification>, AuthorityError> {
        Ok(block_on(self.contracts.verify(lineage, progress))?
            .map(|verification| Verification { verification }))
    }

    /// See [`Contracts::restore`](pleach_stores::Contracts::restore).
    pub fn restore(&self, lineage: &ContractId, alias: &str) -> Result<BucketName, AuthorityError> {
        block_on(self.contracts.restore(lineage, alias))
    }

    /// See [`Contracts::sweep`](pleach_stores::Contracts::sweep).
    pub fn sweep(&self) -> Result<Vec<BucketName>, AuthorityError> {
        block_on(self.contracts.sweep())
    }

    /// See [`Contracts::sweep_lineage`](pleach_stores::Contracts::sweep_lineage).
    pub fn sweep_lineage(&self, lineage: &ContractId) -> Result<Vec<BucketName>, AuthorityError> {
        block_on(self.contracts.sweep_lineage(lineage))
    }
}

/// The blocking form of [`Verification`](pleach_stores::Verification): an iterator.
#[derive(Debug)]
pub struct Verification {
    verification: pleach_stores::Verification,
}

impl Verification {
    /// See [`Verification::found`](pleach_stores::Verification::found).
    pub fn found(&self) -> &Verified {
        self.verification.found()
    }
}

impl Iterator for Verification {
    type Item = Result<Breach, AuthorityError>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.verification.next()).transpose()
    }
}

impl From<pleach_stores::Contracts> for Contracts {
    fn from(contracts: pleach_stores::Contracts) -> Self {
        Self { contracts }
    }
}
