use std::collections::BTreeSet;
use std::sync::Arc;

use pleach_contract::{Contract, Problems};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Durability, Engine, EngineError, Entry, Expectation,
    Key, Operation, Revision, ScanQuery, Selection,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::AuthorityError;
use crate::fence::{Fence, Scope};
use crate::known_contracts::KnownContracts;
use crate::naming::{lineage_token, system_bucket, system_key};
use crate::plan::{Plan, PlanRecord};
use crate::record::{Authority, Damage, Decision, GlassAct, Owner, StoreRecord};
use crate::state::STATE_BUCKET;

/// The digits of a version in a key, so that keys sort as versions do.
const VERSION_DIGITS: usize = 10;

/// What the keys of owner records begin with.
pub(crate) const OWNER_PREFIX: &str = "bucket.";

/// What the keys of the same records begin with that are about what a lineage keeps for users and devices.
pub(crate) const STATE_OWNER_PREFIX: &str = "state.";

/// The system bucket: the only place that knows its keys. Nothing here is guarded.
#[derive(Debug)]
pub(crate) struct System {
    engine: Arc<dyn Engine>,
    bucket: BucketName,
    known: KnownContracts,
}

/// A record with the revision at which it was read.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    pub(crate) value: T,
    pub(crate) revision: Revision,
}

/// The records whose keys begin alike, each with the rest of its key; and those that cannot be read.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) readable: Vec<(String, Kept<T>)>,
    damaged: Option<Damage>,
}

impl<T> Listed<T> {
    /// All of them, or the first that cannot be read: where one that is missing would change what is done.
    fn whole(self) -> Result<Vec<(String, Kept<T>)>, AuthorityError> {
        self.damaged.map_or(Ok(self.readable), |damage| Err(damage.into()))
    }
}

/// The expectation that a record is still what was read; that there is none, if there was none.
pub(crate) fn unchanged<T>(kept: Option<&Kept<T>>) -> Expectation {
    kept.map_or(Expectation::Absent, |kept| Expectation::Revision(kept.revision))
}

