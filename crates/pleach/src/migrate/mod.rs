//! Moving buckets from one store to another, also while they are written to.
//!
//! A [`Plan`] says what a migration of one bucket will do and what the target cannot keep. A [`Migration`] does it, a little
//! with every call of [`Migration::advance`]: it copies what is there, with history and remaining time to live, and then
//! repeats every change of the source. When nobody writes to the source any more and nothing is left to be repeated,
//! [`Migration::cut_over`] compares both sides, and the target is complete.
//!
//! How far it has come is kept in the target, in the same commits as what was copied. So it can be stopped or killed at any
//! moment, and goes on where it was, without copying anything twice. Memory is bounded, whatever the size of the bucket.
//!
//! ```
//! use pleach::migrate::{Advance, MigrateOptions, Migration, Plan};
//! use pleach::{BucketName, Store};
//!
//! # pollster::block_on(async {
//! let (old, new) = (Store::in_memory(), Store::in_memory());
//! old.create_bucket("carts").await?.put("user.42", "3 apples").await?;
//!
//! let (carts, options) = (BucketName::parse("carts")?, MigrateOptions::default());
//! let plan = Plan::make(&old, &new, &carts, &carts, &options).await?;
//! assert!(plan.losses.is_empty());
//! let mut migration = Migration::begin(&old, &new, plan, &options).await?;
//! while !matches!(migration.advance().await?, Advance::Waiting { caught_up: true, .. }) {}
//! let finished = migration.cut_over().await?;
//! assert_eq!(finished.verified.keys, 1);
//! # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! A bucket that a contract owns moves with its contract: a [`ContractMove`] is planned and begun before the first bucket, and
//! finished after the last. Until then nothing but the migration writes to these buckets in the target.
//!
//! What it leaves to others: stopping those who write to the source, and pointing them to the target afterwards.

mod contracts;
mod copy;
mod error;
mod finish;
mod follow;
mod plan;
mod position;
mod projections;
mod verify;
mod window;
mod writer;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use pleach_engine::{EngineError, Key, Operation, Revision, WatchStream};
use pleach_stores::Keeper;

pub use contracts::{ContractMove, VerifiedContracts};
pub use error::MigrateError;
pub use finish::Finished;
pub use plan::{Begun, Loss, MigrateOptions, Plan};
pub use projections::{MovedProjection, move_projections};
pub use verify::Verified;

use crate::{Error, Store};
use position::{Phase, Position};
use window::BatchLimits;
use writer::Writer;

/// A feed that has delivered nothing for so long has nothing more: what its bucket's newest revision was about may be gone.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// A migration of one bucket that was begun.
pub struct Migration {
    source: Store,
    target: Store,
    plan: Plan,
    limits: BatchLimits,
    writer: Writer,
    position: Position,
    /// Keys that are to be copied next.
    keys: VecDeque<Key>,
    /// Where changes of the source come from; never locked, only so that a migration can be shared between threads.
    feed: Option<Mutex<WatchStream>>,
    /// Everything before this was looked at for markers.
    reached: Revision,
    /// Markers are looked for up to here.
    markers_until: Revision,
    /// Since when the feed has delivered nothing.
    idle_since: Option<Duration>,
}

/// How far a migration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing: `copy`, `markers` or `follow`.
    pub phase: &'static str,
    /// Records written to the target, by this process and those before it.
    pub records: u64,
    /// What their keys, values and headers take.
    pub bytes: u64,
}

/// What a step of a migration came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Something was done, and there may be more.
    Worked,
    /// There is nothing to be done now.
    Waiting {
        /// How many revisions the source is ahead.
        lag: u64,
        /// Everything of the source is in the target: [`Migration::cut_over`] may follow.
        caught_up: bool,
    },
}

