use std::collections::{BTreeMap, BTreeSet};

use pleach_contract::Contract;
use pleach_contract::evolution::Subject;
use pleach_engine::{BucketName, EngineError, Key, KeyFilter, Revision, Selection};

use crate::alike::stores_alike;
use crate::asked::Asked;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::judge::Judge;
use crate::naming::lineage_token;
use crate::plan::PlanFinding;
use crate::state::STATE_BUCKET;
use crate::survey::{Found, Part, Survey, Watchers};

/// What a plan calls the entries of a state store; no alias has a dot.
pub(crate) fn state_name(store: &str) -> String {
    format!("state.{store}")
}

impl Contracts {
    /// Judges what is stored in the state stores of a lineage, of all its users and devices, also in stores that no contract
    /// declares, and answers what the findings ask, as far as it was written after `since`. The bucket is read once, and
    /// not at all if every store is provably read alike before and after.
    pub(crate) async fn survey_state<'c>(
        &self,
        old: Option<&Contract>,
        contract: &'c Contract,
        findings: &[PlanFinding],
        since: Revision,
        watchers: &Watchers,
    ) -> Result<Vec<Part<'c>>, AuthorityError> {
        let mut asked: BTreeMap<&str, Vec<Asked>> = BTreeMap::new();
        for (index, finding) in findings.iter().enumerate() {
            if let (Subject::State { store, .. }, Some(one)) = (&finding.subject, Asked::of(index, finding)) {
                asked.entry(store).or_default().push(one);
            }
        }
        let shared = &self.shared;
        let lineage = contract.id.as_str();
        let declared = old.into_iter().flat_map(|old| old.state.keys()).chain(contract.state.keys());
        let stores: BTreeSet<&str> = declared.map(String::as_str).chain(asked.keys().copied()).collect();
        let mut parts = Vec::with_capacity(stores.len());
        for store in stores {
            let judge = |contract: &Contract| self.judge_of_store(contract, store);
            let is_alike = old.is_some_and(|old| stores_alike(old, contract, store));
            let before = old.map(judge).transpose()?;
            let asked = asked.remove(store).unwrap_or_default();
            parts.push(Part { is_alike, asked, ..Part::new(store, before, judge(contract)?) });
        }
        // A store that neither contract declares is as unreadable as before, if there is a contract in force.
        if old.is_some() && parts.iter().all(|part| part.is_alike && part.asked.is_empty()) {
            return Ok(Vec::new());
        }
        let further: fn(&str) -> Part<'c> = match old {
            Some(_) => {
                |store| Part::new(store, Some(Judge::without_store(store)), Judge::without_store(store))
            }
            None => |store| Part::new(store, None, Judge::without_store(store)),
        };
        let bug = |error: pleach_engine::InvalidName| EngineError::Bug { what: error.to_string() };
        // An owner is two tokens, and a store one: what follows is a key in it, or nothing.
        let filter = KeyFilter::parse(format!("*.*.{}.>", lineage_token(lineage))).map_err(bug)?;
        let selection = Selection { filter: Some(filter), ..Selection::all() };
        let bucket = BucketName::parse(STATE_BUCKET).map_err(bug)?;
        let further = Some(further);
        let mut survey = Survey { bucket, selection, since, part_of: store_of, parts, further };
        survey.run(&**shared.system.engine(), shared.clock.now(), watchers).await?;
        // One that holds nothing and was asked nothing has nothing to say.
        survey.parts.retain(|part| {
            let Found { scanned, is_unread, .. } = &part.found;
            scanned.entries > 0 || scanned.kept > 0 || *is_unread || !part.asked.is_empty()
        });
        Ok(survey.parts)
    }

    pub(crate) fn judge_of_store(&self, contract: &Contract, store: &str) -> Result<Judge, AuthorityError> {
        let compiled = self.shared.compiled_state(contract, store)?;
        Ok(match (compiled, contract.state.get(store)) {
            (Some(compiled), Some(declared)) => Judge::state(compiled, declared.kind),
            _ => Judge::without_store(store),
        })
    }
}

/// The store that an entry is in.
fn store_of(key: &Key) -> Option<&str> {
    Some(key.tokens().nth(3).unwrap_or_default())
}
