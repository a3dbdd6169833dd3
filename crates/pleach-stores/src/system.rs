use std::sync::Arc;

use pleach_contract::{Contract, Digest};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Durability, Engine, EngineError, Entry, Expectation,
    Key, Operation, Revision, ScanQuery, Selection,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::AuthorityError;
use crate::naming::{lineage_token, system_bucket, system_key};
use crate::plan::{Plan, PlanRecord};
use crate::record::{Authority, Decision, Owner, StoreRecord};

/// The digits of a version in a key, so that keys sort as versions do.
const VERSION_DIGITS: usize = 10;

/// The system bucket: the only place that knows its keys. Nothing here is guarded.
#[derive(Clone, Debug)]
pub(crate) struct System {
    engine: Arc<dyn Engine>,
    bucket: BucketName,
}

/// A record with the revision at which it was read.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    pub(crate) value: T,
    pub(crate) revision: Revision,
}

/// The expectation that a record is still what was read; that there is none, if there was none.
pub(crate) fn unchanged<T>(kept: Option<&Kept<T>>) -> Expectation {
    kept.map_or(Expectation::Absent, |kept| Expectation::Revision(kept.revision))
}

impl System {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, bucket: system_bucket() }
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
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

    async fn create(&self) -> Result<(), EngineError> {
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

    pub(crate) async fn authorities(&self) -> Result<Vec<Authority>, AuthorityError> {
        let all = self.list::<Authority>("authority.").await?;
        Ok(all.into_iter().map(|(_, kept)| kept.value).collect())
    }

    pub(crate) async fn owner(&self, bucket: &str) -> Result<Option<Kept<Owner>>, AuthorityError> {
        self.read(&owner_key(bucket)?).await
    }

    /// The buckets of a lineage, by name.
    pub(crate) async fn owners(&self, lineage: &str) -> Result<Vec<(String, Kept<Owner>)>, AuthorityError> {
        let all = self.all_owners().await?;
        Ok(all.into_iter().filter(|(_, kept)| kept.value.lineage == lineage).collect())
    }

    pub(crate) async fn all_owners(&self) -> Result<Vec<(String, Kept<Owner>)>, AuthorityError> {
        self.list("bucket.").await
    }

    pub(crate) async fn plan(
        &self,
        lineage: &str,
        plan: &str,
    ) -> Result<Option<Kept<PlanRecord>>, AuthorityError> {
        self.read(&plan_key(lineage, plan)?).await
    }

    pub(crate) async fn plans(&self, lineage: &str) -> Result<Vec<Kept<PlanRecord>>, AuthorityError> {
        let all = self.list(&format!("plan.{}.", lineage_token(lineage))).await?;
        Ok(all.into_iter().map(|(_, kept)| kept).collect())
    }

    pub(crate) async fn decisions(&self, lineage: &str) -> Result<Vec<Decision>, AuthorityError> {
        let all = self.list::<Decision>(&format!("decision.{}.", lineage_token(lineage))).await?;
        Ok(all.into_iter().map(|(_, kept)| kept.value).collect())
    }

    /// A contract that was accepted.
    pub(crate) async fn contract(&self, lineage: &str, digest: &str) -> Result<Contract, AuthorityError> {
        let key = contract_key(lineage, digest)?;
        let Some(found) = self.read::<serde_json::Value>(&key).await? else {
            let what = "it is missing, though it was accepted".to_owned();
            return Err(AuthorityError::Damaged { key, revision: Revision::ZERO, what });
        };
        contract_of(&found.value, digest).map_err(|what| AuthorityError::Damaged {
            key,
            revision: found.revision,
            what,
        })
    }

    /// A record that cannot be read, or is not there, is an error that names it.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        key: &Key,
    ) -> Result<Option<Kept<T>>, AuthorityError> {
        match self.engine.read(&self.bucket, key, At::Latest).await {
            Ok(entry) => entry.map(|entry| parsed(&entry)).transpose(),
            Err(EngineError::BucketNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The records whose keys begin so, with what follows in the key.
    async fn list<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, Kept<T>)>, AuthorityError> {
        let mut list = Vec::new();
        for entry in self.entries(prefix).await? {
            let rest = entry.key.as_str().strip_prefix(prefix).unwrap_or_default().to_owned();
            list.push((rest, parsed(&entry)?));
        }
        Ok(list)
    }

    /// The entries whose keys begin so.
    pub(crate) async fn entries(&self, prefix: &str) -> Result<Vec<Entry>, EngineError> {
        let mut query =
            ScanQuery { selection: Selection::prefix(prefix), limit: 1000, ..ScanQuery::default() };
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

    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.engine.commit(&self.bucket, batch).await.map(drop)
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
        Ok(self.put(contract_key(&plan.lineage, &plan.target)?, &plan.contract, Expectation::Any))
    }
}

/// A contract in a record, which must be the one with this digest.
pub(crate) fn contract_of(document: &serde_json::Value, digest: &str) -> Result<Contract, String> {
    let contract = Contract::from_value(document).map_err(|problems| problems.to_string())?.contract;
    let found: Digest = contract.digest();
    if found.as_str() != digest {
        return Err(format!("it has the digest {found} and not {digest}"));
    }
    Ok(contract)
}

pub(crate) fn parsed<T: DeserializeOwned>(entry: &Entry) -> Result<Kept<T>, AuthorityError> {
    let value = serde_json::from_slice(&entry.value).map_err(|error| AuthorityError::Damaged {
        key: entry.key.clone(),
        revision: entry.revision,
        what: error.to_string(),
    })?;
    Ok(Kept { value, revision: entry.revision })
}

fn authority_key(lineage: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["authority", &lineage_token(lineage)])?)
}

fn owner_key(bucket: &str) -> Result<Key, AuthorityError> {
    Ok(system_key(&["bucket", bucket])?)
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
