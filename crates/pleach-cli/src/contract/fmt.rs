use std::path::PathBuf;

use clap::Args;
use pleach_contract::format_text;
use serde_json::json;

use super::digest::refused;
use super::source::Source;
use crate::app::App;
use crate::destination;
use crate::failure::Problem;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// Lays contracts out: fields in the order of the format, two spaces a level, comments kept
#[derive(Args, Debug)]
#[command(
    after_help = "Files are written in place; `-` reads stdin and writes stdout. Exit codes: 0, 2 if a file cannot be read as\n\
                  YAML or JSON, 4 with --check if a file is not laid out.\n\n\
                  Examples:\n  pleach contract fmt contract.yaml\n  pleach contract fmt contracts/*.yaml --check\n  \
                  pleach contract fmt - < contract.json"
)]
pub(crate) struct FmtArgs {
    /// The contracts, or `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Changes nothing, and says which files would change
    #[arg(long)]
    check: bool,
}

impl FmtArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let mut others = 0;
        for file in &self.files {
            let source = Source::read(file)?;
            let text = format_text(&source.bytes, source.notation)
                .map_err(|problems| refused(&source, &problems))?;
            let changed = text.as_bytes() != source.bytes;
            let name = &source.name;
            if self.check {
                others += u64::from(changed);
                if changed {
                    let object = json!({"v": JSON_VERSION, "file": name, "changed": true});
                    app.output.confirm(&object, format_args!("{name} is not laid out"))?;
                }
            } else if name == "-" {
                app.output.bytes(text.as_bytes())?;
            } else {
                if changed {
                    destination::write(&source.path, text.as_bytes())?;
                }
                let done = if changed { "is laid out" } else { "was laid out already" };
                let object = json!({"v": JSON_VERSION, "file": name, "changed": changed});
                app.output.confirm(&object, format_args!("{name} {done}"))?;
            }
        }
        if others == 0 {
            return Ok(());
        }
        let message = format!(
            "{} not laid out",
            if others == 1 {
                "1 file is".into()
            } else {
                format!("{} are", counted(others, "file", "files"))
            }
        );
        let problem = Problem::new(pleach::ErrorKind::Conflict, message);
        Err(problem.help("run `pleach contract fmt` on them").into())
    }
}
