use std::collections::{BTreeMap, BTreeSet};

use pleach_engine::{BucketName, EngineError, Timestamp};
use serde_json::Value;

use super::{ContractRecords, Extent, LineageRecords, TransferError};
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::{lineage_token, system_key};
use crate::record::{Authority, Damage, Decision, GlassAct, Materialised, Owner, OwnerState};
use crate::state::{STATE_BUCKET, STATE_LOG_BUCKET};
use crate::system::{System, contract_of, parsed};

/// How often the system bucket is read again because someone changed it meanwhile.
const READS_MAX: usize = 8;

/// The readable records of a system bucket, as they were at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    authorities: BTreeMap<String, Authority>,
    contracts: BTreeMap<String, BTreeMap<String, Value>>,
    decisions: BTreeMap<String, Vec<Decision>>,
    pub(super) owners: BTreeMap<String, Owner>,
    /// Who owns what users and devices have stored, by lineage.
    states: BTreeMap<String, Owner>,
    pub(super) acts: Vec<GlassAct>,
    /// Records that cannot be read, with the lineage token or bucket they are about.
    damages: Vec<(String, Damage)>,
    unknown: Option<String>,
}

impl Snapshot {
    /// Reads everything between two looks at the newest revision that are the same, so that it fits together.
    pub(super) async fn take(system: &System) -> Result<Self, AuthorityError> {
        for _ in 0..READS_MAX {
            let before = system.revision().await?;
            let mut snapshot = Self::default();
            for entry in system.entries("").await? {
                snapshot.add(&entry);
            }
            if system.revision().await? == before {
                return Ok(snapshot);
            }
        }
        Err(TransferError::Moved.into())
    }

    fn add(&mut self, entry: &pleach_engine::Entry) {
        let (kind, rest) = entry.key.as_str().split_once('.').unwrap_or((entry.key.as_str(), ""));
        let (subject, last) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let read = match kind {
            // They belong to the store: the target is verified anew.
            "store" | "plan" | "verified" => Ok(()),
            "authority" => parsed::<Authority>(entry).map(|kept| {
                self.authorities.insert(rest.to_owned(), kept.value);
            }),
            "bucket" => parsed::<Owner>(entry).map(|kept| {
                self.owners.insert(rest.to_owned(), kept.value);
            }),
            "state" => parsed::<Owner>(entry).map(|kept| {
                self.states.insert(rest.to_owned(), kept.value);
            }),
            "decision" => parsed::<Decision>(entry).map(|kept| {
                self.decisions.entry(subject.to_owned()).or_default().push(kept.value);
            }),
            "contract" => parsed::<Value>(entry).and_then(|kept| {
                contract_of(&kept.value, last).map_err(|what| Damage {
                    key: entry.key.clone(),
                    revision: entry.revision,
                    what,
                })?;
                self.contracts.entry(subject.to_owned()).or_default().insert(last.to_owned(), kept.value);
                Ok(())
            }),
            "glass" => parsed::<GlassAct>(entry).map(|kept| self.acts.push(kept.value)),
            _ => {
                self.unknown.get_or_insert_with(|| entry.key.to_string());
                Ok(())
            }
        };
        if let Err(damage) = read {
            let about = if matches!(kind, "decision" | "contract") { subject } else { rest };
            self.damages.push((about.to_owned(), damage));
        }
    }

    /// The records of a lineage, if it has any.
    pub(super) fn lineage(&self, token: &str) -> Result<Option<LineageRecords>, AuthorityError> {
        if let Some((_, damage)) = self.damages.iter().find(|(about, _)| about == token) {
            return Err(damage.clone().into());
        }
        let Some(authority) = self.authorities.get(token).cloned() else { return Ok(None) };
        let owned = self.owners.iter().filter(|(_, owner)| owner.lineage == authority.lineage);
        let buckets = owned.filter(|(_, owner)| owner.is_moved());
        let buckets = buckets.map(|(name, owner)| (name.clone(), Owner { claim: None, ..owner.clone() }));
        let state = self.states.get(token).filter(|owner| owner.is_moved());
        let records = LineageRecords {
            buckets: buckets.collect(),
            state: state.map(|owner| Owner { claim: None, ..owner.clone() }),
            contracts: self.contracts.get(token).cloned().unwrap_or_default(),
            decisions: self.decisions.get(token).cloned().unwrap_or_default(),
            authority,
        };
        records.check()?;
        Ok(Some(records))
    }

    /// The decisions about a lineage that are there, whether or not the rest of it is.
    pub(super) fn decisions(&self, token: &str) -> &[Decision] {
        self.decisions.get(token).map_or(&[], Vec::as_slice)
    }

    /// The lineages that an extent touches: by an owned bucket, or by state that its contracts declare.
    fn touched(&self, extent: &Extent) -> BTreeSet<String> {
        let mut tokens = BTreeSet::new();
        if *extent == Extent::Store {
            tokens.extend(self.authorities.keys().cloned());
        }
        let owned = self.owners.iter().filter(|(name, owner)| extent.has(name) && owner.is_moved());
        tokens.extend(owned.map(|(_, owner)| lineage_token(&owner.lineage)));
        if extent.has(STATE_BUCKET) {
            tokens.extend(self.authorities.keys().filter(|token| self.has_state(token)).cloned());
        }
        tokens
    }

