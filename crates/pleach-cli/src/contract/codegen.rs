use std::path::PathBuf;

use clap::Args;
use pleach_contract::codegen::{RustOptions, rust_module};
use serde_json::json;

use super::digest::refused;
use super::source::Source;
use crate::app::App;
use crate::destination;
use crate::record::JSON_VERSION;

/// Writes a typed Rust module for a contract: its values, its keys, and its stores
#[derive(Args, Debug)]
#[command(
    after_help = "The module needs the crates pleach, serde (with derive) and serde_json. The same contract gives the same text,\n\
                  so that a build can check that it is up to date. Exit codes: 0, or 2 if the contract has errors.\n\n\
                  Examples:\n  pleach contract codegen contract.yaml -o src/cases.rs\n  pleach contract codegen contract.yaml | rustfmt"
)]
pub(crate) struct CodegenArgs {
    /// The contract, or `-` for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Writes it to a file
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

impl CodegenArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let source = Source::read(&self.file)?;
        let contract = source.parse().map_err(|problems| refused(&source, &problems))?.contract;
        let code = rust_module(&contract, &RustOptions::default());
        let Some(path) = self.output else {
            if app.output.is_json() {
                return app.output.object(&json!({"v": JSON_VERSION, "id": contract.id, "code": code}));
            }
            return app.output.bytes(code.as_bytes());
        };
        destination::write(&path, code.as_bytes())?;
        let object = json!({"v": JSON_VERSION, "file": path.display().to_string(), "id": contract.id, "digest": contract.digest()});
        app.output.confirm(&object, format_args!("a module for {} is in {}", contract.id, path.display()))
    }
}
