use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_contract::evolution::Verdict;
use pleach_contract::{Contract, ContractId};
use pleach_engine::{BucketName, Timestamp};

use crate::apply::ApplyOptions;
use crate::binding::Binding;
use crate::error::AuthorityError;
use crate::guarded::Guarded;
use crate::guards::Shared;
use crate::plan::{Plan, PlanRecord, PlanStatus};
use crate::planner::PlanOptions;
use crate::record::{Authority, Damage, Decision, GlassAct, Materialised, Owner};
use crate::system::{Kept, parsed};
use crate::verify::Verified;

/// How often a plan with its guard on is made again, because someone wrote what stands against it meanwhile.
const GUARDED_PLANS_MAX: usize = 3;

/// The contracts of a store: what it shall be, what a new one would do to it, and the way from one to the other.
///
/// A contract comes into force in two acts. [`Contracts::plan`] compares it with those accepted before, asks the stored
/// data what the declarations alone cannot tell, and changes nothing. [`Contracts::apply`] does exactly what was
/// planned, or nothing: it refuses a plan whose base has moved, and a dangerous one without a written
/// acknowledgement. Then it makes, configures and sets aside buckets, and goes on where it was after a crash.
///
/// ```
/// use std::sync::Arc;
/// use pleach_contract::{Contract, Notation, evolution::Verdict};
/// use pleach_engine::{Batch, BucketName, Engine, Key, MemoryEngine, SystemClock};
/// use pleach_stores::{ApplyOptions, Contracts, Guarded, PlanOptions};
///
/// # pollster::block_on(async {
/// let contract = |schema: &str| {
///     let text = format!(r#"{{"format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app",
///         "displayName": "Notes", "description": "Notes", "schemas": {{"Note": {schema}}},
///         "resources": {{"kv": {{"notes": {{"purpose": "All notes", "schema": {{"schema": "Note"}}}}}}}}}}"#);
///     Contract::parse(text.as_bytes(), Notation::Json).expect("it has no problems").contract
/// };
/// let engine = Guarded::new(Arc::new(MemoryEngine::new()), Arc::new(SystemClock::new()));
/// let contracts = Contracts::of(&engine);
///
/// // The first contract makes its buckets.
/// let plan = contracts.plan(&contract(r#"{"type": "object"}"#), PlanOptions::default()).await?;
/// assert_eq!(plan.verdict(), Verdict::Safe);
/// let applied = contracts.apply(&plan, ApplyOptions::by("ann")).await?;
///
/// // From then on they take what it allows, whoever writes.
/// let notes = BucketName::parse(&applied.bindings["notes"].bucket)?;
/// let note = |text: &'static str| Batch::new().put(Key::parse("first").expect("a key"), text);
/// engine.commit(&notes, note(r#"{"text": "hello"}"#)).await?;
/// assert!(engine.commit(&notes, note("no object")).await.is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Contracts {
    pub(crate) shared: Arc<Shared>,
}

/// A contract that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The lineage.
    pub lineage: String,
    /// The version of the lineage.
    pub version: u64,
    /// The digest of the contract.
    pub digest: String,
    /// The bucket of every alias.
    pub bindings: BTreeMap<String, Binding>,
    /// Whether it was in force already, so that nothing was left to do.
    pub was_in_force: bool,
}

/// How a lineage is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineageStatus {
    /// What it shall be, and whether it is.
    pub authority: Authority,
    /// The digest of the contract in force; none before the first. While an apply is unfinished, it is not the
    /// accepted one.
    pub in_force: Option<String>,
    /// What the last [verification](Contracts::verify) found; none if there was none.
    pub verified: Option<Verified>,
    /// How often the guards of its buckets were passed since: what was written then may break the contract.
    pub overrides_since: u64,
    /// Its buckets, those that were set aside included.
    pub buckets: BTreeMap<String, Owner>,
    /// Its plans that can be applied, the newest last.
    pub plans: Vec<PlanSummary>,
    /// Whether an apply was interrupted, or is under way: [`Contracts::resume`] goes on with it.
    pub is_unfinished: bool,
}

/// A plan in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSummary {
    /// Its id.
    pub id: String,
    /// The contract that it leads to.
    pub target: String,
    /// Its most serious verdict.
    pub verdict: Verdict,
    /// When it was made.
    pub made: Timestamp,
    /// Until when it can be applied.
    pub expires: Timestamp,
}

impl Contracts {
    /// The contracts of the store behind a guarded engine.
    pub fn of(engine: &Guarded) -> Self {
        Self { shared: Arc::clone(engine.shared()) }
    }

