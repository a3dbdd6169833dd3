use std::path::PathBuf;

use clap::Args;
use pleach_contract::{Parsed, Severity};

use super::report::{Findings, ReportForm, print};
use super::source::Source;
use crate::app::App;
use crate::failure::Problem;
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
        let mut findings = Vec::with_capacity(self.files.len());
        for file in &self.files {
            findings.push(look(Source::read(file)?));
        }
        let form = match self.format {
            ReportForm::Text if app.output.is_json() => ReportForm::Json,
            form => form,
        };
        print(&findings, form, &mut app.output)?;
        let broken: Vec<&Findings> =
            findings.iter().filter(|found| found.count(Severity::Error) > 0).collect();
        let errors: usize = broken.iter().map(|found| found.count(Severity::Error)).sum();
        match broken.as_slice() {
            [] => Ok(()),
            [one] => {
                let message = format!("{} in {}", counted(errors as u64, "error", "errors"), one.source.name);
                Err(Problem::invalid(message).help("each finding says what to do").into())
            }
            many => {
                let message = format!(
                    "{} in {}",
                    counted(errors as u64, "error", "errors"),
                    counted(many.len() as u64, "file", "files")
                );
                Err(Problem::invalid(message).help("each finding says what to do").into())
            }
        }
    }
}

fn look(source: Source) -> Findings {
    let (problems, contract) = match source.parse() {
        Ok(Parsed { contract, warnings }) => {
            (warnings.list().to_vec(), Some((contract.id.to_string(), contract.digest())))
        }
        Err(problems) => (problems.list().to_vec(), None),
    };
    Findings { source, problems, contract }
}
