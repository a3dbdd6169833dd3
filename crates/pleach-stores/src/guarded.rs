use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU8;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use pleach_contract::{Contract, Digest, Problems, Validators};
use pleach_engine::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, CommitError, Committed,
    ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError, Entry, Key, Page, Revision, ScanQuery,
    Selection, WatchQuery, WatchStream,
};
use tokio::sync::{Mutex, oneshot};

use crate::compiled::CompiledResource;
use crate::error::AuthorityError;
use crate::glass::Glass;
use crate::guard::{Claimed, Guard, Rule};
use crate::naming::is_reserved;
use crate::record::{Claim, Owner, OwnerState};
use crate::system::{System, contract_of, parsed};

/// On engines that others write to as well, what is known about guards is looked up again before a write when it is
/// older than this.
pub const GUARD_AGE_MAX: Duration = Duration::from_secs(1);

/// An engine that refuses what breaks a contract.
///
/// It stands around any engine. Buckets that no contract owns are as they were; one that a contract owns takes only
/// writes that keep it, whoever makes them, and is not reconfigured or deleted but by the contract's authority. Reads
/// are free. The system bucket is written by the authority alone.
///
/// [`Guarded::break_glass`] gives one that lets everything pass and records it.
#[derive(Clone)]
pub struct Guarded {
    shared: Arc<Shared>,
    glass: Option<Arc<Glass>>,
}

/// What all handles on one guarded engine share.
pub(crate) struct Shared {
    pub(crate) system: System,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) validators: Validators,
    /// One act of the authority at a time, as far as this process is concerned.
    pub(crate) acts: Mutex<()>,
    inner: Arc<dyn Engine>,
    /// None until someone writes.
    slot: RwLock<Option<Slot>>,
    loading: Mutex<()>,
}

/// The guards there are, and a word when nobody uses them any more.
struct Slot {
    guards: Arc<Guards>,
    unused: oneshot::Receiver<()>,
}

/// The guards as they were at one time. Whoever writes holds on to them until the write is done: so one who changes
/// them can wait for all writes that were judged by the old ones.
pub(crate) struct Guards {
    by_bucket: HashMap<BucketName, Arc<Guard>>,
    /// The newest record of the system bucket that is in them.
    revision: Option<Revision>,
    /// When they were last known to be current, by the clock's elapsed time in milliseconds.
    seen: AtomicU64,
    /// Dropped with the last user.
    _used: oneshot::Sender<()>,
}

impl Guarded {
    /// Guards an engine.
    pub fn new(inner: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared {
            system: System::new(Arc::clone(&inner)),
            clock,
            validators: Validators::default(),
            acts: Mutex::new(()),
            inner,
            slot: RwLock::new(None),
            loading: Mutex::new(()),
        };
        Self { shared: Arc::new(shared), glass: None }
    }

