//! The commands on contracts. They work on files, and need no store.

mod check;
mod digest;
pub(crate) mod explain_key;
mod fmt;
mod new;
mod report;
mod schema;
pub(crate) mod source;
mod template;

use clap::Subcommand;

use crate::app::App;

/// The commands on contracts.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "A contract says what keys and values mean, as YAML or JSON: docs/contracts.md has all of it.\n\n\
                  Examples:\n  pleach contract new acme.notes@v1 --kv notes -o contract.yaml\n  \
                  pleach contract check contract.yaml\n  pleach contract digest contract.yaml\n  \
                  pleach contract explain-key --grammar 'order.{day:date}.{n:uint(4)}' order.20260705.0042"
)]
pub(crate) enum ContractCommand {
    New(new::NewArgs),
    Check(check::CheckArgs),
    Digest(digest::DigestArgs),
    Fmt(fmt::FmtArgs),
    Schema(schema::SchemaArgs),
    ExplainKey(explain_key::ExplainKeyArgs),
}

impl ContractCommand {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::New(args) => args.run(app),
            Self::Check(args) => args.run(app),
            Self::Digest(args) => args.run(app),
            Self::Fmt(args) => args.run(app),
            Self::Schema(args) => args.run(app),
            Self::ExplainKey(args) => args.run(app),
        }
    }
}
