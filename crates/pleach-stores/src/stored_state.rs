use std::collections::BTreeMap;

use pleach_contract::Contract;
use pleach_contract::evolution::Subject;
use pleach_engine::{BucketName, EngineError, Key, KeyFilter, Revision, Selection};

use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::lineage_token;
use crate::plan::{PlanFinding, Scanned};
use crate::state::STATE_BUCKET;
use crate::survey::{Asked, Part, Survey, Watchers};

/// What a plan calls the entries of a state store; no alias has a dot.
pub(crate) fn state_name(store: &str) -> String {
    format!("state.{store}")
}

impl Contracts {
    /// Asks what is stored in the state stores of a lineage, of all its users and devices, whatever the findings want
    /// to know, as far as it was written after `since`. The bucket is read once, and not at all if nothing is asked.
    pub(crate) async fn survey_state(
        &self,
        contract: &Contract,
        findings: &[PlanFinding],
        since: Revision,
        watchers: &Watchers,
    ) -> Result<Vec<(String, Scanned, Vec<Asked>)>, AuthorityError> {
        let mut asked: BTreeMap<&str, Vec<Asked>> = BTreeMap::new();
        for (index, finding) in findings.iter().enumerate() {
            if let (Subject::State { store, .. }, Some(one)) = (&finding.subject, Asked::of(index, finding)) {
                asked.entry(store).or_default().push(one);
            }
        }
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let shared = &self.shared;
        let lineage = contract.id.as_str();
        let old = match shared.system.authority(lineage).await? {
            Some(kept) => Some(shared.system.contract(lineage, &kept.value.digest).await?),
            None => None,
        };
        let mut parts = Vec::with_capacity(asked.len());
        for (store, asked) in asked {
            let old = match &old {
                Some(old) => shared.compiled_state(old, store)?,
                None => None,
            };
            parts.push(Part {
                name: store.to_owned(),
                old,
                new: shared.compiled_state(contract, store)?,
                resource: None,
                unstamped: None,
                asked,
                scanned: Scanned::default(),
            });
        }
        let bug = |error: pleach_engine::InvalidName| EngineError::Bug { what: error.to_string() };
        // An owner is two tokens, and a store one: what follows is a key in it, or nothing.
        let filter = KeyFilter::parse(format!("*.*.{}.>", lineage_token(lineage))).map_err(bug)?;
        let selection = Selection { filter: Some(filter), ..Selection::all() };
        let bucket = BucketName::parse(STATE_BUCKET).map_err(bug)?;
        let mut survey = Survey { bucket, selection, since, part_of: store_of, parts };
        survey.run(&**shared.system.engine(), shared.clock.now(), watchers).await?;
        Ok(survey.parts.into_iter().map(|part| (part.name, part.scanned, part.asked)).collect())
    }
}

/// The store that an entry is in.
fn store_of(key: &Key) -> Option<&str> {
    Some(key.tokens().nth(3).unwrap_or_default())
}