    /// The same engine, past the guards: everything but writes to the system bucket is done, and whatever is done to a
    /// bucket that a contract owns is recorded first, with who and why.
    ///
    /// # Errors
    /// [`AuthorityError::Missing`] if it is not said who or why.
    pub fn break_glass(&self, who: &str, why: &str) -> Result<Self, AuthorityError> {
        let glass = Some(Arc::new(Glass::new(who, why)?));
        Ok(Self { shared: Arc::clone(&self.shared), glass })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Commits a batch that was `checked` by the contract of some digest, and stamped: if that is the one in force, it is
    /// not checked again.
    pub(crate) async fn commit_checked(
        &self,
        bucket: &BucketName,
        batch: Batch,
        checked: Option<&Digest>,
    ) -> Result<Committed, CommitError> {
        // Held until the commit is done: see `Guards`.
        let guards = self.shared.guards().await?;
        if guards.by_bucket.is_empty() && bucket != self.shared.system.bucket() {
            return self.shared.inner.commit(bucket, batch).await;
        }
        Box::pin(self.commit_guarded(&guards, bucket, batch, checked)).await
    }

    async fn commit_guarded(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        batch: Batch,
        checked: Option<&Digest>,
    ) -> Result<Committed, CommitError> {
        let keys: Vec<&Key> = match &self.glass {
            Some(_) => batch.operations().iter().map(|operation| &operation.key).collect(),
            None => Vec::new(),
        };
        let batch = match self.permit(guards, bucket, "written to", &keys).await? {
            None => batch,
            Some(Permit::Guarded(guard)) => guard.check(batch, self.shared.clock.now(), checked)?,
            Some(Permit::Broken(guard)) => guard.stamp(batch),
        };
        self.shared.inner.commit(bucket, batch).await
    }

    /// What may be done to `bucket`; none if it is nobody's. A glass that is broken is recorded here.
    async fn permit(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        action: &'static str,
        keys: &[&Key],
    ) -> Result<Option<Permit>, EngineError> {
        if bucket == self.shared.system.bucket() {
            let owner = "the store itself".to_owned();
            return Err(EngineError::ContractOwned { bucket: bucket.clone(), owner, action });
        }
        let Some(guard) = guards.by_bucket.get(bucket).filter(|guard| guard.stands(self.shared.clock.now()))
        else {
            return Ok(None);
        };
        let Some(glass) = &self.glass else { return Ok(Some(Permit::Guarded(Arc::clone(guard)))) };
        glass.record(&self.shared, bucket, action, keys).await?;
        Ok(Some(Permit::Broken(Arc::clone(guard))))
    }

    /// Refuses `action` on what the store itself keeps, unless the glass is broken.
    fn keep(&self, bucket: &BucketName, action: &'static str) -> Result<(), EngineError> {
        if self.glass.is_some() || !is_reserved(bucket) {
            return Ok(());
        }
        let owner = "the store itself".to_owned();
        Err(EngineError::ContractOwned { bucket: bucket.clone(), owner, action })
    }

    /// Refuses `action` if the bucket is owned, unless the glass is broken.
    async fn manage(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        action: &'static str,
    ) -> Result<(), EngineError> {
        match self.permit(guards, bucket, action, &[]).await? {
            Some(Permit::Guarded(guard)) => Err(guard.refuse(action)),
            Some(Permit::Broken(_)) | None => Ok(()),
        }
    }
}

/// What stands before a bucket that is owned.
enum Permit {
    Guarded(Arc<Guard>),
    Broken(Arc<Guard>),
}

impl Shared {
    /// The guards that hold now.
    async fn guards(&self) -> Result<Arc<Guards>, EngineError> {
        match self.current() {
            Some(guards) => Ok(guards),
            // Boxed, since every write would be moved about with room for it.
            None => Box::pin(self.renewed()).await,
        }
    }

    /// The guards, looked at again.
    async fn renewed(&self) -> Result<Arc<Guards>, EngineError> {
        let _one_at_a_time = self.loading.lock().await;
        if let Some(guards) = self.current() {
            return Ok(guards);
        }
        let revision = self.system.revision().await?;
        if let Some(guards) = self.known().filter(|guards| guards.revision == revision) {
            guards.seen.store(self.milliseconds(), Ordering::Relaxed);
            return Ok(guards);
        }
        self.load(Vec::new()).await
    }

    /// Reads all guards anew, and returns when no write that was judged by the old ones is under way.
    pub(crate) async fn reload(&self) -> Result<(), EngineError> {
        self.reload_with(Vec::new()).await
    }

    /// The same, as if `owners` were recorded already.
    pub(crate) async fn reload_with(
        &self,
        owners: Vec<(BucketName, Owner, Contract)>,
    ) -> Result<(), EngineError> {
        let _one_at_a_time = self.loading.lock().await;
        let old = self.slot.write().unwrap_or_else(PoisonError::into_inner).take();
        // Whoever writes meanwhile waits for `loading` and then takes the new ones.
        let loaded = self.load(owners).await;
        if let Some(Slot { guards, unused }) = old {
            drop(guards);
            // The only way it ends is that the sender is gone, with the last who used the old guards.
            let _ = unused.await;
        }
        loaded.map(drop)
    }

