use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::source::Source;
use crate::app::App;
use crate::failure::Problem;
use crate::record::JSON_VERSION;

/// Prints the digest of contracts: the same for the same demands, however they are written down
#[derive(Args, Debug)]
#[command(
    after_help = "The digest is SHA-256 of the canonical form, as base64url. Order, defaults that are written out, texts for\n\
                  people and schemas that nothing names do not change it. Exit codes: 0, or 2 if a contract has errors.\n\n\
                  Examples:\n  pleach contract digest contract.yaml\n  pleach contract digest old.json new.yaml\n  \
                  pleach contract digest contract.yaml --canonical"
)]
pub(crate) struct DigestArgs {
    /// The contracts, or `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Prints the canonical form, which is what is digested
    #[arg(long)]
    canonical: bool,
}

impl DigestArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        for file in &self.files {
            let source = Source::read(file)?;
            let contract = source.parse().map_err(|problems| refused(&source, &problems))?.contract;
            let (id, digest) = (contract.id.as_str(), contract.digest());
            match (app.output.is_json(), self.canonical) {
                (true, _) => app.output.object(&json!({
                    "v": JSON_VERSION, "file": source.name, "id": id, "digest": digest,
                    "canonical": self.canonical.then(|| contract.projection()),
                }))?,
                (false, true) => app.output.line(contract.canonical())?,
                (false, false) => app.output.line(format_args!("{digest}  {id}  {}", source.name))?,
            }
        }
        Ok(())
    }
}

/// A contract that cannot be used, for commands that need one.
pub(super) fn refused(source: &Source, problems: &pleach_contract::Problems) -> anyhow::Error {
    let name = &source.name;
    let problem = Problem::invalid(format!("{name} has errors: {problems}"));
    problem.help(format!("see all of them with `pleach contract check {name}`")).into()
}
