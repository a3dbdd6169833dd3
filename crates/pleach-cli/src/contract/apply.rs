use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use pleach::ErrorKind;
use pleach::stores::{Applied, ApplyOptions, AuthorityError, Contracts, Plan, PlanOptions};
use pleach_contract::Contract;
use serde_json::json;

use super::plan::{NO_STORE, short};
use super::source::Source;
use crate::app::{App, who};
use crate::ask::ask;
use crate::exit::Exit;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// The largest plan that is read from a file.
const PLAN_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Brings a planned contract into force, exactly as it was planned
#[derive(Args, Debug)]
#[command(
    after_help = "A plan that was made for another store, was changed since, or whose store has moved on is refused,\n\
                  and nothing is done. On a terminal the command asks before it does anything, unless --yes is given.\n\
                  Killed in the middle, the same command goes on; once the contract is in force, it says so and ends\n\
                  with 0. What a removed alias held is set aside for a week: `pleach contract restore` brings it\n\
                  back. Afterwards the command sweeps the contract's own buckets whose week is over. Exit codes: 0 if\n\
                  it was done, 1 for an error, 3 if it is dangerous and was not acknowledged.\n\n\
                  Examples:\n  pleach contract apply plan.json\n  pleach contract apply 3f6c0a91b2d4\n  \
                  pleach contract apply plan.json --acknowledge 'tickets of 2019 may go, see OPS-311'"
)]
pub(crate) struct ApplyArgs {
    /// The plan: a file that `pleach contract plan --out` wrote, or the beginning of a plan's id
    plan: PathBuf,

    /// Accepts what is dangerous about it, and says why; it is recorded
    #[arg(long, value_name = "WHY")]
    acknowledge: Option<String>,

    /// Who decides, which is recorded [default: the user who runs the command]
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// Does not ask on a terminal
    #[arg(long)]
    yes: bool,
}

impl ApplyArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        app.exit = Exit::JUDGING;
        let (contracts, plan) = find(app, &self.plan).await?;
        if !self.yes {
            confirmed(&plan)?;
        }
        let options = ApplyOptions { who: self.who.unwrap_or_else(who), acknowledgement: self.acknowledge };
        let applied = contracts.apply(&plan, options).await;
        if matches!(applied, Err(AuthorityError::Unacknowledged { .. })) {
            app.exit.failed = Some(3);
        }
        let Applied { version, digest, was_in_force, .. } = applied?;
        let object = json!({
            "v": JSON_VERSION, "event": "applied", "id": plan.lineage, "plan": plan.id, "version": version, "digest": digest,
            "wasInForce": was_in_force,
        });
        let is = if was_in_force { "is already in force" } else { "is in force" };
        app.output.confirm(&object, format_args!("{} {is}, as version {version}", plan.lineage))?;
        // The contract is in force, whatever becomes of the sweep.
        sweep(&contracts, &plan, app).await;
        Ok(())
    }
}

/// Asks a person, if there is one, before anything is done.
fn confirmed(plan: &Plan) -> anyhow::Result<()> {
    let steps = counted(plan.steps.len() as u64, "step", "steps");
    let dangers = match plan.dangers().count() {
        0 => "none of its changes is dangerous".to_owned(),
        count => counted(count as u64, "dangerous change", "dangerous changes"),
    };
    let question = format!("apply plan {} of {}: {steps}, {dangers}?", short(&plan.id), plan.lineage);
    match ask(&question)? {
        Some(true) | None => Ok(()),
        Some(false) => {
            Err(Problem::invalid("nothing was applied").help("answer y to apply it, or add --yes").into())
        }
    }
}

/// Sweeps what this contract has set aside and may go.
async fn sweep(contracts: &Contracts, plan: &Plan, app: &App) {
    let Ok(lineage) = super::contract_id(&plan.lineage) else { return };
    match contracts.sweep_lineage(&lineage).await {
        Ok(swept) => {
            for bucket in &swept {
                app.output
                    .note(format_args!("bucket {bucket} was set aside, and its time is over: it is gone"));
            }
        }
        Err(error) => app.output.warn(format_args!(
            "buckets whose time is over could not be deleted: {error}; try again with `pleach contract sweep`"
        )),
    }
}

