//! The commands on contracts: those on files, and those that bring one into force in a store.

mod against;
mod apply;
mod check;
mod codegen;
mod diff;
mod digest;
pub(crate) mod explain_key;
mod fmt;
pub(crate) mod health;
mod history;
mod judged;
mod members;
mod new;
mod plan;
mod report;
mod restore;
mod schema;
pub(crate) mod source;
mod status;
mod template;
mod verify;

use clap::Subcommand;
use pleach_contract::ContractId;

use crate::app::App;
use crate::failure::Problem;

/// The commands on contracts.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "A contract says what keys and values mean, as YAML or JSON: docs/contracts.md has all of it, and docs/guide/ the way from a\n\
                  first contract to a first dangerous change.\n\n\
                  Examples:\n  pleach contract new acme.notes@v1 --kv notes -o contract.yaml\n  \
                  pleach contract check contract.yaml\n  pleach contract diff contract.yaml --against git:main\n  \
                  pleach contract plan contract.yaml --out plan.json\n  pleach contract apply plan.json\n  \
                  pleach contract status"
)]
pub(crate) enum ContractCommand {
    New(new::NewArgs),
    Check(check::CheckArgs),
    Diff(diff::DiffArgs),
    Plan(plan::PlanArgs),
    Apply(apply::ApplyArgs),
    Reject(restore::RejectArgs),
    Status(status::StatusArgs),
    Verify(verify::VerifyArgs),
    History(history::HistoryArgs),
    Restore(restore::RestoreArgs),
    Sweep(restore::SweepArgs),
    Codegen(codegen::CodegenArgs),
    Digest(digest::DigestArgs),
    Fmt(fmt::FmtArgs),
    Schema(schema::SchemaArgs),
    ExplainKey(explain_key::ExplainKeyArgs),
}

impl ContractCommand {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::New(args) => args.run(app),
            Self::Check(args) => args.run(app),
            Self::Diff(args) => args.run(app),
            Self::Plan(args) => args.run(app).await,
            Self::Apply(args) => args.run(app).await,
            Self::Reject(args) => args.run(app).await,
            Self::Status(args) => args.run(app).await,
            Self::Verify(args) => args.run(app).await,
            Self::History(args) => args.run(app).await,
            Self::Restore(args) => args.run(app).await,
            Self::Sweep(args) => args.run(app).await,
            Self::Codegen(args) => args.run(app),
            Self::Digest(args) => args.run(app),
            Self::Fmt(args) => args.run(app),
            Self::Schema(args) => args.run(app),
            Self::ExplainKey(args) => args.run(app),
        }
    }
}

/// The id of a contract, as an argument.
fn contract_id(text: &str) -> Result<ContractId, String> {
    ContractId::parse(text).ok_or_else(|| format!("{text:?} is no id of a contract, such as acme.notes@v1"))
}

fn unknown_lineage(id: &ContractId) -> Problem {
    Problem::not_found(format!("the store keeps no contract {id}"))
        .help("see what it keeps with `pleach contract status`, or begin with `pleach contract plan FILE`")
}
