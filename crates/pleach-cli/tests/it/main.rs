//! The binary, driven as people and scripts drive it.
#![allow(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod buckets;
mod consumers;
mod contract_apply;
mod contract_diff;
mod contract_mistakes;
mod contracts;
mod errors;
mod export_import;
mod given;
mod golden;
mod health;
mod import_killed;
mod inspecting;
mod listing;
mod migrating;
mod nats;
mod output;
mod processes;
mod readme;
mod same;
mod state;
mod terminal;
mod values;
mod watching;
