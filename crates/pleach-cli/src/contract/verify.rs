use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use pleach::ErrorKind;
use pleach::stores::{Breach, Contracts, OnProgress};
use pleach_contract::ContractId;
use serde_json::json;

use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::Progress;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// How many values of a resource or state store are shown.
const SHOWN_MAX: usize = 5;

/// Reads everything that is stored under a contract, and lists every value that breaks it
#[derive(Args, Debug)]
#[command(
    after_help = "Values can break the contract in force after an acknowledged apply, a write past the guards, or a\n\
                  write by a native client. The command reads live values and kept history, of buckets and of state.\n\
                  It shows the first values of each resource; with --json, every one in a line of its own. What it\n\
                  finds is kept: `pleach contract status`, `pleach status` and `pleach doctor` tell of it. Exit\n\
                  codes: 0 if every value keeps the contract, 9 if one does not.\n\n\
                  Examples:\n  pleach contract verify\n  pleach contract verify acme.cases@v1\n  \
                  pleach --json contract verify acme.cases@v1 > breaches.jsonl"
)]
pub(crate) struct VerifyArgs {
    /// Only the contract of this id
    #[arg(value_name = "ID", value_parser = super::contract_id)]
    id: Option<ContractId>,
}

/// The values of one resource or state store that break the contract.
#[derive(Debug, Default)]
struct Group {
    live: u64,
    kept: u64,
    shown: Vec<Breach>,
}

impl VerifyArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let contracts = app.store().await?.contracts();
        let lineages = match self.id {
            Some(id) => vec![id],
            None => {
                let all = contracts.lineages().await?;
                all.iter().filter_map(|status| ContractId::parse(&status.authority.lineage)).collect()
            }
        };
        if lineages.is_empty() {
            app.output.note("the store keeps no contract yet; begin with `pleach contract plan FILE`");
        }
        let mut breaches = 0;
        for lineage in &lineages {
            breaches += verify(&contracts, lineage, &mut app.output).await?;
        }
        if breaches == 0 {
            return Ok(());
        }
        let count =
            counted(breaches, "stored value breaks its contract", "stored values break their contracts");
        let help = "put a good value over each, delete it, or plan a contract that accepts it; \
                    `pleach --json contract verify` lists all of them";
        Err(Problem::new(ErrorKind::Corrupt, count).help(help).into())
    }
}

/// Verifies one lineage and returns how many values break its contract.
async fn verify(contracts: &Contracts, lineage: &ContractId, output: &mut Output) -> anyhow::Result<u64> {
    let progress = Arc::new(Progress::bytes(None, output));
    let shown = Arc::clone(&progress);
    let on_progress: OnProgress = Arc::new(move |scan| {
        shown.say(format!("{} records of {} read", scan.entries, scan.alias));
    });
    let Some(mut verification) = contracts.verify(lineage, Some(on_progress)).await? else {
        return Err(super::unknown_lineage(lineage).into());
    };
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    while let Some(breach) = verification.next().await? {
        if output.is_json() {
            output.object(&json!({"v": JSON_VERSION, "event": "breach", "id": lineage, "breach": breach}))?;
            continue;
        }
        let group = groups.entry(breach.place.clone()).or_default();
        if breach.live {
            group.live += 1;
        } else {
            group.kept += 1;
        }
        if group.shown.len() < SHOWN_MAX {
            group.shown.push(breach);
        }
    }
    drop(progress);
    let found = verification.found();
    if output.is_json() {
        output.object(&json!({
            "v": JSON_VERSION, "event": "verified", "id": lineage, "digest": found.digest,
            "records": found.records, "breaches": found.breaches,
        }))?;
        return Ok(found.breaches);
    }
    groups.iter().try_for_each(|(place, group)| print(place, group, output))?;
    if found.breaches == 0 && !output.is_quiet() {
        let records = counted(found.records, "stored value was", "stored values were");
        output.line(format_args!("{lineage}: {records} read, and all keep the contract in force"))?;
    }
    Ok(found.breaches)
}

fn print(place: &str, group: &Group, output: &mut Output) -> anyhow::Result<()> {
    let heading = output.paint().bold(place);
    let live = counted(group.live, "live value", "live values");
    let kept = counted(group.kept, "kept record", "kept records");
    output.line(format_args!("{heading}  {live} and {kept} break the contract"))?;
    for breach in &group.shown {
        let is_live = if breach.live { "live" } else { "kept" };
        let Breach { bucket, key, revision, why, .. } = breach;
        output.line(format_args!("  {bucket}/{key} at revision {revision}, {is_live}: {why}"))?;
    }
    let more = (group.live + group.kept).saturating_sub(group.shown.len() as u64);
    if more > 0 {
        output.line(format_args!("  and {more} more"))?;
    }
    Ok(())
}
