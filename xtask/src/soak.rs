use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Runs the soak of the embedded engine, with optimisations, and hands it the arguments.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command.args(["run", "--quiet", "--release", "-p", "pleach-embedded", "--example", "soak", "--"]);
    let status = command.args(arguments).status().context("cargo cannot be started")?;
    ensure!(status.success(), "the soak failed");
    Ok(())
}