    /// Says what a contract would do to the store. Writers notice nothing of it, unless its guard is asked for.
    ///
    /// A plan that is pending and says the same is returned as it is, else the new one is kept.
    ///
    /// # Errors
    /// If a bucket is someone else's or in the way, a record is damaged, it was cancelled, or what the engine could not do.
    pub async fn plan(&self, contract: &Contract, options: PlanOptions) -> Result<Plan, AuthorityError> {
        let plan = self.make_plan(contract, &options).await?;
        if !options.guard || plan.is_nothing() {
            return Ok(plan);
        }
        let _one_at_a_time = self.shared.acts.lock().await;
        let mut plan = plan;
        for _ in 1..GUARDED_PLANS_MAX {
            match self.guard_ahead(&plan, contract).await {
                Err(AuthorityError::Violators { .. }) => plan = self.make_plan(contract, &options).await?,
                other => return other.map(|()| plan),
            }
        }
        self.guard_ahead(&plan, contract).await.map(|()| plan)
    }

    /// Does what was planned: accepts the contract, makes its buckets what it asks for, and puts it in force.
    /// Applied again, it goes on where it was interrupted; once the contract is in force, it says so and does nothing.
    ///
    /// # Errors
    /// If the plan is another store's, edited, over or dangerous and not acknowledged, its base has moved, or values that
    /// stand against it were written since: then nothing has changed. [`AuthorityError::Unfinished`] if a step failed
    /// after it was accepted: apply or [`Contracts::resume`] goes on with it.
    pub async fn apply(&self, plan: &Plan, options: ApplyOptions) -> Result<Applied, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.apply_plan(plan, &options).await
    }

    /// Goes on with what was interrupted: an accepted plan is brought to its end, and guards of one that was not are
    /// taken off. Returns what is in force then; none before the first contract.
    ///
    /// # Errors
    /// [`AuthorityError::Unfinished`] if a step fails again, or what the engine could not do.
    pub async fn resume(&self, lineage: &ContractId) -> Result<Option<Applied>, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.finish(lineage.as_str(), None).await?;
        self.release_leftovers(lineage.as_str()).await?;
        let authority = self.shared.system.authority(lineage.as_str()).await?;
        Ok(authority.map(|kept| applied(kept.value)))
    }

    /// A plan that this store has made.
    ///
    /// # Errors
    /// [`AuthorityError::UnknownPlan`], or what the engine could not do.
    pub async fn planned(
        &self,
        lineage: &ContractId,
        plan: &str,
    ) -> Result<(Plan, PlanStatus), AuthorityError> {
        let unknown = || AuthorityError::UnknownPlan { plan: plan.to_owned(), lineage: lineage.to_string() };
        let kept = self.shared.system.plan(lineage.as_str(), plan).await?.ok_or_else(unknown)?;
        let status = kept.value.status(self.shared.clock.now());
        Ok((kept.value.plan, status))
    }

    /// The plans of all lineages that can be applied, those that were interrupted included, whose ids begin like this.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn pending(&self, beginning: &str) -> Result<Vec<Plan>, AuthorityError> {
        let now = self.shared.clock.now();
        let authorities = self.shared.system.authorities().await?;
        let unfinished: Vec<&str> =
            authorities.iter().filter_map(|authority| Some(authority.status.unfinished()?.0)).collect();
        let mut found = Vec::new();
        for entry in self.shared.system.entries("plan.").await? {
            // The id is the last token of the key, so others need not be read.
            if entry.key.as_str().rsplit('.').next().is_some_and(|id| id.starts_with(beginning)) {
                // One that is damaged cannot be applied: `damages` tells of it.
                let Ok(Kept { value: record, .. }) = parsed::<PlanRecord>(&entry) else { continue };
                if record.status(now) == PlanStatus::Pending || unfinished.contains(&record.plan.id.as_str())
                {
                    found.push(record.plan);
                }
            }
        }
        Ok(found)
    }

    /// The plans whose contracts are in force now and whose ids begin like this: to apply one again does nothing.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn applied_plans(&self, beginning: &str) -> Result<Vec<Plan>, AuthorityError> {
        let system = &self.shared.system;
        let mut found = Vec::new();
        for authority in system.authorities().await? {
            let decisions = match authority.status {
                Materialised::Current => system.decisions(&authority.lineage).await?,
                Materialised::Pending { .. } | Materialised::Failed { .. } => continue,
            };
            let last = decisions.last().filter(|decision| decision.plan.starts_with(beginning));
            if let Some(decision) = last
                && let Some(kept) = system.plan(&authority.lineage, &decision.plan).await?
            {
                found.push(kept.value.plan);
            }
        }
        Ok(found)
    }

    /// Rejects a pending plan, and takes its guard off.
    ///
    /// # Errors
    /// [`AuthorityError::PlanOver`] if it is not pending, [`AuthorityError::UnknownPlan`], or what the engine could not do.
    pub async fn reject(&self, lineage: &ContractId, plan: &str) -> Result<(), AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.reject_plan(lineage.as_str(), plan).await
    }

    /// How a lineage is doing; none if nothing of it was accepted.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn status(&self, lineage: &ContractId) -> Result<Option<LineageStatus>, AuthorityError> {
        match self.shared.system.authority(lineage.as_str()).await? {
            Some(kept) => self.status_of(kept.value).await.map(Some),
            None => Ok(None),
        }
    }

    /// How every lineage is doing, by name, of those whose records can be read. What cannot be is told by
    /// [`Contracts::damages`].
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn lineages(&self) -> Result<Vec<LineageStatus>, AuthorityError> {
        let mut all = Vec::new();
        for authority in self.shared.system.authorities().await? {
            all.push(self.status_of(authority).await?);
        }
        Ok(all)
    }

    /// The records of this store about contracts that cannot be read. Whatever has nothing to do with one goes on; the rest
    /// is refused with [`AuthorityError::Damaged`], and nothing is written in its place.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn damages(&self) -> Result<Vec<Damage>, AuthorityError> {
        self.shared.system.damages().await
    }

    /// What was accepted, by whom and why, the oldest first.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn history(&self, lineage: &ContractId) -> Result<Vec<Decision>, AuthorityError> {
        self.shared.system.decisions(lineage.as_str()).await
    }

    /// The contract that was accepted last; none before the first.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn desired(&self, lineage: &ContractId) -> Result<Option<Contract>, AuthorityError> {
        match self.shared.system.authority(lineage.as_str()).await? {
            Some(kept) => self.contract(lineage, &kept.value.digest).await.map(Some),
            None => Ok(None),
        }
    }

    /// A contract that was accepted at some time.
    ///
    /// # Errors
    /// A record that is damaged or missing, or what the engine could not do.
    pub async fn contract(&self, lineage: &ContractId, digest: &str) -> Result<Contract, AuthorityError> {
        self.shared.system.contract(lineage.as_str(), digest).await
    }

    /// Who owns a bucket; none if nobody does.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn owner(&self, bucket: &BucketName) -> Result<Option<Owner>, AuthorityError> {
        Ok(self.shared.system.owner(bucket.as_str()).await?.map(|kept| kept.value))
    }

    /// What was done past the guards, the oldest first.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn broken_glass(&self) -> Result<Vec<GlassAct>, AuthorityError> {
        let entries = self.shared.system.entries("glass.").await?;
        entries.iter().map(|entry| Ok(parsed(entry)?.value)).collect()
    }

    /// Takes a bucket back that was set aside when its alias was removed: it stays, and takes writes again under the
    /// contract that it had.
    ///
    /// # Errors
    /// [`AuthorityError::NotSetAside`], or what the engine could not do.
    pub async fn restore(&self, lineage: &ContractId, alias: &str) -> Result<BucketName, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.restore_bucket(lineage.as_str(), alias).await
    }

    /// Deletes the buckets that were set aside and whose time of grace is over, and gives back those that had been
    /// adopted. Returns their names.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn sweep(&self) -> Result<Vec<BucketName>, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.sweep_buckets(None).await
    }

    /// [`Contracts::sweep`] for the buckets of one lineage only.
    ///
    /// # Errors
    /// Those of [`Contracts::sweep`].
    pub async fn sweep_lineage(&self, lineage: &ContractId) -> Result<Vec<BucketName>, AuthorityError> {
        let _one_at_a_time = self.shared.acts.lock().await;
        self.sweep_buckets(Some(lineage.as_str())).await
    }

    async fn status_of(&self, authority: Authority) -> Result<LineageStatus, AuthorityError> {
        let system = &self.shared.system;
        let now = self.shared.clock.now();
        let owners = system.owners(&authority.lineage).await?;
        let buckets: BTreeMap<_, _> = owners.into_iter().map(|(bucket, kept)| (bucket, kept.value)).collect();
        let plans = system.plans(&authority.lineage).await?;
        // One that was made on another version than the last cannot be applied any more.
        let pending = plans.into_iter().filter(|kept| {
            kept.value.status(now) == PlanStatus::Pending && kept.value.plan.base.version == authority.version
        });
        let mut plans: Vec<PlanSummary> = pending.map(|kept| PlanSummary::from(&kept.value.plan)).collect();
        plans.sort_by_key(|plan| plan.made);
        let is_claimed =
            |owner: &Owner| owner.claim.as_ref().is_some_and(|claim| !claim.ahead && !claim.is_accepted());
        let is_unfinished = authority.status.unfinished().is_some() || buckets.values().any(is_claimed);
        let in_force = self.digest_in_force(&authority).await?;
        let (verified, overrides_since) = self.verified(&authority.lineage).await?;
        Ok(LineageStatus { authority, in_force, verified, overrides_since, buckets, plans, is_unfinished })
    }
}

pub(crate) fn applied(authority: Authority) -> Applied {
    let Authority { lineage, version, digest, bindings, .. } = authority;
    Applied { lineage, version, digest, bindings, was_in_force: false }
}

impl From<&Plan> for PlanSummary {
    fn from(plan: &Plan) -> Self {
        Self {
            id: plan.id.clone(),
            target: plan.target.clone(),
            verdict: plan.verdict(),
            made: plan.made,
            expires: plan.expires,
        }
    }
}
