use clap::Args;
use pleach::ErrorKind;
use pleach::doctor::{self, Severity};
use serde_json::json;

use super::status::look;
use crate::app::App;
use crate::contract::health::{self, ContractFinding as Finding};
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// Says what is wrong with a store in a directory, why, and what to do
#[derive(Args, Debug)]
#[command(
    after_help = "Looks at the figures of `pleach status`, so it also works while a program has the store open.\n\
                  If nobody has, it tells of the contracts too. Ends with exit code 7 if it finds more than\n\
                  notes. It does not read the data: `pleach verify` and `pleach contract verify` do.\n\n\
                  Examples:\n  pleach doctor\n  pleach doctor file:/srv/data\n  pleach --json doctor"
)]
pub(crate) struct DoctorArgs {
    /// The store, if it is not named otherwise
    #[arg(value_name = "URL", value_parser = crate::args::store_url)]
    store: Option<String>,
}

impl DoctorArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        app.name_store(self.store.as_deref());
        let seen = look(app).await?;
        let of_contracts = match &seen.holder {
            // Whoever has the store open knows about its contracts; from outside nobody can read them.
            Some(_) => Vec::new(),
            None => health::findings(app).await?,
        };
        let of_engine = doctor::examine(&seen.status);
        let mut findings: Vec<Finding> =
            of_engine.into_iter().map(Finding::from).chain(of_contracts).collect();
        // Stable: what matters most comes first, and the engine's findings before those of contracts.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let serious = findings.iter().filter(|finding| finding.severity > Severity::Note).count() as u64;
        if app.output.is_json() {
            print_json(&findings, serious, &mut app.output)?;
        } else {
            let place = app.place();
            print(&findings, &place, &mut app.output)?;
        }
        if serious == 0 {
            return Ok(());
        }
        let things = counted(serious, "thing", "things");
        let problem = Problem::new(ErrorKind::Unavailable, format!("{things} should be looked after"));
        Err(problem.help("see what each finding says to do next").into())
    }
}

fn print(findings: &[Finding], place: &str, output: &mut Output) -> anyhow::Result<()> {
    if findings.is_empty() {
        return if output.is_quiet() {
            Ok(())
        } else {
            output.line(format_args!("The store at {place} is well."))
        };
    }
    let paint = output.paint();
    for (finding, number) in findings.iter().zip(0..) {
        let Finding { rule: _, severity, what, why, next } = finding;
        let severity = match severity {
            Severity::Note => paint.bold("note:"),
            Severity::Warning => paint.cyan("warning:"),
            Severity::Problem => paint.red("problem:"),
        };
        if number > 0 {
            output.line("")?;
        }
        output.line(format_args!("{severity} {what}"))?;
        output.line(format_args!("  why   {why}"))?;
        output.line(format_args!("  next  {next}"))?;
    }
    Ok(())
}

fn print_json(findings: &[Finding], serious: u64, output: &mut Output) -> anyhow::Result<()> {
    for Finding { rule, severity, what, why, next } in findings {
        output.object(&json!({
            "v": JSON_VERSION, "event": "finding", "rule": rule, "severity": severity,
            "what": what, "why": why, "next": next,
        }))?;
    }
    let notes = findings.len() as u64 - serious;
    output.object(&json!({"v": JSON_VERSION, "event": "examined", "serious": serious, "notes": notes}))
}

impl From<doctor::Finding> for Finding {
    fn from(finding: doctor::Finding) -> Self {
        let doctor::Finding { rule, severity, what, why, next, .. } = finding;
        Self { rule, severity, what, why, next }
    }
}