    fn has_state(&self, token: &str) -> bool {
        let declares = |contract: &Value| {
            contract.get("state").and_then(Value::as_object).is_some_and(|stores| !stores.is_empty())
        };
        self.contracts.get(token).is_some_and(|all| all.values().any(declares))
    }

    /// Refuses what cannot be moved at this moment: see [`TransferError::Unfinished`].
    fn check_finished(&self, lineage: &Authority, now: Timestamp) -> Result<(), TransferError> {
        let apply = "finish it with `pleach contract apply PLAN`; `pleach contract status` names the plan";
        let refuse =
            |what, help| Err(TransferError::Unfinished { lineage: lineage.lineage.clone(), what, help });
        if lineage.status != Materialised::Current {
            return refuse("an apply was interrupted, or is under way", apply);
        }
        let owners = self.owners.values().chain(self.states.values());
        for owner in owners.filter(|owner| owner.lineage == lineage.lineage) {
            let claim = owner.claim.as_ref().filter(|claim| !claim.ahead && claim.holds(now));
            if claim.is_some() || owner.accepted().is_some() {
                return refuse("an apply was interrupted, or is under way", apply);
            }
            if owner.state == OwnerState::Going {
                let help = "finish it with `pleach contract sweep`";
                return refuse("one of its buckets is being deleted", help);
            }
        }
        Ok(())
    }
}

impl Owner {
    /// Whether the record moves to another store. One without a contract in force is only a claim of a plan, and those stay.
    fn is_moved(&self) -> bool {
        self.digest.is_some() && self.state != OwnerState::Arriving
    }
}

impl LineageRecords {
    /// Refuses records that lack one that another refers to.
    pub(super) fn check(&self) -> Result<(), AuthorityError> {
        let lineage = &self.authority.lineage;
        let digests = self.decisions.iter().map(|decision| decision.digest.as_str());
        let digests = digests.chain(std::iter::once(self.authority.digest.as_str()));
        let owners = self.buckets.values().chain(&self.state);
        let digests = digests.chain(owners.filter_map(|owner| owner.digest.as_deref()));
        for digest in digests {
            if !self.contracts.contains_key(digest) {
                let key = system_key(&["contract", &lineage_token(lineage), digest])?;
                return Err(crate::system::missing(key).into());
            }
        }
        Ok(())
    }
}

impl Contracts {
    /// The records that move with a part of the store.
    ///
    /// # Errors
    /// [`AuthorityError::Transfer`] if something must be finished or selected first, a damaged record, or what the
    /// engine could not do.
    pub async fn records(&self, extent: &Extent) -> Result<ContractRecords, AuthorityError> {
        let system = &self.shared.system;
        let snapshot = Snapshot::take(system).await?;
        if let Some(key) = snapshot.unknown {
            return Err(TransferError::Unknown { key }.into());
        }
        if let Some((_, damage)) = snapshot.damages.iter().find(|(about, _)| extent.has(about)) {
            return Err(damage.clone().into());
        }
        let arriving =
            |(name, owner): &(&String, &Owner)| owner.state == OwnerState::Arriving && extent.has(name);
        if let Some((bucket, _)) = snapshot.owners.iter().find(arriving) {
            return Err(TransferError::Arriving { bucket: bucket.clone() }.into());
        }
        let now = self.shared.clock.now();
        let mut records = ContractRecords::default();
        for token in snapshot.touched(extent) {
            let Some(lineage) = snapshot.lineage(&token)? else {
                return Err(crate::system::missing(system_key(&["authority", &token])?).into());
            };
            snapshot.check_finished(&lineage.authority, now)?;
            self.check_whole(extent, &lineage, snapshot.has_state(&token)).await?;
            records.lineages.push(lineage);
        }
        records.overrides = snapshot.acts.into_iter().filter(|act| extent.has(&act.bucket)).collect();
        Ok(records)
    }

    /// Refuses an extent that leaves out a bucket of a lineage which is there.
    async fn check_whole(
        &self,
        extent: &Extent,
        lineage: &LineageRecords,
        has_state: bool,
    ) -> Result<(), AuthorityError> {
        let state = [STATE_BUCKET, STATE_LOG_BUCKET].into_iter().filter(|_| has_state);
        let mut missing = Vec::new();
        for bucket in lineage.buckets.keys().map(String::as_str).chain(state) {
            if !extent.has(bucket) && self.is_there(bucket).await? {
                missing.push(bucket.to_owned());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let lineage = lineage.authority.lineage.clone();
        Err(TransferError::Incomplete { lineage, missing }.into())
    }

    pub(super) async fn is_there(&self, bucket: &str) -> Result<bool, AuthorityError> {
        match self.shared.system.engine().bucket(&BucketName::parse(bucket)?).await {
            Ok(_) => Ok(true),
            Err(EngineError::BucketNotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
