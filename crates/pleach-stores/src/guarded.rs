use std::fmt;
use std::future::Future;
use std::num::NonZeroU8;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use pleach_contract::Digest;
use pleach_engine::{
    Batch, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, CommitError, Committed, Engine,
    EngineError, Key, hand_on,
};

use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::glass::Glass;
use crate::guard::Guard;
use crate::guards::{Guards, Shared};
use crate::keeper::Keeper;
use crate::naming::{holds_state, is_reserved};
use crate::state::STATE_BUCKET;

/// What to do instead of writing to the system bucket.
const SYSTEM_INSTEAD: &str = "leave it to the commands of `pleach contract`, which write it";

/// What to do instead of reading or writing what users and devices have stored.
const STATE_INSTEAD: &str =
    "use `pleach state admin`, or a session of the user or device; only in an emergency `--break-glass WHY`";

/// An engine that refuses what breaks a contract.
///
/// It stands around any engine. Buckets that no contract owns are as they were; one that a contract owns takes only
/// writes that keep it, whoever makes them, and is not reconfigured or deleted but by the contract's authority. Its
/// entries can be read by anyone. The system bucket is written by the authority alone, and can be read by anyone, too.
///
/// What users and devices have stored is read and written by their sessions and by administrators, through
/// [`Guarded::for_state`], and by copies of whole buckets, through [`Guarded::for_copies`]. Sessions write only what keeps
/// the contracts in force. [`Guarded::break_glass`] gives an engine that lets everything pass and records it.
#[derive(Clone)]
pub struct Guarded {
    shared: Arc<Shared>,
    way: Way,
    keeper: Keeper,
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
            Self::State => matches!(deed, Deed::Write | Deed::Create),
            Self::Copies => deed != Deed::Delete,
        }
    }
}

impl Guarded {
    /// Guards an engine.
    pub fn new(inner: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared::new(inner, clock);
        Self { shared: Arc::new(shared), way: Way::Common, keeper: Keeper::Nobody }
    }

    /// The same engine for the sessions of users and devices, and for nothing else: it reads and writes their buckets,
    /// which others do not.
    #[must_use]
    pub fn for_state(&self) -> Self {
        Self { way: Way::State, ..self.clone() }
    }

    /// The same engine for copies of whole buckets, as a migration or an import makes them: what users and devices have
    /// stored elsewhere is written as it was there, and so is a bucket whose contract arrives with it, see
    /// [`Contracts::hold`]. Contracts that are in force are kept all the same, and the system bucket is the store's.
    /// One past the guards stays so.
    #[must_use]
    pub fn for_copies(&self) -> Self {
        let way = match &self.way {
            Way::Glass(glass) => Way::Glass(Arc::clone(glass)),
            Way::Common | Way::State | Way::Copies => Way::Copies,
        };
        Self { way, ..self.clone() }
    }

    /// The same engine, past the guards: everything but writes to the system bucket is done, and whatever is done to a
    /// bucket that a contract owns is recorded first, with who and why.
    ///
    /// # Errors
    /// [`AuthorityError::Missing`] if it is not said who or why.
    pub fn break_glass(&self, who: &str, why: &str) -> Result<Self, AuthorityError> {
        let way = Way::Glass(Arc::new(Glass::new(who, why)?));
        Ok(Self { way, ..self.clone() })
    }

    /// The same engine for a part of the store itself, which writes reserved keys of its own.
    #[must_use]
    pub fn keeping(&self, keeper: Keeper) -> Self {
        Self { keeper, ..self.clone() }
    }

    /// Refuses a handle on a bucket whose entries this engine does not show.
    ///
    /// # Errors
    /// [`EngineError::StoreOwned`] if it holds what users and devices have stored.
    pub fn may_read(&self, bucket: &BucketName) -> Result<(), EngineError> {
        if holds_state(bucket) && matches!(self.way, Way::Common) {
            let (bucket, instead) = (bucket.clone(), STATE_INSTEAD);
            return Err(EngineError::StoreOwned { bucket, action: "read", instead });
        }
        Ok(())
    }

