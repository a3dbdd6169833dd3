use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use pleach_contract::format_text;
use serde_json::json;

use super::digest::refused;
use super::source::Source;
use crate::app::App;
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
                    replace(&source.path, &text)?;
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

/// Writes a file beside it and puts it in its place, so that no one ever finds half of it.
pub(super) fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let cannot = || {
        let problem = Problem::invalid(format!("cannot write {}", path.display()));
        problem.help("name a place that can be written to")
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    fs::write(&beside, text).with_context(cannot)?;
    fs::rename(&beside, path).with_context(cannot)
}
