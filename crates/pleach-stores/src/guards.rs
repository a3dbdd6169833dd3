use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pleach_contract::{Contract, Problems, Validators};
use pleach_engine::{
    BucketName, Capabilities, Check, Clock, Engine, EngineError, Entry, ErrorKind, Key, Revision,
};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex, oneshot};

use crate::compiled::CompiledResource;
use crate::error::AuthorityError;
use crate::fence::{Fence, Lanes, Scope};
use crate::guard::{Guard, Rule, Upcoming};
use crate::record::{Claim, Owner, OwnerState};
use crate::state_rule::StateRules;
use crate::system::{OWNER_PREFIX, System, parsed};

/// On engines that others write to as well, what is known about guards is looked up again before a write when it is
/// older than this. What keeps writers of an older contract out is not this age but the fence of the bucket.
pub const GUARD_AGE_MAX: Duration = Duration::from_secs(1);

/// What all handles on one guarded engine share.
pub(crate) struct Shared {
    pub(crate) system: System,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) validators: Validators,
    /// One act of the authority at a time, as far as this process is concerned.
    pub(crate) acts: Mutex<()>,
    pub(crate) inner: Arc<dyn Engine>,
    /// Those of the engine; where commits carry a check of a fence, that takes a place in every batch.
    pub(crate) capabilities: Capabilities,
    /// None until someone writes.
    slot: RwLock<Option<Slot>>,
    /// The keys of fences that commits check right now.
    pub(crate) lanes: Lanes,
    /// Held by whoever changes the slot: guards that are no longer in it, as long as someone may still write by them.
    retired: Mutex<Vec<Unused>>,
}

/// A word when nobody uses some guards any more.
type Unused = oneshot::Receiver<()>;

/// The guards there are.
struct Slot {
    guards: Arc<Guards>,
    unused: Unused,
}

/// The guards as they were at one time. Whoever writes holds on to them until the write is done: so one who changes
/// them can wait for all writes that were judged by the old ones.
pub(crate) struct Guards {
    pub(crate) by_bucket: HashMap<BucketName, Arc<Guard>>,
    /// What the sessions of users and devices may write.
    pub(crate) state: StateRules,
    /// The newest record of the system bucket that is in them.
    revision: Option<Revision>,
    /// The fences of buckets, each read before it was seen that these guards are current.
    fences: RwLock<HashMap<(BucketName, Option<String>), Fence>>,
    /// When they were last known to be current, by the clock's elapsed time in milliseconds.
    seen: AtomicU64,
    /// Dropped with the last user.
    _used: oneshot::Sender<()>,
}

/// What a commit carries of a fence.
pub(crate) enum Fencing {
    /// The guards are no longer current.
    Stale,
    /// Nothing.
    Free,
    /// A check of one of its keys.
    Check(Check),
}

/// Guards of records that are about to be written.
#[derive(Default)]
struct Ahead<'a> {
    buckets: Vec<(BucketName, Guard)>,
    /// The record of what a lineage keeps for users and devices, with a claim of this contract.
    state: Option<(&'a Owner, &'a Contract)>,
}

impl Guards {
    /// Forgets the fences of a bucket, of which one has been raised.
    pub(crate) fn forget_fences(&self, bucket: &BucketName) {
        let mut fences = self.fences.write().unwrap_or_else(PoisonError::into_inner);
        fences.retain(|(fenced, _), _| fenced != bucket);
    }
}

impl Shared {
    pub(crate) fn new(inner: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        let mut capabilities = inner.capabilities().clone();
        if !capabilities.sole_writer {
            capabilities.batch_operations_max = capabilities.batch_operations_max.saturating_sub(1).max(1);
        }
        Self {
            capabilities,
            system: System::new(Arc::clone(&inner)),
            clock,
            validators: Validators::default(),
            acts: Mutex::new(()),
            inner,
            slot: RwLock::new(None),
            lanes: Lanes::new(),
            retired: Mutex::default(),
        }
    }

    /// The guards that hold now.
    pub(crate) async fn guards(&self) -> Result<Arc<Guards>, EngineError> {
        match self.current() {
            Some(guards) => Ok(guards),
            // Boxed, since every write would be moved about with room for it.
            None => Box::pin(self.renewed()).await,
        }
    }

    /// The guards, looked at again.
    async fn renewed(&self) -> Result<Arc<Guards>, EngineError> {
        let mut retired = self.retired.lock().await;
        if let Some(guards) = self.current() {
            return Ok(guards);
        }
        let revision = self.system.revision().await?;
        if let Some(guards) = self.known().filter(|guards| guards.revision == revision) {
            guards.seen.store(self.milliseconds(), Ordering::Relaxed);
            return Ok(guards);
        }
        self.load(Ahead::default(), &mut retired).await
    }

    /// The guards as they are now, however young those that are known.
    pub(crate) async fn looked_up(&self) -> Result<Arc<Guards>, EngineError> {
        if self.inner.capabilities().sole_writer {
            return self.guards().await;
        }
        let mut retired = self.retired.lock().await;
        let revision = self.system.revision().await?;
        if let Some(guards) = self.known().filter(|guards| guards.revision == revision) {
            guards.seen.store(self.milliseconds(), Ordering::Relaxed);
            return Ok(guards);
        }
        self.load(Ahead::default(), &mut retired).await
    }

