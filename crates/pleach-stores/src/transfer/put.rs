use std::collections::VecDeque;

use pleach_engine::{Batch, BucketName, EngineError, Expectation, Operation};

use super::check::can_take_one;
use super::read::Snapshot;
use super::{Arrival, ContractRecords, LineageRecords, TransferError};
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::{lineage_token, system_key};
use crate::record::{Owner, OwnerState};
use crate::system::unchanged;

/// Bytes of records that are written at once, unless one alone has more.
const BATCH_BYTES_MAX: usize = 512 * 1024;

impl Contracts {
    /// Reserves the buckets of these contracts: until [`Contracts::put_records`] they take what is written through
    /// [`Guarded::for_copies`](crate::Guarded::for_copies), unchecked and as it is, and nothing else.
    ///
    /// # Errors
    /// Those of [`Contracts::can_take`].
    pub async fn hold(&self, records: &ContractRecords) -> Result<(), AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        let system = &self.shared.system;
        if self.can_take(records).await? == Arrival::Done {
            return Ok(());
        }
        // Also makes the system bucket.
        system.store_id().await?;
        let snapshot = Snapshot::take(system).await?;
        for lineage in &records.lineages {
            if can_take_one(&snapshot, lineage)? == Arrival::Done {
                continue;
            }
            let mut holds = Vec::new();
            for (bucket, owner) in &lineage.buckets {
                let there = system.owner(bucket).await?;
                let hold = owner.arriving();
                if there.as_ref().is_none_or(|there| there.value != hold) {
                    holds.push(system.put_owner(bucket, &hold, unchanged(there.as_ref()))?);
                }
            }
            for batch in self.batches(holds) {
                self.change_guards(&lineage.authority.lineage, batch).await?;
            }
        }
        Ok(())
    }

    /// Writes the records of another store, and puts its contracts in force here. The buckets must be complete. `is_current`
    /// is asked last, before anything comes into force: whether the records are still those of the other store.
    ///
    /// Returns the digest of the records as they are in this store then, which is the same as theirs.
    ///
    /// # Errors
    /// [`TransferError::Moved`] if they are not current, those of [`Contracts::can_take`], or what the engine could not do.
    /// It can be repeated after any of them.
    pub async fn put_records(
        &self,
        records: &ContractRecords,
        is_current: impl AsyncFnOnce() -> Result<bool, AuthorityError>,
    ) -> Result<String, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        let system = &self.shared.system;
        system.store_id().await?;
        let snapshot = Snapshot::take(system).await?;
        let mut open = Vec::new();
        for lineage in &records.lineages {
            if can_take_one(&snapshot, lineage)? == Arrival::Open {
                self.put_contracts(lineage).await?;
                open.push(lineage);
            }
        }
        for act in records.overrides.iter().filter(|act| !snapshot.acts.contains(act)) {
            crate::glass::keep(&self.shared, act).await?;
        }
        if !is_current().await? {
            return Err(TransferError::Moved.into());
        }
        for lineage in open {
            self.put_in_force_here(lineage).await?;
        }
        let theirs = self.digest_of(records).await?;
        let ours = records.digest();
        if theirs != ours {
            return Err(TransferError::Different { theirs, ours }.into());
        }
        Ok(theirs)
    }

    /// Writes the documents. Alone they have no effect.
    async fn put_contracts(&self, lineage: &LineageRecords) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let name = &lineage.authority.lineage;
        let mut puts = Vec::new();
        for (digest, document) in &lineage.contracts {
            puts.push(system.put_document(name, digest, document)?);
        }
        for batch in self.batches(puts) {
            system.commit(batch).await.map_err(|error| AuthorityError::of_commit(error, name))?;
        }
        Ok(())
    }

    /// Writes decisions, owners and authority of a lineage: in one batch, unless there are more decisions than fit.
    async fn put_in_force_here(&self, lineage: &LineageRecords) -> Result<(), AuthorityError> {
        let system = &self.shared.system;
        let name = &lineage.authority.lineage;
        let mut last = Vec::new();
        for (bucket, owner) in &lineage.buckets {
            let there = system.owner(bucket).await?;
            if there.as_ref().is_some_and(|there| there.value.state != OwnerState::Arriving) {
                let (bucket, owner) = (bucket.clone(), there.map(|there| there.value.lineage));
                let owner = owner.unwrap_or_default();
                return Err(TransferError::Taken { bucket, lineage: name.clone(), owner }.into());
            }
            last.push(system.put_owner(bucket, owner, unchanged(there.as_ref()))?);
        }
        if let Some(state) = &lineage.state {
            let key = system_key(&["state", &lineage_token(name)])?;
            let there = system.read::<Owner>(&key).await?;
            last.push(system.put(key, state, unchanged(there.as_ref())));
        }
        last.push(system.put_authority(&lineage.authority, Expectation::Absent)?);
        let there = system.decisions(name).await?;
        let mut decisions = Vec::new();
        for decision in lineage.decisions.iter().filter(|decision| !there.contains(decision)) {
            decisions.push(system.put_decision(name, decision)?);
        }
        let mut batches = VecDeque::from(self.batches(decisions));
        // What puts the contract in force comes with the last decisions.
        let mut final_batch = batches.pop_back().unwrap_or_default();
        let most = system.engine().capabilities().batch_operations_max;
        if final_batch.operations().len() + last.len() > most {
            batches.push_back(std::mem::take(&mut final_batch));
        }
        for batch in batches {
            system.commit(batch).await.map_err(|error| AuthorityError::of_commit(error, name))?;
        }
        last.into_iter().for_each(|operation| final_batch.push(operation));
        self.change_guards(name, final_batch).await
    }

    /// The digest of what this store has of the lineages and overrides in `records`.
    async fn digest_of(&self, records: &ContractRecords) -> Result<String, AuthorityError> {
        let snapshot = Snapshot::take(&self.shared.system).await?;
        let mut there = ContractRecords::default();
        for lineage in &records.lineages {
            there.lineages.extend(snapshot.lineage(&lineage_token(&lineage.authority.lineage))?);
        }
        there.overrides =
            records.overrides.iter().filter(|act| snapshot.acts.contains(act)).cloned().collect();
        Ok(there.digest())
    }

    /// Gives up a bucket that is being filled: deletes it, and then its reservation.
    pub(crate) async fn give_up(&self, bucket: &BucketName) -> Result<(), EngineError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        let deleted = self.shared.inner.delete_bucket(bucket).await;
        if !matches!(deleted, Ok(()) | Err(EngineError::BucketNotFound { .. })) {
            return deleted;
        }
        let gone = async {
            let held = self.shared.system.owner(bucket.as_str()).await?;
            let Some(held) = held.filter(|held| held.value.state == OwnerState::Arriving) else {
                return Ok(());
            };
            let delete = self.shared.system.delete_owner(bucket.as_str(), unchanged(Some(&held)))?;
            self.change_guards(&held.value.lineage, delete.into()).await
        };
        gone.await.map_err(|error| match error {
            AuthorityError::Engine(error) => error,
            other => EngineError::Bug { what: other.to_string() },
        })
    }

    /// Operations in batches that the engine takes.
    fn batches(&self, operations: Vec<Operation>) -> Vec<Batch> {
        let most = self.shared.system.engine().capabilities().batch_operations_max.max(1);
        let (mut batches, mut batch, mut bytes) = (Vec::new(), Batch::new(), 0);
        for operation in operations {
            let size = match &operation.action {
                pleach_engine::Action::Put { value, .. } => value.len(),
                _ => 0,
            };
            let is_full = batch.operations().len() >= most || bytes + size > BATCH_BYTES_MAX;
            if is_full && !batch.operations().is_empty() {
                batches.push(std::mem::take(&mut batch));
                bytes = 0;
            }
            bytes += size;
            batch.push(operation);
        }
        if !batch.operations().is_empty() {
            batches.push(batch);
        }
        batches
    }
}
