use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ContractRecords, LineageRecords, TransferError};
use crate::error::AuthorityError;
use crate::record::{Authority, Decision, GlassAct, Materialised, Owner};
use crate::system::contract_of;

/// One record of [`ContractRecords`], as a line of an export has it. `docs/formats/ndjson.md` describes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "system", rename_all = "camelCase", deny_unknown_fields)]
pub enum TransferLine {
    /// What is accepted and in force of a lineage. The records of the lineage follow.
    Authority {
        /// The record.
        record: Authority,
    },
    /// A contract that was accepted.
    Contract {
        /// Its digest.
        digest: String,
        /// The document.
        record: Value,
    },
    /// Who accepted a contract.
    Decision {
        /// The record.
        record: Decision,
    },
    /// Who owns a bucket.
    Owner {
        /// The name of the bucket.
        owned: String,
        /// The record.
        record: Owner,
    },
    /// Which contract is in force for what users and devices have stored.
    State {
        /// The record.
        record: Owner,
    },
    /// Something that was done past the guards.
    Override {
        /// The record.
        record: GlassAct,
    },
    /// The end of the records.
    End {
        /// How many there are.
        records: usize,
        /// The digest of all of them.
        sha256: String,
    },
}

impl ContractRecords {
    /// All records, and a last line by which a cut or edited file is told.
    pub fn to_lines(&self) -> Vec<TransferLine> {
        let mut lines = Vec::new();
        for lineage in &self.lineages {
            lines.push(TransferLine::Authority { record: lineage.authority.clone() });
            let contracts = lineage.contracts.iter();
            lines.extend(contracts.map(|(digest, record)| TransferLine::Contract {
                digest: digest.clone(),
                record: record.clone(),
            }));
            let decisions = lineage.decisions.iter().cloned();
            lines.extend(decisions.map(|record| TransferLine::Decision { record }));
            let owners = lineage.buckets.iter();
            lines.extend(owners.map(|(bucket, record)| TransferLine::Owner {
                owned: bucket.clone(),
                record: record.clone(),
            }));
            lines.extend(lineage.state.iter().cloned().map(|record| TransferLine::State { record }));
        }
        lines.extend(self.overrides.iter().cloned().map(|record| TransferLine::Override { record }));
        lines.push(TransferLine::End { records: self.count(), sha256: self.digest() });
        lines
    }

    /// The records of an export.
    ///
    /// # Errors
    /// [`TransferError::Invalid`] if they are not what was exported.
    pub fn from_lines(lines: impl IntoIterator<Item = TransferLine>) -> Result<Self, AuthorityError> {
        let mut all = Self::default();
        let invalid = |what: &str| TransferError::Invalid { what: what.to_owned() };
        let mut end = None;
        for line in lines {
            if end.is_some() {
                return Err(invalid("a record follows their end").into());
            }
            let lineage = all.lineages.last_mut().ok_or_else(|| invalid("a record belongs to no lineage"));
            match line {
                TransferLine::Authority { record } => all.lineages.push(LineageRecords {
                    authority: record,
                    contracts: Default::default(),
                    decisions: Vec::new(),
                    buckets: Default::default(),
                    state: None,
                }),
                TransferLine::Contract { digest, record } => {
                    contract_of(&record, &digest).map_err(|what| TransferError::Invalid { what })?;
                    lineage?.contracts.insert(digest, record);
                }
                TransferLine::Decision { record } => lineage?.decisions.push(record),
                TransferLine::Owner { owned, record } => {
                    lineage?.buckets.insert(owned, record);
                }
                TransferLine::State { record } => lineage?.state = Some(record),
                TransferLine::Override { record } => all.overrides.push(record),
                TransferLine::End { records, sha256 } => end = Some((records, sha256)),
            }
        }
        if end != Some((all.count(), all.digest())) {
            return Err(invalid("they were cut or changed after the export").into());
        }
        for lineage in &all.lineages {
            lineage.check()?;
            if lineage.authority.status != Materialised::Current {
                return Err(invalid("an apply was not finished").into());
            }
        }
        Ok(all)
    }
}
