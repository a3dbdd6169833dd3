use clap::Args;
use pleach_contract::ContractId;
use serde_json::json;

use super::plan::short;
use crate::app::App;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// Takes a bucket back that was set aside because its resource was removed
#[derive(Args, Debug)]
#[command(after_help = "It holds what it held, and takes writes again under the contract that it had.\n\n\
                  Examples:\n  pleach contract restore acme.cases@v1 sessions")]
pub(crate) struct RestoreArgs {
    /// The contract's id
    #[arg(value_name = "ID", value_parser = super::contract_id)]
    id: ContractId,

    /// The alias of the resource that was removed
    alias: String,
}

impl RestoreArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let bucket = app.store().await?.contracts().restore(&self.id, &self.alias).await?;
        let object =
            json!({"v": JSON_VERSION, "id": self.id, "alias": self.alias, "bucket": bucket.as_str()});
        app.output.confirm(&object, format_args!("bucket {bucket} is back"))
    }
}

/// Rejects a pending plan, so that nobody applies it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach contract reject 3f6c0a91b2d4")]
pub(crate) struct RejectArgs {
    /// The beginning of the plan's id
    plan: String,
}

impl RejectArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let contracts = app.store().await?.contracts();
        let plan = super::apply::pending(&contracts, &self.plan).await?;
        contracts.reject(&super::contract_id(&plan.lineage).map_err(anyhow::Error::msg)?, &plan.id).await?;
        let object = json!({"v": JSON_VERSION, "id": plan.lineage, "plan": plan.id});
        app.output.confirm(&object, format_args!("plan {} is rejected", short(&plan.id)))
    }
}

/// Deletes the buckets whose time of grace is over
#[derive(Args, Debug)]
#[command(
    after_help = "A bucket whose resource was removed is set aside for a week. `pleach contract apply` sweeps, too.\n\n\
                  Examples:\n  pleach contract sweep"
)]
pub(crate) struct SweepArgs {}

impl SweepArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let swept = app.store().await?.contracts().sweep().await?;
        let names: Vec<&str> = swept.iter().map(|bucket| bucket.as_str()).collect();
        let object = json!({"v": JSON_VERSION, "buckets": names});
        let gone = counted(names.len() as u64, "bucket is", "buckets are");
        app.output.confirm(&object, format_args!("{gone} gone {}", names.join(", ")))
    }
}
