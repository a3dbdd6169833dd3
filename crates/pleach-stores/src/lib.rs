//! Stores with meaning, on any engine.
//!
//! An engine keeps bytes. Here a contract decides which: what buckets there are, which keys and values they take,
//! what a new version of the contract would do to those that are stored, and in which steps it comes into force.
//!
//! Start with [`Guarded`], an engine that refuses what breaks a contract, and with [`Contracts`], which has a runnable
//! example: `plan` says what a contract would do, `apply` does it. [`Service`] then reads and writes what is in force, with
//! types.
//!
//! This crate speaks to an `Engine` and never knows which; doors and the library stand above it.

mod apply;
mod bind;
mod binding;
mod claims;
mod compiled;
mod contracts;
mod depths;
mod envelope;
mod error;
mod fence;
mod fenced;
mod glass;
mod guard;
mod guarded;
mod guards;
mod kv;
mod naming;
mod place;
mod plan;
mod planner;
mod reconcile;
mod record;
mod service;
pub mod state;
mod state_guard;
mod stored_state;
mod subject;
mod survey;
mod system;

pub use apply::ApplyOptions;
pub use binding::{Binding, Unstamped};
pub use compiled::{CompiledKeyspace, CompiledResource, Misfit};
pub use contracts::{Applied, Contracts, LineageStatus, PlanSummary};
pub use envelope::Envelope;
pub use error::AuthorityError;
pub use glass::GLASS_KEYS_MAX;
pub use guarded::Guarded;
pub use guards::GUARD_AGE_MAX;
pub use kv::{
    BoxError, InvalidKey, InvalidRetainCursor, KeyOf, Keyspace, KvBatch, KvError, KvEvent, KvStore, KvWatch,
    KvWatchOptions, KvWriteError, Mark, Old, QueryOptions, QueryPage, RETAIN_DROPPED_MAX, Read, RetainCursor,
    Retained, Retaining, SCAN_LIMIT_DEFAULT, Typed, UPGRADE_TRIES_MAX,
};
pub use naming::SYSTEM_BUCKET;
pub use place::OWNER_METADATA;
pub use plan::{
    Answer, Base, PLAN_FORMAT, PLAN_LIFETIME, Plan, PlanFinding, PlanStatus, SAMPLES_MAX, Sample, Scanned,
    Shortfall, Step,
};
pub use planner::PlanOptions;
pub use reconcile::GRACE;
pub use record::{Authority, Claim, Damage, Decision, GlassAct, Materialised, Owner, OwnerState};
pub use service::{BindOptions, Service};
pub use survey::{OnProgress, ScanProgress};

// What the signatures above are made of, so that the code that is made of a contract needs no other crate.
pub use pleach_contract::key;
pub use pleach_engine::{Key, Revision};
