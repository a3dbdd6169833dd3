//! The commands on contracts. None of them opens a store.

pub(crate) mod explain_key;

use clap::Subcommand;

use crate::app::App;

/// The commands on contracts.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
                  pleach contract explain-key --grammar 't.{tenant}.case.{case:ulid}' t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV")]
pub(crate) enum ContractCommand {
    ExplainKey(explain_key::ExplainKeyArgs),
}

impl ContractCommand {
    /// Does what was asked for.
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::ExplainKey(args) => args.run(app),
        }
    }
}
