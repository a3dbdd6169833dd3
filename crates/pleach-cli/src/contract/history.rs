use clap::Args;
use pleach::Timestamp;
use pleach::stores::{Decision, GlassAct};
use pleach_contract::ContractId;
use serde_json::{Value, json};

use super::plan::short;
use crate::app::App;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};
use crate::text::counted;

/// Shows what was accepted and what was done past the guards, by whom and why
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach contract history acme.cases@v1\n  pleach contract history acme.cases@v1 --show 2 > contract.json"
)]
pub(crate) struct HistoryArgs {
    /// The contract's id
    #[arg(value_name = "ID", value_parser = super::contract_id)]
    id: ContractId,

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
        let acts = contracts.overrides(&self.id).await?;
        let mut events: Vec<Happened> = decisions.into_iter().map(Happened::Decision).collect();
        events.extend(acts.into_iter().map(Happened::Override));
        // Stable, so that decisions of one moment stay in their order.
        events.sort_by_key(Happened::time);
        if app.output.is_json() {
            return events.iter().try_for_each(|event| app.output.object(&event.to_json(&self.id)));
        }
        let mut table = Table::new([
            Column::Right("VERSION"),
            Column::Left("TIME"),
            Column::Left("WHO"),
            Column::Left("DIGEST"),
            Column::Left("WHAT AND WHY"),
        ]);
        for event in events {
            table.row(event.cells());
        }
        table.write(&mut app.output)
    }
}

/// Something in the history of a contract.
enum Happened {
    Decision(Decision),
    Override(GlassAct),
}

impl Happened {
    fn time(&self) -> Timestamp {
        match self {
            Self::Decision(decision) => decision.time,
            Self::Override(act) => act.time,
        }
    }

    fn to_json(&self, id: &ContractId) -> Value {
        match self {
            Self::Decision(decision) => json!({"v": JSON_VERSION, "id": id, "decision": decision}),
            Self::Override(act) => json!({"v": JSON_VERSION, "id": id, "override": act}),
        }
    }

    fn cells(self) -> [String; 5] {
        match self {
            Self::Decision(decision) => [
                decision.version.to_string(),
                decision.time.to_string(),
                decision.who,
                short(&decision.digest).to_owned(),
                decision.acknowledgement.map_or_else(String::new, |why| format!("acknowledged: {why}")),
            ],
            Self::Override(act) => {
                let keys = match act.count {
                    0 => String::new(),
                    count => format!(", {}", counted(count as u64, "key", "keys")),
                };
                let what = format!("break-glass: {} {}{keys}: {}", act.bucket, act.act, act.why);
                ["-".into(), act.time.to_string(), act.who, String::new(), what]
            }
        }
    }
}
