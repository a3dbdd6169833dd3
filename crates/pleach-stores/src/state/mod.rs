//! State: what a contract keeps for each of its users and devices.
//!
//! A contract declares stores by name: one that holds a value, such as preferences, or a map of values under keys,
//! such as drafts. A [`Session`] is one authenticated principal under one contract, and reaches their entries and no
//! others; no argument of any call chooses whose they are. [`State`] opens sessions; begin there.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pleach_contract::{Contract, Notation};
//! use pleach_engine::{MemoryEngine, SystemClock};
//! use pleach_stores::{ApplyOptions, Contracts, Guarded, PlanOptions};
//! use pleach_stores::state::{Caller, Expect, GetOutcome, PutOptions, PutOutcome, State};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Draft {
//!     title: String,
//! }
//!
//! # let contract = br#"{"format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes",
//! #     "description": "Notes", "schemas": {"Draft": {"type": "object", "properties": {"title": {"type": "string"}},
//! #     "required": ["title"]}}, "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}}}"#;
//! # pollster::block_on(async {
//! let contract = Contract::parse(contract, Notation::Json).expect("it has no problems").contract;
//! let engine = Guarded::new(Arc::new(MemoryEngine::new()), Arc::new(SystemClock::new()));
//! // Whoever deploys the program has the store accept its contract.
//! let plan = Contracts::of(&engine).plan(&contract, PlanOptions::default()).await?;
//! Contracts::of(&engine).apply(&plan, ApplyOptions::by("olga")).await?;
//!
//! let state = State::open(&engine).await?;
//! let session = state.session(Caller::User("ann".into()).principal()?, &state.contract(&contract).await?);
//!
//! let inbox = session.map::<Draft>("drafts")?.prefix("inbox");
//! let create = PutOptions { expect: Expect::Absent, ..PutOptions::default() };
//! match inbox.put_with("first", &Draft { title: "Dear".into() }, create).await? {
//!     PutOutcome::Applied(entry) => assert_eq!(entry.key.as_deref(), Some("first")),
//!     other => unreachable!("nothing was there: {other:?}"),
//! }
//! match inbox.get("first").await? {
//!     GetOutcome::Found(entry) => assert_eq!(entry.value.title, "Dear"),
//!     GetOutcome::Absent | GetOutcome::MigrationRequired(_) => unreachable!("just written"),
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! A lost race is an outcome and never an error; so is an entry of an older version, which the compiler makes callers
//! handle. [`StateAdmin`] is a way of its own to look at and change what is someone else's, and leaves a record of
//! every act. `docs/state.md` has the semantics, `docs/formats/state.md` the bytes.

mod address;
mod admin;
mod contract;
mod entry;
mod error;
mod facade;
mod list;
mod older;
mod open;
mod ordered;
mod principal;
mod reply;
mod revision;
mod store;
mod typed;
mod view;
mod watch;

pub use address::StatePlace;
pub use admin::{
    Act, AdminRecord, ERASE_ENTRIES_MAX, EXPORT_ENTRIES_MAX, Erasure, ExportPage, Holding, Inspected,
    InspectedPage, RECORDS_MAX, STATE_LOG_BUCKET, StateAdmin, Target,
};
pub use contract::StateContract;
pub use entry::{
    BadCell, Cell, DeleteOutcome, GetOutcome, MigrateOutcome, Migration, PutOutcome, StateEntry, StatePage,
};
pub use error::StateError;
#[doc(hidden)]
pub use facade::FromSession;
pub use facade::{Client, StateFacade};
pub use list::{LIST_LIMIT_MAX, ListOptions};
pub use older::{NoOlder, Older};
#[doc(hidden)]
pub use older::{read_variant, unknown};
pub use open::{STATE_BUCKET, Session, State};
pub use principal::{Caller, OWNER_ID_BYTES_MAX, OwnerId, Principal};
pub use revision::StateRevision;
#[doc(hidden)]
pub use serde_json::Value as Json;
pub use store::{DeleteOptions, DynamicStore, Expect, KEY_BYTES_MAX, PutOptions, TTL_MAX, VALUE_BYTES_MAX};
pub use typed::{MapStore, ValueStore};
pub use watch::{StateEvent, StateWatch, WatchFrom};

#[cfg(test)]
mod tests;