impl Migration {
    /// Begins a migration as planned, or goes on with it.
    ///
    /// # Errors
    /// [`MigrateError::Loss`] if something would be lost that was not accepted, or what the target could not do.
    pub async fn begin(
        source: &Store,
        target: &Store,
        plan: Plan,
        options: &MigrateOptions,
    ) -> Result<Self, Error> {
        if !plan.losses.is_empty() && !options.accept_loss {
            let (bucket, losses) = (plan.source.name.clone(), plan.losses.clone());
            return Err(MigrateError::Loss { bucket, losses }.into());
        }
        if target.capabilities().batch_operations_max < 2 {
            return Err(EngineError::Unsupported { what: "batches, which a migration needs" }.into());
        }
        plan.check_reserved(target).await?;
        // What users and devices have stored is read and written by copies alone.
        let (source, target) = (&source.for_copies(), &target.for_copies().keeping(Keeper::Migrations));
        if plan.begun == Begun::No {
            let config = plan.working_config(target.capabilities());
            target.engine().create_bucket(&plan.target, config).await?;
        }
        if plan.begun == Begun::Yes && plan.owner.is_some() {
            // The contract may have changed the configuration since it was begun.
            let config = plan.working_config(target.capabilities());
            if target.engine().bucket(&plan.target).await?.config != config {
                target.engine().update_bucket(&plan.target, config).await?;
            }
        }
        let (writer, found) = Writer::open(target, &plan.target).await?;
        // Read after the bucket was made: what is written from now on comes by the feed.
        let base = source.engine().bucket(&plan.source.name).await?.last_revision;
        let mut position = found.unwrap_or_else(|| Position::new(base));
        if plan.begun == Begun::Done {
            position.phase = Phase::Follow;
        }
        Ok(Self {
            source: source.clone(),
            target: target.clone(),
            limits: BatchLimits::usual(target.capabilities()),
            writer,
            position,
            keys: VecDeque::new(),
            feed: None,
            reached: Revision::ZERO,
            markers_until: Revision::ZERO,
            idle_since: None,
            plan,
        })
    }

    /// What was planned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let Position { phase, records, bytes, .. } = self.position;
        Progress { phase: phase.as_str(), records, bytes }
    }

    /// Does some more. When there is nothing to do, it does not wait: the caller sleeps a moment and calls again.
    ///
    /// # Errors
    /// [`MigrateError::Behind`] if the source no longer keeps changes that are needed, [`MigrateError::ValueTooLarge`],
    /// [`MigrateError::Expiring`], or what an engine could not do. The migration can be begun again after any of them.
    pub async fn advance(&mut self) -> Result<Advance, Error> {
        if self.plan.begun == Begun::Done {
            return Ok(Advance::Waiting { lag: 0, caught_up: true });
        }
        let worked = match self.position.phase {
            Phase::Copy => {
                self.copy_some().await?;
                true
            }
            Phase::Markers => self.copy_markers().await?,
            Phase::Follow => self.follow_some().await?,
        };
        if worked {
            return Ok(Advance::Worked);
        }
        let lag = self.lag().await?;
        let caught_up = self.position.phase == Phase::Follow && (lag == 0 || self.is_idle());
        Ok(Advance::Waiting { lag, caught_up })
    }

    /// How many revisions the source is ahead.
    async fn lag(&self) -> Result<u64, Error> {
        let newest = self.source.engine().bucket(&self.plan.source.name).await?.last_revision;
        Ok(newest.next().get().saturating_sub(self.position.next.get()))
    }

    /// Writes operations with the position as it is then.
    async fn commit(&mut self, operations: Vec<Operation>) -> Result<(), Error> {
        self.position.records += operations.len() as u64;
        self.position.bytes +=
            operations.iter().map(|operation| window::bytes(operation) as u64).sum::<u64>();
        self.writer.commit(operations, &self.position).await
    }

    fn note_idle(&mut self, worked: bool) {
        let now = self.source.clock().elapsed();
        self.idle_since = if worked { None } else { self.idle_since.or(Some(now)) };
    }

    fn is_idle(&self) -> bool {
        let now = self.source.clock().elapsed();
        self.idle_since.is_some_and(|since| now.saturating_sub(since) >= IDLE_MAX)
    }
}

impl fmt::Debug for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("plan", &self.plan)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
