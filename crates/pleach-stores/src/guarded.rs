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
    ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError, Entry, ErrorKind, Key, Page, Revision,
    ScanQuery, Selection, WatchQuery, WatchStream,
};
use tokio::sync::{Mutex, oneshot};

use crate::compiled::CompiledResource;
use crate::error::AuthorityError;
use crate::glass::Glass;
use crate::guard::{Claimed, Guard, Rule};
use crate::naming::is_reserved;
use crate::record::{Claim, Owner, OwnerState};
use crate::system::{System, parsed};

/// On engines that others write to as well, what is known about guards is looked up again before a write when it is
/// older than this.
pub const GUARD_AGE_MAX: Duration = Duration::from_secs(1);

/// What to do instead of writing to the system bucket.
const SYSTEM_INSTEAD: &str = "leave it to the commands of `pleach contract`, which write it";

/// What to do instead of writing to what users and devices have stored.
const STATE_INSTEAD: &str =
    "use `pleach state admin`, or a session of the user or device; only in an emergency break the glass";

/// An engine that refuses what breaks a contract.
///
/// It stands around any engine. Buckets that no contract owns are as they were; one that a contract owns takes only
/// writes that keep it, whoever makes them, and is not reconfigured or deleted but by the contract's authority. Reads
/// are free. The system bucket is written by the authority alone.
///
/// [`Guarded::break_glass`] gives one that lets everything pass and records it. What users and devices have stored is
/// written by their sessions, through [`Guarded::for_state`], and by whoever copies it whole from another store, through
/// [`Guarded::for_copies`].
#[derive(Clone)]
pub struct Guarded {
    shared: Arc<Shared>,
    way: Way,
}

/// The way in that a handle is.
#[derive(Clone)]
enum Way {
    /// Of everyone.
    Common,
    /// Of the sessions of users and devices.
    State,
    /// Of whoever copies buckets from another store, or imports them.
    Copies,
    /// Past the guards.
    Glass(Arc<Glass>),
}

/// What is done to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Write,
    Create,
    Update,
    Delete,
    Compact,
}

impl Deed {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "written to",
            Self::Create => "created",
            Self::Update => "updated",
            Self::Delete => "deleted",
            Self::Compact => "compacted",
        }
    }
}

