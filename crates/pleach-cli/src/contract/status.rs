use clap::Args;
use pleach::ErrorKind;
use pleach::stores::{
    Contracts, Damage, LineageStatus, Materialised, Owner, OwnerState, Plan, PlanSummary, SYSTEM_BUCKET,
};
use serde_json::{Value, json};

use super::plan::short;
use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};
use crate::text::counted;

/// Shows which contracts the store keeps, how far they are in force, and what is pending
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach contract status\n  pleach contract status acme.cases@v1\n  pleach --json contract status"
)]
pub(crate) struct StatusArgs {
    /// Only the contract of this id
    #[arg(value_name = "ID", value_parser = super::contract_id)]
    id: Option<pleach_contract::ContractId>,
}

impl StatusArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let contracts = app.store().await?.contracts();
        // Before anything that one of them may stop.
        let damages = contracts.damages().await?;
        show_damages(&damages, &mut app.output)?;
        let found = match &self.id {
            Some(id) => match contracts.status(id).await? {
                Some(status) => vec![status],
                None => return Err(super::unknown_lineage(id).into()),
            },
            None => contracts.lineages().await?,
        };
        let first = if self.id.is_none() { first_plans(&contracts, &found).await? } else { Vec::new() };
        if found.is_empty() && first.is_empty() && damages.is_empty() && !app.output.is_json() {
            app.output.note("the store keeps no contract yet; begin with `pleach contract plan FILE`");
        }
        show(&found, &first, &mut app.output)?;
        match damages.len() {
            0 => Ok(()),
            count => Err(damaged(count).into()),
        }
    }
}

fn show(found: &[LineageStatus], first: &[Plan], output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        found.iter().try_for_each(|status| output.object(&object(status)))?;
        return first.iter().try_for_each(|plan| output.object(&first_object(plan)));
    }
    for plan in first {
        let heading = output.paint().bold(&plan.lineage);
        output.line(format_args!("{heading}  not in force yet"))?;
        output.line(pending(&plan.into()))?;
    }
    found.iter().try_for_each(|status| print(status, output))
}

/// The records that cannot be read, a line each.
fn show_damages(damages: &[Damage], output: &mut Output) -> anyhow::Result<()> {
    for damage in damages {
        if output.is_json() {
            output.object(&json!({"v": JSON_VERSION, "damaged": damage}))?;
        } else {
            let Damage { key, revision, what } = damage;
            output.line(format_args!("damaged  {SYSTEM_BUCKET}/{key} at revision {revision}: {what}"))?;
        }
    }
    Ok(())
}

fn damaged(count: usize) -> Problem {
    let count = counted(
        count as u64,
        "record of this store about contracts is",
        "records of this store about contracts are",
    );
    let help = format!(
        "look at one with `pleach kv get {SYSTEM_BUCKET} KEY`, keep a copy of the store, and restore a backup; \
         whatever has nothing to do with it goes on"
    );
    Problem::new(ErrorKind::Corrupt, format!("{count} damaged")).help(help)
}

/// The plans of lineages of which nothing is in force yet.
async fn first_plans(contracts: &Contracts, found: &[LineageStatus]) -> anyhow::Result<Vec<Plan>> {
    let mut plans = contracts.pending("").await?;
    plans.retain(|plan| !found.iter().any(|status| status.authority.lineage == plan.lineage));
    Ok(plans)
}

fn object(status: &LineageStatus) -> Value {
    let plans: Vec<Value> = status.plans.iter().map(plan_object).collect();
    json!({"v": JSON_VERSION, "authority": status.authority, "inForce": status.in_force, "buckets": status.buckets, "plans": plans,
        "unfinished": status.is_unfinished, "verified": status.verified, "overridesSince": status.overrides_since})
}

fn first_object(plan: &Plan) -> Value {
    let authority = json!({"lineage": plan.lineage, "service": plan.service, "version": 0});
    json!({"v": JSON_VERSION, "authority": authority, "buckets": {}, "plans": [plan_object(&plan.into())],
        "unfinished": false})
}

fn plan_object(plan: &PlanSummary) -> Value {
    json!({"id": plan.id, "digest": plan.target, "verdict": plan.verdict, "made": plan.made.to_string(),
        "expires": plan.expires.to_string()})
}

/// A plan that can be applied, in a line.
fn pending(plan: &PlanSummary) -> String {
    format!("pending  plan {}, {}, until {}", short(&plan.id), word(plan.verdict), plan.expires)
}

fn print(status: &LineageStatus, output: &mut Output) -> anyhow::Result<()> {
    let authority = &status.authority;
    let heading = output.paint().bold(&authority.lineage);
    output.line(format_args!("{heading}  version {}, {}", authority.version, in_force(&authority.status)))?;
    output.line(format_args!("  digest  {}", authority.digest))?;
    if status.in_force.as_ref() != Some(&authority.digest) {
        let in_force = status.in_force.as_deref().unwrap_or("no contract");
        output.line(format_args!("  in force  {in_force}"))?;
    }
    if let Some(verified) = &status.verified {
        let (lineage, time) = (&authority.lineage, verified.time);
        let records = counted(verified.records, "stored value", "stored values");
        match verified.breaches {
            0 => output.line(format_args!("  verified  {time}: all of {records} keep it"))?,
            count => output.line(format_args!(
                "  verified  {time}: {count} of {records} break it; list them with `pleach contract verify {lineage}`"
            ))?,
        }
    }
    if status.overrides_since > 0 {
        let times = counted(status.overrides_since, "time", "times");
        let since = if status.verified.is_some() { " since" } else { "" };
        let lineage = &authority.lineage;
        output.line(format_args!(
            "  guards  passed {times}{since}; check with `pleach contract verify {lineage}`"
        ))?;
    }
    if status.is_unfinished {
        output.line("  an apply was interrupted; go on with `pleach contract apply PLAN`")?;
    }
    let mut table = Table::new([Column::Left("RESOURCE"), Column::Left("BUCKET"), Column::Left("STATE")]);
    for (bucket, owner) in &status.buckets {
        table.row([owner.alias.clone(), bucket.clone(), state(owner)]);
    }
    for (alias, binding) in &authority.bindings {
        if !status.buckets.contains_key(&binding.bucket) {
            table.row([alias.clone(), binding.bucket.clone(), "its record is damaged or missing".into()]);
        }
    }
    table.write(output)?;
    for plan in &status.plans {
        output.line(pending(plan))?;
    }
    Ok(())
}

fn in_force(status: &Materialised) -> String {
    match status {
        Materialised::Current => "in force".into(),
        Materialised::Pending { done, .. } => {
            format!("not yet in force: {} done", counted(*done as u64, "step is", "steps are"))
        }
        Materialised::Failed { why, .. } => format!("not in force: {why}"),
    }
}

fn state(owner: &Owner) -> String {
    match &owner.state {
        OwnerState::Owned if owner.claim.is_some() => "in use, a plan is under way".into(),
        OwnerState::Owned => "in use".into(),
        OwnerState::SetAside { until, .. } => format!("set aside until {until}"),
        OwnerState::Restored => "restored".into(),
        OwnerState::Going => "being deleted".into(),
        OwnerState::Arriving => "being copied from another store".into(),
    }
}

fn word(verdict: pleach_contract::evolution::Verdict) -> &'static str {
    use pleach_contract::evolution::Verdict;
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Scan => "to be scanned for",
        Verdict::Dangerous => "dangerous",
    }
}
