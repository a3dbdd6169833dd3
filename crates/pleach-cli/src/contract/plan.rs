use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use pleach::stores::{Plan, PlanFinding, PlanOptions, ScanProgress};
use pleach::{BucketName, Store};
use pleach_contract::Places;
use pleach_contract::evolution::Verdict;
use serde_json::json;

use super::diff::{contract, exit_code};
use super::judged::Judged;
use super::report::{Remark, Report, ReportForm, Weight, print};
use super::source::Source;
use crate::app::App;
use crate::destination;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Progress;
use crate::record::JSON_VERSION;
use crate::size::Size;
use crate::table::{Column, Table};
use crate::text::{counted, time};
use crate::wait::Interrupt;

/// What a plan has in place of a store's id if there was no store when it was made. Planning creates none; applying does.
pub(super) const NO_STORE: &str = "none";

/// How many of the entries that stand against a change are shown to people.
const SHOWN_SAMPLES: usize = 3;

/// Says what a contract would do to the store and to what is stored in it, and changes nothing
#[derive(Args, Debug)]
#[command(
    after_help = "Compares the contract with everything that was accepted before, looks at the stored values wherever those decide, and\n\
                  lists the steps. Nothing is changed for anyone; only the plan is remembered, for a day. Exit codes: 0 if there is nothing\n\
                  to do, 1 for an error, 2 if there are changes, 3 if one of them is dangerous.\n\n\
                  Examples:\n  pleach contract plan contract.yaml\n  pleach contract plan contract.yaml --out plan.json\n  \
                  pleach contract plan contract.yaml --adopt sessions=old_sessions\n  \
                  pleach contract plan contract.yaml --format junit > plan.xml"
)]
pub(crate) struct PlanArgs {
    /// The contract: a file that ends in .yaml, .yml or .json, or `-` for stdin
    file: PathBuf,

    /// Writes the plan to a file, for `pleach contract apply`
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The name of the service in the names of its buckets [default: the last word of the contract's id]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Takes over a bucket that is there already, with what is in it; may be given several times
    #[arg(long, value_name = "ALIAS=BUCKET", value_parser = adoption)]
    adopt: Vec<(String, BucketName)>,

    /// Refuses from now on, until the plan is applied, rejected or over, to write what the new contract refuses
    #[arg(long)]
    guard: bool,

    /// How findings are printed: text, json, junit or github; --json means json, too
    #[arg(long, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    format: ReportForm,
}

fn adoption(text: &str) -> Result<(String, BucketName), String> {
    let (alias, bucket) = text.split_once('=').ok_or("write ALIAS=BUCKET")?;
    Ok((alias.to_owned(), BucketName::parse(bucket).map_err(|error| error.to_string())?))
}

impl PlanArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        app.exit = Exit::JUDGING;
        let source = Source::read(&self.file)?;
        let contract = contract(&source, app)?;
        let is_new = app.is_missing()?;
        if is_new && self.guard {
            // A guard is kept in the store, and planning creates none.
            app.store().await?;
        }
        let contracts = if is_new { Store::in_memory() } else { app.store().await? }.contracts();
        let progress = Progress::entries(0, &app.output);
        let options = PlanOptions {
            service: self.service,
            adopt: self.adopt.into_iter().collect::<BTreeMap<_, _>>(),
            guard: self.guard,
            progress: Some(Arc::new(move |scan: &ScanProgress| {
                progress.say(format!("of {}", scan.alias));
                progress.reach(scan.entries);
            })),
            cancel: Some(Interrupt::catch()?.flag()),
        };
        let mut plan = contracts.plan(&contract, options).await?;
        if is_new {
            plan.store = NO_STORE.into();
            if self.out.is_none() {
                app.output.note("there is no store yet; add --out FILE to apply this to a new one");
            }
        }
        if let Some(path) = &self.out {
            write(&plan, path)?;
        }
        let form = self.format.or_json(&app.output);
        let report = report(&source, &plan, self.out.as_deref(), self.guard);
        if form == ReportForm::Text {
            scans(&plan, &mut app.output)?;
            drift(&plan, &mut app.output)?;
        }
        print(&[report], "pleach contract plan", form, &mut app.output)?;
        let is_unfinished = contracts.status(&contract.id).await?.is_some_and(|status| status.is_unfinished);
        if is_unfinished {
            app.output
                .note("an apply was interrupted: go on with it by the same `pleach contract apply` first");
        }
        app.exit.done = match plan.is_nothing() && !is_unfinished {
            true => 0,
            false if plan.shortfalls.iter().any(|shortfall| shortfall.blocks) => 3,
            false => exit_code(Some(plan.verdict()), false),
        };
        Ok(())
    }
}

fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(plan).context("cannot write the plan as JSON")?;
    destination::write(path, (text + "\n").as_bytes())
}

/// The buckets that were read, and how many entries of each version they have.
fn scans(plan: &Plan, output: &mut Output) -> anyhow::Result<()> {
    if plan.scans.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        Column::Left("RESOURCE"),
        Column::Left("BUCKET"),
        Column::Right("ENTRIES"),
        Column::Right("KEPT"),
        Column::Right("SIZE"),
        Column::Left("VERSIONS"),
    ]);
    for (alias, scanned) in &plan.scans {
        let named = |version: &str| if version.is_empty() { "none".to_owned() } else { version.to_owned() };
        let versions: Vec<String> =
            scanned.versions.iter().map(|(version, count)| format!("{}: {count}", named(version))).collect();
        table.row([
            alias.clone(),
            scanned.bucket.clone(),
            scanned.entries.to_string(),
            scanned.kept.to_string(),
            Size(scanned.bytes).to_string(),
            versions.join(", "),
        ]);
    }
    table.write(output)?;
    output.line("")
}

