use std::path::PathBuf;

use clap::Args;
use pleach_contract::evolution::{Diff, Finding, Verdict, diff_over};
use pleach_contract::{Contract, Places};
use serde_json::json;

use super::against::Against;
use super::check;
use super::judged::Judged;
use super::report::{Report, ReportForm, print};
use super::source::Source;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// Compares a contract with older ones, and says what the changes do to stored values
#[derive(Args, Debug)]
#[command(
    after_help = "Every change is judged in two directions: whether what is stored is still accepted, and whether programs of the\n\
                  old contract accept what the new one writes. The verdict is `safe`, `scan` (look at what is stored first: `pleach\n\
                  contract plan`) or `dangerous`. docs/evolution.md lists all codes. Exit codes: 0 if nothing changed, 1 for an error,\n\
                  2 if there are changes, 3 if one of them is dangerous.\n\n\
                  Examples:\n  pleach contract diff contract.yaml\n  pleach contract diff contract.yaml --against git:main\n  \
                  pleach contract diff new.yaml --against v1.yaml --against v2.yaml --strict\n  \
                  pleach contract diff contract.yaml --against git:origin/main --format github"
)]
pub(crate) struct DiffArgs {
    /// The new contract: a file that ends in .yaml, .yml or .json, or `-` for stdin
    file: PathBuf,

    /// The older one: a file, `git:REF` for the same file in a commit, or `git:REF:PATH`; several times for several
    #[arg(long, value_name = "WHERE", default_value = "git:HEAD")]
    against: Vec<Against>,

    /// Ends with 3 also if a change would have to be scanned for
    #[arg(long)]
    strict: bool,

    /// How findings are printed: text, json, junit or github; --json means json, too
    #[arg(long, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    format: ReportForm,
}

impl DiffArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        app.exit = Exit::JUDGING;
        let source = Source::read(&self.file)?;
        let new = contract(&source, app)?;
        let mut older = Vec::with_capacity(self.against.len());
        for against in &self.against {
            let source = against.read(&self.file)?;
            let old = contract(&source, app)?;
            if old.id != new.id {
                let message = format!(
                    "{} is {} and {} is {}: contracts of two lineages have no common history",
                    source.name,
                    old.id,
                    self.file.display(),
                    new.id
                );
                return Err(Problem::invalid(message).help("compare versions of one contract").into());
            }
            older.push(old);
        }
        let diff = diff_over(&older.iter().collect::<Vec<_>>(), &new);
        let report = report(&source, &new, &diff);
        print(&[report], "pleach contract diff", self.format.or_json(&app.output), &mut app.output)?;
        app.exit.done = exit_code(diff.verdict(), self.strict);
        Ok(())
    }
}

/// 0 nothing, 2 changes, 3 dangerous ones.
pub(super) fn exit_code(verdict: Option<Verdict>, strict: bool) -> u8 {
    match verdict {
        None => 0,
        Some(Verdict::Dangerous) => 3,
        Some(Verdict::Scan) if strict => 3,
        Some(Verdict::Safe | Verdict::Scan) => 2,
    }
}

/// The contract in a file. If it cannot be used, everything that is wrong with it is printed first.
pub(super) fn contract(source: &Source, app: &mut App) -> anyhow::Result<Contract> {
    let problems = match source.parse() {
        Ok(parsed) => return Ok(parsed.contract),
        Err(problems) => problems,
    };
    let form = ReportForm::default().or_json(&app.output);
    print(&[check::report(source, &problems, None)], "pleach contract check", form, &mut app.output)?;
    let problem = Problem::invalid(format!("{} is not a contract that can be used", source.name));
    Err(problem.help(format!("mend it, and see with `pleach contract check {}`", source.name)).into())
}

fn report<'s>(source: &'s Source, new: &Contract, diff: &Diff) -> Report<'s> {
    let places = Places::of(&source.bytes, source.notation);
    let remarks = diff.findings.iter().map(|finding| judged(finding).remark(&source.name, &places)).collect();
    let count = |verdict: Verdict| diff.findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (safe, scan, dangerous) = (count(Verdict::Safe), count(Verdict::Scan), count(Verdict::Dangerous));
    let summary = if diff.findings.is_empty() {
        format!("nothing has changed in {}", new.id)
    } else {
        let changes = counted(diff.findings.len() as u64, "change", "changes");
        let more = if diff.more { ", and more that are not listed" } else { "" };
        let next = match (scan, dangerous) {
            (0, 0) => String::new(),
            _ => format!("\nwhat is stored decides: `pleach contract plan {}` looks at it", source.name),
        };
        format!("{changes} to {}: {dangerous} dangerous, {scan} to scan for, {safe} safe{more}{next}", new.id)
    };
    let object = json!({
        "v": JSON_VERSION, "event": "compared", "file": source.name, "id": new.id, "digest": new.digest(),
        "verdict": diff.verdict(), "safe": safe, "scan": scan, "dangerous": dangerous, "more": diff.more,
    });
    Report { source, remarks, summary: Some(summary), object }
}

fn judged(finding: &Finding) -> Judged<'_> {
    Judged {
        code: finding.code.as_str(),
        path: &finding.path,
        verdict: finding.verdict,
        forward: finding.forward,
        message: &finding.message,
        reason: &finding.reason,
        fix: &finding.fix,
        data: Vec::new(),
        object: json!(finding),
    }
}