impl System {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, bucket: system_bucket(), known: KnownContracts::default() }
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// The contracts that were read from its records.
    pub(crate) fn known(&self) -> &KnownContracts {
        &self.known
    }

    pub(crate) fn bucket(&self) -> &BucketName {
        &self.bucket
    }

    /// Makes the bucket unless it is there, and says which store it is in.
    pub(crate) async fn store_id(&self) -> Result<String, AuthorityError> {
        let key = system_key(&["store"])?;
        if let Some(found) = self.read::<StoreRecord>(&key).await? {
            return Ok(found.value.id);
        }
        self.create().await?;
        let id = random_id()?;
        let record = self.put(key.clone(), &StoreRecord { id: id.clone() }, Expectation::Absent);
        match self.commit(record.into()).await {
            Ok(()) => Ok(id),
            Err(CommitError::Conflict(_)) => {
                let found = self.read::<StoreRecord>(&key).await?;
                found
                    .map(|found| found.value.id)
                    .ok_or_else(|| EngineError::Bug { what: "no store id".into() }.into())
            }
            Err(CommitError::Engine(error)) => Err(error.into()),
        }
    }

    /// Makes the bucket unless it is there.
    pub(crate) async fn create(&self) -> Result<(), EngineError> {
        let can = self.engine.capabilities();
        let durability = if can.synced_commits { Durability::Synced } else { Durability::Buffered };
        let config =
            BucketConfig { durability, value_bytes_max: can.value_bytes_max, ..BucketConfig::plain(can) };
        match self.engine.create_bucket(&self.bucket, config).await {
            // Whatever its configuration: an engine may have had other limits when it was made.
            Ok(_) | Err(EngineError::BucketExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn authority(&self, lineage: &str) -> Result<Option<Kept<Authority>>, AuthorityError> {
        self.read(&authority_key(lineage)?).await
    }

    /// What all lineages shall be, of those that can be read.
    pub(crate) async fn authorities(&self) -> Result<Vec<Authority>, AuthorityError> {
        let all = self.list::<Authority>("authority.").await?.readable;
        Ok(all.into_iter().map(|(_, kept)| kept.value).collect())
    }

    pub(crate) async fn owner(&self, bucket: &str) -> Result<Option<Kept<Owner>>, AuthorityError> {
        self.read(&owner_key(bucket)?).await
    }

    /// The buckets of a lineage, by name, of those whose records can be read: one that is damaged concerns nobody but
    /// whoever asks for that very bucket.
    pub(crate) async fn owners(&self, lineage: &str) -> Result<Vec<(String, Kept<Owner>)>, AuthorityError> {
        let all = self.all_owners().await?;
        Ok(all.into_iter().filter(|(_, kept)| kept.value.lineage == lineage).collect())
    }

    pub(crate) async fn all_owners(&self) -> Result<Vec<(String, Kept<Owner>)>, AuthorityError> {
        Ok(self.list(OWNER_PREFIX).await?.readable)
    }

    /// What a lineage's claims and contract are for what it keeps for users and devices.
    pub(crate) async fn state_owner(&self, lineage: &str) -> Result<Option<Kept<Owner>>, AuthorityError> {
        self.read(&state_key(lineage)?).await
    }

    pub(crate) async fn plan(
        &self,
        lineage: &str,
        plan: &str,
    ) -> Result<Option<Kept<PlanRecord>>, AuthorityError> {
        self.read(&plan_key(lineage, plan)?).await
    }

    /// The plans of a lineage that can be read.
    pub(crate) async fn plans(&self, lineage: &str) -> Result<Vec<Kept<PlanRecord>>, AuthorityError> {
        let all = self.list(&format!("plan.{}.", lineage_token(lineage))).await?.readable;
        Ok(all.into_iter().map(|(_, kept)| kept).collect())
    }

    pub(crate) async fn decisions(&self, lineage: &str) -> Result<Vec<Decision>, AuthorityError> {
        let all = self.list::<Decision>(&format!("decision.{}.", lineage_token(lineage))).await?.whole()?;
        Ok(all.into_iter().map(|(_, kept)| kept.value).collect())
    }

    /// A contract that was accepted.
    pub(crate) async fn contract(&self, lineage: &str, digest: &str) -> Result<Contract, AuthorityError> {
        Ok(self.kept_contract(lineage, digest).await?.value)
    }

    async fn kept_contract(&self, lineage: &str, digest: &str) -> Result<Kept<Contract>, AuthorityError> {
        let key = contract_key(lineage, digest)?;
        let Some(Kept { value, revision }) = self.read::<serde_json::Value>(&key).await? else {
            return Err(missing(key).into());
        };
        match self.known.read(&value, digest) {
            Ok(value) => Ok(Kept { value, revision }),
            Err(what) => Err(Damage { key, revision, what }.into()),
        }
    }

    /// What `compile` makes of a contract that was accepted. What it cannot be made of is damaged, however it came to be.
    pub(crate) async fn compiled<T>(
        &self,
        lineage: &str,
        digest: &str,
        compile: impl FnOnce(&Contract) -> Result<T, Problems>,
    ) -> Result<T, AuthorityError> {
        let Kept { value, revision } = self.kept_contract(lineage, digest).await?;
        let key = contract_key(lineage, digest)?;
        compile(&value).map_err(|problems| Damage { key, revision, what: problems.to_string() }.into())
    }

    /// The contract that a plan leads to which was claimed for a bucket.
    pub(crate) async fn planned(&self, lineage: &str, plan: &str) -> Result<Kept<Contract>, AuthorityError> {
        let key = plan_key(lineage, plan)?;
        let Some(Kept { value: PlanRecord { plan, .. }, revision }) = self.plan(lineage, plan).await? else {
            return Err(missing(key).into());
        };
        match self.known.read(&plan.contract, &plan.target) {
            Ok(value) => Ok(Kept { value, revision }),
            Err(what) => Err(Damage { key, revision, what }.into()),
        }
    }

    /// Every record that cannot be read, and every contract that was accepted and is not there.
    pub(crate) async fn damages(&self) -> Result<Vec<Damage>, AuthorityError> {
        let (mut damages, mut contracts, mut accepted) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for entry in self.entries("").await? {
            let (kind, rest) = entry.key.as_str().split_once('.').unwrap_or((entry.key.as_str(), ""));
            let read = match kind {
                "store" => parsed::<StoreRecord>(&entry).map(drop),
                "authority" => parsed::<Authority>(&entry).map(drop),
                "bucket" | "state" => parsed::<Owner>(&entry).map(drop),
                "plan" => parsed::<PlanRecord>(&entry).map(drop),
                "glass" => parsed::<GlassAct>(&entry).map(drop),
                "verified" => crate::verify::check_record(&entry),
                "decision" => parsed::<Decision>(&entry).and_then(|kept| {
                    let lineage = rest.rsplit_once('.').map_or(rest, |(lineage, _)| lineage);
                    let digest = kept.value.digest;
                    let contract = system_key(&["contract", lineage, &digest]).map_err(|error| {
                        let what = format!("there can be no contract with the digest `{digest}`: {error}");
                        Damage { key: entry.key.clone(), revision: entry.revision, what }
                    })?;
                    accepted.insert(contract);
                    Ok(())
                }),
                "contract" => {
                    contracts.insert(entry.key.clone());
                    let digest = rest.rsplit_once('.').map_or(rest, |(_, digest)| digest);
                    parsed::<serde_json::Value>(&entry).and_then(|kept| {
                        match contract_of(&kept.value, digest) {
                            Ok(_) => Ok(()),
                            Err(what) => {
                                Err(Damage { key: entry.key.clone(), revision: entry.revision, what })
                            }
                        }
                    })
                }
                // Of a newer version: nothing here needs it.
                _ => Ok(()),
            };
            damages.extend(read.err());
        }
        damages.extend(accepted.difference(&contracts).cloned().map(missing));
        Ok(damages)
    }

    /// A record that cannot be read, or is not there, is an error that names it.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        key: &Key,
    ) -> Result<Option<Kept<T>>, AuthorityError> {
        match self.engine.read(&self.bucket, key, At::Latest).await {
            Ok(entry) => Ok(entry.map(|entry| parsed(&entry)).transpose()?),
            Err(EngineError::BucketNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The records whose keys begin so.
    async fn list<T: DeserializeOwned>(&self, prefix: &str) -> Result<Listed<T>, EngineError> {
        let mut listed = Listed { readable: Vec::new(), damaged: None };
        for entry in self.entries(prefix).await? {
            let rest = entry.key.as_str().strip_prefix(prefix).unwrap_or_default().to_owned();
            match parsed(&entry) {
                Ok(kept) => listed.readable.push((rest, kept)),
                Err(damage) => listed.damaged = listed.damaged.or(Some(damage)),
            }
        }
        Ok(listed)
    }

    /// The entries whose keys begin so.
    pub(crate) async fn entries(&self, prefix: &str) -> Result<Vec<Entry>, EngineError> {
        let selection = if prefix.is_empty() { Selection::all() } else { Selection::prefix(prefix) };
        let mut query = ScanQuery { selection, limit: 1000, ..ScanQuery::default() };
        let mut entries = Vec::new();
        loop {
            let page = match self.engine.scan(&self.bucket, query.clone()).await {
                Ok(page) => page,
                Err(EngineError::BucketNotFound { .. }) => return Ok(entries),
                Err(error) => return Err(error),
            };
            entries.extend(page.entries);
            match page.next {
                Some(next) => query.page = Some(next),
                None => return Ok(entries),
            }
        }
    }

    /// The newest revision of the bucket; none if there is no bucket.
    pub(crate) async fn revision(&self) -> Result<Option<Revision>, EngineError> {
        match self.engine.bucket(&self.bucket).await {
            Ok(info) => Ok(Some(info.last_revision)),
            Err(EngineError::BucketNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Commits a batch of records. Where others write too, the fences of all buckets and lineages whose records are in it
    /// are raised afterwards: then nobody's commit is stored any more that was judged by the older records.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let fenced: Vec<Key> = match self.engine.capabilities().sole_writer {
            true => Vec::new(),
            false => batch.operations().iter().map(|operation| operation.key.clone()).collect(),
        };
        let committed = self.engine.commit(&self.bucket, batch).await;
        // A conflict has changed nothing; whatever else happened may have.
        if !matches!(committed, Err(CommitError::Conflict(_))) {
            for key in fenced {
                self.raise_fence(key.as_str()).await?;
            }
        }
        committed.map(drop)
    }

    /// Raises the fences of everything that a lineage has, where others write too: for whoever finds records that someone
    /// else has written, and who may have died before raising the fences.
    pub(crate) async fn raise_fences(&self, lineage: &str) -> Result<(), AuthorityError> {
        if self.engine.capabilities().sole_writer {
            return Ok(());
        }
        for (bucket, _) in self.owners(lineage).await? {
            self.raise_fence(owner_key(&bucket)?.as_str()).await?;
        }
        Ok(self.raise_fence(state_key(lineage)?.as_str()).await?)
    }

    /// Raises the fence of what a record is about, if there is one.
    async fn raise_fence(&self, key: &str) -> Result<(), EngineError> {
        let bug = |error: pleach_engine::InvalidName| EngineError::Bug { what: error.to_string() };
        if let Some(bucket) = key.strip_prefix(OWNER_PREFIX) {
            let bucket = BucketName::parse(bucket).map_err(bug)?;
            Fence::raise(&*self.engine, &bucket, Scope::Bucket).await?;
        }
        if let Some(lineage) = key.strip_prefix(STATE_OWNER_PREFIX) {
            let bucket = BucketName::parse(STATE_BUCKET).map_err(bug)?;
            Fence::raise(&*self.engine, &bucket, Scope::Lineage(lineage)).await?;
        }
        Ok(())
    }

    pub(crate) fn put(&self, key: Key, record: &impl Serialize, expect: Expectation) -> Operation {
        // Plain structures of texts and numbers: there is nothing in them that could not be JSON.
        let value = serde_json::to_vec(record).unwrap_or_default();
        Operation::put(key, value).expecting(expect)
    }

    pub(crate) fn put_authority(
        &self,
        authority: &Authority,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(self.put(authority_key(&authority.lineage)?, authority, expect))
    }

    pub(crate) fn put_owner(
        &self,
        bucket: &str,
        owner: &Owner,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(self.put(owner_key(bucket)?, owner, expect))
    }

    pub(crate) fn delete_owner(
        &self,
        bucket: &str,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(Operation::delete(owner_key(bucket)?).expecting(expect))
    }

    pub(crate) fn put_state_owner(
        &self,
        owner: &Owner,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(self.put(state_key(&owner.lineage)?, owner, expect))
    }

    pub(crate) fn delete_state_owner(
        &self,
        lineage: &str,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(Operation::delete(state_key(lineage)?).expecting(expect))
    }

    pub(crate) fn put_plan(
        &self,
        record: &PlanRecord,
        expect: Expectation,
    ) -> Result<Operation, AuthorityError> {
        Ok(self.put(plan_key(&record.plan.lineage, &record.plan.id)?, record, expect))
    }

    pub(crate) fn delete_plan(&self, kept: &Kept<PlanRecord>) -> Result<Operation, AuthorityError> {
        let Plan { lineage, id, .. } = &kept.value.plan;
        Ok(Operation::delete(plan_key(lineage, id)?).expecting(unchanged(Some(kept))))
    }

    pub(crate) fn put_decision(
        &self,
        lineage: &str,
        decision: &Decision,
    ) -> Result<Operation, AuthorityError> {
        let version = format!("{:0VERSION_DIGITS$}", decision.version);
        let key = system_key(&["decision", &lineage_token(lineage), &version])?;
        Ok(self.put(key, decision, Expectation::Absent))
    }

    pub(crate) fn put_contract(&self, plan: &Plan) -> Result<Operation, AuthorityError> {
        self.put_document(&plan.lineage, &plan.target, &plan.contract)
    }

    pub(crate) fn put_document(
        &self,
        lineage: &str,
        digest: &str,
        document: &serde_json::Value,
    ) -> Result<Operation, AuthorityError> {
        Ok(self.put(contract_key(lineage, digest)?, document, Expectation::Any))
    }
}

/// A contract in a record, which must be the one with this digest.
pub(crate) fn contract_of(document: &serde_json::Value, digest: &str) -> Result<Contract, String> {
    let contract = Contract::from_stored(document).map_err(|problems| problems.to_string())?;
    if !contract.is_called(digest) {
        return Err(format!("it has the digest {} and not {digest}", contract.digest()));
    }
    Ok(contract)
}

pub(crate) fn parsed<T: DeserializeOwned>(entry: &Entry) -> Result<Kept<T>, Damage> {
    let (key, revision) = (entry.key.clone(), entry.revision);
    match serde_json::from_slice(&entry.value) {
        Ok(value) => Ok(Kept { value, revision }),
        Err(error) => Err(Damage { key, revision, what: error.to_string() }),
    }
}

pub(crate) fn missing(key: Key) -> Damage {
    Damage { key, revision: Revision::ZERO, what: "it is missing, though it was accepted".to_owned() }
}

fn authority_key(lineage: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["authority", &lineage_token(lineage)])?)
}

fn owner_key(bucket: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["bucket", bucket])?)
}

fn state_key(lineage: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["state", &lineage_token(lineage)])?)
}

fn plan_key(lineage: &str, plan: &str) -> Result<Key, AuthorityError> {
    let bad = || AuthorityError::UnknownPlan { plan: plan.to_owned(), lineage: lineage.to_owned() };
    // Both come from a file that may have been written by anyone.
    system_key(&["plan", &lineage_token(lineage), plan]).map_err(|_| bad())
}

fn contract_key(lineage: &str, digest: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["contract", &lineage_token(lineage), digest])?)
}

fn random_id() -> Result<String, EngineError> {
    let word = || getrandom::u64().map_err(|_| EngineError::Bug { what: "no random numbers".into() });
    Ok(format!("{:016x}{:016x}", word()?, word()?))
}