/// The plan in a file, or the one that the store remembers under an id, and where it is to be applied.
async fn find(app: &mut App, named: &Path) -> anyhow::Result<(Contracts, Plan)> {
    if !named.exists() {
        let contracts = app.store().await?.contracts();
        let beginning = named.display().to_string();
        let mut found = contracts.pending(&beginning).await?;
        if found.is_empty() {
            // An apply that was killed before it answered is repeated under the same id.
            found = contracts.applied_plans(&beginning).await?;
        }
        return Ok((contracts, one_of(found, &beginning)?));
    }
    let plan = read(named)?;
    if plan.store != NO_STORE {
        return Ok((app.store().await?.contracts(), plan));
    }
    let contracts = app.store_or_create().await?.contracts();
    let plan = again(&contracts, &plan).await?;
    Ok((contracts, plan))
}

/// A plan that was made when there was no store, made again in the store that is there now. It must say the same.
async fn again(contracts: &Contracts, plan: &Plan) -> anyhow::Result<Plan> {
    let parsed = Contract::from_value(&plan.contract)
        .map_err(|problems| Problem::invalid(format!("the plan has a contract with errors: {problems}")))?;
    let options = PlanOptions { service: Some(plan.service.clone()), ..PlanOptions::default() };
    let fresh = contracts.plan(&parsed.contract, options).await?;
    if fresh.is_nothing() {
        // It was applied before: the apply says so.
        return Ok(fresh);
    }
    let says = |plan: &Plan| {
        let findings = plan.findings.iter().map(|finding| (finding.code.clone(), finding.verdict));
        (plan.target.clone(), plan.base.clone(), plan.steps.clone(), findings.collect::<Vec<_>>())
    };
    if says(&fresh) == says(plan) && fresh.shortfalls == plan.shortfalls {
        return Ok(fresh);
    }
    let problem = Problem::new(
        ErrorKind::Conflict,
        "the plan was made when there was no store, and this store differs",
    );
    Err(problem.help("make a new plan with `pleach contract plan FILE`, and look at it again").into())
}

/// The pending plan whose id begins like this.
pub(super) async fn pending(contracts: &Contracts, beginning: &str) -> anyhow::Result<Plan> {
    one_of(contracts.pending(beginning).await?, beginning)
}

/// The only one of some plans whose ids begin like this.
fn one_of(mut found: Vec<Plan>, beginning: &str) -> anyhow::Result<Plan> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let problem =
                Problem::not_found(format!("{beginning} is neither a file nor the id of a pending plan"));
            Err(problem.help("see what is pending with `pleach contract status`, or plan anew").into())
        }
        _ => {
            let all: Vec<&str> = found.iter().map(|plan| short(&plan.id)).collect();
            let problem = Problem::invalid(format!("{beginning} could be any of {}", all.join(", ")));
            Err(problem.help("give more of the id").into())
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Plan> {
    let cannot = |kind: ErrorKind, why: String| {
        Problem::new(kind, format!("cannot read the plan {}: {why}", path.display()))
            .help("make one with `pleach contract plan CONTRACT --out FILE`")
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| cannot(ErrorKind::NotFound, error.to_string()))?;
    file.take(PLAN_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|error| cannot(ErrorKind::Invalid, error.to_string()))?;
    let read: Result<Plan, _> = serde_json::from_slice(&text);
    let name = path.display();
    if read.is_err() && Source::of(name.to_string(), path, text).parse().is_ok() {
        let problem = Problem::invalid(format!("{name} is a contract, and a plan is what is applied"));
        return Err(problem.help(format!("see what it would do: pleach contract plan {name}")).into());
    }
    Ok(read.map_err(|error| cannot(ErrorKind::Invalid, error.to_string()))?)
}