    /// Whether commits to buckets carry a check of their fences: where others write too, once there are contracts.
    pub(crate) fn is_fenced(&self, guards: &Guards) -> bool {
        guards.revision.is_some() && !self.inner.capabilities().sole_writer
    }

    /// The check of a fence under which `guards` judge what is written; none if they are no longer current. What is in a
    /// bucket that is not there needs none.
    pub(crate) async fn fence(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        scope: Scope<'_>,
        lane: usize,
    ) -> Result<Fencing, EngineError> {
        let place = (bucket.clone(), scope.lineage().map(str::to_owned));
        let known = guards.fences.read().unwrap_or_else(PoisonError::into_inner).get(&place).copied();
        let fence = match known {
            Some(fence) => fence,
            None => {
                let Some(fence) = Fence::read(&*self.inner, bucket, scope).await? else {
                    return Ok(Fencing::Free);
                };
                // In this order: a fence that was raised after this look refuses what these guards let pass.
                if self.system.revision().await? != guards.revision {
                    return Ok(Fencing::Stale);
                }
                let mut fences = guards.fences.write().unwrap_or_else(PoisonError::into_inner);
                fences.insert(place, fence);
                fence
            }
        };
        Ok(Fencing::Check(fence.check(scope, lane)?))
    }

    /// Forgets the guards, so that whoever writes next reads them anew: after an act that changed them and did not come to
    /// its end.
    pub(crate) async fn forget(&self) {
        // Whoever is reading them right now may have read what is over by now.
        let mut retired = self.retired.lock().await;
        self.exchange(None, &mut retired);
    }

    /// Reads all guards anew, and returns when no write that was judged by the old ones is under way.
    pub(crate) async fn reload(&self) -> Result<(), EngineError> {
        self.replace(Ahead::default()).await
    }

    /// The same, as if `owners` were recorded already, each with a claim of `contract`.
    pub(crate) async fn reload_with(
        &self,
        owners: &[(BucketName, Owner)],
        state: Option<&Owner>,
        contract: &Contract,
    ) -> Result<(), AuthorityError> {
        let mut ahead = Ahead::default();
        for (bucket, owner) in owners {
            let rule = self.rule_of(owner, Some(contract)).await?;
            ahead.buckets.push((bucket.clone(), Guard::new(bucket.clone(), owner.lineage.clone(), rule)));
        }
        ahead.state = state.map(|owner| (owner, contract));
        Ok(self.replace(ahead).await?)
    }

    async fn replace(&self, ahead: Ahead<'_>) -> Result<(), EngineError> {
        let mut retired = self.retired.lock().await;
        // Whoever writes meanwhile waits for `retired` and then takes the new ones.
        self.exchange(None, &mut retired);
        let loaded = self.load(ahead, &mut retired).await;
        // Each stays in the list until it has ended: if this one is given up, the next waits for the rest.
        while let Some(unused) = retired.last_mut() {
            // The only way it ends is that the sender is gone, with the last who used the guards.
            let _ = unused.await;
            retired.pop();
        }
        loaded.map(drop)
    }

    /// Puts others in the place of the guards there are. Those are remembered for as long as someone uses them.
    fn exchange(&self, slot: Option<Slot>, retired: &mut Vec<Unused>) {
        let mut place = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, slot);
        drop(place);
        retired.extend(old.map(|Slot { unused, guards: _ }| unused));
        retired.retain_mut(|unused| unused.try_recv() == Err(TryRecvError::Empty));
    }

    async fn load(&self, ahead: Ahead<'_>, retired: &mut Vec<Unused>) -> Result<Arc<Guards>, EngineError> {
        let revision = self.system.revision().await?;
        let mut by_bucket = HashMap::new();
        if revision.is_some() {
            for entry in self.system.entries(OWNER_PREFIX).await? {
                let name = entry.key.as_str().strip_prefix(OWNER_PREFIX).unwrap_or_default();
                if let Ok(bucket) = BucketName::parse(name) {
                    let guard = self.guard_of(&bucket, &entry).await?;
                    by_bucket.insert(bucket, Arc::new(guard));
                }
            }
        }
        let Ahead { buckets, state } = ahead;
        let state = match (revision, state) {
            (None, None) => StateRules::default(),
            (_, ahead) => self.state_rules(ahead).await?,
        };
        by_bucket.extend(buckets.into_iter().map(|(bucket, guard)| (bucket, Arc::new(guard))));
        let (used, unused) = oneshot::channel();
        let seen = AtomicU64::new(self.milliseconds());
        let fences = RwLock::default();
        let guards = Arc::new(Guards { by_bucket, state, revision, fences, seen, _used: used });
        let slot = Slot { guards: Arc::clone(&guards), unused };
        self.exchange(Some(slot), retired);
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
        if owner.state == OwnerState::Arriving {
            return Ok(Rule::Arriving);
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
    ) -> Result<Option<Upcoming>, AuthorityError> {
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
        Ok(Some(Upcoming { resource, until: claim.until }))
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

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("engine", &self.inner).finish_non_exhaustive()
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

pub(crate) fn uncompiled(alias: &str, problems: Problems) -> AuthorityError {
    AuthorityError::Schemas { alias: alias.to_owned(), problems }
}