impl Way {
    /// Whether it leads to what users and devices have stored.
    fn leads_to_state(&self, deed: Deed) -> bool {
        match self {
            Self::Common | Self::Glass(_) => false,
            Self::State => deed == Deed::Write,
            Self::Copies => matches!(deed, Deed::Write | Deed::Update),
        }
    }
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
        Self { shared: Arc::new(shared), way: Way::Common }
    }

    /// The same engine for the sessions of users and devices, and for nothing else: it writes to their buckets, which
    /// others do not.
    #[must_use]
    pub fn for_state(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), way: Way::State }
    }

    /// The same engine for copies of whole buckets, as a migration or an import makes them: what users and devices have
    /// stored elsewhere is written as it was there. Contracts are kept all the same, and the system bucket is the store's.
    #[must_use]
    pub fn for_copies(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), way: Way::Copies }
    }

    /// The same engine, past the guards: everything but writes to the system bucket is done, and whatever is done to a
    /// bucket that a contract owns is recorded first, with who and why.
    ///
    /// # Errors
    /// [`AuthorityError::Missing`] if it is not said who or why.
    pub fn break_glass(&self, who: &str, why: &str) -> Result<Self, AuthorityError> {
        let way = Way::Glass(Arc::new(Glass::new(who, why)?));
        Ok(Self { shared: Arc::clone(&self.shared), way })
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
        if guards.by_bucket.is_empty() && !is_reserved(bucket) {
            return self.shared.inner.commit(bucket, batch).await;
        }
        let keys: Vec<&Key> = match &self.way {
            Way::Glass(_) => batch.operations().iter().map(|operation| &operation.key).collect(),
            Way::Common | Way::State | Way::Copies => Vec::new(),
        };
        let now = self.shared.clock.now();
        let batch = match self.permit(&guards, bucket, Deed::Write, &keys).await? {
            None => batch,
            Some(Permit::Guarded(guard)) => guard.check(batch, now, checked)?,
            Some(Permit::Broken(guard)) => guard.stamp(batch, now),
        };
        self.shared.inner.commit(bucket, batch).await
    }

    /// What may be done to `bucket`; none if there is nothing to be kept. A glass that is broken is recorded here.
    async fn permit(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        deed: Deed,
        keys: &[&Key],
    ) -> Result<Option<Permit>, EngineError> {
        if is_reserved(bucket) {
            return self.permit_own(bucket, deed, keys).await.map(|()| None);
        }
        let Some(guard) = guards.by_bucket.get(bucket).filter(|guard| guard.stands(self.shared.clock.now()))
        else {
            return Ok(None);
        };
        let Way::Glass(glass) = &self.way else { return Ok(Some(Permit::Guarded(Arc::clone(guard)))) };
        glass.record(&self.shared, bucket, deed.as_str(), keys).await?;
        Ok(Some(Permit::Broken(Arc::clone(guard))))
    }

    /// Refuses what is done to a bucket that the store itself keeps, unless this is the way to it. Nobody writes to the
    /// system bucket but the authority, which comes from below.
    async fn permit_own(&self, bucket: &BucketName, deed: Deed, keys: &[&Key]) -> Result<(), EngineError> {
        let is_system = bucket == self.shared.system.bucket();
        match &self.way {
            Way::Glass(glass) if !is_system => glass.record(&self.shared, bucket, deed.as_str(), keys).await,
            way if !is_system && way.leads_to_state(deed) => Ok(()),
            _ => {
                let instead = if is_system { SYSTEM_INSTEAD } else { STATE_INSTEAD };
                Err(EngineError::StoreOwned { bucket: bucket.clone(), action: deed.as_str(), instead })
            }
        }
    }

    /// Refuses a deed if the bucket is owned, unless the glass is broken.
    async fn manage(&self, guards: &Guards, bucket: &BucketName, deed: Deed) -> Result<(), EngineError> {
        match self.permit(guards, bucket, deed, &[]).await? {
            Some(Permit::Guarded(guard)) => Err(guard.refuse(deed.as_str())),
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
        if let Some(guards) = self.current() {
            return Ok(guards);
        }
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

    /// Forgets the guards, so that whoever writes next reads them anew: after an act that changed them and did not come to
    /// its end.
    pub(crate) async fn forget(&self) {
        // Whoever is reading them right now may have read what is over by now.
        let _one_at_a_time = self.loading.lock().await;
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Reads all guards anew, and returns when no write that was judged by the old ones is under way.
    pub(crate) async fn reload(&self) -> Result<(), EngineError> {
        self.replace(Vec::new()).await
    }

    /// The same, as if `owners` were recorded already, each with a claim of `contract`.
    pub(crate) async fn reload_with(
        &self,
        owners: &[(BucketName, Owner)],
        contract: &Contract,
    ) -> Result<(), AuthorityError> {
        let mut guards = Vec::with_capacity(owners.len());
        for (bucket, owner) in owners {
            let rule = self.rule_of(owner, Some(contract)).await?;
            guards.push((bucket.clone(), Guard::new(bucket.clone(), owner.lineage.clone(), rule)));
        }
        Ok(self.replace(guards).await?)
    }

    async fn replace(&self, ahead: Vec<(BucketName, Guard)>) -> Result<(), EngineError> {
        let _one_at_a_time = self.loading.lock().await;
        let old = self.slot.write().unwrap_or_else(PoisonError::into_inner).take();
        // Whoever writes meanwhile waits for `loading` and then takes the new ones.
        let loaded = self.load(ahead).await;
        if let Some(Slot { guards, unused }) = old {
            drop(guards);
            // The only way it ends is that the sender is gone, with the last who used the old guards.
            let _ = unused.await;
        }
        loaded.map(drop)
    }

    async fn load(&self, ahead: Vec<(BucketName, Guard)>) -> Result<Arc<Guards>, EngineError> {
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
        by_bucket.extend(ahead.into_iter().map(|(bucket, guard)| (bucket, Arc::new(guard))));
        let (used, unused) = oneshot::channel();
        let seen = AtomicU64::new(self.milliseconds());
        let guards = Arc::new(Guards { by_bucket, revision, seen, _used: used });
        let slot = Slot { guards: Arc::clone(&guards), unused };
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = Some(slot);
        Ok(guards)
    }

    async fn guard_of(&self, bucket: &BucketName, entry: &Entry) -> Result<Guard, EngineError> {
        let owner = parsed::<Owner>(entry);
        let lineage = owner.as_ref().map_or("a contract", |kept| &kept.value.lineage).to_owned();
        let rule = match owner {
            Ok(kept) => self.rule_of(&kept.value, None).await,
            Err(damage) => Err(damage.into()),
        };
        let rule = rule.or_else(|error| damaged(error, entry.key.clone(), entry.revision))?;
        Ok(Guard::new(bucket.clone(), lineage, rule))
    }

    /// What a bucket takes by its record, as if its newest claim were of the contract `claimed`, if there is one.
    async fn rule_of(&self, owner: &Owner, claimed: Option<&Contract>) -> Result<Rule, AuthorityError> {
        if matches!(owner.state, OwnerState::SetAside { .. } | OwnerState::Going) {
            return Ok(Rule::SetAside);
        }
        let in_force = match &owner.digest {
            Some(digest) => self.in_force(&owner.lineage, digest, &owner.alias).await?,
            None => None,
        };
        let mut claims = Vec::new();
        for claim in owner.claims(self.clock.now()) {
            let is_newest = owner.claim.as_ref().is_some_and(|newest| newest.plan == claim.plan);
            claims.extend(self.claimed(owner, &claim, claimed.filter(|_| is_newest)).await?);
        }
        Ok(Rule::Checked { in_force, claims, unstamped: owner.unstamped.clone() })
    }

    /// A resource of a contract that was accepted.
    pub(crate) async fn in_force(
        &self,
        lineage: &str,
        digest: &str,
        alias: &str,
    ) -> Result<Option<Arc<CompiledResource>>, AuthorityError> {
        let compile = |contract: &Contract| CompiledResource::of(contract, alias, &self.validators);
        Ok(self.system.compiled(lineage, digest, compile).await?.map(Arc::new))
    }

    /// What a claim asks for. One whose plan is gone asks for nothing, unless it was accepted.
    async fn claimed(
        &self,
        owner: &Owner,
        claim: &Claim,
        contract: Option<&Contract>,
    ) -> Result<Option<Claimed>, AuthorityError> {
        let resource = match contract {
            Some(contract) => self.compiled(contract, &owner.alias)?,
            None => match self.system.planned(&owner.lineage, &claim.plan).await {
                Ok(kept) => self.compiled(&kept.value, &owner.alias)?,
                Err(AuthorityError::Damaged { revision: Revision::ZERO, .. }) if !claim.is_accepted() => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Some(Claimed { resource, until: claim.until }))
    }

    pub(crate) fn compiled(
        &self,
        contract: &Contract,
        alias: &str,
    ) -> Result<Option<Arc<CompiledResource>>, AuthorityError> {
        let compiled = CompiledResource::of(contract, alias, &self.validators);
        Ok(compiled.map_err(|problems| uncompiled(alias, problems))?.map(Arc::new))
    }

    pub(crate) fn compiled_state(
        &self,
        contract: &Contract,
        store: &str,
    ) -> Result<Option<Arc<CompiledResource>>, AuthorityError> {
        let compiled = CompiledResource::of_state(contract, store, &self.validators);
        Ok(compiled.map_err(|problems| uncompiled(store, problems))?.map(Arc::new))
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

/// A rule for a bucket about which nothing certain is known, since its record or what that leads to is damaged; what the
/// engine could not do stays an error.
fn damaged(error: AuthorityError, key: Key, revision: Revision) -> Result<Rule, EngineError> {
    match error {
        AuthorityError::Damaged { key, revision, what } => Ok(Rule::Damaged { key, revision, what }),
        // A record that says what cannot be is no bug of whoever reads it.
        AuthorityError::Engine(error) if error.kind() != ErrorKind::Bug => Err(error),
        other => Ok(Rule::Damaged { key, revision, what: other.to_string() }),
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
        // Whoever asks for what is there finds it; what a contract or the authority has still to make is not made by others.
        let is_kept = guards.by_bucket.contains_key(bucket) || bucket == self.shared.system.bucket();
        if is_kept && inner.bucket(bucket).await.is_err() {
            self.manage(&guards, bucket, Deed::Create).await?;
        }
        inner.create_bucket(bucket, config).await
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        let guards = self.shared.guards().await?;
        self.manage(&guards, bucket, Deed::Update).await?;
        self.shared.inner.update_bucket(bucket, config).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        let guards = self.shared.guards().await?;
        self.manage(&guards, bucket, Deed::Delete).await?;
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
        if is_reserved(bucket) {
            self.permit_own(bucket, Deed::Compact, &[key]).await?;
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

fn uncompiled(alias: &str, problems: Problems) -> AuthorityError {
    AuthorityError::Schemas { alias: alias.to_owned(), problems }
}