    async fn load(&self, ahead: Vec<(BucketName, Owner, Contract)>) -> Result<Arc<Guards>, EngineError> {
        let revision = self.system.revision().await?;
        let mut by_bucket = HashMap::new();
        if revision.is_some() {
            for entry in self.system.entries("bucket.").await? {
                let name = entry.key.as_str().strip_prefix("bucket.").unwrap_or_default();
                if let Ok(bucket) = BucketName::parse(name) {
                    let guard = self.guard_of(&bucket, &entry).await?;
                    by_bucket.insert(bucket, Arc::new(guard));
                }
            }
        }
        for (bucket, owner, claimed) in ahead {
            let rule = self.rule_of(&owner, Some(claimed)).await?;
            by_bucket.insert(bucket.clone(), Arc::new(Guard::new(bucket, owner.lineage, rule)));
        }
        let (used, unused) = oneshot::channel();
        let seen = AtomicU64::new(self.milliseconds());
        let guards = Arc::new(Guards { by_bucket, revision, seen, _used: used });
        let slot = Slot { guards: Arc::clone(&guards), unused };
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = Some(slot);
        Ok(guards)
    }

    async fn guard_of(&self, bucket: &BucketName, entry: &Entry) -> Result<Guard, EngineError> {
        let owner = parsed::<Owner>(entry).map(|kept| kept.value);
        let lineage = owner.as_ref().map_or_else(|_| "a contract".to_owned(), |owner| owner.lineage.clone());
        let rule = match owner {
            Ok(owner) => self.rule_of(&owner, None).await?,
            Err(error) => damaged(error)?,
        };
        Ok(Guard::new(bucket.clone(), lineage, rule))
    }

    async fn rule_of(&self, owner: &Owner, claimed: Option<Contract>) -> Result<Rule, EngineError> {
        if matches!(owner.state, OwnerState::SetAside { .. } | OwnerState::Going) {
            return Ok(Rule::SetAside);
        }
        let checked = async {
            let in_force = match &owner.digest {
                Some(digest) => {
                    self.compiled(&self.system.contract(&owner.lineage, digest).await?, &owner.alias)?
                }
                None => None,
            };
            let claim = match owner.claim.as_ref().filter(|claim| claim.holds(self.clock.now())) {
                Some(claim) => self.claimed(owner, claim, claimed).await?,
                None => None,
            };
            Ok(Rule::Checked { in_force, claim, unstamped: owner.unstamped_version.clone() })
        };
        checked.await.or_else(damaged)
    }

    /// What a claim asks for. One whose plan is gone asks for nothing, unless it was accepted.
    async fn claimed(
        &self,
        owner: &Owner,
        claim: &Claim,
        contract: Option<Contract>,
    ) -> Result<Option<Claimed>, AuthorityError> {
        let contract = match contract {
            Some(contract) => contract,
            None => match self.planned(&owner.lineage, &claim.plan).await {
                Err(AuthorityError::UnknownPlan { .. }) if !claim.is_accepted() => return Ok(None),
                other => other?,
            },
        };
        Ok(Some(Claimed { resource: self.compiled(&contract, &owner.alias)?, until: claim.until }))
    }

    /// The contract that a plan leads to.
    async fn planned(&self, lineage: &str, plan: &str) -> Result<Contract, AuthorityError> {
        let unknown = || AuthorityError::UnknownPlan { plan: plan.to_owned(), lineage: lineage.to_owned() };
        let record = self.system.plan(lineage, plan).await?.ok_or_else(unknown)?;
        let plan = record.value.plan;
        contract_of(&plan.contract, &plan.target).map_err(|_| AuthorityError::EditedPlan { plan: plan.id })
    }

    pub(crate) fn compiled(
        &self,
        contract: &Contract,
        alias: &str,
    ) -> Result<Option<Arc<CompiledResource>>, AuthorityError> {
        let compiled = CompiledResource::of(contract, alias, &self.validators);
        Ok(compiled.map_err(no_problems)?.map(Arc::new))
    }

