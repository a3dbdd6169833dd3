//! The commands on contracts. None of them opens a store.

pub(crate) mod explain_key;

use clap::Subcommand;

use crate::app::App;

/// The commands on contracts.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
                  pleach contract explain-key --grammar 'order.{day:date}.{n:uint(4)}' order.20260705.0042")]
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
