use std::path::PathBuf;

use clap::Args;
use pleach_contract::{Contract, Parsed, Problem as ContractProblem, Problems, Severity};
use serde_json::{Value, json};

use super::report::{Remark, Report, ReportForm, Weight, print};
use super::source::Source;
use crate::app::App;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// Reads contracts and says everything that is wrong with them, and how to mend it
#[derive(Args, Debug)]
#[command(
    after_help = "Every finding has a stable code; docs/contracts.md lists them. Exit codes: 0 if every contract can be\n\
                  used, warnings or not; 2 if one cannot; 3 if a file is not there.\n\n\
                  Examples:\n  pleach contract check contract.yaml\n  pleach contract check contracts/*.yaml --format junit > report.xml\n  \
                  pleach contract check contract.yaml --format github\n  cat contract.json | pleach --json contract check -"
)]
pub(crate) struct CheckArgs {
    /// The contracts: files that end in .yaml, .yml or .json, or `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// How findings are printed: text, json, junit or github; --json means json, too
    #[arg(long, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    format: ReportForm,
}

impl CheckArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let sources = self.files.iter().map(|file| Source::read(file)).collect::<Result<Vec<_>, _>>()?;
        let reports: Vec<Report<'_>> = sources.iter().map(look).collect();
        let form = self.format.or_json(&app.output);
        print(&reports, "pleach contract check", form, &mut app.output)?;
        let broken: Vec<&Report<'_>> =
            reports.iter().filter(|report| report.count(Weight::Failure) > 0).collect();
        let errors: usize = broken.iter().map(|report| report.count(Weight::Failure)).sum();
        let errors = counted(errors as u64, "error", "errors");
        let message = match broken.as_slice() {
            [] => return Ok(()),
            [one] => format!("{errors} in {}", one.source.name),
            many => format!("{errors} in {}", counted(many.len() as u64, "file", "files")),
        };
        Err(Problem::invalid(message).help("each finding says what to do").into())
    }
}

fn look(source: &Source) -> Report<'_> {
    let (problems, contract) = match source.parse() {
        Ok(Parsed { contract, warnings }) => (warnings, Some(contract)),
        Err(problems) => (problems, None),
    };
    report(source, &problems, contract.as_ref())
}

/// What is wrong with a contract, and which it is if it can be used.
pub(super) fn report<'s>(source: &'s Source, problems: &Problems, contract: Option<&Contract>) -> Report<'s> {
    let name = &source.name;
    let remarks: Vec<Remark> = problems.list().iter().map(|problem| remark(name, problem)).collect();
    let mut report = Report { source, remarks, summary: None, object: Value::Null };
    let (errors, warnings) = (report.count(Weight::Failure), report.count(Weight::Warning));
    let digest = contract.map(Contract::digest);
    report.object = json!({
        "v": JSON_VERSION, "event": "checked", "file": name, "id": contract.map(|contract| &contract.id), "digest": digest,
        "errors": errors, "warnings": warnings,
    });
    if let (Some(contract), Some(digest)) = (contract, digest) {
        let but = match warnings as u64 {
            0 => String::new(),
            count => format!(", with {}", counted(count, "warning", "warnings")),
        };
        report.summary = Some(format!("{name} is the contract {}{but}\n  digest  {digest}", contract.id));
    }
    report
}

fn remark(file: &str, problem: &ContractProblem) -> Remark {
    let (weight, word) = match problem.severity {
        Severity::Error => (Weight::Failure, "error"),
        Severity::Warning => (Weight::Warning, "warning"),
    };
    let mut object = json!({"v": JSON_VERSION, "event": "problem", "file": file});
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), json!(problem)) {
        object.extend(fields);
    }
    Remark {
        weight,
        word,
        code: problem.code.as_str().to_owned(),
        position: problem.position.filter(|position| position.line > 0),
        path: problem.path.clone(),
        message: problem.message.clone(),
        details: vec![("fix", problem.fix.clone())],
        object,
    }
}