/// How buckets differ from what the contract in force asks for.
fn drift(plan: &Plan, output: &mut Output) -> anyhow::Result<()> {
    if plan.drift.is_empty() {
        return Ok(());
    }
    output.line("drift: changed past the contract in force")?;
    let mut table = Table::new([
        Column::Left("RESOURCE"),
        Column::Left("BUCKET"),
        Column::Left("SETTING"),
        Column::Left("EXPECTED"),
        Column::Left("FOUND"),
        Column::Left("BECOMES"),
    ]);
    for drift in &plan.drift {
        table.row([
            drift.alias.clone(),
            drift.bucket.clone(),
            drift.setting.clone(),
            drift.expected.clone(),
            drift.found.clone(),
            drift.becomes.clone(),
        ]);
    }
    table.write(output)?;
    output.line("")
}

fn report<'s>(source: &'s Source, plan: &Plan, out: Option<&Path>, is_guarded: bool) -> Report<'s> {
    let places = Places::of(&source.bytes, source.notation);
    let name = &source.name;
    let shortfalls = plan.shortfalls.iter().map(|shortfall| Remark {
        weight: if shortfall.blocks { Weight::Failure } else { Weight::Warning },
        word: if shortfall.blocks { "impossible" } else { "not kept" },
        code: if shortfall.blocks { "engine.capability" } else { "contract.unmaintained" }.into(),
        position: places.position(&shortfall.path),
        path: shortfall.path.clone(),
        message: shortfall.message.clone(),
        details: vec![("fix", shortfall.fix.clone())],
        object: json!({"v": JSON_VERSION, "event": "shortfall", "file": name, "path": shortfall.path,
            "message": shortfall.message, "fix": shortfall.fix, "blocks": shortfall.blocks}),
    });
    let findings = plan.findings.iter().map(|finding| judged(finding).remark(name, &places));
    let object = json!({
        "v": JSON_VERSION, "event": "planned", "file": name, "id": plan.lineage, "plan": plan.id, "digest": plan.target,
        "verdict": plan.verdict(), "nothing": plan.is_nothing(), "base": plan.base, "scans": plan.scans, "drift": plan.drift, "steps": plan.steps,
        "estimateMs": plan.estimate_ms, "expires": plan.expires.to_string(), "out": out.map(|out| out.display().to_string()),
    });
    Report {
        source,
        remarks: shortfalls.chain(findings).collect(),
        summary: Some(summary(plan, out, is_guarded)),
        object,
    }
}

fn judged(finding: &PlanFinding) -> Judged<'_> {
    let answer = finding.answer.as_ref();
    let samples = answer.map_or(&[][..], |answer| &answer.samples);
    let shown = samples.iter().take(SHOWN_SAMPLES).map(|sample| {
        let place = if sample.path.is_empty() { String::new() } else { format!(" at {}", sample.path) };
        let named = sample.state.as_ref().map_or_else(|| sample.key.clone(), ToString::to_string);
        let kept = if sample.kept { "kept, " } else { "" };
        format!("{named} ({kept}revision {}){place}: {}", sample.revision, sample.message)
    });
    let total = answer.map_or(0, |answer| answer.count + answer.kept.map_or(0, |kept| kept.records));
    let more = total.saturating_sub(SHOWN_SAMPLES as u64);
    let rest = (more > 0).then(|| format!("and {more} more"));
    Judged {
        code: &finding.code,
        path: &finding.path,
        verdict: finding.verdict,
        forward: finding.forward,
        message: &finding.message,
        reason: &finding.reason,
        fix: &finding.fix,
        data: shown.chain(rest).collect(),
        object: json!(finding),
    }
}

/// What it comes to, and what to do next.
fn summary(plan: &Plan, out: Option<&Path>, is_guarded: bool) -> String {
    if plan.is_nothing() {
        return format!("nothing to do: the store is what {} asks for", plan.lineage);
    }
    let count = |verdict: Verdict| plan.findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (safe, dangerous) = (count(Verdict::Safe), plan.findings.len() - count(Verdict::Safe));
    let changes = counted(plan.findings.len() as u64, "change", "changes");
    let mut text = match plan.base.version {
        0 if plan.findings.is_empty() => format!("{} is new to this store\n", plan.lineage),
        _ => format!("{changes} to {}: {dangerous} dangerous, {safe} safe\n", plan.lineage),
    };
    for (number, step) in plan.steps.iter().enumerate() {
        text += &format!("  {}. {step}\n", number + 1);
    }
    let (from, estimate) = (plan.base.version, time(std::time::Duration::from_millis(plan.estimate_ms)));
    text += &format!("plan {} from version {from}, about {estimate} to apply\n", short(&plan.id));
    text += match is_guarded {
        true => "nothing stored was changed, and writers keep it from now on",
        false => "nothing was changed",
    };
    let named = out.map_or_else(|| short(&plan.id).to_owned(), |path| path.display().to_string());
    if plan.shortfalls.iter().any(|shortfall| shortfall.blocks) {
        text += "; it cannot be applied on this engine";
    } else if dangerous == 0 {
        text += &format!("; go on with `pleach contract apply {named}`");
    } else {
        text += &format!(
            "; mend the contract, or accept what is lost with `pleach contract apply {named} --acknowledge WHY`"
        );
    }
    text
}

/// The part of a plan's id that people type.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
