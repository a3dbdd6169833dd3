use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pleach_contract::Contract;
use serde_json::Value;

use crate::system::contract_of;

/// How many contracts are remembered.
const KNOWN_MAX: usize = 64;

/// Contracts that were read from records before. Reading one compiles its schemas, and a plan reads the same contract many
/// times. A handle, cheap to clone. An entry answers only for the very document that it was read from, so that a record that changes is read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownContracts {
    by_digest: Arc<Mutex<BTreeMap<String, (Value, Contract)>>>,
}

impl KnownContracts {
    /// The contract in a record, which must be the one with this digest.
    pub(crate) fn read(&self, document: &Value, digest: &str) -> Result<Contract, String> {
        let known = self.by_digest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, contract)) = known.get(digest)
            && of == document
        {
            return Ok(contract.clone());
        }
        drop(known);
        let contract = contract_of(document, digest)?;
        let mut known = self.by_digest.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(digest.to_owned(), (document.clone(), contract.clone()));
        Ok(contract)
    }
}
