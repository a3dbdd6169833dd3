//! The binary, driven as people and scripts drive it.
#![allow(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod buckets;
mod causes;
mod consumers;
mod contract_apply;
mod contract_diff;
mod contract_mistakes;
mod contract_plan;
mod contract_verify;
mod contracts;
mod cut_exports;
mod destination;
mod errors;
mod export_import;
mod given;
mod golden;
mod health;
mod import_killed;
mod inspecting;
mod listing;
mod migrating;
mod moving_contracts;
mod nats;
mod output;
mod processes;
mod readme;
mod same;
mod state;
mod terminal;
mod values;
mod watching;
