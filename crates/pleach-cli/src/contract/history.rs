use clap::Args;
use serde_json::json;

use super::plan::short;
use crate::app::App;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};

/// Shows what was accepted, by whom and why
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach contract history acme.cases@v1\n  pleach contract history acme.cases@v1 --show 2 > contract.json"
)]
pub(crate) struct HistoryArgs {
    /// The contract's id
    #[arg(value_name = "ID", value_parser = super::contract_id)]
    id: pleach_contract::ContractId,

    /// Prints the contract that was accepted as this version, as JSON
    #[arg(long, value_name = "VERSION")]
    show: Option<u64>,
}

impl HistoryArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let contracts = app.store().await?.contracts();
        let decisions = contracts.history(&self.id).await?;
        if decisions.is_empty() {
            return Err(super::unknown_lineage(&self.id).into());
        }
        if let Some(version) = self.show {
            let Some(decision) = decisions.iter().find(|decision| decision.version == version) else {
                let problem = Problem::not_found(format!("{} has no version {version}", self.id));
                return Err(problem.help("leave out --show to see those it has").into());
            };
            let contract = contracts.contract(&self.id, &decision.digest).await?;
            return app.output.line(format_args!("{:#}", contract.to_value()));
        }
        if app.output.is_json() {
            for decision in &decisions {
                app.output.object(&json!({"v": JSON_VERSION, "id": self.id, "decision": decision}))?;
            }
            return Ok(());
        }
        let mut table = Table::new([
            Column::Right("VERSION"),
            Column::Left("TIME"),
            Column::Left("WHO"),
            Column::Left("DIGEST"),
            Column::Left("ACKNOWLEDGED"),
        ]);
        for decision in decisions {
            table.row([
                decision.version.to_string(),
                decision.time.to_string(),
                decision.who,
                short(&decision.digest).to_owned(),
                decision.acknowledgement.unwrap_or_default(),
            ]);
        }
        table.write(&mut app.output)
    }
}