    pub(crate) fn compiled_state(
        &self,
        contract: &Contract,
        store: &str,
    ) -> Result<Option<Arc<CompiledResource>>, AuthorityError> {
        let compiled = CompiledResource::of_state(contract, store, &self.validators);
        Ok(compiled.map_err(no_problems)?.map(Arc::new))
    }

    fn known(&self) -> Option<Arc<Guards>> {
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|slot| Arc::clone(&slot.guards))
    }

    /// The guards, unless someone else may have changed them.
    fn current(&self) -> Option<Arc<Guards>> {
        let guards = self.known()?;
        let is_young = || {
            let age = self.milliseconds().saturating_sub(guards.seen.load(Ordering::Relaxed));
            u128::from(age) < GUARD_AGE_MAX.as_millis()
        };
        (self.inner.capabilities().sole_writer || is_young()).then_some(guards)
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A rule for a bucket about which nothing certain is known; what the engine could not do stays an error.
fn damaged(error: AuthorityError) -> Result<Rule, EngineError> {
    match error {
        AuthorityError::Engine(error) => Err(error),
        AuthorityError::Damaged { key, revision, what } => Ok(Rule::Damaged { key, revision, what }),
        other => {
            let key = Key::parse("plan").expect("it keeps the rules of keys");
            Ok(Rule::Damaged { key, revision: Revision::ZERO, what: other.to_string() })
        }
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("engine", &self.shared.inner).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("engine", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Engine for Guarded {
    fn capabilities(&self) -> &Capabilities {
        self.shared.inner.capabilities()
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        let guards = self.shared.guards().await?;
        let inner = &self.shared.inner;
        // Whoever asks for what is there finds it; what a contract has still to make is not made by others.
        let is_there = match guards.by_bucket.contains_key(bucket) {
            true => inner.bucket(bucket).await.is_ok(),
            false => bucket == self.shared.system.bucket() && inner.bucket(bucket).await.is_ok(),
        };
        if !is_there {
            self.manage(&guards, bucket, "created").await?;
        }
        inner.create_bucket(bucket, config).await
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        let guards = self.shared.guards().await?;
        self.keep(bucket, "updated")?;
        self.manage(&guards, bucket, "updated").await?;
        self.shared.inner.update_bucket(bucket, config).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        let guards = self.shared.guards().await?;
        self.keep(bucket, "deleted")?;
        self.manage(&guards, bucket, "deleted").await?;
        self.shared.inner.delete_bucket(bucket).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
        self.shared.inner.bucket(bucket).await
    }

    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.shared.inner.buckets().await
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.commit_checked(bucket, batch, None).await
    }

    // Not async: the engine's own future is handed on, as nothing stands between.
    fn read<'engine, 'bucket, 'key, 'async_trait>(
        &'engine self,
        bucket: &'bucket BucketName,
        key: &'key Key,
        at: At,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Entry>, EngineError>> + Send + 'async_trait>>
    where
        'engine: 'async_trait,
        'bucket: 'async_trait,
        'key: 'async_trait,
        Self: 'async_trait,
    {
        self.shared.inner.read(bucket, key, at)
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.shared.inner.history(bucket, key).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        self.shared.inner.scan(bucket, query).await
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.shared.inner.count(bucket, selection).await
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        self.shared.inner.watch(bucket, query).await
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        if bucket == self.shared.system.bucket() {
            let guards = self.shared.guards().await?;
            self.manage(&guards, bucket, "compacted").await?;
        }
        self.shared.inner.compact_key(bucket, key, keep).await
    }

    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.inner.create_consumer(bucket, consumer, start).await
    }

    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
        self.shared.inner.consumers(bucket).await
    }

    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.inner.consumer(bucket, consumer).await
    }

    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        self.shared.inner.acknowledge(bucket, consumer, revision).await
    }

    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.inner.reset_consumer(bucket, consumer, start).await
    }

    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError> {
        self.shared.inner.delete_consumer(bucket, consumer).await
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.shared.inner.close().await
    }
}

/// A contract was checked when it was read, so this takes a bug.
fn no_problems(problems: Problems) -> EngineError {
    EngineError::Bug { what: format!("a checked contract has problems: {problems}") }
}
