use std::sync::Arc;

use pleach_contract::{Contract, ContractId};
use pleach_engine::BucketName;

/// What an alias of a contract stands for in a store: where the entries of the resource are.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The id of the contract.
    pub lineage: ContractId,
    /// The resource's name in the contract.
    pub alias: String,
    /// Where its entries are.
    pub bucket: BucketName,
    /// The contract that the code was written for.
    pub contract: Arc<Contract>,
    /// The version of entries without an envelope, in a bucket that was there before its contract.
    pub unstamped_version: Option<String>,
}