    /// What has to be asked before entries of `bucket` are shown; none for most, so that their reads cost nothing more.
    fn before_reads<'a>(&'a self, bucket: &'a BucketName) -> Option<Permission<'a>> {
        if !holds_state(bucket) {
            return None;
        }
        Some(Box::pin(async move {
            self.may_read(bucket)?;
            match &self.way {
                Way::Glass(glass) => glass.record(&self.shared, bucket, "read", &[]).await,
                Way::Common | Way::State | Way::Copies => Ok(()),
            }
        }))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether it leads past the guards.
    pub(crate) fn is_glass(&self) -> bool {
        matches!(self.way, Way::Glass(_))
    }

    /// Commits a batch that was `checked` by the contract of some digest, and stamped: if that is the one in force, it is
    /// not checked again.
    pub(crate) async fn commit_checked(
        &self,
        bucket: &BucketName,
        batch: Batch,
        checked: Option<&Digest>,
    ) -> Result<Committed, CommitError> {
        self.keeper.check(bucket, &batch)?;
        // Held until the commit is done: see `Guards`.
        let guards = self.shared.guards().await?;
        if self.shared.is_fenced(&guards) {
            return Box::pin(self.commit_fenced(guards, bucket, batch, checked)).await;
        }
        if guards.by_bucket.is_empty() && !is_reserved(bucket) {
            return self.shared.inner.commit(bucket, batch).await;
        }
        Box::pin(async move {
            let batch = self.judged(&guards, bucket, batch, checked).await?;
            self.shared.inner.commit(bucket, batch).await
        })
        .await
    }

    /// What is committed of a batch: what the guards let pass, with what they add.
    pub(crate) async fn judged(
        &self,
        guards: &Guards,
        bucket: &BucketName,
        batch: Batch,
        checked: Option<&Digest>,
    ) -> Result<Batch, EngineError> {
        if let Some(fence) = batch.operations().iter().find(|operation| operation.key.is_fence()) {
            return Err(EngineError::Refused {
                action: format!("write {} to bucket {bucket}", fence.key),
                reason: "it is a fence, which the contracts of the store raise".to_owned(),
            });
        }
        let keys: Vec<&Key> = match &self.way {
            Way::Glass(_) => batch.operations().iter().map(|operation| &operation.key).collect(),
            Way::Common | Way::State | Way::Copies => Vec::new(),
        };
        let now = self.shared.clock.now();
        match self.permit(guards, bucket, Deed::Write, &keys).await? {
            None if bucket.as_str() == STATE_BUCKET && !self.is_glass() => {
                let is_copy = matches!(self.way, Way::Copies);
                guards.state.check(bucket, &batch, (now, is_copy), checked)?;
                Ok(batch)
            }
            None => Ok(batch),
            Some(Permit::Guarded(guard)) => guard.check(batch, now, checked),
            Some(Permit::Broken(guard)) => Ok(guard.stamp(batch, now)),
        }
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
        // What another store has is copied as it is: a copy that were checked or stamped would be none.
        if guard.is_arriving() && matches!(self.way, Way::Copies) {
            return Ok(None);
        }
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

/// Whether entries may be shown, where that has to be asked or recorded first.
type Permission<'a> = Pin<Box<dyn Future<Output = Result<(), EngineError>> + Send + 'a>>;

/// What stands before a bucket that is owned.
enum Permit {
    Guarded(Arc<Guard>),
    Broken(Arc<Guard>),
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("engine", &self.shared.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Engine for Guarded {
    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        let guards = self.shared.looked_up().await?;
        let inner = &self.shared.inner;
        // Whoever asks for what is there finds it; what a contract or the store itself has still to make is not made by
        // others.
        let is_kept = guards.by_bucket.contains_key(bucket) || is_reserved(bucket);
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
        let guards = self.shared.looked_up().await?;
        self.manage(&guards, bucket, Deed::Update).await?;
        self.shared.inner.update_bucket(bucket, config).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        let guards = self.shared.looked_up().await?;
        if guards.by_bucket.get(bucket).is_some_and(|guard| guard.is_arriving()) {
            // Whoever changes guards waits for all who hold the old ones.
            drop(guards);
            return Contracts { shared: Arc::clone(&self.shared) }.give_up(bucket).await;
        }
        self.manage(&guards, bucket, Deed::Delete).await?;
        self.shared.inner.delete_bucket(bucket).await
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.commit_checked(bucket, batch, None).await
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        if is_reserved(bucket) {
            self.permit_own(bucket, Deed::Compact, &[key]).await?;
        }
        self.shared.inner.compact_key(bucket, key, keep).await
    }

    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    hand_on!([shared.inner] after before_reads: read history scan count watch create_consumer reset_consumer);
    hand_on!([shared.inner] bucket buckets consumers consumer acknowledge delete_consumer close);
}
