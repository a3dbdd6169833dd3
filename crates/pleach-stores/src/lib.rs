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

mod alike;
mod apply;
mod asked;
mod bind;
mod binding;
mod bucket_findings;
mod claims;
mod compiled;
mod contracts;
mod data_findings;
mod depths;
mod drift;
mod envelope;
mod error;
mod evidence;
mod fence;
mod fenced;
mod glass;
mod guard;
mod guarded;
mod guards;
mod judge;
mod keeper;
mod known_contracts;
mod kv;
mod look_again;
mod naming;
mod place;
mod plan;
mod planner;
mod read_back;
mod reconcile;
mod record;
mod service;
mod shortfalls;
pub mod state;
mod state_claims;
mod state_rule;
mod stored_state;
mod survey;
mod surveyed_entry;
mod system;
mod transfer;
mod verify;

pub use apply::ApplyOptions;
pub use binding::{Binding, Unstamped};
pub use compiled::{CompiledKeyspace, CompiledResource, Misfit};
pub use contracts::{Applied, Contracts, LineageStatus, PlanSummary};
pub use envelope::Envelope;
pub use error::AuthorityError;
pub use evidence::{Answer, Expiring, KeptAnswer, SAMPLES_MAX, Sample, Scanned};
pub use glass::GLASS_KEYS_MAX;
pub use guarded::Guarded;
pub use guards::GUARD_AGE_MAX;
pub use judge::{Judge, Ruling, StoredRecord};
pub use keeper::Keeper;
pub use kv::{
    BoxError, InvalidKey, InvalidRetainCursor, KeyOf, Keyspace, KvBatch, KvError, KvEvent, KvStore, KvWatch,
    KvWatchOptions, KvWriteError, Mark, Old, QueryOptions, QueryPage, RETAIN_DROPPED_MAX, Read, RetainCursor,
    Retained, Retaining, SCAN_LIMIT_DEFAULT, Typed, UPGRADE_TRIES_MAX,
};
pub use naming::{SYSTEM_BUCKET, is_reserved as is_reserved_bucket};
pub use place::OWNER_METADATA;
pub use plan::{Base, Drift, PLAN_FORMAT, PLAN_LIFETIME, Plan, PlanFinding, PlanStatus, Shortfall, Step};
pub use planner::PlanOptions;
pub use reconcile::GRACE;
pub use record::{Authority, Claim, Damage, Decision, GlassAct, Materialised, Owner, OwnerState};
pub use service::{BindOptions, Service};
pub use survey::{OnProgress, ScanProgress};
pub use transfer::{Arrival, ContractRecords, Extent, LineageRecords, TransferError, TransferLine};
pub use verify::{BREACH_SAMPLES_MAX, Breach, Verification, Verified};

// What the signatures above are made of, so that the code that is made of a contract needs no other crate.
pub use pleach_contract::key;
pub use pleach_engine::{Key, Revision};
